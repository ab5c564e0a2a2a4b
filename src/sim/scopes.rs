//! The stated scopes: which actors meet, in which world, and what may go wrong.

use std::rc::Rc;

use serde_json::json;

use crate::chain::actor::Actor;
use crate::chain::request::Request;
use crate::chain::spawn::{SpawnAsk, spawn};
use crate::event::{Event, Means, canonical};
use crate::id::{AgentId, Digest, ProviderName, StreamName};
use crate::log::{Append, Entry, Expectation, Log as _};
use crate::provider::ConfigDir;
use crate::sim::doors::StageLog;
use crate::sim::run::{Body, Budget, Part, Scope};
use crate::sim::stage::{Ending, Hub, Stand};

/// The session that is there at the beginning.
pub const SESSION: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
/// The working directory.
pub const CWD: &str = "/w";
/// The login in which the conversation begins.
pub const LOGIN: &str = "/c1";
/// Another login of the same identity.
pub const OTHER: &str = "/c2";

/// A question that an actor of a scope asks.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Whose conversation.
    pub agent: &'static str,
    /// In which login.
    pub login: &'static str,
    /// Which way, where there are several.
    pub means: Option<Means>,
    /// Whether the agent says on stdout what it does.
    pub tells: bool,
}

impl Ask {
    const fn new(agent: &'static str, login: &'static str) -> Self {
        Self { agent, login, means: None, tells: true }
    }

    const fn by(self, means: Means) -> Self {
        Self { means: Some(means), ..self }
    }

    /// The request, holding the session that was there at the beginning.
    ///
    /// # Errors
    ///
    /// Never, for the names of the scopes.
    pub fn request(&self) -> Result<Request, crate::id::IdError> {
        let provider = ProviderName::parse("claude")?;
        let mut request = Request::new(provider, Some(ConfigDir::Named(self.login.into())), CWD);
        request.agent = Some(AgentId::parse(self.agent)?);
        request.session = Some(SESSION.into());
        request.means = self.means;
        Ok(request)
    }
}

/// A scope with the questions that are asked at its end.
#[derive(Clone, Debug)]
pub struct Stated {
    /// What is explored.
    pub scope: Scope,
    /// The questions.
    pub asks: Vec<Ask>,
}

/// A spawn as an actor.
#[must_use]
pub fn spawner(ask: Ask) -> Body {
    Rc::new(move |stand: &mut Stand<'_>| {
        let Ok(request) = ask.request() else { return 2 };
        let ending = spawned(stand, &request, ask.tells, None);
        let code = i32::from(!matches!(ending, Ending::Spawned { .. }));
        stand.note(ending);
        code
    })
}

/// Spawns, and says what came of it.
pub(super) fn spawned(
    stand: &Stand<'_>,
    request: &Request,
    tells: bool,
    receipt: Option<&crate::chain::Expected>,
) -> Ending {
    let log = StageLog::new(stand.clone());
    let (mut doors, mut view) = (stand.clone(), stand.clone());
    let mut actor = Actor { view: &mut view, doors: &mut doors, log: &log };
    let words: &[&str] = if tells { &["claude", "-p", "x", "--output-format", "stream-json"] } else { &["claude"] };
    let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let ask =
        SpawnAsk { request, receipt, command: &command, anyway: false, falls_through: receipt.is_none(), pane: None };
    match spawn(&mut actor, &ask) {
        Ok(outcome) => match outcome.attempts.last() {
            Some(last) => Ending::Spawned {
                expected: last.expected.verdict,
                actual: last.actual,
                attempts: outcome.attempts.len(),
                drift: last.heard.drift.clone(),
                unrecorded: last.heard.unrecorded.clone(),
            },
            None => Ending::Failed("nothing was launched".into()),
        },
        Err(error) => Ending::of(&error),
    }
}

fn part(name: &'static str, body: Body) -> Part {
    Part { name, body, is_mortal: true }
}

/// A conversation of two turns.
#[must_use]
pub fn transcript() -> Vec<u8> {
    let mut text = String::new();
    let mut parent = serde_json::Value::Null;
    for turn in 0..2 {
        for role in ["user", "assistant"] {
            let uuid = format!("{turn}-{role}");
            let message = json!({"role": role, "content": format!("{role} {turn}")});
            let record = json!({"type": role, "uuid": uuid, "parentUuid": parent, "message": message});
            text.push_str(&format!("{record}\n"));
            parent = json!(uuid);
        }
    }
    text.into_bytes()
}

/// The file of the first session.
#[must_use]
pub fn original() -> String {
    format!("{LOGIN}/projects/-w/{SESSION}.jsonl")
}

/// Two logins of one identity, a working directory, and a conversation in the first that both agents' logs know.
fn one_conversation(hub: &mut Hub) -> Result<(), String> {
    let put =
        |hub: &mut Hub, path: &str, bytes: &[u8]| hub.disk.put(path, bytes).map_err(|why| format!("{path}: {why:?}"));
    hub.disk.make_dir(CWD).map_err(|why| format!("{why:?}"))?;
    for login in [LOGIN, OTHER] {
        hub.disk.make_dir(&format!("{login}/projects")).map_err(|why| format!("{why:?}"))?;
        let account = br#"{"oauthAccount":{"accountUuid":"one","organizationUuid":"org"}}"#;
        put(hub, &format!("{login}/.claude.json"), account)?;
    }
    put(hub, &original(), &transcript())?;
    ["a", "b"].iter().try_for_each(|agent| confirm(hub, agent).map_err(|error| error.to_string()))
}

/// Events by which the conversation became this agent's.
fn confirm(hub: &Hub, agent: &str) -> Result<(), Box<dyn std::error::Error>> {
    let segment = format!("segment-{agent}-0");
    let bytes = transcript();
    let file = json!({"bytes": bytes.len(), "tail": Digest::plain(&bytes).to_string()});
    let place = json!({"session": SESSION, "config_dir": LOGIN, "cwd": CWD, "provider": "claude", "path": original(),
        "file": file});
    let stream: StreamName = format!("agent/{agent}").parse()?;
    let mut events = Vec::new();
    for (kind, body) in [
        ("agent_declared", json!({"provider": "claude"})),
        ("spawned", json!({"segment": segment, "cwd": CWD, "config_dir": LOGIN, "provider": "claude", "how": "fresh"})),
        ("session_reported", json!({"segment": segment, "session": SESSION})),
        ("turn_confirmed", json!({"segment": segment, "session": SESSION, "file": file})),
        ("chain_head_moved", json!({"segment": segment, "to": place})),
        ("segment_ended", json!({"segment": segment, "reason": "exited", "code": 0})),
    ] {
        events.push(Event::decode(&stream, kind, 1, &canonical::write(&body)?)?);
    }
    hub.log.append(&[Entry { stream, expected: Expectation::Any, events }], &Append::at(0))?;
    Ok(())
}

/// Every scope, in the order in which they are explored.
#[must_use]
pub fn all() -> Vec<Stated> {
    let every = Budget { crashes: 1, faults: 1, cuts: 1 };
    let deaths = Budget { crashes: 1, faults: 0, cuts: 0 };
    let here = Ask::new("a", LOGIN);
    let path = Ask::new("a", OTHER).by(Means::ByPath);
    let copy = Ask::new("a", OTHER).by(Means::ByCopy);
    let other_copy = Ask::new("b", OTHER).by(Means::ByCopy);
    let quiet = Ask { tells: false, ..here };
    let scope = |name, story, parts: Vec<Part>, budget| Scope { name, story, setup: one_conversation, parts, budget };
    let spawns = |asks: &[Ask]| asks.iter().map(|ask| part("spawn", spawner(*ask))).collect::<Vec<_>>();
    let stated =
        |name, story, asks: Vec<Ask>, budget| Stated { scope: scope(name, story, spawns(&asks), budget), asks };
    vec![
        stated("in_place", "one spawn that resumes in place; anything breaks anywhere", vec![here], every),
        stated("in_place_quiet", "the same, of an agent that says nothing on stdout", vec![quiet], deaths),
        stated("by_path", "one spawn that forks a file of another login", vec![path], every),
        stated("by_copy", "one spawn that forks a copy", vec![copy], every),
        stated("two_spawns", "two spawns of one agent", vec![here, here], deaths),
        stated("two_copies", "two spawns of one agent by a copy", vec![copy, copy], deaths),
        stated("two_agents", "two agents, one source, one destination", vec![copy, other_copy], Budget::default()),
    ]
}
