//! The simulated machine as a decision sees it: the same questions, answered from the simulated disk and process table.
//!
//! What a transcript or a marker says is read by the same code as on the real disk; what the *agent* does with it is the
//! pretend CLI's own business, which shares nothing with that code.

use crate::chain::observe::parse;
use crate::provider::source;
use crate::sim::canary::Canary;
use crate::sim::disk::Node;
use crate::sim::doors::look;
use crate::sim::setting::LOGIN;
use crate::sim::stage::{Hub, Stand, actor_of};
use crate::snapshot::{
    Answer, Entry, Life, Node as Seen2, NodeKind, Order, Process, Question, Seen, SnapshotError, View,
};
use crate::world::doors::DoorKind;

impl View for Stand<'_> {
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
        let (door, path) = named(question);
        let answered = self.at(look(door, &path), |hub| Ok(answer(hub, question)));
        match answered {
            Ok(answer) => Ok(answer),
            // A fault at a look: it could not be read.
            Err(error) if error.kind != DoorKind::Died => Ok(unreadable(question, &error.why)),
            Err(_) => Err(SnapshotError::NotRecorded { question: Box::new(question.clone()) }),
        }
    }
}

fn named(question: &Question) -> (&'static str, String) {
    match question {
        Question::Node { path, .. } => ("node", path.clone()),
        Question::RealPath { path } => ("real_path", path.clone()),
        Question::SameFile { a, .. } => ("same_file", a.clone()),
        Question::Names { dir, .. } => ("names", dir.clone()),
        Question::Holders { dir, .. } => ("holders", dir.clone()),
        Question::Writable { path } => ("writable", path.clone()),
        Question::AgeDays { path } => ("age_days", path.clone()),
        Question::Transcript { path, .. } => ("transcript", path.clone()),
        Question::Contains { path, .. } => ("contains", path.clone()),
        Question::Tail { path, .. } => ("tail", path.clone()),
        Question::Identity { path, .. } => ("identity", path.clone()),
        Question::Setting { path, .. } => ("setting", path.clone()),
        Question::Owners { dir, .. } => ("owners", dir.clone()),
        Question::Marker { path } => ("marker", path.clone()),
        Question::Process(process) => ("process", process.pid.to_string()),
        Question::Worktrees { cwd } => ("worktrees", cwd.clone()),
    }
}

fn node(hub: &Hub, path: &str) -> Seen<Seen2> {
    match hub.disk.node(path) {
        None => Seen::Absent,
        Some(Node::Dir) => Seen::Is(Seen2 { kind: NodeKind::Dir, bytes: 0 }),
        Some(Node::File(_)) => {
            let bytes = hub.disk.read(path).map_or(0, |bytes| bytes.len() as u64);
            Seen::Is(Seen2 { kind: NodeKind::File, bytes })
        }
    }
}

fn read<T>(hub: &Hub, path: &str, with: impl FnOnce(&[u8]) -> Seen<T>) -> Seen<T> {
    match (hub.disk.read(path), hub.disk.node(path)) {
        (Some(bytes), _) => with(&bytes),
        (None, Some(_)) => Seen::Unreadable("it is a folder".into()),
        (None, None) => Seen::Absent,
    }
}

fn told<T>(result: std::io::Result<T>) -> Seen<T> {
    match result {
        Ok(value) => Seen::Is(value),
        Err(error) => Seen::Unreadable(error.to_string()),
    }
}

fn entries(hub: &Hub, dir: &str, prefix: &str, suffix: &str, order: Order) -> Seen<Vec<Entry>> {
    if hub.disk.node(dir) != Some(&Node::Dir) {
        return Seen::Absent;
    }
    let names = hub.disk.list(dir).into_iter().map(|(name, _)| name);
    let fitting = names.filter(|name| name.starts_with(prefix) && name.ends_with(suffix));
    let mut found: Vec<Entry> = fitting.filter_map(|name| entry(hub, &format!("{dir}/{name}"), name)).collect();
    let age = |entry: &Entry| hub.disk.age_days(&format!("{dir}/{}", entry.name)).unwrap_or(0);
    match order {
        Order::Name => {}
        Order::Largest => found.sort_by_key(|entry| std::cmp::Reverse(entry.bytes)),
        Order::Newest => found.sort_by_key(age),
    }
    Seen::Is(found)
}

fn entry(hub: &Hub, path: &str, name: &str) -> Option<Entry> {
    node(hub, path).is().map(|node| Entry { name: name.into(), kind: node.kind, bytes: node.bytes })
}

fn holders(hub: &Hub, dir: &str, name: &str) -> Seen<Vec<Entry>> {
    if hub.disk.node(dir) != Some(&Node::Dir) {
        return Seen::Absent;
    }
    let subs = hub.disk.list(dir).into_iter().filter(|(_, node)| **node == Node::Dir).map(|(sub, _)| sub);
    Seen::Is(subs.filter_map(|sub| entry(hub, &format!("{dir}/{sub}/{name}"), sub)).collect())
}

fn life(hub: &Hub, process: &Process) -> Life {
    if process.boot.as_deref().is_some_and(|boot| boot != hub.holder(0).boot) {
        return Life::Dead;
    }
    if hub.is(Canary::LivingAreDead) {
        return Life::Dead;
    }
    let found = actor_of(process.pid).and_then(|actor| hub.processes.get(actor));
    if found.is_some_and(|process| process.alive) { Life::Alive } else { Life::Dead }
}

fn answer(hub: &Hub, question: &Question) -> Answer {
    match question {
        Question::Node { path, .. } => Answer::Node(node(hub, path)),
        Question::RealPath { path } => Answer::Text(node(hub, path).map(|_| path.clone())),
        Question::SameFile { a, b } => Answer::Flag(match (hub.disk.node(a), hub.disk.node(b)) {
            (Some(Node::File(one)), Some(Node::File(other))) => Seen::Is(one == other),
            (Some(_), Some(_)) => Seen::Is(a == b),
            (None, _) | (_, None) => Seen::Absent,
        }),
        Question::Names { dir, prefix, suffix, order } => Answer::Entries(entries(hub, dir, prefix, suffix, *order)),
        Question::Holders { dir, name } => Answer::Entries(holders(hub, dir, name)),
        Question::Writable { path } => Answer::Flag(node(hub, path).map(|_| true)),
        Question::AgeDays { path } => Answer::Number(hub.disk.age_days(path).map_or(Seen::Absent, Seen::Is)),
        Question::Transcript { path, format, depth } => {
            Answer::Transcript(read(hub, path, |mut bytes| told(parse::transcript(*format, &mut bytes, *depth))))
        }
        Question::Contains { path, patterns, depth } => Answer::Flag(read(hub, path, |mut bytes| {
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            told(source::contains(&mut bytes, &patterns, *depth)).map(|found| found.unwrap_or(false))
        })),
        Question::Tail { path, upto } => Answer::Digest(read(hub, path, |bytes| {
            let end = usize::try_from(*upto).unwrap_or(usize::MAX);
            let start = end.saturating_sub(64 * 1024);
            bytes.get(start..end).map_or(Seen::Absent, |tail| Seen::Is(crate::id::Digest::plain(tail)))
        })),
        Question::Identity { path, format } => {
            let own = format!("{LOGIN}/.claude.json");
            let path = if hub.is(Canary::IdentityBlind) { &own } else { path };
            Answer::Identity(read(hub, path, |bytes| parse::identity(*format, bytes).map_or(Seen::Absent, Seen::Is)))
        }
        Question::Setting { .. } => Answer::Number(Seen::Absent),
        Question::Owners { .. } => Answer::Owners(Seen::Absent),
        Question::Marker { .. } if hub.is(Canary::MarkersUnseen) => Answer::Marker(Seen::Absent),
        Question::Marker { path } => Answer::Marker(read(hub, path, parse::marker)),
        Question::Process(process) => Answer::Life(life(hub, process)),
        Question::Worktrees { .. } => Answer::Texts(Seen::Absent),
    }
}

fn unreadable(question: &Question, why: &str) -> Answer {
    let why = why.to_owned();
    match question {
        Question::Node { .. } => Answer::Node(Seen::Unreadable(why)),
        Question::RealPath { .. } => Answer::Text(Seen::Unreadable(why)),
        Question::SameFile { .. } | Question::Writable { .. } | Question::Contains { .. } => {
            Answer::Flag(Seen::Unreadable(why))
        }
        Question::Names { .. } | Question::Holders { .. } => Answer::Entries(Seen::Unreadable(why)),
        Question::AgeDays { .. } | Question::Setting { .. } => Answer::Number(Seen::Unreadable(why)),
        Question::Transcript { .. } => Answer::Transcript(Seen::Unreadable(why)),
        Question::Tail { .. } => Answer::Digest(Seen::Unreadable(why)),
        Question::Identity { .. } => Answer::Identity(Seen::Unreadable(why)),
        Question::Owners { .. } => Answer::Owners(Seen::Unreadable(why)),
        Question::Marker { .. } => Answer::Marker(Seen::Unreadable(why)),
        Question::Process(_) => Answer::Life(Life::Unknown),
        Question::Worktrees { .. } => Answer::Texts(Seen::Unreadable(why)),
    }
}
