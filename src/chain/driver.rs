//! Whether somebody drives an agent now. Pure over a view: one predicate for the preflight and for whoever takes a lease.
//!
//! A lease is held while its holder lives, **or** any process that was launched under it: a driver that was killed leaves a
//! child that writes on. What cannot be judged from here (another machine, another pid namespace, a hidden process table)
//! counts as living; but where the caller has the operating system's lock of the agent, a holder of the same boot that cannot
//! be judged is dead: it would have that lock itself.

use crate::chain::reconcile::process_of;
use crate::chain::state::AgentState;
use crate::event::Holder;
use crate::id::Epoch;
use crate::snapshot::{Ask, Life, Process, SnapshotError, View};

/// Who drives an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Driver {
    /// The caller.
    Ours,
    /// Nobody, and nobody's lease is left.
    Nobody,
    /// Nobody: the lease that is left is of a dead driver, and what it launched is dead too.
    Dead,
    /// Somebody.
    Held {
        /// Who, for people.
        why: String,
    },
}

/// Who drives the agent with this fold. `ours` is the lease that the caller says it holds; `locked` is the caller, where it
/// has the operating system's lock.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn driver(
    agent: &AgentState,
    ours: Option<Epoch>,
    locked: Option<&Holder>,
    view: &mut dyn View,
) -> Result<Driver, SnapshotError> {
    let is_ours = ours.is_some_and(|epoch| epoch == agent.lease.epoch && agent.lease.holder.is_some());
    if let Some(holder) = agent.lease.holder.as_ref().filter(|_| !is_ours) {
        let mut life = view.life(&process(holder))?;
        if life == Life::Unknown && locked.is_some_and(|own| own.boot == holder.boot) {
            life = Life::Dead;
        }
        if life != Life::Dead {
            let words = if life == Life::Alive { "lives" } else { "cannot be judged dead from here" };
            let why = format!("its holder, process {} on {}, {words}", holder.pid, holder.host);
            return Ok(Driver::Held { why });
        }
    }
    for process in agent.open.values().filter_map(process_of) {
        let life = view.life(&process)?;
        if life == Life::Alive || life == Life::Unknown && !is_ours {
            let why = format!("process {}, which a driver launched, still runs", process.pid);
            return Ok(Driver::Held { why });
        }
    }
    Ok(match (&agent.lease.holder, is_ours) {
        (_, true) => Driver::Ours,
        (Some(_), false) => Driver::Dead,
        (None, false) => Driver::Nobody,
    })
}

fn process(holder: &Holder) -> Process {
    Process {
        pid: holder.pid,
        started: Some(holder.started),
        host: Some(holder.host.clone()),
        boot: Some(holder.boot.clone()),
        pid_ns: Some(holder.pid_ns),
    }
}
