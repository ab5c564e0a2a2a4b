//! Hand-written lines become events: an append that knows no lease.

use super::breach::{Breach, Make, Rule, refused, rule, same};
use super::say::{Desk, all, blank, import, labels};
use crate::event::DecodeError;
use crate::log::{ImportError, LineError, Mode, Recorded};

pub(super) const RULES: &[Rule] = &[
    rule!(hand_written_lines_go_on, "Hand-written lines are taken by a log that has events, after those."),
    rule!(the_fold_completes_a_line, "What a hand-written line leaves out and the fold knows is filled in."),
    rule!(a_hand_written_line_knows_no_fence, "The fence is not asked about a hand-written line."),
    rule!(a_hand_written_body_becomes_canonical, "The body of a hand-written line is stored in its canonical bytes."),
    rule!(
        a_line_without_a_time_gets_one,
        "A hand-written line without a time gets the import's, another keeps its own."
    ),
    rule!(an_unknown_kind_is_a_stop, "A line of a kind that this version does not know is refused by its name."),
    rule!(a_newer_schema_is_a_stop, "A line of a newer schema is refused by its number."),
    rule!(a_key_twice_is_refused, "A body in which a key stands twice is refused."),
    rule!(a_torn_line_is_refused, "A text whose last line was torn is refused."),
    rule!(an_illegal_hand_written_line_is_refused, "A hand-written event that the fold refuses is refused, and named."),
    rule!(one_bad_line_keeps_all_out, "Of hand-written lines with a bad one, none is stored."),
];

fn line(kind: &str, body: &str) -> String {
    format!("{{\"stream\":\"agent/a\",\"kind\":\"{kind}\",\"body\":{body}}}\n")
}

fn good() -> String {
    line("fresh_intended", r#"{"pane":"p"}"#)
}

/// What comes of lines in an empty log.
fn written(make: &Make<'_>, text: &str) -> Result<Vec<Recorded>, Breach> {
    let desk = Desk::new(make)?;
    desk.import(text, Mode::Unverified)?;
    Ok(all(desk.records())?)
}

fn bodies(events: &[Recorded]) -> Vec<String> {
    events.iter().map(|event| String::from_utf8_lossy(&event.body).into_owned()).collect()
}

fn hand_written_lines_go_on(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    desk.import(&good(), Mode::Unverified)?;
    same("the events", &labels(&all(desk.records())?), &vec![String::new(), "p".into()])
}

fn the_fold_completes_a_line(make: &Make<'_>) -> Result<(), Breach> {
    let text = line("segment_ended", r#"{"epoch":3,"reason":"x","segment":"s"}"#)
        + &line("segment_ended", r#"{"reason":"x","segment":"s"}"#);
    same("the epochs", &labels(&written(make, &text)?), &vec!["3".into(), "3".into()])
}

fn a_hand_written_line_knows_no_fence(make: &Make<'_>) -> Result<(), Breach> {
    let of = |epoch: u64| line("segment_ended", &format!(r#"{{"epoch":{epoch},"reason":"x","segment":"s"}}"#));
    same("the epochs", &labels(&written(make, &(of(5) + &of(4)))?), &vec!["5".into(), "4".into()])
}

fn a_hand_written_body_becomes_canonical(make: &Make<'_>) -> Result<(), Breach> {
    let text = line("segment_ended", r#"{ "segment" : "s", "reason" : "\u0065xited", "epoch" : 3 }"#);
    let expected = r#"{"epoch":3,"reason":"exited","segment":"s"}"#;
    same("the body", &bodies(&written(make, &text)?), &vec![expected.to_owned()])
}

fn a_line_without_a_time_gets_one(make: &Make<'_>) -> Result<(), Breach> {
    let text = good() + &good().replace("\"kind\"", "\"at_ms\":42,\"kind\"");
    let times: Vec<i64> = written(make, &text)?.iter().map(|event| event.at_ms).collect();
    same("the times", &times, &vec![7, 42])
}

fn an_unknown_kind_is_a_stop(make: &Make<'_>) -> Result<(), Breach> {
    let result = Desk::new(make)?.import(&(line("teleported", "{}") + &good()), Mode::Unverified);
    refused!(
        "an unknown kind",
        &result,
        ImportError::Line { source: LineError::Undecodable(DecodeError::UnknownKind { kind, .. }), .. }
            if kind == "teleported"
    )
}

fn a_newer_schema_is_a_stop(make: &Make<'_>) -> Result<(), Breach> {
    let text = good().replace("\"kind\"", "\"schema\":9,\"kind\"");
    let result = Desk::new(make)?.import(&text, Mode::Unverified);
    refused!(
        "a newer schema",
        &result,
        ImportError::Line { source: LineError::Undecodable(DecodeError::NewerSchema { schema: 9, .. }), .. }
    )
}

fn a_key_twice_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    let result = Desk::new(make)?.import(&line("fresh_intended", r#"{"pane":"p","pane":"q"}"#), Mode::Unverified);
    refused!("a key that stands twice", result, ImportError::Line { source: LineError::Json(_), .. })
}

fn a_torn_line_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    let text = good() + &good();
    let result = Desk::new(make)?.import(&text[..text.len() - 9], Mode::Unverified);
    refused!("a torn line", result, ImportError::Line { line: 2, source: LineError::Json(_), .. })
}

fn an_illegal_hand_written_line_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    let text = line("fresh_intended", r#"{"pane":"never"}"#) + &good();
    let result = Desk::new(make)?.import(&text, Mode::Unverified);
    refused!("an illegal event", result, ImportError::Line { line: 1, source: LineError::Illegal(_), .. })
}

fn one_bad_line_keeps_all_out(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let text = good() + &good() + "[]\n";
    let result = import(&*desk.log, &text, Mode::Unverified);
    refused!("a line that is no event", result, ImportError::Line { source: LineError::Json(_), .. })?;
    same("how many events there are", &all(desk.records())?.len(), &0)
}
