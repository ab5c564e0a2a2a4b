//! Copying the WAL back into the log beside the appends, so that none of them waits for it.
//!
//! A thread with a connection of its own copies what is there when it begins: most of it. What is appended meanwhile is
//! little, and is copied by the next append that comes by; the WAL begins anew then, unless a reader still needs it. Without
//! that second step a log that is written all the time would keep a WAL that only grows.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OpenFlags};

use super::connect::connect;
use super::place::{self, Held};
use crate::log::error::LogError;

/// The copying of one handle.
#[derive(Debug, Default)]
pub(super) struct Copying {
    /// A thread was started and its work was not taken up yet; whether it is done.
    done: Option<Arc<AtomicBool>>,
}

impl Copying {
    /// Goes a step on, if the WAL is larger than this. Not worth an error: a later one will.
    pub(super) fn step(&mut self, log: &Path, conn: &Connection, above: u64) {
        match &self.done {
            Some(done) if done.load(Ordering::Acquire) => {
                self.done = None;
                let _ = passive(conn);
            }
            Some(_) => {}
            None if wal_is_above(log, above) => self.start(log, conn),
            None => {}
        }
    }

    fn start(&mut self, log: &Path, conn: &Connection) {
        let done = Arc::new(AtomicBool::new(false));
        let (path, theirs) = (log.to_owned(), Arc::clone(&done));
        let copy = move || {
            let _ = copied(&path);
            theirs.store(true, Ordering::Release);
        };
        match std::thread::Builder::new().name("throughline-copying".into()).spawn(copy) {
            Ok(_) => self.done = Some(done),
            // No thread can be had: here, then.
            Err(_) => drop(passive(conn)),
        }
    }
}

fn copied(log: &Path) -> Result<(), LogError> {
    let held = Held::of(log).map_err(|source| LogError::Io { verb: "looked at", source })?;
    let _held = held.ok_or(LogError::Replaced)?;
    passive(&connect(log, OpenFlags::SQLITE_OPEN_READ_WRITE, 0)?)
}

/// Whether the WAL is larger than this.
pub(super) fn wal_is_above(log: &Path, bytes: u64) -> bool {
    place::stamp(&place::beside(log, "-wal")).is_ok_and(|wal| wal.is_some_and(|wal| wal.bytes > bytes))
}

/// Copies as much of the WAL as no reader needs.
pub(super) fn passive(conn: &Connection) -> Result<(), LogError> {
    Ok(conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot set up its log has failed")]

    use super::*;
    use crate::chain::fold::State;
    use crate::event::FreshIntended;
    use crate::log::{Append, Entry, Expectation, Log as _, Opening, Records as _, SqliteLog};

    #[test]
    fn a_wal_is_copied_back_beside_the_appends_and_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.db");
        let log = SqliteLog::<State>::open(&path, &Opening::default()).unwrap();
        let put = || {
            let events = vec![FreshIntended { pane: None }.into()];
            let entry = Entry { stream: "agent/a".parse().unwrap(), expected: Expectation::Any, events };
            log.append(&[entry], &Append::at(1)).unwrap();
        };
        (0..50).for_each(|_| put());
        let frames = || log.conn().query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get::<_, i64>(1)).unwrap();
        let before = frames();
        let mut copying = Copying::default();
        let conn = log.conn();
        copying.step(log.path(), &conn, u64::MAX);
        assert!(copying.done.is_none(), "nothing is done about a small WAL");
        // Who reads keeps what comes now from being copied, whenever the thread gets to it.
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
        put();
        copying.step(log.path(), &conn, 0);
        let done = copying.done.clone().unwrap();
        while !done.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        drop(reader);
        put();
        assert!(frames() >= before, "what came meanwhile keeps the WAL");
        copying.step(log.path(), &conn, 0);
        put();
        assert!(frames() < before, "{} of {before}", frames());
        assert!(log.verify(None, &mut |_| {}).unwrap().is_sound());
        assert_eq!(log.anchor().unwrap().seq.0, 53);
    }
}
