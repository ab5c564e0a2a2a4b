//! A small world in memory that answers every question of a rule, as the real one would.

use std::collections::{BTreeMap, BTreeSet};

use throughline::id::Digest;
use throughline::provider::claude;
use throughline::provider::source::{NOT_EXAMINED, NOT_SETTINGS, contains};
use throughline::snapshot::{
    Answer, Depth, Entry, Life, Node, NodeKind, Order, Owner, Question, Seen, SnapshotError, Transcript, View,
};

/// What has a name.
#[derive(Clone, Debug)]
pub(crate) enum Thing {
    File(Vec<u8>),
    Dir,
    Link(String),
    Special,
    /// A file whose name can be seen and whose bytes cannot be read.
    Locked(Vec<u8>),
    /// A directory that cannot be entered.
    LockedDir,
}

/// The world.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) things: BTreeMap<String, Thing>,
    /// Days since a file was changed; 0 where it is not said.
    pub(crate) age: BTreeMap<String, i64>,
    pub(crate) unwritable: BTreeSet<String>,
    pub(crate) worktrees: Seen<Vec<String>>,
    /// What was asked, in order.
    pub(crate) asked: Vec<Question>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            things: BTreeMap::new(),
            age: BTreeMap::new(),
            unwritable: BTreeSet::new(),
            worktrees: Seen::Absent,
            asked: Vec::new(),
        }
    }

    /// Puts something at a path; the directories above it come to be.
    pub(crate) fn put(&mut self, path: &str, thing: Thing) {
        for (at, _) in path.match_indices('/').filter(|&(at, _)| at > 0) {
            self.things.entry(path[..at].to_owned()).or_insert(Thing::Dir);
        }
        self.things.insert(path.to_owned(), thing);
    }

    pub(crate) fn file(&mut self, path: &str, bytes: impl AsRef<[u8]>) {
        self.put(path, Thing::File(bytes.as_ref().to_vec()));
    }

    pub(crate) fn with(mut self, path: &str, thing: Thing) -> Self {
        self.put(path, thing);
        self
    }

    /// The physical path, links in it resolved; the last name's too if asked for.
    fn resolve(&self, path: &str, follow: bool) -> Seen<String> {
        let mut todo: Vec<String> = path.split('/').filter(|name| !name.is_empty()).rev().map(str::to_owned).collect();
        let (mut here, mut links) = (String::new(), 0);
        while let Some(name) = todo.pop() {
            if name == ".." {
                here.truncate(here.rfind('/').unwrap_or(0));
                continue;
            }
            if matches!(self.things.get(&here), Some(Thing::LockedDir)) {
                return Seen::Unreadable("permission denied".into());
            }
            let next = format!("{here}/{name}");
            match self.things.get(&next) {
                None => return Seen::Absent,
                Some(Thing::Link(target)) if follow || !todo.is_empty() => {
                    links += 1;
                    if links > 20 {
                        return Seen::Absent;
                    }
                    if target.starts_with('/') {
                        here.clear();
                    }
                    todo.extend(target.split('/').filter(|name| !name.is_empty()).rev().map(str::to_owned));
                }
                Some(Thing::File(_) | Thing::Locked(_) | Thing::Special) if !todo.is_empty() => return Seen::Absent,
                Some(_) => here = next,
            }
        }
        Seen::Is(if here.is_empty() { "/".into() } else { here })
    }

    fn thing(&self, path: &str, follow: bool) -> Seen<(String, Thing)> {
        match self.resolve(path, follow) {
            Seen::Is(path) if path == "/" => Seen::Is((path, Thing::Dir)),
            Seen::Is(path) => match self.things.get(&path) {
                Some(thing) => Seen::Is((path, thing.clone())),
                None => Seen::Absent,
            },
            Seen::Absent => Seen::Absent,
            Seen::Unreadable(why) => Seen::Unreadable(why),
        }
    }

    fn bytes(&self, path: &str) -> Seen<Vec<u8>> {
        match self.thing(path, true) {
            Seen::Is((_, Thing::File(bytes))) => Seen::Is(bytes),
            Seen::Is((_, other)) => Seen::Unreadable(format!("{path} is {other:?}")),
            Seen::Absent => Seen::Absent,
            Seen::Unreadable(why) => Seen::Unreadable(why),
        }
    }

    fn children(&self, dir: &str) -> Seen<Vec<Entry>> {
        let dir = match self.thing(dir, true) {
            Seen::Is((dir, Thing::Dir)) => dir,
            Seen::Is((_, Thing::LockedDir)) => return Seen::Unreadable("permission denied".into()),
            Seen::Is(_) | Seen::Absent => return Seen::Absent,
            Seen::Unreadable(why) => return Seen::Unreadable(why),
        };
        let prefix = if dir == "/" { dir } else { format!("{dir}/") };
        let entries = self.things.iter().filter_map(|(path, thing)| {
            let name = path.strip_prefix(&prefix).filter(|name| !name.contains('/'))?;
            Some(Entry { name: name.into(), kind: kind(thing), bytes: size(thing) })
        });
        Seen::Is(entries.collect())
    }

    fn names(&self, dir: &str, prefix: &str, suffix: &str, order: Order) -> Seen<Vec<Entry>> {
        self.children(dir).map(|mut entries| {
            entries.retain(|entry| entry.name.starts_with(prefix) && entry.name.ends_with(suffix));
            entries.sort_by_key(|entry| {
                let age = self.age.get(&format!("{dir}/{}", entry.name)).copied().unwrap_or(0);
                let key = match order {
                    Order::Name => 0,
                    Order::Largest => -i64::try_from(entry.bytes).unwrap(),
                    Order::Newest => age,
                };
                (key, entry.name.clone())
            });
            entries
        })
    }

    fn holders(&self, dir: &str, name: &str) -> Seen<Vec<Entry>> {
        self.children(dir).map(|entries| {
            // In no order at all, like a real directory.
            let real = entries.into_iter().rev().filter(|entry| entry.kind == NodeKind::Dir);
            real.filter_map(|sub| match self.thing(&format!("{dir}/{}/{name}", sub.name), false) {
                Seen::Is((_, thing)) => Some(Entry { name: sub.name, kind: kind(&thing), bytes: size(&thing) }),
                Seen::Absent | Seen::Unreadable(_) => None,
            })
            .collect()
        })
    }

    fn owners(&self, dir: &str, session: &str) -> Seen<Vec<Owner>> {
        self.children(dir).map(|entries| {
            let files = entries.into_iter().filter(|entry| claude::is_entry(&entry.name));
            let named =
                files.filter_map(|entry| claude::registered(&self.bytes(&format!("{dir}/{}", entry.name)).is()?));
            named
                .filter(|entry| entry.session == session)
                .map(|entry| Owner { pid: entry.pid, life: Life::Alive })
                .collect()
        })
    }

    fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Node { path, follow } => Answer::Node(
                self.thing(path, *follow).map(|(_, thing)| Node { kind: kind(&thing), bytes: size(&thing) }),
            ),
            Question::RealPath { path } => Answer::Text(self.resolve(path, true)),
            Question::Names { dir, prefix, suffix, order } => Answer::Entries(self.names(dir, prefix, suffix, *order)),
            Question::Holders { dir, name } => Answer::Entries(self.holders(dir, name)),
            Question::Writable { path } => {
                Answer::Flag(self.thing(path, true).map(|(path, _)| !self.unwritable.contains(&path)))
            }
            Question::AgeDays { path } => {
                Answer::Number(self.thing(path, true).map(|(path, _)| self.age.get(&path).copied().unwrap_or(0)))
            }
            Question::Transcript { path, depth, .. } => Answer::Transcript(match self.bytes(path) {
                Seen::Is(bytes) => Seen::Is(scan(&bytes, *depth)),
                Seen::Absent => Seen::Absent,
                Seen::Unreadable(why) => Seen::Unreadable(why),
            }),
            Question::Contains { path, patterns, depth } => {
                let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
                Answer::Flag(match self.bytes(path) {
                    Seen::Is(bytes) => match contains(&mut &bytes[..], &patterns, *depth).unwrap() {
                        Some(found) => Seen::Is(found),
                        None => Seen::Unreadable(NOT_EXAMINED.into()),
                    },
                    Seen::Absent => Seen::Absent,
                    Seen::Unreadable(why) => Seen::Unreadable(why),
                })
            }
            Question::Identity { path, .. } => Answer::Identity(match self.bytes(path) {
                Seen::Is(bytes) => claude::identity(&bytes).map_or(Seen::Absent, Seen::Is),
                Seen::Absent => Seen::Absent,
                Seen::Unreadable(why) => Seen::Unreadable(why),
            }),
            Question::Setting { path, key } => Answer::Number(match self.bytes(path) {
                Seen::Is(bytes) => match serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes) {
                    Ok(file) => file.get(key).map_or(Seen::Absent, |value| {
                        value.as_i64().map_or_else(|| Seen::Unreadable(NOT_SETTINGS.into()), Seen::Is)
                    }),
                    Err(_) => Seen::Unreadable(NOT_SETTINGS.into()),
                },
                Seen::Absent => Seen::Absent,
                Seen::Unreadable(why) => Seen::Unreadable(why),
            }),
            Question::Owners { dir, session, .. } => Answer::Owners(self.owners(dir, session)),
            Question::Worktrees { .. } => Answer::Texts(self.worktrees.clone()),
            Question::Tail { path, upto } => Answer::Digest(match self.bytes(path) {
                Seen::Is(bytes) => Seen::Is(Digest::plain(&bytes[..usize::try_from(*upto).unwrap()])),
                Seen::Absent => Seen::Absent,
                Seen::Unreadable(why) => Seen::Unreadable(why),
            }),
            other => panic!("a provider's rule does not ask {other:?}"),
        }
    }
}

impl View for World {
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
        self.asked.push(question.clone());
        Ok(self.answer(question))
    }
}

/// The scanner over bytes in memory.
pub(crate) fn scan(mut bytes: &[u8], depth: Depth) -> Transcript {
    claude::scan(&mut bytes, depth).unwrap()
}

fn kind(thing: &Thing) -> NodeKind {
    match thing {
        Thing::File(_) | Thing::Locked(_) => NodeKind::File,
        Thing::Dir | Thing::LockedDir => NodeKind::Dir,
        Thing::Link(_) => NodeKind::Link,
        Thing::Special => NodeKind::Special,
    }
}

fn size(thing: &Thing) -> u64 {
    match thing {
        Thing::File(bytes) | Thing::Locked(bytes) => bytes.len() as u64,
        Thing::Dir | Thing::Link(_) | Thing::Special | Thing::LockedDir => 0,
    }
}
