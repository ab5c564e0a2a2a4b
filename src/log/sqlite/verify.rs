//! Whether the whole log holds: every digest, every place, every event by its rules, every row beside the events.
//!
//! The events are refolded from the first on, up to the first that does not hold; [`diagnose`] finds out what happened to
//! it. Then the rows beside the events are looked at, and last SQLite's own structures. What only hides behind digests
//! that were all recomputed (a rewritten history, an end that was cut off) is found against an [`Anchor`] that was kept
//! elsewhere, and by nothing else.

mod diagnose;

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use self::diagnose::diagnose;
use super::memo::{self, Memo};
use super::row::{self, cell, columns, integer, meet};
use super::rows;
use super::schema::{self, Found};
use crate::id::{Anchor, Digest, Seq, StoreId, StreamName};
use crate::log::cursor::{Cursor, Numbered};
use crate::log::error::{Cause, Damage, LogError, Problem, known_version, not_the_beginning, readable_key};
use crate::log::row::{Row, Tail};
use crate::log::verification::{Note, Verification};
use crate::log::{Fold, digest};

/// How many events pass between two calls of `progress`.
const STEP: u64 = 1_024;

/// The whole log, in one read transaction.
pub(super) fn whole<F: Fold>(
    conn: &Connection,
    store: StoreId,
    anchor: Option<Anchor>,
    progress: &mut dyn FnMut(Seq),
) -> Result<Verification, LogError> {
    let mut problems: Vec<Problem> = anchor.and_then(not_the_beginning).into_iter().collect();
    let mut notes = notes(conn)?;
    let (memos, bad_memos) = memos(conn, store)?;
    let mut refold = Refold::<F>::new(store, memos);
    refold.run(conn, anchor, &mut problems, progress)?;
    let end = refold.end();
    if problems.is_empty() {
        problems.extend(refold.unmet(conn)?);
        if let Some(expected) = anchor.filter(|expected| expected.seq > end.seq) {
            problems.push(cut_off(expected.to_string(), end.seq));
        }
        problems.extend(stray(conn, end.seq)?);
        problems.extend(names_of(conn, store, end.seq)?);
        problems.extend(receipts(conn, store, end.seq)?);
    }
    problems.extend(bad_memos.into_iter().map(|stream| Problem::at(end.seq.0, Damage::Memo { stream })));
    if problems.is_empty() {
        structures(conn)?;
    }
    if refold.other_memos > 0 {
        notes.push(Note::OtherMemos { count: refold.other_memos });
    }
    let streams = refold.states.len() as u64;
    Ok(Verification { store, anchor: end, events: end.seq.0, streams, problems, notes })
}

fn cut_off(known: String, last: Seq) -> Problem {
    Problem::at(last.next().0, Damage::CutOff { known, last })
}

/// The walk over every event, with the state of every stream.
struct Refold<F> {
    cursor: Cursor,
    /// The chain before it.
    chain: Digest,
    store: StoreId,
    states: Numbered<F>,
    /// Memos that were not met yet.
    memos: HashMap<i64, Held>,
    other_memos: u64,
}

/// A memo whose proof fits its row.
struct Held {
    stream: String,
    fold: u32,
    tail: Tail,
    proof: Digest,
}

impl<F: Fold> Refold<F> {
    fn new(store: StoreId, memos: HashMap<i64, Held>) -> Self {
        Self {
            cursor: Cursor::at(Seq(1)),
            chain: Digest::GENESIS,
            store,
            states: Numbered::default(),
            memos,
            other_memos: 0,
        }
    }

    /// As far as everything holds.
    fn end(&self) -> Anchor {
        Anchor { seq: Seq(self.cursor.next - 1), chain: self.chain }
    }

    /// Goes on until the end or the first problem.
    fn run(
        &mut self,
        conn: &Connection,
        anchor: Option<Anchor>,
        problems: &mut Vec<Problem>,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<(), LogError> {
        const SQL: &str = concat!("SELECT ", columns!(), " FROM events e WHERE e.seq >= 1 ORDER BY e.seq");
        let mut statement = conn.prepare_cached(SQL)?;
        let mut rows = statement.query([])?;
        while let Some(found) = rows.next()? {
            let problem = match row::read(found) {
                Ok(row) => self.next(conn, &row)?,
                Err(problem) => Some(problem),
            };
            let end = self.end();
            let problem = problem.or_else(|| {
                let anchor = anchor.filter(|anchor| anchor.seq == end.seq && anchor.chain != end.chain)?;
                Some(Problem::at(end.seq.0, Damage::OtherHistory { anchor }))
            });
            if let Some(problem) = problem {
                problems.push(problem);
                return Ok(());
            }
            if end.seq.0.is_multiple_of(STEP) {
                progress(end.seq);
            }
        }
        progress(self.end().seq);
        Ok(())
    }

    /// Takes the next row, or says what is wrong with it.
    fn next(&mut self, conn: &Connection, row: &Row<'_>) -> Result<Option<Problem>, LogError> {
        if row.seq != self.cursor.next {
            return diagnose(conn, self.store, &mut self.cursor, &self.chain, row, None).map(Some);
        }
        let Some(met) = meet(&mut self.cursor, conn, row)? else {
            return Ok(Some(Problem::at(row.seq, Damage::NoStream { id: row.stream })));
        };
        let named = Arc::clone(&met.named);
        if let Some(fault) = row.fault(self.store, &named.text, &self.chain, &met.tail) {
            let problem = diagnose(conn, self.store, &mut self.cursor, &self.chain, row, Some(fault))?;
            return Ok(Some(problem.of(&named.name)));
        }
        let event = match row.event(&named.name) {
            Ok(event) => event,
            Err(problem) => return Ok(Some(problem)),
        };
        if self.states.get(row.stream).is_none() {
            self.states.put(row.stream, F::empty(&named.name));
        }
        let applied = self.states.get_mut(row.stream).map_or(Ok(()), |state| state.apply(&event));
        if let Err(source) = applied {
            return Ok(Some(Problem::at(row.seq, Damage::Illegal(Box::new(source))).of(&named.name)));
        }
        met.tail = row.tail();
        self.cursor.pass_row(row);
        self.chain = row.chain;
        Ok(if self.memos.is_empty() { None } else { self.compare(row, &named.name) })
    }

    /// Compares the stream's memo with its state, where the memo is of this version.
    fn compare(&mut self, row: &Row<'_>, stream: &StreamName) -> Option<Problem> {
        let held = self.memos.get(&row.stream).filter(|held| held.tail.version == row.version)?;
        let state = self.states.get(row.stream)?;
        let right = if held.tail.chain != row.stream_chain {
            false
        } else if held.fold == F::VERSION {
            let (fold, Tail { version, chain }) = (held.fold, held.tail);
            held.proof == digest::memo(self.store, &held.stream, fold, version, &chain, &state.encode())
        } else {
            self.other_memos += 1;
            true
        };
        self.memos.remove(&row.stream);
        (!right).then(|| Problem::at(row.seq, Damage::Memo { stream: row.stream }).of(stream))
    }

    /// What is left when the last event was taken: memos of events that are not there, streams without events.
    fn unmet(&self, conn: &Connection) -> Result<Vec<Problem>, LogError> {
        let last = self.end().seq;
        let mut held: Vec<&Held> = self.memos.values().collect();
        held.sort_by(|a, b| a.stream.cmp(&b.stream));
        let unmet = |held: &Held| cut_off(known_version(&held.stream, held.tail.version), last);
        let mut problems: Vec<Problem> = held.into_iter().map(unmet).collect();
        for (id, named) in memo::streams(conn)? {
            if self.cursor.met.get(id).is_none_or(|met| met.tail.version == 0) {
                let name = named.map_or_else(|| "unreadable".to_owned(), |named| named.text);
                problems.push(Problem::at(last.next().0, Damage::NoEvents { id, name }));
            }
        }
        Ok(problems)
    }
}

fn notes(conn: &Connection) -> Result<Vec<Note>, LogError> {
    let Found::Log { missing, foreign } = schema::inspect(conn)? else { return Ok(Vec::new()) };
    let missing = missing.into_iter().map(|name| Note::NoTrigger { name });
    Ok(missing.chain(foreign.into_iter().map(|name| Note::Foreign { name })).collect())
}

/// Memos whose proof fits their row, and the stream numbers of the others.
fn memos(conn: &Connection, store: StoreId) -> Result<(HashMap<i64, Held>, Vec<i64>), LogError> {
    let sql = "SELECT m.stream, m.fold, m.version, m.chain, m.state, m.proof, s.name FROM memos m \
               LEFT JOIN streams s ON s.id = m.stream ORDER BY m.stream";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let (mut held, mut bad) = (HashMap::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let id = integer(cell(row, 0)).unwrap_or(0);
        let stream = row::text(cell(row, 6)).unwrap_or_default();
        match Memo::read(row, 1).filter(|memo| memo.proof == memo.digest(store, stream)) {
            Some(Memo { fold, tail, proof, .. }) => {
                held.insert(id, Held { stream: stream.to_owned(), fold, tail, proof });
            }
            None => bad.push(id),
        }
    }
    Ok((held, bad))
}

/// Events at places below the first.
fn stray(conn: &Connection, last: Seq) -> Result<Option<Problem>, LogError> {
    let mut statement = conn.prepare_cached("SELECT max(seq) FROM events WHERE seq < 1")?;
    let found = statement.query_row([], |row| Ok(integer(cell(row, 0))))?;
    Ok(found.map(|found| Problem::at(last.next().0, Damage::Reordered { found })))
}

/// Every row that says which store this is.
fn names_of(conn: &Connection, store: StoreId, last: Seq) -> Result<Option<Problem>, LogError> {
    let mut statement = conn.prepare_cached("SELECT id, store, proof FROM store ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut newest = None;
    while let Some(row) = rows.next()? {
        let found = integer(cell(row, 0)).zip(row::bytes(cell(row, 1))).and_then(|(id, bytes)| {
            let named = StoreId(uuid::Uuid::from_slice(bytes).ok()?);
            let proof = row::digest_in(cell(row, 2))?;
            (digest::identity(id, named) == proof).then_some(named)
        });
        newest = found;
        if found.is_none() {
            break;
        }
    }
    Ok((newest != Some(store)).then(|| Problem::at(last.0, Damage::Store)))
}

/// Receipts that do not fit the history.
fn receipts(conn: &Connection, store: StoreId, last: Seq) -> Result<Vec<Problem>, LogError> {
    let mut statement =
        conn.prepare_cached("SELECT request, first_seq, last_seq, proof, CAST(key AS BLOB) FROM receipts")?;
    let mut rows = statement.query([])?;
    let mut problems = Vec::new();
    while let Some(found) = rows.next()? {
        let key = row::bytes(cell(found, 4)).unwrap_or_default();
        let receipt = rows::read_receipt(found);
        let holds = match (&receipt, std::str::from_utf8(key)) {
            (Some(receipt), Ok(key)) => {
                let chain = if receipt.last == 0 { Some(Digest::GENESIS) } else { row::chain_at(conn, receipt.last)? };
                chain.is_some_and(|chain| receipt.holds(store, key, &chain))
            }
            _ => false,
        };
        if !holds {
            let seq = receipt.map_or(last.0, |receipt| receipt.last.min(last.0));
            let key = readable_key(key);
            problems.push(Problem::at(seq, Damage::Receipt { key }));
        }
    }
    Ok(problems)
}

/// Whether SQLite's own structures hold: pages, indices, constraints.
fn structures(conn: &Connection) -> Result<(), LogError> {
    let found: String = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let failure = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    let cause: Cause = Box::new(rusqlite::Error::SqliteFailure(failure, Some(found)));
    Err(LogError::Corrupt(cause))
}
