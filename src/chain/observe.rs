//! Answers the questions of a decision from the real disk and the real process table.
//!
//! [`RealView`] decides nothing: each [`Question`] is one look, each look one [`Answer`]. *Absent* is what every program
//! that opens the path would call missing (no such name, a file in a directory's place, a dangling link, links in a
//! circle); everything else that goes wrong is *unreadable* with its reason. Only regular files are read, so a FIFO or a
//! device can neither block nor answer.
//!
//! Names that are not UTF-8 are passed over in listings: no provider's session, no marker and no copy has such a name. A
//! physical *path* that is not UTF-8 is unreadable.

use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use crate::event::Holder;
use crate::id::{Digest, IdentityKey};
use crate::provider::source::{self, NOT_EXAMINED, NOT_SETTINGS, Source};
use crate::snapshot::{
    Answer, Depth, Entry, Format, Life, Marker, Node, NodeKind, Order, Owner, Process, Question, Seen, SnapshotError,
    Transcript, View,
};
use crate::world::files::{self, Dir, FileError, RegularFile, SMALL_BYTES_MAX, Stat};
use crate::world::{process, worktrees};

/// How much of a file's end [`Question::Tail`] digests.
pub const TAIL_BYTES_MAX: u64 = 64 * 1024;

/// An account file grows with every project its person opens.
const ACCOUNT_BYTES_MAX: u64 = 64 * 1024 * 1024;

const DAY_NS: i128 = 86_400 * 1_000_000_000;

/// The real disk and the real process table, seen by one process at one moment.
///
/// ```
/// # use throughline::chain::observe::RealView;
/// # use throughline::snapshot::{Ask as _, Seen};
/// # use throughline::world::{clock, process};
/// let mut view = RealView::new(clock::now_ms(), process::own()?);
/// assert_eq!(view.node("/no/such/place", true)?, Seen::Absent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RealView {
    now_ms: i64,
    own: Holder,
}

impl RealView {
    /// Sees ages as of `now_ms` (milliseconds since 1970), and other processes from where `own` stands.
    #[must_use]
    pub fn new(now_ms: i64, own: Holder) -> Self {
        Self { now_ms, own }
    }

    fn age_days(&self, path: &Path) -> Result<i64, FileError> {
        let stat = files::stat(path, true)?;
        let days = (i128::from(self.now_ms) * 1_000_000 - stat.modified_ns).div_euclid(DAY_NS);
        // A clock that was set back makes a file from the future: as old as today.
        Ok(i64::try_from(days.max(0)).unwrap_or(i64::MAX))
    }

    fn life(&self, other: &Process) -> Life {
        let differs = |theirs: Option<&str>, ours: &str| theirs.is_some_and(|theirs| theirs != ours);
        if differs(other.host.as_deref(), &self.own.host) {
            return Life::Unknown;
        }
        if differs(other.boot.as_deref(), &self.own.boot) {
            return Life::Dead;
        }
        if other.pid_ns.is_some_and(|theirs| theirs != self.own.pid_ns) {
            return Life::Unknown;
        }
        match process::entry(other.pid) {
            Ok(process::Entry::Running { started }) if other.started.is_none_or(|theirs| theirs == started) => {
                Life::Alive
            }
            // Another process has the pid now.
            Ok(process::Entry::Running { .. } | process::Entry::Ended { .. } | process::Entry::Gone) => Life::Dead,
            Ok(process::Entry::Hidden) | Err(_) => Life::Unknown,
        }
    }

    /// An entry that cannot be read or parsed may be half written by a process that just starts: as long as the pid that
    /// names the file lives, it cannot be told whose session that is.
    fn owners(&self, dir: &Path, session: &str, format: Format) -> Seen<Vec<Owner>> {
        let names = match Dir::open(dir).and_then(|open| open.names("", ".json")) {
            Ok(listing) => listing.names,
            Err(error) => return not_seen(&error),
        };
        let mut owners = Vec::new();
        for name in names.iter().map(|name| &name.name).filter(|name| parse::is_registered(format, name)) {
            let path = dir.join(name);
            let bytes = match files::read_small(&path, SMALL_BYTES_MAX) {
                Ok(bytes) => Ok(bytes),
                Err(error) if error.is_absent() => continue,
                Err(error) => Err(reason(&error)),
            };
            let entry = bytes.and_then(|bytes| {
                parse::registered(format, &bytes).ok_or_else(|| format!("{path:?} is not a registry entry"))
            });
            match entry {
                Ok(entry) if entry.session == session => {
                    owners.push(Owner { pid: entry.pid, life: self.life(&bare_process(entry.pid, entry.started)) });
                }
                Ok(_) => {}
                Err(why) => {
                    let pid = name.strip_suffix(".json").and_then(|stem| stem.parse().ok());
                    if pid.is_some_and(|pid| self.life(&bare_process(pid, None)) != Life::Dead) {
                        return Seen::Unreadable(why);
                    }
                }
            }
        }
        owners.sort();
        Seen::Is(owners)
    }
}

impl View for RealView {
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
        let at = |path| Path::new(path);
        Ok(match question {
            Question::Node { path, follow } => Answer::Node(seen(files::stat(at(path), *follow).map(node))),
            Question::RealPath { path } => Answer::Text(match files::real_path(at(path)) {
                Ok(real) => text(real),
                Err(error) => not_seen(&error),
            }),
            Question::SameFile { a, b } => Answer::Flag(same_file(at(a), at(b))),
            Question::Names { dir, prefix, suffix, order } => {
                Answer::Entries(seen(names(at(dir), prefix, suffix, *order)))
            }
            Question::Holders { dir, name } => Answer::Entries(seen(holders(at(dir), at(name)))),
            Question::Writable { path } => Answer::Flag(seen(files::may_write(at(path)))),
            Question::AgeDays { path } => Answer::Number(seen(self.age_days(at(path)))),
            Question::Transcript { path, format, depth } => Answer::Transcript(transcript(at(path), *format, *depth)),
            Question::Contains { path, patterns, depth } => Answer::Flag(contains(at(path), patterns, *depth)),
            Question::Tail { path, upto } => Answer::Digest(tail(at(path), *upto)),
            Question::Identity { path, format } => Answer::Identity(identity(at(path), *format)),
            Question::Setting { path, key } => Answer::Number(setting(at(path), key)),
            Question::Owners { dir, session, format } => Answer::Owners(self.owners(at(dir), session, *format)),
            Question::Marker { path } => Answer::Marker(marker(at(path))),
            Question::Process(process) => Answer::Life(self.life(process)),
            Question::Worktrees { cwd } => Answer::Texts(worktree_roots(at(cwd))),
        })
    }
}

/// The one place that knows whose parser reads a format.
/// What files of a format say, whoever read them.
pub(crate) mod parse {
    use std::io;

    use crate::chain::names::MarkerFile;
    use crate::id::IdentityKey;
    use crate::provider::claude::{self, Registered};
    use crate::provider::source::Source;
    use crate::snapshot::{Depth, Format, Marker, Seen, Transcript};

    pub(crate) fn transcript(format: Format, source: &mut dyn Source, depth: Depth) -> io::Result<Transcript> {
        match format {
            Format::Claude => claude::scan(source, depth),
        }
    }

    pub(crate) fn identity(format: Format, bytes: &[u8]) -> Option<IdentityKey> {
        match format {
            Format::Claude => claude::identity(bytes),
        }
    }

    /// The fields of a marker that a decision needs; schemes differ in the rest.
    pub(crate) fn marker(bytes: &[u8]) -> Seen<Marker> {
        match serde_json::from_slice::<MarkerFile>(bytes) {
            Ok(file) => Seen::Is(Marker { owner: file.owner_uid, token: file.token }),
            Err(error) => Seen::Unreadable(format!("it is not a marker: {error}")),
        }
    }

    pub(crate) fn is_registered(format: Format, name: &str) -> bool {
        match format {
            Format::Claude => claude::is_entry(name),
        }
    }

    pub(crate) fn registered(format: Format, bytes: &[u8]) -> Option<Registered> {
        match format {
            Format::Claude => claude::registered(bytes),
        }
    }
}

fn bare_process(pid: u32, started: Option<u64>) -> Process {
    Process { pid, started, host: None, boot: None, pid_ns: None }
}

/// The reason in one line: what was tried and what the system said.
fn reason(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn not_seen<T>(error: &FileError) -> Seen<T> {
    if error.is_absent() { Seen::Absent } else { Seen::Unreadable(reason(error)) }
}

fn seen<T>(result: Result<T, FileError>) -> Seen<T> {
    match result {
        Ok(value) => Seen::Is(value),
        Err(error) => not_seen(&error),
    }
}

fn text(path: PathBuf) -> Seen<String> {
    match path.into_os_string().into_string() {
        Ok(text) => Seen::Is(text),
        Err(path) => Seen::Unreadable(format!("the path {path:?} is not valid UTF-8")),
    }
}

fn node(stat: Stat) -> Node {
    Node { kind: stat.kind, bytes: stat.bytes }
}

fn same_file(a: &Path, b: &Path) -> Seen<bool> {
    match (seen(files::stat(a, true)), seen(files::stat(b, true))) {
        (Seen::Is(a), Seen::Is(b)) => Seen::Is(a.is_same(&b)),
        (Seen::Absent, _) | (_, Seen::Absent) => Seen::Absent,
        (Seen::Unreadable(why), _) | (_, Seen::Unreadable(why)) => Seen::Unreadable(why),
    }
}

/// Only names that fit are looked at, and one that vanishes meanwhile is not there.
fn names(dir: &Path, prefix: &str, suffix: &str, order: Order) -> Result<Vec<Entry>, FileError> {
    let open = Dir::open(dir)?;
    let mut found = Vec::new();
    for name in open.names(prefix, suffix)?.names {
        match open.stat(Path::new(&name.name)) {
            Ok(stat) => found.push((stat.modified_ns, entry(name.name, stat))),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    match order {
        Order::Name => {}
        Order::Largest => found.sort_by_key(|(_, entry)| Reverse(entry.bytes)),
        Order::Newest => found.sort_by_key(|&(modified_ns, _)| Reverse(modified_ns)),
    }
    Ok(found.into_iter().map(|(_, entry)| entry).collect())
}

fn entry(name: String, stat: Stat) -> Entry {
    Entry { name, kind: stat.kind, bytes: stat.bytes }
}

/// One look for each sub-directory. One that we may not enter holds nothing that a provider could reach; but where it is
/// `dir` itself that may not be entered, nothing can be told.
fn holders(dir: &Path, name: &Path) -> Result<Vec<Entry>, FileError> {
    let open = Dir::open(dir)?;
    let mut found = Vec::new();
    for sub in open.names("", "")?.names {
        let sub_path = Path::new(&sub.name);
        let kind = match sub.kind {
            Some(kind) => kind,
            None => open.stat(sub_path)?.kind,
        };
        if kind != NodeKind::Dir {
            continue;
        }
        match open.stat(&sub_path.join(name)) {
            Ok(stat) => found.push(entry(sub.name, stat)),
            Err(error) if error.is_absent() => {}
            Err(error) if error.is_denied() => {
                open.stat(sub_path)?;
            }
            Err(error) => return Err(error),
        }
    }
    found.sort();
    Ok(found)
}

impl Source for RegularFile {
    fn len(&self) -> u64 {
        self.stat().bytes
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        RegularFile::read_at(self, offset, buf).map_err(|error| error.source)
    }
}

/// It was opened, so it is there: whatever stops the reading, that is not absence.
fn broken_off<T>(path: &Path, error: &io::Error) -> Seen<T> {
    Seen::Unreadable(format!("cannot read {path:?}: {error}"))
}

fn transcript(path: &Path, format: Format, depth: Depth) -> Seen<Transcript> {
    let mut file = match RegularFile::open(path) {
        Ok(file) => file,
        Err(error) => return not_seen(&error),
    };
    match parse::transcript(format, &mut file, depth) {
        Ok(transcript) => Seen::Is(transcript),
        Err(error) => broken_off(path, &error),
    }
}

fn contains(path: &Path, patterns: &[String], depth: Depth) -> Seen<bool> {
    let mut file = match RegularFile::open(path) {
        Ok(file) => file,
        Err(error) => return not_seen(&error),
    };
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    match source::contains(&mut file, &patterns, depth) {
        Ok(Some(found)) => Seen::Is(found),
        Ok(None) => Seen::Unreadable(NOT_EXAMINED.into()),
        Err(error) => broken_off(path, &error),
    }
}

fn tail(path: &Path, upto: u64) -> Seen<Digest> {
    let file = match RegularFile::open(path) {
        Ok(file) if file.stat().bytes < upto => return Seen::Absent,
        Ok(file) => file,
        Err(error) => return not_seen(&error),
    };
    let wanted = upto.min(TAIL_BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(usize::MAX)];
    match file.read_at(upto - wanted, &mut bytes) {
        Ok(count) if count < bytes.len() => Seen::Absent,
        Ok(_) => Seen::Is(Digest::plain(&bytes)),
        Err(error) => Seen::Unreadable(reason(&error)),
    }
}

/// A file that is whole but names no account is the one of a login where nobody is signed in; one that is half written says
/// nothing.
fn identity(path: &Path, format: Format) -> Seen<IdentityKey> {
    let bytes = match files::read_small(path, ACCOUNT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) => return not_seen(&error),
    };
    match (parse::identity(format, &bytes), serde_json::from_slice::<IgnoredAny>(&bytes)) {
        (Some(key), _) => Seen::Is(key),
        (None, Ok(IgnoredAny)) => Seen::Absent,
        (None, Err(error)) => Seen::Unreadable(format!("{path:?} is not whole JSON: {error}")),
    }
}

fn setting(path: &Path, key: &str) -> Seen<i64> {
    if matches!(files::stat(path, true), Ok(stat) if stat.kind == NodeKind::Dir) {
        return Seen::Unreadable(NOT_SETTINGS.into());
    }
    let bytes = match files::read_small(path, SMALL_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) => return not_seen(&error),
    };
    let settings = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes);
    match settings.as_ref().map(|settings| settings.get(key).map(serde_json::Value::as_i64)) {
        Ok(None) => Seen::Absent,
        Ok(Some(Some(value))) => Seen::Is(value),
        Ok(Some(None)) | Err(_) => Seen::Unreadable(NOT_SETTINGS.into()),
    }
}

fn marker(path: &Path) -> Seen<Marker> {
    match files::read_small(path, SMALL_BYTES_MAX) {
        Ok(bytes) => parse::marker(&bytes),
        Err(error) => not_seen(&error),
    }
}

fn worktree_roots(cwd: &Path) -> Seen<Vec<String>> {
    match worktrees::worktrees(cwd) {
        Ok(None) => Seen::Absent,
        Ok(Some(roots)) => {
            let mut texts = Vec::new();
            for root in roots {
                match text(root) {
                    Seen::Is(root) => texts.push(root),
                    Seen::Absent => {}
                    Seen::Unreadable(why) => return Seen::Unreadable(why),
                }
            }
            Seen::Is(texts)
        }
        Err(error) => Seen::Unreadable(reason(&error)),
    }
}
