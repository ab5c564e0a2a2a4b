//! The tables, and whether a file has them.
//!
//! Events, streams, receipts and the store id are only ever added to: triggers refuse UPDATE and DELETE. There is no row
//! that holds "the last event of a stream": that is the last entry of the index over `(stream, version)`, so nothing but a
//! memo is ever changed, and a memo may vanish at any time. `seq` is the rowid, streams are integers (the index is most of
//! the cost of an append).
//!
//! A later version that adds a table keeps these texts as they are: [`inspect`] compares them word by word.

use rusqlite::{Connection, OptionalExtension as _};

use crate::log::error::LogError;

/// `application_id` as it stands in the file.
pub(super) const APPLICATION_BYTES: [u8; 4] = *b"tlog";
const APPLICATION: i64 = i32::from_be_bytes(APPLICATION_BYTES) as i64;
/// `user_version`: the number of this format.
pub(super) const FORMAT: i64 = 1;

/// Tables by name; the text is what `sqlite_schema` holds.
pub(super) const TABLES: &[(&str, &str)] = &[
    ("store", "CREATE TABLE store (id INTEGER PRIMARY KEY, store BLOB NOT NULL, proof BLOB NOT NULL) STRICT"),
    ("streams", "CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT"),
    (
        "events",
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, \
         at_ms INTEGER NOT NULL, kind TEXT NOT NULL, schema INTEGER NOT NULL, body BLOB NOT NULL, record BLOB NOT NULL, \
         chain BLOB NOT NULL, stream_chain BLOB NOT NULL, UNIQUE (stream, version)) STRICT",
    ),
    (
        "receipts",
        "CREATE TABLE receipts (key TEXT PRIMARY KEY, request BLOB NOT NULL, first_seq INTEGER NOT NULL, \
         last_seq INTEGER NOT NULL, proof BLOB NOT NULL) STRICT, WITHOUT ROWID",
    ),
    (
        "memos",
        "CREATE TABLE memos (stream INTEGER PRIMARY KEY, fold INTEGER NOT NULL, version INTEGER NOT NULL, \
         chain BLOB NOT NULL, state BLOB NOT NULL, proof BLOB NOT NULL) STRICT",
    ),
];

/// Tables that are only added to.
const APPEND_ONLY: &[&str] = &["store", "streams", "events", "receipts"];

/// Every trigger: its name and its text.
fn triggers() -> impl Iterator<Item = (String, String)> {
    APPEND_ONLY.iter().flat_map(|table| {
        ["UPDATE", "DELETE"].into_iter().map(move |verb| {
            let name = format!("{table}_no_{}", verb.to_ascii_lowercase());
            let text = format!(
                "CREATE TRIGGER {name} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'a log is only added to'); END"
            );
            (name, text)
        })
    })
}

/// Makes the tables in an empty database, inside the caller's transaction.
pub(super) fn make(conn: &Connection) -> Result<(), rusqlite::Error> {
    for (_, text) in TABLES {
        conn.execute_batch(text)?;
    }
    for (_, text) in triggers() {
        conn.execute_batch(&text)?;
    }
    conn.pragma_update(None, "application_id", APPLICATION)?;
    conn.pragma_update(None, "user_version", FORMAT)
}

/// What a database is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing was ever stored in it.
    Blank,
    /// A log of this format. Names of triggers that are gone, and of objects that are not ours.
    Log { missing: Vec<String>, foreign: Vec<String> },
    /// Some other application's database.
    Other,
    /// A log of a newer format.
    Newer(i64),
    /// It says that it is a log of this format, but this table is not as it was made.
    Altered(&'static str),
}

/// Looks at a database without changing it, all at one moment: another process may be making it a log right now.
pub(super) fn inspect(conn: &Connection) -> Result<Found, LogError> {
    if !conn.is_autocommit() {
        return looked_at(conn);
    }
    conn.execute_batch("BEGIN")?;
    let found = looked_at(conn);
    let ended = conn.execute_batch("ROLLBACK");
    let found = found?;
    ended?;
    Ok(found)
}

fn looked_at(conn: &Connection) -> Result<Found, LogError> {
    let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, format) = (pragma("application_id")?, pragma("user_version")?);
    let objects = objects(conn)?;
    if application == 0 && format == 0 && objects.is_empty() {
        return Ok(Found::Blank);
    }
    if application != APPLICATION {
        return Ok(Found::Other);
    }
    if format != FORMAT {
        return Ok(Found::Newer(format));
    }
    let has = |name: &str, text: &str| objects.iter().any(|(found, sql)| found == name && sql == text);
    if let Some((name, _)) = TABLES.iter().find(|(name, text)| !has(name, text)) {
        return Ok(Found::Altered(name));
    }
    let ours: Vec<(String, String)> = triggers().collect();
    let missing = ours.iter().filter(|(name, text)| !has(name, text)).map(|(name, _)| name.clone()).collect();
    let known = |name: &str| TABLES.iter().any(|(ours, _)| *ours == name) || ours.iter().any(|(ours, _)| ours == name);
    let foreign = objects.into_iter().map(|(name, _)| name).filter(|name| !known(name)).collect();
    Ok(Found::Log { missing, foreign })
}

/// Name and text of every table, trigger and view; SQLite's own indices have no text. In the order of their names.
fn objects(conn: &Connection) -> Result<Vec<(String, String)>, LogError> {
    let mut statement = conn.prepare(
        "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name",
    )?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let rows = statement.query_map([], |row| Ok((text(row.get(0)?), text(row.get(1)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A row of `store`.
pub(super) struct StoreRow {
    pub(super) id: i64,
    pub(super) store: Vec<u8>,
    pub(super) proof: Vec<u8>,
}

/// The newest row of `store`: the one that counts.
pub(super) fn store_row(conn: &Connection) -> Result<Option<StoreRow>, rusqlite::Error> {
    conn.prepare_cached("SELECT id, CAST(store AS BLOB), CAST(proof AS BLOB) FROM store ORDER BY id DESC LIMIT 1")?
        .query_row([], |row| Ok(StoreRow { id: row.get(0)?, store: row.get(1)?, proof: row.get(2)? }))
        .optional()
}
