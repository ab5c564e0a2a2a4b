//! The virtual sweep: which leftover copies of an agent count as absent, because the next spawn removes them first.
//!
//! One predicate for the preflight and for the act. A copy is removable iff the log knows its token, no live process uses
//! it, its marker names this agent and that token, and the file is still exactly what was logged. A copy that differs from
//! what was logged, or that is where the conversation is, is live: it never counts as absent and is never swept.

use std::collections::BTreeSet;

use crate::chain::state::{AgentState, Copy, CopyStage};
use crate::event::Settle;
use crate::id::{AgentId, Token};
use crate::snapshot::{Ask, NodeKind, Seen, SnapshotError, View};

/// How names of markers end, ours and the published scheme's.
pub const MARKER_SUFFIXES: [&str; 2] = [".throughline-relocated", ".agentmux-relocated"];

/// The files that a sweep of this agent's leftovers would remove. Unreadable where that cannot be told of one.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn removable(
    agent: &AgentId,
    state: &AgentState,
    view: &mut dyn View,
) -> Result<Seen<BTreeSet<String>>, SnapshotError> {
    let mut paths = BTreeSet::new();
    for (token, copy) in &state.copies {
        match is_removable(agent, token, copy, state, view)? {
            Seen::Is(true) => drop(paths.insert(copy.destination.as_str().to_owned())),
            Seen::Is(false) | Seen::Absent => {}
            Seen::Unreadable(why) => return Ok(Seen::Unreadable(why)),
        }
    }
    Ok(Seen::Is(paths))
}

/// Whether a sweep would remove this copy: the predicate of the preflight and of the act. Absent where there is no copy;
/// one that cannot be read is neither removed nor given up.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn is_removable(
    agent: &AgentId,
    token: &Token,
    copy: &Copy,
    state: &AgentState,
    view: &mut dyn View,
) -> Result<Seen<bool>, SnapshotError> {
    let path = copy.destination.as_str();
    // It was decided that it stays, or it is where the conversation is.
    let is_head = state.head.as_ref().and_then(|head| head.at.path.as_ref()) == Some(&copy.destination);
    if copy.stage == CopyStage::Settling(Settle::Unmark) || is_head {
        return Ok(Seen::Is(false));
    }
    let found = match view.node(path, false)? {
        Seen::Is(node) => node,
        Seen::Absent => return Ok(Seen::Absent),
        Seen::Unreadable(why) => return Ok(Seen::Unreadable(why)),
    };
    if found.kind != NodeKind::File || found.bytes != copy.file.bytes {
        return Ok(Seen::Is(false));
    }
    match is_ours(agent, token, copy, view)? {
        Seen::Is(true) => {}
        told @ (Seen::Is(false) | Seen::Absent | Seen::Unreadable(_)) => return Ok(told),
    }
    match view.tail(path, copy.file.bytes)? {
        Seen::Is(tail) if tail == copy.file.tail => {}
        Seen::Unreadable(why) => return Ok(Seen::Unreadable(why)),
        Seen::Is(_) | Seen::Absent => return Ok(Seen::Is(false)),
    }
    // Two markers, one copy: whose it is cannot be told, so nobody takes it from the other.
    Ok(match foreign_marker(path, Some((agent, state)), view)? {
        Seen::Absent => Seen::Is(true),
        Seen::Is(_) => Seen::Is(false),
        Seen::Unreadable(why) => Seen::Unreadable(why),
    })
}

/// Whether a copy can be made somewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Nothing is there, and nobody is about to put something there.
    Free,
    /// Something has that name.
    Taken,
    /// Somebody else's copy is on its way there.
    InFlight {
        /// Its marker.
        marker: String,
    },
    /// That cannot be told.
    Untold {
        /// Why.
        why: String,
    },
}

/// Whether a copy can be made at `destination`: the predicate of the preflight and of the act. What is in `hidden` is swept
/// first.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn claim(
    destination: &str,
    hidden: &BTreeSet<String>,
    own: Option<(&AgentId, &AgentState)>,
    view: &mut dyn View,
) -> Result<Claim, SnapshotError> {
    // A link that leads nowhere is there too: it is looked at, not followed.
    match view.node(destination, false)? {
        Seen::Is(_) if !hidden.contains(destination) => return Ok(Claim::Taken),
        Seen::Unreadable(why) => return Ok(Claim::Untold { why }),
        Seen::Is(_) | Seen::Absent => {}
    }
    Ok(match foreign_marker(destination, own, view)? {
        Seen::Absent => Claim::Free,
        Seen::Is(marker) => Claim::InFlight { marker },
        Seen::Unreadable(why) => Claim::Untold { why },
    })
}

/// Whether the marker of a logged copy still says what the log says. One that is not there says nothing.
fn is_ours(agent: &AgentId, token: &Token, copy: &Copy, view: &mut dyn View) -> Result<Seen<bool>, SnapshotError> {
    Ok(match view.marker(copy.marker.as_str())? {
        Seen::Is(it) => Seen::Is(it.owner == agent.as_str() && it.token.as_deref() == Some(token.as_str())),
        Seen::Absent => Seen::Is(false),
        Seen::Unreadable(why) => Seen::Unreadable(why),
    })
}

/// Whether a file has a marker beside it that is none of this agent's logged copies: somebody's copy in flight, or a
/// leftover that only an adoption may remove.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn foreign_marker(
    path: &str,
    own: Option<(&AgentId, &AgentState)>,
    view: &mut dyn View,
) -> Result<Seen<String>, SnapshotError> {
    let Some((dir, name)) = path.rsplit_once('/') else { return Ok(Seen::Absent) };
    let names = match view.names(dir, &format!("{name}."), "-relocated", crate::snapshot::Order::Name)? {
        Seen::Is(names) => names,
        Seen::Absent => return Ok(Seen::Absent),
        Seen::Unreadable(why) => return Ok(Seen::Unreadable(why)),
    };
    for entry in names {
        if !MARKER_SUFFIXES.iter().any(|suffix| entry.name.ends_with(suffix)) {
            continue;
        }
        let marker = format!("{dir}/{}", entry.name);
        let logged = own.and_then(|(uid, state)| {
            let found = state.copies.iter().find(|(_, copy)| copy.marker.as_str() == marker);
            found.map(|(token, copy)| (uid, token, copy))
        });
        let ours = match logged {
            Some((uid, token, copy)) => is_ours(uid, token, copy, view)?,
            None => Seen::Is(false),
        };
        match ours {
            Seen::Is(true) => {}
            Seen::Is(false) | Seen::Absent => return Ok(Seen::Is(marker)),
            Seen::Unreadable(why) => return Ok(Seen::Unreadable(why)),
        }
    }
    Ok(Seen::Absent)
}
