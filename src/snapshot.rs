//! What a decision asked of the disk and the process table, and what it was told: a snapshot as a value.
//!
//! A decision never touches a disk. It asks [`Question`]s through a [`View`]; the real view (`chain::observe`) looks, a
//! [`Recorder`] in front of it keeps each question with its answer, and the kept answers *are* the [`Snapshot`]: minimal
//! work, replayable ([`Snapshot`] is itself a [`View`]), digestible, comparable. Asking a snapshot something that was not
//! recorded is an error, never a guess.
//!
//! Answers hold no inode, no clock time and no conversation text, so that equal worlds give equal snapshots: two paths are
//! *the same directory* or not, a file is so many *days* old, a transcript is a set of counts. "Absent" and "unreadable"
//! are different answers everywhere ([`Seen`]); a file that is not there is never an error, one that could not be read is
//! never "not there".

mod kept;

use serde::{Deserialize, Serialize};

pub use self::kept::{Observation, Recorder, Snapshot};
use crate::id::{Digest, IdentityKey};

/// What was found where something was looked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen<T> {
    /// It is there.
    Is(T),
    /// Nothing is there.
    Absent,
    /// It could not be told: permission, I/O error, something that would block, a name that is not UTF-8.
    Unreadable(String),
}

impl<T> Seen<T> {
    /// The value, if it is there. Only where absent and unreadable really come to the same.
    pub fn is(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// Applies `f` to what is there.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Self::Is(value) => Seen::Is(f(value)),
            Self::Absent => Seen::Absent,
            Self::Unreadable(why) => Seen::Unreadable(why),
        }
    }
}

/// What kind of thing a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link (only where links are not followed).
    Link,
    /// A FIFO, socket or device: opening it may block.
    Special,
}

/// What lies at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Its kind.
    pub kind: NodeKind,
    /// Its size in bytes; 0 for what is not a regular file.
    pub bytes: u64,
}

/// A name in a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Its kind, links not followed.
    pub kind: NodeKind,
    /// Its size in bytes; 0 for what is not a regular file.
    pub bytes: u64,
}

/// In which order a listing is wanted. Equal keys are ordered by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By name.
    Name,
    /// Largest first.
    Largest,
    /// Last changed first.
    Newest,
}

/// How a transcript is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Claude Code's JSON lines.
    Claude,
}

/// How much of a transcript may be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// Whole if it is small, else bounded windows at its ends.
    Windows,
    /// All of it, whatever its size.
    Whole,
}

/// A process that somebody named.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// Its start time in clock ticks since boot, where it is known: tells a reused pid.
    pub started: Option<u64>,
    /// The machine, where it is known.
    pub host: Option<String>,
    /// The boot id, where it is known.
    pub boot: Option<String>,
    /// The pid namespace, where it is known.
    pub pid_ns: Option<u64>,
}

/// Whether a process lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It lives.
    Alive,
    /// It does not: gone, from another boot, or the pid is another process's now.
    Dead,
    /// It cannot be told from here: another host, another pid namespace, no process table.
    Unknown,
}

/// A live process that says it has a session open.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// Its pid.
    pub pid: u32,
    /// Whether it lives.
    pub life: Life,
}

/// What a marker file says of the copy beside it. Fields that other schemes do not write are absent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Marker {
    /// The agent that made the copy.
    pub owner: String,
    /// The token that ties it to the log.
    pub token: Option<String>,
}

/// One question about the world.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
#[non_exhaustive]
pub enum Question {
    /// What lies at a path. → [`Answer::Node`]; absent also below a plain file, and where a link that is followed leads
    /// nowhere or in a circle.
    Node {
        /// The path.
        path: String,
        /// Whether a link is followed.
        follow: bool,
    },
    /// The physical path of a directory. → [`Answer::Text`]
    RealPath {
        /// The path.
        path: String,
    },
    /// Whether two paths are one directory, by device and inode. → [`Answer::Flag`]; absent if either is.
    SameFile {
        /// One.
        a: String,
        /// The other.
        b: String,
    },
    /// The names in a directory that begin with `prefix` and end with `suffix`. → [`Answer::Entries`]
    Names {
        /// The directory.
        dir: String,
        /// How a name begins.
        prefix: String,
        /// How it ends.
        suffix: String,
        /// In which order.
        order: Order,
    },
    /// The real sub-directories of a directory that have an entry `name`; kind and size are that entry's, links not
    /// followed; `name` of each answer is the sub-directory's. → [`Answer::Entries`]
    Holders {
        /// The directory.
        dir: String,
        /// The entry's name.
        name: String,
    },
    /// Whether this process may write there (a directory: create files in it). → [`Answer::Flag`]
    Writable {
        /// The path.
        path: String,
    },
    /// Whole days since a file was last changed. → [`Answer::Number`]
    AgeDays {
        /// The file.
        path: String,
    },
    /// What a transcript holds. → [`Answer::Transcript`]
    Transcript {
        /// The file.
        path: String,
        /// How it is written.
        format: Format,
        /// How much may be read.
        depth: Depth,
    },
    /// Whether a file's bytes contain one of `patterns`. → [`Answer::Flag`]; unreadable where the bound was met first, with
    /// the words of `provider::source::NOT_EXAMINED`.
    Contains {
        /// The file.
        path: String,
        /// The patterns.
        patterns: Vec<String>,
        /// How much may be read.
        depth: Depth,
    },
    /// BLAKE3 of the min(64 KiB, `upto`) bytes before the offset `upto`. → [`Answer::Digest`]; absent if it is shorter.
    Tail {
        /// The file.
        path: String,
        /// The offset.
        upto: u64,
    },
    /// The key of the identity that a login's account file names. → [`Answer::Identity`]
    Identity {
        /// The account file.
        path: String,
        /// Whose file.
        format: Format,
    },
    /// An integer in a JSON settings file. → [`Answer::Number`]; absent without file or key.
    Setting {
        /// The file.
        path: String,
        /// The top-level key.
        key: String,
    },
    /// Which processes a provider's registry names for a session. → [`Answer::Owners`]
    Owners {
        /// The registry's directory.
        dir: String,
        /// The session.
        session: String,
        /// Whose registry.
        format: Format,
    },
    /// Whose relocated copy a marker file speaks of. → [`Answer::Marker`]
    Marker {
        /// The marker file.
        path: String,
    },
    /// Whether a process lives. → [`Answer::Life`]
    Process(Process),
    /// The roots of the git worktrees of the repository around a directory, main one first, then by name.
    /// → [`Answer::Texts`]; absent outside a repository.
    Worktrees {
        /// The directory.
        cwd: String,
    },
}

/// The answer to a [`Question`]: each question has one kind of answer.
#[expect(clippy::large_enum_variant, reason = "few are held at a time, and the large one is asked for most")]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// To [`Question::Node`].
    Node(Seen<Node>),
    /// A path.
    Text(Seen<String>),
    /// Paths.
    Texts(Seen<Vec<String>>),
    /// Yes or no.
    Flag(Seen<bool>),
    /// A count.
    Number(Seen<i64>),
    /// Names.
    Entries(Seen<Vec<Entry>>),
    /// A digest.
    Digest(Seen<Digest>),
    /// An identity.
    Identity(Seen<IdentityKey>),
    /// What a transcript holds.
    Transcript(Seen<Transcript>),
    /// Processes.
    Owners(Seen<Vec<Owner>>),
    /// To [`Question::Marker`]; unreadable where it does not parse.
    Marker(Seen<Marker>),
    /// To [`Question::Process`].
    Life(Life),
}

/// What a transcript holds, as counts: no text of it.
///
/// "Main" records are those whose `isSidechain` is not true.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transcript {
    /// The size of the file in bytes when it was read.
    pub bytes: u64,
    /// How many of them were examined.
    pub examined: u64,
    /// BLAKE3 of the last min(64 KiB, `bytes`) bytes.
    pub tail: Digest,
    /// Main `user` and `assistant` records with a `message`.
    pub turns: u64,
    /// Of `turns`, those on whose line more bytes follow: some versions take them, some do not.
    pub glued: u64,
    /// Main `user` and `assistant` records without one.
    pub messageless: u64,
    /// Main `attachment` records.
    pub attachments: u64,
    /// Main `system` records.
    pub systems: u64,
    /// Records whose `isSidechain` is true.
    pub sidechain: u64,
    /// Other JSON objects (metadata).
    pub others: u64,
    /// Lines that are not a JSON object, cut ones and NUL runs included.
    pub unparsable: u64,
    /// The offset of the first line that does not parse.
    pub unparsable_at: Option<u64>,
    /// The last line has no newline and does not parse: a cut tail.
    pub torn_tail: bool,
    /// The offset of that line.
    pub torn_at: Option<u64>,
    /// The offset of a run of NUL bytes.
    pub nul_at: Option<u64>,
    /// How many turns the walk from the tip reaches; subagents' among them where they lie on it.
    pub reached: u64,
    /// The walk ended at a compaction: earlier turns are summarised by design.
    pub compacted: bool,
    /// A parent on the walk had already been met.
    pub cyclic: bool,
    /// The walk's last turn is the user's: it has no reply.
    pub unanswered: bool,
    /// The CLI's own metadata names a subagent's record as the leaf.
    #[serde(default)]
    pub misled: bool,
    /// The walk's tip has no time.
    #[serde(default)]
    pub untimed_tip: bool,
    /// Turns on the straight way from the last main record, which older versions go: no leaf named, nothing bridged.
    #[serde(default)]
    pub straight: u64,
    /// There is a circle on that way.
    #[serde(default)]
    pub circle: bool,
    /// Main records without a time.
    #[serde(default)]
    pub untimed: u64,
    /// Some record's time is no text.
    #[serde(default)]
    pub odd_times: bool,
    /// A main record is later in time than the last one.
    #[serde(default)]
    pub disordered: bool,
    /// Main records that go over several lines: some versions take them, some do not.
    #[serde(default)]
    pub spread: u64,
    /// Parents on the walk that no record of the file has: bridged over, or the walk's end where no record precedes.
    pub bridged: u64,
    /// The first `cwd` that a record names.
    pub cwd: Option<String>,
    /// The last one.
    pub cwd_last: Option<String>,
}

impl Transcript {
    /// Turns, attachments and system records.
    #[must_use]
    pub fn main(&self) -> u64 {
        self.turns + self.attachments + self.systems
    }

    /// Whether every byte was examined.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.examined >= self.bytes
    }
}

/// A question was asked that has no recorded answer, or one of the wrong kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A replay that asks something else than the recording did: another rule, another version, an edited snapshot.
    #[error("the snapshot has no answer to {question:?}; it was recorded under other rules")]
    NotRecorded {
        /// What was asked.
        question: Box<Question>,
    },
    /// The answer is not of the question's kind.
    #[error("the snapshot answers {question:?} with another kind of answer")]
    WrongKind {
        /// What was asked.
        question: Box<Question>,
    },
}

/// Who answers questions about the world.
pub trait View {
    /// Answers one question.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] when this is a recording without that answer. A real disk always answers: what it cannot read is
    /// [`Seen::Unreadable`].
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError>;
}

/// Typed questions: one method a question, so that a rule reads as what it asks.
macro_rules! asks {
    ($($(#[$doc:meta])* $method:ident($($arg:ident: $type:ty),*) -> $out:ty = $question:expr => $answer:ident;)*) => {
        /// Typed questions over any [`View`].
        ///
        /// # Errors
        ///
        /// Every method passes on the view's [`SnapshotError`].
        #[expect(missing_docs, reason = "each method is its question, documented there")]
        #[expect(clippy::missing_errors_doc, reason = "stated once, above")]
        pub trait Ask: View {
            $($(#[$doc])* fn $method(&mut self, $($arg: $type),*) -> Result<$out, SnapshotError> {
                let question = $question;
                match self.ask(&question)? {
                    Answer::$answer(answer) => Ok(answer),
                    _ => Err(SnapshotError::WrongKind { question: Box::new(question) }),
                }
            })*
        }
    };
}

asks! {
    node(path: &str, follow: bool) -> Seen<Node> = Question::Node { path: path.into(), follow } => Node;
    real_path(path: &str) -> Seen<String> = Question::RealPath { path: path.into() } => Text;
    same_file(a: &str, b: &str) -> Seen<bool> = Question::SameFile { a: a.into(), b: b.into() } => Flag;
    names(dir: &str, prefix: &str, suffix: &str, order: Order) -> Seen<Vec<Entry>>
        = Question::Names { dir: dir.into(), prefix: prefix.into(), suffix: suffix.into(), order } => Entries;
    holders(dir: &str, name: &str) -> Seen<Vec<Entry>> = Question::Holders { dir: dir.into(), name: name.into() } => Entries;
    writable(path: &str) -> Seen<bool> = Question::Writable { path: path.into() } => Flag;
    age_days(path: &str) -> Seen<i64> = Question::AgeDays { path: path.into() } => Number;
    transcript(path: &str, format: Format, depth: Depth) -> Seen<Transcript>
        = Question::Transcript { path: path.into(), format, depth } => Transcript;
    contains(path: &str, patterns: &[&str], depth: Depth) -> Seen<bool>
        = Question::Contains { path: path.into(), patterns: patterns.iter().map(|&p| p.into()).collect(), depth } => Flag;
    tail(path: &str, upto: u64) -> Seen<Digest> = Question::Tail { path: path.into(), upto } => Digest;
    identity(path: &str, format: Format) -> Seen<IdentityKey> = Question::Identity { path: path.into(), format } => Identity;
    setting(path: &str, key: &str) -> Seen<i64> = Question::Setting { path: path.into(), key: key.into() } => Number;
    owners(dir: &str, session: &str, format: Format) -> Seen<Vec<Owner>>
        = Question::Owners { dir: dir.into(), session: session.into(), format } => Owners;
    marker(path: &str) -> Seen<Marker> = Question::Marker { path: path.into() } => Marker;
    life(process: &Process) -> Life = Question::Process(process.clone()) => Life;
    worktrees(cwd: &str) -> Seen<Vec<String>> = Question::Worktrees { cwd: cwd.into() } => Texts;
}

impl<V: View + ?Sized> Ask for V {}
