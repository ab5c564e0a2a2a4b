//! The state of a stream: the memo where it holds, and the events after it.
//!
//! A memo is (frontier, fold version, state, proof). It is used only if its proof binds exactly this state to this store,
//! fold and frontier, **and** the log still has that frontier; else the stream is folded from its first event. So deleting
//! or editing it costs time and never changes an answer. Only appenders write memos, in the transaction of the events.

use rusqlite::{Connection, OptionalExtension as _};

use super::row::{self, bytes, cell, columns, digest_in, integer, place, text};
use crate::id::{Digest, Seq, StoreId, StreamName};
use crate::log::batch::Loaded;
use crate::log::error::{Damage, LogError, Problem};
use crate::log::row::{Named, Row, Tail};
use crate::log::{Fold, digest};

/// The number of a stream.
pub(super) fn stream_id(conn: &Connection, name: &str) -> Result<Option<i64>, LogError> {
    let mut statement = conn.prepare_cached("SELECT id FROM streams WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// The last event of a stream, by the index.
pub(super) fn tail_of(conn: &Connection, id: i64) -> Result<Tail, LogError> {
    let sql = "SELECT version, stream_chain, seq FROM events WHERE stream = ?1 ORDER BY version DESC LIMIT 1";
    let mut statement = conn.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let tail = place(cell(row, 0)).zip(digest_in(cell(row, 1)));
        Ok(tail.map(|(version, chain)| Tail { version, chain }).ok_or(place(cell(row, 2)).unwrap_or(0)))
    };
    match statement.query_row([id], read).optional()? {
        None => Ok(Tail::EMPTY),
        Some(Ok(tail)) => Ok(tail),
        Some(Err(seq)) => Err(Problem::at(seq, Damage::Unreadable { column: "stream_chain" }).into()),
    }
}

/// A stream's state: its memo if that holds, and every later event, each checked.
pub(super) fn load<F: Fold>(conn: &Connection, store: StoreId, stream: &StreamName) -> Result<Loaded<F>, LogError> {
    let named = Named::of(stream);
    let Some(id) = stream_id(conn, &named.text)? else {
        return Ok(Loaded { tail: Tail::EMPTY, state: F::empty(stream), memo: 0 });
    };
    let (mut tail, mut state) = match remembered::<F>(conn, store, id, &named)? {
        Some(found) => found,
        None => (Tail::EMPTY, F::empty(stream)),
    };
    let memo = tail.version;
    each_after(conn, store, id, &named, &mut tail, &mut |row| {
        let event = row.event(stream)?;
        state
            .apply(&event)
            .map_err(|source| LogError::from(Problem::at(row.seq, Damage::Illegal(Box::new(source))).of(stream)))
    })?;
    Ok(Loaded { tail, state, memo })
}

/// Every event of a stream after `tail`, checked: its record, and both chains against the events before it.
pub(super) fn each_after(
    conn: &Connection,
    store: StoreId,
    id: i64,
    named: &Named,
    tail: &mut Tail,
    each: &mut dyn FnMut(&Row<'_>) -> Result<(), LogError>,
) -> Result<(), LogError> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!(),
        ", (SELECT p.chain FROM events p WHERE p.seq = e.seq - 1) FROM events e WHERE e.stream = ?1 AND e.version > ?2 \
         ORDER BY e.version"
    );
    let after = i64::try_from(tail.version).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(SQL)?;
    let mut rows = statement.query((id, after))?;
    while let Some(found) = rows.next()? {
        let row = row::read(found)?;
        let before = if row.seq == 1 { Some(Digest::GENESIS) } else { digest_in(cell(found, 10)) };
        let before = before.ok_or_else(|| Problem::at(row.seq - 1, Damage::Missing { next: Seq(row.seq) }))?;
        if row.fault(store, &named.text, &before, tail).is_some() {
            return Err(Problem::at(row.seq, Damage::Edited).of(&named.name).into());
        }
        *tail = row.tail();
        each(&row)?;
    }
    Ok(())
}

/// The memo, if everything about it holds.
fn remembered<F: Fold>(
    conn: &Connection,
    store: StoreId,
    id: i64,
    named: &Named,
) -> Result<Option<(Tail, F)>, LogError> {
    let mut statement =
        conn.prepare_cached("SELECT fold, version, chain, state, proof FROM memos WHERE stream = ?1")?;
    let found = statement
        .query_row([id], |row| {
            let memo = Memo::read(row, 0).filter(|memo| memo.fold == F::VERSION);
            let memo = memo.filter(|memo| memo.proof == memo.digest(store, &named.text));
            Ok(memo.and_then(|memo| F::decode(&named.name, memo.state).map(|state| (memo.tail, state))))
        })
        .optional()?
        .flatten();
    match found {
        Some((tail, state)) if row::stream_chain_at(conn, id, tail.version)? == Some(tail.chain) => {
            Ok(Some((tail, state)))
        }
        Some(_) | None => Ok(None),
    }
}

/// A row of `memos`.
pub(super) struct Memo<'r> {
    pub(super) fold: u32,
    pub(super) tail: Tail,
    state: &'r [u8],
    pub(super) proof: Digest,
}

impl<'r> Memo<'r> {
    /// Reads fold, version, chain, state and proof from column `first` on.
    pub(super) fn read(row: &'r rusqlite::Row<'_>, first: usize) -> Option<Self> {
        Some(Self {
            fold: integer(cell(row, first)).and_then(|number| u32::try_from(number).ok())?,
            tail: Tail { version: place(cell(row, first + 1))?, chain: digest_in(cell(row, first + 2))? },
            state: bytes(cell(row, first + 3))?,
            proof: digest_in(cell(row, first + 4))?,
        })
    }

    pub(super) fn digest(&self, store: StoreId, stream: &str) -> Digest {
        digest::memo(store, stream, self.fold, self.tail.version, &self.tail.chain, self.state)
    }
}

/// Writes a stream's memo over the last one.
pub(super) fn write<F: Fold>(
    conn: &Connection,
    store: StoreId,
    id: i64,
    stream: &str,
    tail: Tail,
    state: &F,
) -> Result<(), LogError> {
    let state = state.encode();
    let proof = digest::memo(store, stream, F::VERSION, tail.version, &tail.chain, &state);
    let version = i64::try_from(tail.version).unwrap_or(i64::MAX);
    let sql = "INSERT INTO memos (stream, fold, version, chain, state, proof) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
               ON CONFLICT (stream) DO UPDATE SET fold = excluded.fold, version = excluded.version, \
               chain = excluded.chain, state = excluded.state, proof = excluded.proof";
    conn.prepare_cached(sql)?.execute((id, F::VERSION, version, &tail.chain.0[..], state, &proof.0[..]))?;
    Ok(())
}

/// Every stream's number and name, in the order of their numbers; an unreadable name is nothing.
pub(super) fn streams(conn: &Connection) -> Result<Vec<(i64, Option<Named>)>, LogError> {
    let mut statement = conn.prepare_cached("SELECT id, name FROM streams ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let named = text(cell(row, 1)).and_then(Named::parse);
        found.push((integer(cell(row, 0)).unwrap_or(0), named));
    }
    Ok(found)
}
