//! Rows of SQLite as the log's own, and what a cursor meets on its way through them.
//!
//! Nothing here trusts a column: a value of another type, a negative place, a text that is not UTF-8 is damage that names
//! the event, not a panic.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _};

use crate::id::{Anchor, Digest, Seq, StoreId, StreamName};
use crate::log::cursor::{Cursor, Met};
use crate::log::error::{Damage, LogError, Problem};
use crate::log::row::{Named, Row, Tail};

/// The columns of `events` in the order in which [`read`] takes them.
macro_rules! columns {
    () => {
        "e.seq, e.stream, e.version, e.at_ms, e.kind, e.schema, e.body, e.record, e.chain, e.stream_chain"
    };
}
pub(super) use columns;

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

/// Reads a row of [`columns!`].
pub(super) fn read<'r>(row: &'r rusqlite::Row<'_>) -> Result<Row<'r>, Problem> {
    let seq = place(cell(row, 0)).ok_or_else(|| Problem::at(0, Damage::Unreadable { column: "seq" }))?;
    let bad = |column| move || Problem::at(seq, Damage::Unreadable { column });
    Ok(Row {
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

/// The chain before a cursor.
pub(super) fn chain_before(cursor: &mut Cursor, conn: &Connection) -> Result<Digest, LogError> {
    if let Some(chain) = cursor.chain {
        return Ok(chain);
    }
    let before = cursor.next - 1;
    let chain = chain_at(conn, before)?;
    let chain = chain.ok_or_else(|| Problem::at(before, Damage::Missing { next: Seq(cursor.next) }))?;
    cursor.chain = Some(chain);
    Ok(chain)
}

/// The stream of a row as it was before the row; nothing where its name is gone or is none.
pub(super) fn meet<'c>(
    cursor: &'c mut Cursor,
    conn: &Connection,
    row: &Row<'_>,
) -> Result<Option<&'c mut Met>, LogError> {
    if cursor.met.get(row.stream).is_none() {
        let Some(named) = name_of(conn, row.stream)? else { return Ok(None) };
        let tail = if cursor.whole || row.version <= 1 { Tail::EMPTY } else { tail_before(conn, row)? };
        cursor.met.put(row.stream, Met { named: Arc::new(named), tail });
    }
    Ok(cursor.met.get_mut(row.stream))
}

/// Checks the next row, goes past it, and gives the name of its stream.
pub(super) fn step<'c>(
    cursor: &'c mut Cursor,
    conn: &Connection,
    store: StoreId,
    row: &Row<'_>,
) -> Result<&'c Arc<StreamName>, LogError> {
    if row.seq != cursor.next {
        return Err(Problem::at(cursor.next, Damage::Missing { next: Seq(row.seq) }).into());
    }
    let before = chain_before(cursor, conn)?;
    let met = meet(cursor, conn, row)?;
    let met = met.ok_or_else(|| Problem::at(row.seq, Damage::NoStream { id: row.stream }))?;
    if row.fault_in_log(store, &met.named.text, &before, met.tail.version).is_some() {
        return Err(Problem::at(row.seq, Damage::Edited).of(&met.named.name).into());
    }
    met.tail = row.tail();
    cursor.pass_row(row);
    let met = cursor.met.get(row.stream).ok_or_else(|| Problem::at(row.seq, Damage::NoStream { id: row.stream }))?;
    Ok(&met.named.name)
}

fn tail_before(conn: &Connection, row: &Row<'_>) -> Result<Tail, LogError> {
    let version = row.version - 1;
    let chain = stream_chain_at(conn, row.stream, version)?
        .ok_or_else(|| Problem::at(row.seq, Damage::Missing { next: Seq(row.seq) }))?;
    Ok(Tail { version, chain })
}

/// The last event of the log.
pub(super) fn head(conn: &Connection) -> Result<Anchor, LogError> {
    let mut statement = conn.prepare_cached("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1")?;
    let found = statement.query_row([], |row| Ok((place(cell(row, 0)), digest_in(cell(row, 1))))).optional()?;
    match found {
        None => Ok(Anchor { seq: Seq(0), chain: Digest::GENESIS }),
        Some((Some(seq), Some(chain))) => Ok(Anchor { seq: Seq(seq), chain }),
        Some((seq, _)) => Err(Problem::at(seq.unwrap_or(0), Damage::Unreadable { column: "chain" }).into()),
    }
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
