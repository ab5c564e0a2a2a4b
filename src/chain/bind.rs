//! Adopting an existing conversation: a person says that a session is an agent's.
//!
//! Pure: the events of one append, under a lease of its own, so that a driver that lives refuses it.

use crate::chain::state::AgentState;
use crate::event::{AgentDeclared, ChainHeadMoved, Event, Holder, LeaseEnded, LeaseTaken, Location, SessionBound};

/// The events that make `to` the agent's conversation, in order, for one append.
///
/// The caller has seen to it that no driver lives: a lease whose holder is still named is ended as reclaimed. Nothing is
/// returned where the head is there already.
///
/// # Crash
///
/// The events are one append: all are in the log or none.
#[must_use]
pub fn bind(state: &AgentState, to: &Location, holder: &Holder) -> Vec<Event> {
    let place = |at: &Location| (at.session.clone(), at.config_dir.clone(), at.cwd.clone());
    if state.head.as_ref().is_some_and(|head| place(&head.at) == place(to)) {
        return Vec::new();
    }
    let mut events = Vec::new();
    if state.provider.as_ref() != Some(&to.provider) {
        let forked_from = state.forked_from.clone();
        events.push(AgentDeclared { provider: to.provider.clone(), forked_from }.into());
    }
    if state.lease.holder.is_some() {
        events.push(LeaseEnded { epoch: state.lease.epoch, how: "reclaimed: the holder is dead".into() }.into());
    }
    let epoch = state.lease.epoch.next();
    events.push(LeaseTaken { epoch, holder: holder.clone() }.into());
    events.push(SessionBound { session: to.session.clone(), epoch }.into());
    let from = state.head.as_ref().map(|head| head.at.origin());
    events.push(ChainHeadMoved { from, to: to.clone(), segment: None, epoch }.into());
    events.push(LeaseEnded { epoch, how: "released".into() }.into());
    events
}
