//! What went wrong, in one sentence with a next step, and the exit code that says which kind it is.

use serde_json::json;

/// The exit codes of the command.
pub(super) mod exit {
    pub(in crate::cli) const OK: u8 = 0;
    pub(in crate::cli) const ERROR: u8 = 1;
    pub(in crate::cli) const USAGE: u8 = 2;
    pub(in crate::cli) const RECOVER: u8 = 10;
    pub(in crate::cli) const FRESH: u8 = 11;
    pub(in crate::cli) const BUSY: u8 = 12;
    pub(in crate::cli) const UNKNOWN: u8 = 14;
    pub(in crate::cli) const CORRUPT: u8 = 65;
    pub(in crate::cli) const LOG_BUSY: u8 = 75;
}

/// An error as the command reports it.
#[derive(Debug)]
pub(super) struct Failure {
    /// A stable word for machines.
    pub(super) class: &'static str,
    /// The exit code.
    pub(super) code: u8,
    /// The chain of causes, outermost first, each once.
    pub(super) message: String,
    /// What to do next.
    pub(super) next: Option<String>,
}

impl Failure {
    pub(super) fn new(class: &'static str, code: u8, message: impl Into<String>) -> Self {
        Self { class, code, message: message.into(), next: None }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new("usage", exit::USAGE, message).next("see `throughline --help`")
    }

    pub(super) fn of(class: &'static str, code: u8, error: &dyn std::error::Error) -> Self {
        Self::new(class, code, chain_of(error))
    }

    pub(super) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The sentence for stderr.
    pub(super) fn sentence(&self) -> String {
        match &self.next {
            Some(next) => format!("{}; {next}", self.message),
            None => self.message.clone(),
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        json!({"schema": 1, "error": {"class": self.class, "code": self.code, "message": self.message, "next": self.next}})
    }
}

/// An error and its sources, joined; a source that its parent repeats is not said twice.
pub(super) fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text.replace('\n', " ")
}
