//! `hook claude`: what Claude Code runs as its own hook.
//!
//! It must never be in the agent's way. Its stdout is empty whatever happens, since Claude Code reads that into the
//! conversation; it ends with 0 whatever happens, a command line that it does not understand included, since 2 means *stop*
//! there; and it ends in time whatever happens. What went wrong is one line on stderr.

use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::chain::fold::State;
use crate::cli::args::hook::Announce;
use crate::cli::error::{Failure, exit};
use crate::cli::output::Output;
use crate::cli::store;
use crate::event::HookAnnounced;
use crate::id::{AgentId, StreamName};
use crate::log::{Append, AppendError, Entry, Expectation, Log as _, Records as _};
use crate::provider::claude::hooks;
use crate::world::{environment, stdin};

/// The variable that names the agent where the command does not.
const AGENT_VARIABLE: &str = "THROUGHLINE_AGENT";
const INPUT_BYTES_MAX: usize = 1024 * 1024;
const INPUT_WAIT: Duration = Duration::from_secs(2);
/// What the disk may take beyond the wait for other writers.
const DISK_MS: u64 = 1_000;
/// How often an announcement is tried again when another one came between.
const TRIES: usize = 8;

/// Writes down what the hook is told.
pub(super) fn announce(args: &Announce, log: Option<&Path>) -> u8 {
    match try_announce(args, log) {
        Ok(()) => exit::OK,
        Err(failure) => complained(&failure, args.strict),
    }
}

/// Whether a command line was meant for this command, however wrong the rest of it is.
pub(super) fn is_meant(arguments: &[OsString]) -> bool {
    arguments.windows(2).any(|pair| pair[0] == "hook" && pair[1] == "claude")
}

/// A command line that this version does not understand: another one may have installed it.
pub(super) fn misread(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let failure = Failure::new("usage", exit::USAGE, first).next("see `throughline hook claude --help`");
    complained(&failure, arguments.iter().any(|argument| argument == "--strict"))
}

fn complained(failure: &Failure, strict: bool) -> u8 {
    Output::complain(&format!("throughline: nothing was written down: {}", failure.sentence()));
    if strict { exit::ERROR } else { exit::OK }
}

fn try_announce(args: &Announce, log: Option<&Path>) -> Result<(), Failure> {
    // Read first, whatever comes: whoever writes it should not meet a closed pipe.
    let input = stdin::read_to_end(INPUT_BYTES_MAX, INPUT_WAIT);
    let input = input.map_err(|error| Failure::of("stdin", exit::ERROR, &error))?;
    let agent = agent(args)?;
    let announced = hooks::announced(&input).map_err(|error| Failure::of("hook_input", exit::ERROR, &error))?;
    let (path, busy_ms) = (store::path(log)?, args.busy_ms);
    in_time(busy_ms.saturating_add(DISK_MS), move || append(&path, agent, &announced, busy_ms))
}

fn agent(args: &Announce) -> Result<AgentId, Failure> {
    let wrong = |error: &(dyn std::error::Error + 'static)| {
        Failure::of("agent", exit::ERROR, error).or_next("name the agent with --agent or $THROUGHLINE_AGENT")
    };
    let given = match &args.agent {
        Some(agent) => Some(agent.clone()),
        None => environment::var(AGENT_VARIABLE).map_err(|error| wrong(&error))?.filter(|agent| !agent.is_empty()),
    };
    let given = given.ok_or_else(|| {
        let text = "it is not said which agent this is";
        Failure::new("agent", exit::ERROR, text).next("name it with --agent or $THROUGHLINE_AGENT")
    })?;
    AgentId::parse(given).map_err(|error| wrong(&error))
}

/// Runs `work`, and leaves it where it is when the time is up: it ends with this process, which is a crash to the log, and
/// the log is made for crashes.
fn in_time(ms: u64, work: impl FnOnce() -> Result<(), Failure> + Send + 'static) -> Result<(), Failure> {
    let (tell, told) = channel();
    let started = std::thread::Builder::new().spawn(move || {
        // Nobody listens any more once the time is up.
        let _ = tell.send(work());
    });
    started.map_err(|error| Failure::of("thread", exit::ERROR, &error).or_next("try again"))?;
    match told.recv_timeout(Duration::from_millis(ms)) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => {
            let text = format!("the log did not answer within {ms} ms");
            Err(Failure::new("log_busy", exit::LOG_BUSY, text).next("see what else uses it"))
        }
        Err(RecvTimeoutError::Disconnected) => {
            Err(Failure::new("stopped", exit::ERROR, "the log could not be written").next("see `throughline verify`"))
        }
    }
}

/// Appends the announcement, unless the last one said the same.
fn append(path: &Path, agent: AgentId, announced: &HookAnnounced, busy_ms: u64) -> Result<(), Failure> {
    let log = store::writer(path, busy_ms)?;
    let stream = StreamName::Hook(agent);
    let mut tries = 0;
    loop {
        let (frontier, state) = log.state(&stream).map_err(|error| store::of_log(&error))?;
        if let State::Hook(Some(last)) = &state
            && (&last.hook, &last.session, &last.cause) == (&announced.hook, &announced.session, &announced.cause)
        {
            return Ok(());
        }
        let events = vec![announced.clone().into()];
        let entry = Entry { stream: stream.clone(), expected: Expectation::from(&frontier), events };
        tries += 1;
        match log.append(&[entry], &Append::at(store::now_ms())) {
            Err(AppendError::Conflict { .. }) if tries < TRIES => {}
            other => return other.map(drop).map_err(|error| store::of_append(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_does_not_come_to_an_end_is_left() {
        let began = Instant::now();
        let failure = in_time(50, || {
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        });
        assert_eq!(failure.err().map(|failure| failure.class), Some("log_busy"));
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(in_time(30_000, || Ok(())).is_ok());
        let failure = in_time(30_000, || Err(Failure::usage("x")));
        assert_eq!(failure.err().map(|failure| failure.class), Some("usage"));
    }

    #[test]
    fn a_wrong_command_line_is_known_by_its_words() {
        for (line, expected) in [
            ("throughline hook claude --no-such", true),
            ("throughline --log x hook claude --agent", true),
            ("throughline hook install", false),
            ("throughline probe claude", false),
            ("throughline hook", false),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(is_meant(&words), expected, "{line}");
        }
    }
}
