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

/// The files that a sweep of this agent's leftovers would remove.
///
/// # Errors
///
/// The view's [`SnapshotError`].
pub fn removable(agent: &AgentId, state: &AgentState, view: &mut dyn View) -> Result<BTreeSet<String>, SnapshotError> {
    let mut paths = BTreeSet::new();
    for (token, copy) in &state.copies {
        if is_removable(agent, token, copy, state, view)? {
            paths.insert(copy.destination.as_str().to_owned());
        }
    }
    Ok(paths)
}

/// Whether a sweep would remove this copy: the predicate of the preflight and of the act.
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
) -> Result<bool, SnapshotError> {
    let path = copy.destination.as_str();
    // It was decided that it stays.
    if copy.stage == CopyStage::Settling(Settle::Unmark) {
        return Ok(false);
    }
    if state.head.as_ref().and_then(|head| head.at.path.as_ref()) == Some(&copy.destination) {
        return Ok(false);
    }
    let Seen::Is(node) = view.node(path, false)? else { return Ok(false) };
    if node.kind != NodeKind::File || node.bytes != copy.file.bytes {
        return Ok(false);
    }
    if !is_ours(agent, token, copy, view)? || view.tail(path, copy.file.bytes)? != Seen::Is(copy.file.tail) {
        return Ok(false);
    }
    // Two markers, one copy: whose it is cannot be told, so nobody takes it from the other.
    Ok(foreign_marker(path, Some((agent, state)), view)? == Seen::Absent)
}

/// Whether the marker of a logged copy still says what the log says.
fn is_ours(agent: &AgentId, token: &Token, copy: &Copy, view: &mut dyn View) -> Result<bool, SnapshotError> {
    let marker = view.marker(copy.marker.as_str())?.is();
    Ok(marker.is_some_and(|it| it.owner == agent.as_str() && it.token.as_deref() == Some(token.as_str())))
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
            None => false,
        };
        if !ours {
            return Ok(Seen::Is(marker));
        }
    }
    Ok(Seen::Absent)
}
