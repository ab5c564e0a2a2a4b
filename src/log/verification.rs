//! What `verify` found, whatever the store.

use super::error::Problem;
use crate::id::{Anchor, Digest, Seq, StoreId};

/// Something about a log that makes no answer wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Note {
    /// A trigger that refuses changes is gone: something could have changed the log, or will.
    #[error("the trigger {name} is gone or altered: nothing stops another program from changing the log")]
    NoTrigger {
        /// Its name.
        name: String,
    },
    /// Something else was made in the log's file.
    #[error("{name} is none of the log's own tables and triggers")]
    Foreign {
        /// Its name.
        name: String,
    },
    /// Memos of another version of the rules: not used, and not compared.
    #[error("{count} memos are of other rules than this version's; they are not used")]
    OtherMemos {
        /// How many.
        count: u64,
    },
}

/// What `verify` found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Verification {
    /// The log's id.
    pub store: StoreId,
    /// The last event up to which everything holds.
    pub anchor: Anchor,
    /// How many events hold.
    pub events: u64,
    /// In how many streams.
    pub streams: u64,
    /// What does not hold. The first bad event first; nothing after it is judged.
    pub problems: Vec<Problem>,
    /// What is odd and harms no answer.
    pub notes: Vec<Note>,
}

impl Verification {
    /// Of a log in which everything holds; for stores of one's own, which add what does not.
    #[must_use]
    pub fn sound(store: StoreId, anchor: Anchor, streams: u64) -> Self {
        Self { store, anchor, events: anchor.seq.0, streams, problems: Vec::new(), notes: Vec::new() }
    }

    /// Nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Of a log in which nothing can be checked.
    pub(super) fn of_nothing(store: StoreId, problem: Problem) -> Self {
        let anchor = Anchor { seq: Seq(0), chain: Digest::GENESIS };
        Self { store, anchor, events: 0, streams: 0, problems: vec![problem], notes: Vec::new() }
    }
}
