//! What must hold after every end, whatever the order was and whatever broke.
//!
//! All actors are gone, and nobody interferes any more. Then each question of the scope is asked once more, and what the
//! answer says must be what a spawn does; what was ever proved must be in the history that the agent sends; nothing of the
//! protocols may be left on the disk; what was there at the beginning must be there as it was.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::chain::{Expected, ledger, preflight, reconcile};
use crate::id::StreamName;
use crate::log::{Log as _, Records as _};
use crate::sim::actors::spawned;
use crate::sim::ask::Ask;
use crate::sim::doors::StageLog;
use crate::sim::run::{Part, Run};
use crate::sim::scopes::{Allowed, Stated};
use crate::sim::setting::{original, transcript, turns};
use crate::sim::stage::{Ending, Hub, Stand};

/// The check of a scope's ends.
pub fn of(stated: &Stated) -> impl Fn(&mut Run) -> Result<(), String> + use<> {
    let (asks, allowed) = (stated.asks.clone(), stated.allowed);
    move |run| {
        originals(&run.hub.borrow(), allowed)?;
        heads(&run.hub.borrow(), allowed)?;
        // What a dead spawn of one agent left is in the way of another until its own next one.
        let mut waiting = Vec::new();
        for ask in &asks {
            if again(run, *ask, allowed)? == Next::Waits {
                waiting.push(*ask);
            }
        }
        for ask in &waiting {
            if again(run, *ask, allowed)? == Next::Waits {
                return Err(format!("agent {} waits for a copy that nobody makes", ask.agent));
            }
        }
        for ask in &asks {
            settled(&run.hub.borrow(), ask)?;
        }
        nothing_left(&run.hub.borrow(), allowed)?;
        nobody_elses(&run.hub.borrow(), allowed)?;
        originals(&run.hub.borrow(), allowed)
    }
}

/// What was there at the beginning is there: byte for byte, or with more at its end where it was continued.
fn originals(hub: &Hub, allowed: Allowed) -> Result<(), String> {
    match hub.disk.read(&original()) {
        Some(bytes) if bytes.starts_with(&transcript()) => Ok(()),
        // An agent that had it open writes on, into a new file.
        Some(_) if allowed.deleted => Ok(()),
        Some(_) => Err("the original was changed".into()),
        None if allowed.deleted => Ok(()),
        None => Err("the original is gone".into()),
    }
}

/// What somebody else wrote is somewhere.
fn nobody_elses(hub: &Hub, allowed: Allowed) -> Result<(), String> {
    if allowed.deleted {
        return Ok(());
    }
    let is_in = |text: &str, path: &str| {
        hub.disk.read(path).is_some_and(|bytes| String::from_utf8_lossy(&bytes).contains(text))
    };
    match hub.outside.iter().find(|text| !hub.disk.paths().any(|path| is_in(text, path))) {
        Some(text) => Err(format!("what somebody else wrote is gone: {text:?}")),
        None => Ok(()),
    }
}

/// Every head is a place that was confirmed, and its file is there.
fn heads(hub: &Hub, allowed: Allowed) -> Result<(), String> {
    for frontier in hub.log.streams().map_err(|error| error.to_string())? {
        if !matches!(frontier.stream, StreamName::Agent(_)) {
            continue;
        }
        let (_, state) = hub.log.state(&frontier.stream).map_err(|error| error.to_string())?;
        let Some(head) = state.agent().and_then(|agent| agent.head) else { continue };
        let path = head.at.path.as_ref().map(|path| path.as_str().to_owned()).unwrap_or_default();
        let is_deleted = allowed.deleted && path == original();
        if hub.disk.read(&path).is_none() && !is_deleted {
            return Err(format!("the head of {} is at {path:?}, and nothing is there", frontier.stream));
        }
    }
    Ok(())
}

/// What became of the next spawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// It did what was foretold.
    Went,
    /// It was told to wait until another agent's copy is settled.
    Waits,
}

/// Asks once more, and spawns with the answer: agreement, and nothing lost.
fn again(run: &mut Run, ask: Ask, allowed: Allowed) -> Result<Next, String> {
    let told: Rc<RefCell<Option<(Expected, Ending)>>> = Rc::default();
    let keep = Rc::clone(&told);
    let body = Rc::new(move |stand: &mut Stand<'_>| {
        let Ok(mut request) = ask.request() else { return 2 };
        let log = StageLog::new(stand.clone());
        let Ok(ledger) = ledger::read(log.records(), &request) else { return 2 };
        if request.session.is_none() {
            // The pane holds what it was told last: where the conversation is.
            let Ok(now) = reconcile::virtually(&ledger, &request, &mut stand.clone()) else { return 2 };
            let head = now.agent.as_ref().and_then(|agent| agent.head.as_ref());
            request.session = head.map(|head| head.at.session.as_str().to_owned());
        }
        let Ok(receipt) = preflight(&ledger, &request, &mut stand.clone()) else { return 2 };
        let expected = Expected::from(&receipt);
        let ending = spawned(stand, &request, ask.tells, Some(&expected));
        *keep.borrow_mut() = Some((expected, ending));
        0
    });
    let first = run.hub.borrow().processes.len();
    run.enter(&Part { name: "the next spawn", body, is_mortal: false });
    run.finish()?;
    let Some((expected, ending)) = told.borrow_mut().take() else { return Err("the next spawn did not answer".into()) };
    if allowed.taken && is_taken(&expected, &ending) {
        return Ok(Next::Went);
    }
    if expected.verdict.findings.iter().any(|it| it.code == "copy_in_flight") && matches!(ending, Ending::Busy(_)) {
        return Ok(Next::Waits);
    }
    agrees(&expected, &ending)?;
    let hub = run.hub.borrow();
    let sent = hub.processes.iter().skip(first).rfind(|process| !process.sent.is_empty());
    let sent = sent.map(|process| process.sent.clone()).unwrap_or_default();
    let is_whole = hub.disk.read(&original()).is_some_and(|bytes| bytes.starts_with(&transcript()));
    if allowed.deleted && !is_whole {
        return Ok(Next::Went);
    }
    if ask.is_foreign {
        let crossed = sent.iter().any(|turn| turns().contains(turn));
        return if crossed { Err("a conversation was continued by another identity".into()) } else { Ok(Next::Went) };
    }
    match lost(&hub, ask, allowed, &sent) {
        Some(turn) => {
            let word = expected.verdict.verdict;
            Err(format!("agent {} lost {turn:?}: the next spawn ({word}) sent {sent:?}", ask.agent))
        }
        None => Ok(Next::Went),
    }
}

/// Foreseen, said, and nothing was started.
fn is_taken(expected: &Expected, ending: &Ending) -> bool {
    let says = expected.verdict.findings.iter().any(|it| it.code == "destination_taken");
    says && matches!(ending, Ending::Unknown(_))
}

/// What the preflight said is what the spawn did.
fn agrees(expected: &Expected, ending: &Ending) -> Result<(), String> {
    let word = expected.verdict.verdict;
    if let Ending::Spawned { expected: planned, actual, attempts: 1, drift: None, unrecorded: None } = ending {
        let is_same = planned == actual && *planned == word;
        return if is_same { Ok(()) } else { Err(format!("foretold {word}, planned {planned}, and it was {actual}")) };
    }
    Err(format!("foretold {word} ({}), and it was {ending:?}", words(expected)))
}

fn words(expected: &Expected) -> String {
    let findings = expected.verdict.findings.iter().map(|finding| format!("{}: {}", finding.code, finding.detail));
    findings.collect::<Vec<_>>().join("; ")
}

/// A turn that was proved, or was there at the beginning, and is not in what was sent.
fn lost(hub: &Hub, ask: Ask, allowed: Allowed, sent: &[String]) -> Option<String> {
    let first = if ask.has_history() { turns() } else { Vec::new() };
    let is_proved = |(whose, _): &&(String, String)| whose == ask.agent && !allowed.branch;
    let proved = hub.confirmed.iter().filter(is_proved).map(|(_, turn)| turn.clone());
    first.into_iter().chain(proved).find(|turn| !sent.contains(turn))
}

/// Nothing is under way any more, and the log's fold says so.
fn settled(hub: &Hub, ask: &Ask) -> Result<(), String> {
    let stream: StreamName = format!("agent/{}", ask.agent).parse().map_err(|_| "no stream".to_owned())?;
    let (_, state) = hub.log.state(&stream).map_err(|error| error.to_string())?;
    let agent = state.agent().unwrap_or_default();
    if !agent.open.is_empty() || !agent.copies.is_empty() || agent.sweeping.is_some() || agent.lease.holder.is_some() {
        return Err(format!("something of agent {} is still under way: {agent:?}", ask.agent));
    }
    let verified = hub.log.verify(None, &mut |_| {}).map_err(|error| error.to_string())?;
    verified.problems.first().map_or(Ok(()), |problem| Err(format!("the log does not hold: {problem}")))
}

/// No marker, no half copy, no second file of one id in a login.
fn nothing_left(hub: &Hub, allowed: Allowed) -> Result<(), String> {
    let mut ids: BTreeMap<(String, String), usize> = BTreeMap::new();
    for path in hub.disk.paths() {
        if path.contains(".throughline-") {
            return Err(format!("{path} was left behind"));
        }
        if let Some((dir, name)) = path.rsplit_once('/').filter(|(_, name)| name.ends_with(".jsonl")) {
            let login = dir.split("/projects").next().unwrap_or_default().to_owned();
            *ids.entry((login, name.to_owned())).or_default() += 1;
        }
    }
    match ids.iter().find(|(_, count)| **count > 1) {
        Some(_) if allowed.twin => Ok(()),
        Some(((login, name), _)) => Err(format!("{name} is there twice in {login}")),
        None => Ok(()),
    }
}
