//! What happened to the first event that does not hold.
//!
//! Only read when something is wrong, so it may look at the whole log. The question that settles most of it: is there an
//! event elsewhere that would be right here? What no digest can tell (one event of one that was edited, or a log of a
//! single event from another store) is called *edited*.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::Connection;

use crate::id::{Digest, Seq, StoreId};
use crate::log::cursor::{Cursor, Met};
use crate::log::digest::{link, stream_link};
use crate::log::error::{Damage, LogError, Problem};
use crate::log::row::{Fault, Row};
use crate::log::sqlite::row::{self, cell, columns, digest_in, integer, meet, name_of};

/// Says what happened at the place that the cursor has reached, after `before`, where `row` stands or comes next.
pub(super) fn diagnose(
    conn: &Connection,
    store: StoreId,
    cursor: &mut Cursor,
    before: &Digest,
    row: &Row<'_>,
    fault: Option<Fault>,
) -> Result<Problem, LogError> {
    let damage = match fault {
        None => match belonging(conn, cursor.next, before)? {
            Some(found) => Damage::Reordered { found },
            None => Damage::Missing { next: Seq(row.seq) },
        },
        Some(Fault::Record) => content(conn, store, cursor, before, row)?,
        Some(Fault::Chain) => match belonging(conn, cursor.next, before)? {
            Some(found) => Damage::Reordered { found },
            None => chain(conn, cursor, row)?,
        },
        Some(Fault::Version | Fault::StreamChain) => Damage::Edited,
    };
    Ok(Problem::at(cursor.next, damage))
}

/// The row that stands elsewhere and whose chain continues the last good event.
fn belonging(conn: &Connection, next: u64, before: &Digest) -> Result<Option<i64>, LogError> {
    let mut statement = conn.prepare_cached("SELECT seq, record, chain FROM events")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (Some(seq), Some(record), Some(chain)) =
            (integer(cell(row, 0)), digest_in(cell(row, 1)), digest_in(cell(row, 2)))
        else {
            continue;
        };
        if u64::try_from(seq) != Ok(next) && link(before, &record) == chain {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

/// The record is right, the chain is not: either the chain's own value was edited, or an event before it is gone and
/// those after it have moved up.
fn chain(conn: &Connection, cursor: &mut Cursor, row: &Row<'_>) -> Result<Damage, LogError> {
    let gone = Damage::Missing { next: Seq(row.seq) };
    if meet(cursor, conn, row)?.is_none_or(|met| row.version != met.tail.version + 1) {
        return Ok(gone);
    }
    let mut statement = conn.prepare_cached("SELECT record, chain FROM events WHERE seq > ?1 ORDER BY seq LIMIT 1")?;
    let mut rows = statement.query([i64::try_from(row.seq).unwrap_or(i64::MAX)])?;
    let Some(next) = rows.next()? else { return Ok(Damage::Edited) };
    let (record, chain) = (digest_in(cell(next, 0)), digest_in(cell(next, 1)));
    let continues = record.map(|record| link(&row.chain, &record)) == chain;
    Ok(if continues { gone } else { Damage::Edited })
}

/// The content and the record differ.
fn content(
    conn: &Connection,
    store: StoreId,
    cursor: &mut Cursor,
    before: &Digest,
    row: &Row<'_>,
) -> Result<Damage, LogError> {
    if link(before, &row.record) == row.chain {
        // What was chained here is what the row's record says. One edited event, or a whole end of another log?
        return Ok(if foreign_from_here(conn, store, row)? { Damage::OtherStore } else { Damage::Edited });
    }
    let Some(Met { named, tail }) = meet(cursor, conn, row)? else { return Ok(Damage::NoStream { id: row.stream }) };
    if link(before, &row.digest(store, &named.text)) == row.chain {
        // Only the record's own value was edited.
        return Ok(Damage::Edited);
    }
    // If neither chain was made here, and the record is not of this store, all of it came from elsewhere.
    let fits = stream_link(&tail.chain, &row.record) == row.stream_chain;
    Ok(if fits { Damage::Edited } else { Damage::OtherStore })
}

/// Whether no event from here on is of this store, and there is more than one.
fn foreign_from_here(conn: &Connection, store: StoreId, row: &Row<'_>) -> Result<bool, LogError> {
    const SQL: &str = concat!("SELECT ", columns!(), " FROM events e WHERE e.seq >= ?1 ORDER BY e.seq");
    let mut names = BTreeMap::new();
    let mut statement = conn.prepare_cached(SQL)?;
    let mut rows = statement.query([i64::try_from(row.seq).unwrap_or(i64::MAX)])?;
    let mut count = 0_u64;
    while let Some(found) = rows.next()? {
        let Ok(row) = row::read(found) else { return Ok(false) };
        if let Entry::Vacant(place) = names.entry(row.stream) {
            place.insert(name_of(conn, row.stream)?);
        }
        let Some(Some(named)) = names.get(&row.stream) else { return Ok(false) };
        if row.digest(store, &named.text) == row.record {
            return Ok(false);
        }
        count += 1;
    }
    Ok(count > 1)
}
