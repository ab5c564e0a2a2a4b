//! `log` and `show`: what happened, for people.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Value, json};

use crate::chain::fold::State;
use crate::cli::args::{History, Show};
use crate::cli::error::{Failure, exit};
use crate::cli::output::{Output, visible};
use crate::cli::store;
use crate::id::{AgentId, Seq, StreamName};
use crate::log::{Recorded, Records};

/// Lists events.
pub(super) fn log(args: &History, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let uid = args.agent.as_deref().map(agent_id).transpose()?;
    let reader = store::reader(&store::path(log)?)?;
    let wanted = |event: &Recorded| {
        uid.as_ref().is_none_or(|uid| event.stream.agent() == uid)
            && args.kind.as_ref().is_none_or(|kind| event.kind == kind)
    };
    let print = |event: &Recorded| if output.json { output.value(&as_json(event)) } else { output.data(&line(event)) };
    if args.most.is_none() && !args.reversed {
        // In order and without a bound: printed as it is read, with constant memory.
        let mut failed = None;
        reader
            .events(Seq(1), &mut |event| {
                failed = if wanted(&event) { print(&event).err() } else { None };
                if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .map_err(|error| store::of_log(&error))?;
        return failed.map_or(Ok(exit::OK), Err);
    }
    let most = args.most.unwrap_or(usize::MAX);
    let mut kept = VecDeque::new();
    reader
        .events(Seq(1), &mut |event| {
            if wanted(&event) {
                kept.push_back(event);
                if kept.len() > most {
                    kept.pop_front();
                }
            }
            ControlFlow::Continue(())
        })
        .map_err(|error| store::of_log(&error))?;
    if args.reversed {
        kept.iter().rev().try_for_each(print)?;
    } else {
        kept.iter().try_for_each(print)?;
    }
    Ok(exit::OK)
}

/// Shows one event with its digests, or an agent's fold.
pub(super) fn show(args: &Show, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let reader = store::reader(&store::path(log)?)?;
    if let Some(uid) = &args.agent {
        return agent(&*reader, &agent_id(uid)?, output);
    }
    let seq = Seq(args.seq.unwrap_or(0));
    let mut found = None;
    reader
        .events(seq, &mut |event| {
            found = (event.seq == seq).then_some(event);
            ControlFlow::Break(())
        })
        .map_err(|error| store::of_log(&error))?;
    let event = found.ok_or_else(|| {
        Failure::new("no_event", exit::ERROR, format!("the log has no event {seq}")).next("see `throughline log`")
    })?;
    if output.json {
        output.value(&as_json(&event))?;
        return Ok(exit::OK);
    }
    let mut text = line(&event);
    for (name, digest) in [("record", event.record), ("chain", event.chain), ("stream chain", event.stream_chain)] {
        let _ = writeln!(text, "  {name:<13}{digest}");
    }
    let _ = writeln!(text, "  schema       {}", event.schema);
    let body: Value = serde_json::from_slice(&event.body).unwrap_or(Value::Null);
    for row in serde_json::to_string_pretty(&body).unwrap_or_default().lines() {
        let _ = writeln!(text, "  {}", visible(row));
    }
    output.data(&text)?;
    Ok(exit::OK)
}

fn agent(records: &dyn Records<State>, uid: &AgentId, output: &Output) -> Result<u8, Failure> {
    let stream = StreamName::Agent(uid.clone());
    let (frontier, state) = records.state(&stream).map_err(|error| store::of_log(&error))?;
    if frontier.version.0 == 0 {
        let text = format!("the log knows no agent {uid}");
        return Err(Failure::new("no_agent", exit::ERROR, text).next("see `throughline log`"));
    }
    let value = json!({"schema": 1, "agent": uid, "frontier": frontier, "state": state.agent()});
    if output.json {
        output.value(&value)?;
    } else {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        output.data(&format!("{}\n", text.lines().map(visible).collect::<Vec<_>>().join("\n")))?;
    }
    Ok(exit::OK)
}

fn agent_id(text: &str) -> Result<AgentId, Failure> {
    AgentId::parse(text).map_err(|error| Failure::usage(error.to_string()))
}

/// All events as `log` prints them.
pub(super) fn lines(records: &dyn Records<State>) -> Result<String, Failure> {
    let mut text = String::new();
    records
        .events(Seq(1), &mut |event| {
            text.push_str(&line(&event));
            ControlFlow::Continue(())
        })
        .map_err(|error| store::of_log(&error))?;
    Ok(text)
}

/// One event as a line with stable columns: seq, time, stream, version, kind, what it says.
fn line(event: &Recorded) -> String {
    let body: Value = serde_json::from_slice(&event.body).unwrap_or(Value::Null);
    let mut words = Vec::new();
    for (key, value) in body.as_object().into_iter().flatten() {
        if key == "epoch" && value == 0 {
            continue;
        }
        words.push(match value {
            Value::String(text) => format!("{key}={text}"),
            Value::Object(fields) => match fields.get("session").and_then(Value::as_str) {
                Some(session) => format!("{key}={session}"),
                None => format!("{key}={{…}}"),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => format!("{key}={value}"),
        });
    }
    let (stream, time) = (event.stream.to_string(), time(event.at_ms));
    let words = visible(&words.join(" "));
    format!("{:>6} {time} {stream:<20} {:>4} {:<19} {words}\n", event.seq.0, event.version.0, event.kind)
}

/// A writer's clock, in UTC to the second. For people: nothing is decided by it.
fn time(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => format!("{at_ms} ms"),
    }
}

fn as_json(event: &Recorded) -> Value {
    json!({
        "seq": event.seq, "stream": &*event.stream, "version": event.version, "at_ms": event.at_ms, "kind": event.kind,
        "schema": event.schema, "body": serde_json::from_slice::<Value>(&event.body).unwrap_or(Value::Null),
        "record": event.record, "chain": event.chain, "stream_chain": event.stream_chain,
    })
}
