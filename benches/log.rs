//! Append and replay beside raw SQLite with the same pragmas; the fold alone.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use throughline::chain::fold::State;
use throughline::event::Event;
use throughline::id::{Digest, Seq, StreamName};
use throughline::log::{Append, Entry, Expectation, Fold, Log as _, Opening, Reader, Records as _, SqliteLog};

use crate::{faster, median, paired};

const STREAMS: usize = 1_000;

/// An event of about 200 bytes, always legal.
const BODY: &str = r#"{"session":"aaaaaaaa-0000-4000-8000-00000000000a","recorded":{"bytes":145824,"tail":"0000000000000000000000000000000000000000000000000000000000000000"},"found":{"bytes":150072,"tail":"0000000000000000000000000000000000000000000000000000000000000000"}}"#;

fn event() -> Event {
    Event::decode(&stream(0), "growth_seen", 1, BODY.as_bytes()).expect("an event")
}

fn stream(index: usize) -> StreamName {
    format!("agent/a-{}", index % STREAMS).parse().expect("a stream")
}

/// Raw SQLite: the same pragmas, the same uniqueness, no digests, no fold.
pub(crate) struct Raw {
    conn: Connection,
    versions: Vec<i64>,
    body: Vec<u8>,
}

impl Raw {
    pub(crate) fn new(path: &Path) -> Self {
        let conn = Connection::open(path).expect("SQLite");
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; \
             CREATE TABLE events (seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, \
             at_ms INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (stream, version)) STRICT",
        )
        .expect("a schema");
        Self { conn, versions: vec![0; STREAMS], body: event().encode().expect("bytes").body }
    }

    /// One that is there already, for one of several processes.
    pub(crate) fn shared(path: &Path, busy: std::time::Duration) -> Self {
        let conn = Connection::open(path).expect("SQLite");
        conn.busy_timeout(busy).expect("a time-out");
        conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0").expect("pragmas");
        Self { conn, versions: Vec::new(), body: event().encode().expect("bytes").body }
    }

    /// One event in a commit of its own, into the stream of one process.
    pub(crate) fn append_one(&mut self, stream: usize, version: usize) {
        self.conn.execute_batch("BEGIN IMMEDIATE").expect("begin");
        let mut statement = self
            .conn
            .prepare_cached("INSERT INTO events (stream, version, at_ms, kind, body) VALUES (?, ?, ?, ?, ?)")
            .expect("an insert");
        let values = (i64::try_from(stream).expect("small"), i64::try_from(version).expect("small"), 0, "growth_seen");
        statement.execute((values.0, values.1, values.2, values.3, &self.body)).expect("inserted");
        drop(statement);
        self.conn.execute_batch("COMMIT").expect("commit");
    }

    pub(crate) fn checkpoint(&self) {
        self.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).expect("a checkpoint");
    }

    /// Runs of events, each in a stream of its own.
    pub(crate) fn append_runs(&mut self, first: usize, streams: usize, run: usize) {
        let at = (first..first + streams).flat_map(|stream| std::iter::repeat_n(stream, run));
        self.append_to(at);
    }

    pub(crate) fn append(&mut self, from: usize, count: usize) {
        self.append_to(from..from + count);
    }

    fn append_to(&mut self, streams: impl Iterator<Item = usize>) {
        self.conn.execute_batch("BEGIN IMMEDIATE").expect("begin");
        for index in streams {
            let stream = index % STREAMS;
            self.versions[stream] += 1;
            let mut statement = self
                .conn
                .prepare_cached("INSERT INTO events (stream, version, at_ms, kind, body) VALUES (?, ?, ?, ?, ?)")
                .expect("an insert");
            let stream = i64::try_from(stream).expect("small");
            let version = self.versions[usize::try_from(stream).expect("small")];
            statement.execute((stream, version, 0, "growth_seen", &self.body)).expect("inserted");
        }
        self.conn.execute_batch("COMMIT").expect("commit");
    }
}

/// One event for the stream of one process.
pub(crate) fn entry_for(number: usize) -> Entry {
    Entry { stream: stream(number), expected: Expectation::Any, events: vec![event()] }
}

/// So many events for one stream.
pub(crate) fn burst(index: usize, events: usize) -> Entry {
    Entry { stream: stream(index), expected: Expectation::Any, events: vec![event(); events] }
}

/// What one call of append is given: made before the clock runs, as the raw side's bytes are.
fn entries(from: usize, count: usize) -> Vec<Entry> {
    let event = event();
    (from..from + count)
        .map(|index| Entry { stream: stream(index), expected: expected(index), events: vec![event.clone()] })
        .collect()
}

pub(crate) fn append(log: &SqliteLog<State>, entries: &[Entry]) {
    log.append(entries, &Append::at(0)).expect("legal events");
}

fn expected(index: usize) -> Expectation {
    Expectation::Version(throughline::id::Version((index / STREAMS) as u64))
}

pub(crate) fn appends() {
    let dir = tempfile::tempdir().expect("a folder");
    for (count, rounds, budget) in [(1, 3_000, "≥ 0.9×"), (100, 300, "≥ 0.8×")] {
        let log =
            SqliteLog::<State>::open(&dir.path().join(format!("ours-{count}.db")), &Opening::default()).expect("a log");
        let mut raw = Raw::new(&dir.path().join(format!("raw-{count}.db")));
        let batches: Vec<_> = (0..=rounds).map(|round| entries(round * count, count)).collect();
        let (mut batches, mut raw_at) = (batches.iter(), 0);
        let times = paired(
            rounds,
            || append(&log, batches.next().expect("a batch a round")),
            || {
                raw.append(raw_at, count);
                raw_at += count;
            },
        );
        faster(&format!("append, {count} a commit, over raw SQLite"), count, times, budget);
    }
}

pub(crate) fn replays() {
    let dir = tempfile::tempdir().expect("a folder");
    replay(dir.path());
    fold();
}

fn replay(dir: &Path) {
    const EVENTS: usize = 200_000;
    let path = dir.join("replay.db");
    {
        let log = SqliteLog::<State>::open(&path, &Opening::default()).expect("a log");
        for from in (0..EVENTS).step_by(1_000) {
            append(&log, &entries(from, 1_000));
        }
        log.checkpoint().expect("a checkpoint");
    }
    let reader = Reader::<State>::open(&path).expect("a reader");
    let raw = Connection::open_with_flags(&path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("SQLite");
    let ours = || {
        let mut count = 0;
        reader
            .events(Seq(1), &mut |_| {
                count += 1;
                ControlFlow::Continue(())
            })
            .expect("a sound log");
        assert_eq!(count, EVENTS);
    };
    let bare = || {
        let stream = stream(0);
        let mut statement = raw.prepare_cached("SELECT kind, schema, body FROM events ORDER BY seq").expect("a query");
        let mut rows = statement.query([]).expect("rows");
        let mut count = 0;
        let mut chain = Digest::GENESIS;
        while let Some(row) = rows.next().expect("a row") {
            let kind = row.get_ref(0).expect("a column").as_str().expect("text");
            let schema = row.get::<_, u32>(1).expect("a number");
            let body = row.get_ref(2).expect("a column").as_bytes().expect("bytes");
            let event = Event::decode(&stream, kind, schema, body).expect("an event");
            chain = Digest::of("x", &[&chain.0, body]);
            std::hint::black_box((event, chain));
            count += 1;
        }
        assert_eq!(count, EVENTS);
    };
    let times = paired(7, ours, bare);
    faster("typed, verified replay over raw read + serde + BLAKE3", EVENTS, times, "≥ 0.8×");
}

fn fold() {
    const EVENTS: usize = 1_000_000;
    let stream = stream(0);
    let event = event();
    let rates = (0..7).map(|_| {
        let mut state = State::empty(&stream);
        let started = Instant::now();
        for _ in 0..EVENTS {
            state.apply(std::hint::black_box(&event)).expect("legal");
        }
        #[expect(clippy::cast_precision_loss, reason = "counts for people")]
        let rate = EVENTS as f64 / started.elapsed().as_secs_f64();
        std::hint::black_box(state);
        rate
    });
    let rate = median(rates.collect());
    println!("{:<58} {:>10.1} M/s {:>20}  ≥ 5 M/s class", "fold alone", rate / 1e6, "");
}
