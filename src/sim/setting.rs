//! The world in which every scope begins: two logins of one identity, a working directory, one conversation.

use serde_json::json;

use crate::chain::names::{MARKER_SCHEMA, MarkerFile, names};
use crate::event::{Event, canonical};
use crate::id::{AgentId, StoreId, Token};
use crate::id::{Digest, StreamName};
use crate::log::{Append, Entry, Expectation, Log as _};
use crate::sim::stage::Hub;

/// The session that is there at the beginning.
pub const SESSION: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
/// The working directory.
pub const CWD: &str = "/w";
/// The login in which the conversation begins.
pub const LOGIN: &str = "/c1";
/// Another login of the same identity.
pub const OTHER: &str = "/c2";
/// The login of another identity.
pub const FOREIGN: &str = "/c3";

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

/// The turns of it, as a model would get them.
#[must_use]
pub fn turns() -> Vec<String> {
    (0..2).flat_map(|turn| [format!("user {turn}"), format!("assistant {turn}")]).collect()
}

/// The file of the first session.
#[must_use]
pub fn original() -> String {
    file_in(LOGIN)
}

/// Where that session's file would be in a login.
#[must_use]
pub fn file_in(login: &str) -> String {
    format!("{login}/projects/-w/{SESSION}.jsonl")
}

/// Two logins of one identity, a working directory, and a conversation in the first that both agents' logs know.
pub(super) fn one_conversation(hub: &mut Hub) -> Result<(), String> {
    let put =
        |hub: &mut Hub, path: &str, bytes: &[u8]| hub.disk.put(path, bytes).map_err(|why| format!("{path}: {why:?}"));
    hub.disk.make_dir(CWD).map_err(|why| format!("{why:?}"))?;
    for (login, account) in [(LOGIN, "one"), (OTHER, "one"), (FOREIGN, "two")] {
        hub.disk.make_dir(&format!("{login}/projects")).map_err(|why| format!("{why:?}"))?;
        let account = json!({"oauthAccount": {"accountUuid": account, "organizationUuid": "org"}}).to_string();
        put(hub, &format!("{login}/.claude.json"), account.as_bytes())?;
    }
    put(hub, &original(), &transcript())?;
    ["a", "b", "d"].iter().try_for_each(|agent| confirm(hub, agent).map_err(|error| error.to_string()))
}

/// Events by which the conversation became this agent's.
fn confirm(hub: &Hub, agent: &str) -> Result<(), Box<dyn std::error::Error>> {
    let segment = format!("segment-{agent}-0");
    let bytes = transcript();
    let file = json!({"bytes": bytes.len(), "tail": Digest::plain(&bytes).to_string()});
    let place = json!({"session": SESSION, "config_dir": LOGIN, "cwd": CWD, "provider": "claude", "path": original(),
        "file": file});
    let events = [
        ("agent_declared", json!({"provider": "claude"})),
        ("spawned", json!({"segment": segment, "cwd": CWD, "config_dir": LOGIN, "provider": "claude", "how": "fresh"})),
        ("session_reported", json!({"segment": segment, "session": SESSION})),
        ("turn_confirmed", json!({"segment": segment, "session": SESSION, "file": file})),
        ("chain_head_moved", json!({"segment": segment, "to": place})),
        ("segment_ended", json!({"segment": segment, "reason": "exited", "code": 0})),
    ];
    append(hub, agent, &events)
}

fn append(hub: &Hub, agent: &str, events: &[(&str, serde_json::Value)]) -> Result<(), Box<dyn std::error::Error>> {
    let stream: StreamName = format!("agent/{agent}").parse()?;
    let mut decoded = Vec::new();
    for (kind, body) in events {
        decoded.push(Event::decode(&stream, kind, 1, &canonical::write(body)?)?);
    }
    hub.log.append(&[Entry { stream, expected: Expectation::Any, events: decoded }], &Append::at(0))?;
    Ok(())
}

/// A copy of that conversation in the other login whose driver has decided to remove it, and then lost its lease.
pub(super) fn settling_copy(hub: &mut Hub, agent: &str, token: &str) -> Result<(), String> {
    settled_so_far(hub, agent, token).map_err(|error| error.to_string())
}

fn settled_so_far(hub: &mut Hub, agent: &str, token: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (uid, token) = (AgentId::parse(agent)?, Token::parse(token)?);
    let destination = file_in(OTHER);
    let names = names(&destination, &uid, &token);
    let bytes = transcript();
    let digest = Digest::plain(&bytes);
    let marker = MarkerFile {
        schema: MARKER_SCHEMA,
        owner_uid: agent.into(),
        source: original(),
        bytes: Some(bytes.len() as u64),
        digest: Some(digest),
        token: Some(token.as_str().into()),
        store: Some(StoreId(uuid::Uuid::nil())),
    };
    hub.disk.put(&destination, &bytes).map_err(|why| format!("{why:?}"))?;
    hub.disk.put(&names.marker, &serde_json::to_vec(&marker)?).map_err(|why| format!("{why:?}"))?;
    let file = json!({"bytes": bytes.len(), "tail": digest.to_string(), "whole": digest.to_string()});
    let holder = json!({"host": "h", "boot": "boot-0", "pid": 1, "started": 1, "pid_ns": 1});
    let intended = json!({"token": token, "session": SESSION, "source": original(), "destination": destination,
        "marker": names.marker, "file": file, "epoch": 1});
    let events = [
        ("lease_taken", json!({"epoch": 1, "holder": holder})),
        ("relocation_intended", intended),
        ("relocated", json!({"token": token, "file": file, "epoch": 1})),
        ("settle_intended", json!({"token": token, "how": "remove", "epoch": 1})),
        ("lease_ended", json!({"epoch": 1, "how": "taken over"})),
    ];
    append(hub, agent, &events)
}
