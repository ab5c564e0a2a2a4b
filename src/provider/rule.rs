//! What a provider is: the questions that its rules answer, and the values in which they answer.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::event::Means;
use crate::id::IdentityKey;
use crate::provider::finding::Finding;
use crate::snapshot::{Depth, Format, Owner, Seen, SnapshotError, Transcript, View};

/// A login's folder as the child process will get it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigDir {
    /// The provider's variable is set to this text: literal, relative to the working directory, even empty.
    Named(String),
    /// The variable is not set: the provider's default below this home directory.
    Ambient {
        /// The home directory, as the child will have it: where `HOME` is not set or empty, the password database's. Empty
        /// if there is none: then nothing can be said.
        home: String,
    },
}

/// Where a question is asked from: what the child process will have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The login's folder.
    pub config_dir: ConfigDir,
    /// The working directory, as spelled; absolute.
    pub cwd: String,
}

/// How the provider came to the file it chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// In the working directory's own project folder.
    Own,
    /// In a sibling worktree's.
    Worktree,
    /// As the only candidate in any project folder.
    Unique,
    /// By its path.
    Path,
}

/// What the CLI would do when asked for a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It continues with at least one earlier turn.
    Continues,
    /// It accepts the file, keeps the id, and sends no history.
    Empty,
    /// It refuses: no such session, ambiguous, an id it cannot take, a directory in the file's place.
    Refused,
    /// It starts a new session without a word.
    StartsFresh,
    /// It cannot be told: something needed could not be read, would block, or was not examined.
    Unknown {
        /// Why, for people.
        why: String,
    },
}

/// The answer of a provider's lookup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// What it would do.
    pub outcome: Outcome,
    /// The file that it would read.
    pub path: Option<String>,
    /// How it came to it.
    pub found_by: Option<FoundBy>,
    /// What that file holds.
    pub transcript: Option<Transcript>,
    /// Further files of the same id that were candidates, in order.
    pub others: Vec<String>,
    /// What was noticed on the way; the first explains a refusal.
    pub findings: Vec<Finding>,
}

/// A session file found by a scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scanned {
    /// Its id.
    pub session: String,
    /// Its path.
    pub path: String,
}

/// What is to be launched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaunchAsk<'a> {
    /// A new conversation.
    Fresh,
    /// A session where the provider looks by itself.
    InPlace {
        /// The session.
        session: &'a str,
        /// As a fork.
        fork: bool,
    },
    /// A fork of the file at a path.
    ByPath {
        /// The file.
        path: &'a str,
    },
}

/// How a process is started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Program and arguments; runs as it is.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: String,
    /// Variables to set, by name; `null` = must not be set.
    pub env: BTreeMap<String, Option<String>>,
    /// The provider takes an id of our choice for the new file; `spawn` appends the arguments for it.
    pub mints: bool,
}

/// Which of a process's outputs a line came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a line of a process's output says of its session. No text of the conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// It names its session. Early, that may be a mere echo of what was asked for.
    Named {
        /// The id.
        session: String,
    },
    /// A turn ended well: the session is what the process says.
    Turn {
        /// The id.
        session: String,
    },
    /// A turn failed, for a reason that says nothing of the session.
    Failed {
        /// The provider's words.
        why: String,
    },
    /// It refuses the session that it was asked for.
    Refused {
        /// The provider's words.
        why: String,
    },
}

/// The rules of one agent CLI in one version range. Every method is pure over its view.
///
/// # Errors
///
/// Each method passes on the view's [`SnapshotError`] and has no other: what cannot be read is part of its answer.
#[expect(clippy::missing_errors_doc, reason = "stated once, above")]
pub trait Provider: std::fmt::Debug + Send + Sync {
    /// The provider's name.
    fn name(&self) -> &'static str;

    /// How its transcripts are written.
    fn format(&self) -> Format;

    /// The version whose rules these are.
    fn version(&self) -> &str;

    /// Whether these rules were observed on the version that was asked for; without one there is nothing to doubt.
    fn is_observed(&self, asked: Option<&str>) -> bool;

    /// The name of its program.
    fn program(&self) -> &'static str;

    /// The variable that names the login's folder.
    fn config_variable(&self) -> &'static str;

    /// The id that the CLI takes a given text for: some trim it.
    fn id_as_taken<'t>(&self, given: &'t str) -> &'t str;

    /// The flag that resumes a session by its id, or nothing where the CLI has none.
    fn resume_flag(&self) -> Option<&'static str>;

    /// The physical text of the login's folder: where the provider really looks.
    fn config_root(&self, place: &Place) -> String;

    /// The folder of the working directory's own sessions; unreadable where the provider could not use that directory.
    fn own_dir(&self, view: &mut dyn View, place: &Place) -> Result<Seen<String>, SnapshotError>;

    /// What the CLI does with this id here. Files in `hidden` count as absent.
    fn lookup(
        &self,
        view: &mut dyn View,
        place: &Place,
        id: &str,
        hidden: &BTreeSet<String>,
        depth: Depth,
    ) -> Result<Lookup, SnapshotError>;

    /// What the CLI does with a fork of the file at this path.
    fn lookup_path(&self, view: &mut dyn View, path: &str, depth: Depth) -> Result<Lookup, SnapshotError>;

    /// Where the session's file would be under a login's folder and a working directory, by the provider's naming alone.
    fn path_of(&self, view: &mut dyn View, place: &Place, id: &str) -> Result<Seen<String>, SnapshotError>;

    /// Which ways this version can continue a session that lies elsewhere, best first.
    fn means(&self) -> &'static [Means];

    /// The largest real conversation in the own folder, none of `except` and none of `hidden`.
    fn largest(
        &self,
        view: &mut dyn View,
        place: &Place,
        except: &BTreeSet<String>,
        hidden: &BTreeSet<String>,
        depth: Depth,
    ) -> Result<Seen<Scanned>, SnapshotError>;

    /// What the CLI takes when it is told to continue without an id.
    fn newest(
        &self,
        view: &mut dyn View,
        place: &Place,
        hidden: &BTreeSet<String>,
        depth: Depth,
    ) -> Result<Seen<Scanned>, SnapshotError>;

    /// Who is signed in there. The ambient login and an account file without an account are absent; one that is half-written
    /// or cannot be read is unreadable. Neither is an error.
    fn identity(&self, view: &mut dyn View, place: &Place) -> Result<Seen<IdentityKey>, SnapshotError>;

    /// Which processes have the session open by the provider's own registry.
    fn owners(&self, view: &mut dyn View, place: &Place, id: &str) -> Result<Seen<Vec<Owner>>, SnapshotError>;

    /// Whether what the child writes will be kept, and whether the source will: findings only.
    fn keeping(
        &self,
        view: &mut dyn View,
        place: &Place,
        path: &str,
        fork: bool,
    ) -> Result<Vec<Finding>, SnapshotError>;

    /// The process to start.
    fn launch(&self, place: &Place, ask: &LaunchAsk<'_>) -> Launch;

    /// The arguments that give a new session, or a fork, this id.
    fn minting(&self, id: &str) -> Vec<String>;

    /// Whether a process with these arguments says on stdout what becomes of its session.
    fn tells(&self, argv: &[String]) -> bool;

    /// What a line of its output says. Nothing for most lines.
    fn report(&self, line: &[u8], from: Output) -> Option<Report>;
}
