//! Events on their way into the log, inside one write transaction: the part that an append and an import share.
//!
//! A batch reads the end of the log and of each stream once, folds every event before it is written, and knows the
//! digests it ends with. What it wrote becomes true by the caller's COMMIT and by nothing else.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection};

use super::digest::{self, Content};
use super::error::LogError;
use super::row::Tail;
use super::{Fold, memo, read};
use crate::id::{Anchor, Seq, StoreId, StreamName};

const INSERT: &str = "INSERT INTO events (seq, stream, version, at_ms, kind, schema, body, record, chain, stream_chain) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

/// How many streams a writer remembers; past that it starts anew.
const REMEMBERED: usize = 4_096;

/// What a writer remembers of the log as its last commit left it: true as long as the log still ends there.
#[derive(Default)]
pub(super) struct Cache(RefCell<Remembered>);

#[derive(Default)]
struct Remembered {
    head: Option<Anchor>,
    /// Counts how often somebody else was found to have written: ends of streams from before have to be looked up again.
    generation: u64,
    tips: HashMap<StreamName, Kept>,
}

/// A stream as a commit of this writer left it.
struct Kept {
    generation: u64,
    tip: Box<dyn Any>,
}

/// A stream that was remembered, and whether it still ends there if the log does.
struct Known<F> {
    name: StreamName,
    tip: Tip<F>,
    fresh: bool,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

impl Cache {
    /// Forgets everything: after a commit whose result is not known.
    pub(super) fn clear(&self) {
        *self.0.borrow_mut() = Remembered::default();
    }

    fn is_current(&self, head: &Anchor) -> bool {
        self.0.borrow().head.as_ref() == Some(head)
    }

    fn take<F: Fold>(&self, stream: &StreamName) -> Option<Known<F>> {
        let mut remembered = self.0.borrow_mut();
        let (name, kept) = remembered.tips.remove_entry(stream)?;
        let tip = *kept.tip.downcast::<Tip<F>>().ok()?;
        Some(Known { name, tip, fresh: kept.generation == remembered.generation })
    }

    /// Remembers what a batch left, once it is committed.
    pub(super) fn keep<F: Fold>(&self, end: End<F>) {
        let mut remembered = self.0.borrow_mut();
        if !end.current {
            remembered.generation += 1;
        }
        if remembered.tips.len() + end.tips.len() > REMEMBERED {
            remembered.tips.clear();
        }
        remembered.head = Some(end.head);
        let generation = remembered.generation;
        for (stream, tip) in end.tips {
            remembered.tips.insert(stream, Kept { generation, tip: Box::new(tip) });
        }
    }
}

/// What a batch leaves: the end of the log and of its streams.
pub(super) struct End<F> {
    head: Anchor,
    current: bool,
    tips: Vec<(StreamName, Tip<F>)>,
}

/// The end of one stream, and its state once that was asked for.
pub(super) struct Tip<F> {
    id: Option<i64>,
    pub(super) text: String,
    pub(super) tail: Tail,
    pub(super) state: Option<F>,
    memo: u64,
}

/// An event as it is to be stored.
pub(super) struct Incoming<'a> {
    pub(super) at_ms: i64,
    pub(super) kind: &'a str,
    pub(super) schema: u32,
    pub(super) body: &'a [u8],
}

/// See the file.
pub(super) struct Batch<'c, F> {
    conn: &'c Connection,
    insert: CachedStatement<'c>,
    pub(super) store: StoreId,
    pub(super) head: Anchor,
    /// The head is what the cache knows: nobody else wrote since.
    current: bool,
    cache: &'c Cache,
    /// The streams that were asked for, in that order.
    tips: Vec<(StreamName, Tip<F>)>,
    places: HashMap<StreamName, Place>,
}

/// Where a batch keeps a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(usize);

impl<'c, F: Fold> Batch<'c, F> {
    /// Begins at the end of the log, inside the caller's transaction.
    pub(super) fn new(conn: &'c Connection, store: StoreId, cache: &'c Cache) -> Result<Self, LogError> {
        let head = read::head(conn)?;
        let current = cache.is_current(&head);
        let insert = conn.prepare_cached(INSERT)?;
        Ok(Self { conn, insert, store, head, current, cache, tips: Vec::new(), places: HashMap::new() })
    }

    /// Where a stream is kept from now on; its end is looked up the first time.
    pub(super) fn place(&mut self, stream: &StreamName) -> Result<Place, LogError> {
        if let Some(place) = self.places.get(stream) {
            return Ok(*place);
        }
        let (name, tip) = match self.cache.take::<F>(stream) {
            Some(Known { name, tip, fresh: true }) if self.current => (name, tip),
            Some(Known { name, tip, .. }) => (name, look(self.conn, stream, Some(tip))?),
            None => (stream.clone(), look(self.conn, stream, None)?),
        };
        let place = Place(self.tips.len());
        self.places.insert(stream.clone(), place);
        self.tips.push((name, tip));
        Ok(place)
    }

    /// The end of a stream.
    pub(super) fn tip(&mut self, place: Place) -> &mut Tip<F> {
        &mut self.tips[place.0].1
    }

    /// Every stream that was asked for, in the order of the first asking, with its end.
    pub(super) fn ends(&self) -> impl Iterator<Item = (&StreamName, Tail)> {
        self.tips.iter().map(|(name, tip)| (name, tip.tail))
    }

    /// The state of a stream, to be given back to its tip.
    pub(super) fn folded(&mut self, place: Place) -> Result<F, LogError> {
        let (conn, store) = (self.conn, self.store);
        let (stream, tip) = &mut self.tips[place.0];
        let state = match tip.state.take() {
            Some(state) => state,
            None if tip.id.is_none() => F::empty(&*stream),
            None => {
                let loaded = memo::load::<F>(conn, store, stream)?;
                (tip.tail, tip.memo) = (loaded.tail, loaded.memo);
                loaded.state
            }
        };
        Ok(state)
    }

    /// Writes an event that its stream's fold has taken.
    pub(super) fn write(&mut self, place: Place, event: &Incoming<'_>) -> Result<(), LogError> {
        let (store, before) = (self.store, self.head.chain);
        let conn = self.conn;
        let seq = self.head.seq.next();
        let tip = &mut self.tips[place.0].1;
        let id = match tip.id {
            Some(id) => id,
            None => {
                conn.prepare_cached("INSERT INTO streams (name) VALUES (?1)")?.execute([&tip.text])?;
                *tip.id.insert(conn.last_insert_rowid())
            }
        };
        let version = tip.tail.version + 1;
        let Incoming { at_ms, kind, schema, body } = *event;
        let record = Content { stream: &tip.text, version, at_ms, kind, schema, body }.record(store);
        let chain = digest::link(&before, &record);
        let stream_chain = digest::stream_link(&tip.tail.chain, &record);
        self.insert.execute((
            stored(seq.0),
            id,
            stored(version),
            at_ms,
            kind,
            schema,
            body,
            &record.0[..],
            &chain.0[..],
            &stream_chain.0[..],
        ))?;
        tip.tail = Tail { version, chain: stream_chain };
        self.head = Anchor { seq, chain };
        Ok(())
    }

    /// Writes the memos that are due, and ends.
    pub(super) fn end(mut self) -> Result<End<F>, LogError> {
        for (_, tip) in &mut self.tips {
            if let (Some(id), Some(state)) = (tip.id, &tip.state)
                && tip.tail.version - tip.memo >= memo::EVERY
            {
                memo::write(self.conn, self.store, id, &tip.text, tip.tail, state)?;
                tip.memo = tip.tail.version;
            }
        }
        Ok(End { head: self.head, current: self.current, tips: self.tips })
    }

    /// The place that the next event gets.
    pub(super) fn next(&self) -> Seq {
        self.head.seq.next()
    }
}

/// Looks where a stream ends; what is known of it is kept if it ends there.
fn look<F>(conn: &Connection, stream: &StreamName, known: Option<Tip<F>>) -> Result<Tip<F>, LogError> {
    let text = stream.to_string();
    let id = memo::stream_id(conn, &text)?;
    let tail = match id {
        Some(id) => memo::tail_of(conn, id)?,
        None => Tail::EMPTY,
    };
    match known {
        Some(tip) if tip.id == id && tip.tail == tail => Ok(tip),
        Some(_) | None => Ok(Tip { id, text, tail, state: None, memo: 0 }),
    }
}

/// A place as SQLite stores it. No log gets near the end of it.
pub(super) fn stored(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}
