//! What a probe found: the cases with their evidence.

use serde::{Deserialize, Serialize};

use super::cases::Case;
use super::judge::{Fate, Word};
use crate::provider::claude::Table;

/// How a case went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The agent did what the rules say.
    Agree,
    /// It did something else.
    Differ,
    /// The rules say that they cannot tell.
    Undecided,
    /// It could not be run here.
    CouldNotRun,
}

/// One case and its evidence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name; the part before the first dot is its group.
    pub name: String,
    /// How it went.
    pub status: Status,
    /// What the rules foretold, in one line.
    pub foretold: String,
    /// What was seen, in one line.
    pub seen: String,
    /// Whether "a file that is not empty is there" would have been right.
    pub naive_right: Option<bool>,
    /// Whether the agent sent an earlier turn.
    pub continued: bool,
    /// The evidence, as JSON: both outcomes, the command line, how it ended, what changed on disk.
    pub evidence: serde_json::Value,
}

/// What a probe found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The agent's own word for its version.
    pub version: String,
    /// The version whose rules were judged.
    pub rules: String,
    /// Whether those rules were observed on this very version.
    pub observed: bool,
    /// The table that was learnt.
    pub learnt: Option<Table>,
    /// The cases, in order.
    pub rows: Vec<Row>,
}

impl Report {
    /// How many cases went so.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.rows.iter().filter(|row| row.status == status).count()
    }

    /// On how many of the cases where it says anything the naive check was right, and how many those are.
    #[must_use]
    pub fn naive(&self) -> (usize, usize) {
        let said: Vec<bool> = self.rows.iter().filter_map(|row| row.naive_right).collect();
        (said.iter().filter(|right| **right).count(), said.len())
    }
}

/// The status and the evidence, before there is a row.
pub(super) struct Judged {
    pub(super) status: Status,
    pub(super) foretold: Fate,
    pub(super) seen: Fate,
    pub(super) naive_right: Option<bool>,
    pub(super) evidence: serde_json::Value,
}

impl Row {
    pub(super) fn of(case: &Case, judged: Judged) -> Self {
        Self {
            name: case.name.clone(),
            status: judged.status,
            foretold: judged.foretold.line(),
            seen: judged.seen.line(),
            naive_right: judged.naive_right,
            continued: judged.seen.word == Word::Continues,
            evidence: judged.evidence,
        }
    }

    pub(super) fn without(case: &Case, why: &str) -> Self {
        Self {
            name: case.name.clone(),
            status: Status::CouldNotRun,
            foretold: String::new(),
            seen: why.to_owned(),
            naive_right: None,
            continued: false,
            evidence: serde_json::Value::Null,
        }
    }
}
