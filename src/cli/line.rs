//! One event as people and scripts read it: a line with stable columns, or an object.
//!
//! The coloured line is the plain one with escapes around whole columns. What an event says never reaches a terminal raw.

use serde_json::{Value, json};

use crate::cli::output::{Output, visible};
use crate::event::{AgentEvent, AuditEvent, Event};
use crate::log::Recorded;

/// The event as it was asked for: a line, or with `--json` an object on a line.
pub(super) fn printed(event: &Recorded, output: &Output) -> String {
    if output.json { format!("{}\n", as_json(event)) } else { line(event, output) }
}

/// Seq, time, stream, version, kind, what it says.
pub(super) fn line(event: &Recorded, output: &Output) -> String {
    let stream = event.stream.to_string();
    // Names of nearly one length stay in line: 20 columns, else steps of eight.
    let wide = 20 + stream.len().saturating_sub(20).next_multiple_of(8);
    let seq = output.paint("2", &format!("{:>7}", event.seq.0));
    let time = output.paint("2", &format!("{:<20}", time(event.at_ms)));
    let version = output.paint("2", &format!("{:>5}", event.version.0));
    let kind = format!("{:<19}", event.kind);
    let kind = colour_of(&event.event).map_or_else(|| kind.clone(), |colour| output.paint(colour, &kind));
    let words = said(event);
    format!("{seq} {time} {stream:<wide$} {version} {kind} {words}").trim_end().to_owned() + "\n"
}

/// The event with every field.
pub(super) fn as_json(event: &Recorded) -> Value {
    json!({
        "seq": event.seq, "stream": &*event.stream, "version": event.version, "at_ms": event.at_ms, "kind": event.kind,
        "schema": event.schema, "body": body(event), "record": event.record, "chain": event.chain,
        "stream_chain": event.stream_chain,
    })
}

/// What the event's bytes say.
pub(super) fn body(event: &Recorded) -> Value {
    serde_json::from_slice(&event.body).unwrap_or(Value::Null)
}

/// A text as one word: in quotes where it would not be one, so that it cannot pass for the next field.
pub(super) fn word(text: &str) -> String {
    let is_word = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"');
    if is_word { text.into() } else { Value::from(text).to_string() }
}

/// The beginning of a digest; any other text as a word.
pub(super) fn short(key: &str, text: &str) -> String {
    let is_digest = matches!(key, "snapshot" | "tail" | "whole") && text.len() == 64 && text.is_ascii();
    if is_digest { format!("{}…", &text[..12]) } else { word(text) }
}

fn said(event: &Recorded) -> String {
    let mut words = Vec::new();
    for (key, value) in body(event).as_object().into_iter().flatten() {
        if is_usual(key, value) {
            continue;
        }
        words.push(match value {
            Value::String(text) => format!("{key}={}", short(key, text)),
            Value::Object(fields) => format!("{key}={}", inner(fields)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => format!("{key}={value}"),
        });
    }
    visible(&words.join(" "))
}

/// What goes without saying: the defaults of hand-written events.
fn is_usual(key: &str, value: &Value) -> bool {
    match key {
        "epoch" => value == 0,
        "means" => value == "in_place",
        "rung" => value == "native",
        _ => false,
    }
}

/// What tells an object inside a body from others of its kind.
fn inner(fields: &serde_json::Map<String, Value>) -> String {
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let number = |key: &str| fields.get(key).and_then(Value::as_u64);
    match (text("session"), number("bytes"), text("host").zip(number("pid"))) {
        (Some(session), _, _) => word(session),
        (None, Some(bytes), _) => format!("{bytes}B"),
        (None, None, Some((host, pid))) => format!("{pid}@{}", word(host)),
        (None, None, None) => "{…}".into(),
    }
}

/// What an event means to whoever looks over many: green moves the head, red is a refusal or a failure, yellow is somebody
/// else's doing or a break in the conversation.
fn colour_of(event: &Event) -> Option<&'static str> {
    match event {
        Event::Agent(event) => match event {
            AgentEvent::ChainHeadMoved(_) => Some("1;32"),
            AgentEvent::ResumeRejected(_) | AgentEvent::LaunchFailed(_) | AgentEvent::RelocationFailed(_) => {
                Some("1;31")
            }
            AgentEvent::GrowthSeen(_) | AgentEvent::FreshIntended(_) => Some("33"),
            AgentEvent::AgentDeclared(_)
            | AgentEvent::LeaseTaken(_)
            | AgentEvent::LeaseEnded(_)
            | AgentEvent::Spawned(_)
            | AgentEvent::Launched(_)
            | AgentEvent::SessionReported(_)
            | AgentEvent::ForkReported(_)
            | AgentEvent::ResumeConfirmed(_)
            | AgentEvent::TurnConfirmed(_)
            | AgentEvent::SegmentEnded(_)
            | AgentEvent::SessionBound(_)
            | AgentEvent::RelocationIntended(_)
            | AgentEvent::Relocated(_)
            | AgentEvent::SettleIntended(_)
            | AgentEvent::CopyRemoved(_)
            | AgentEvent::CopyUnmarked(_)
            | AgentEvent::SweepIntended(_)
            | AgentEvent::Swept(_)
            | AgentEvent::RetentionExtended(_) => None,
        },
        Event::Audit(AuditEvent::OutcomeObserved(body)) => (body.expected != body.actual).then_some("1;31"),
        Event::Audit(AuditEvent::VerdictGiven(_)) | Event::Hook(_) => None,
    }
}

/// A writer's clock, in UTC to the second. For people: nothing is decided by it.
fn time(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => format!("{at_ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_pass_for_the_next_field() {
        for (text, expected) in [
            ("plain", "plain"),
            ("", r#""""#),
            ("a b=c", r#""a b=c""#),
            ("say \"x\"", r#""say \"x\"""#),
            ("a\u{1b}[2J", r#""a\u001b[2J""#),
            ("/w/ü", "/w/ü"),
        ] {
            assert_eq!(word(text), expected);
        }
    }

    #[test]
    fn only_digests_are_cut() {
        let digest = "ab".repeat(32);
        for (key, text, expected) in
            [("tail", digest.as_str(), "abababababab…"), ("session", &digest, &digest), ("tail", "short", "short")]
        {
            assert_eq!(short(key, text), expected);
        }
    }

    #[test]
    fn a_time_is_one_column_whatever_the_clock_said() {
        for (at_ms, expected) in [(0, "1970-01-01T00:00:00Z"), (i64::MAX, "9223372036854775807ms")] {
            assert_eq!(time(at_ms), expected);
        }
    }
}
