//! What the actors of the scopes do: spawn, sweep, settle late, and interfere.

use std::rc::Rc;

use serde_json::json;

use crate::chain::actor::{Actor, Driven};
use crate::chain::lease::LeaseError;
use crate::chain::request::Request;
use crate::chain::spawn::{SpawnAsk, spawn};
use crate::chain::{Expected, leftovers, upkeep};
use crate::id::{AgentId, Epoch, StreamName, Token};
use crate::log::Log as _;
use crate::sim::agent::Machine as _;
use crate::sim::ask::Ask;
use crate::sim::doors::{StageLog, act, look, refused};
use crate::sim::run::Body;
use crate::sim::setting::transcript;
use crate::sim::stage::{Ending, Stand};

/// A spawn.
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
pub(super) fn spawned(stand: &Stand<'_>, request: &Request, tells: bool, receipt: Option<&Expected>) -> Ending {
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

/// A sweep of an agent's leftovers.
#[must_use]
pub fn keeper(ask: Ask) -> Body {
    Rc::new(move |stand: &mut Stand<'_>| {
        let (Ok(request), Ok(uid)) = (ask.request(), AgentId::parse(ask.agent)) else { return 2 };
        let log = StageLog::new(stand.clone());
        let (mut doors, mut view) = (stand.clone(), stand.clone());
        let mut actor = Actor { view: &mut view, doors: &mut doors, log: &log };
        match upkeep::keep(&mut actor, &uid, &request) {
            Ok(_) => 0,
            Err(LeaseError::Held { .. }) => 12,
            Err(_) => 1,
        }
    })
}

/// A driver that has decided to remove its copy under a lease that is over by now.
#[must_use]
pub fn late(uid: &'static str, token: &'static str, epoch: u64) -> Body {
    Rc::new(move |stand: &mut Stand<'_>| {
        let (Ok(uid), Ok(token)) = (AgentId::parse(uid), Token::parse(token)) else { return 2 };
        let log = StageLog::new(stand.clone());
        let Ok((_, state)) = log.records().state(&StreamName::Agent(uid.clone())) else { return 2 };
        let (mut doors, mut view) = (stand.clone(), stand.clone());
        let mut actor = Actor { view: &mut view, doors: &mut doors, log: &log };
        let driven = Driven { uid, epoch: Epoch(epoch) };
        // That it is refused is what is wanted.
        i32::from(leftovers::settle(&mut actor, &driven, &state.agent().unwrap_or_default(), &token).is_err())
    })
}

/// Somebody who appends a turn to a file that is there, in two pieces; who looks for it so often.
#[must_use]
pub fn writer(path: String, looks: usize) -> Body {
    Rc::new(move |stand: &mut Stand<'_>| {
        for _ in 1..looks {
            match stand.at(look("outside looks", &path), |hub| Ok(hub.disk.node(&path).is_some())) {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => return 1,
            }
        }
        let turn = stand.turn();
        let message = json!({"role": "user", "content": format!("outside {turn}")});
        let record = json!({"type": "user", "uuid": turn, "parentUuid": "1-assistant", "message": message});
        let line = format!("{record}\n").into_bytes();
        let (first, second) = line.split_at(line.len() / 2);
        for piece in [first, second] {
            let wrote = stand.at(act("outside writes", &path), |hub| {
                let why = |why| refused("outside writes", &path, why);
                hub.disk.append(&path, piece).map_err(why)?;
                hub.disk.sync(&path).map_err(why)
            });
            if wrote.is_err() {
                return 1;
            }
        }
        stand.hub.borrow_mut().outside.insert(format!("outside {turn}"));
        0
    })
}

/// Somebody who makes a file of the same id.
#[must_use]
pub fn twin(path: String) -> Body {
    Rc::new(move |stand: &mut Stand<'_>| {
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned();
        let made = stand.at(act("outside makes", &path), |hub| {
            let why = |why| refused("outside makes", &path, why);
            hub.disk.make_dir(&dir).map_err(why)?;
            hub.disk.create(&path).map_err(why)?;
            hub.disk.append(&path, &transcript()).map_err(why)?;
            hub.disk.append(&path, b"{\"type\":\"outside twin\"}\n").map_err(why)?;
            hub.disk.sync(&path).map_err(why)?;
            hub.disk.sync_dir(&dir).map_err(why)?;
            hub.outside.insert("outside twin".into());
            Ok(())
        });
        i32::from(made.is_err())
    })
}

/// The agent's own clean-up: it deletes what nobody changed for long.
#[must_use]
pub fn cleaner(path: String) -> Body {
    Rc::new(move |stand: &mut Stand<'_>| {
        let gone = stand.at(act("clean-up removes", &path), |hub| {
            let why = |why| refused("clean-up removes", &path, why);
            hub.disk.remove(&path).map_err(why)?;
            hub.disk.sync_dir(path.rsplit_once('/').map_or("", |(dir, _)| dir)).map_err(why)
        });
        i32::from(gone.is_err())
    })
}
