//! What a protocol can do to the world: one trait, so that the real machine and the simulated one run the same code.
//!
//! A protocol is plain synchronous code over three things: a [`View`](crate::snapshot::View) that answers questions, a
//! log, and these doors. A door does one thing and says what happened; it decides nothing, retries nothing and cleans
//! nothing up. What a power cut can take is said for each door under *Crash*: a protocol is right only if it is right at
//! each of these places.
//!
//! Paths are texts, since the log and a marker must be able to name them. Doors need not be `Send`, and nothing of a
//! protocol happens in a `Drop`: a simulated actor can be ended at any door.

use std::collections::BTreeMap;

use crate::event::{FileFacts, Holder};

/// Why a door did not do what it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DoorKind {
    /// Something has that name already.
    Exists,
    /// Nothing has that name.
    Absent,
    /// No space, no quota, no more names.
    Full,
    /// Permission was refused, or the medium is read-only.
    Denied,
    /// This file system cannot do that: no hard links, no rename that replaces nothing.
    Unsupported,
    /// The machine failed in another way.
    Failed,
    /// The actor itself is being ended: everything it still asks is refused.
    Died,
}

/// A door that did not open: what was tried, where, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot {verb} {path:?}: {why}")]
#[non_exhaustive]
pub struct DoorError {
    /// What was tried, for example `copy`.
    pub verb: &'static str,
    /// Where.
    pub path: String,
    /// What kind of failure it is: what a protocol goes by.
    pub kind: DoorKind,
    /// What the system said, for people.
    pub why: String,
}

impl DoorError {
    /// A failure of this kind.
    #[must_use]
    pub fn new(verb: &'static str, path: &str, kind: DoorKind, why: impl Into<String>) -> Self {
        Self { verb, path: path.to_owned(), kind, why: why.into() }
    }

    /// Whether the same request may succeed later, with nothing else changed by us.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self.kind {
            DoorKind::Full | DoorKind::Denied | DoorKind::Failed | DoorKind::Absent | DoorKind::Died => true,
            DoorKind::Exists | DoorKind::Unsupported => false,
        }
    }
}

/// A process to start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Its working directory.
    pub cwd: String,
    /// Variables to set, by name; `None` = must not be set. All others are inherited.
    pub env: BTreeMap<String, Option<String>>,
    /// What it says on stdout tells something: it is read line by line on its way to our own stdout.
    pub tells: bool,
}

/// A process that was started and is held before its first instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launched {
    /// Its process id.
    pub pid: u32,
    /// Its start time in clock ticks since boot: with the pid, it names one process.
    pub started: u64,
}

/// What is heard of the launched process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// A line of its stdout, without the newline. Only where the command tells something there.
    Stdout(Vec<u8>),
    /// A line of its stderr, where that is no terminal.
    Stderr(Vec<u8>),
    /// Nothing was heard for a while: time to look at what it does.
    Quiet,
    /// It is gone: its exit code, or 128 + the signal. Nothing follows.
    Ended(i32),
}

/// What a name is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fresh {
    /// A session's id: a uuid, for a provider that takes one of our choice.
    Session,
    /// A segment.
    Segment,
    /// A copy.
    Token,
}

/// The doors of one actor: one process that runs a protocol.
///
/// # Errors
///
/// Every method returns [`DoorError`] where it could not do its work; unless it says otherwise, nothing has changed then.
#[expect(clippy::missing_errors_doc, reason = "stated once, above")]
pub trait Doors {
    /// Who this process is.
    fn own(&self) -> Holder;

    /// The wall clock, in milliseconds since 1970: recorded for people.
    fn now_ms(&mut self) -> i64;

    /// A name that nobody has used.
    fn fresh(&mut self, of: Fresh) -> String;

    /// Takes this lock of the operating system, without waiting; `false` where another process has it. It is held until
    /// [`Doors::unlock`] or until this process is gone, whatever ends it: children do not inherit it.
    fn lock(&mut self, name: &str) -> Result<bool, DoorError>;

    /// Gives a lock back.
    fn unlock(&mut self, name: &str);

    /// Makes a folder and those above it, mode 0700; one that is there is left as it is.
    ///
    /// # Crash
    ///
    /// Any beginning of the path may be there. When it returned, all of it is durable.
    fn make_dir(&mut self, dir: &str) -> Result<(), DoorError>;

    /// Copies the first `bytes` bytes of a file to a new one of mode 0600; gives the new file's facts, `whole` included.
    ///
    /// # Errors
    ///
    /// Also where the source is shorter. The new file may be there then, with any content.
    ///
    /// # Crash
    ///
    /// The new file may be there, with any content. When it returned, its *content* is durable; its name is only after
    /// [`Doors::sync_dir`].
    fn copy_new(&mut self, from: &str, to: &str, bytes: u64) -> Result<FileFacts, DoorError>;

    /// Makes a new small file of mode 0600.
    ///
    /// # Errors
    ///
    /// The new file may be there then, with a beginning of the content.
    ///
    /// # Crash
    ///
    /// As with [`Doors::copy_new`].
    fn write_new(&mut self, path: &str, bytes: &[u8]) -> Result<(), DoorError>;

    /// Makes a file that somebody else wrote durable: its content so far, and its name.
    ///
    /// An agent that answered has not synced what it wrote; what the log calls proved must outlast a power cut.
    fn sync_file(&mut self, path: &str) -> Result<(), DoorError>;

    /// Makes what was created, renamed and removed in a folder durable.
    fn sync_dir(&mut self, dir: &str) -> Result<(), DoorError>;

    /// Gives a file a second name; what has that name already is never replaced ([`DoorKind::Exists`]).
    ///
    /// # Crash
    ///
    /// The name is durable only after [`Doors::sync_dir`].
    fn link_new(&mut self, from: &str, to: &str) -> Result<(), DoorError>;

    /// Renames a file; what has that name already is never replaced ([`DoorKind::Exists`]).
    ///
    /// # Crash
    ///
    /// Before [`Doors::sync_dir`], either name may be there, or both.
    fn rename_new(&mut self, from: &str, to: &str) -> Result<(), DoorError>;

    /// Removes a name.
    ///
    /// # Crash
    ///
    /// Before [`Doors::sync_dir`], the name may come back.
    fn remove(&mut self, path: &str) -> Result<(), DoorError>;

    /// The facts of a regular file, `whole` included; links are not followed.
    ///
    /// # Errors
    ///
    /// [`DoorKind::Absent`] where nothing is there, [`DoorKind::Failed`] where it is no regular file.
    fn facts(&mut self, path: &str) -> Result<FileFacts, DoorError>;

    /// The bytes of a small file; links are not followed.
    fn read_small(&mut self, path: &str) -> Result<Vec<u8>, DoorError>;

    /// Sets a file's modification time to now; gives the one before, in milliseconds since 1970.
    fn touch(&mut self, path: &str) -> Result<i64, DoorError>;

    /// Starts a process and holds it before its first instruction: it does nothing until [`Doors::release`], and ends
    /// without having done anything if this process ends before that. So what is logged between the two is never too late.
    fn launch(&mut self, command: &Command) -> Result<Launched, DoorError>;

    /// Lets the launched process go.
    fn release(&mut self) -> Result<(), DoorError>;

    /// Ends a launched process that was not let go.
    fn abandon(&mut self);

    /// Waits for what is heard of the launched process next.
    fn hear(&mut self) -> Result<Heard, DoorError>;
}
