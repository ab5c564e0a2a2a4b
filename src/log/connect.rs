//! Connections: how SQLite is set up, and which way a file is read without making another one beside it.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::{self, LogError};
use super::place::{self, Held, PrivateCopy, Stamp};

/// How long a reader waits for a lock: only the recovery after a crash holds one that stops readers.
const READER_BUSY_MS: u64 = 5_000;

/// How the file is reached.
#[derive(Debug)]
pub(super) enum Source {
    /// As SQLite does it, with locks.
    Shared(#[expect(dead_code, reason = "it is given back when dropped")] Held),
    /// Without locks and without files of its own, as long as there is no WAL and the file stays what it was.
    Immutable(Stamp),
    /// Through a copy of one moment, as long as the log stays what it was then.
    Copied(PrivateCopy),
}

/// A connection with every setting of this log.
pub(super) fn connect(target: &Path, flags: OpenFlags, busy_ms: u64) -> Result<Connection, LogError> {
    let conn = Connection::open_with_flags(target, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_millis(busy_ms))?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // EXTRA is FULL in WAL mode. A rollback journal that was removed to commit can be back after a power cut, and take the
    // commit back, where its folder was not synced: EXTRA syncs it.
    conn.execute_batch("PRAGMA cell_size_check = ON; PRAGMA synchronous = EXTRA; PRAGMA wal_autocheckpoint = 0")?;
    Ok(conn)
}

/// A connection that reads, without making a file that is not SQLite's own beside a WAL that is there.
pub(super) fn reading(path: &Path) -> Result<(Connection, Source), LogError> {
    let io = |source| LogError::Io { verb: "looked at", source };
    let header = place::header(path).map_err(io)?;
    let wal_mode = header.as_ref().is_some_and(|header| header.get(18) == Some(&2));
    if !wal_mode {
        let held = Held::of(path).map_err(io)?;
        return match shared(path) {
            // What its writer did not finish has to be taken back first: in a copy, for here that is a writer's to do.
            Err(LogError::Busy(error)) if error::is_unfinished(&error) => copied(path),
            other => Ok((other?, Source::Shared(held))),
        };
    }
    let wal = || place::stamp(&place::beside(path, "-wal")).map_err(io);
    if wal()?.is_some() {
        let held = Held::of(path).map_err(io)?;
        match shared(path) {
            // Its `-shm` cannot be made here, or not now.
            Err(LogError::ReadOnly(_) | LogError::DiskFull(_) | LogError::Sqlite(_)) => {}
            other => return Ok((other?, Source::Shared(held))),
        }
    }
    if wal()?.is_none_or(|wal| wal.bytes == 0)
        && let Some(stamp) = place::stamp(path).map_err(io)?
    {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let conn = connect(Path::new(&immutable(path)), flags, READER_BUSY_MS)?;
        return Ok((conn, Source::Immutable(stamp)));
    }
    copied(path)
}

/// A connection that reads with locks; it has read something, for SQLite opens a file only then.
fn shared(path: &Path) -> Result<Connection, LogError> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, READER_BUSY_MS)?;
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(conn)
}

/// A connection to a private copy.
pub(super) fn copied(path: &Path) -> Result<(Connection, Source), LogError> {
    let copy = PrivateCopy::of(path).map_err(|source| LogError::Io { verb: "copied to be read", source })?;
    let copy = copy.ok_or(LogError::Changed)?;
    let conn = connect(&copy.log(), OpenFlags::SQLITE_OPEN_READ_WRITE, READER_BUSY_MS)?;
    Ok((conn, Source::Copied(copy)))
}

/// The path as a URI by which SQLite takes no lock and makes no file.
fn immutable(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_durable_with_either_journal() {
        let conn = connect(Path::new(":memory:"), OpenFlags::SQLITE_OPEN_READ_WRITE, 0);
        let synchronous =
            conn.and_then(|conn| Ok(conn.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))?));
        const EXTRA: i64 = 3;
        assert!(matches!(synchronous, Ok(EXTRA)), "{synchronous:?}");
    }

    #[test]
    fn a_uri_holds_any_path() {
        assert_eq!(immutable(Path::new("/a b/ü?#%.db")), "file:/a%20b/%C3%BC%3F%23%25.db?immutable=1");
    }
}
