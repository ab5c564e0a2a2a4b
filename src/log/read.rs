//! What can be read from a log, by its writer and by a [`Reader`](super::Reader) alike.
//!
//! Every call is one read transaction: it sees one moment of the log, whatever other processes append meanwhile. Where no
//! lock can be taken (a log whose WAL is absent may lie on a medium that nobody writes), the file is looked at before and
//! after, and a call that saw it change is made again.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _};

use super::connect::{Source, reading};
use super::error::{Damage, LogError, Problem};
use super::place;
use super::row::{Recorded, Row, Tail, Walk, cell, columns, digest_in, place as place_in};
use super::{Fold, digest, memo, schema};
use crate::id::{Anchor, Digest, Frontier, Seq, StoreId, StreamName, Version};

/// What can be read from a log. [`Log`](super::Log) and [`Reader`](super::Reader) both are one (by `Deref`).
///
/// Nothing here writes an event or a memo. What is handed out was checked as far as it was read: a whole history only by
/// [`Records::verify`].
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    conn: RefCell<Rc<Connection>>,
    source: RefCell<Source>,
    store: Cell<StoreId>,
    /// The log has events: its store id can no longer change (a verified import sets it in an empty log).
    settled: Cell<bool>,
}

impl Records {
    pub(super) fn new(path: PathBuf, conn: Connection, source: Source) -> Result<Self, LogError> {
        conn.set_prepared_statement_cache_capacity(64);
        let records = Self {
            path,
            conn: RefCell::new(Rc::new(conn)),
            source: RefCell::new(source),
            store: Cell::new(StoreId(uuid::Uuid::nil())),
            settled: Cell::new(false),
        };
        records.span(|_, _| Ok(()))?;
        Ok(records)
    }

    /// Where the log is, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which log this is: every digest in it is bound to this id.
    #[must_use]
    pub fn store(&self) -> StoreId {
        self.store.get()
    }

    /// The state of the whole log: its last event's place, and the digest over everything up to it.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the log cannot be read.
    pub fn anchor(&self) -> Result<Anchor, LogError> {
        self.span(|conn, _| head(conn))
    }

    /// The last event of a stream, and the digest over all of them; version 0 where there is none.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the log cannot be read.
    pub fn frontier(&self, stream: &StreamName) -> Result<Frontier, LogError> {
        self.span(|conn, _| {
            let tail = match memo::stream_id(conn, &stream.to_string())? {
                Some(id) => memo::tail_of(conn, id)?,
                None => Tail::EMPTY,
            };
            Ok(frontier(stream, tail))
        })
    }

    /// What a stream's events amount to, and the frontier that this rests on.
    ///
    /// Reads the memo, if there is one that holds, and the events after it: each of those is checked (its record, and
    /// both chains against the event before it). All events of one log are folded by one `F`.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] names the first event that does not hold, that this version cannot read, or that the fold
    /// refuses; nothing is skipped.
    pub fn state<F: Fold>(&self, stream: &StreamName) -> Result<(Frontier, F), LogError> {
        self.span(|conn, store| {
            let loaded = memo::load::<F>(conn, store, stream)?;
            Ok((frontier(stream, loaded.tail), loaded.state))
        })
    }

    /// Every stream's frontier, in the order of their names.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the log cannot be read, or a stream's name is not one.
    pub fn streams(&self) -> Result<Vec<Frontier>, LogError> {
        self.span(|conn, _| {
            let mut frontiers = Vec::new();
            for (id, named) in memo::streams(conn)? {
                let Some(named) = named else {
                    return Err(Problem::at(first_of(conn, id)?, Damage::NoStream { id }).into());
                };
                frontiers.push(frontier(&named.name, memo::tail_of(conn, id)?));
            }
            frontiers.sort();
            Ok(frontiers)
        })
    }

    /// Hands out every event from `from` on, in log order, each checked, until `each` breaks.
    ///
    /// Constant memory but for one entry for each stream met. What comes before `from` is taken on the word of its chain.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] names the first event that does not hold or cannot be read by this version; those before it
    /// were handed out. [`LogError::Changed`] only where the log lies on a medium without locks and was written meanwhile.
    pub fn events(&self, from: Seq, each: &mut dyn FnMut(Recorded) -> ControlFlow<()>) -> Result<(), LogError> {
        self.once(|conn, store| each_row(conn, store, from, &mut |row, stream| Ok(each(Recorded::of(row, stream)?))))
    }

    /// As [`Records::events`], one stream only and from a version on.
    ///
    /// # Errors
    ///
    /// As [`Records::events`].
    pub fn events_of(
        &self,
        stream: &StreamName,
        from: Version,
        each: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.once(|conn, store| {
            let text = stream.to_string();
            let Some(id) = memo::stream_id(conn, &text)? else { return Ok(()) };
            let named = super::row::Named { name: Arc::new(stream.clone()), text };
            let mut tail = tail_before(conn, id, from)?;
            let mut stopped = false;
            let result = memo::each_after(conn, store, id, &named, &mut tail, &mut |row| {
                stopped = each(Recorded::of(row, &named.name)?).is_break();
                // Any error ends the walk; this one is not handed on.
                if stopped { Err(LogError::Changed) } else { Ok(()) }
            });
            if stopped { Ok(()) } else { result }
        })
    }

    /// Runs `read` in one read transaction, again if the file changed under a connection without locks.
    pub(super) fn span<T>(
        &self,
        mut read: impl FnMut(&Connection, StoreId) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        loop {
            if self.moved()? {
                self.reopen()?;
            }
            let conn = Rc::clone(&self.conn.borrow());
            let result = Span::begin(&conn).and_then(|_span| {
                let store = self.store_now(&conn)?;
                read(&conn, store)
            });
            if !self.moved()? {
                return result;
            }
        }
    }

    /// As [`Records::span`], for what cannot be taken back once it was handed out.
    pub(super) fn once<T>(
        &self,
        mut read: impl FnMut(&Connection, StoreId) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let mut begun = false;
        self.span(|conn, store| match std::mem::replace(&mut begun, true) {
            false => read(conn, store),
            true => Err(LogError::Changed),
        })
    }

    /// The connection, for the writer's own transaction.
    pub(super) fn conn(&self) -> Rc<Connection> {
        Rc::clone(&self.conn.borrow())
    }

    pub(super) fn set_store(&self, store: StoreId) {
        self.store.set(store);
    }

    /// The store id as it is in this transaction.
    pub(super) fn store_now(&self, conn: &Connection) -> Result<StoreId, LogError> {
        if !self.settled.get() {
            self.store.set(store_in(conn)?);
            self.settled.set(head(conn)?.seq.0 > 0);
        }
        Ok(self.store.get())
    }

    /// Whether a file that is read without locks is no longer what it was.
    fn moved(&self) -> Result<bool, LogError> {
        let io = |source| LogError::Io { verb: "looked at", source };
        let then = match &*self.source.borrow() {
            Source::Shared(_) => return Ok(false),
            Source::Copied(copy) => return Ok(!copy.is_of(&self.path).map_err(io)?),
            Source::Immutable(then) => *then,
        };
        let wal = place::stamp(&place::beside(&self.path, "-wal")).map_err(io)?;
        Ok(wal.is_some_and(|wal| wal.bytes > 0) || place::stamp(&self.path).map_err(io)? != Some(then))
    }

    fn reopen(&self) -> Result<(), LogError> {
        let (conn, source) = reading(&self.path)?;
        conn.set_prepared_statement_cache_capacity(64);
        self.conn.replace(Rc::new(conn));
        self.source.replace(source);
        self.settled.set(false);
        Ok(())
    }
}

/// A read transaction; a nested one is part of the one around it.
struct Span<'c>(Option<&'c Connection>);

impl<'c> Span<'c> {
    fn begin(conn: &'c Connection) -> Result<Self, LogError> {
        if !conn.is_autocommit() {
            return Ok(Self(None));
        }
        conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self(Some(conn)))
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        // Nothing was written, so that nothing is lost if this fails; the next call would report it.
        if let Some(conn) = self.0 {
            let _ = conn.prepare_cached("ROLLBACK").and_then(|mut statement| statement.execute([]));
        }
    }
}

/// The newest store id, if its row holds.
pub(super) fn store_in(conn: &Connection) -> Result<StoreId, LogError> {
    let found = schema::store_row(conn)?.and_then(|row| {
        let store = StoreId(uuid::Uuid::from_slice(&row.store).ok()?);
        (digest::identity(row.id, store).0[..] == row.proof[..]).then_some(store)
    });
    match found {
        Some(store) => Ok(store),
        None => Err(Problem::at(head(conn)?.seq.0, Damage::Store).into()),
    }
}

/// What is done with a row and its stream, and whether to go on.
pub(super) type Visit<'v> = dyn FnMut(&Row<'_>, &Arc<StreamName>) -> Result<ControlFlow<()>, LogError> + 'v;

/// Every row from `from` on, checked, with its stream.
pub(super) fn each_row(conn: &Connection, store: StoreId, from: Seq, each: &mut Visit<'_>) -> Result<(), LogError> {
    const SQL: &str = concat!("SELECT ", columns!(), " FROM events e WHERE e.seq >= ?1 ORDER BY e.seq");
    if from.0 > head(conn)?.seq.next().0 {
        return Ok(());
    }
    let mut walk = Walk::from(conn, store, from.0)?;
    let mut statement = conn.prepare_cached(SQL)?;
    let mut rows = statement.query([i64::try_from(walk.next).unwrap_or(i64::MAX)])?;
    while let Some(found) = rows.next()? {
        let row = Row::read(found)?;
        let named = walk.step(conn, &row)?;
        if each(&row, &named.name)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The last event of the log.
pub(super) fn head(conn: &Connection) -> Result<Anchor, LogError> {
    let mut statement = conn.prepare_cached("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1")?;
    let found = statement.query_row([], |row| Ok((place_in(cell(row, 0)), digest_in(cell(row, 1))))).optional()?;
    match found {
        None => Ok(Anchor { seq: Seq(0), chain: Digest::GENESIS }),
        Some((Some(seq), Some(chain))) => Ok(Anchor { seq: Seq(seq), chain }),
        Some((seq, _)) => Err(Problem::at(seq.unwrap_or(0), Damage::Unreadable { column: "chain" }).into()),
    }
}

pub(super) fn frontier(stream: &StreamName, tail: Tail) -> Frontier {
    Frontier { stream: stream.clone(), version: Version(tail.version), chain: tail.chain }
}

/// The first event of a stream by its number, or the log's last one where it has none.
pub(super) fn first_of(conn: &Connection, id: i64) -> Result<u64, LogError> {
    let mut statement = conn.prepare_cached("SELECT min(seq) FROM events WHERE stream = ?1")?;
    let found = statement.query_row([id], |row| Ok(place_in(cell(row, 0))))?;
    Ok(match found {
        Some(seq) => seq,
        None => head(conn)?.seq.0,
    })
}

fn tail_before(conn: &Connection, id: i64, from: Version) -> Result<Tail, LogError> {
    let last = memo::tail_of(conn, id)?;
    let version = from.0.saturating_sub(1);
    if version == 0 || version >= last.version {
        return Ok(if version == 0 { Tail::EMPTY } else { Tail { version, ..last } });
    }
    let chain = super::row::stream_chain_at(conn, id, version)?;
    let chain = chain.ok_or_else(|| Problem::at(0, Damage::Missing { next: Seq(0) }))?;
    Ok(Tail { version, chain })
}
