//! What cannot have happened: the refusals of an agent's fold, each naming what it met.

use crate::id::{Epoch, SegmentId, SessionId, Token};

/// An event that cannot follow the ones before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Illegal {
    /// The event's lease is not the present one: another driver has taken over.
    #[error("the event carries lease epoch {found}, the agent's lease has epoch {current}; a newer driver took over")]
    StaleEpoch {
        /// The event's.
        found: Epoch,
        /// The agent's.
        current: Epoch,
    },
    /// A driver's event while nobody holds the lease.
    #[error("nobody holds the agent's lease (the last had epoch {last}); take it first")]
    NoLease {
        /// The last epoch.
        last: Epoch,
    },
    /// The lease is held: it has to end before another can be taken.
    #[error("the lease with epoch {epoch} has not ended")]
    LeaseHeld {
        /// The present epoch.
        epoch: Epoch,
    },
    /// A lease that is not the next one.
    #[error("a lease with epoch {found} cannot follow one with epoch {last}")]
    EpochOrder {
        /// The event's.
        found: Epoch,
        /// The last.
        last: Epoch,
    },
    /// The segment is open already.
    #[error("segment {segment} is open already")]
    SegmentOpen {
        /// Which.
        segment: SegmentId,
    },
    /// No such segment is open.
    #[error("segment {segment} is not open")]
    SegmentNotOpen {
        /// Which.
        segment: SegmentId,
    },
    /// The provider was told which id to use, and another one is reported.
    #[error("segment {segment} was given the new session id {minted}, it cannot report {found}")]
    NotMinted {
        /// Which segment.
        segment: SegmentId,
        /// The id that we chose.
        minted: SessionId,
        /// The id that is reported.
        found: SessionId,
    },
    /// A confirmation of a session that the segment neither attempted nor reported.
    #[error("segment {segment} neither attempted nor reported session {session}")]
    Unreported {
        /// Which segment.
        segment: SegmentId,
        /// Which session.
        session: SessionId,
    },
    /// The head moves from somewhere else than where it is.
    #[error("the head is at {actual}, the event moves it from {found}")]
    HeadElsewhere {
        /// What the event says.
        found: String,
        /// What the fold says.
        actual: String,
    },
    /// The head moves to a session that nothing confirmed.
    #[error("the head cannot move to session {session}: nothing confirmed it")]
    NotConfirmed {
        /// Which session.
        session: SessionId,
    },
    /// The token is in use.
    #[error("token {token} is in use already")]
    TokenInUse {
        /// Which.
        token: Token,
    },
    /// No copy with that token is in the state that the event needs.
    #[error("no copy with token {token} is {needed}")]
    NoSuchCopy {
        /// Which.
        token: Token,
        /// The state that it needs.
        needed: &'static str,
    },
    /// A sweep ended that was not begun.
    #[error("no sweep is under way")]
    NoSweep,
    /// An event of another family of streams.
    #[error("an event of the {family} family does not belong to this stream")]
    OtherFamily {
        /// The event's.
        family: &'static str,
    },
}
