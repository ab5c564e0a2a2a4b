//! A case's world: what lies on the disk, from where the agent is started, and what it is asked.
//!
//! A world is a value; [`World::build`] makes it real below a folder. Its texts name places by `{room}` (that folder), `{cfg}`
//! (the login's folder, `{room}/cfg`), `{own}` (the folder of the working directory's own sessions) and `{slug:PATH}` (the
//! name of the folder that another working directory has).

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use super::content::content;
use crate::provider::claude::Table;
use crate::provider::{ConfigDir, Place};

/// So long after its start an agent has deleted what it finds too old.
pub(super) const BEYOND_CLEANUP_MS: u64 = 10_000;

/// What lies at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Thing {
    /// A folder.
    Dir,
    /// A session's file, by the name of its content; its turns carry the tag.
    Session { content: String, tag: String, id: String },
    /// Any other file.
    Text(String),
    /// A symbolic link.
    Link(String),
    /// A further name of a file that is there already.
    HardLink(String),
    /// A pipe without a writer.
    Fifo,
}

/// One place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) at: String,
    pub(super) thing: Thing,
    /// Its mode, set when everything is there.
    pub(super) mode: Option<u32>,
    /// How many days ago it was changed.
    pub(super) age_days: Option<u64>,
}

impl Piece {
    fn needs_own(&self) -> bool {
        let of = match &self.thing {
            Thing::HardLink(of) | Thing::Link(of) | Thing::Text(of) => of.as_str(),
            Thing::Dir | Thing::Session { .. } | Thing::Fifo => "",
        };
        self.at.contains("{own}") || of.contains("{own}")
    }
}

/// What the agent is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    /// Resume a session, or fork it; the fork may get an id of our choice.
    Resume { id: String, fork: bool, chosen: Option<String> },
    /// Fork the file at a path.
    Path { path: String, chosen: Option<String> },
    /// Continue without an id.
    Continue,
    /// A new session under an id of our choice.
    New { chosen: String },
}

/// What goes on while the agent runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meanwhile {
    /// Metadata is appended to the session's file, a line every ten milliseconds.
    Appends,
    /// Another process of the agent has resumed the session and waits for its reply.
    Driver,
    /// A process that wrote half a line is still there and finishes it later.
    HalfLine,
}

/// A case's world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct World {
    pub(super) pieces: Vec<Piece>,
    /// The working directory.
    pub(super) cwd: String,
    /// The text of the login's variable; nothing = it is not set, and the login is below `home`.
    pub(super) config: Option<String>,
    /// The home directory.
    pub(super) home: String,
    /// A git repository with linked worktrees: the main one first.
    pub(super) worktrees: Vec<String>,
    pub(super) ask: Ask,
    pub(super) meanwhile: Option<Meanwhile>,
    /// How long the model takes to answer.
    pub(super) holds_ms: u64,
    /// How long the agent may take, where that is not as usual.
    pub(super) most_ms: Option<u64>,
    /// What the agent repairs in its history is not what it reads of it: the number of turns is not compared.
    pub(super) uncounted: bool,
}

impl World {
    /// An empty login, a working directory, and a question.
    pub(super) fn new(ask: Ask) -> Self {
        Self {
            pieces: Vec::new(),
            cwd: "{room}/w/p1".into(),
            config: Some("{cfg}".into()),
            home: "{room}/home".into(),
            worktrees: Vec::new(),
            ask,
            meanwhile: None,
            holds_ms: 0,
            most_ms: None,
            uncounted: false,
        }
    }

    pub(super) fn piece(mut self, at: impl Into<String>, thing: Thing) -> Self {
        self.pieces.push(Piece { at: at.into(), thing, mode: None, age_days: None });
        self
    }

    /// The mode of the last piece.
    pub(super) fn mode(mut self, mode: u32) -> Self {
        self.pieces.iter_mut().next_back().into_iter().for_each(|piece| piece.mode = Some(mode));
        self
    }

    /// The age of the last piece.
    pub(super) fn aged(mut self, days: u64) -> Self {
        self.pieces.iter_mut().next_back().into_iter().for_each(|piece| piece.age_days = Some(days));
        self
    }

    /// What lies where, a line each, for people.
    pub(super) fn told(&self) -> Vec<String> {
        let told = |piece: &Piece| {
            let thing = match &piece.thing {
                Thing::Session { content, .. } => content.clone(),
                other @ (Thing::Dir | Thing::Text(_) | Thing::Link(_) | Thing::HardLink(_) | Thing::Fifo) => {
                    format!("{other:?}")
                }
            };
            let mode = piece.mode.map(|mode| format!(", mode {mode:o}")).unwrap_or_default();
            let age = piece.age_days.map(|days| format!(", {days} days old")).unwrap_or_default();
            format!("{}: {thing}{mode}{age}", piece.at)
        };
        self.pieces.iter().map(told).collect()
    }

    /// Makes it real below `room`, and gives where everything is.
    pub(super) fn build(&self, room: &Path, rules: &Table) -> io::Result<Built> {
        let mut texts = Texts { room: text_of(room)?, own: String::new(), rules };
        for folder in [texts.fill(&self.home), texts.fill("{room}/tmp")] {
            folder_of(Path::new(&folder))?;
        }
        if let [main, linked @ ..] = &*self.worktrees {
            let linked: Vec<String> = linked.iter().map(|path| texts.fill(path)).collect();
            repository(&texts.fill(main), &linked)?;
        }
        // What the name of the own folder needs comes first: the working directory may be a link.
        let (later, first): (Vec<&Piece>, Vec<&Piece>) = self.pieces.iter().partition(|piece| piece.needs_own());
        for piece in first {
            put(Path::new(&texts.fill(&piece.at)), &piece.thing, &texts)?;
        }
        let cwd = texts.fill(&self.cwd);
        folder_of(Path::new(&cwd))?;
        texts.own = format!("{}/projects/{}", texts.fill("{cfg}"), rules.slug(&text_of(&fs::canonicalize(&cwd)?)?));
        for piece in later {
            put(Path::new(&texts.fill(&piece.at)), &piece.thing, &texts)?;
        }
        for piece in &self.pieces {
            let path = texts.fill(&piece.at);
            if let Some(days) = piece.age_days {
                // A minute more, so that nobody's clock makes it a day less.
                let then = SystemTime::now() - Duration::from_secs(days * 86_400 + 60);
                fs::File::open(&path)?.set_modified(then)?;
            }
        }
        // Last, and the innermost first: what is inside a folder that may not be entered is in place by then.
        for piece in self.pieces.iter().rev() {
            if let Some(mode) = piece.mode {
                fs::set_permissions(texts.fill(&piece.at), fs::Permissions::from_mode(mode))?;
            }
        }
        let config_dir = match &self.config {
            Some(config) => ConfigDir::Named(texts.fill(config)),
            None => ConfigDir::Ambient { home: texts.fill(&self.home) },
        };
        let place = Place { config_dir, cwd };
        let ask = match self.ask.clone() {
            Ask::Path { path, chosen } => Ask::Path { path: texts.fill(&path), chosen },
            ask @ (Ask::Resume { .. } | Ask::Continue | Ask::New { .. }) => ask,
        };
        // The turn of another driver may be in the file already, or not yet.
        let uncounted = self.uncounted || self.meanwhile == Some(Meanwhile::Driver);
        let home = texts.fill(&self.home);
        Ok(Built { place, home, own: texts.own, room: room.to_owned(), ask, uncounted })
    }
}

/// A world that is on the disk.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) place: Place,
    pub(super) home: String,
    /// The folder of the working directory's own sessions.
    pub(super) own: String,
    pub(super) room: PathBuf,
    pub(super) ask: Ask,
    pub(super) uncounted: bool,
}

/// What the names of places stand for.
struct Texts<'r> {
    room: String,
    own: String,
    rules: &'r Table,
}

impl Texts<'_> {
    fn fill(&self, text: &str) -> String {
        let mut filled = text.replace("{own}", &self.own).replace("{cfg}", "{room}/cfg");
        while let Some((before, rest)) = filled.split_once("{slug:") {
            let Some((path, after)) = rest.split_once(":slug}") else { break };
            filled = format!("{before}{}{after}", self.rules.slug(&path.replace("{room}", &self.room)));
        }
        with_times(filled.replace("{room}", &self.room))
    }
}

/// `{now}` and `{now-Nh}` as the agent writes times.
fn with_times(mut text: String) -> String {
    while let Some((before, rest)) = text.split_once("{now") {
        let Some((ago, after)) = rest.split_once('}') else { break };
        let hours: u64 = ago.trim_start_matches('-').trim_end_matches('h').parse().unwrap_or(0);
        let then =
            jiff::Timestamp::try_from(SystemTime::now() - Duration::from_secs(hours * 3_600)).unwrap_or_default();
        text = format!("{before}{then:.3}{after}");
    }
    text
}

fn text_of(path: &Path) -> io::Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))
}

fn folder_of(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

fn put(path: &Path, thing: &Thing, texts: &Texts<'_>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        folder_of(folder)?;
    }
    match thing {
        Thing::Dir => folder_of(path),
        Thing::Session { content: name, tag, id } => {
            let bytes = content(name, tag, id);
            fs::write(path, bytes.ok_or_else(|| io::Error::other(format!("there is no content {name:?}")))?)
        }
        Thing::Text(text) => fs::write(path, texts.fill(text)),
        Thing::Link(to) => symlink(texts.fill(to), path),
        Thing::HardLink(of) => fs::hard_link(texts.fill(of), path),
        Thing::Fifo => {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            Ok(rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)?)
        }
    }
}

/// Makes a repository with one commit and linked worktrees, in order.
fn repository(main: &str, linked: &[String]) -> io::Result<()> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid", "-C", main]).args(arguments);
        // Nobody's own settings and hooks.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("git {arguments:?} failed: {status}"))) }
    };
    folder_of(Path::new(main))?;
    git(&["init", "-q", "-b", "main"])?;
    git(&["commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", "first"])?;
    for (number, path) in linked.iter().enumerate() {
        git(&["worktree", "add", "-q", "-b", &format!("branch-{number}"), path])?;
    }
    Ok(())
}
