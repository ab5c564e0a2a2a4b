//! The bodies: one struct a kind, `snake_case` JSON, absent options left out.
//!
//! Every event that a driver writes carries the `epoch` of its lease (0 where no lease was ever taken); an append with a
//! stale one is refused. Fields with a default may be left out of hand-written events.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, Digest, Epoch, IdentityKey, PaneId, PathText, ProviderName, SegmentId, SessionId, Token};

/// Declares body structs: derives, strictness, and the `epoch` where a driver writes it.
macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident $($fenced:ident)? { $($(#[$fdoc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $type,)*
            $(
                #[doc = "The epoch of the writer's lease."]
                #[serde(default)]
                pub $fenced: Epoch,
            )?
        }
    )*};
}

/// Size and digest of a session file at one moment: enough to tell *grown*, *cut* and *rewritten* apart without its text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileFacts {
    /// The size in bytes.
    pub bytes: u64,
    /// BLAKE3 of the last min(64 KiB, `bytes`) bytes.
    pub tail: Digest,
    /// BLAKE3 of the whole file; for copies only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Digest>,
}

/// How many bytes at the end of a file its `tail` digest covers.
pub const TAIL_BYTES: u64 = 64 * 1024;

/// A place where a conversation is: what `chain_head_moved` moves to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// The session there.
    pub session: SessionId,
    /// The login's folder, as it was spelled.
    pub config_dir: PathText,
    /// Who was signed in there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<IdentityKey>,
    /// Whose session it is.
    pub provider: ProviderName,
    /// The working directory of the process.
    pub cwd: PathText,
    /// The session's file, where it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathText>,
    /// What the file was when the move was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileFacts>,
}

impl Location {
    /// The part that a move names as its origin.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin { session: self.session.clone(), config_dir: self.config_dir.clone(), path: self.path.clone() }
    }
}

/// What a head move starts from; unequal to the head it is illegal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The session of the head.
    pub session: SessionId,
    /// Its login's folder.
    pub config_dir: PathText,
    /// Its file, where the head has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathText>,
}

/// Who holds a lease: enough to tell a living holder from a dead one and from a reused pid.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// The machine's name.
    pub host: String,
    /// The boot id: no process outlives it.
    pub boot: String,
    /// The process id in `pid_ns`.
    pub pid: u32,
    /// Its start time in clock ticks since boot.
    pub started: u64,
    /// The pid namespace's number.
    pub pid_ns: u64,
}

/// Declares an enum of words.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// Every word, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word as JSON and people see it.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    )*};
}

words! {
    /// What a spawn asks of the provider.
    How {
        /// A new conversation.
        Fresh = "fresh",
        /// The same session, appended to.
        Resume = "resume",
        /// A new session that begins with another's history.
        Fork = "fork",
    }
    /// Which way a session is reached.
    Means {
        /// Where the provider looks by itself.
        InPlace = "in_place",
        /// By the path of its file, read where it lies.
        ByPath = "by_path",
        /// By a copy that is made for this spawn.
        ByCopy = "by_copy",
    }
    /// How much of the past the model gets.
    Rung {
        /// The provider's own history.
        Native = "native",
        /// A packet of the record rides on the first message.
        Virtualized = "virtualized",
        /// Nothing.
        Fresh = "fresh",
    }
    /// What a settled copy becomes.
    Settle {
        /// Removed: the fork has a file of its own.
        Remove = "remove",
        /// Kept: the CLI continued in it.
        Unmark = "unmark",
    }
    /// The answer of a preflight.
    VerdictWord {
        /// The spawn continues the session it names.
        Resume = "resume",
        /// It will continue another one, found on disk, that is probably the same conversation.
        Recover = "recover",
        /// It starts blank.
        Fresh = "fresh",
        /// Somebody else holds it.
        Busy = "busy",
        /// It could not be told.
        Unknown = "unknown",
    }
    /// Why the session that a verdict names was chosen.
    Route {
        /// The id that the caller holds.
        Held = "held",
        /// The id of the history that the pane renders.
        History = "history",
        /// The chain's head instead of a stale id.
        Redirect = "redirect",
        /// A fork of the head: it was continued elsewhere.
        Fork = "fork",
        /// A fork of the head, which lies where the provider would not look.
        Relocate = "relocate",
        /// A fork of the parent agent's head.
        ForkFrom = "fork_from",
        /// The largest real conversation of the project.
        Recovery = "recovery",
        /// None.
        None = "none",
    }
}

fn in_place() -> Means {
    Means::InPlace
}

fn native() -> Rung {
    Rung::Native
}

bodies! {
    /// Defaults of an agent.
    AgentDeclared {
        /// Which CLI drives it.
        provider: ProviderName,
        /// The agent whose conversation a first spawn may continue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<AgentId>,
    }
    /// A driver took the agent's lease.
    LeaseTaken {
        /// One more than the last.
        epoch: Epoch,
        /// Who.
        holder: Holder,
    }
    /// The lease is over.
    LeaseEnded {
        /// Which.
        epoch: Epoch,
        /// `released`, or how it was found dead.
        how: String,
    }
    /// A provider process is about to be started.
    Spawned epoch {
        /// The new segment.
        segment: SegmentId,
        /// Where a person sees it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pane: Option<PaneId>,
        /// Its working directory.
        cwd: PathText,
        /// The login's folder.
        config_dir: PathText,
        /// Who is signed in there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<IdentityKey>,
        /// Whose CLI.
        provider: ProviderName,
        /// What is asked of it.
        how: How,
        /// Which way the session is reached.
        #[serde(default = "in_place")]
        means: Means,
        /// The session that is attempted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// The id that we chose for the new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        minted: Option<SessionId>,
        /// The copy that it uses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Token>,
        /// How much of the past the model gets.
        #[serde(default = "native")]
        rung: Rung,
    }
    /// The process runs.
    Launched epoch {
        /// Which segment.
        segment: SegmentId,
        /// Its process id.
        pid: u32,
        /// Its start time in clock ticks since boot.
        started: u64,
    }
    /// The process could not be started. Changes no candidate.
    LaunchFailed epoch {
        /// Which segment.
        segment: SegmentId,
        /// The reason, for people.
        why: String,
    }
    /// The provider named its session. An early echo of the attempted id proves nothing.
    SessionReported epoch {
        /// Which segment.
        segment: SegmentId,
        /// The id.
        session: SessionId,
    }
    /// The provider named the session it forked to.
    ForkReported epoch {
        /// Which segment.
        segment: SegmentId,
        /// The source.
        from: SessionId,
        /// The fork.
        session: SessionId,
    }
    /// A successful result proves that the session was resumed.
    ResumeConfirmed epoch {
        /// Which segment.
        segment: SegmentId,
        /// Which session.
        session: SessionId,
        /// Its file then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<FileFacts>,
    }
    /// A successful result of a turn.
    TurnConfirmed epoch {
        /// Which segment.
        segment: SegmentId,
        /// Which session.
        session: SessionId,
        /// Its file then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<FileFacts>,
    }
    /// The provider refused the session. Holds while the observations are equal.
    ResumeRejected epoch {
        /// Which segment.
        segment: SegmentId,
        /// Which session.
        session: SessionId,
        /// The provider's words, without text of the conversation.
        why: String,
        /// The digest of the observations under which it was attempted: a verdict's `basis.snapshot` or `basis.lookup`.
        snapshot: Digest,
        /// The file was read and cannot be accepted: it holds for good.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        for_good: bool,
    }
    /// The conversation is at `to` now.
    ChainHeadMoved epoch {
        /// The head that it was, or nothing where there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Origin>,
        /// Where it is.
        to: Location,
        /// The segment that confirmed it; absent after `session_bound`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        segment: Option<SegmentId>,
    }
    /// The process is gone.
    SegmentEnded epoch {
        /// Which segment.
        segment: SegmentId,
        /// `exited`, `crashed`, `closed`, `restarted`, `stopped`, ...
        reason: String,
        /// Its exit code; 128 + signal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The session's file at the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<FileFacts>,
    }
    /// A person said that an existing session is the agent's conversation.
    SessionBound epoch {
        /// Which.
        session: SessionId,
    }
    /// A file was continued by somebody else.
    GrowthSeen epoch {
        /// Whose file.
        session: SessionId,
        /// What the log knew.
        recorded: FileFacts,
        /// What is there.
        found: FileFacts,
    }
    /// A copy is about to be made.
    RelocationIntended epoch {
        /// Ties file, marker and log.
        token: Token,
        /// Which session.
        session: SessionId,
        /// The original, which stays as it is.
        source: PathText,
        /// Where the copy will be.
        destination: PathText,
        /// The file that says whose it is.
        marker: PathText,
        /// The original then.
        file: FileFacts,
    }
    /// The copy is visible and owned.
    Relocated epoch {
        /// Which.
        token: Token,
        /// The copy.
        file: FileFacts,
    }
    /// The copy could not be made. Never moves the head, never starts fresh.
    RelocationFailed epoch {
        /// Which.
        token: Token,
        /// The reason, for people.
        why: String,
        /// Another try may succeed.
        transient: bool,
    }
    /// What becomes of the copy is decided.
    SettleIntended epoch {
        /// Which.
        token: Token,
        /// What.
        how: Settle,
    }
    /// The copy is gone.
    CopyRemoved epoch {
        /// Which.
        token: Token,
    }
    /// The copy is an ordinary session now.
    CopyUnmarked epoch {
        /// Which.
        token: Token,
    }
    /// Leftovers of dead spawns are about to be removed.
    SweepIntended epoch {
        /// Which copies.
        tokens: Vec<Token>,
        /// Which temporary files.
        temps: Vec<PathText>,
    }
    /// They are removed.
    Swept epoch {
        /// Which copies.
        tokens: Vec<Token>,
        /// Which temporary files.
        temps: Vec<PathText>,
        /// What stays, and why.
        #[serde(default)]
        left: Vec<Left>,
    }
    /// A source's modification time was set to now, so that the agent's own clean-up spares it.
    RetentionExtended epoch {
        /// Which file.
        path: PathText,
        /// Its modification time before, in milliseconds since 1970.
        mtime_before_ms: i64,
    }
    /// The user asked for a new conversation.
    FreshIntended {
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pane: Option<PaneId>,
    }
    /// Something that a sweep left.
    Left {
        /// Which file.
        path: PathText,
        /// Why.
        why: String,
    }
    /// A preflight answered.
    VerdictGiven {
        /// The answer.
        verdict: VerdictWord,
        /// The session it named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// Why that one.
        route: Route,
        /// The digest of the observations.
        snapshot: Digest,
        /// The version of `agent/<uid>` that it rests on.
        version: u64,
    }
    /// What the spawn really did.
    OutcomeObserved {
        /// Which segment.
        segment: SegmentId,
        /// What the plan said.
        expected: VerdictWord,
        /// What happened.
        actual: VerdictWord,
        /// The session it is in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    }
    /// A provider's hook ran.
    HookAnnounced {
        /// The hook's name, for example `SessionStart`.
        hook: String,
        /// The session it named.
        session: SessionId,
        /// What caused it, for example `clear`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
        /// The session's file, as the hook named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transcript: Option<PathText>,
        /// The working directory, as the hook named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathText>,
    }
}
