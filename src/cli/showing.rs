//! `show`: one event and what it changed, or what the log knows of an agent, now or at an earlier event.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Value, json};

use crate::chain::fold::State;
use crate::cli::args::Show;
use crate::cli::changes;
use crate::cli::error::{Failure, exit};
use crate::cli::line::{as_json, body, line};
use crate::cli::listing::place;
use crate::cli::output::{Output, visible};
use crate::cli::store;
use crate::id::{AgentId, Frontier, Seq, StreamName, Version};
use crate::log::{Fold as _, LogError, Recorded, Records};

/// Shows one event with its digests and what it changed, or an agent's fold.
pub(super) fn show(args: &Show, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let uid = args.agent.as_deref().map(AgentId::parse).transpose();
    let uid = uid.map_err(|error| Failure::usage(error.to_string()))?;
    let reader = store::reader(&store::path(log)?)?;
    match uid {
        Some(uid) => agent(&*reader, &uid, args.at.map(Seq), output),
        None => event(&*reader, Seq(args.seq.unwrap_or(0)), output),
    }
}

fn event(records: &dyn Records<State>, seq: Seq, output: &Output) -> Result<u8, Failure> {
    let event = event_at(records, seq)?;
    let (before, after) = around(records, &event).map_err(|error| store::of_log(&error))?;
    let (before, after) = (state_json(before)?, state_json(after)?);
    let changes = changes::between(&before, &after);
    if output.json {
        let mut value = as_json(&event);
        value["before"] = before;
        value["after"] = after;
        value["changed"] = changes.iter().map(changes::Change::to_json).collect();
        output.value(&value)?;
        return Ok(exit::OK);
    }
    let mut text = line(&event, output);
    for (name, digest) in [("record", event.record), ("chain", event.chain), ("stream chain", event.stream_chain)] {
        let _ = writeln!(text, "  {name:<13}{digest}");
    }
    let _ = writeln!(text, "  schema       {}", event.schema);
    for row in serde_json::to_string_pretty(&body(&event)).unwrap_or_default().lines() {
        let _ = writeln!(text, "  {}", visible(row));
    }
    match (&*event.stream, changes.is_empty()) {
        (StreamName::Audit(_), _) => text.push_str("  changed      nothing: it is for the record\n"),
        (_, true) => text.push_str("  changed      nothing\n"),
        (_, false) => text.push_str("  changed\n"),
    }
    for change in changes {
        let _ = writeln!(text, "    {}", visible(&change.line()));
    }
    output.data(&text)?;
    Ok(exit::OK)
}

/// The event at a place.
pub(super) fn event_at(records: &dyn Records<State>, seq: Seq) -> Result<Recorded, Failure> {
    let end = records.anchor().map_err(|error| store::of_log(&error))?.seq;
    let seq = place(seq, end)?;
    let mut found = None;
    records
        .events(seq, &mut |event| {
            found = Some(event);
            ControlFlow::Break(())
        })
        .map_err(|error| store::of_log(&error))?;
    found.ok_or_else(|| store::of_log(&LogError::Changed))
}

/// The state of the event's stream before it and after it. Only that stream is read.
fn around(records: &dyn Records<State>, event: &Recorded) -> Result<(State, State), LogError> {
    let mut state = State::empty(&event.stream);
    let mut failed = None;
    if event.version > Version(1) {
        records.events_of(&event.stream, Version(1), &mut |earlier| {
            failed = earlier.fold_into(&mut state).err();
            let is_last = earlier.version.next() >= event.version;
            if is_last || failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    failed.map_or(Ok(()), Err)?;
    let before = state.clone();
    event.fold_into(&mut state)?;
    Ok((before, state))
}

/// A state as JSON: an agent's fold as it is, a hook's last announcement, nothing of an audit stream.
fn state_json(state: State) -> Result<Value, Failure> {
    match state {
        State::Agent(state) => serde_json::to_value(state).map_err(|error| Failure::of("json", exit::ERROR, &error)),
        State::Hook(last) => Ok(json!({"last": last})),
        State::Audit => Ok(Value::Null),
    }
}

fn agent(records: &dyn Records<State>, uid: &AgentId, at: Option<Seq>, output: &Output) -> Result<u8, Failure> {
    let stream = StreamName::Agent(uid.clone());
    let (frontier, state) = match at {
        None => records.state(&stream).map_err(|error| store::of_log(&error))?,
        Some(at) => {
            let end = records.anchor().map_err(|error| store::of_log(&error))?.seq;
            let at = place(at, end)?;
            state_at(records, &stream, at).map_err(|error| store::of_log(&error))?
        }
    };
    if frontier.version.0 == 0 {
        let when = at.map(|at| format!(" at event {at}")).unwrap_or_default();
        let text = format!("the log knows no agent {uid}{when}");
        return Err(Failure::new("no_agent", exit::ERROR, text).next("see `throughline log`"));
    }
    let mut value = json!({"schema": 1, "agent": uid, "frontier": frontier, "state": state.agent()});
    if let Some(at) = at {
        value["at"] = json!(at);
    }
    if output.json {
        output.value(&value)?;
    } else {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        output.data(&format!("{}\n", text.lines().map(visible).collect::<Vec<_>>().join("\n")))?;
    }
    Ok(exit::OK)
}

/// What a stream's events up to a place amount to.
fn state_at(records: &dyn Records<State>, stream: &StreamName, at: Seq) -> Result<(Frontier, State), LogError> {
    let (mut frontier, mut state) = (Frontier::empty(stream.clone()), State::empty(stream));
    let mut failed = None;
    records.events_of(stream, Version(1), &mut |event| {
        if event.seq > at {
            return ControlFlow::Break(());
        }
        failed = event.fold_into(&mut state).err();
        (frontier.version, frontier.chain) = (event.version, event.stream_chain);
        if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    failed.map_or(Ok((frontier, state)), Err)
}
