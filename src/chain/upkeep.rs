//! What can be done for an agent without spawning it: say what its dead drivers did not live to say, and remove what they
//! left. Both happen under its lease, and both are what its next spawn would do first.

use crate::chain::actor::Actor;
use crate::chain::lease::{self, LeaseError};
use crate::chain::leftovers::{self, SweepReport};
use crate::chain::request::{Ledger, Request};
use crate::chain::state::AgentState;
use crate::chain::{reconcile, sweep};
use crate::event::AgentEvent;
use crate::id::AgentId;
use crate::snapshot::{Seen, SnapshotError, View};

/// What upkeep would do, or did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Upkeep {
    /// The events that are missing from the log.
    pub unsaid: Vec<AgentEvent>,
    /// The copies that go.
    pub removes: Vec<String>,
    /// The copies that stay, and only lose their marker or their place in the log.
    pub keeps: Vec<String>,
    /// What cannot be judged now, and why.
    pub unreadable: Option<String>,
}

/// What upkeep would do now. Changes nothing.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn plan(uid: &AgentId, request: &Request, ledger: &Ledger, view: &mut dyn View) -> Result<Upkeep, SnapshotError> {
    let agent = ledger.agent.clone().unwrap_or_default();
    let mut upkeep =
        Upkeep { unsaid: reconcile::pending(&agent, request, agent.lease.epoch, view)?, ..Upkeep::default() };
    let state = after(&agent, &upkeep.unsaid);
    match sweep::removable(uid, &state, view)? {
        Seen::Is(paths) => upkeep.removes = paths.into_iter().collect(),
        Seen::Absent => {}
        Seen::Unreadable(why) => upkeep.unreadable = Some(why),
    }
    let paths = state.copies.values().map(|copy| copy.destination.as_str().to_owned());
    upkeep.keeps = paths.filter(|path| !upkeep.removes.contains(path)).collect();
    Ok(upkeep)
}

fn after(agent: &AgentState, events: &[AgentEvent]) -> AgentState {
    let mut state = agent.clone();
    // They were made for this very state.
    for event in events {
        if state.apply(event).is_err() {
            break;
        }
    }
    state
}

/// Takes the agent's lease, says what is unsaid, removes what can go, and gives the lease back.
///
/// # Errors
///
/// [`LeaseError`]: somebody drives the agent, or the world or the log failed. What was done is done and is in the log.
///
/// # Crash
///
/// Twice is once: the next one goes on.
pub fn keep(actor: &mut Actor<'_>, uid: &AgentId, request: &Request) -> Result<SweepReport, LeaseError> {
    let taken = lease::take(actor, uid, request, None)?;
    let agent = taken.ledger.agent.clone().unwrap_or_default();
    let swept = leftovers::sweep(actor, &taken.driven, &agent);
    let released = lease::release(actor, &taken, Vec::new());
    let report = swept?;
    released?;
    Ok(report)
}

/// Whether an agent has anything that upkeep could be for.
#[must_use]
pub fn is_needed(agent: &AgentState) -> bool {
    !agent.open.is_empty() || agent.sweeping.is_some() || !agent.copies.is_empty()
}
