//! One writer's whole life as a list of steps, what the writer says about it, and whether a log holds what was said.
//!
//! The tests of crashes let this life be lived by a child process, end it or hinder it somewhere, and then ask
//! [`survives`] about what is on the disk. A child is this test executable, run again for one test only.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use throughline::id::{Anchor, IdempotencyKey, Seq};
use throughline::log::{Append, AppendError, Appended, Class, Entry, Expectation, LogError, Records as _};

use crate::log_fault::{Op, Shim, trace};
use crate::log_support::{
    Writer, append, checkpoint, dense, entry, fresh, labelled, quick_dir, reader, sound, why, writer,
};

/// One thing that a writer does.
pub(crate) enum Step {
    Open,
    /// Appends so many events to each of these streams.
    Append {
        key: Option<&'static str>,
        to: &'static [(&'static str, usize)],
    },
    Checkpoint,
    Close,
}

/// From the folder that is not there yet to appends after a second opening: every kind of write that a log does.
pub(crate) const LIFE: &[Step] = &[
    Step::Open,
    Step::Append { key: Some("one"), to: &[("agent/a", 1)] },
    Step::Append { key: Some("several"), to: &[("agent/a", 2), ("agent/b", 1), ("agent/c", 1)] },
    Step::Append { key: None, to: &[("agent/b", 1)] },
    // Past the 32 events after which a memo is written, and many pages long.
    Step::Append { key: Some("many"), to: &[("agent/a", 40), ("agent/d", 40)] },
    Step::Checkpoint,
    // Begins the WAL anew.
    Step::Append { key: Some("after"), to: &[("agent/b", 1)] },
    Step::Append { key: None, to: &[("agent/e", 3), ("agent/a", 1)] },
    Step::Close,
    Step::Open,
    Step::Append { key: Some("again"), to: &[("agent/c", 2)] },
    Step::Append { key: None, to: &[("agent/d", 35)] },
    Step::Checkpoint,
    Step::Append { key: Some("long"), to: &[("agent/g", 60), ("agent/b", 1)] },
    Step::Close,
    Step::Open,
    Step::Append { key: None, to: &[("agent/a", 1)] },
    Step::Append { key: Some("last"), to: &[("agent/a", 1), ("agent/f", 2)] },
    Step::Close,
];

/// The panes that the events of a step name: each is in the log once, or not at all.
pub(crate) fn labels(number: usize) -> Vec<String> {
    let Step::Append { to, .. } = &LIFE[number] else { return Vec::new() };
    let count = to.iter().map(|(_, count)| count).sum();
    (0..count).map(|event: usize| format!("step {number} event {event}")).collect()
}

pub(crate) fn entries(number: usize) -> Vec<Entry> {
    let Step::Append { to, .. } = &LIFE[number] else { return Vec::new() };
    let mut panes = labels(number).into_iter();
    let events = |count: usize| panes.by_ref().take(count).map(|pane| fresh(&pane)).collect();
    let mut events = events;
    to.iter().map(|(name, count)| entry(name, Expectation::Any, events(*count))).collect()
}

pub(crate) fn how(number: usize) -> Append {
    let Step::Append { key, .. } = &LIFE[number] else { return Append::default() };
    Append { key: key.map(|key| IdempotencyKey::parse(key).unwrap()), ..Append::at(1_000) }
}

/// What a writer said about one append.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// It is in the log, from here to there.
    Did { first: Seq, anchor: Anchor },
    /// Nothing of it is in the log.
    Refused,
    /// All of it is in the log, or nothing.
    Unknown,
}

/// Everything that a writer said, in lines.
#[derive(Clone, Default, Debug)]
pub(crate) struct Told {
    pub(crate) store: Option<String>,
    pub(crate) steps: BTreeMap<usize, Word>,
    /// Steps that ended with an error, and its class: also those that went well when they were tried again.
    pub(crate) failures: Vec<(usize, String)>,
    pub(crate) lines: usize,
}

impl Told {
    pub(crate) fn read(path: &Path) -> Self {
        let mut told = Self::default();
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            other => other.unwrap(),
        };
        text.lines().for_each(|line| told.hear(line));
        told
    }

    pub(crate) fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse().unwrap();
        self.lines += 1;
        match *words.as_slice() {
            ["opened", store] => self.store = Some(store.to_owned()),
            ["did", step, first, anchor] => {
                let word = Word::Did { first: Seq(first.parse().unwrap()), anchor: anchor.parse().unwrap() };
                self.steps.insert(number(step), word);
            }
            ["refused", step, class] => {
                self.steps.insert(number(step), Word::Refused);
                self.failures.push((number(step), class.to_owned()));
            }
            ["unknown", step] => {
                self.steps.insert(number(step), Word::Unknown);
                self.failures.push((number(step), "Unknown".to_owned()));
            }
            _ => panic!("a line that no writer says: {line:?}"),
        }
    }

    /// The newest anchor that was acknowledged.
    pub(crate) fn anchor(&self) -> Option<Anchor> {
        let anchors = self.steps.values().filter_map(|word| match word {
            Word::Did { anchor, .. } => Some(*anchor),
            Word::Refused | Word::Unknown => None,
        });
        anchors.max_by_key(|anchor| anchor.seq)
    }

    /// Whether a step's events may be missing, or may be there.
    fn allows(&self, step: usize, there: bool) -> bool {
        match self.steps.get(&step) {
            Some(Word::Did { .. }) => there,
            Some(Word::Refused) => !there,
            Some(Word::Unknown) => true,
            // The writer was in this step when it ended, or never came to it.
            None => !there || self.in_flight().is_none_or(|in_flight| step <= in_flight),
        }
    }

    /// The first append that nothing was said about after the last one about which something was.
    pub(crate) fn in_flight(&self) -> Option<usize> {
        let last = self.steps.keys().last().copied().unwrap_or(0);
        (last + 1..LIFE.len()).find(|step| matches!(LIFE[*step], Step::Append { .. }))
    }
}

/// Whether the log at `path` holds what was told: every acknowledged event once and at its place, of every other append
/// all or nothing, `verify` and SQLite's own check find nothing, keys return the first results, and the log goes on.
pub(crate) fn survives(path: &Path, told: &Told) -> Result<u64, String> {
    if told.store.is_some() {
        let reader = reader(path).map_err(|error| format!("a reader: {}", why(&error)))?;
        holds(&reader, told).map_err(|error| format!("a reader: {error}"))?;
    }
    let log = writer(path).map_err(|error| why(&error))?;
    if let Some(store) = &told.store
        && *store != log.store().to_string()
    {
        return Err(format!("it is another log: {}", log.store()));
    }
    let count = holds(&log, told)?;
    for step in told.steps.keys().copied().chain(told.in_flight()) {
        if how(step).key.is_some() {
            let [first, second] = [(); 2].map(|()| append(&log, &entries(step), &how(step)));
            let (first, second) = (first.map_err(|error| why(&error))?, second.map_err(|error| why(&error))?);
            if first != second {
                return Err(format!("step {step} has two results: {first:?}, {second:?}"));
            }
            if let Some(Word::Did { first: at, anchor }) = told.steps.get(&step)
                && (first.first, first.anchor) != (Some(*at), *anchor)
            {
                return Err(format!("step {step} has another result than at first: {first:?}"));
            }
        }
    }
    let last = log.anchor().map_err(|error| why(&error))?.seq;
    let more = [entry("agent/a", Expectation::Any, vec![fresh("afterwards")])];
    let more = append(&log, &more, &Append::at(2_000)).map_err(|error| why(&error))?;
    if more.first != Some(last.next()) {
        return Err(format!("the next event after {last} came to {:?}", more.first));
    }
    sound(&log, told.anchor())?;
    Ok(count)
}

/// Whether exactly the events are there that were told; gives their number.
pub(crate) fn holds(
    records: &throughline::log::SqliteRecords<crate::log_support::Tally>,
    told: &Told,
) -> Result<u64, String> {
    let found = labelled(records).map_err(|error| why(&error))?;
    if !dense(&found) {
        return Err("its places are not dense".to_owned());
    }
    let mut rest: &[_] = &found;
    let mut seen = BTreeMap::new();
    while let Some(next) = rest.first() {
        let step = next.label.split(' ').nth(1).and_then(|step| step.parse().ok()).filter(|step| *step < LIFE.len());
        let step: usize = step.ok_or_else(|| format!("nobody wrote {:?}", next.label))?;
        let whole = labels(step);
        let same = rest.len() >= whole.len() && rest.iter().zip(&whole).all(|(event, label)| event.label == *label);
        if !same {
            return Err(format!("step {step} is not there as a whole: {:?} at {}", next.label, next.seq));
        }
        if seen.insert(step, next.seq).is_some() {
            return Err(format!("step {step} is there twice"));
        }
        rest = &rest[whole.len()..];
    }
    for step in (0..LIFE.len()).filter(|step| matches!(LIFE[*step], Step::Append { .. })) {
        let at = seen.get(&step);
        if !told.allows(step, at.is_some()) {
            return Err(format!("step {step} is at {at:?}, but was told to be {:?}", told.steps.get(&step)));
        }
        if let (Some(Word::Did { first, .. }), Some(at)) = (told.steps.get(&step), at)
            && first.0 != *at
        {
            return Err(format!("step {step} was acknowledged at {first} and is at {at}"));
        }
    }
    Ok(found.len() as u64)
}

const LOG: &str = "THROUGHLINE_TEST_LIFE";
const ACKS: &str = "FAULT_ACKS";
const AFTER: &str = "THROUGHLINE_TEST_AFTER";

/// What a child does after an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// It ends.
    Stop,
    /// It looks at what is there, makes the file `FAULT_UNTIL` and does the step again.
    Again,
    /// It ends; and it is a second life after one that was ended: only what has a key is done, again or for the first time.
    Second,
}

/// Where a watched writer lives: a folder that is watched, with a log in folders that are not there yet, and beside it
/// what it says and what it does.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = quick_dir();
        std::fs::create_dir(dir.path().join("root")).unwrap();
        Self { dir }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub(crate) fn log(&self) -> PathBuf {
        log_in(&self.root())
    }

    pub(crate) fn acks(&self) -> PathBuf {
        self.dir.path().join("acks")
    }

    pub(crate) fn told(&self) -> Told {
        Told::read(&self.acks())
    }

    /// A child lives its life here, with these words to the shim.
    pub(crate) fn lives(&self, shim: &Shim, after: After, words: &[(&str, String)]) -> ExitStatus {
        let mut command = child(&self.log(), &self.acks(), after);
        shim.under(&mut command, &self.root());
        let errors = File::options().create(true).append(true).open(self.dir.path().join("errors")).unwrap();
        command.env("FAULT_TRACE", self.dir.path().join("trace")).envs(words.iter().cloned()).stderr(errors);
        command.status().unwrap()
    }

    /// What a life does that nothing hinders.
    pub(crate) fn whole_life(shim: &Shim) -> Vec<Op> {
        let world = Self::new();
        assert!(world.lives(shim, After::Stop, &[]).success());
        let (told, ops) = (world.told(), world.trace());
        let appends = LIFE.iter().filter(|step| matches!(step, Step::Append { .. })).count();
        assert_eq!((told.failures.len(), told.steps.len()), (0, appends));
        survives(&world.log(), &told).unwrap();
        ops
    }

    /// What the children complained of.
    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("errors")).unwrap()
    }

    pub(crate) fn trace(&self) -> Vec<Op> {
        trace(&self.dir.path().join("trace"), &self.root())
    }
}

pub(crate) fn log_in(root: &Path) -> PathBuf {
    root.join("made/here/log.db")
}

/// A child that lives the life on the log at `path` and writes what it says to `acks`.
fn child(path: &Path, acks: &Path, after: After) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--nocapture", "log_life::the_writer_whose_life_is_watched"])
        .env(LOG, path)
        .env(ACKS, acks)
        .env(AFTER, format!("{after:?}"))
        .stdout(std::process::Stdio::null());
    command
}

/// Not a test by itself: what the children of the crash tests do.
#[test]
fn the_writer_whose_life_is_watched() {
    let (Some(path), Some(acks)) = (std::env::var_os(LOG), std::env::var_os(ACKS)) else { return };
    let word = std::env::var(AFTER).unwrap();
    let after =
        [After::Stop, After::Again, After::Second].into_iter().find(|after| format!("{after:?}") == word).unwrap();
    let acks = PathBuf::from(acks);
    let tell = File::options().create(true).append(true).open(&acks).unwrap();
    let until = std::env::var_os("FAULT_UNTIL").map(PathBuf::from);
    Living { path: PathBuf::from(path), log: None, acks, tell, after, until }.live();
}

struct Living {
    path: PathBuf,
    log: Option<Writer>,
    acks: PathBuf,
    tell: File,
    after: After,
    until: Option<PathBuf>,
}

impl Living {
    fn live(mut self) {
        for (number, step) in LIFE.iter().enumerate() {
            if self.after == After::Second && matches!(step, Step::Append { key: None, .. }) {
                continue;
            }
            let Err(class) = self.step(number) else { continue };
            if self.after != After::Again {
                return;
            }
            self.look_around(class);
            if let Some(until) = &self.until {
                File::create(until).unwrap();
            }
            let unknown = Told::read(&self.acks).steps.get(&number) == Some(&Word::Unknown);
            if unknown {
                // Whoever has met it writes nothing more through this handle, and the mark tells the next one to settle it.
                let refused = append(self.log.as_ref().unwrap(), &[], &Append::at(1)).unwrap_err();
                assert!(matches!(refused, AppendError::Log(LogError::Poisoned)), "{refused:?}");
                self.log = None;
                self.log = Some(writer(&self.path).unwrap());
            }
            if !unknown || how(number).key.is_some() {
                self.step(number).unwrap();
            }
        }
    }

    fn tell(&mut self, line: &str) {
        self.tell.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn step(&mut self, number: usize) -> Result<(), Class> {
        let failed = match &LIFE[number] {
            Step::Open => match writer(&self.path) {
                Ok(log) => {
                    self.tell(&format!("opened {}", log.store()));
                    self.log = Some(log);
                    return Ok(());
                }
                Err(error) => (error.class(), why(&error)),
            },
            Step::Append { .. } => match append(self.log.as_ref().unwrap(), &entries(number), &how(number)) {
                Ok(Appended { first, anchor, .. }) => {
                    self.tell(&format!("did {number} {} {anchor}", first.unwrap()));
                    return Ok(());
                }
                Err(error @ AppendError::UnknownCommit(_)) => {
                    self.tell(&format!("unknown {number}"));
                    return Err(error.class());
                }
                Err(error) => (error.class(), why(&error)),
            },
            Step::Checkpoint => match checkpoint(self.log.as_ref().unwrap()) {
                Ok(()) => return Ok(()),
                Err(error) => (error.class(), why(&error)),
            },
            Step::Close => {
                self.log = None;
                return Ok(());
            }
        };
        self.tell(&format!("refused {number} {:?}", failed.0));
        eprintln!("step {number}: {}", failed.1);
        Err(failed.0)
    }

    /// What was acknowledged can be read while a writer has just met an error.
    fn look_around(&self, class: Class) {
        let told = Told::read(&self.acks);
        match reader(&self.path) {
            Ok(reader) => holds(&reader, &told).map(drop).unwrap_or_else(|error| panic!("{class:?}: {error}")),
            Err(error) => assert!(told.store.is_none(), "{class:?}: {}", why(&error)),
        }
        if let Some(log) = &self.log {
            let seen: Result<_, LogError> = log.anchor();
            assert!(seen.is_ok() || class == Class::Io, "{seen:?}");
        }
    }
}
