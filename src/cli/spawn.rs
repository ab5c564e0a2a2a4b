//! `spawn`: starts the agent, passes its streams and signals through, and ends with its code. Our own codes only where
//! nothing was started.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;

use crate::chain::Expected;
use crate::chain::actor::{ActError, Actor};
use crate::chain::lease::lock_name;
use crate::chain::observe::RealView;
use crate::chain::spawn::{Attempt, Drift, Outcome, SpawnAsk, SpawnError, spawn as act};
use crate::cli::args::Spawn;
use crate::cli::error::{Failure, chain_of, exit};
use crate::cli::output::Output;
use crate::cli::{question, store};
use crate::id::PaneId;
use crate::world::real::{RealDoors, locks_beside};
use crate::world::{clock, files, process, write};

/// Spawns, and gives the child's exit code.
pub(super) fn spawn(args: &Spawn, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let request = question::request(&args.question, output)?;
    if request.agent.is_none() {
        return Err(Failure::usage("spawn needs --agent: what it does is written down under it"));
    }
    let receipt = args.receipt.as_deref().map(read_receipt).transpose()?;
    let pane =
        args.pane.as_deref().map(PaneId::parse).transpose().map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(report) = &args.report {
        may_be_new(report)?;
    }
    let path = store::path(log)?;
    let log = store::writer(&path, args.writing.busy_ms)?;
    let told = |error: process::OwnError| Failure::of("process", exit::ERROR, &error);
    let mut view = RealView::new(clock::now_ms(), process::own().map_err(told)?);
    let mut doors = RealDoors::new(&locks_beside(&path)).map_err(told)?.passing_on(signals()?);
    let command = command(&args.command)?;
    let ask = SpawnAsk {
        request: &request,
        receipt: receipt.as_ref(),
        command: &command,
        anyway: args.anyway,
        falls_through: match args.on_reject.as_deref() {
            Some(what) => what == "recover",
            None => receipt.is_none(),
        },
        pane,
    };
    let mut actor = Actor { view: &mut view, doors: &mut doors, log: &log };
    let outcome = act(&mut actor, &ask).map_err(|error| failure(&error, &request.agent))?;
    tell(&outcome, args.report.as_deref(), output)?;
    Ok(u8::try_from(outcome.code & 0xff).unwrap_or(exit::ERROR))
}

fn read_receipt(path: &Path) -> Result<Expected, Failure> {
    let wrong = |error: &(dyn std::error::Error + 'static)| {
        let mut failure = Failure::of("receipt", exit::ERROR, error);
        failure.message = format!("{}: {}", path.display(), failure.message);
        failure.or_next("name a file that holds what `preflight --json` printed")
    };
    let bytes = files::read_small(path, files::SMALL_BYTES_MAX).map_err(|error| wrong(&error))?;
    Expected::parse(&bytes).map_err(|error| wrong(&error))
}

/// A report that could not be written would be lost after hours of work: that is said before.
fn may_be_new(path: &Path) -> Result<(), Failure> {
    let wrong = |words: String| {
        let failure = Failure::new("report", exit::ERROR, words);
        failure.next("name a new file in a writable folder with --report; nothing was started")
    };
    match files::stat(path, false) {
        Err(error) if error.is_absent() => {}
        Err(error) => return Err(wrong(chain_of(&error))),
        Ok(_) => return Err(wrong(format!("{} exists", path.display()))),
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match files::may_write(folder) {
        Ok(true) => Ok(()),
        Ok(false) => Err(wrong(format!("{} cannot be written", folder.display()))),
        Err(error) => Err(wrong(chain_of(&error))),
    }
}

/// The caller's words. A program that is named by a path is meant from here, not from the agent's working directory.
fn command(words: &[String]) -> Result<Vec<String>, Failure> {
    let mut words = words.to_vec();
    if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
        let path = std::path::absolute(&*program).map_err(|error| Failure::of("io", exit::ERROR, &error))?;
        *program = path.to_str().map_or_else(|| program.clone(), str::to_owned);
    }
    Ok(words)
}

/// What others send us goes to the child. What the terminal sends, the child has got itself.
fn signals() -> Result<Receiver<i32>, Failure> {
    let passed = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
    let mut infos = SignalsInfo::<WithOrigin>::new(passed).map_err(|error| Failure::of("io", exit::ERROR, &error))?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for origin in &mut infos {
            if origin.process.is_some() && sender.send(origin.signal).is_err() {
                break;
            }
        }
    });
    Ok(receiver)
}

fn failure(error: &SpawnError, agent: &Option<crate::id::AgentId>) -> Failure {
    match error {
        SpawnError::Busy { .. } => {
            Failure::of("busy", exit::BUSY, error).or_next("wait until it has ended, or end it; nothing was started")
        }
        SpawnError::Unknown { .. } => Failure::of("unknown", exit::UNKNOWN, error)
            .or_next("see `throughline preflight`, or give --anyway; nothing was started"),
        SpawnError::Drift(drift) => Failure::of("drift", exit::DRIFT, error).or_next(match drift {
            Drift::Log { .. } | Drift::Plan { .. } => "ask `throughline preflight` again; nothing was started",
            Drift::Sweep { .. } => "look at that file, then ask again; nothing was started",
        }),
        SpawnError::Relocate(inner) => {
            let next = if inner.is_transient() { "try again" } else { "see what lies there" };
            Failure::of("relocation", exit::ERROR, error)
                .or_next(&format!("{next}; the conversation is where it was, and nothing was started"))
        }
        SpawnError::Launch(_) => {
            Failure::of("launch", exit::ERROR, error).or_next("name its program after --; nothing has changed")
        }
        SpawnError::LeaseOver { .. } => Failure::of("lease_over", exit::BUSY, error).or_next("take a new one"),
        SpawnError::NoAgent => Failure::usage(error.to_string()),
        SpawnError::Act(act) => of_act(act, agent),
    }
}

fn of_act(error: &ActError, agent: &Option<crate::id::AgentId>) -> Failure {
    match error {
        ActError::Append(error) => store::of_append(error),
        ActError::Read(error) => store::of_log(error),
        ActError::Door(_) | ActError::Snapshot(_) | ActError::Name(_) => {
            let lock = agent.as_ref().map(lock_name).unwrap_or_default();
            Failure::of("io", exit::ERROR, error).or_next(&format!("what was begun under {lock} is in the log"))
        }
    }
}

fn tell(outcome: &Outcome, report: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let value = to_json(outcome);
    match report {
        Some(path) => {
            let text = format!("{value:#}\n");
            write::new_file_with(path, |file| file.write_all(text.as_bytes()))
                .map_err(|error| Failure::of("report", exit::ERROR, &error))?
                .map_err(|error| Failure::of("report", exit::ERROR, &error))
        }
        None if output.json => {
            Output::complain(&value.to_string());
            Ok(())
        }
        None => {
            outcome.attempts.iter().for_each(|attempt| output.say(&format!("throughline: {}", line(attempt))));
            Ok(())
        }
    }
}

/// One attempt for people.
fn line(attempt: &Attempt) -> String {
    let (expected, heard) = (&attempt.expected, &attempt.heard);
    let planned = match &expected.session_id {
        Some(session) => format!("{} {session}", expected.verdict),
        None => expected.verdict.to_string(),
    };
    let came = match (&heard.session, &heard.refused, &heard.drift) {
        (_, Some(why), _) => format!("refused: {why}"),
        (Some(session), None, Some(drift)) => format!("is in session {session}, but {drift}"),
        (Some(session), None, None) => format!("is in session {session}"),
        (None, None, _) => "had no turn that proves anything".into(),
    };
    let lost =
        heard.unrecorded.as_ref().map(|why| format!("; the log lacks what it proved: {why}")).unwrap_or_default();
    format!("planned {planned}; the agent {came} (exit code {}){lost}", heard.code)
}

fn to_json(outcome: &Outcome) -> Value {
    let attempts: Vec<Value> = outcome.attempts.iter().map(attempt_json).collect();
    json!({"schema": 1, "code": outcome.code, "attempts": attempts})
}

fn attempt_json(attempt: &Attempt) -> Value {
    let heard = &attempt.heard;
    json!({
        "segment": attempt.segment,
        "expected": attempt.expected,
        "actual": attempt.actual,
        "session": heard.session,
        "minted": attempt.minted,
        "refused": heard.refused,
        "foreign": heard.foreign,
        "drift": heard.drift,
        "unrecorded": heard.unrecorded,
        "code": heard.code,
    })
}
