//! Writing to a log in SQLite: one transaction for an append or an import, allocated and checked inside one
//! `BEGIN IMMEDIATE`.

use std::cell::Cell;
use std::io::BufRead;

use rusqlite::Connection;

use super::place::{self, Patience};
use super::rows::SqliteRows;
use super::{SqliteLog, WAL_BYTES_AT_APPEND, gate};
use crate::log::batch::Batch;
use crate::log::error::LogError;
use crate::log::import::{self, Import, ImportError, Imported};
use crate::log::request::{Append, AppendError, Appended, Entry, Request};
use crate::log::{Fold, Log, Records};

impl<F: Fold> Log<F> for SqliteLog<F> {
    fn records(&self) -> &dyn Records<F> {
        &**self
    }

    /// Waits for other writers as long as [`Opening::busy_ms`](super::Opening::busy_ms) says.
    fn append(&self, entries: &[Entry], append: &Append) -> Result<Appended, AppendError> {
        let request = Request::new(entries, append)?;
        let appended = self.write_in(|batch| batch.append(&request, append))?;
        // Looked at now and then: whenever the log passes another 256 events.
        let is_due = appended.first.is_some_and(|first| (first.0 - 1) / 256 != appended.anchor.seq.0 / 256);
        if is_due && matches!(self.moved(), Ok(false)) {
            self.copying.borrow_mut().step(self.path(), &self.conn(), WAL_BYTES_AT_APPEND);
        }
        Ok(appended)
    }

    fn import(
        &self,
        from: &mut dyn BufRead,
        import: &Import,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, ImportError> {
        let (imported, store) = self.write_in(|batch| {
            let imported = import::import(batch, from, import, progress)?;
            Ok::<_, ImportError>((imported, batch.store))
        })?;
        self.set_store(store);
        Ok(imported)
    }
}

impl<F: Fold> SqliteLog<F> {
    /// Runs `write` in one write transaction and commits it; its end is remembered then.
    fn write_in<T, E: From<AppendError> + From<LogError>>(
        &self,
        write: impl FnOnce(&mut Batch<'_, F, SqliteRows<'_>>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.at_home()?;
        let conn = self.conn();
        // Both are so inside a callback of this handle: of a read of it, of an import into it.
        let (true, Ok(mut tips)) = (conn.is_autocommit(), self.tips.try_borrow_mut()) else {
            return Err(AppendError::InsideRead.into());
        };
        if self.poisoned.get() {
            return Err(LogError::Poisoned.into());
        }
        let began = Patience::of(self.busy_ms);
        let pass =
            self.gate.borrow_mut().enter(began.left()).map_err(|gate::Late| LogError::Busy(Box::new(NotInTime)))?;
        if self.moved()? {
            return Err(LogError::Replaced.into());
        }
        // What is left of the time is for writers that know of no gate.
        conn.busy_timeout(began.left()).map_err(LogError::from)?;
        let mut change = Change::begin(&conn, self.writing())?;
        // Whoever had the lock, or this one while it waited for it, may have lost the log.
        if self.moved()? {
            return Err(LogError::Replaced.into());
        }
        let store = self.store_now(&conn)?;
        let mut batch = Batch::new(SqliteRows::new(&conn, store)?, store, &mut tips)?;
        let value = write(&mut batch)?;
        let end = batch.end()?;
        if self.moved()? {
            return Err(LogError::Replaced.into());
        }
        if let Err(error) = change.commit() {
            if matches!(error, AppendError::UnknownCommit(_)) {
                self.poisoned.set(true);
                // Without it the next one that opens the log takes what it finds, which is right until a power cut.
                let _ = place::doubt(self.path());
            }
            return Err(error.into());
        }
        drop(change);
        drop(pass);
        // It went into files that nobody reads any more.
        if self.moved()? {
            return Err(LogError::Replaced.into());
        }
        tips.keep(end);
        Ok(value)
    }
}

/// Others held the gate for too long.
#[derive(Debug, thiserror::Error)]
#[error("other writers were before this one for all of its time, or one of them is stopped")]
struct NotInTime;

/// A write transaction; rolled back unless it was committed. While it lasts, this handle answers no other question: it
/// would see what is not committed.
struct Change<'c> {
    conn: &'c Connection,
    writing: &'c Cell<bool>,
}

impl<'c> Change<'c> {
    fn begin(conn: &'c Connection, writing: &'c Cell<bool>) -> Result<Self, LogError> {
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        writing.set(true);
        Ok(Self { conn, writing })
    }

    /// A commit that says "busy" or "full" did not happen; any other error leaves it open.
    fn commit(&mut self) -> Result<(), AppendError> {
        let result = self.conn.prepare_cached("COMMIT").and_then(|mut statement| statement.execute([]));
        let Err(error) = result else { return Ok(()) };
        match error.sqlite_error().map(|failure| failure.extended_code & 0xff) {
            Some(5 | 6 | 13) => Err(AppendError::Log(error.into())),
            _ => Err(AppendError::UnknownCommit(Box::new(error))),
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.writing.set(false);
        if !self.conn.is_autocommit() {
            // An error here means that SQLite rolled back by itself.
            let _ = self.conn.prepare_cached("ROLLBACK").and_then(|mut statement| statement.execute([]));
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set up its log has failed")]

    use super::*;
    use crate::event::{Event, FreshIntended};
    use crate::id::{Seq, StreamName};
    use crate::log::{Class, Expectation, Opening};

    #[derive(Clone)]
    struct Nothing;

    impl Fold for Nothing {
        const VERSION: u32 = 1;
        type Illegal = std::convert::Infallible;
        fn empty(_: &StreamName) -> Self {
            Self
        }
        fn admit(&self, _: &Event) -> Result<(), Self::Illegal> {
            Ok(())
        }
        fn apply(&mut self, _: &Event) -> Result<(), Self::Illegal> {
            Ok(())
        }
        fn encode(&self) -> Vec<u8> {
            Vec::new()
        }
        fn decode(_: &StreamName, _: &[u8]) -> Option<Self> {
            Some(Self)
        }
    }

    fn some(count: usize) -> Vec<Entry> {
        let events = vec![FreshIntended { pane: None }.into(); count];
        vec![Entry { stream: "agent/a".parse().unwrap(), expected: Expectation::Any, events }]
    }

    #[test]
    fn a_full_disk_is_said_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let log = SqliteLog::<Nothing>::open(&dir.path().join("log.db"), &Opening::default()).unwrap();
        let before = log.append(&some(20), &Append::at(1)).unwrap().anchor;
        // A limit of this connection: SQLite answers as if the disk were full.
        let limit = |pages: u32| {
            log.conn().query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        };
        limit(1);
        let result = log.append(&some(3_000), &Append::at(1));
        let Err(AppendError::Log(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.class(), Class::DiskFull);
        assert_eq!(log.anchor().unwrap(), before);
        limit(1_000_000);
        assert_eq!(log.append(&some(3_000), &Append::at(1)).unwrap().first, Some(Seq(21)));
        assert!(log.verify(Some(before), &mut |_| {}).unwrap().is_sound());
    }
}
