//! What Claude Code says of its session while it runs: the lines of `--output-format stream-json` and `json`, and one
//! sentence on stderr. Texts of the conversation are passed over.
//!
//! Observed: every frame carries `session_id`, also an early one that merely echoes the id of a resume that is about to
//! fail; a refusal is a sentence on stderr, and with `stream-json` also a failed `result` frame with that sentence in
//! `errors`; only a `result` frame that is no error proves anything.

use serde::Deserialize;

use crate::provider::rule::{Output, Report};

const FORMAT: &str = "--output-format";
const REFUSAL: &str = "No conversation found with session ID";
/// A line that is longer is a message of the conversation: frames that say something of the session are short, but for
/// a `result`, which repeats the last answer.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
const WHY_CHARS_MAX: usize = 200;

/// The fields of a frame that say something of the session.
#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    subtype: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
}

/// Whether a process with these arguments says on stdout what becomes of its session.
pub(super) fn tells(argv: &[String]) -> bool {
    let format =
        argv.iter().position(|argument| argument == FORMAT).and_then(|at| argv.get(at + 1)).map(String::as_str);
    let joined = argv.iter().find_map(|argument| argument.strip_prefix(FORMAT)?.strip_prefix('='));
    matches!(format.or(joined), Some("stream-json" | "json"))
}

/// What a line says.
pub(super) fn report(line: &[u8], from: Output) -> Option<Report> {
    match from {
        Output::Stderr => refusal(&String::from_utf8_lossy(line)),
        Output::Stdout if line.len() > LINE_BYTES_MAX => None,
        Output::Stdout => frame(&serde_json::from_slice(line).ok()?),
    }
}

fn frame(frame: &Frame) -> Option<Report> {
    if frame.kind != "result" {
        return Some(Report::Named { session: frame.session_id.clone()? });
    }
    if let Some(refused) = frame.errors.iter().find_map(|error| refusal(error)) {
        return Some(refused);
    }
    if frame.is_error {
        return Some(Report::Failed { why: frame.subtype.clone().unwrap_or_else(|| "an error".into()) });
    }
    Some(Report::Turn { session: frame.session_id.clone()? })
}

fn refusal(text: &str) -> Option<Report> {
    let at = text.find(REFUSAL)?;
    Some(Report::Refused { why: text[at..].trim_end().chars().take(WHY_CHARS_MAX).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<Report> {
        report(line.as_bytes(), Output::Stdout)
    }

    #[test]
    fn only_a_result_that_is_no_error_is_a_turn() {
        let session = || "S".to_owned();
        for (line, expected) in [
            (r#"{"type":"system","subtype":"init","session_id":"S"}"#, Some(Report::Named { session: session() })),
            (
                r#"{"type":"assistant","message":{"content":"hi"},"session_id":"S"}"#,
                Some(Report::Named { session: session() }),
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":false,"result":"hi","session_id":"S"}"#,
                Some(Report::Turn { session: session() }),
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"result":"401","session_id":"S"}"#,
                Some(Report::Failed { why: "success".into() }),
            ),
            (
                r#"{"type":"result","is_error":true,"session_id":"S","errors":["other"]}"#,
                Some(Report::Failed { why: "an error".into() }),
            ),
            (r#"{"type":"result","is_error":false}"#, None),
            (r#"{"type":"stream_event"}"#, None),
            ("plain text", None),
            ("7", None),
            ("", None),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }

    #[test]
    fn a_refusal_is_known_by_its_sentence_on_either_output() {
        let refused = |why: &str| Some(Report::Refused { why: why.into() });
        let sentence = "No conversation found with session ID: S";
        assert_eq!(report(format!("{sentence}\n").as_bytes(), Output::Stderr), refused(sentence));
        let line = format!(r#"{{"type":"result","is_error":true,"session_id":"S","errors":["{sentence}"]}}"#);
        assert_eq!(said(&line), refused(sentence));
        assert_eq!(report(b"Warning: Resume transcript (session S) has 4 records", Output::Stderr), None);
        // What the model says is no refusal.
        assert_eq!(said(sentence), None);
    }

    #[test]
    fn a_process_tells_only_in_a_format_that_carries_the_session() {
        for (argv, expected) in [
            ("claude -p x --output-format stream-json", true),
            ("claude -p x --output-format=json", true),
            ("claude -p x --output-format text", false),
            ("claude -p x --output-format", false),
            ("claude", false),
        ] {
            let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
            assert_eq!(tells(&argv), expected, "{argv:?}");
        }
    }
}
