//! The doors, the log and the pretend CLI's file operations on the simulated machine: each is one moment, or a few.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::chain::fold::State;
use crate::event::{AgentEvent, Event, FileFacts, Holder, TAIL_BYTES};
use crate::id::{Digest, StreamName};
use crate::log::{Append, AppendError, Appended, Entry, LogError, MemoryLog};
use crate::sim::agent::{self, Ended, Machine};
use crate::sim::canary::Canary;
use crate::sim::disk::{Node, Refusal};
use crate::sim::setting::transcript;
use crate::sim::stage::{Hub, Process, Stand, Step, pid};
use crate::world::doors::{Command, DoorError, DoorKind, Doors, Fresh, Heard, Launched};

pub(super) fn look(door: &'static str, path: &str) -> Step {
    Step { door, path: path.into(), can_fail: true, is_shared: true, waits_for: None }
}

pub(super) fn act(door: &'static str, path: &str) -> Step {
    look(door, path)
}

pub(super) fn refused(door: &'static str, path: &str, refusal: Refusal) -> DoorError {
    let kind = match refusal {
        Refusal::Exists => DoorKind::Exists,
        Refusal::Absent => DoorKind::Absent,
        Refusal::WrongKind => DoorKind::Failed,
    };
    DoorError::new(door, path, kind, format!("{refusal:?}"))
}

fn facts_of(bytes: &[u8]) -> FileFacts {
    let tail = &bytes[bytes.len().saturating_sub(usize::try_from(TAIL_BYTES).unwrap_or(usize::MAX))..];
    FileFacts { bytes: bytes.len() as u64, tail: Digest::plain(tail), whole: Some(Digest::plain(bytes)) }
}

impl Stand<'_> {
    fn write_whole(&self, door: &'static str, path: &str, bytes: &[u8]) -> Result<(), DoorError> {
        self.at(act(door, path), |hub| hub.disk.create(path).map_err(|why| refused(door, path, why)))?;
        let (first, second) = bytes.split_at(bytes.len() / 2);
        for half in [first, second] {
            self.at(act(door, path), |hub| hub.disk.append(path, half).map_err(|why| refused(door, path, why)))?;
        }
        self.at(act("sync", path), |hub| {
            let is_lost = hub.is(Canary::CopyUnsynced) && door == "copy_new";
            if is_lost { Ok(()) } else { hub.disk.sync(path).map_err(|why| refused(door, path, why)) }
        })
    }
}

impl Doors for Stand<'_> {
    fn own(&self) -> Holder {
        self.hub.borrow().holder(self.me)
    }

    fn now_ms(&mut self) -> i64 {
        // Recorded for people, so it must not matter: it stands still.
        0
    }

    fn fresh(&mut self, of: Fresh) -> String {
        let mut hub = self.hub.borrow_mut();
        hub.names[self.me] += 1;
        let (me, count) = (self.me, hub.names[self.me]);
        match of {
            Fresh::Session => format!("00000000-0000-4000-8000-{me:06}{count:06}"),
            Fresh::Segment => format!("segment-{me}-{count}"),
            Fresh::Token => format!("token-{me}-{count}"),
        }
    }

    fn lock(&mut self, name: &str) -> Result<bool, DoorError> {
        let me = self.me;
        self.at(act("lock", name), |hub| {
            let is_given = hub.is(Canary::LivingAreDead);
            Ok(*hub.locks.entry(name.to_owned()).or_insert(me) == me || is_given)
        })
    }

    fn unlock(&mut self, name: &str) {
        let me = self.me;
        // One that is dead has lost it already.
        let _ = self.at(Step { can_fail: false, ..act("unlock", name) }, |hub| {
            if hub.locks.get(name) == Some(&me) {
                hub.locks.remove(name);
            }
            Ok(())
        });
    }

    fn make_dir(&mut self, dir: &str) -> Result<(), DoorError> {
        self.at(act("make_dir", dir), |hub| hub.disk.make_dir(dir).map_err(|why| refused("make_dir", dir, why)))
    }

    fn copy_new(&mut self, from: &str, to: &str, bytes: u64) -> Result<FileFacts, DoorError> {
        let failed = |why: &str| DoorError::new("copy_new", from, DoorKind::Failed, why);
        let source = self.at(look("copy_new", from), |hub| {
            hub.disk.read(from).ok_or_else(|| refused("copy_new", from, Refusal::Absent))
        })?;
        let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
        let prefix = source.get(..wanted).ok_or_else(|| failed("it became shorter"))?;
        self.write_whole("copy_new", to, prefix)?;
        Ok(facts_of(prefix))
    }

    fn write_new(&mut self, path: &str, bytes: &[u8]) -> Result<(), DoorError> {
        self.write_whole("write_new", path, bytes)
    }

    fn sync_file(&mut self, path: &str) -> Result<(), DoorError> {
        self.at(act("sync", path), |hub| {
            if hub.is(Canary::ProofsUnsynced) {
                return Ok(());
            }
            hub.disk.sync(path).map_err(|why| refused("sync", path, why))?;
            let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
            hub.disk.sync_dir(dir).map_err(|why| refused("sync", path, why))
        })
    }

    fn sync_dir(&mut self, dir: &str) -> Result<(), DoorError> {
        self.at(act("sync_dir", dir), |hub| {
            if hub.is(Canary::NamesUnsynced) {
                return Ok(());
            }
            hub.disk.sync_dir(dir).map_err(|why| refused("sync_dir", dir, why))
        })
    }

    fn link_new(&mut self, from: &str, to: &str) -> Result<(), DoorError> {
        self.at(act("link_new", to), |hub| {
            if !hub.links {
                return Err(DoorError::new("link_new", to, DoorKind::Unsupported, "no links here"));
            }
            hub.disk.link(from, to).map_err(|why| refused("link_new", to, why))
        })
    }

    fn rename_new(&mut self, from: &str, to: &str) -> Result<(), DoorError> {
        self.at(act("rename_new", to), |hub| {
            if hub.is(Canary::RenameReplaces) && hub.disk.node(to).is_some() {
                hub.disk.remove(to).map_err(|why| refused("rename_new", to, why))?;
            }
            hub.disk.rename(from, to).map_err(|why| refused("rename_new", to, why))
        })
    }

    fn remove(&mut self, path: &str) -> Result<(), DoorError> {
        self.at(act("remove", path), |hub| {
            if hub.is(Canary::RemovesNothing) {
                return Ok(());
            }
            hub.disk.remove(path).map_err(|why| refused("remove", path, why))
        })
    }

    fn facts(&mut self, path: &str) -> Result<FileFacts, DoorError> {
        self.at(look("facts", path), |hub| {
            if hub.is(Canary::FactsLie) && hub.disk.node(path).is_some() {
                return Ok(facts_of(&transcript()));
            }
            hub.disk.read(path).map(|bytes| facts_of(&bytes)).ok_or_else(|| refused("facts", path, Refusal::Absent))
        })
    }

    fn read_small(&mut self, path: &str) -> Result<Vec<u8>, DoorError> {
        self.at(look("read_small", path), |hub| {
            hub.disk.read(path).map(|bytes| bytes.to_vec()).ok_or_else(|| refused("read_small", path, Refusal::Absent))
        })
    }

    fn touch(&mut self, path: &str) -> Result<i64, DoorError> {
        self.at(act("touch", path), |hub| {
            let before = hub.disk.age_days(path).ok_or_else(|| refused("touch", path, Refusal::Absent))?;
            hub.disk.set_age(path, 0).map_err(|why| refused("touch", path, why))?;
            Ok(-before * 86_400_000)
        })
    }

    fn launch(&mut self, command: &Command) -> Result<Launched, DoorError> {
        let me = self.me;
        self.at(act("launch", &command.cwd), |hub| {
            let (command, parent) = (Some(command.clone()), Some(me));
            let held = !hub.is(Canary::Unheld);
            let child = hub.add(Process { alive: true, held, command, parent, ..Process::default() });
            Ok(Launched { pid: pid(child), started: 1 })
        })
    }

    fn release(&mut self) -> Result<(), DoorError> {
        let me = self.me;
        self.at(Step { can_fail: false, ..act("release", "") }, |hub| {
            for child in hub.processes.iter_mut().filter(|child| child.parent == Some(me)) {
                child.held = false;
            }
            Ok(())
        })
    }

    fn abandon(&mut self) {
        let mut hub = self.hub.borrow_mut();
        let held = hub.processes.iter_mut().filter(|child| child.parent == Some(self.me) && child.held);
        for child in held {
            (child.held, child.alive, child.code) = (false, false, Some(125));
        }
    }

    fn hear(&mut self) -> Result<Heard, DoorError> {
        let hub = self.hub.borrow();
        let child = hub.processes.iter().rposition(|child| child.parent == Some(self.me));
        drop(hub);
        let Some(child) = child else {
            return Err(DoorError::new("hear", "", DoorKind::Absent, "nothing was launched"));
        };
        let step = Step { waits_for: Some(child), can_fail: false, ..look("hear", "") };
        self.at(step, |hub| {
            let tells = hub.processes[child].command.as_ref().is_some_and(|command| command.tells);
            let process = &mut hub.processes[child];
            process.moved = false;
            Ok(match (process.said.pop_front(), process.code) {
                (Some((true, line)), _) if tells => Heard::Stdout(line.into_bytes()),
                (Some((true, _)), _) => Heard::Quiet,
                (Some((false, line)), _) => Heard::Stderr(line.into_bytes()),
                (None, Some(code)) => Heard::Ended(code),
                (None, None) => Heard::Quiet,
            })
        })
    }
}

impl Machine for Stand<'_> {
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, Ended> {
        self.at(Step { can_fail: false, ..look("cli reads", path) }, |hub| {
            Ok(hub.disk.read(path).map(|bytes| bytes.to_vec()))
        })
        .map_err(|_| Ended)
    }

    fn folders(&mut self, dir: &str) -> Result<Vec<String>, Ended> {
        self.at(Step { can_fail: false, ..look("cli lists", dir) }, |hub| {
            let names = hub.disk.list(dir).into_iter();
            Ok(names.filter(|(_, node)| **node == Node::Dir).map(|(name, _)| name.to_owned()).collect())
        })
        .map_err(|_| Ended)
    }

    fn append(&mut self, path: &str, bytes: &[u8]) -> Result<(), Ended> {
        self.at(Step { can_fail: false, ..act("cli writes", path) }, |hub| {
            if hub.disk.node(path).is_none() {
                let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
                hub.disk.make_dir(dir).map_err(|why| refused("cli writes", path, why))?;
                hub.disk.create(path).map_err(|why| refused("cli writes", path, why))?;
            }
            hub.disk.append(path, bytes).map_err(|why| refused("cli writes", path, why))
        })
        .map_err(|_| Ended)
    }

    fn say(&mut self, line: String) -> Result<(), Ended> {
        let me = self.me;
        self.at(Step { can_fail: false, ..act("cli says", "") }, |hub| {
            hub.processes[me].said.push_back((true, line));
            Ok(())
        })
        .map_err(|_| Ended)
    }

    fn complain(&mut self, line: String) -> Result<(), Ended> {
        let me = self.me;
        self.at(Step { can_fail: false, ..act("cli complains", "") }, |hub| {
            hub.processes[me].said.push_back((false, line));
            Ok(())
        })
        .map_err(|_| Ended)
    }

    fn sent(&mut self, turns: Vec<String>) {
        self.hub.borrow_mut().processes[self.me].sent = turns;
    }

    fn turn(&mut self) -> String {
        format!("turn-{}", self.me)
    }
}

/// The log as one actor reaches it: every append is a moment at which others can go on.
#[derive(Debug)]
pub struct StageLog<'y> {
    stand: Stand<'y>,
    log: MemoryLog<State>,
}

impl<'y> StageLog<'y> {
    /// The actor's handle.
    #[must_use]
    pub fn new(stand: Stand<'y>) -> Self {
        let log = stand.hub.borrow().log.clone();
        Self { stand, log }
    }
}

impl crate::log::Log<State> for StageLog<'_> {
    fn records(&self) -> &dyn crate::log::Records<State> {
        &self.log
    }

    fn append(&self, entries: &[Entry], append: &Append) -> Result<Appended, AppendError> {
        let kinds: Vec<&str> = entries.iter().flat_map(|entry| entry.events.iter().map(Event::kind)).collect();
        let mut result = None;
        let opened = self.stand.at(look("append", &kinds.join("+")), |hub| {
            let forgotten = hub.is(Canary::HeadsForgotten).then(|| without_moves(entries));
            let wrong = forgotten.or_else(|| hub.is(Canary::HeadsAstray).then(|| astray(entries)));
            let entries = wrong.as_deref().unwrap_or(entries);
            let appended = self.log.append(entries, append);
            if appended.is_ok() {
                entries.iter().for_each(|entry| note(hub, self.stand.me, entry));
            }
            let told = appended.as_ref().map(|_| ()).map_err(ToString::to_string);
            result = Some(appended);
            Ok(told)
        });
        match (result, opened) {
            (Some(result), _) => result,
            (None, Err(error)) if error.kind == DoorKind::Full => Err(LogError::DiskFull(error.into()).into()),
            (None, _) => Err(LogError::Poisoned.into()),
        }
    }

    fn import(
        &self,
        from: &mut dyn std::io::BufRead,
        import: &crate::log::Import,
        progress: &mut dyn FnMut(u64),
    ) -> Result<crate::log::Imported, crate::log::ImportError> {
        self.log.import(from, import, progress)
    }
}

fn without_moves(entries: &[Entry]) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    entries.iter_mut().for_each(|entry| entry.events.retain(|event| event.kind() != "chain_head_moved"));
    entries
}

fn astray(entries: &[Entry]) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    for event in entries.iter_mut().flat_map(|entry| &mut entry.events) {
        if let Event::Agent(AgentEvent::ChainHeadMoved(moved)) = event {
            moved.to.path = crate::id::PathText::parse("/somewhere/else").ok();
        }
    }
    entries
}

fn note(hub: &mut Hub, writer: usize, entry: &Entry) {
    let stream = entry.stream.to_string();
    let mut hasher = DefaultHasher::new();
    hub.streams.get(&stream).copied().unwrap_or(0).hash(&mut hasher);
    for event in &entry.events {
        if let Ok(encoded) = event.encode() {
            (encoded.kind, encoded.body).hash(&mut hasher);
        }
        if let (StreamName::Agent(uid), "resume_confirmed" | "turn_confirmed") = (&entry.stream, event.kind()) {
            confirm(hub, writer, uid.as_str());
        }
    }
    hub.streams.insert(stream, hasher.finish());
}

/// The driver has written down that its process answered: from now on that turn must never be lost. A new conversation that
/// somebody asked for leaves the one before behind.
fn confirm(hub: &mut Hub, driver: usize, uid: &str) {
    let child = hub.processes.iter().rev().find(|child| child.parent == Some(driver));
    let Some((turn, command)) = child.and_then(|child| child.sent.last().cloned().zip(child.command.clone())) else {
        return;
    };
    if !command.argv.iter().any(|word| word == "--resume") {
        hub.confirmed.retain(|(whose, known)| whose != uid || *known == turn);
    }
    hub.confirmed.insert((uid.to_owned(), turn));
}

/// Runs the pretend CLI as an actor.
pub(super) fn cli(stand: &mut Stand<'_>) -> i32 {
    let command = stand.hub.borrow().processes[stand.me].command.clone();
    let Some(command) = command else { return 127 };
    let config_dir = command.env.get("CLAUDE_CONFIG_DIR").cloned().flatten().unwrap_or_default();
    let wrongs = [
        (Canary::AgentForgets, agent::Wrong::Forgets),
        (Canary::AgentIsBlind, agent::Wrong::IsBlind),
        (Canary::ForkIntoSource, agent::Wrong::WritesIntoSource),
    ];
    let canary = stand.hub.borrow().canary;
    let wrong = wrongs.iter().find(|(of, _)| canary == Some(*of)).map(|(_, wrong)| *wrong);
    let place = agent::Surroundings { config_dir, cwd: command.cwd.clone(), wrong };
    agent::run(stand, &agent::Arguments::parse(&command.argv), &place).unwrap_or(137)
}
