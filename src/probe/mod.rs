//! Asks the installed agent itself whether our rules about it hold.
//!
//! A probe makes invented worlds in a folder of its own, runs the real agent in each against a stand-in for its model on
//! loopback, and looks at what the agent *sent*: whose turns, how many, and where the new turn was saved. Beside it stands
//! what the rules foretold for the same world. A case *agrees* or *differs*; it is *undecided* where the rules say that they
//! cannot tell; it *could not run* where this machine lacks something.
//!
//! Nothing outside the folder is touched, nothing but loopback is spoken to, and every process is ended: also by the next
//! probe, if this one is killed (`room`).
//!
//! The files: `world` a case's world · `content` what lies in its files · `cases` the fixed ones · `random` further ones · `room`
//! the folder · `api` the stand-in · `drive` the agent's command line · `agent` one run · `beside` what goes on meanwhile · `user`
//! the same as somebody else · `judge` foretold and seen · `play` a case · `learn` from cases to rules · `report` what was found.

mod agent;
mod api;
mod beside;
mod cases;
mod content;
mod drive;
mod judge;
mod learn;
mod play;
mod random;
mod report;
mod room;
mod user;
mod world;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use self::agent::{End, Start};
use self::api::Api;
use self::play::Probe;
pub use self::report::{Report, Row, Status};
use self::room::Room;
use crate::provider::{KnownRules, Provider as _};

/// How long a run may take, if its case does not say otherwise.
const MOST: Duration = Duration::from_secs(60);

/// What is to be probed, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The agent's program.
    pub program: PathBuf,
    /// The rules that are known.
    pub known: KnownRules,
    /// The version whose rules are judged; else the one that the program says it is.
    pub rules: Option<String>,
    /// First learn the program's own table from a few cases, and judge that.
    pub learn: bool,
    /// Only cases whose name contains one of these words; all, where there is none.
    pub filter: Vec<String>,
    /// How many runs at a time.
    pub jobs: usize,
    /// How many random worlds beyond the fixed cases.
    pub random: usize,
    /// What the random worlds are made from.
    pub seed: u64,
    /// The command `throughline` itself: a superuser's probe starts it as an ordinary user for the cases about rights.
    pub command: Option<PathBuf>,
}

/// Why a probe could not begin, or not go on. Its folder is removed and its processes are ended all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The program does not do the most ordinary thing, so that nothing it does would prove anything.
    #[error("{} neither continues an ordinary session nor refuses it: {said}", program.display())]
    NoAgent {
        /// The program.
        program: PathBuf,
        /// What it said, or how it ended.
        said: String,
    },
    /// The agent could not be asked for its version.
    #[error("{} does not tell its version", program.display())]
    Version {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder or the stand-in could not be made.
    #[error("the probe cannot {verb}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// It was told to stop.
    #[error("the probe was interrupted")]
    Interrupted,
    /// No case has such a name.
    #[error("no case has a name with {0:?} in it")]
    NoCase(String),
    /// A case that decides a rule could not be run.
    #[error("the rules cannot be learnt: case {0} could not be run")]
    NotLearnt(&'static str),
}

/// What is told while a probe goes on.
pub trait Progress: Sync {
    /// So many of so many cases are done; the last was this one.
    fn done(&self, done: usize, all: usize, row: &Row);
}

/// The names of the fixed cases.
#[must_use]
pub fn case_names() -> Vec<String> {
    cases::all().into_iter().map(|case| case.name).collect()
}

/// Runs the cases.
///
/// # Errors
///
/// [`ProbeError`]; nothing is left behind.
///
/// # Crash
///
/// A killed probe leaves its folder and at most the runs that went on; the next probe with the same folder for temporary
/// files ends and removes them.
pub fn probe(options: &Options, stop: &AtomicBool, progress: &dyn Progress) -> Result<Report, ProbeError> {
    let io = |verb| move |source| ProbeError::Io { verb, source };
    let room = Room::make().map_err(io("make its folder"))?;
    let api = Api::start().map_err(io("listen on loopback"))?;
    let version = version_of(&options.program, &room, stop)?;
    let nearest = options.known.claude(Some(options.rules.as_deref().unwrap_or(&version))).clone();
    let mut cases = cases::all();
    if !options.filter.is_empty() {
        for word in &options.filter {
            if !cases.iter().any(|case| case.name.contains(word.as_str())) {
                return Err(ProbeError::NoCase(word.clone()));
            }
        }
        cases.retain(|case| options.filter.iter().any(|word| case.name.contains(word.as_str())));
    }
    cases.extend(random::cases(options.random, options.seed));
    let mut probe = Probe { options, stop, room, api, rules: nearest, number: AtomicUsize::new(0) };
    probe.is_an_agent()?;
    let learnt = if options.learn { Some(probe.learn(&version)?) } else { None };
    probe.rules = learnt.clone().unwrap_or(probe.rules);
    let mut rows = probe.run_all(&cases, progress)?;
    probe.ask_ordinary_user(&cases, &mut rows);
    for (row, case) in rows.iter_mut().zip(&cases) {
        if row.status == Status::Differ && random::is_random(&case.name) {
            *row = probe.shrink(case, row.clone());
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Err(ProbeError::Interrupted);
    }
    let rules = &probe.rules;
    let observed = rules.is_observed(Some(&version));
    Ok(Report { rules: rules.version().to_owned(), observed, version, learnt, rows })
}

/// What the program says that it is.
fn version_of(program: &Path, room: &Room, stop: &AtomicBool) -> Result<String, ProbeError> {
    let fails = |source| ProbeError::Version { program: program.to_owned(), source };
    let folder = room.case("version").map_err(fails)?;
    let home = folder.to_string_lossy().into_owned();
    let start = Start {
        program,
        arguments: vec!["--version".into()],
        cwd: &home,
        environment: [("HOME".to_owned(), home.clone())].into(),
        room: room.path(),
        output: folder.clone(),
    };
    let ran = start.spawn().and_then(|running| running.wait(MOST, stop)).map_err(fails)?;
    let text = ran.stdout.trim();
    let version = text.split_whitespace().next().unwrap_or_default();
    if ran.end != End::Exit(0) || !version.starts_with(|c: char| c.is_ascii_digit() || c == 'v') {
        let said: String = text.chars().take(80).collect();
        return Err(fails(io::Error::other(format!("it said {said:?} and ended with {:?}", ran.end))));
    }
    Ok(version.to_owned())
}
