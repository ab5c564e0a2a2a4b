//! Taking and giving back an agent's lease: the only way to become its driver.
//!
//! First the operating system's lock, which ends with the process whatever ends it, then the event. The event is appended on
//! the condition that nothing has happened since the caller looked ([`Expected`]'s frontiers): that compare-and-set is the
//! check of the log. In the same append go the events that the last driver did not live to write
//! ([`reconcile`]). Living drivers are never pushed aside, whatever any clock says.

use crate::chain::actor::{ActError, Actor, Driven};
use crate::chain::driver::{Driver, driver};
use crate::chain::request::{Ledger, Request};
use crate::chain::verdict::Expected;
use crate::chain::{ledger, reconcile};
use crate::event::{AgentEvent, Event, LeaseEnded, LeaseTaken};
use crate::id::{AgentId, Epoch, Frontier, StreamName};
use crate::log::{AppendError, Entry, Expectation};

/// How often a lease is tried for where the log moves meanwhile: holding the lock, only hooks and people still write.
const TRIES: usize = 8;

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Somebody drives the agent.
    #[error("another driver holds the agent's lease: {why}")]
    Held {
        /// Who, for people.
        why: String,
    },
    /// The log is not where the receipt was given.
    #[error("the log has moved since the receipt was given: {}", names(streams))]
    Moved {
        /// The streams that moved.
        streams: Vec<StreamName>,
    },
    /// The caller's own lease is over.
    #[error("the lease with epoch {asked} is not the present one ({current}); another driver took over")]
    Over {
        /// The caller's.
        asked: Epoch,
        /// The agent's.
        current: Epoch,
    },
    /// The world or the log failed.
    #[error(transparent)]
    Act(ActError),
}

impl<E: Into<ActError>> From<E> for LeaseError {
    fn from(error: E) -> Self {
        Self::Act(error.into())
    }
}

fn names(streams: &[StreamName]) -> String {
    streams.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A lease that was taken, with the log as it is under it.
#[derive(Debug)]
pub struct Taken {
    /// The agent and its epoch.
    pub driven: Driven,
    /// What the log knows now.
    pub ledger: Ledger,
    /// Whether it is to be given back: not where it is the caller's own.
    pub ours: bool,
}

/// The name of an agent's lock.
#[must_use]
pub fn lock_name(uid: &AgentId) -> String {
    format!("agent-{uid}")
}

/// Takes the agent's lease, and appends what the last driver left open.
///
/// `request.lease` is a lease that the caller has already; it is used and not given back. Without a receipt, whatever the
/// log says now is what is decided on.
///
/// # Errors
///
/// [`LeaseError`]; then nothing was appended, and the lock is free.
///
/// # Crash
///
/// The events are one append. A lease that a dead process left is reclaimed by the next.
pub fn take(
    actor: &mut Actor<'_>,
    uid: &AgentId,
    request: &Request,
    receipt: Option<&Expected>,
) -> Result<Taken, LeaseError> {
    let name = lock_name(uid);
    if !actor.doors.lock(&name)? {
        let why = "a process of this machine has its lock".to_owned();
        return Err(LeaseError::Held { why });
    }
    let taken = take_locked(actor, uid, request, receipt);
    if taken.is_err() {
        actor.doors.unlock(&name);
    }
    taken
}

fn take_locked(
    actor: &mut Actor<'_>,
    uid: &AgentId,
    request: &Request,
    receipt: Option<&Expected>,
) -> Result<Taken, LeaseError> {
    for last in (0..TRIES).rev() {
        let ledger = ledger::read(actor.log.records(), request)?;
        if let Some(receipt) = receipt {
            let moved = moved(receipt, &ledger);
            if !moved.is_empty() {
                return Err(LeaseError::Moved { streams: moved });
            }
        }
        match try_once(actor, uid, request, &ledger) {
            Err(LeaseError::Act(ActError::Append(AppendError::Conflict { stream, .. }))) => {
                if receipt.is_some() || last == 0 {
                    return Err(LeaseError::Moved { streams: vec![stream] });
                }
            }
            Err(error) => return Err(error),
            Ok((epoch, ours)) => {
                let ledger = ledger::read(actor.log.records(), request)?;
                return Ok(Taken { driven: Driven { uid: uid.clone(), epoch }, ledger, ours });
            }
        }
    }
    Err(LeaseError::Moved { streams: Vec::new() })
}

/// The streams that are not where the receipt found them.
fn moved(receipt: &Expected, ledger: &Ledger) -> Vec<StreamName> {
    let now: Vec<&Frontier> = ledger.streams.iter().flatten().collect();
    match &receipt.streams {
        Some(then) => then.iter().filter(|frontier| !now.contains(frontier)).map(|it| it.stream.clone()).collect(),
        // Without a log then, with one now: it says nothing where it is empty.
        None => now.iter().filter(|frontier| frontier.version.0 > 0).map(|it| it.stream.clone()).collect(),
    }
}

fn try_once(
    actor: &mut Actor<'_>,
    uid: &AgentId,
    request: &Request,
    ledger: &Ledger,
) -> Result<(Epoch, bool), LeaseError> {
    let agent = ledger.agent.clone().unwrap_or_default();
    let own = actor.doors.own();
    let epoch = match driver(&agent, request.lease, Some(&own), actor.view)? {
        Driver::Held { why } => return Err(LeaseError::Held { why }),
        Driver::Ours => agent.lease.epoch,
        Driver::Nobody | Driver::Dead => match request.lease {
            Some(asked) => return Err(LeaseError::Over { asked, current: agent.lease.epoch }),
            None => agent.lease.epoch.next(),
        },
    };
    let is_taken = request.lease.is_none();
    let mut events: Vec<Event> = Vec::new();
    if is_taken {
        if agent.lease.holder.is_some() {
            let how = "reclaimed: the holder is dead".to_owned();
            events.push(LeaseEnded { epoch: agent.lease.epoch, how }.into());
        }
        events.push(LeaseTaken { epoch, holder: own }.into());
    }
    for event in reconcile::pending(&agent, request, epoch, actor.view)? {
        if let AgentEvent::ChainHeadMoved(moved) = &event
            && let Some(path) = &moved.to.path
        {
            // What the log calls proved must outlast a power cut.
            actor.doors.sync_file(path.as_str())?;
        }
        events.push(event.into());
    }
    let mut entries = Vec::new();
    for frontier in ledger.streams.iter().flatten() {
        let is_own = frontier.stream == StreamName::Agent(uid.clone());
        let events = if is_own { std::mem::take(&mut events) } else { Vec::new() };
        entries.push(Entry { stream: frontier.stream.clone(), expected: Expectation::from(frontier), events });
    }
    actor.append(&entries)?;
    Ok((epoch, is_taken))
}

/// Gives the lease back, with what else is to be said in the same append.
///
/// # Errors
///
/// [`ActError::Append`]; the lock is free all the same, and the next driver reclaims the lease once this process is gone.
pub fn release(actor: &mut Actor<'_>, taken: &Taken, mut events: Vec<Event>) -> Result<(), ActError> {
    let Driven { uid, epoch } = &taken.driven;
    if taken.ours {
        events.push(LeaseEnded { epoch: *epoch, how: "released".into() }.into());
    }
    let result = if events.is_empty() { Ok(()) } else { actor.record(uid, events).map(drop) };
    actor.doors.unlock(&lock_name(uid));
    Ok(result?)
}
