//! What an append or an import reads and writes in SQLite, inside the transaction that is open.

use rusqlite::{CachedStatement, Connection, OptionalExtension as _};

use super::file::name;
use super::row::{self, cell, digest_in, integer};
use super::{memo, schema};
use crate::event::Event;
use crate::id::{Anchor, Digest, IdempotencyKey, StoreId, StreamName};
use crate::log::Fold;
use crate::log::batch::{Loaded, Receipt, Rows};
use crate::log::error::{Damage, LogError, Problem};
use crate::log::row::{Row, Tail};

const INSERT: &str = "INSERT INTO events (seq, stream, version, at_ms, kind, schema, body, record, chain, stream_chain) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

/// A connection with an open write transaction.
pub(super) struct SqliteRows<'c> {
    conn: &'c Connection,
    insert: CachedStatement<'c>,
    store: StoreId,
}

impl<'c> SqliteRows<'c> {
    pub(super) fn new(conn: &'c Connection, store: StoreId) -> Result<Self, LogError> {
        Ok(Self { conn, insert: conn.prepare_cached(INSERT)?, store })
    }
}

impl<F: Fold> Rows<F> for SqliteRows<'_> {
    fn head(&self) -> Result<Anchor, LogError> {
        row::head(self.conn)
    }

    fn end_of(&self, stream: &str) -> Result<(Option<i64>, Tail), LogError> {
        match memo::stream_id(self.conn, stream)? {
            Some(id) => Ok((Some(id), memo::tail_of(self.conn, id)?)),
            None => Ok((None, Tail::EMPTY)),
        }
    }

    fn load(&self, stream: &StreamName) -> Result<Loaded<F>, LogError> {
        memo::load(self.conn, self.store, stream)
    }

    fn add_stream(&mut self, _: &StreamName, text: &str) -> Result<i64, LogError> {
        self.conn.prepare_cached("INSERT INTO streams (name) VALUES (?1)")?.execute([text])?;
        Ok(self.conn.last_insert_rowid())
    }

    fn add_event(&mut self, row: &Row<'_>, _: &Event) -> Result<(), LogError> {
        let Row { seq, stream, version, at_ms, kind, schema, body, record, chain, stream_chain } = row;
        self.insert.execute((
            stored(*seq),
            stream,
            stored(*version),
            at_ms,
            kind,
            schema,
            body,
            &record.0[..],
            &chain.0[..],
            &stream_chain.0[..],
        ))?;
        Ok(())
    }

    fn add_memo(&mut self, id: i64, stream: &str, tail: Tail, state: &F) -> Result<(), LogError> {
        memo::write(self.conn, self.store, id, stream, tail, state)
    }

    fn receipt(&self, key: &IdempotencyKey) -> Result<Option<Receipt>, LogError> {
        let sql = "SELECT request, first_seq, last_seq, proof FROM receipts WHERE key = ?1";
        let mut statement = self.conn.prepare_cached(sql)?;
        match statement.query_row([key.as_str()], |row| Ok(read_receipt(row))).optional()? {
            None => Ok(None),
            Some(Some(receipt)) => Ok(Some(receipt)),
            Some(None) => {
                let damage = Damage::Receipt { key: key.to_string() };
                Err(Problem::at(row::head(self.conn)?.seq.0, damage).into())
            }
        }
    }

    fn add_receipt(&mut self, key: &IdempotencyKey, receipt: &Receipt) -> Result<(), LogError> {
        let sql = "INSERT INTO receipts (key, request, first_seq, last_seq, proof) VALUES (?1, ?2, ?3, ?4, ?5)";
        let Receipt { request, first, last, proof } = receipt;
        let values = (key.as_str(), &request.0[..], stored(*first), stored(*last), &proof.0[..]);
        self.conn.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn chain_at(&self, seq: u64) -> Result<Option<Digest>, LogError> {
        row::chain_at(self.conn, seq)
    }

    fn tail_until(&self, stream: &StreamName, last: u64) -> Result<Tail, LogError> {
        let Some(id) = memo::stream_id(self.conn, &stream.to_string())? else { return Ok(Tail::EMPTY) };
        let sql =
            "SELECT version, stream_chain FROM events WHERE stream = ?1 AND seq <= ?2 ORDER BY version DESC LIMIT 1";
        let mut statement = self.conn.prepare_cached(sql)?;
        let read = |row: &rusqlite::Row<'_>| Ok(row::place(cell(row, 0)).zip(digest_in(cell(row, 1))));
        match statement.query_row((id, stored(last)), read).optional()? {
            None => Ok(Tail::EMPTY),
            Some(Some((version, chain))) => Ok(Tail { version, chain }),
            Some(None) => Err(Problem::at(last, Damage::Unreadable { column: "stream_chain" }).into()),
        }
    }

    fn rename(&mut self, store: StoreId) -> Result<(), LogError> {
        let row = schema::store_row(self.conn)?.map_or(0, |row| row.id);
        name(self.conn, row + 1, store)?;
        self.store = store;
        Ok(())
    }
}

/// Reads request, first, last and proof.
pub(super) fn read_receipt(row: &rusqlite::Row<'_>) -> Option<Receipt> {
    let number = |index| integer(cell(row, index)).and_then(|number| u64::try_from(number).ok());
    Some(Receipt {
        request: digest_in(cell(row, 0))?,
        first: number(1)?,
        last: number(2)?,
        proof: digest_in(cell(row, 3))?,
    })
}

/// A place as SQLite stores it. No log gets near the end of it.
fn stored(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}
