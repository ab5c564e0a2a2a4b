//! Connections: how SQLite is set up, and which way a file is read without making another one beside it.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::place::{self, Held, PrivateCopy, Stamp};
use crate::log::error::{Cause, LogError};
use crate::log::request::AppendError;

/// How long a reader waits for a lock: only the recovery after a crash holds one that stops readers.
const READER_BUSY_MS: u64 = 5_000;

/// How the file is reached.
#[derive(Debug)]
pub(super) enum Source {
    /// Not at all: it was let go, to be reached anew.
    Lost,
    /// As SQLite does it, with locks.
    Shared(Held),
    /// Without locks and without files of its own, as long as there is no WAL and the file stays what it was.
    Immutable(Stamp),
    /// Through a copy of one moment, as long as the log stays what it was. Held so that it lives as long as the connection
    /// to it.
    Copied(Box<PrivateCopy>),
}

impl Source {
    /// Whether another file lies there now, or what is read without locks is no longer what it was.
    pub(super) fn moved(&self, path: &Path) -> Result<bool, LogError> {
        let io = |source| LogError::Io { verb: "looked at", source };
        let stamp = |path: &Path| place::stamp(path).map_err(io);
        match self {
            Self::Lost => Ok(true),
            Self::Shared(held) => held.is_at(path).map(|is_there| !is_there).map_err(io),
            Self::Immutable(then) => {
                let wal = stamp(&place::beside(path, "-wal"))?;
                Ok(wal.is_some_and(|wal| wal.bytes > 0) || stamp(path)? != Some(*then))
            }
            Self::Copied(copy) => copy.is_old().map_err(io),
        }
    }
}

/// A connection with every setting of this log.
pub(super) fn connect(target: &Path, flags: OpenFlags, busy_ms: u64) -> Result<Connection, LogError> {
    let conn = Connection::open_with_flags(target, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_millis(busy_ms.min(place::LONGEST_MS)))?;
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
    let size =
        |suffix| place::stamp(&place::beside(path, suffix)).map_err(io).map(|found| found.map(|file| file.bytes));
    // The shared memory of a WAL is no use between machines: whoever copied the log there has to be read as it is.
    let is_shared = !wal_mode || (size("-wal")?.is_some() && place::network(path).map_err(io)?.is_none());
    if is_shared {
        let held = Held::of(path).map_err(io)?.ok_or(LogError::Replaced)?;
        let shared = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, READER_BUSY_MS).and_then(|conn| {
            conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            Ok(conn)
        });
        match shared {
            // Its `-shm` cannot be made here or not now; what a writer did not finish is a writer's to take back.
            Err(LogError::ReadOnly(_) | LogError::DiskFull(_) | LogError::Machine(_)) => {}
            Err(LogError::Busy(error)) if is_unfinished(&error) => {}
            other => return Ok((other?, Source::Shared(held))),
        }
    }
    let is_whole = size("-wal")?.is_none_or(|bytes| bytes == 0) && size("-journal")?.is_none_or(|bytes| bytes == 0);
    if is_whole && let Some(stamp) = place::stamp(path).map_err(io)? {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let conn = connect(Path::new(&immutable(path)), flags, READER_BUSY_MS)?;
        return Ok((conn, Source::Immutable(stamp)));
    }
    copied(path)
}

/// A connection to a private copy.
pub(super) fn copied(path: &Path) -> Result<(Connection, Source), LogError> {
    const VERB: &str = "copied into the folder for temporary files ($TMPDIR), where it is read";
    let copy = PrivateCopy::of(path).map_err(|source| LogError::Io { verb: VERB, source })?;
    let copy = copy.ok_or(LogError::Changed)?;
    let conn = connect(&copy.log(), OpenFlags::SQLITE_OPEN_READ_WRITE, READER_BUSY_MS)?;
    // All of its files are open after the first read: nothing is left behind, however this process ends.
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    copy.lose_names();
    Ok((conn, Source::Copied(Box::new(copy))))
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

/// A transaction was not finished, and a reader may not take it back.
const UNFINISHED: i32 = 776;

fn is_unfinished(error: &Cause) -> bool {
    let sqlite = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error);
    sqlite.is_some_and(|failure| failure.extended_code == UNFINISHED)
}

/// The shared memory beside a WAL could not be made as long as it has to be: its file system is full.
const SHORT_MEMORY: i32 = 4874;

/// A read that ended before its page: the file is shorter than its header says.
const SHORT_READ: i32 = 522;

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> Self {
        let Some(code) = error.sqlite_error().map(|failure| failure.extended_code) else {
            // A value of another type, no row where one must be: the file does not hold what a log holds.
            return Self::Corrupt(Box::new(error));
        };
        match code & 0xff {
            5 | 6 | 15 => Self::Busy(Box::new(error)),
            // The next writer takes it back, and who opens the log anew reads a copy.
            _ if code == UNFINISHED => Self::Busy(Box::new(error)),
            13 => Self::DiskFull(Box::new(error)),
            _ if code == SHORT_MEMORY => Self::DiskFull(Box::new(error)),
            3 | 8 => Self::ReadOnly(Box::new(error)),
            // A missing table or column, a trigger or a constraint that says no: other rows than ours are there.
            1 | 11 | 19 | 26 => Self::Corrupt(Box::new(error)),
            _ if code == SHORT_READ => Self::Corrupt(Box::new(error)),
            _ => Self::Machine(Box::new(error)),
        }
    }
}

impl From<rusqlite::Error> for AppendError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Log(error.into())
    }
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
