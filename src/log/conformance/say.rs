//! What the rules say to a store, in few words: events, requests, texts, and what came of them.

#![expect(clippy::expect_used, reason = "names that are literals of this suite fit their grammar")]

use std::ops::ControlFlow;

use super::breach::{Bench, Breach, Make};
use super::tally::Tally;
use crate::event::{AgentEvent, Event, FreshIntended, HookAnnounced, HookEvent, SegmentEnded};
use crate::id::{
    Anchor, Digest, Epoch, Frontier, IdempotencyKey, PaneId, SegmentId, Seq, SessionId, StoreId, StreamName, Version,
};
use crate::log::{
    Append, AppendError, Appended, Cursor, Entry, Expectation, Import, ImportError, Imported, Log, LogError, MemoryLog,
    Mode, Recorded, Records,
};

/// The id of a log that a rule makes.
pub(super) const STORE: StoreId = StoreId(uuid::Uuid::from_u128(1 << 64));

/// The id of the log whose export a rule imports.
pub(super) const SOURCE: StoreId = StoreId(uuid::Uuid::from_u128(2 << 64));

/// An empty log, open for writing.
pub(super) struct Desk {
    pub(super) bench: Box<dyn Bench>,
    pub(super) log: Box<dyn Log<Tally>>,
}

impl Desk {
    pub(super) fn new(make: &Make<'_>) -> Result<Self, Breach> {
        Self::of(make, STORE)
    }

    pub(super) fn of(make: &Make<'_>, store: StoreId) -> Result<Self, Breach> {
        let bench = make(store)?;
        let log = bench.writer()?;
        Ok(Self { bench, log })
    }

    pub(super) fn records(&self) -> &dyn Records<Tally> {
        self.log.records()
    }

    pub(super) fn put(&self, stream: &str, events: Vec<Event>) -> Result<Appended, Breach> {
        put(&*self.log, stream, events)
    }

    pub(super) fn append(&self, entries: &[Entry]) -> Result<Appended, AppendError> {
        self.log.append(entries, &Append::at(1))
    }

    /// Appends one event on a condition.
    pub(super) fn expecting(&self, stream: &str, expected: Expectation) -> Result<Appended, AppendError> {
        self.append(&[Entry { expected, ..entry(stream, vec![blank()]) }])
    }

    pub(super) fn import(&self, text: &str, mode: Mode) -> Result<Imported, ImportError> {
        import(&*self.log, text, mode)
    }
}

pub(super) fn put(log: &dyn Log<Tally>, stream: &str, events: Vec<Event>) -> Result<Appended, Breach> {
    Ok(log.append(&[entry(stream, events)], &Append::at(1))?)
}

/// At the time 7, where a line names none.
pub(super) fn import(log: &dyn Log<Tally>, text: &str, mode: Mode) -> Result<Imported, ImportError> {
    log.import(&mut text.as_bytes(), &Import { mode, at_ms: 7 }, &mut |_| {})
}

pub(super) fn stream(name: &str) -> StreamName {
    name.parse().expect("a stream")
}

pub(super) fn entry(name: &str, events: Vec<Event>) -> Entry {
    Entry { stream: stream(name), expected: Expectation::Any, events }
}

pub(super) fn version(number: u64) -> Expectation {
    Expectation::Version(Version(number))
}

pub(super) fn keyed(key: &str) -> Append {
    Append { key: Some(IdempotencyKey::parse(key).expect("a key")), ..Append::at(1) }
}

pub(super) fn blank() -> Event {
    FreshIntended { pane: None }.into()
}

pub(super) fn fresh(pane: &str) -> Event {
    FreshIntended { pane: Some(PaneId::parse(pane).expect("a pane")) }.into()
}

/// The illegal event.
pub(super) fn never() -> Event {
    fresh("never")
}

pub(super) fn ended(epoch: u64) -> Event {
    because("exited", epoch)
}

pub(super) fn because(reason: &str, epoch: u64) -> Event {
    let segment = SegmentId::parse("s").expect("a segment");
    SegmentEnded { segment, reason: reason.into(), code: None, file: None, epoch: Epoch(epoch) }.into()
}

pub(super) fn hook(session: &str) -> Event {
    let session = SessionId::parse(session).expect("a session");
    HookAnnounced { hook: "Stop".into(), session, cause: None, transcript: None, cwd: None }.into()
}

/// What an event of the suite is told apart by.
fn label(event: &Event) -> String {
    match event {
        Event::Agent(AgentEvent::FreshIntended(FreshIntended { pane: Some(pane) })) => pane.to_string(),
        Event::Agent(AgentEvent::SegmentEnded(ended)) => ended.epoch.to_string(),
        Event::Hook(HookEvent::HookAnnounced(hook)) => hook.session.to_string(),
        Event::Agent(_) | Event::Audit(_) => String::new(),
    }
}

pub(super) fn labels(records: &[Recorded]) -> Vec<String> {
    records.iter().map(|recorded| label(&recorded.event)).collect()
}

/// A callback that keeps what it gets, at most so many.
pub(super) fn keep(into: &mut Vec<Recorded>, most: usize) -> impl FnMut(Recorded) -> ControlFlow<()> + '_ {
    move |recorded| {
        into.push(recorded);
        if into.len() >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Every event, as one read hands them out.
pub(super) fn in_order(records: &dyn Records<Tally>) -> Result<Vec<Recorded>, LogError> {
    let mut seen = Vec::new();
    records.read(&mut Cursor::at(Seq(1)), &mut keep(&mut seen, usize::MAX))?;
    Ok(seen)
}

/// Every event by its place: for rules that are not about the order of a read.
pub(super) fn all(records: &dyn Records<Tally>) -> Result<Vec<Recorded>, LogError> {
    let mut seen = in_order(records)?;
    seen.sort_by_key(|recorded| recorded.seq);
    Ok(seen)
}

/// The frontier that a stream's last event says.
pub(super) fn last_of(events: &[Recorded], name: &str) -> Option<Frontier> {
    let last = events.iter().rev().find(|recorded| *recorded.stream == stream(name))?;
    Some(Frontier { stream: stream(name), version: last.version, chain: last.stream_chain })
}

/// A log in memory that this crate vouches for: where the texts come from that a rule imports.
pub(super) fn source() -> Result<MemoryLog<Tally>, Breach> {
    let log = MemoryLog::new(SOURCE);
    for (at_ms, stream, event) in [
        (11, "agent/a", fresh("one")),
        (12, "hook/a", hook("two")),
        (13, "agent/a", ended(3)),
        (14, "agent/b", blank()),
    ] {
        log.append(&[entry(stream, vec![event])], &Append::at(at_ms))?;
    }
    Ok(log)
}

/// An event as the only one of the source.
pub(super) fn alone(name: &str, event: Event) -> Result<Recorded, Breach> {
    let (log, stream) = (Anchor { seq: Seq(0), chain: Digest::GENESIS }, stream(name));
    let empty = Frontier { stream, version: Version(0), chain: Digest::GENESIS };
    let recorded = Recorded::next(SOURCE, &log, &empty, 1, event);
    recorded.map_err(|error| Breach::new("an event", "canonical bytes", &error))
}

pub(super) fn export(records: &dyn Records<Tally>) -> Result<String, Breach> {
    let mut text = Vec::new();
    records.export(&mut text, &mut |_| {})?;
    String::from_utf8(text).map_err(|error| Breach::new("an export", "a text", &error))
}

/// The lines of the source's export: a header and four events.
pub(super) fn lines() -> Result<Vec<String>, Breach> {
    Ok(export(&source()?)?.lines().map(str::to_owned).collect())
}

/// A text of lines.
pub(super) fn text(lines: &[String]) -> String {
    lines.iter().map(|line| line.clone() + "\n").collect()
}
