//! What lies at a log's path: telling it apart, making it a log, setting it up for a writer.

use std::path::Path;

use rusqlite::Connection;

use super::place::{self, Patience};
use super::schema::{self, Found};
use super::{Journal, OpenError};
use crate::id::StoreId;
use crate::log::digest;
use crate::log::error::LogError;

/// SQLite 3.7.0 to 3.51.2 can corrupt a WAL database that several connections write.
const SQLITE_MIN: i32 = 3_051_003;

/// Whether a file with content is there; what cannot be a log is refused.
pub(super) fn is_there(path: &Path) -> Result<bool, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), verb: "looked at", source };
    let not = |found| Err(OpenError::NotALog { path: path.to_owned(), found });
    match place::stamp(path).map_err(io)? {
        None => Ok(false),
        Some(stamp) if stamp.folder => not("a folder"),
        Some(stamp) if !stamp.regular => not("a device, a pipe or a socket"),
        Some(stamp) if stamp.names > 1 => not("a file with several names (hard links), each with a WAL of its own"),
        Some(stamp) if stamp.bytes == 0 => Ok(false),
        Some(_) => {
            // Without opening it, so that no file appears beside it. One that is open here was looked at when it was opened.
            let Some(header) = place::header(path).map_err(io)? else { return Ok(true) };
            if !header.starts_with(b"SQLite format 3\0") {
                // A log that somebody began to make: a power cut left half of its first page, and a journal to take it back.
                return if place::has_journal(path).map_err(io)? { Ok(true) } else { not("not a database") };
            }
            // 0: its WAL may still say that it is a log.
            match header.get(68..72) {
                Some(application) if application != [0; 4] && application != schema::APPLICATION_BYTES => {
                    not("another application's database")
                }
                Some(_) | None => Ok(true),
            }
        }
    }
}

/// Whether a database is a log; a blank one is not, and anything else is refused.
pub(super) fn is_log(path: &Path, conn: &Connection) -> Result<bool, OpenError> {
    let path = path.to_owned();
    match schema::inspect(conn) {
        Ok(Found::Log { .. }) => Ok(true),
        Ok(Found::Blank) => Ok(false),
        Ok(Found::Other) => Err(OpenError::NotALog { path, found: "another application's database" }),
        Ok(Found::Newer(found)) => Err(OpenError::Newer { path, found, known: schema::FORMAT }),
        Ok(Found::Altered(table)) => Err(OpenError::Altered { path, table }),
        Err(source) => Err(OpenError::Log { path, source }),
    }
}

/// Sets the journal. SQLite does not wait for the lock that a change needs, so this does.
pub(super) fn set_journal(conn: &Connection, journal: Journal, busy_ms: u64) -> Result<(), LogError> {
    let word = match journal {
        Journal::Wal => "wal",
        Journal::Rollback { .. } => "delete",
    };
    let patience = Patience::of(busy_ms);
    loop {
        match switch_journal(conn, word) {
            Err(LogError::Busy(_)) if patience.wait() => {}
            other => return other,
        }
    }
}

/// The change is committed only after the answer was read: its errors come where another row would.
fn switch_journal(conn: &Connection, word: &str) -> Result<(), LogError> {
    let mut statement = conn.prepare(&format!("PRAGMA journal_mode = {word}"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let found: String = row.get(0)?;
        if found != word {
            let source = std::io::Error::other(format!("SQLite keeps the journal mode {found}"));
            return Err(LogError::Io { verb: "given its journal", source });
        }
    }
    Ok(())
}

/// Where the result of somebody's commit is not known: makes what is there now the result, whatever it is.
///
/// A page whose write failed is clean to the system afterwards, so that a later fsync says nothing of it. What SQLite takes
/// for committed is therefore copied out of the WAL into the log itself and the WAL is begun anew; what it does not is gone.
pub(super) fn settle(path: &Path, conn: &Connection, busy_ms: u64) -> Result<(), LogError> {
    let io = |source| LogError::Io { verb: "made certain after a failed commit", source };
    if !place::is_doubted(path).map_err(io)? {
        return Ok(());
    }
    let patience = Patience::of(busy_ms);
    loop {
        let in_the_way: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if in_the_way == 0 {
            break;
        }
        if !patience.wait() {
            let failure = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            let words = "a commit of unknown result has to be settled first, and a reader is in the way".to_owned();
            return Err(rusqlite::Error::SqliteFailure(failure, Some(words)).into());
        }
    }
    place::settled(path).map_err(io)
}

/// Whether this SQLite can corrupt a log.
pub(super) fn is_too_old(version: i32) -> bool {
    version < SQLITE_MIN
}

/// Makes a blank database a log; another process may have been faster.
pub(super) fn found(conn: &Connection, store: Option<StoreId>) -> Result<(), LogError> {
    let store = store.unwrap_or_else(|| StoreId(uuid::Uuid::new_v4()));
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let result = match schema::inspect(conn) {
        Ok(Found::Blank) => schema::make(conn).and_then(|()| name(conn, 1, store)).map_err(LogError::from),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = conn.execute_batch(end).map_err(LogError::from);
    result.and(ended)?;
    // The tables belong into the file itself, so that it is a log without its WAL. If a reader is in the way: later.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Says which store this is; the newest row counts.
pub(super) fn name(conn: &Connection, row: i64, store: StoreId) -> Result<(), rusqlite::Error> {
    let proof = digest::identity(row, store);
    let values = (row, &store.0.as_bytes()[..], &proof.0[..]);
    conn.execute("INSERT INTO store (id, store, proof) VALUES (?1, ?2, ?3)", values).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sqlite_that_can_corrupt_a_log_is_too_old() {
        for (version, expected) in [(3_007_000, true), (3_051_002, true), (3_051_003, false), (3_052_000, false)] {
            assert_eq!(is_too_old(version), expected, "{version}");
        }
    }
}
