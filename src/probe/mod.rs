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
//! The files: `world` a case's world · `claude` Claude Code's cases, contents, command line · `random` worlds beyond the cases ·
//! `room` the folder · `api` the stand-in · `agent` one run · `judge` foretold and seen.

mod agent;
mod api;
mod claude;
mod judge;
mod random;
mod room;
mod user;
mod world;

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::agent::{End, Start};
use self::api::Api;
use self::claude::cases::Case;
use self::judge::{Fate, Word, foretold};
use self::room::Room;
use self::world::{Ask, Built, Meanwhile, World};
use crate::chain::observe::RealView;
use crate::provider::claude::Table;
use crate::provider::{KnownRules, Provider};
use crate::snapshot::{Life, Seen};
use crate::world::{clock, process};

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

/// How a case went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The agent did what the rules say.
    Agree,
    /// It did something else.
    Differ,
    /// The rules say that they cannot tell.
    Undecided,
    /// It could not be run here.
    CouldNotRun,
}

/// One case and its evidence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name; the part before the first dot is its group.
    pub name: String,
    /// How it went.
    pub status: Status,
    /// What the rules foretold, in one line.
    pub foretold: String,
    /// What was seen, in one line.
    pub seen: String,
    /// Whether "a file that is not empty is there" would have been right.
    pub naive_right: Option<bool>,
    /// Whether the agent sent an earlier turn.
    pub continued: bool,
    /// The evidence, as JSON: both outcomes, the command line, how it ended, what changed on disk.
    pub evidence: serde_json::Value,
}

/// What a probe found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The agent's own word for its version.
    pub version: String,
    /// The version whose rules were judged.
    pub rules: String,
    /// Whether those rules were observed on this very version.
    pub observed: bool,
    /// The table that was learnt.
    pub learnt: Option<Table>,
    /// The cases, in order.
    pub rows: Vec<Row>,
}

impl Report {
    /// How many cases went so.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.rows.iter().filter(|row| row.status == status).count()
    }

    /// On how many of the cases where it says anything the naive check was right, and how many those are.
    #[must_use]
    pub fn naive(&self) -> (usize, usize) {
        let said: Vec<bool> = self.rows.iter().filter_map(|row| row.naive_right).collect();
        (said.iter().filter(|right| **right).count(), said.len())
    }
}

/// What is told while a probe goes on.
pub trait Progress: Sync {
    /// So many of so many cases are done; the last was this one.
    fn done(&self, done: usize, all: usize, row: &Row);
}

/// The names of the fixed cases.
#[must_use]
pub fn case_names() -> Vec<String> {
    claude::cases::all().into_iter().map(|case| case.name).collect()
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
    let mut cases = claude::cases::all();
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
    if ran.end != End::Exit(0) || text.is_empty() {
        return Err(fails(io::Error::other(format!("it said {text:?} and ended with {:?}", ran.end))));
    }
    Ok(text.split_whitespace().next().unwrap_or(text).to_owned())
}

struct Probe<'a> {
    options: &'a Options,
    stop: &'a AtomicBool,
    room: Room,
    api: Api,
    rules: Table,
    number: AtomicUsize,
}

/// The status and the evidence, before there is a row.
struct Judged {
    status: Status,
    foretold: Fate,
    seen: Fate,
    naive_right: Option<bool>,
    evidence: serde_json::Value,
}

impl Probe<'_> {
    fn run_all(&self, cases: &[Case], progress: &dyn Progress) -> Result<Vec<Row>, ProbeError> {
        let queue: Mutex<VecDeque<(usize, &Case)>> = Mutex::new(cases.iter().enumerate().collect());
        let done: Mutex<Vec<(usize, Row)>> = Mutex::default();
        let work = || {
            while !self.stop.load(Ordering::Relaxed) {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some((index, case)) = next else { break };
                let row = self.run(case);
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push((index, row));
                if let Some((_, row)) = done.last() {
                    progress.done(done.len(), cases.len(), row);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.options.jobs.max(1) {
                scope.spawn(work);
            }
        });
        if self.stop.load(Ordering::Relaxed) {
            return Err(ProbeError::Interrupted);
        }
        let mut rows = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        rows.sort_by_key(|(index, _)| *index);
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// The table of the program itself.
    fn learn(&self, version: &str) -> Result<Table, ProbeError> {
        let cases = claude::cases::all();
        let mut seen = Vec::new();
        for name in claude::learn::names() {
            let case = cases.iter().find(|case| case.name == name).ok_or(ProbeError::NotLearnt(name))?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(ProbeError::Interrupted);
            }
            let judged = self.judge(case).map_err(|_| ProbeError::NotLearnt(name))?;
            seen.push((name, judged.seen));
        }
        let of = |name: &str| seen.iter().find(|(seen, _)| *seen == name).map(|(_, fate)| fate);
        claude::learn::learn(version, &self.rules, of).map_err(ProbeError::NotLearnt)
    }

    /// The cases about rights, for a superuser: somebody without rights runs them.
    fn ask_ordinary_user(&self, cases: &[Case], rows: &mut [Row]) {
        let is_left = |case: &&Case| case.ordinary_user && rustix::process::geteuid().is_root();
        let names: Vec<&str> = cases.iter().filter(is_left).map(|case| case.name.as_str()).collect();
        if names.is_empty() {
            return;
        }
        match user::ask(self.options, &self.room, &names, self.stop) {
            Ok(found) => {
                for row in rows {
                    if let Some(found) = found.iter().find(|found| found.name == row.name) {
                        row.clone_from(found);
                    }
                }
            }
            Err(error) => {
                let why = format!("a superuser has every right, and the probe could not run as an ordinary user: {error}");
                for row in rows.iter_mut().filter(|row| names.contains(&row.name.as_str())) {
                    row.seen.clone_from(&why);
                }
            }
        }
    }

    fn run(&self, case: &Case) -> Row {
        if case.ordinary_user && rustix::process::geteuid().is_root() {
            return Row::without(case, "a superuser has every right");
        }
        match self.judge(case) {
            Ok(judged) => Row::of(case, judged),
            Err(error) => Row::without(case, &format!("this machine: {error}")),
        }
    }

    fn judge(&self, case: &Case) -> io::Result<Judged> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let name = format!("c{number}");
        let folder = self.room.case(&name)?;
        let world = &case.world;
        let judged = world.build(&folder).and_then(|built| self.play(&name, world, &built));
        self.api.forget(&name);
        room::remove(&folder)?;
        judged
    }

    fn play(&self, name: &str, world: &World, built: &Built) -> io::Result<Judged> {
        // Neither a mark nor a part of one, and different for each run.
        let prompt = format!("the-new-prompt-of-{name}-ends");
        let most = world.most_ms.map_or(MOST, Duration::from_millis);
        let naive = naive(built);
        let meanwhile = world.meanwhile.map(|meanwhile| self.begin(meanwhile, name, built)).transpose()?;
        let own = process::own().map_err(io::Error::other)?;
        let mut view = RealView::new(clock::now_ms(), own);
        let foretold = foretold(&self.rules, &mut view, built, world.holds_ms).map_err(io::Error::other)?;
        let source = self.source_of(&mut view, built);
        let before = judge::files(&built.room, source.as_deref(), &prompt);
        let unseen_driver = match (&meanwhile, &built.ask) {
            (Some(Beside::Driver { pid, .. }), Ask::Resume { id, .. }) => {
                let owners = self.rules.owners(&mut view, &built.place, id).map_err(io::Error::other)?;
                let is_driver = |owner: &crate::snapshot::Owner| owner.pid == *pid && owner.life == Life::Alive;
                !matches!(&owners, Seen::Is(owners) if owners.iter().any(is_driver))
            }
            _ => false,
        };
        let arguments = claude::arguments(&built.ask, &prompt);
        let base = self.api.base(name, Duration::from_millis(world.holds_ms));
        let start = Start {
            program: &self.options.program,
            arguments: arguments.clone(),
            cwd: &built.place.cwd,
            environment: claude::environment(built, &base),
            room: self.room.path(),
            output: built.room.join("out"),
        };
        let ran = start.spawn()?.wait(most, self.stop)?;
        drop(meanwhile);
        let sent = self.api.sent(name);
        let messages: Vec<String> =
            sent.iter().filter(|sent| sent.messages.contains(&prompt)).map(|sent| sent.messages.clone()).collect();
        let after = judge::files(&built.room, source.as_deref(), &prompt);
        let (asked, is_fork) = match &built.ask {
            Ask::Resume { id, fork, .. } => (Some(id.clone()), *fork),
            Ask::Path { .. } => (None, true),
            // The session that it chose is the one that it reports, if there was a file of it.
            Ask::Continue => (judge::reported_session(&ran.stdout).filter(|id| before.keys().any(|path| path.ends_with(format!("{id}.jsonl")))), false),
            Ask::New { .. } => (None, false),
        };
        let seen = judge::seen(&ran, &messages, asked.as_deref(), source.as_deref(), &before, &after, &foretold);
        let harmed = if world.meanwhile.is_some() { Vec::new() } else { judge::harmed(&before, &after, prefix) };
        let got = judge::reported_session(&ran.stdout);
        let chosen = match &built.ask {
            Ask::Resume { chosen, .. } | Ask::Path { chosen, .. } => chosen.clone(),
            Ask::New { chosen } => Some(chosen.clone()),
            Ask::Continue => None,
        };
        let other_id = seen.word != Word::Refused && chosen.is_some() && got != chosen;
        let status = if foretold.word == Word::Unknown {
            Status::Undecided
        } else if foretold.agrees(&seen, is_fork) && harmed.is_empty() && !other_id && !unseen_driver {
            Status::Agree
        } else {
            Status::Differ
        };
        let naive_right = naive.map(|continues| continues == (seen.word == Word::Continues));
        let evidence = serde_json::json!({
            "argv": arguments, "end": format!("{:?}", ran.end), "took_ms": u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX),
            "requests": sent.iter().map(|sent| format!("{}{}", sent.path, if sent.streamed { " (streamed)" } else { "" })).collect::<Vec<_>>(),
            "session": got, "turns": messages.iter().flat_map(|text| judge::marks(text)).map(|(tag, turn)| format!("{tag}-{turn}")).collect::<std::collections::BTreeSet<_>>(), "harmed": harmed, "other_id_than_chosen": other_id, "driver_not_seen": unseen_driver,
            "foretold": foretold, "seen": seen,
        });
        Ok(Judged { status, foretold, seen, naive_right, evidence })
    }

    /// The file that the rules would have the agent read.
    fn source_of(&self, view: &mut RealView, built: &Built) -> Option<PathBuf> {
        let none = std::collections::BTreeSet::new();
        let depth = crate::snapshot::Depth::Windows;
        let path = match &built.ask {
            Ask::Resume { id, .. } => self.rules.lookup(view, &built.place, id, &none, depth).ok()?.path?,
            Ask::Path { path, .. } => path.clone(),
            Ask::Continue | Ask::New { .. } => return None,
        };
        Some(path.into())
    }

    /// Starts what goes on beside the run.
    fn begin(&self, meanwhile: Meanwhile, name: &str, built: &Built) -> io::Result<Beside> {
        let file = PathBuf::from(&built.own).join(format!("{}.jsonl", claude::content::ID));
        match meanwhile {
            Meanwhile::Appends => Ok(Beside::thread(move |ends| {
                while !ends.load(Ordering::Relaxed) {
                    append(&file, b"{\"type\":\"mode\",\"mode\":\"normal\"}\n");
                    std::thread::sleep(Duration::from_millis(10));
                }
            })),
            Meanwhile::HalfLine => {
                append(&file, b"{\"type\":\"mo");
                Ok(Beside::thread(move |ends| {
                    while !ends.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    append(&file, b"de\",\"mode\":\"normal\"}\n");
                }))
            }
            Meanwhile::Driver => {
                let run = format!("{name}d");
                let ask = Ask::Resume { id: claude::content::ID.into(), fork: false, chosen: None };
                let base = self.api.base(&run, Duration::from_secs(20));
                let start = Start {
                    program: &self.options.program,
                    arguments: claude::arguments(&ask, "the prompt of another"),
                    cwd: &built.place.cwd,
                    environment: claude::environment(built, &base),
                    room: self.room.path(),
                    output: built.room.join("driver"),
                };
                let running = start.spawn()?;
                let began = std::time::Instant::now();
                while self.api.sent(&run).is_empty() && began.elapsed() < MOST && !self.stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Ok(Beside::Driver { pid: running.pid(), _running: running })
            }
        }
    }

    /// The smallest world that still differs.
    fn shrink(&self, case: &Case, mut row: Row) -> Row {
        let mut smallest = case.clone();
        loop {
            let smaller = random::smaller(&smallest.world).into_iter().find_map(|world| {
                let case = Case { world, ..smallest.clone() };
                let row = (!self.stop.load(Ordering::Relaxed)).then(|| self.run(&case))?;
                (row.status == Status::Differ).then_some((case, row))
            });
            let Some((case, found)) = smaller else { return row };
            (smallest, row) = (case, found);
        }
    }
}

/// What goes on beside a run; it ends when dropped.
enum Beside {
    Thread { ends: std::sync::Arc<AtomicBool>, thread: Option<std::thread::JoinHandle<()>> },
    Driver { pid: u32, _running: agent::Running },
}

impl Beside {
    fn thread(work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let ends = std::sync::Arc::new(AtomicBool::new(false));
        let of = std::sync::Arc::clone(&ends);
        Self::Thread { ends, thread: Some(std::thread::spawn(move || work(&of))) }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        match self {
            Self::Thread { ends, thread } => {
                ends.store(true, Ordering::Relaxed);
                if let Some(thread) = thread.take() {
                    // It only appends to a file; there is nothing to report.
                    let _ = thread.join();
                }
            }
            Self::Driver { .. } => {}
        }
    }
}

fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    // The run shows what came of it.
    let _ = fs::OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(bytes));
}

/// The digest of a file's first bytes.
fn prefix(path: &Path, bytes: u64) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut fs::File::open(path)?.take(bytes), &mut hasher)?;
    Ok(hasher.finalize())
}

/// "There is a file that is not empty": what more than twenty projects ask.
fn naive(built: &Built) -> Option<bool> {
    let is_full = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0);
    match &built.ask {
        Ask::Resume { id, .. } => Some(is_full(&Path::new(&built.own).join(format!("{id}.jsonl")))),
        Ask::Path { path, .. } => Some(is_full(Path::new(path))),
        Ask::Continue => {
            let entries = fs::read_dir(&built.own).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
            let paths: Vec<PathBuf> = entries.unwrap_or_default();
            Some(paths.iter().any(|path| path.extension().is_some_and(|end| end == "jsonl") && is_full(path)))
        }
        Ask::New { .. } => None,
    }
}

impl Row {
    fn of(case: &Case, judged: Judged) -> Self {
        Self {
            name: case.name.clone(),
            status: judged.status,
            foretold: judged.foretold.line(),
            seen: judged.seen.line(),
            naive_right: judged.naive_right,
            continued: judged.seen.word == Word::Continues,
            evidence: judged.evidence,
        }
    }

    fn without(case: &Case, why: &str) -> Self {
        Self {
            name: case.name.clone(),
            status: Status::CouldNotRun,
            foretold: String::new(),
            seen: why.to_owned(),
            naive_right: None,
            continued: false,
            evidence: serde_json::Value::Null,
        }
    }
}
