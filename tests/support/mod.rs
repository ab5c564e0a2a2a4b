//! Worlds on a real disk and chains from hand-written events: what the tests of decisions are told in.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use throughline::chain::observe::RealView;
use throughline::chain::state::AgentState;
use throughline::chain::{Ledger, Receipt, Request, preflight};
use throughline::event::{Event, Holder};
use throughline::id::{AgentId, Digest, ProviderName, StreamName};
use throughline::provider::ConfigDir;
use throughline::provider::claude::slug;

pub const A: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
pub const B: &str = "bbbbbbbb-0000-4000-8000-00000000000b";
pub const C: &str = "cccccccc-0000-4000-8000-00000000000c";

/// A folder with logins and working directories.
pub struct World {
    root: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let world = Self { root: tempfile::tempdir().expect("a temporary folder") };
        for dir in ["login", "work"] {
            std::fs::create_dir(world.path(dir)).expect("a folder");
        }
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().expect("the temporary folder").join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("a UTF-8 path").into()
    }

    /// The path of a session's file under a login and a working directory.
    pub fn file(&self, login: &str, cwd: &str, id: &str) -> PathBuf {
        self.path(login).join("projects").join(slug(&self.text(cwd))).join(format!("{id}.jsonl"))
    }

    pub fn write(&self, path: &Path, bytes: impl AsRef<[u8]>) -> String {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, bytes).expect("a file");
        path.to_str().expect("a UTF-8 path").into()
    }

    /// A complete session of so many turns, in the login's project folder of the working directory.
    pub fn session(&self, login: &str, cwd: &str, id: &str, turns: usize) -> String {
        self.write(&self.file(login, cwd, id), transcript(id, turns))
    }

    pub fn identity(&self, login: &str, account: &str) {
        let text = json!({"oauthAccount": {"accountUuid": account, "organizationUuid": "org"}}).to_string();
        self.write(&self.path(login).join(".claude.json"), text);
    }

    /// A request from `work` with the login `login`.
    pub fn request(&self, session: Option<&str>) -> Request {
        let provider = ProviderName::parse("claude").expect("a provider");
        let mut request = Request::new(provider, Some(ConfigDir::Named(self.text("login"))), self.text("work"));
        request.session = session.map(Into::into);
        request
    }

    /// The chain of one session after another, each confirmed by a segment of its own in `login` and `work`.
    pub fn chain(&self, sessions: &[&str]) -> Vec<(&'static str, Value)> {
        sessions.iter().flat_map(|session| self.segment(session, "login", "work", json!({}))).collect()
    }

    /// One segment that confirmed `session`; `more` goes into the place that the head moves to.
    pub fn segment(&self, session: &str, login: &str, cwd: &str, more: Value) -> Vec<(&'static str, Value)> {
        let (config_dir, cwd) = (self.text(login), self.text(cwd));
        let name = format!("seg-{session}");
        let mut to = json!({"session": session, "config_dir": config_dir, "cwd": cwd, "provider": "claude"});
        for (key, value) in more.as_object().into_iter().flatten() {
            to[key] = value.clone();
        }
        vec![
            (
                "spawned",
                json!({"segment": name, "cwd": cwd, "config_dir": config_dir, "provider": "claude", "how": "fresh"}),
            ),
            ("session_reported", json!({"segment": name, "session": session})),
            ("turn_confirmed", json!({"segment": name, "session": session})),
            ("chain_head_moved", json!({"segment": name, "to": to})),
            ("segment_ended", json!({"segment": name, "reason": "exited"})),
        ]
    }
}

/// Size and tail digest of a file, as an event carries them.
pub fn facts(path: &str) -> Value {
    let bytes = std::fs::read(path).expect("a readable file");
    let tail = &bytes[bytes.len().saturating_sub(64 * 1024)..];
    json!({"bytes": bytes.len(), "tail": Digest::plain(tail).to_string()})
}

/// A complete transcript of so many turns.
pub fn transcript(id: &str, turns: usize) -> String {
    let mut text = String::new();
    let mut parent = Value::Null;
    for turn in 0..turns {
        for role in ["user", "assistant"] {
            let uuid = format!("{}-{turn:04}-4000-8000-{:012}", &id[..8], usize::from(role == "user"));
            let record = json!({"type": role, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "sessionId": id,
                "message": {"role": role, "content": format!("turn {turn}")}});
            text.push_str(&format!("{record}\n"));
            parent = json!(uuid);
        }
    }
    text
}

/// The fold of hand-written events of agent `a`.
pub fn fold(events: &[(&str, Value)]) -> AgentState {
    let stream: StreamName = "agent/a".parse().expect("a stream");
    let mut state = AgentState::default();
    for (kind, body) in events {
        let event = match Event::decode(&stream, kind, 1, body.to_string().as_bytes()) {
            Ok(Event::Agent(event)) => state.complete(event),
            other => panic!("{kind}: {other:?}"),
        };
        state.apply(&event).unwrap_or_else(|illegal| panic!("{event:?}: {illegal}"));
    }
    state
}

/// The ledger of agent `a` after these events.
pub fn given(events: &[(&str, Value)]) -> Ledger {
    Ledger { streams: Some(Vec::new()), agent: Some(fold(events)), ..Ledger::default() }
}

pub fn own() -> Holder {
    throughline::world::process::own().expect("this process")
}

/// Asks the real disk.
pub fn ask(ledger: &Ledger, request: &Request) -> Receipt {
    let mut request = request.clone();
    if ledger.agent.is_some() {
        request.agent = Some(AgentId::parse("a").expect("an agent id"));
    }
    let mut view = RealView::new(throughline::world::clock::now_ms(), own());
    preflight(ledger, &request, &mut view).expect("a real disk always answers")
}
