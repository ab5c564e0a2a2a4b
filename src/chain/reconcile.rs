//! What became of segments whose driver is gone: the events that nobody was there to append. Pure over a view.
//!
//! A driver can die at any moment; its child may write on, and ends some time. The next one to look finds an open segment.
//! It is over when its process is; and where we had chosen the id of its new session, that session's file proves what the
//! process did, as a result would have: nobody else was told that id. So these events follow from the log and the disk
//! alone. A reader folds them virtually ([`virtually`]), the next driver appends them: one function, so that both decide on
//! the same state.
//!
//! What was resumed under an id that others know proves nothing here: who wrote into that file cannot be told.

use std::borrow::Cow;

use crate::chain::place::facts;
use crate::chain::request::{Ledger, Request};
use crate::chain::state::{AgentState, Segment};
use crate::event::{AgentEvent, ChainHeadMoved, FileFacts, Location, SegmentEnded, TurnConfirmed};
use crate::id::{Epoch, PathText, SessionId};
use crate::provider::{ConfigDir, Outcome, Place, Provider};
use crate::snapshot::{Ask, Life, Process, Seen, SnapshotError, View};

/// The process of a segment, as the process table is asked for it. Nothing where none was launched: then it never ran.
#[must_use]
pub fn process_of(segment: &Segment) -> Option<Process> {
    let (pid, started) = segment.process?;
    // Its pid means something only where it was launched, whoever holds the lease now.
    let launcher = segment.launcher.as_ref();
    Some(Process {
        pid,
        started: Some(started),
        host: launcher.map(|launcher| launcher.host.clone()),
        boot: launcher.map(|launcher| launcher.boot.clone()),
        pid_ns: launcher.map(|launcher| launcher.pid_ns),
    })
}

/// The ledger as it will be once the next driver has reconciled it. Where a process may live, its segment stays open.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn virtually<'l>(
    ledger: &'l Ledger,
    request: &Request,
    view: &mut dyn View,
) -> Result<Cow<'l, Ledger>, SnapshotError> {
    let Some(agent) = ledger.agent.as_ref().filter(|agent| !agent.open.is_empty()) else {
        return Ok(Cow::Borrowed(ledger));
    };
    let mut state = agent.clone();
    for event in pending(agent, request, agent.lease.epoch, view)? {
        // They were made for this very state: one that it refuses would be refused by the log as well.
        if state.apply(&event).is_err() {
            break;
        }
    }
    let mut ledger = ledger.clone();
    ledger.agent = Some(state);
    Ok(Cow::Owned(ledger))
}

/// The events that are missing, in order, under this lease.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn pending(
    agent: &AgentState,
    request: &Request,
    epoch: Epoch,
    view: &mut dyn View,
) -> Result<Vec<AgentEvent>, SnapshotError> {
    let mut events = Vec::new();
    let mut head = agent.head.as_ref().map(|head| head.at.origin());
    for (id, segment) in &agent.open {
        if let Some(process) = process_of(segment)
            && view.life(&process)? != Life::Dead
        {
            continue;
        }
        let proved = match request.rules.find(segment.provider.family(), request.provider_version.as_deref()) {
            Some(rules) => proof(agent, segment, rules, request, view)?,
            None => None,
        };
        let file = proved.as_ref().and_then(|at| at.file.clone());
        if let Some(to) = proved {
            let (segment, session, file) = (id.clone(), to.session.clone(), file.clone());
            events.push(AgentEvent::TurnConfirmed(TurnConfirmed { segment, session, file, epoch }));
            let from = head.replace(to.origin());
            events.push(AgentEvent::ChainHeadMoved(ChainHeadMoved { from, to, segment: Some(id.clone()), epoch }));
        }
        let reason = "lost".to_owned();
        events.push(AgentEvent::SegmentEnded(SegmentEnded { segment: id.clone(), reason, code: None, file, epoch }));
    }
    Ok(events)
}

/// Where the file of a chosen id proves that the segment's process had a turn in it: it holds an answered turn, and more
/// turns than the session that it was forked from.
fn proof(
    agent: &AgentState,
    segment: &Segment,
    rules: &dyn Provider,
    request: &Request,
    view: &mut dyn View,
) -> Result<Option<Location>, SnapshotError> {
    let Some(session) = segment.minted.as_ref().filter(|minted| !segment.confirmed.contains_key(*minted)) else {
        return Ok(None);
    };
    let place =
        Place { config_dir: ConfigDir::Named(segment.config_dir.as_str().into()), cwd: segment.cwd.as_str().into() };
    let Seen::Is(path) = rules.path_of(view, &place, session.as_str())? else { return Ok(None) };
    let found = rules.lookup_path(view, &path, request.depth)?;
    let (Outcome::Continues, Some(transcript)) = (found.outcome, found.transcript) else { return Ok(None) };
    if transcript.unanswered {
        return Ok(None);
    }
    if let Some(source) = &segment.session {
        let Some(turns) = turns_of(agent, source, rules, request, view)? else { return Ok(None) };
        if transcript.reached <= turns {
            return Ok(None);
        }
    }
    let Some(file) = facts(view, &path)? else { return Ok(None) };
    Ok(location(segment, session, &path, file))
}

/// How many turns of a known session its file reaches.
fn turns_of(
    agent: &AgentState,
    session: &SessionId,
    rules: &dyn Provider,
    request: &Request,
    view: &mut dyn View,
) -> Result<Option<u64>, SnapshotError> {
    let Some(path) = agent.sessions.get(session).and_then(|placed| placed.at.path.clone()) else { return Ok(None) };
    let source = rules.lookup_path(view, path.as_str(), request.depth)?;
    Ok(source.transcript.map(|transcript| transcript.reached))
}

fn location(segment: &Segment, session: &SessionId, path: &str, file: FileFacts) -> Option<Location> {
    Some(Location {
        session: session.clone(),
        config_dir: segment.config_dir.clone(),
        identity: segment.identity.clone(),
        provider: segment.provider.clone(),
        cwd: segment.cwd.clone(),
        path: Some(PathText::parse(path).ok()?),
        file: Some(file),
    })
}
