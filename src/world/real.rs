//! The doors of this machine.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use super::doors::{Command, DoorError, DoorKind, Doors, Fresh, Heard, Launched};
use super::launch::Running;
use super::process::{self, OwnError};
use super::{act, clock};
use crate::event::{FileFacts, Holder};

/// The doors of this machine, for one process that runs protocols.
#[derive(Debug)]
pub struct RealDoors {
    own: Holder,
    /// Where lock files are made.
    locks_dir: PathBuf,
    locks: BTreeMap<String, File>,
    running: Option<Running>,
    /// Signals that are to be passed on.
    signals: Option<Receiver<i32>>,
}

impl RealDoors {
    /// Locks are files in this folder, which is made when the first is taken: all who drive the same agents must use the
    /// same one.
    ///
    /// # Errors
    ///
    /// [`OwnError`] where the process table does not say who we are.
    pub fn new(locks_dir: &Path) -> Result<Self, OwnError> {
        let own = process::own()?;
        Ok(Self { own, locks_dir: locks_dir.to_owned(), locks: BTreeMap::new(), running: None, signals: None })
    }

    /// Passes on to the launched process what comes from here: numbers of signals.
    #[must_use]
    pub fn passing_on(mut self, signals: Receiver<i32>) -> Self {
        self.signals = Some(signals);
        self
    }

    fn running(&mut self, verb: &'static str) -> Result<&mut Running, DoorError> {
        self.running.as_mut().ok_or_else(|| DoorError::new(verb, "", DoorKind::Absent, "nothing was launched"))
    }
}

/// Where the locks of a log's agents are: beside it.
#[must_use]
pub fn locks_beside(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push("-agents");
    path.into()
}

impl Doors for RealDoors {
    fn own(&self) -> Holder {
        self.own.clone()
    }

    fn now_ms(&mut self) -> i64 {
        clock::now_ms()
    }

    fn fresh(&mut self, of: Fresh) -> String {
        let uuid = uuid::Uuid::new_v4();
        match of {
            Fresh::Session | Fresh::Segment => uuid.hyphenated().to_string(),
            Fresh::Token => uuid.simple().to_string(),
        }
    }

    fn lock(&mut self, name: &str) -> Result<bool, DoorError> {
        if self.locks.contains_key(name) {
            return Ok(false);
        }
        let path = self.locks_dir.join(format!("{name}.lock"));
        let text = path.to_string_lossy().into_owned();
        act::make_dir(&self.locks_dir.to_string_lossy())?;
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let failed = |error: std::io::Error| DoorError::new("lock", &text, DoorKind::Failed, error.to_string());
        let file = opened.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                self.locks.insert(name.to_owned(), file);
                Ok(true)
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    fn unlock(&mut self, name: &str) {
        // The lock ends with its file. The file stays: to remove it would let two hold "the" lock.
        self.locks.remove(name);
    }

    fn make_dir(&mut self, dir: &str) -> Result<(), DoorError> {
        act::make_dir(dir)
    }

    fn copy_new(&mut self, from: &str, to: &str, bytes: u64) -> Result<FileFacts, DoorError> {
        act::copy_new(from, to, bytes)
    }

    fn write_new(&mut self, path: &str, bytes: &[u8]) -> Result<(), DoorError> {
        act::write_new(path, bytes)
    }

    fn sync_file(&mut self, path: &str) -> Result<(), DoorError> {
        act::sync_file(path)
    }

    fn sync_dir(&mut self, dir: &str) -> Result<(), DoorError> {
        act::sync_dir(dir)
    }

    fn link_new(&mut self, from: &str, to: &str) -> Result<(), DoorError> {
        act::link_new(from, to)
    }

    fn rename_new(&mut self, from: &str, to: &str) -> Result<(), DoorError> {
        act::rename_new(from, to)
    }

    fn remove(&mut self, path: &str) -> Result<(), DoorError> {
        act::remove(path)
    }

    fn facts(&mut self, path: &str) -> Result<FileFacts, DoorError> {
        act::facts(path)
    }

    fn read_small(&mut self, path: &str) -> Result<Vec<u8>, DoorError> {
        act::read_small(path)
    }

    fn touch(&mut self, path: &str) -> Result<i64, DoorError> {
        act::touch(path)
    }

    fn launch(&mut self, command: &Command) -> Result<Launched, DoorError> {
        let (running, launched) = Running::launch(command)?;
        self.running = Some(running);
        Ok(launched)
    }

    fn release(&mut self) -> Result<(), DoorError> {
        self.running("let go")?.release()
    }

    fn abandon(&mut self) {
        // Its pipe ends with this, and it exits.
        self.running = None;
    }

    fn hear(&mut self) -> Result<Heard, DoorError> {
        let signals: Vec<i32> = self.signals.iter().flat_map(Receiver::try_iter).collect();
        let running = self.running("hear")?;
        for signal in signals {
            running.signal(signal);
        }
        Ok(running.hear())
    }
}
