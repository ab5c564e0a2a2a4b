//! One stored event as bytes, and whether it holds where it stands.
//!
//! Nothing here trusts a column: a value of another type, a negative place, a text that is not UTF-8 is damage that names
//! the event, not a panic.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _};

use super::digest::{self, Content};
use super::error::{Damage, LogError, Problem};
use crate::event::Event;
use crate::id::{Digest, Seq, StoreId, StreamName, Version};

/// The columns of `events` in the order in which [`Row::read`] takes them.
macro_rules! columns {
    () => {
        "e.seq, e.stream, e.version, e.at_ms, e.kind, e.schema, e.body, e.record, e.chain, e.stream_chain"
    };
}
pub(super) use columns;

/// An event as it is stored; texts and bytes are borrowed from SQLite.
pub(super) struct Row<'r> {
    pub(super) seq: u64,
    pub(super) stream: i64,
    pub(super) version: u64,
    pub(super) at_ms: i64,
    pub(super) kind: &'r str,
    pub(super) schema: u32,
    pub(super) body: &'r [u8],
    pub(super) record: Digest,
    pub(super) chain: Digest,
    pub(super) stream_chain: Digest,
}

pub(super) fn cell<'r>(row: &'r rusqlite::Row<'_>, index: usize) -> ValueRef<'r> {
    row.get_ref(index).unwrap_or(ValueRef::Null)
}

pub(super) fn integer(value: ValueRef<'_>) -> Option<i64> {
    if let ValueRef::Integer(number) = value { Some(number) } else { None }
}

/// A place: an integer from 1.
pub(super) fn place(value: ValueRef<'_>) -> Option<u64> {
    integer(value).and_then(|number| u64::try_from(number).ok()).filter(|&number| number > 0)
}

pub(super) fn bytes(value: ValueRef<'_>) -> Option<&[u8]> {
    if let ValueRef::Blob(bytes) = value { Some(bytes) } else { None }
}

pub(super) fn text(value: ValueRef<'_>) -> Option<&str> {
    if let ValueRef::Text(bytes) = value { std::str::from_utf8(bytes).ok() } else { None }
}

pub(super) fn digest_in(value: ValueRef<'_>) -> Option<Digest> {
    bytes(value).and_then(|bytes| bytes.try_into().ok()).map(Digest)
}

impl<'r> Row<'r> {
    /// Reads a row of [`columns!`].
    pub(super) fn read(row: &'r rusqlite::Row<'_>) -> Result<Self, Problem> {
        let seq = place(cell(row, 0)).ok_or_else(|| Problem::at(0, Damage::Unreadable { column: "seq" }))?;
        let bad = |column| move || Problem::at(seq, Damage::Unreadable { column });
        Ok(Self {
            seq,
            stream: integer(cell(row, 1)).ok_or_else(bad("stream"))?,
            version: place(cell(row, 2)).ok_or_else(bad("version"))?,
            at_ms: integer(cell(row, 3)).ok_or_else(bad("at_ms"))?,
            kind: text(cell(row, 4)).ok_or_else(bad("kind"))?,
            schema: integer(cell(row, 5)).and_then(|number| u32::try_from(number).ok()).ok_or_else(bad("schema"))?,
            body: bytes(cell(row, 6)).ok_or_else(bad("body"))?,
            record: digest_in(cell(row, 7)).ok_or_else(bad("record"))?,
            chain: digest_in(cell(row, 8)).ok_or_else(bad("chain"))?,
            stream_chain: digest_in(cell(row, 9)).ok_or_else(bad("stream_chain"))?,
        })
    }

    /// What the record's digest should be.
    pub(super) fn digest(&self, store: StoreId, stream: &str) -> Digest {
        let Self { version, at_ms, kind, schema, body, .. } = *self;
        Content { stream, version, at_ms, kind, schema, body }.record(store)
    }

    /// Whether the row is what was written at its place, given the chain before it and the end of its stream.
    pub(super) fn fault(&self, store: StoreId, stream: &str, before: &Digest, tail: &Tail) -> Option<Fault> {
        if let Some(fault) = self.fault_in_log(store, stream, before, tail.version) {
            Some(fault)
        } else if digest::stream_link(&tail.chain, &self.record) != self.stream_chain {
            Some(Fault::StreamChain)
        } else {
            None
        }
    }

    /// As [`Row::fault`], by the log's chain alone: it has every record, so a stream's own chain adds nothing here.
    fn fault_in_log(&self, store: StoreId, stream: &str, before: &Digest, version: u64) -> Option<Fault> {
        if self.digest(store, stream) != self.record {
            Some(Fault::Record)
        } else if digest::link(before, &self.record) != self.chain {
            Some(Fault::Chain)
        } else if self.version != version + 1 {
            Some(Fault::Version)
        } else {
            None
        }
    }

    /// The typed event.
    pub(super) fn event(&self, stream: &StreamName) -> Result<Event, Problem> {
        Event::decode(stream, self.kind, self.schema, self.body)
            .map_err(|error| Problem::at(self.seq, Damage::Undecodable(error)).of(stream))
    }

    pub(super) fn tail(&self) -> Tail {
        Tail { version: self.version, chain: self.stream_chain }
    }
}

/// What about a row does not hold. `verify` finds out why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The row's content and its record digest differ.
    Record,
    /// The row's chain does not continue the one before it.
    Chain,
    /// The row is not the next one of its stream.
    Version,
    /// The row's stream chain does not continue the one before it.
    StreamChain,
}

/// The end of a stream: how many events, and the digest over them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tail {
    pub(super) version: u64,
    pub(super) chain: Digest,
}

impl Tail {
    pub(super) const EMPTY: Self = Self { version: 0, chain: Digest::GENESIS };
}

/// A stream's name, parsed and as text.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: Arc<StreamName>,
    pub(super) text: String,
}

impl Named {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self { name: Arc::new(text.parse().ok()?), text: text.to_owned() })
    }
}

/// One event as it is stored, checked, with what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// Its place in the log.
    pub seq: Seq,
    /// Its stream; shared with the other events of one read.
    pub stream: Arc<StreamName>,
    /// Its place in the stream.
    pub version: Version,
    /// When the writer's wall clock said it was, in milliseconds since 1970. Decides nothing.
    pub at_ms: i64,
    /// The kind.
    pub kind: &'static str,
    /// The schema as stored; `event` is lifted to the present one.
    pub schema: u32,
    /// The bytes as stored.
    pub body: Vec<u8>,
    /// What they say.
    pub event: Event,
    /// The digest over the stored bytes, bound to store and stream.
    pub record: Digest,
    /// The digest over the log up to and with this event.
    pub chain: Digest,
    /// The digest over the stream up to and with this event, as stored: `verify` and reads of one stream check it.
    pub stream_chain: Digest,
}

impl Recorded {
    pub(super) fn of(row: &Row<'_>, stream: &Arc<StreamName>) -> Result<Self, Problem> {
        let event = row.event(stream)?;
        Ok(Self {
            seq: Seq(row.seq),
            stream: Arc::clone(stream),
            kind: event.kind(),
            version: Version(row.version),
            at_ms: row.at_ms,
            schema: row.schema,
            body: row.body.to_owned(),
            event,
            record: row.record,
            chain: row.chain,
            stream_chain: row.stream_chain,
        })
    }
}

/// Walks events in log order and refuses the first that does not hold. Memory: one entry for each stream met.
pub(super) struct Walk {
    store: StoreId,
    /// The next place.
    pub(super) next: u64,
    /// The chain before it.
    pub(super) chain: Digest,
    met: HashMap<i64, Met>,
    /// Begun at the first event: a stream that was not met yet is empty.
    whole: bool,
}

/// A stream that a walk has met: its name, and its end as far as the walk has come.
#[derive(Clone)]
pub(super) struct Met {
    pub(super) named: Rc<Named>,
    pub(super) tail: Tail,
}

impl Walk {
    /// From the first event on.
    pub(super) fn whole(store: StoreId) -> Self {
        Self { store, next: 1, chain: Digest::GENESIS, met: HashMap::new(), whole: true }
    }

    /// From `from` on, on the word of the event before it.
    pub(super) fn from(conn: &Connection, store: StoreId, from: u64) -> Result<Self, LogError> {
        let from = from.max(1);
        let chain = if from == 1 { Some(Digest::GENESIS) } else { chain_at(conn, from - 1)? };
        let chain = chain.ok_or_else(|| Problem::at(from - 1, Damage::Missing { next: Seq(from) }))?;
        Ok(Self { next: from, chain, whole: from == 1, ..Self::whole(store) })
    }

    /// The stream of a row as it was before the row; nothing where its name is gone or is none.
    pub(super) fn meet(&mut self, conn: &Connection, row: &Row<'_>) -> Result<Option<&mut Met>, LogError> {
        match self.met.entry(row.stream) {
            Entry::Occupied(met) => Ok(Some(met.into_mut())),
            Entry::Vacant(place) => {
                let Some(named) = name_of(conn, row.stream)? else { return Ok(None) };
                let tail = if self.whole || row.version <= 1 { Tail::EMPTY } else { tail_before(conn, row)? };
                Ok(Some(place.insert(Met { named: Rc::new(named), tail })))
            }
        }
    }

    /// How many events of a stream were passed.
    pub(super) fn has_passed(&self, stream: i64) -> bool {
        self.met.get(&stream).is_some_and(|met| met.tail.version > 0)
    }

    /// Checks the next row and goes past it.
    pub(super) fn step(&mut self, conn: &Connection, row: &Row<'_>) -> Result<Rc<Named>, LogError> {
        if row.seq != self.next {
            return Err(Problem::at(self.next, Damage::Missing { next: Seq(row.seq) }).into());
        }
        let (store, before) = (self.store, self.chain);
        let met = self.meet(conn, row)?;
        let met = met.ok_or_else(|| Problem::at(row.seq, Damage::NoStream { id: row.stream }))?;
        if row.fault_in_log(store, &met.named.text, &before, met.tail.version).is_some() {
            return Err(Problem::at(row.seq, Damage::Edited).of(&met.named.name).into());
        }
        met.tail = row.tail();
        let named = Rc::clone(&met.named);
        self.pass(row);
        Ok(named)
    }

    /// Goes past a row whose stream was moved on.
    pub(super) fn pass(&mut self, row: &Row<'_>) {
        self.next = row.seq + 1;
        self.chain = row.chain;
    }
}

fn tail_before(conn: &Connection, row: &Row<'_>) -> Result<Tail, LogError> {
    let version = row.version - 1;
    let chain = stream_chain_at(conn, row.stream, version)?
        .ok_or_else(|| Problem::at(row.seq, Damage::Missing { next: Seq(row.seq) }))?;
    Ok(Tail { version, chain })
}

/// The name of a stream by its number; nothing where its row is gone or is no stream's name.
pub(super) fn name_of(conn: &Connection, id: i64) -> Result<Option<Named>, LogError> {
    let mut statement = conn.prepare_cached("SELECT name FROM streams WHERE id = ?1")?;
    let found = statement.query_row([id], |row| Ok(text(cell(row, 0)).and_then(Named::parse))).optional()?;
    Ok(found.flatten())
}

/// The chain at a place; nothing where there is no event.
pub(super) fn chain_at(conn: &Connection, seq: u64) -> Result<Option<Digest>, LogError> {
    let Ok(seq) = i64::try_from(seq) else { return Ok(None) };
    let mut statement = conn.prepare_cached("SELECT chain FROM events WHERE seq = ?1")?;
    Ok(statement.query_row([seq], |row| Ok(digest_in(cell(row, 0)))).optional()?.flatten())
}

/// The stream chain at a version; nothing where there is no event.
pub(super) fn stream_chain_at(conn: &Connection, stream: i64, version: u64) -> Result<Option<Digest>, LogError> {
    let Ok(version) = i64::try_from(version) else { return Ok(None) };
    let mut statement = conn.prepare_cached("SELECT stream_chain FROM events WHERE stream = ?1 AND version = ?2")?;
    Ok(statement.query_row((stream, version), |row| Ok(digest_in(cell(row, 0)))).optional()?.flatten())
}
