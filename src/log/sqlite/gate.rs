//! Who writes next: a queue of processes before `BEGIN IMMEDIATE`.
//!
//! SQLite's own wait is a sleep between two tries: whoever has just committed tries first and wins again, and another writer
//! can wait for seconds. Here writers stand in line on two lock files beside the log. Who comes takes the lock of the
//! *queue*, waits for the lock of the *gate* with it in hand, and lets the next one come up then: so there is always one
//! next, and whoever leaves the gate stands behind it. A change of writers costs about as much as a commit, so a writer
//! keeps the gate for a *turn* where others wait; its own thread gives it back at the end of the turn, whatever the
//! writer does meanwhile. Where nobody waits it is given back at once, and no thread is there.
//!
//! The locks belong to the open file: they end with the process, whatever ended it, and two handles in one process are two
//! writers. A process that is stopped inside the gate stops the others; each of them gives up after its own time. Nothing
//! that SQLite guarantees rests on this: a writer that cannot have the files (no permission, a file system without such
//! locks) writes without them, and so does another program.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::place;
use crate::world::process;

/// How long a writer may go on before those that wait.
const TURN: Duration = Duration::from_millis(8);

/// How often a lock is tried where no thread can be had to wait for it.
const POLL: Duration = Duration::from_millis(1);

/// The gate of one handle.
#[derive(Debug)]
pub(super) struct Gate {
    /// Nothing where the files cannot be had.
    line: Option<Arc<Line>>,
    /// A thread stands in line for this handle, or has stood in it.
    has_thread: bool,
    /// The process that opened it: a copy that a fork made holds nothing.
    process: u32,
}

/// The lock files, and what the handle and its thread tell each other.
#[derive(Debug)]
struct Line {
    queue: File,
    gate: File,
    stand: Mutex<Stand>,
    changed: Condvar,
}

/// Where a handle stands, as it and its thread see it.
#[derive(Debug)]
enum Stand {
    /// Away from the gate.
    Away,
    /// The handle waits for the gate: the thread goes and gets it.
    Wanted,
    /// The thread has got it, for the handle to take; or there are no locks here.
    Got(io::Result<()>),
    /// The handle gave up while the thread stood in line: it leaves the gate as soon as it has it.
    GivenUp,
    /// A commit is going on; no turn where there is no thread.
    Inside(Option<Turn>),
    /// Between two commits of one turn: the thread gives the gate back when it ends.
    Kept(Turn),
    /// The handle is gone.
    Closed,
}

/// A time at the gate.
#[derive(Clone, Copy, Debug)]
struct Turn {
    until: Instant,
    /// The thread knows of it.
    is_timed: bool,
}

/// The gate was not reached in time.
#[derive(Debug)]
pub(super) struct Late;

/// Inside the gate, until dropped.
#[derive(Debug)]
pub(super) struct Pass(Option<Arc<Line>>);

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(line) = &self.0 {
            line.leave();
        }
    }
}

impl Gate {
    /// The gate of the log at this path; its files are made where they are missing, with the log's own mode.
    pub(super) fn beside(log: &Path) -> Self {
        let open = |suffix| place::lock_file(log, suffix);
        let line = match (open("-queue"), open("-gate")) {
            (Ok(queue), Ok(gate)) => {
                Some(Arc::new(Line { queue, gate, stand: Mutex::new(Stand::Away), changed: Condvar::new() }))
            }
            _ => None,
        };
        Self { line, has_thread: false, process: process::own_id() }
    }

    /// Waits until it is this handle's turn, at most so long.
    pub(super) fn enter(&mut self, wait: Duration) -> Result<Pass, Late> {
        let Some(line) = self.line.clone() else { return Ok(Pass(None)) };
        if line.go_on() {
            return Ok(Pass(Some(line)));
        }
        // A thread that still stands in line holds the lock of the queue for this very handle.
        let is_in_line = matches!(*line.stand(), Stand::GivenUp);
        let passed = match if is_in_line { Ok(false) } else { line.slip_in() } {
            Ok(false) => self.stand_in_line(&line, wait)?,
            other => other.map(drop),
        };
        if passed.is_err() {
            // No locks here: SQLite's own wait is all there is.
            self.line = None;
            return Ok(Pass(None));
        }
        let turn = || Turn { until: Instant::now() + TURN, is_timed: false };
        *line.stand() = Stand::Inside(self.has_thread.then(turn));
        Ok(Pass(Some(line)))
    }

    fn stand_in_line(&mut self, line: &Arc<Line>, wait: Duration) -> Result<io::Result<()>, Late> {
        if !self.has_thread {
            let theirs = Arc::clone(line);
            let started = std::thread::Builder::new().name("throughline-gate".into()).spawn(move || theirs.serve());
            self.has_thread = started.is_ok();
        }
        if self.has_thread { line.ask(wait) } else { line.poll(wait) }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Some(line) = self.line.as_ref().filter(|_| process::own_id() == self.process) {
            if let Stand::Kept(_) = std::mem::replace(&mut *line.stand(), Stand::Closed) {
                line.unlock_gate();
            }
            line.changed.notify_all();
        }
    }
}

impl Line {
    fn stand(&self) -> MutexGuard<'_, Stand> {
        // A stand is whole whenever the lock is free: each change of it is one assignment.
        self.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unlock_gate(&self) {
        // Unlocking a file that is open cannot fail; if it did, the lock would end with the handle.
        let _ = self.gate.unlock();
    }

    /// Whether the gate was kept from the last commit on.
    fn go_on(&self) -> bool {
        let mut stand = self.stand();
        let Stand::Kept(turn) = *stand else { return false };
        *stand = Stand::Inside(Some(turn));
        true
    }

    /// After a commit: keeps the gate if the turn goes on and others wait, else gives it back.
    fn leave(&self) {
        let mut stand = self.stand();
        let turn = if let Stand::Inside(turn) = *stand { turn } else { None };
        match turn.filter(|turn| Instant::now() < turn.until && self.is_waited_for()) {
            Some(Turn { until, is_timed }) => {
                *stand = Stand::Kept(Turn { until, is_timed: true });
                if !is_timed {
                    self.changed.notify_all();
                }
            }
            None => {
                *stand = Stand::Away;
                self.unlock_gate();
            }
        }
    }

    /// Whether somebody stands in line.
    fn is_waited_for(&self) -> bool {
        match self.queue.try_lock() {
            Ok(()) => {
                let _ = self.queue.unlock();
                false
            }
            Err(_) => true,
        }
    }

    /// Passes if nobody waits and the gate is free.
    fn slip_in(&self) -> io::Result<bool> {
        if !tried(self.queue.try_lock())? {
            return Ok(false);
        }
        let passed = tried(self.gate.try_lock());
        self.queue.unlock()?;
        passed
    }

    /// Has the thread wait for the gate. A thread that still stands in line for an earlier wish has kept its place.
    fn ask(&self, wait: Duration) -> Result<io::Result<()>, Late> {
        let until = Instant::now() + wait;
        let mut stand = self.stand();
        *stand = Stand::Wanted;
        self.changed.notify_all();
        loop {
            if let Stand::Got(_) = *stand
                && let Stand::Got(got) = std::mem::replace(&mut *stand, Stand::Away)
            {
                return Ok(got);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                *stand = Stand::GivenUp;
                return Err(Late);
            }
            stand = self.changed.wait_timeout(stand, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Without a thread: tries until the time is up.
    fn poll(&self, wait: Duration) -> Result<io::Result<()>, Late> {
        let until = Instant::now() + wait;
        loop {
            match self.slip_in() {
                Ok(true) => return Ok(Ok(())),
                Ok(false) if Instant::now() < until => std::thread::sleep(POLL),
                Ok(false) => return Err(Late),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// The thread: waits for the gate whenever that is wanted, gives it back at the end of a turn, and ends with the handle.
    fn serve(&self) {
        let mut stand = self.stand();
        loop {
            stand = match *stand {
                Stand::Wanted => {
                    drop(stand);
                    let got = self.wait_in_line();
                    self.hand_over(got)
                }
                Stand::Inside(Some(Turn { until, is_timed: true })) | Stand::Kept(Turn { until, .. }) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() && matches!(*stand, Stand::Kept(_)) {
                        *stand = Stand::Away;
                        self.unlock_gate();
                        continue;
                    }
                    // Inside at the end of a turn: the commit itself gives it back.
                    let left = if left.is_zero() { TURN } else { left };
                    self.changed.wait_timeout(stand, left).unwrap_or_else(PoisonError::into_inner).0
                }
                Stand::Closed => return,
                Stand::Away | Stand::Got(_) | Stand::GivenUp | Stand::Inside(_) => {
                    self.changed.wait(stand).unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// The whole way, however long it takes.
    fn wait_in_line(&self) -> io::Result<()> {
        locked(&self.queue)?;
        let passed = locked(&self.gate);
        self.queue.unlock()?;
        passed
    }

    /// Gives the gate to the handle, or back where that has given up.
    fn hand_over(&self, got: io::Result<()>) -> MutexGuard<'_, Stand> {
        let mut stand = self.stand();
        match *stand {
            Stand::Wanted => {
                *stand = Stand::Got(got);
                self.changed.notify_all();
            }
            Stand::GivenUp => {
                *stand = Stand::Away;
                self.unlock_gate();
            }
            Stand::Away | Stand::Got(_) | Stand::Inside(_) | Stand::Kept(_) | Stand::Closed => self.unlock_gate(),
        }
        stand
    }
}

/// A try as a question: whether it was had.
fn tried(result: Result<(), TryLockError>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn locked(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
