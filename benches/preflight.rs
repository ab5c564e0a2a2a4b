//! The preflight beside the bare system calls that its answer needs.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;
use throughline::chain::fold::State;
use throughline::chain::observe::RealView;
use throughline::chain::{Receipt, Request, ledger, preflight};
use throughline::event::{Event, Holder, VerdictWord};
use throughline::id::{AgentId, ProviderName, StreamName};
use throughline::log::{Append, Entry, Expectation, Log as _, Opening, Reader, SqliteLog};
use throughline::provider::{ConfigDir, claude::slug};
use throughline::snapshot::Question;
use throughline::world::{clock, process};

use crate::{paired, slower, time};

const ID: &str = "aaaaaaaa-0000-4000-8000-00000000000a";

struct Bench {
    root: tempfile::TempDir,
    cwd: String,
    project: PathBuf,
}

impl Bench {
    /// A login with `files` small sessions in the project's folder, one of them the agent's.
    fn new(files: usize) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let top = root.path().canonicalize().expect("a physical path");
        let cwd = top.join("work").to_str().expect("UTF-8").to_owned();
        let project = top.join("login/projects").join(slug(&cwd));
        fs::create_dir_all(&cwd).expect("folders");
        fs::create_dir_all(&project).expect("folders");
        for index in 0..files {
            let id = format!("bbbbbbbb-0000-4000-8000-{index:012}");
            fs::write(project.join(format!("{id}.jsonl")), transcript(&id, 2)).expect("a session");
        }
        fs::write(project.join(format!("{ID}.jsonl")), transcript(ID, 8)).expect("a session");
        Self { root, cwd, project }
    }

    fn login(&self) -> String {
        self.root.path().canonicalize().expect("a physical path").join("login").to_str().expect("UTF-8").to_owned()
    }

    fn request(&self, agent: bool) -> Request {
        let provider = ProviderName::parse("claude").expect("a provider");
        let mut request = Request::new(provider, Some(ConfigDir::Named(self.login())), self.cwd.clone());
        request.session = Some(ID.into());
        request.agent = agent.then(|| AgentId::parse("a").expect("an id"));
        request
    }

    /// A log with `events` events in all, `a`'s last.
    fn log(&self, events: usize) -> PathBuf {
        let path = self.root.path().join(format!("log-{events}.db"));
        let log = SqliteLog::<State>::open(&path, &Opening::default()).expect("a log");
        let fresh = |uid: usize| -> Vec<Event> {
            let stream: StreamName = format!("agent/other-{uid}").parse().expect("a stream");
            vec![Event::decode(&stream, "agent_declared", 1, br#"{"provider":"claude"}"#).expect("an event"); 10]
        };
        for chunk in 0..events / 1_000 {
            let entries: Vec<Entry> = (0..100)
                .map(|uid| Entry {
                    stream: format!("agent/other-{}", (chunk % 10) * 100 + uid).parse().expect("a stream"),
                    expected: Expectation::Any,
                    events: fresh((chunk % 10) * 100 + uid),
                })
                .collect();
            log.append(&entries, &Append::at(0)).expect("legal events");
        }
        let stream: StreamName = "agent/a".parse().expect("a stream");
        let (cwd, login) = (&self.cwd, self.login());
        let to = json!({"session": ID, "config_dir": login, "cwd": cwd, "provider": "claude"});
        let events = [
            ("spawned", json!({"segment": "s", "cwd": cwd, "config_dir": login, "provider": "claude", "how": "fresh"})),
            ("session_reported", json!({"segment": "s", "session": ID})),
            ("turn_confirmed", json!({"segment": "s", "session": ID})),
            ("chain_head_moved", json!({"segment": "s", "to": to})),
            ("segment_ended", json!({"segment": "s", "reason": "exited"})),
        ];
        let events = events
            .iter()
            .map(|(kind, body)| Event::decode(&stream, kind, 1, body.to_string().as_bytes()).expect("an event"))
            .collect();
        let entry = Entry { stream, expected: Expectation::Any, events };
        log.append(&[entry], &Append::at(0)).expect("legal events");
        log.checkpoint().expect("a checkpoint");
        path
    }
}

fn transcript(id: &str, turns: usize) -> String {
    let mut text = String::new();
    let mut parent = serde_json::Value::Null;
    for index in 0..turns * 2 {
        let (role, uuid) =
            (["user", "assistant"][index % 2], format!("{}-{index:04}-4000-8000-000000000000", &id[..8]));
        let words = "words ".repeat(40);
        let record =
            json!({"type": role, "uuid": uuid, "parentUuid": parent, "message": {"role": role, "content": words}});
        text.push_str(&format!("{record}\n"));
        parent = json!(uuid);
    }
    text
}

/// A backend knows itself once; it looks at the clock and the world each time.
fn ask(reader: &Reader<State>, own: &Holder, request: &Request) -> Receipt {
    let ledger = ledger::read(&**reader, request).expect("a sound log");
    preflight(&ledger, request, &mut RealView::new(clock::now_ms(), own.clone())).expect("a real disk always answers")
}

/// The system calls that the questions of a receipt come to, and nothing else.
#[expect(clippy::wildcard_enum_match_arm, reason = "questions of a later version have system calls of their own")]
fn bare(receipt: &Receipt, raw: &rusqlite::Connection) {
    for (question, _) in receipt.snapshot().iter() {
        match question {
            Question::Node { path, follow: true } | Question::AgeDays { path } => drop(fs::metadata(path)),
            Question::Node { path, follow: false } => drop(fs::symlink_metadata(path)),
            Question::RealPath { path } => drop(fs::canonicalize(path)),
            Question::SameFile { a, b } => drop((fs::metadata(a), fs::metadata(b))),
            Question::Names { dir, .. } | Question::Holders { dir, .. } | Question::Owners { dir, .. } => {
                drop(fs::read_dir(dir).map(|entries| entries.flatten().count()));
            }
            Question::Writable { path } => drop(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)),
            Question::Transcript { path, .. }
            | Question::Contains { path, .. }
            | Question::Identity { path, .. }
            | Question::Setting { path, .. }
            | Question::Marker { path } => drop(fs::read(path)),
            Question::Tail { path, upto } => {
                let mut bytes = Vec::new();
                let mut file = fs::File::open(path).expect("a file");
                file.seek(SeekFrom::Start(upto.saturating_sub(64 * 1024))).expect("a place");
                file.take(64 * 1024).read_to_end(&mut bytes).expect("bytes");
            }
            Question::Process(_) | Question::Worktrees { .. } => {}
            _ => unreachable!("a question without system calls: {question:?}"),
        }
    }
    for frontier in receipt.basis().streams.iter().flatten() {
        let mut statement = raw
            .prepare_cached(
                "SELECT e.version, e.stream_chain, m.state FROM streams s JOIN events e ON e.stream = s.id \
                 LEFT JOIN memos m ON m.stream = s.id WHERE s.name = ? ORDER BY e.version DESC LIMIT 1",
            )
            .expect("a query");
        let mut rows = statement.query([frontier.stream.to_string()]).expect("rows");
        std::hint::black_box(rows.next().expect("a row").is_some());
    }
}

pub(crate) fn files() {
    let own = process::own().expect("this process");
    for files in [100, 10_000] {
        let bench = Bench::new(files);
        let path = bench.log(1_000);
        let reader = Reader::<State>::open(&path).expect("a reader");
        let raw =
            rusqlite::Connection::open_with_flags(&path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("SQLite");
        let request = bench.request(true);
        let receipt = ask(&reader, &own, &request);
        assert_eq!(receipt.verdict().verdict, VerdictWord::Resume);
        let rounds = if files > 1_000 { 60 } else { 600 };
        let times = paired(rounds, || drop(ask(&reader, &own, &request)), || bare(&receipt, &raw));
        slower(&format!("preflight, {files} files, over its system calls"), times, "≤ 2× (stretch 1.3×)");
    }
}

pub(crate) fn growth() {
    let own = process::own().expect("this process");
    let bench = Bench::new(100);
    let request = bench.request(true);
    let (small, big) = (bench.log(1_000), bench.log(1_000_000));
    let (small, big) =
        (Reader::<State>::open(&small).expect("a reader"), Reader::<State>::open(&big).expect("a reader"));
    let times = paired(600, || drop(ask(&big, &own, &request)), || drop(ask(&small, &own, &request)));
    slower("preflight, 1 M events over 1 k events", times, "≤ 1.3× (stretch: flat)");
}

pub(crate) fn large() {
    let bench = Bench::new(1);
    let path = bench.project.join(format!("{ID}.jsonl"));
    let request = bench.request(false);
    let small = time(50, || drop(ask_disk(&request)));
    sparse(&path, 4 << 30);
    let times = (time(20, || drop(ask_disk(&request))), small, 0.0);
    alone("preflight on a 4 GB transcript", times.0, small, "tail and bounded windows");
    last_line(&path, 100 << 20);
    let took = time(5, || drop(ask_disk(&request)));
    alone("preflight on a 100 MB last line", took, small, "one record in memory");
}

fn alone(what: &str, ours: std::time::Duration, small: std::time::Duration, budget: &str) {
    let ratio = ours.as_secs_f64() / small.as_secs_f64();
    slower(what, (ours, small, ratio), budget);
}

fn ask_disk(request: &Request) -> Receipt {
    let own = process::own().expect("this process");
    let receipt = preflight(&throughline::chain::Ledger::default(), request, &mut RealView::new(clock::now_ms(), own))
        .expect("a real disk always answers");
    assert_eq!(receipt.verdict().verdict, VerdictWord::Resume, "{:?}", receipt.verdict());
    receipt
}

/// Turns at both ends and a hole between them: what is never read need not be written.
fn sparse(path: &Path, bytes: u64) {
    let mut file = fs::File::create(path).expect("a file");
    let turns = transcript(ID, 2_000);
    file.write_all(turns.as_bytes()).expect("turns");
    file.set_len(bytes).expect("a hole");
    file.seek(SeekFrom::End(0)).expect("the end");
    file.write_all(b"\n").expect("a newline");
    file.write_all(turns.as_bytes()).expect("turns");
}

fn last_line(path: &Path, bytes: usize) {
    let mut text = transcript(ID, 10);
    let last = json!({"type": "assistant", "uuid": "z", "parentUuid": format!("{}-0019-4000-8000-000000000000", &ID[..8]),
        "message": {"role": "assistant", "content": "x".repeat(bytes)}});
    text.push_str(&format!("{last}\n"));
    fs::write(path, text).expect("a file");
}
