//! A small fold, and short ways to say what is appended.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use throughline::event::{AgentEvent, Event, FreshIntended, HookAnnounced, SegmentEnded};
use throughline::id::{Anchor, Digest, Epoch, PaneId, SegmentId, Seq, SessionId, StreamName};
use throughline::log::{
    Append, AppendError, Appended, Entry, Expectation, Fold, Log as _, LogError, OpenError, Opening, Records as _,
    SqliteLog, SqliteRecords, Verification,
};

pub(crate) type Log = SqliteLog<Tally>;
pub(crate) type Reader = throughline::log::Reader<Tally>;

/// Counts events and knows the highest epoch. A pane called `never` is illegal; so is an epoch below the highest, to
/// whoever is asked for admittance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub(crate) events: u64,
    pub(crate) epoch: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct No(pub(crate) &'static str);

fn epoch_of(event: &Event) -> Option<u64> {
    if let Event::Agent(AgentEvent::SegmentEnded(ended)) = event { Some(ended.epoch.0) } else { None }
}

impl Fold for Tally {
    const VERSION: u32 = 7;
    type Illegal = No;

    fn empty(_: &StreamName) -> Self {
        Self { events: 0, epoch: 0 }
    }

    fn complete(&self, event: Event) -> Event {
        if let Event::Agent(AgentEvent::SegmentEnded(ended)) = &event
            && ended.epoch.0 == 0
        {
            return SegmentEnded { epoch: Epoch(self.epoch), ..ended.clone() }.into();
        }
        event
    }

    fn admit(&self, event: &Event) -> Result<(), No> {
        if epoch_of(event).is_some_and(|epoch| epoch < self.epoch) { Err(No("that lease is over")) } else { Ok(()) }
    }

    fn apply(&mut self, event: &Event) -> Result<(), No> {
        if let Event::Agent(AgentEvent::FreshIntended(FreshIntended { pane: Some(pane) })) = event
            && pane.as_str() == "never"
        {
            return Err(No("never means never"));
        }
        self.events += 1;
        self.epoch = self.epoch.max(epoch_of(event).unwrap_or(0));
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        [self.events.to_le_bytes(), self.epoch.to_le_bytes()].concat()
    }

    fn decode(_: &StreamName, bytes: &[u8]) -> Option<Self> {
        let (events, epoch) = bytes.split_at_checked(8)?;
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        Some(Self { events: number(events)?, epoch: number(epoch)? })
    }
}

pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("log.db")
    }

    pub(crate) fn log(&self) -> Log {
        Log::open(&self.path(), &Opening { busy_ms: 20_000, ..Opening::default() }).unwrap()
    }

    /// Every name in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.dir.path())
    }

    /// Runs SQL past the crate, as somebody with a shell would.
    pub(crate) fn tamper(&self, sql: &str) {
        let conn = rusqlite::Connection::open(self.path()).unwrap();
        for table in ["store", "streams", "events", "receipts"] {
            conn.execute_batch(&format!(
                "DROP TRIGGER IF EXISTS {table}_no_update; DROP TRIGGER IF EXISTS {table}_no_delete"
            ))
            .unwrap();
        }
        conn.execute_batch(sql).unwrap();
    }
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn stream(name: &str) -> StreamName {
    name.parse().unwrap()
}

pub(crate) fn fresh(pane: &str) -> Event {
    FreshIntended { pane: Some(PaneId::parse(pane).unwrap()) }.into()
}

pub(crate) fn blank() -> Event {
    FreshIntended { pane: None }.into()
}

pub(crate) fn ended(epoch: u64) -> Event {
    let segment = SegmentId::parse("s").unwrap();
    SegmentEnded { segment, reason: "exited".into(), code: None, file: None, epoch: Epoch(epoch) }.into()
}

pub(crate) fn hook(session: &str) -> Event {
    let session = SessionId::parse(session).unwrap();
    HookAnnounced { hook: "Stop".into(), session, cause: None, transcript: None, cwd: None }.into()
}

pub(crate) fn entry(name: &str, expected: Expectation, events: Vec<Event>) -> Entry {
    Entry { stream: stream(name), expected, events }
}

pub(crate) fn put(log: &Log, name: &str, events: Vec<Event>) -> Appended {
    log.append(&[entry(name, Expectation::Any, events)], &Append::at(1)).unwrap()
}

/// A log of `count` events in three streams, one commit each, with memos.
pub(crate) fn filled(place: &Place, count: u64) -> Log {
    let log = place.log();
    fill(&log, count);
    log
}

pub(crate) fn fill(log: &Log, count: u64) {
    for number in 0..count {
        match number % 4 {
            0 | 1 => put(log, "agent/a", vec![fresh(&format!("p{number}"))]),
            2 => put(log, "agent/b", vec![ended(number)]),
            _ => put(log, "hook/a", vec![hook(&format!("s{number}"))]),
        };
    }
}

pub(crate) fn verify(records: &SqliteRecords<Tally>, anchor: Option<Anchor>) -> Verification {
    records.verify(anchor, &mut |_| {}).unwrap()
}

/// The words of every problem.
pub(crate) fn problems(records: &SqliteRecords<Tally>, anchor: Option<Anchor>) -> Vec<String> {
    verify(records, anchor).problems.iter().map(ToString::to_string).collect()
}

/// A log that is open for writing, whatever its type is called.
pub(crate) type Writer = Log;

/// Opens a log for writing and makes it where there is none.
pub(crate) fn writer(path: &Path) -> Result<Writer, OpenError> {
    Writer::open(path, &Opening { busy_ms: 60_000, ..Opening::default() })
}

/// Opens a log for reading.
pub(crate) fn reader(path: &Path) -> Result<Reader, OpenError> {
    Reader::open(path)
}

/// Appends by the rules of [`Tally`].
pub(crate) fn append(log: &Writer, entries: &[Entry], how: &Append) -> Result<Appended, AppendError> {
    log.append(entries, how)
}

/// Copies the WAL back.
pub(crate) fn checkpoint(log: &Writer) -> Result<(), LogError> {
    log.checkpoint()
}

/// An event as the tests of crashes know it again: by its place and by the pane that it names.
pub(crate) struct Labelled {
    pub(crate) seq: u64,
    pub(crate) chain: Digest,
    pub(crate) stream: String,
    pub(crate) version: u64,
    pub(crate) label: String,
}

/// Every event of a log, in order.
pub(crate) fn labelled(records: &SqliteRecords<Tally>) -> Result<Vec<Labelled>, LogError> {
    let mut found = Vec::new();
    records.events(Seq(0), &mut |recorded| {
        let label = if let Event::Agent(AgentEvent::FreshIntended(FreshIntended { pane: Some(pane) })) = &recorded.event
        {
            pane.to_string()
        } else {
            recorded.event.kind().to_owned()
        };
        let (seq, chain, version) = (recorded.seq.0, recorded.chain, recorded.version.0);
        found.push(Labelled { seq, chain, stream: recorded.stream.to_string(), version, label });
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Whether the places in a log and in each of its streams are dense from 1.
pub(crate) fn dense(events: &[Labelled]) -> bool {
    let mut ends = std::collections::BTreeMap::new();
    let in_stream = |event: &Labelled| {
        let end = ends.entry(event.stream.clone()).or_insert(0);
        *end += 1;
        *end == event.version
    };
    events.iter().zip(1..).all(|(event, seq)| event.seq == seq) && events.iter().all(in_stream)
}

/// An error with everything behind it, in one line.
pub(crate) fn why(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line
}

/// Says why, where `verify` or SQLite's own check of the file finds anything.
pub(crate) fn sound(records: &SqliteRecords<Tally>, anchor: Option<Anchor>) -> Result<(), String> {
    let found = records.verify(anchor, &mut |_| {}).map_err(|error| why(&error))?;
    if let Some(problem) = found.problems.first() {
        return Err(format!("verify: {problem}"));
    }
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let conn = rusqlite::Connection::open_with_flags(records.path(), flags).map_err(|error| why(&error))?;
    let check: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(|error| why(&error))?;
    if check == "ok" { Ok(()) } else { Err(format!("integrity_check: {check}")) }
}

/// A seeded generator: the same numbers in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `sides`.
    pub(crate) fn below(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// A folder for what is only looked at: in memory where that is possible, for a sync costs nothing there.
pub(crate) fn quick_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// Does every job, on two threads.
pub(crate) fn share<J: Send>(jobs: impl Iterator<Item = J> + Send, each: impl Fn(J) + Sync) {
    let jobs = std::sync::Mutex::new(jobs);
    let next = || jobs.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(job) = next() {
                    each(job);
                }
            });
        }
    });
}
