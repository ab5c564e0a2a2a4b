//! One actor of a protocol: what it sees, what it can do, what it writes down.
//!
//! Every protocol of this folder runs over an [`Actor`] and over nothing else, so that the real machine and a simulated one
//! run the same code. Nothing here decides.

use crate::chain::fold::State;
use crate::event::Event;
use crate::id::{AgentId, Epoch, StreamName};
use crate::log::{Append, AppendError, Appended, Entry, Expectation, Log, LogError};
use crate::snapshot::View;
use crate::world::doors::{DoorError, Doors};

/// What a protocol runs over.
pub struct Actor<'a> {
    /// What it sees: each question is asked anew, nothing is kept.
    pub view: &'a mut dyn View,
    /// What it can do.
    pub doors: &'a mut dyn Doors,
    /// Where it writes down what it did, and what it is about to do.
    pub log: &'a dyn Log<State>,
}

impl std::fmt::Debug for Actor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Actor").finish_non_exhaustive()
    }
}

impl Actor<'_> {
    /// Appends events of a driver to its agent's stream; the lease in them is the fence.
    ///
    /// # Errors
    ///
    /// [`AppendError`]; nothing of it is in the log, but for an unknown commit.
    pub fn record(&mut self, uid: &AgentId, events: Vec<Event>) -> Result<Appended, AppendError> {
        let stream = StreamName::Agent(uid.clone());
        self.append(&[Entry { stream, expected: Expectation::Any, events }])
    }

    /// Appends.
    ///
    /// # Errors
    ///
    /// As [`Actor::record`].
    pub fn append(&mut self, entries: &[Entry]) -> Result<Appended, AppendError> {
        let at_ms = self.doors.now_ms();
        self.log.append(entries, &Append::at(at_ms))
    }
}

/// An agent under a lease of this actor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Driven {
    /// Whose conversation.
    pub uid: AgentId,
    /// The lease.
    pub epoch: Epoch,
}

/// What stops a protocol that nothing is wrong with: the world or the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// A door did not open.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The log did not take an event.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] LogError),
    /// The view is a recording that lacks an answer.
    #[error(transparent)]
    Snapshot(#[from] crate::snapshot::SnapshotError),
    /// A text of the world does not fit the log.
    #[error(transparent)]
    Name(#[from] crate::id::IdError),
}
