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
    pub(in crate::cli) const DRIFT: u8 = 15;
    #[cfg(any(feature = "probe", feature = "sim"))]
    pub(in crate::cli) const FINDINGS: u8 = 20;
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

    /// The causes joined; the first hint that one of them gives is the next step.
    pub(super) fn of(class: &'static str, code: u8, error: &(dyn std::error::Error + 'static)) -> Self {
        let (message, next) = told(error);
        Self { class, code, message, next }
    }

    /// The next step, where no cause has named one.
    pub(super) fn or_next(mut self, next: &str) -> Self {
        self.next.get_or_insert_with(|| next.into());
        self
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
pub(super) fn chain_of(error: &(dyn std::error::Error + 'static)) -> String {
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

/// What went wrong and what to do about it: each cause's words up to its `; `, and the first that stand behind one.
fn told(error: &(dyn std::error::Error + 'static)) -> (String, Option<String>) {
    let mut next = None;
    let mut words: Vec<String> = Vec::new();
    for cause in std::iter::successors(Some(error), |cause| cause.source()) {
        let mut text = cause.to_string().replace('\n', " ");
        if cause.is::<serde_json::Error>()
            && let Some(at) = text.rfind(" at line ")
        {
            // Its own line is always the one line that it was given.
            let column = text.rfind(" column ").map(|at| text[at + 8..].to_owned());
            text.truncate(at);
            text.extend(column.map(|column| format!(" (column {column})")));
        }
        let is_sqlite = cause.is::<rusqlite::Error>();
        let (head, hint) = match text.split_once("; ") {
            Some((head, hint)) => (head.to_owned(), Some(hint.to_owned())),
            None => (text, None),
        };
        next = next.or(hint);
        if words.last().is_none_or(|last| !last.ends_with(&head)) {
            words.push(head);
        }
        if is_sqlite {
            // It says itself again, with its number.
            break;
        }
    }
    (words.join(": "), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Cause(&'static str, #[source] Option<Box<Cause>>);

    #[test]
    fn causes_are_said_once_and_the_first_hint_is_the_next_step() {
        let inner = Cause("the disk is full; free some", None);
        let outer = Cause("it was not written", Some(Box::new(Cause("the disk is full", Some(Box::new(inner))))));
        let failure = Failure::of("io", exit::ERROR, &outer);
        assert_eq!(failure.sentence(), "it was not written: the disk is full; free some");
        assert_eq!(failure.or_next("wait").next.as_deref(), Some("free some"));
    }
}
