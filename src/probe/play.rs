//! One case after another: made, foretold, run, looked at.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::agent::Start;
use super::api::Api;
use super::beside::Beside;
use super::cases::{self, Case};
use super::content::ID;
use super::judge::{self, Word, foretold};
use super::report::{Judged, Row, Status};
use super::room::{self, Room};
use super::world::{Ask, Built, Meanwhile, World};
use super::{MOST, Options, ProbeError, Progress, drive, learn, random, user};
use crate::chain::observe::RealView;
use crate::provider::claude::{self, Table};
use crate::provider::{Output, Provider as _, Report};
use crate::snapshot::{Depth, Life, Owner, Seen};
use crate::world::{clock, process};

/// How long another driver of the session waits for its reply: longer than any run beside it.
const DRIVER_HOLDS: Duration = Duration::from_secs(20);

/// What every agent can do.
const ORDINARY: &str = "content.complete";

/// What the agent's own rules take a line of its stderr for.
fn claude_report(line: &str) -> Option<Report> {
    claude::rules(None).report(line.as_bytes(), Output::Stderr)
}

/// A probe under way.
pub(super) struct Probe<'a> {
    pub(super) options: &'a Options,
    pub(super) stop: &'a AtomicBool,
    pub(super) room: Room,
    pub(super) api: Api,
    /// What is judged.
    pub(super) rules: Table,
    /// How many worlds were made.
    pub(super) number: AtomicUsize,
}

impl Probe<'_> {
    pub(super) fn run_all(&self, cases: &[Case], progress: &dyn Progress) -> Result<Vec<Row>, ProbeError> {
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

    /// Whether the program is one that can be judged here: it continues an ordinary session, or at least says that it has
    /// none. A program that fails at everything would "agree" wherever a refusal is foretold.
    pub(super) fn is_an_agent(&self) -> Result<(), ProbeError> {
        let cases = cases::all();
        let Some(case) = cases.iter().find(|case| case.name == ORDINARY) else { return Ok(()) };
        let no = |said: String| ProbeError::NoAgent { program: self.options.program.clone(), said };
        let seen = self.judge(case).map_err(|error| no(error.to_string()))?.seen;
        if self.stop.load(Ordering::Relaxed) {
            return Err(ProbeError::Interrupted);
        }
        let refuses = seen.said.iter().any(|line| claude_report(line).is_some());
        match seen.word {
            Word::Continues | Word::Empty | Word::Fresh => Ok(()),
            Word::Refused if refuses => Ok(()),
            Word::Refused | Word::Unknown | Word::Hangs => Err(no(seen.line())),
        }
    }

    /// The table of the program itself.
    pub(super) fn learn(&self, version: &str) -> Result<Table, ProbeError> {
        let cases = cases::all();
        let mut seen = Vec::new();
        for name in learn::names() {
            let case = cases.iter().find(|case| case.name == name).ok_or(ProbeError::NotLearnt(name))?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(ProbeError::Interrupted);
            }
            let judged = self.judge(case).map_err(|_| ProbeError::NotLearnt(name))?;
            seen.push((name, judged.seen));
        }
        let of = |name: &str| seen.iter().find(|(seen, _)| *seen == name).map(|(_, fate)| fate);
        learn::learn(version, &self.rules, of).map_err(ProbeError::NotLearnt)
    }

    /// The cases about rights, for a superuser: somebody without rights runs them.
    pub(super) fn ask_ordinary_user(&self, cases: &[Case], rows: &mut [Row]) {
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
                let why =
                    format!("a superuser has every right, and the probe could not run as an ordinary user: {error}");
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
        let judged = world.build(&folder, &self.rules).and_then(|built| self.play(&name, world, &built));
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
            (Some(Beside::Driver(running)), Ask::Resume { id, .. }) if self.rules.registers => {
                let owners = self.rules.owners(&mut view, &built.place, id).map_err(io::Error::other)?;
                let is_driver = |owner: &Owner| owner.pid == running.pid() && owner.life == Life::Alive;
                !matches!(&owners, Seen::Is(owners) if owners.iter().any(is_driver))
            }
            _ => false,
        };
        let arguments = drive::arguments(&built.ask, &prompt);
        let base = self.api.base(name, Duration::from_millis(world.holds_ms));
        let start = Start {
            program: &self.options.program,
            arguments: arguments.clone(),
            cwd: &built.place.cwd,
            environment: drive::environment(built, &base),
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
            Ask::Continue => (
                judge::reported_session(&ran.stdout)
                    .filter(|id| before.keys().any(|path| path.ends_with(format!("{id}.jsonl")))),
                false,
            ),
            Ask::New { .. } => (None, false),
        };
        let seen = judge::seen(&ran, &messages, asked.as_deref(), source.as_deref(), &before, &after, &foretold);
        let mut seen = seen;
        let mut harmed = if world.meanwhile.is_some() { Vec::new() } else { judge::harmed(&before, &after, prefix) };
        // Deleted and begun anew under the same name.
        if let Some(source) = &source {
            seen.source_lost |= harmed.contains(source);
            harmed.retain(|path| path != source);
        }
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
            "session": got, "turns": messages.iter().flat_map(|text| judge::marks(text)).map(|(tag, turn)| format!("{tag}-{turn}")).collect::<BTreeSet<_>>(), "harmed": harmed, "other_id_than_chosen": other_id, "driver_not_seen": unseen_driver,
            "foretold": foretold, "seen": seen, "world": world.told(),
        });
        Ok(Judged { status, foretold, seen, naive_right, evidence })
    }

    /// The file that the rules would have the agent read.
    fn source_of(&self, view: &mut RealView, built: &Built) -> Option<PathBuf> {
        let none = BTreeSet::new();
        let depth = Depth::Windows;
        let path = match &built.ask {
            Ask::Resume { id, .. } => self.rules.lookup(view, &built.place, id, &none, depth).ok()?.path?,
            Ask::Path { path, .. } => path.clone(),
            Ask::Continue | Ask::New { .. } => return None,
        };
        Some(path.into())
    }

    /// Starts what goes on beside the run.
    fn begin(&self, meanwhile: Meanwhile, name: &str, built: &Built) -> io::Result<Beside> {
        let file = PathBuf::from(&built.own).join(format!("{ID}.jsonl"));
        Beside::begin(meanwhile, file, || {
            let run = format!("{name}d");
            let ask = Ask::Resume { id: ID.into(), fork: false, chosen: None };
            let base = self.api.base(&run, DRIVER_HOLDS);
            let start = Start {
                program: &self.options.program,
                arguments: drive::arguments(&ask, "the prompt of another"),
                cwd: &built.place.cwd,
                environment: drive::environment(built, &base),
                room: self.room.path(),
                output: built.room.join("driver"),
            };
            let running = start.spawn()?;
            let began = Instant::now();
            while self.api.sent(&run).is_empty() && began.elapsed() < MOST && !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(running)
        })
    }

    /// The smallest world that still differs.
    pub(super) fn shrink(&self, case: &Case, mut row: Row) -> Row {
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
