//! Reading a log in SQLite, for its writer and for a [`Reader`](super::Reader) alike.
//!
//! Every call is one read transaction. Where no lock can be taken (a log whose WAL is absent may lie on a medium that nobody
//! writes, or is read through a private copy), the files are looked at before and after, and a call that saw them change is
//! made again.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rusqlite::Connection;

use super::connect::{Source, reading};
use super::row::{self, cell, columns, place as place_in};
use super::{memo, place, schema, verify};
use crate::id::{Anchor, Frontier, Seq, StoreId, StreamName, Version};
use crate::log::cursor::Cursor;
use crate::log::error::{Damage, LogError, Problem};
use crate::log::export::{self, ExportError};
use crate::log::row::{Named, Recorded, Row, Tail};
use crate::log::verification::Verification;
use crate::log::{Fold, Records, digest};
use crate::world::process;

/// How often a call is made again where no lock keeps the log still, before the answer is "try again".
const ATTEMPTS: usize = 20;

/// What can be read from a log in SQLite. [`SqliteLog`](super::SqliteLog) and [`Reader`](super::Reader) both are one (by
/// `Deref`), and what it answers is said at [`Records`].
#[derive(Debug)]
pub struct SqliteRecords<F> {
    path: PathBuf,
    conn: RefCell<Rc<Connection>>,
    source: RefCell<Source>,
    store: Cell<StoreId>,
    /// The log has events: its store id can no longer change (a verified import sets it in an empty log).
    settled: Cell<bool>,
    /// This handle is inside a write transaction of its own.
    writing: Cell<bool>,
    /// It writes too.
    is_writer: bool,
    /// The process that opened it.
    process: u32,
    fold: PhantomData<F>,
}

impl<F: Fold> Records<F> for SqliteRecords<F> {
    fn store(&self) -> StoreId {
        self.store_id()
    }

    fn anchor(&self) -> Result<Anchor, LogError> {
        self.span(|conn, _| row::head(conn))
    }

    fn frontier(&self, stream: &StreamName) -> Result<Frontier, LogError> {
        self.span(|conn, _| {
            let tail = match memo::stream_id(conn, &stream.to_string())? {
                Some(id) => memo::tail_of(conn, id)?,
                None => Tail::EMPTY,
            };
            Ok(tail.of(stream))
        })
    }

    fn state(&self, stream: &StreamName) -> Result<(Frontier, F), LogError> {
        self.span(|conn, store| {
            let loaded = memo::load::<F>(conn, store, stream)?;
            Ok((loaded.tail.of(stream), loaded.state))
        })
    }

    fn streams(&self) -> Result<Vec<Frontier>, LogError> {
        self.span(|conn, _| {
            let mut frontiers = Vec::new();
            for (id, named) in memo::streams(conn)? {
                let Some(named) = named else {
                    return Err(Problem::at(first_of(conn, id)?, Damage::NoStream { id }).into());
                };
                frontiers.push(memo::tail_of(conn, id)?.of(&named.name));
            }
            frontiers.sort();
            Ok(frontiers)
        })
    }

    fn read(&self, cursor: &mut Cursor, each: &mut dyn FnMut(Recorded) -> ControlFlow<()>) -> Result<(), LogError> {
        self.once(|conn, store| each_row(conn, store, cursor, &mut |row, stream| Ok(each(Recorded::of(row, stream)?))))
    }

    fn events_of(
        &self,
        stream: &StreamName,
        from: Version,
        each: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.once(|conn, store| {
            let named = Named::of(stream);
            let Some(id) = memo::stream_id(conn, &named.text)? else { return Ok(()) };
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

    fn verify(&self, anchor: Option<Anchor>, progress: &mut dyn FnMut(Seq)) -> Result<Verification, LogError> {
        match self.span(|conn, store| verify::whole::<F>(conn, store, anchor, progress)) {
            // The store id cannot be read: nothing can be checked, and that is the finding.
            Err(LogError::Damaged(problem)) => Ok(Verification::of_nothing(self.store_id(), *problem)),
            other => other,
        }
    }

    fn export(&self, to: &mut dyn Write, progress: &mut dyn FnMut(Seq)) -> Result<Anchor, ExportError> {
        let mut failed = None;
        let anchor = self.once(|conn, store| {
            let anchor = row::head(conn)?;
            if let Err(error) = export::header(to, store, &anchor) {
                failed = Some(error);
                return Ok(anchor);
            }
            each_row(conn, store, &mut Cursor::at(Seq(1)), &mut |row, stream| {
                progress(Seq(row.seq));
                Ok(match export::line(to, row, stream) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        failed = Some(error);
                        ControlFlow::Break(())
                    }
                })
            })?;
            Ok(anchor)
        })?;
        match failed {
            Some(error) => Err(ExportError::Write(error)),
            None => to.flush().map(|()| anchor).map_err(ExportError::Write),
        }
    }
}

impl<F> SqliteRecords<F> {
    pub(super) fn new(path: PathBuf, conn: Connection, source: Source, is_writer: bool) -> Result<Self, LogError> {
        conn.set_prepared_statement_cache_capacity(64);
        let records = Self {
            path,
            conn: RefCell::new(Rc::new(conn)),
            source: RefCell::new(source),
            store: Cell::new(StoreId(uuid::Uuid::nil())),
            settled: Cell::new(false),
            writing: Cell::new(false),
            is_writer,
            process: process::own_id(),
            fold: PhantomData,
        };
        records.span(|_, _| Ok(()))?;
        Ok(records)
    }

    /// Where the log is, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn store_id(&self) -> StoreId {
        self.store.get()
    }

    /// Refuses a handle that a fork brought into another process.
    pub(super) fn at_home(&self) -> Result<(), LogError> {
        if process::own_id() == self.process { Ok(()) } else { Err(LogError::Forked) }
    }

    /// Runs `read` in one read transaction, again if the file changed under a connection without locks.
    pub(super) fn span<T>(
        &self,
        mut read: impl FnMut(&Connection, StoreId) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        self.at_home()?;
        if self.writing.get() {
            return Err(LogError::Busy("an import through this handle goes on".into()));
        }
        for attempt in 0..ATTEMPTS {
            if self.moved()? {
                self.follow()?;
            }
            let conn = Rc::clone(&self.conn.borrow());
            let result = Span::begin(&conn).and_then(|_span| {
                let store = self.store_now(&conn)?;
                read(&conn, store)
            });
            let source = self.source.borrow();
            match &result {
                // What a crash left half-done since it was opened cannot be rolled back here: read it through a copy.
                Err(LogError::ReadOnly(_)) if attempt == 0 && matches!(*source, Source::Shared(_)) => {}
                // With locks it is one moment, and so is a copy, whatever happens to the log meanwhile.
                _ if !matches!(*source, Source::Immutable(_)) || !source.moved(&self.path)? => return result,
                _ => continue,
            }
            drop((source, conn));
            self.reopen()?;
        }
        Err(LogError::Changed)
    }

    /// As [`SqliteRecords::span`], for what cannot be taken back once it was handed out.
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

    /// Whether the writer's own transaction lasts; the writer sets it.
    pub(super) fn writing(&self) -> &Cell<bool> {
        &self.writing
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
            self.settled.set(row::head(conn)?.seq.0 > 0);
        }
        Ok(self.store.get())
    }

    /// Goes where the log is now. A writer does not: what it acknowledged is in the file that it had.
    fn follow(&self) -> Result<(), LogError> {
        let is_gone = matches!(place::stamp(&self.path), Ok(None));
        if self.is_writer || is_gone { Err(LogError::Replaced) } else { self.reopen() }
    }

    /// Whether another file lies there now, or what is read without locks is no longer what it was.
    pub(super) fn moved(&self) -> Result<bool, LogError> {
        self.source.borrow().moved(&self.path)
    }

    /// Lets go of the file first: what this process knows of its WAL may be of one that is no longer there.
    fn reopen(&self) -> Result<(), LogError> {
        // A call inside a call: the one around it goes on with what it has.
        if Rc::strong_count(&self.conn.borrow()) > 1 {
            return Err(LogError::Changed);
        }
        self.conn.replace(Rc::new(Connection::open_in_memory()?));
        self.source.replace(Source::Lost);
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
fn store_in(conn: &Connection) -> Result<StoreId, LogError> {
    let found = schema::store_row(conn)?.and_then(|row| {
        let store = StoreId(uuid::Uuid::from_slice(&row.store).ok()?);
        (digest::identity(row.id, store).0[..] == row.proof[..]).then_some(store)
    });
    match found {
        Some(store) => Ok(store),
        None => Err(Problem::at(row::head(conn)?.seq.0, Damage::Store).into()),
    }
}

/// What is done with a row and its stream, and whether to go on.
type Visit<'v> = dyn FnMut(&Row<'_>, &Arc<StreamName>) -> Result<ControlFlow<()>, LogError> + 'v;

/// Every row from the cursor on, checked, with its stream.
fn each_row(conn: &Connection, store: StoreId, cursor: &mut Cursor, each: &mut Visit<'_>) -> Result<(), LogError> {
    const SQL: &str = concat!("SELECT ", columns!(), " FROM events e WHERE e.seq >= ?1 ORDER BY e.seq");
    let head = row::head(conn)?;
    if let Some(chain) = cursor.chain {
        let anchor = Anchor { seq: Seq(cursor.next - 1), chain };
        let last = head.seq;
        if anchor.seq > last {
            return Err(Problem::at(last.next().0, Damage::CutOff { known: anchor.to_string(), last }).into());
        }
        if anchor.seq == last && anchor != head {
            return Err(Problem::at(last.0, Damage::OtherHistory { anchor }).into());
        }
    }
    if cursor.next > head.seq.0 {
        return Ok(());
    }
    let mut before = row::chain_before(cursor, conn)?;
    let mut statement = conn.prepare_cached(SQL)?;
    let mut rows = statement.query([i64::try_from(cursor.next).unwrap_or(i64::MAX)])?;
    while let Some(found) = rows.next()? {
        let row = row::read(found)?;
        let stream = row::step(cursor, conn, store, &row)?;
        match each(&row, stream) {
            Ok(ControlFlow::Continue(())) => before = row.chain,
            Ok(ControlFlow::Break(())) => break,
            Err(error) => {
                cursor.stand_at(&row, before);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// The first event of a stream by its number, or the log's last one where it has none.
fn first_of(conn: &Connection, id: i64) -> Result<u64, LogError> {
    let mut statement = conn.prepare_cached("SELECT min(seq) FROM events WHERE stream = ?1")?;
    let found = statement.query_row([id], |row| Ok(place_in(cell(row, 0))))?;
    Ok(match found {
        Some(seq) => seq,
        None => row::head(conn)?.seq.0,
    })
}

fn tail_before(conn: &Connection, id: i64, from: Version) -> Result<Tail, LogError> {
    let last = memo::tail_of(conn, id)?;
    let version = from.0.saturating_sub(1);
    if version == 0 || version >= last.version {
        return Ok(if version == 0 { Tail::EMPTY } else { Tail { version, ..last } });
    }
    let chain = row::stream_chain_at(conn, id, version)?;
    let chain = chain.ok_or_else(|| Problem::at(0, Damage::Missing { next: Seq(0) }))?;
    Ok(Tail { version, chain })
}
