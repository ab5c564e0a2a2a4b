//! What Claude Code tells its hooks, and which of it is kept: names, ids and paths, never what was said.

use serde::Deserialize;

use crate::event::HookAnnounced;
use crate::id::{PathText, SessionId};

/// Why a hook's input announces nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// It is not JSON, or lacks what every hook is told.
    #[error(
        "the hook's input is not what Claude Code gives its hooks; it must be an object with hook_event_name and session_id"
    )]
    Json(#[source] serde_json::Error),
    /// The hook's name is no name.
    #[error("the hook's name is not one; hook_event_name must match [A-Za-z0-9_.:-]{{1,64}}")]
    Name,
}

/// The fields that are read. The others (some hold text of the conversation) are passed over.
#[derive(Deserialize)]
struct Input {
    hook_event_name: String,
    session_id: SessionId,
    transcript_path: Option<PathText>,
    cwd: Option<PathText>,
    source: Option<serde_json::Value>,
    reason: Option<serde_json::Value>,
}

/// What a hook's input announces. A hook that this build does not know is taken as it is.
///
/// The cause is what Claude Code calls `source` (of a start) or `reason` (of an end), where it is a single word: for some
/// hooks the same field holds sentences, and sentences are not kept.
///
/// ```
/// # use throughline::provider::claude::hooks::announced;
/// let told = br#"{"hook_event_name": "SessionStart", "source": "clear", "session_id": "s1", "prompt": "secret"}"#;
/// let event = announced(told)?;
/// assert_eq!((event.hook.as_str(), event.cause.as_deref()), ("SessionStart", Some("clear")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`InputError`].
pub fn announced(input: &[u8]) -> Result<HookAnnounced, InputError> {
    let input: Input = serde_json::from_slice(input).map_err(InputError::Json)?;
    if !is_word(&input.hook_event_name) {
        return Err(InputError::Name);
    }
    let given = |path: Option<PathText>| path.filter(|path| !path.as_str().is_empty());
    let cause = input.source.or(input.reason);
    let cause = cause.as_ref().and_then(serde_json::Value::as_str).filter(|word| is_word(word));
    Ok(HookAnnounced {
        hook: input.hook_event_name,
        session: input.session_id,
        cause: cause.map(str::to_owned),
        transcript: given(input.transcript_path),
        cwd: given(input.cwd),
    })
}

fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_input_is_what_it_announces() -> Result<(), Box<dyn std::error::Error>> {
        let base = |more: serde_json::Value| {
            let mut value =
                json!({"session_id": "s", "hook_event_name": "Stop", "transcript_path": "/t.jsonl", "cwd": "/w"});
            for (key, field) in more.as_object().into_iter().flatten() {
                value[key] = field.clone();
            }
            value.to_string()
        };
        for (more, hook, cause, transcript) in [
            (json!({}), "Stop", None, Some("/t.jsonl")),
            (
                json!({"hook_event_name": "SessionStart", "source": "startup"}),
                "SessionStart",
                Some("startup"),
                Some("/t.jsonl"),
            ),
            (
                json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}),
                "SessionEnd",
                Some("prompt_input_exit"),
                Some("/t.jsonl"),
            ),
            (json!({"reason": "the user asked for something else"}), "Stop", None, Some("/t.jsonl")),
            (json!({"source": {"a": 1}, "hook_event_name": "Newer.Hook:2"}), "Newer.Hook:2", None, Some("/t.jsonl")),
            (json!({"transcript_path": "", "cwd": null}), "Stop", None, None),
            (json!({"transcript_path": null, "prompt": "p", "last_assistant_message": "m"}), "Stop", None, None),
        ] {
            let event = announced(base(more).as_bytes())?;
            assert_eq!(
                (event.hook.as_str(), event.cause.as_deref(), event.transcript.as_ref().map(PathText::as_str)),
                (hook, cause, transcript)
            );
        }
        Ok(())
    }

    #[test]
    fn what_no_hook_is_told_is_refused() {
        for input in [
            "",
            "{",
            "[]",
            "null",
            "{}",
            r#"{"session_id":"s"}"#,
            r#"{"hook_event_name":"Stop"}"#,
            r#"{"hook_event_name":"Stop","session_id":"a/b"}"#,
            r#"{"hook_event_name":"Stop","session_id":7}"#,
            r#"{"hook_event_name":"a sentence","session_id":"s"}"#,
            r#"{"hook_event_name":"","session_id":"s"}"#,
            r#"{"hook_event_name":"Stop","session_id":"s","cwd":"\u0000"}"#,
            "\u{0}\u{1}",
            "{\"session_id\":\"s\"",
        ] {
            assert!(announced(input.as_bytes()).is_err(), "{input}");
        }
    }

    #[test]
    fn texts_of_any_form_in_fields_that_nobody_reads_do_no_harm() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for field in [r#""\ud83d""#, &deep, "1e999", r#"{"session_id": 5}"#] {
            let input = format!(r#"{{"tool_input":{field},"hook_event_name":"Stop","session_id":"s"}}"#);
            assert!(announced(input.as_bytes()).is_ok(), "{}", &input[..60.min(input.len())]);
        }
        assert!(announced(b"{\"prompt\":\"\xff\",\"hook_event_name\":\"Stop\",\"session_id\":\"s\"}").is_ok());
    }
}
