//! What can be wrong with a log: one vocabulary for readers, writers and `verify`.
//!
//! A [`Problem`] names the first event that does not hold and how; a [`LogError`] is why a call has no answer. Both are
//! typed so that a caller can tell "try again" from "do not trust this file" without reading words: [`LogError::class`].

use crate::event::DecodeError;
use crate::id::{Anchor, Digest, IdempotencyKey, Seq, StreamName, Version};

/// What kind of error it is, as a command maps it to an exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Class {
    /// The file is damaged, edited, newer than this build or no log at all: 65.
    Corrupt,
    /// Somebody else holds it; the same call may succeed later: 75.
    Busy,
    /// There is no log.
    NotThere,
    /// It cannot be written.
    ReadOnly,
    /// No space is left.
    DiskFull,
    /// The rules say no: a conflict, an illegal event, a key that was used for another request.
    Refused,
    /// Any other error of the machine; an append whose result is not known.
    Io,
}

/// How an event, or a row beside the events, does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// What the row says is not what was written.
    #[error("was edited")]
    Edited,
    /// A value that cannot be what it is meant to be: another type, another length, not UTF-8.
    #[error("was edited: its {column} is not readable")]
    Unreadable {
        /// The column.
        column: &'static str,
    },
    /// One or more events are gone.
    #[error("is missing; the next one that is there is {next}")]
    Missing {
        /// The place of the next event that is there; the same place where later events have moved up.
        next: Seq,
    },
    /// The event that belongs here stands elsewhere.
    #[error("was reordered: what belongs here stands at {found}")]
    Reordered {
        /// The rowid at which it stands.
        found: i64,
    },
    /// The event was written to another store.
    #[error("is from another store")]
    OtherStore,
    /// The log ends before something that is known to have been in it.
    #[error("is cut off: the log is known to have had {known}, and ends at {last}")]
    CutOff {
        /// What it had: an anchor, or the frontier that a memo names.
        known: String,
        /// The last event that is there.
        last: Seq,
    },
    /// Everything fits together, but it is not the history that the anchor was taken of.
    #[error("is not the one that the anchor {anchor} was taken of; the history was rewritten, or it is another log's")]
    OtherHistory {
        /// The anchor.
        anchor: Anchor,
    },
    /// The row that names the event's stream is gone or edited.
    #[error("belongs to stream number {id}, whose name is gone or edited")]
    NoStream {
        /// The number of the stream.
        id: i64,
    },
    /// A stream is named whose events are all gone.
    #[error("is cut off: the stream number {id} ({name}) has a name but no event")]
    NoEvents {
        /// The number of the stream.
        id: i64,
        /// Its name.
        name: String,
    },
    /// The event is as it was written, but this build cannot read it.
    #[error("cannot be read by this version")]
    Undecodable(#[source] DecodeError),
    /// The event is as it was written, but the rules do not allow it after what comes before.
    #[error("is not legal after the events before it")]
    Illegal(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A memoised state that is not the state. It is never used; deleting the row is harmless.
    #[error("has a memo of its stream number {stream} that was edited or put there by something else")]
    Memo {
        /// The number of the stream, as the row says.
        stream: i64,
    },
    /// A receipt that does not fit the history.
    #[error("has a receipt (key {key:?}) that was edited, or whose events are gone")]
    Receipt {
        /// The key, as far as it is readable.
        key: String,
    },
    /// The row that holds the store id is gone or edited.
    #[error("stands in a log whose store id was edited")]
    Store,
}

/// Where a log does not hold, and how.
#[derive(Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The event; for a row beside the events, the event that it rests on, or the last one.
    pub seq: Seq,
    /// Its stream, where that is known.
    pub stream: Option<StreamName>,
    /// How.
    pub damage: Damage,
}

impl Problem {
    /// A finding, for stores of one's own.
    #[must_use]
    pub fn new(seq: Seq, stream: Option<StreamName>, damage: Damage) -> Self {
        Self { seq, stream, damage }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seq, stream, damage } = self;
        match stream {
            Some(stream) => write!(f, "event {seq} ({stream}) {damage}"),
            None => write!(f, "event {seq} {damage}"),
        }
    }
}

impl std::error::Error for Problem {
    /// What stands behind the damage: its words are already in the problem's own.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.damage)
    }
}

impl Problem {
    pub(super) fn at(seq: u64, damage: Damage) -> Self {
        Self { seq: Seq(seq), stream: None, damage }
    }

    pub(super) fn of(self, stream: &StreamName) -> Self {
        Self { stream: Some(stream.clone()), ..self }
    }
}

/// What stands behind an error of a store: for SQLite, its own error.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call on a log has no answer. Nothing was written, whatever it says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Another process kept it locked for longer than this one waits, or an import goes on that was begun in this one.
    #[error("the log is locked by another process or an import; try again")]
    Busy(#[source] Cause),
    /// The log changed under a reader that cannot lock it, after events were already handed out.
    #[error("the log changed while it was read; try again")]
    Changed,
    /// No space is left on the device, or the log may not grow.
    #[error("no space is left for the log")]
    DiskFull(#[source] Cause),
    /// This user or this medium cannot write it.
    #[error("the log cannot be written here")]
    ReadOnly(#[source] Cause),
    /// SQLite finds its own structures damaged.
    #[error("the log's file is damaged; restore it from a copy or an export")]
    Corrupt(#[source] Cause),
    /// An event, or a row beside the events, does not hold.
    #[error("the log does not hold; run `verify`, and restore it from a copy or an export")]
    Damaged(#[source] Box<Problem>),
    /// The machine failed.
    #[error("the log could not be read or written")]
    Machine(#[source] Cause),
    /// The result of an earlier commit through this handle is not known: what it knows of the log may be wrong.
    #[error("an earlier commit through this handle failed while it was made durable; open the log again")]
    Poisoned,
    /// Another file lies where the log or its WAL was, or none: what is written to the old one, nobody reads.
    #[error(
        "the log's file was removed or replaced while it was open; close what this process has open of it, and open it again"
    )]
    Replaced,
    /// The handle was opened by another process and came here by a fork: its locks did not.
    #[error("this handle was opened by another process, before a fork; open the log in this one")]
    Forked,
    /// The machine failed beside SQLite.
    #[error("the log could not be {verb}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl LogError {
    /// What kind of error it is.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Busy(_) | Self::Changed => Class::Busy,
            Self::DiskFull(_) => Class::DiskFull,
            Self::ReadOnly(_) => Class::ReadOnly,
            Self::Corrupt(_) | Self::Damaged(_) => Class::Corrupt,
            Self::Io { source, .. } => class_of(source),
            Self::Forked => Class::Refused,
            Self::Machine(_) | Self::Poisoned | Self::Replaced => Class::Io,
        }
    }

    /// The event that the error is about, where it is about one.
    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Damaged(problem) => Some(problem.seq),
            Self::Busy(_)
            | Self::Changed
            | Self::DiskFull(_)
            | Self::ReadOnly(_)
            | Self::Corrupt(_)
            | Self::Machine(_)
            | Self::Poisoned
            | Self::Replaced
            | Self::Forked
            | Self::Io { .. } => None,
        }
    }
}

/// What kind of error one of the machine's own is.
pub(super) fn class_of(error: &std::io::Error) -> Class {
    let is_full = matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
    if is_full { Class::DiskFull } else { Class::Io }
}

impl From<Problem> for LogError {
    fn from(problem: Problem) -> Self {
        Self::Damaged(Box::new(problem))
    }
}

/// An anchor of a log without events that no log ever had.
pub(super) fn not_the_beginning(anchor: Anchor) -> Option<Problem> {
    let is_none = anchor.seq == Seq(0) && anchor.chain != Digest::GENESIS;
    is_none.then(|| Problem::at(0, Damage::OtherHistory { anchor }))
}

/// A stream's version and the key of a request, as messages name them.
pub(super) fn known_version(stream: &str, version: u64) -> String {
    format!("version {} of {stream}", Version(version))
}

/// The key of a receipt as far as it is readable.
pub(super) fn readable_key(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec())
        .ok()
        .and_then(|text| IdempotencyKey::parse(text).ok())
        .map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), |key| key.to_string())
}
