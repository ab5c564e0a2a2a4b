//! `preflight` and `bind`: the question, asked of the real world.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::chain::observe::RealView;
use crate::chain::{Ledger, Receipt, Request, bind::bind as bind_events, ledger, place, preflight as decide};
use crate::cli::args::{Bind, Preflight};
use crate::cli::error::{Failure, exit};
use crate::cli::output::{Output, code_of};
use crate::cli::{question, store};
use crate::event::{Event, Location, VerdictGiven, VerdictWord};
use crate::id::{AgentId, SessionId, StreamName};
use crate::log::{Append, Entry, Expectation, Log as _};
use crate::world::{clock, process};

/// Asks, prints, and gives the verdict's exit code.
pub(super) fn preflight(args: &Preflight, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let started = Instant::now();
    let mut request = question::request(&args.question, output)?;
    request.continue_newest = args.continue_newest;
    let path = store::path(log)?;
    let ledger = ledger_for(&path, &request, output)?;
    let receipt = ask(&ledger, &request)?;
    let duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    // The verdict is the answer, whether or not it could be recorded.
    let unrecorded = if args.record { record(&path, args.writing.busy_ms, &receipt).err() } else { None };
    if output.json {
        let mut value = receipt.to_json().map_err(|error| Failure::of("json", exit::ERROR, &error))?;
        value["duration_us"] = json!(duration_us);
        if args.record {
            value["recorded"] = json!(unrecorded.is_none());
        }
        if output.verbose {
            value["observations"] = json!(receipt.snapshot());
        }
        output.value(&value)?;
    } else {
        output.data(&output.verdict(&receipt))?;
    }
    if let Some(failure) = unrecorded {
        output.say(&format!("throughline: the verdict was not recorded: {}", failure.sentence()));
        return Ok(failure.code);
    }
    Ok(if args.exit_zero { exit::OK } else { code_of(receipt.verdict().verdict) })
}

/// What the log knows for the request. A log is opened only where the request names somebody it could know.
fn ledger_for(path: &Path, request: &Request, output: &Output) -> Result<Ledger, Failure> {
    let asks = request.agent.is_some() || request.fork_of.is_some();
    if !asks {
        return Ok(Ledger::default());
    }
    match store::reader_if_there(path)? {
        Some(reader) => ledger::read(&*reader, request).map_err(|error| store::of_log(&error)),
        None => {
            output.say(&format!(
                "throughline: there is no log at {}; the answer rests on the disk alone",
                path.display()
            ));
            Ok(Ledger::default())
        }
    }
}

pub(super) fn ask(ledger: &Ledger, request: &Request) -> Result<Receipt, Failure> {
    let mut view = real_view()?;
    decide(ledger, request, &mut view).map_err(|error| Failure::of("snapshot", exit::ERROR, &error))
}

fn real_view() -> Result<RealView, Failure> {
    let own = process::own().map_err(|error| Failure::of("process", exit::ERROR, &error))?;
    Ok(RealView::new(clock::now_ms(), own))
}

fn record(path: &Path, busy_ms: u64, receipt: &Receipt) -> Result<(), Failure> {
    let Some(uid) = receipt.request().agent.clone() else { return Ok(()) };
    let verdict = receipt.verdict();
    let agent = StreamName::Agent(uid.clone());
    let version = receipt.basis().streams.iter().flatten().find(|frontier| frontier.stream == agent);
    let event = VerdictGiven {
        verdict: verdict.verdict,
        session: verdict.session_id.as_ref().and_then(|id| SessionId::parse(id.as_str()).ok()),
        route: verdict.route,
        snapshot: receipt.basis().snapshot,
        version: version.map_or(0, |frontier| frontier.version.0),
    };
    let entry = Entry { stream: StreamName::Audit(uid), expected: Expectation::Any, events: vec![event.into()] };
    let log = store::writer(path, busy_ms)?;
    log.append(&[entry], &Append::at(store::now_ms())).map_err(|error| store::of_append(&error))?;
    Ok(())
}

/// Makes an existing conversation an agent's.
pub(super) fn bind(args: &Bind, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let mut request = question::request(&args.question, output)?;
    let (Some(uid), Some(session)) = (request.agent.clone(), request.session.clone()) else {
        return Err(Failure::usage("bind needs --agent and --session"));
    };
    let path = store::path(log)?;
    let ledger = match store::reader_if_there(&path)? {
        Some(reader) => ledger::read(&*reader, &request).map_err(|error| store::of_log(&error))?,
        None => Ledger::default(),
    };
    refuse_live_driver(&ledger, &request)?;
    // The disk alone decides whether the session can be continued; the chain is what is about to be said.
    request.agent = None;
    request.fork_of = None;
    let receipt = ask(&Ledger::default(), &request)?;
    let to = location(&receipt, &request, &session)?;
    let agent = ledger.agent.clone().unwrap_or_default();
    if let Some(head) = &agent.head
        && head.at.session != to.session
        && !args.replace
    {
        let text = format!("agent {uid}'s conversation is session {}", head.at.session);
        return Err(Failure::new("bound", exit::ERROR, text).next("give --replace to move it"));
    }
    let own = process::own().map_err(|error| Failure::of("process", exit::ERROR, &error))?;
    let events = bind_events(&agent, &to, &own);
    if args.dry_run || events.is_empty() {
        return plan(&uid, &events, output);
    }
    let stream = StreamName::Agent(uid.clone());
    let frontier = ledger.streams.iter().flatten().find(|frontier| frontier.stream == stream).cloned();
    let expected = frontier.as_ref().map_or(Expectation::Version(crate::id::Version(0)), Expectation::from);
    let entry = Entry { stream, expected, events };
    let log = store::writer(&path, args.writing.busy_ms)?;
    let appended = log.append(&[entry], &Append::at(store::now_ms())).map_err(|error| store::of_append(&error))?;
    if output.json {
        output.done(&json!({"schema": 1, "agent": uid, "head": to, "anchor": appended.anchor}))?;
    } else {
        output.say(&format!("agent {uid} is bound to session {session}; the log ends at {}", appended.anchor.seq));
    }
    Ok(exit::OK)
}

fn refuse_live_driver(ledger: &Ledger, request: &Request) -> Result<(), Failure> {
    let receipt = ask(ledger, request)?;
    match receipt.verdict().findings.iter().find(|finding| finding.code == "lease_held") {
        Some(finding) => Err(Failure::new("busy", exit::BUSY, finding.detail.clone()).next("end that driver first")),
        None => Ok(()),
    }
}

/// The confirmed place that a resumable session has.
fn location(receipt: &Receipt, request: &Request, session: &str) -> Result<Location, Failure> {
    let verdict = receipt.verdict();
    let at = verdict
        .transcript
        .as_ref()
        .filter(|_| verdict.verdict == VerdictWord::Resume && verdict.session_id.as_deref() == Some(session));
    let Some(at) = at else {
        let detail =
            verdict.findings.first().map_or_else(|| verdict.verdict.to_string(), |finding| finding.detail.clone());
        let text = format!("session {session} cannot be continued from here: {detail}");
        let code = match verdict.verdict {
            VerdictWord::Busy => exit::BUSY,
            VerdictWord::Unknown => exit::UNKNOWN,
            VerdictWord::Resume | VerdictWord::Recover | VerdictWord::Fresh => exit::ERROR,
        };
        return Err(Failure::new("not_resumable", code, text).next("see `throughline preflight` for the steps"));
    };
    let Some(rules) = request.rules.find(request.provider.family(), request.provider_version.as_deref()) else {
        return Err(Failure::new("provider", exit::ERROR, format!("there are no rules for {}", request.provider)));
    };
    let wrong = |error: &(dyn std::error::Error + 'static)| Failure::of("path", exit::ERROR, error);
    let session = SessionId::parse(session.trim()).map_err(|error| wrong(&error))?;
    let mut view = real_view()?;
    let file = place::facts(&mut view, &at.path).map_err(|error| wrong(&error))?;
    place::location(request, rules, &mut view, &session, Some((&at.path, file))).map_err(|error| wrong(&error))
}

fn plan(uid: &AgentId, events: &[Event], output: &Output) -> Result<u8, Failure> {
    if events.is_empty() {
        if output.json {
            output.value(&json!({"schema": 1, "agent": uid, "events": 0}))?;
        }
        output.say(&format!("agent {uid} is bound to that session already; there is nothing to do"));
    }
    for event in events {
        let encoded = event.encode().map_err(|error| Failure::of("json", exit::ERROR, &error))?;
        let body = String::from_utf8_lossy(&encoded.body).into_owned();
        let line = format!("{{\"stream\":\"agent/{uid}\",\"kind\":\"{}\",\"body\":{body}}}\n", encoded.kind);
        output.data(&line)?;
    }
    Ok(exit::OK)
}
