//! Laws over generated logs and worlds. Each has a canary (a wrong version that must fail it) and a count of how often
//! the interesting state was reached, which must not stay zero.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use throughline::chain::fold::State;
use throughline::chain::observe::RealView;
use throughline::chain::state::AgentState;
use throughline::chain::{Ledger, Receipt, Request, ledger, preflight};
use throughline::event::{AgentEvent, Event, VerdictWord};
use throughline::id::{AgentId, StreamName};
use throughline::log::{Append, Entry, Expectation, Fold, Log as _, Opening, Reader, Records as _, SqliteLog};
use throughline::snapshot::{Answer, NodeKind, Question, Seen, SnapshotError, View};

use crate::support::*;

fn stream() -> StreamName {
    "agent/a".parse().expect("a stream")
}

/// A step of a generated history: what is tried, on which of a few segments, sessions and tokens.
type Step = (u8, usize, usize);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0_u8..25, 0_usize..3, 0_usize..3), 1..60)
}

fn tried(step: Step, state: &AgentState) -> Event {
    let (what, which, other) = step;
    let (segment, session, token) = (["s1", "s2", "s3"][which], [A, B, C][other], ["t1", "t2", "t3"][other]);
    let epoch = state.lease.epoch;
    let zeros = "0".repeat(64);
    let file = json!({"bytes": which, "tail": zeros});
    let to = json!({"session": session, "config_dir": "/c", "cwd": "/w", "provider": "claude", "file": file});
    let (kind, mut body) = match what {
        0 => ("agent_declared", json!({"provider": "claude"})),
        1 => (
            "lease_taken",
            json!({"epoch": epoch.next(), "holder": {"host": "h", "boot": "b", "pid": 1, "started": 1, "pid_ns": 1}}),
        ),
        2 => ("lease_ended", json!({"epoch": epoch, "how": "released"})),
        3..=6 => (
            "spawned",
            json!({"segment": segment, "cwd": "/w", "config_dir": "/c", "provider": "claude", "how": "resume", "session": session}),
        ),
        7 => ("launched", json!({"segment": segment, "pid": 1, "started": 1})),
        8 => ("launch_failed", json!({"segment": segment, "why": "x"})),
        9 => ("session_reported", json!({"segment": segment, "session": session})),
        10 => ("fork_reported", json!({"segment": segment, "from": A, "session": session})),
        11 => ("resume_confirmed", json!({"segment": segment, "session": session, "file": file})),
        12..=13 => ("turn_confirmed", json!({"segment": segment, "session": session, "file": file})),
        14 => ("resume_rejected", json!({"segment": segment, "session": session, "why": "x", "snapshot": zeros})),
        15..=16 => ("chain_head_moved", json!({"segment": segment, "to": to})),
        17 => ("segment_ended", json!({"segment": segment, "reason": "exited", "file": file})),
        18 => ("growth_seen", json!({"session": session, "recorded": file, "found": file})),
        19 => (
            "relocation_intended",
            json!({"token": token, "session": session, "source": "/s", "destination": "/d", "marker": "/m", "file": file}),
        ),
        20 => ("relocated", json!({"token": token, "file": file})),
        21 => ("settle_intended", json!({"token": token, "how": "remove"})),
        22 => ("copy_removed", json!({"token": token})),
        23 => ("sweep_intended", json!({"tokens": [token], "temps": []})),
        _ => ("fresh_intended", json!({})),
    };
    if !matches!(kind, "agent_declared" | "fresh_intended" | "lease_taken" | "lease_ended") {
        body["epoch"] = json!(epoch);
    }
    let event = Event::decode(&stream(), kind, 1, body.to_string().as_bytes()).expect("a well-formed event");
    match event {
        Event::Agent(event) => Event::Agent(state.complete(event)),
        Event::Audit(_) | Event::Hook(_) => unreachable!("only agent events are tried"),
    }
}

/// The events of a generated history that are legal, in order.
fn legal(steps: &[Step]) -> Vec<Event> {
    let mut state = AgentState::default();
    let mut events = Vec::new();
    for step in steps {
        let event = tried(*step, &state);
        let Event::Agent(inner) = &event else { unreachable!("only agent events are tried") };
        let mut next = state.clone();
        if state.admit(inner).is_ok() && next.apply(inner).is_ok() {
            state = next;
            events.push(event);
        }
    }
    events
}

fn folded<F: Fold>(mut state: F, events: &[Event]) -> F {
    for event in events {
        state.apply(event).expect("legal events");
    }
    state
}

/// Runs a law; the law says what it reached, and something must have been.
fn holds<S: Strategy>(cases: u32, strategy: S, law: impl Fn(S::Value) -> Result<bool, TestCaseError>) {
    let reached = Cell::new(0);
    let mut runner = TestRunner::new(Config { cases, source_file: Some(file!()), ..Config::default() });
    let result = runner.run(&strategy, |value| {
        reached.set(reached.get() + u32::from(law(value)?));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(reached.get() > 0, "the interesting state was never reached");
}

/// Whether some case breaks a law: what a canary must do.
fn breaks<S: Strategy>(cases: u32, strategy: S, law: impl Fn(S::Value) -> bool) {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&strategy, |value| {
        prop_assert!(law(value));
        Ok(())
    });
    assert!(result.is_err(), "the wrong version passes: the law says nothing");
}

fn halves<F: Fold>(events: &[Event], at: usize) -> (Vec<u8>, Vec<u8>) {
    let whole = folded(F::empty(&stream()), events);
    let (first, rest) = events.split_at(at.min(events.len()));
    let kept = folded(F::empty(&stream()), first).encode();
    let again = F::decode(&stream(), &kept).expect("a memo of this version");
    (folded(again, rest).encode(), whole.encode())
}

#[test]
fn a_fold_in_two_halves_over_a_memo_is_the_whole_fold() {
    holds(400, (steps(), 0_usize..60), |(steps, at)| {
        let events = legal(&steps);
        let (halves, whole) = halves::<State>(&events, at);
        prop_assert_eq!(halves, whole);
        Ok(events.iter().any(|event| event.kind() == "chain_head_moved"))
    });
}

/// A fold that forgets, when it is written down, that the user asked for a new conversation.
#[derive(Clone)]
struct Forgets(State);

impl Fold for Forgets {
    const VERSION: u32 = 1;
    type Illegal = <State as Fold>::Illegal;
    fn empty(stream: &StreamName) -> Self {
        Self(State::empty(stream))
    }
    fn admit(&self, event: &Event) -> Result<(), Self::Illegal> {
        self.0.admit(event)
    }
    fn apply(&mut self, event: &Event) -> Result<(), Self::Illegal> {
        self.0.apply(event)
    }
    fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }
    fn decode(stream: &StreamName, bytes: &[u8]) -> Option<Self> {
        match State::decode(stream, bytes)? {
            State::Agent(mut state) => {
                state.fresh_intended = false;
                Some(Self(State::Agent(state)))
            }
            other @ (State::Audit | State::Hook(_)) => Some(Self(other)),
        }
    }
}

#[test]
fn canary_a_memo_that_forgets_breaks_the_law_of_halves() {
    breaks(400, (steps(), 0_usize..60), |(steps, at)| {
        let (halves, whole) = halves::<Forgets>(&legal(&steps), at);
        halves == whole
    });
}

#[test]
fn decode_after_encode_is_the_identity() {
    holds(400, steps(), |steps| {
        for event in legal(&steps) {
            let stored = event.encode().expect("canonical bytes");
            let again = Event::decode(&stream(), stored.kind, stored.schema, &stored.body).expect("it decodes");
            prop_assert_eq!(&again, &event);
            // The same spelling by way of a tree: typed bytes are canonical bytes.
            let tree = throughline::event::canonical::parse(&stored.body).expect("strict JSON");
            prop_assert_eq!(&throughline::event::canonical::write(&tree).expect("canonical"), &stored.body);
            prop_assert_eq!(again.encode().expect("canonical bytes"), stored);
        }
        Ok(steps.len() > 10)
    });
}

/// A history through a real log, appended in chunks: the log's folder, and the whole fold beside it.
fn through_log<F: Fold>(events: &[Event], chunks: &[usize]) -> (tempfile::TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().expect("a folder");
    let log = SqliteLog::<F>::open(&dir.path().join("log.db"), &Opening::default()).expect("a new log");
    let mut rest = events;
    for size in chunks.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*size).min(rest.len()));
        let entry = Entry { stream: stream(), expected: Expectation::Any, events: now.to_vec() };
        log.append(&[entry], &Append::at(0)).expect("legal events are taken");
        rest = later;
    }
    (dir, folded(F::empty(&stream()), events).encode())
}

fn read_back<F: Fold>(dir: &tempfile::TempDir) -> Vec<u8> {
    let reader = Reader::<F>::open(&dir.path().join("log.db")).expect("a reader");
    reader.state(&stream()).expect("a state").1.encode()
}

/// Histories long enough for a memo to be written and read.
fn long_steps() -> impl Strategy<Value = (Vec<Step>, Vec<usize>)> {
    (prop::collection::vec((0_u8..25, 0_usize..3, 0_usize..3), 120..260), prop::collection::vec(1_usize..7, 1..12))
}

#[test]
fn the_memo_never_matters() {
    holds(24, long_steps(), |(steps, chunks)| {
        let (dir, expected) = through_log::<State>(&legal(&steps), &chunks);
        prop_assert_eq!(&read_back::<State>(&dir), &expected);
        let raw = rusqlite::Connection::open(dir.path().join("log.db")).expect("SQLite");
        let memos: i64 = raw.query_row("SELECT count(*) FROM memos", [], |row| row.get(0)).expect("a count");
        for damage in ["UPDATE memos SET state = x'7b7d'", "DELETE FROM memos"] {
            raw.execute(damage, []).expect("memos may be edited");
            prop_assert_eq!(&read_back::<State>(&dir), &expected, "{}", damage);
        }
        Ok(memos > 0)
    });
}

#[test]
fn canary_a_memo_that_forgets_matters() {
    breaks(60, long_steps(), |(steps, chunks)| {
        let (dir, expected) = through_log::<Forgets>(&legal(&steps), &chunks);
        read_back::<Forgets>(&dir) == expected
    });
}

/// What stands in one place of a generated world.
fn contents() -> impl Strategy<Value = usize> {
    0_usize..9
}

fn place(world: &World, path: &Path, id: &str, content: usize) {
    let complete = transcript(id, 2);
    let parent = path.parent().expect("a parent");
    std::fs::create_dir_all(parent).expect("folders");
    let bytes = match content {
        0 => return,
        1 => complete,
        2 => String::new(),
        3 => "{\"type\":\"last-prompt\"}\n".into(),
        4 => "\"type\":\"user\" garbage\n".into(),
        5 => complete[..complete.len() - 9].into(),
        6 => {
            std::fs::create_dir_all(path).expect("a directory in the file's place");
            return;
        }
        7 => {
            if !path.exists() {
                std::os::unix::fs::symlink("nowhere", path).expect("a dangling link");
            }
            return;
        }
        _ => {
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).ok();
            return;
        }
    };
    world.write(path, bytes);
}

/// A generated world: what stands where for two ids, what the log confirmed, what is asked.
type Case = ((usize, usize, usize), (usize, usize), u8, u8);

fn cases() -> impl Strategy<Value = Case> {
    ((contents(), contents(), contents()), (contents(), contents()), 0_u8..4, 0_u8..8)
}

fn build(case: Case) -> (World, Ledger, Request) {
    let ((own, second, third), (own_b, second_b), chain, asked) = case;
    let world = World::new();
    for dir in ["second", "third"] {
        std::fs::create_dir_all(world.path(dir)).expect("a folder");
    }
    for (cwd, id, content) in
        [("work", A, own), ("second", A, second), ("third", A, third), ("work", B, own_b), ("second", B, second_b)]
    {
        place(&world, &world.file("login", cwd, id), id, content);
    }
    let ledger = match chain {
        0 => Ledger::default(),
        1 => given(&world.chain(&[A])),
        2 => given(&world.chain(&[A, B])),
        _ => given(&world.segment(A, "login", "second", json!({"path": world.file("login", "second", A)}))),
    };
    let mut request = world.request(if asked & 1 == 0 { Some(A) } else { None });
    request.history = (asked & 2 != 0).then(|| B.to_owned());
    request.fork = asked & 4 != 0;
    request.agent = ledger.agent.is_some().then(|| AgentId::parse("a").expect("an id"));
    (world, ledger, request)
}

#[test]
fn a_snapshot_replays_to_the_same_bytes() {
    holds(300, cases(), |case| {
        let (_world, ledger, request) = build(case);
        let receipt = ask(&ledger, &request);
        let kept = serde_json::to_string(receipt.snapshot()).expect("JSON");
        let mut kept: throughline::snapshot::Snapshot = serde_json::from_str(&kept).expect("it reads back");
        let again = preflight(&ledger, &request, &mut kept).expect("every answer was recorded");
        let bytes = |receipt: &Receipt| receipt.to_json().expect("JSON").to_string();
        prop_assert_eq!(bytes(&again), bytes(&receipt));
        prop_assert_eq!(bytes(&ask(&ledger, &request)), bytes(&receipt), "equal worlds, equal bytes");
        Ok(receipt.verdict().verdict == VerdictWord::Resume)
    });
}

/// The world with one question's answer turned into "could not be read".
struct Blind<'a> {
    world: throughline::snapshot::Snapshot,
    blind: &'a Question,
}

impl View for Blind<'_> {
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
        let answer = self.world.ask(question)?;
        if question != self.blind {
            return Ok(answer);
        }
        let why = || "taken away".to_owned();
        Ok(match answer {
            Answer::Node(_) => Answer::Node(Seen::Unreadable(why())),
            Answer::Text(_) => Answer::Text(Seen::Unreadable(why())),
            Answer::Texts(_) => Answer::Texts(Seen::Unreadable(why())),
            Answer::Flag(_) => Answer::Flag(Seen::Unreadable(why())),
            Answer::Number(_) => Answer::Number(Seen::Unreadable(why())),
            Answer::Entries(_) => Answer::Entries(Seen::Unreadable(why())),
            Answer::Digest(_) => Answer::Digest(Seen::Unreadable(why())),
            Answer::Identity(_) => Answer::Identity(Seen::Unreadable(why())),
            Answer::Transcript(_) => Answer::Transcript(Seen::Unreadable(why())),
            Answer::Owners(_) => Answer::Owners(Seen::Unreadable(why())),
            other => other,
        })
    }
}

#[test]
fn knowing_less_never_turns_unknown_into_resume() {
    holds(400, cases(), |case| {
        let (_world, ledger, request) = build(case);
        let receipt = ask(&ledger, &request);
        let unknown = receipt.verdict().verdict == VerdictWord::Unknown;
        for (question, _) in receipt.snapshot().iter() {
            let mut blind = Blind { world: receipt.snapshot().clone(), blind: question };
            // A decision that knows less may ask for more than was recorded: then it has not answered.
            let Ok(less) = preflight(&ledger, &request, &mut blind) else { continue };
            let word = less.verdict().verdict;
            if unknown {
                prop_assert!(!matches!(word, VerdictWord::Resume | VerdictWord::Recover), "without {:?}", question);
            }
            let missing = preflight(&ledger, &request, &mut receipt.snapshot().clone().without(question));
            prop_assert!(missing.is_err(), "{:?} was recorded and not needed", question);
        }
        Ok(unknown)
    });
}

/// The canary: what would block is taken for absent.
struct Naive(RealView);

impl View for Naive {
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
        Ok(match self.0.ask(question)? {
            Answer::Node(Seen::Is(node)) if node.kind == NodeKind::Special => Answer::Node(Seen::Absent),
            answer => answer,
        })
    }
}

#[test]
fn canary_what_blocks_taken_for_absent_breaks_the_law() {
    breaks(400, cases(), |case| {
        let (_world, ledger, request) = build(case);
        if ask(&ledger, &request).verdict().verdict != VerdictWord::Unknown {
            return true;
        }
        let mut naive = Naive(RealView::new(throughline::world::clock::now_ms(), own()));
        let less = preflight(&ledger, &request, &mut naive).expect("a real disk always answers");
        !matches!(less.verdict().verdict, VerdictWord::Resume | VerdictWord::Recover)
    });
}

/// Every name below a folder with kind, size, mode and modification time.
fn tree(root: &Path) -> BTreeMap<String, Value> {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(&dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            let meta = std::fs::symlink_metadata(&path).expect("metadata");
            if meta.is_dir() {
                left.push(path.clone());
            }
            let facts = json!([meta.len(), meta.mode(), meta.mtime(), meta.mtime_nsec(), meta.ino()]);
            found.insert(path.display().to_string(), facts);
        }
    }
    found
}

#[test]
fn a_preflight_changes_nothing_on_disk_but_the_logs_shm() {
    holds(60, cases(), |case| {
        let (world, _, mut request) = build(case);
        let path = world.path("log.db");
        {
            let log = SqliteLog::<State>::open(&path, &Opening::default()).expect("a log");
            let events = fold_events(&world.chain(&[A, B]));
            let entry = Entry { stream: stream(), expected: Expectation::Any, events };
            log.append(&[entry], &Append::at(0)).expect("legal events");
        }
        request.agent = Some(AgentId::parse("a").expect("an id"));
        let before = tree(&world.path(""));
        let ledger = ledger::read(&*Reader::<State>::open(&path).expect("a reader"), &request).expect("a sound log");
        let receipt = ask(&ledger, &request);
        let mut after = tree(&world.path(""));
        after.retain(|name, facts| !name.ends_with("log.db-shm") || before.get(name) == Some(facts));
        let before: BTreeMap<_, _> =
            before.into_iter().filter(|(name, _)| after.contains_key(name) || !name.ends_with("-shm")).collect();
        prop_assert_eq!(after, before);
        Ok(receipt.verdict().verdict == VerdictWord::Resume)
    });
}

#[test]
fn canary_a_look_that_touches_a_file_is_seen() {
    let world = World::new();
    let path = world.session("login", "work", A, 1);
    let before = tree(&world.path(""));
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    std::fs::File::open(path).and_then(|file| file.set_modified(earlier)).expect("touched");
    assert_ne!(tree(&world.path("")), before);
}

fn fold_events(lines: &[(&str, Value)]) -> Vec<Event> {
    let mut state = AgentState::default();
    lines
        .iter()
        .map(|(kind, body)| {
            let event = Event::decode(&stream(), kind, 1, body.to_string().as_bytes()).expect("an event");
            let Event::Agent(event) = event else { unreachable!("an agent's event") };
            let event: AgentEvent = state.complete(event);
            state.apply(&event).expect("legal");
            Event::Agent(event)
        })
        .collect()
}
