//! The simulated machine: one disk, one process table, one log, and actors that stop at every door.
//!
//! An actor is a coroutine that runs the very code of the protocols (or the pretend CLI, or a short script). Before each
//! thing that it asks of the world it stops and says what it is about to do; whoever explores decides who goes on, whose
//! door fails, who dies there. Nothing here chooses. Names, times and pids are functions of the actor and of how often it
//! asked, so that equal worlds are equal whatever the order was in which they came about.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use corosensei::Yielder;

use crate::chain::fold::State;
use crate::chain::spawn::SpawnError;
use crate::event::{Holder, VerdictWord};
use crate::id::StoreId;
use crate::log::MemoryLog;
use crate::sim::canary::Canary;
use crate::sim::disk::Disk;
use crate::world::doors::{Command, DoorError, DoorKind};

/// What an actor is about to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The door, for example `link_new`.
    pub door: &'static str,
    /// Where.
    pub path: String,
    /// Whether it can fail on its own: a fault is tried there.
    pub can_fail: bool,
    /// Whether it touches anything that another actor can see or change.
    pub is_shared: bool,
    /// The process whose words it waits for.
    pub waits_for: Option<usize>,
}

/// What an actor is told at a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Go {
    /// It opens.
    On,
    /// It does not, for this reason.
    Fail(DoorKind),
    /// The actor is dead.
    Die,
}

/// A process as the process table and those who listen to it see it.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Whether it runs.
    pub alive: bool,
    /// It waits to be let go.
    pub held: bool,
    /// What it said and nobody heard yet.
    pub said: VecDeque<(bool, String)>,
    /// Its exit code, once it has ended.
    pub code: Option<i32>,
    /// What it was started with.
    pub command: Option<Command>,
    /// Who launched it.
    pub parent: Option<usize>,
    /// What it sent to the model.
    pub sent: Vec<String>,
    /// How often it did something since somebody looked.
    pub moved: bool,
}

/// What came of a spawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Something was launched.
    Spawned {
        /// What was planned, of the last process.
        expected: VerdictWord,
        /// What happened.
        actual: VerdictWord,
        /// How many processes.
        attempts: usize,
        /// What was proved and not planned.
        drift: Option<String>,
        /// Why the log lacks something.
        unrecorded: Option<String>,
    },
    /// Somebody else drives.
    Busy(String),
    /// It was not what the receipt said.
    Drift(String),
    /// It could not be told.
    Unknown(String),
    /// The world or the log failed.
    Failed(String),
}

impl Ending {
    /// Of a spawn that launched nothing.
    #[must_use]
    pub fn of(error: &SpawnError) -> Self {
        let causes = std::iter::successors(Some(error as &dyn std::error::Error), |cause| cause.source());
        let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        match error {
            SpawnError::Busy { .. } | SpawnError::LeaseOver { .. } => Self::Busy(text),
            SpawnError::Drift(_) => Self::Drift(text),
            SpawnError::Unknown { .. } => Self::Unknown(text),
            SpawnError::NoAgent | SpawnError::Relocate(_) | SpawnError::Launch(_) | SpawnError::Act(_) => {
                Self::Failed(text)
            }
        }
    }
}

/// What all actors share.
#[derive(Debug)]
pub struct Hub {
    /// The disk.
    pub disk: Disk,
    /// The log.
    pub log: MemoryLog<State>,
    /// What each stream holds, as a hash.
    pub streams: BTreeMap<String, u64>,
    /// By the number of their actor.
    pub processes: Vec<Process>,
    /// Locks, and who holds them.
    pub locks: BTreeMap<String, usize>,
    /// How often the machine was started.
    pub boot: u32,
    /// What each actor was told, as a hash.
    pub replies: Vec<u64>,
    /// How many names each actor was given.
    pub names: Vec<u32>,
    /// Whether hard links are possible.
    pub links: bool,
    /// Turns that a driver wrote down as proved, by agent.
    pub confirmed: BTreeSet<(String, String)>,
    /// What came of spawns, by their actors.
    pub endings: BTreeMap<usize, Ending>,
    /// Texts that somebody else wrote into files: they must be somewhere in the end.
    pub outside: BTreeSet<String>,
    /// What is wrong with this machine.
    pub canary: Option<Canary>,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            disk: Disk::default(),
            log: MemoryLog::new(StoreId(uuid::Uuid::nil())),
            streams: BTreeMap::new(),
            processes: Vec::new(),
            locks: BTreeMap::new(),
            boot: 1,
            replies: Vec::new(),
            names: Vec::new(),
            links: true,
            confirmed: BTreeSet::new(),
            endings: BTreeMap::new(),
            outside: BTreeSet::new(),
            canary: None,
        }
    }
}

impl Hub {
    /// Whether this is what is wrong.
    #[must_use]
    pub fn is(&self, canary: Canary) -> bool {
        self.canary == Some(canary)
    }

    /// A new process.
    pub fn add(&mut self, process: Process) -> usize {
        self.processes.push(process);
        self.replies.push(0);
        self.names.push(0);
        self.processes.len() - 1
    }

    /// Who an actor is.
    #[must_use]
    pub fn holder(&self, actor: usize) -> Holder {
        Holder { host: "h".into(), boot: format!("boot-{}", self.boot), pid: pid(actor), started: 1, pid_ns: 1 }
    }

    /// The actor is gone: its locks are free, what it held goes with it.
    pub fn end(&mut self, actor: usize, code: i32) {
        if !self.is(Canary::LocksForEver) {
            self.locks.retain(|_, holder| *holder != actor);
        }
        let process = &mut self.processes[actor];
        process.alive = false;
        process.code = Some(code);
        for child in &mut self.processes {
            if child.parent == Some(actor) && child.held {
                (child.held, child.alive, child.code) = (false, false, Some(125));
            }
        }
    }

    fn told(&mut self, actor: usize, what: &dyn std::fmt::Debug) {
        let mut hasher = Hashing(DefaultHasher::new());
        self.replies[actor].hash(&mut hasher.0);
        // Writing into a hasher cannot fail.
        let _ = write!(hasher, "{what:?}");
        self.replies[actor] = hasher.0.finish();
    }

    /// What tells two moments apart: everything that decides what can come.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.disk.hash(&mut hasher);
        self.streams.hash(&mut hasher);
        self.locks.hash(&mut hasher);
        self.boot.hash(&mut hasher);
        self.replies.hash(&mut hasher);
        for process in &self.processes {
            (process.alive, process.held, &process.said, process.code, process.moved).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// The pid of an actor.
#[must_use]
pub fn pid(actor: usize) -> u32 {
    u32::try_from(actor).unwrap_or(u32::MAX - 100) + 100
}

/// The actor of a pid.
#[must_use]
pub fn actor_of(pid: u32) -> Option<usize> {
    usize::try_from(pid.checked_sub(100)?).ok()
}

struct Hashing(DefaultHasher);

impl std::fmt::Write for Hashing {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// An actor's own end of the stage.
#[derive(Clone)]
pub struct Stand<'y> {
    /// What all share.
    pub hub: Rc<RefCell<Hub>>,
    /// Which actor it is.
    pub me: usize,
    yielder: &'y Yielder<Go, Step>,
    is_dead: Rc<Cell<bool>>,
}

impl std::fmt::Debug for Stand<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stand").field("me", &self.me).finish_non_exhaustive()
    }
}

impl<'y> Stand<'y> {
    /// For a coroutine that has just begun.
    #[must_use]
    pub fn new(hub: Rc<RefCell<Hub>>, me: usize, yielder: &'y Yielder<Go, Step>) -> Self {
        Self { hub, me, yielder, is_dead: Rc::new(Cell::new(false)) }
    }

    /// Stops, says what is about to be done, and does it if it may.
    pub(super) fn at<T: std::fmt::Debug>(
        &self,
        step: Step,
        act: impl FnOnce(&mut Hub) -> Result<T, DoorError>,
    ) -> Result<T, DoorError> {
        let (door, path) = (step.door, step.path.clone());
        let go = if self.is_dead.get() { Go::Die } else { self.yielder.suspend(step) };
        let result = match go {
            Go::On => {
                let mut hub = self.hub.borrow_mut();
                hub.processes[self.me].moved = true;
                act(&mut hub)
            }
            Go::Fail(kind) => Err(DoorError::new(door, &path, kind, "a fault was put there")),
            Go::Die => {
                self.is_dead.set(true);
                return Err(DoorError::new(door, &path, DoorKind::Died, "it died"));
            }
        };
        self.hub.borrow_mut().told(self.me, &result);
        result
    }

    /// Keeps what came of this actor's spawn; the dead say nothing.
    pub fn note(&self, ending: Ending) {
        if self.is_dead.get() {
            return;
        }
        self.hub.borrow_mut().endings.insert(self.me, ending);
    }
}
