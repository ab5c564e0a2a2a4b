//! A log in an SQLite file: opening it, as its writer or as a reader.
//!
//! A file is looked at before anything about it is changed: what is not a log of this format is refused as what it is.
//!
//! **Writing.** WAL and `synchronous=FULL`, so that an acknowledged append survives a power cut; on a network file system,
//! where several machines have no common shared memory, the rollback journal instead ([`SqliteLog::journal`] says so). No
//! checkpoint runs inside an append and none at close: the WAL is copied back when a writer opens the log and finds it
//! larger than [`WAL_BYTES_AT_OPEN`], and by a thread beside a writer that stays open once it is larger than
//! [`WAL_BYTES_AT_APPEND`]. Between the two [`SqliteLog::checkpoint`] is the caller's to call.
//!
//! **Reading** creates nothing but SQLite's own `-shm` beside a WAL that is there. A log without a WAL is read as an
//! immutable file (see [`Source::Immutable`]); a WAL in a folder in which no `-shm` can be made is read through a private
//! copy, which is taken anew once the log is no longer what was copied.

mod connect;
mod copying;
mod file;
mod gate;
mod memo;
mod place;
mod read;
mod row;
mod rows;
mod schema;
mod verify;
mod write;

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use rusqlite::OpenFlags;

use self::connect::{Source, connect, reading};
use self::copying::{Copying, passive, wal_is_above};
use self::file::{found, is_log, is_there, is_too_old, set_journal, settle};
use self::gate::Gate;
use self::place::{Held, Patience};
pub use self::read::SqliteRecords;
use super::batch::Tips;
use super::error::{Class, LogError, class_of};
use crate::id::StoreId;

/// A WAL that is larger than this when a writer opens the log is copied back then.
pub const WAL_BYTES_AT_OPEN: u64 = 4 * 1024 * 1024;

/// A WAL that an open writer finds larger than this after an append is copied back beside it.
pub const WAL_BYTES_AT_APPEND: u64 = 64 * 1024 * 1024;

/// How long a reader waits for an empty file to become a log.
const EMPTY_MS: u64 = 500;

const EMPTY: &str = "an empty file";

/// How a writer opens a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opening {
    /// Make the log where there is none.
    pub create: bool,
    /// How long to wait for other processes before the answer is "busy".
    pub busy_ms: u64,
    /// The id of a log that is made; a random one where it is not given. Of a log that is there it changes nothing.
    pub store: Option<StoreId>,
}

impl Default for Opening {
    fn default() -> Self {
        Self { create: true, busy_ms: 5_000, store: None }
    }
}

/// Why a log was not opened. Nothing that was there was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no log, or an empty file that was never made one.
    #[error("there is no log at {}", path.display())]
    NotThere {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Something else is there: a folder, a text, another application's database.
    #[error("{} is not a log: it is {found}", path.display())]
    NotALog {
        /// Where.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A log of a format that this build does not know.
    #[error("the log {} has format {found}, this version reads {known}; use a newer throughline", path.display())]
    Newer {
        /// Where.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The format of this build.
        known: i64,
    },
    /// A table of the log is not as it was made.
    #[error("the table {table} of the log {} was altered; restore it from a copy or an export", path.display())]
    Altered {
        /// Where.
        path: PathBuf,
        /// Which table.
        table: &'static str,
    },
    /// This user or this medium cannot write it; it may be readable.
    #[error("the log {} cannot be written here", path.display())]
    ReadOnly {
        /// Where.
        path: PathBuf,
    },
    /// The SQLite in this build is one that can corrupt a log.
    #[error("SQLite {found} can corrupt a log that several processes write; build with 3.51.3 or newer")]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
    /// A log cannot be made or found here.
    #[error("the log {} could not be {verb}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What was tried.
        verb: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// It is there, but it cannot be read now or holds what a log does not hold.
    #[error("the log {} could not be opened", path.display())]
    Log {
        /// Where.
        path: PathBuf,
        /// Why.
        source: LogError,
    },
}

impl OpenError {
    /// What kind of error it is.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::NotThere { .. } => Class::NotThere,
            Self::NotALog { .. } | Self::Newer { .. } | Self::Altered { .. } => Class::Corrupt,
            Self::ReadOnly { .. } => Class::ReadOnly,
            Self::OldSqlite { .. } => Class::Io,
            Self::Io { source, .. } => class_of(source),
            Self::Log { source, .. } => source.class(),
        }
    }
}

/// How commits become durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Journal {
    /// Write-ahead log: readers and a writer at once.
    Wal,
    /// Rollback journal: the log lies on a network file system, and a writer keeps readers out while it commits.
    Rollback {
        /// The kind of file system.
        file_system: &'static str,
    },
}

/// A log in an SQLite file, open for writing: a [`Log`](super::Log), and (by `Deref`) its [`Records`](super::Records).
///
/// ```
/// # use throughline::event::{AgentDeclared, Event};
/// # use throughline::id::{ProviderName, StreamName};
/// use throughline::log::{Append, Entry, Expectation, Fold, Log as _, Opening, Records as _, SqliteLog};
///
/// /// How many events a stream has.
/// #[derive(Clone)]
/// struct Count(u64);
///
/// impl Fold for Count {
///     const VERSION: u32 = 1;
///     type Illegal = std::convert::Infallible;
///     fn empty(_: &StreamName) -> Self {
///         Self(0)
///     }
///     fn admit(&self, _: &Event) -> Result<(), Self::Illegal> {
///         Ok(())
///     }
///     fn apply(&mut self, _: &Event) -> Result<(), Self::Illegal> {
///         self.0 += 1;
///         Ok(())
///     }
///     fn encode(&self) -> Vec<u8> {
///         self.0.to_le_bytes().to_vec()
///     }
///     fn decode(_: &StreamName, bytes: &[u8]) -> Option<Self> {
///         bytes.try_into().ok().map(|bytes| Self(u64::from_le_bytes(bytes)))
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// let log = SqliteLog::<Count>::open(&dir.path().join("log.db"), &Opening::default())?;
/// let stream: StreamName = "agent/marks".parse()?;
/// let declared = Event::from(AgentDeclared { provider: ProviderName::parse("claude")?, forked_from: None });
/// let entry = Entry { stream: stream.clone(), expected: Expectation::Any, events: vec![declared] };
/// let appended = log.append(&[entry], &Append::at(1_700_000_000_000))?;
/// assert_eq!(log.anchor()?, appended.anchor);
/// let (frontier, count) = log.state(&stream)?;
/// assert_eq!((frontier.version.0, count.0), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteLog<F> {
    records: SqliteRecords<F>,
    journal: Journal,
    tips: RefCell<Tips<F>>,
    gate: RefCell<Gate>,
    copying: RefCell<Copying>,
    /// How long a write waits for others.
    busy_ms: u64,
    /// A commit's result is not known: nothing more is written through this handle.
    poisoned: Cell<bool>,
}

impl<F> Deref for SqliteLog<F> {
    type Target = SqliteRecords<F>;

    fn deref(&self) -> &SqliteRecords<F> {
        &self.records
    }
}

impl<F> SqliteLog<F> {
    /// Opens a log for writing, and makes it where there is none if `opening` says so.
    ///
    /// Two processes that make one log at the same moment both get it.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; what was there is unchanged. Where a log was to be made, an empty file may be left, which the next
    /// call makes a log.
    ///
    /// # Crash
    ///
    /// A log that this returned is durable, name and all. A power cut inside leaves nothing, an empty file or a whole
    /// empty log.
    pub fn open(path: &Path, opening: &Opening) -> Result<Self, OpenError> {
        Self::open_on(path, opening, place::network)
    }

    /// On a file system of which `network` says whether it is one.
    fn open_on(
        path: &Path,
        opening: &Opening,
        network: fn(&Path) -> std::io::Result<Option<&'static str>>,
    ) -> Result<Self, OpenError> {
        let io = |verb| move |source| OpenError::Io { path: path.to_owned(), verb, source };
        if is_too_old(rusqlite::version_number()) {
            return Err(OpenError::OldSqlite { found: rusqlite::version() });
        }
        if !is_there(path)? {
            if !opening.create {
                return Err(OpenError::NotThere { path: path.to_owned() });
            }
            // A WAL is the newest part of a log, and may be all of it: making a log beside it would destroy that.
            let wal = place::stamp(&place::beside(path, "-wal")).map_err(io("looked at"))?;
            if wal.is_some_and(|wal| wal.bytes > 0) {
                return Err(OpenError::NotALog { path: path.to_owned(), found: "nothing but the WAL of a log" });
            }
            place::create(path).map_err(io("created"))?;
        }
        let real = place::real(path).map_err(io("found"))?;
        let network = network(&real).map_err(io("looked at"))?;
        let journal = network.map_or(Journal::Wal, |file_system| Journal::Rollback { file_system });
        let located = |source| OpenError::Log { path: path.to_owned(), source };
        let held = Held::of(&real).map_err(io("looked at"))?.ok_or(LogError::Replaced).map_err(located)?;
        let conn = connect(&real, OpenFlags::SQLITE_OPEN_READ_WRITE, opening.busy_ms).map_err(located)?;
        if conn.is_readonly("main").map_err(LogError::from).map_err(located)? {
            return Err(OpenError::ReadOnly { path: path.to_owned() });
        }
        if !is_log(path, &conn)? {
            if !opening.create {
                return Err(OpenError::NotThere { path: path.to_owned() });
            }
            set_journal(&conn, journal, opening.busy_ms).map_err(located)?;
            found(&conn, opening.store).map_err(located)?;
            is_log(path, &conn)?;
        }
        set_journal(&conn, journal, opening.busy_ms).map_err(located)?;
        place::sync(&real).map_err(io("made durable"))?;
        settle(&real, &conn, opening.busy_ms).map_err(located)?;
        let records = SqliteRecords::new(real, conn, Source::Shared(held), true).map_err(located)?;
        let gate = RefCell::new(Gate::beside(records.path()));
        let (tips, busy_ms, poisoned) = (RefCell::default(), opening.busy_ms, Cell::new(false));
        let log = Self { records, journal, tips, gate, copying: RefCell::default(), busy_ms, poisoned };
        if wal_is_above(log.path(), WAL_BYTES_AT_OPEN) {
            // Not worth an error: a later one will.
            let _ = log.checkpoint();
        }
        Ok(log)
    }

    /// How commits become durable here.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.journal
    }

    /// Copies the WAL back into the log, as far as no reader needs it. Off the append path: call it when idle.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the log cannot be written. Every acknowledged event is where it was.
    pub fn checkpoint(&self) -> Result<(), LogError> {
        self.at_home()?;
        if self.moved()? {
            return Err(LogError::Replaced);
        }
        passive(&self.conn())
    }
}

/// A log in an SQLite file, open for reading only: its [`Records`](super::Records), by `Deref`.
///
/// ```
/// use throughline::chain::fold::State;
/// use throughline::log::{OpenError, Opening, Reader, Records as _, SqliteLog};
///
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("log.db");
/// assert!(matches!(Reader::<State>::open(&path), Err(OpenError::NotThere { .. })));
/// let log = SqliteLog::<State>::open(&path, &Opening::default())?;
/// let reader = Reader::<State>::open(&path)?;
/// assert_eq!(reader.store(), log.store());
/// assert_eq!(reader.anchor()?.seq.0, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader<F>(SqliteRecords<F>);

impl<F> Deref for Reader<F> {
    type Target = SqliteRecords<F>;

    fn deref(&self) -> &SqliteRecords<F> {
        &self.0
    }
}

impl<F> Reader<F> {
    /// Opens a log for reading. Creates nothing, and what it answers is never older than what was committed by now.
    ///
    /// # Errors
    ///
    /// [`OpenError::NotThere`] where there is nothing; the others say what is there instead of a log.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        // Empty or blank: a log that somebody makes right now, or one that was cut off or never finished, and stays so.
        let patience = Patience::of(EMPTY_MS);
        loop {
            let error = match Self::once(path) {
                Err(error @ (OpenError::NotALog { found: EMPTY, .. } | OpenError::NotThere { .. })) => error,
                other => return other,
            };
            let nothing = matches!(place::stamp(path), Ok(None));
            if nothing || !patience.wait() {
                return Err(error);
            }
        }
    }

    /// What it reads by, for whoever keeps it as a `dyn Records`.
    #[must_use]
    pub fn into_records(self) -> SqliteRecords<F> {
        self.0
    }

    fn once(path: &Path) -> Result<Self, OpenError> {
        if !is_there(path)? {
            let path = path.to_owned();
            let nothing = matches!(place::stamp(&path), Ok(None));
            return Err(if nothing { OpenError::NotThere { path } } else { OpenError::NotALog { path, found: EMPTY } });
        }
        let real = place::real(path);
        let real = real.map_err(|source| OpenError::Io { path: path.to_owned(), verb: "found", source })?;
        let located = |source| OpenError::Log { path: path.to_owned(), source };
        let (conn, source) = reading(&real).map_err(located)?;
        if !is_log(path, &conn)? {
            return Err(OpenError::NotThere { path: path.to_owned() });
        }
        SqliteRecords::new(real, conn, source, false).map(Self).map_err(located)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot set up its log has failed")]

    use super::connect::copied;
    use super::file::name;
    use super::*;
    use crate::chain::fold::State;
    use crate::event::FreshIntended;
    use crate::log::{Append, Entry, Expectation, Log as _, Records as _};

    fn blank() -> Vec<Entry> {
        let events = vec![FreshIntended { pane: None }.into()];
        vec![Entry { stream: "agent/a".parse().unwrap(), expected: Expectation::Any, events }]
    }

    #[test]
    fn on_a_network_file_system_there_is_no_wal_and_the_log_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.db");
        let there = |busy_ms| {
            let opening = Opening { busy_ms, ..Opening::default() };
            SqliteLog::<State>::open_on(&path, &opening, |_| Ok(Some("NFS"))).unwrap()
        };
        let (log, other) = (there(5_000), there(50));
        assert_eq!(log.journal(), Journal::Rollback { file_system: "NFS" });
        for writer in [&log, &other, &log] {
            writer.append(&blank(), &Append::at(1)).unwrap();
        }
        let beside = |suffix| place::stamp(&place::beside(&path, suffix)).unwrap();
        assert!(["-wal", "-shm", "-journal"].into_iter().all(|suffix| beside(suffix).is_none()));
        let reader = Reader::<State>::open(&path).unwrap();
        assert_eq!(reader.anchor().unwrap(), log.anchor().unwrap());
        assert!(reader.verify(None, &mut |_| {}).unwrap().is_sound());
        // A writer waits for a reader that reads, and says so when its time is up.
        let reading = reader.conn();
        reading.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
        assert_eq!(other.append(&blank(), &Append::at(1)).unwrap_err().class(), Class::Busy);
        reading.execute_batch("COMMIT").unwrap();
        assert_eq!(other.append(&blank(), &Append::at(1)).unwrap().anchor.seq.0, 4);
        // Brought home again, it gets its WAL.
        drop((log, other, reading, reader));
        let home = SqliteLog::<State>::open(&path, &Opening::default()).unwrap();
        assert_eq!((home.journal(), home.anchor().unwrap().seq.0), (Journal::Wal, 4));
    }

    #[test]
    fn a_doubted_commit_is_settled_by_the_next_that_opens_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.db");
        let log = SqliteLog::<State>::open(&path, &Opening::default()).unwrap();
        let other = StoreId(uuid::Uuid::from_u128(7));
        name(&log.conn(), 2, other).unwrap();
        place::doubt(log.path()).unwrap();
        // Somebody reads from the WAL: it cannot be begun anew now.
        let reader = Reader::<State>::open(&path).unwrap();
        let reading = reader.conn();
        reading.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
        let soon = Opening { busy_ms: 50, ..Opening::default() };
        let error = SqliteLog::<State>::open(&path, &soon).unwrap_err();
        assert_eq!(error.class(), Class::Busy);
        assert!(place::is_doubted(&path).unwrap());
        reading.execute_batch("COMMIT").unwrap();
        let again = SqliteLog::<State>::open(&path, &soon).unwrap();
        assert_eq!((again.store(), place::is_doubted(&path).unwrap()), (other, false));
        assert_eq!(place::stamp(&place::beside(&path, "-wal")).unwrap().unwrap().bytes, 0);
    }

    #[test]
    fn a_private_copy_answers_what_the_log_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.db");
        let log = SqliteLog::<State>::open(&path, &Opening::default()).unwrap();
        // In the WAL alone: as long as nobody copies it back.
        let other = StoreId(uuid::Uuid::from_u128(7));
        name(&log.conn(), 2, other).unwrap();
        assert!(place::stamp(&place::beside(&path, "-wal")).unwrap().unwrap().bytes > 0);
        let copied = copied(log.path()).unwrap();
        let records = SqliteRecords::<State>::new(log.path().to_owned(), copied.0, copied.1, false).unwrap();
        assert_eq!(records.store(), other);
        assert_eq!(records.anchor().unwrap(), log.anchor().unwrap());
    }
}
