//! Findings: what a person or a backend should know beside the verdict.

use serde::{Deserialize, Serialize};

/// Something noticed on the way to an answer. Never decides by itself: what decides is a verdict.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// A stable, machine-readable word, for example `torn_tail`.
    pub code: String,
    /// Which file, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where in the file, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// One line for people.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Finding {
    /// A finding with a code and one line for people.
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        Self { code: code.into(), path: None, offset: None, detail: detail.into(), next: None }
    }

    /// About this file.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        self.path = Some(path.into());
        self
    }

    /// At this offset.
    #[must_use]
    pub fn offset(mut self, offset: Option<u64>) -> Self {
        self.offset = offset;
        self
    }

    /// With a next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}
