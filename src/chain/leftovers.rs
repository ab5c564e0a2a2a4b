//! The end of a copy: settled where its spawn lived to see it, swept where it did not. Only under the agent's lease.
//!
//! A copy goes only if it is still what was logged, by the predicate that the preflight uses
//! ([`sweep::is_removable`](crate::chain::sweep::is_removable)): its token's marker is beside it, no other marker is, size
//! and content are those of the log. It is renamed first and looked at again under its new name, so that nobody can write
//! into it between the look and the end; one that turns out to have been continued is given its name back. A copy that is no
//! longer what was logged is somebody's conversation: it stays, without a marker, and is reported.

use crate::chain::actor::{ActError, Actor, Driven};
use crate::chain::names::{CopyNames, names};
use crate::chain::relocate::marker_digest;
use crate::chain::state::{AgentState, Copy, CopyStage};
use crate::chain::sweep::is_removable;
use crate::event::{CopyRemoved, CopyUnmarked, Event, Left, Settle, SettleIntended, SweepIntended, Swept};
use crate::id::{PathText, Token};
use crate::snapshot::{Ask, Seen};
use crate::world::doors::{DoorError, DoorKind};

/// What a sweep did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SweepReport {
    /// The copies that are gone.
    pub removed: Vec<Token>,
    /// What stays, and why.
    pub left: Vec<Left>,
}

/// What became of one copy.
enum End {
    /// Nothing of it is left but its marker.
    Gone,
    /// It is not what was logged: somebody's conversation.
    Live(&'static str),
}

/// Removes the leftovers of dead spawns, as far as they are still what was logged.
///
/// # Errors
///
/// [`ActError`] where the log or a door failed. What was done is done; the rest is still in the log, and the next sweep
/// takes it.
///
/// # Crash
///
/// As after an error.
pub fn sweep(actor: &mut Actor<'_>, driven: &Driven, state: &AgentState) -> Result<SweepReport, ActError> {
    let mut report = SweepReport::default();
    if state.copies.is_empty() && state.sweeping.is_none() {
        return Ok(report);
    }
    let Driven { uid, epoch } = driven.clone();
    let (kept, going): (Vec<_>, Vec<_>) =
        state.copies.iter().partition(|(_, copy)| copy.stage == CopyStage::Settling(Settle::Unmark));
    for (token, copy) in kept {
        unmark(actor, driven, token, copy)?;
    }
    let tokens: Vec<Token> = going.iter().map(|(token, _)| (*token).clone()).collect();
    actor.record(&uid, vec![SweepIntended { tokens, temps: Vec::new(), epoch }.into()])?;
    let mut live = Vec::new();
    for (token, copy) in going {
        match discard(actor, driven, state, token, copy)? {
            End::Gone => {
                forget(actor, &names(copy.destination.as_str(), &uid, token))?;
                report.removed.push(token.clone());
            }
            End::Live(why) => {
                report.left.push(Left { path: copy.destination.clone(), why: why.into() });
                live.push((token, copy));
            }
        }
    }
    let (tokens, left) = (report.removed.clone(), report.left.clone());
    actor.record(&uid, vec![Swept { tokens, temps: Vec::new(), left, epoch }.into()])?;
    for (token, copy) in live {
        keep(actor, driven, token, copy)?;
    }
    Ok(report)
}

/// Carries out what was decided about a copy: `settle_intended` is in the log already.
///
/// # Errors
///
/// As [`sweep`].
///
/// # Crash
///
/// As [`sweep`].
pub fn settle(actor: &mut Actor<'_>, driven: &Driven, state: &AgentState, token: &Token) -> Result<(), ActError> {
    let Some(copy) = state.copies.get(token) else { return Ok(()) };
    if copy.stage == CopyStage::Settling(Settle::Unmark) {
        return unmark(actor, driven, token, copy);
    }
    match discard(actor, driven, state, token, copy)? {
        End::Gone => {
            forget(actor, &names(copy.destination.as_str(), &driven.uid, token))?;
            let removed = CopyRemoved { token: token.clone(), epoch: driven.epoch };
            actor.record(&driven.uid, vec![removed.into()])?;
            Ok(())
        }
        End::Live(_) => keep(actor, driven, token, copy),
    }
}

/// The copy stays: it is an ordinary session from now on.
fn keep(actor: &mut Actor<'_>, driven: &Driven, token: &Token, copy: &Copy) -> Result<(), ActError> {
    let how = Settle::Unmark;
    let intended: Event = SettleIntended { token: token.clone(), how, epoch: driven.epoch }.into();
    actor.record(&driven.uid, vec![intended])?;
    unmark(actor, driven, token, copy)
}

fn unmark(actor: &mut Actor<'_>, driven: &Driven, token: &Token, copy: &Copy) -> Result<(), ActError> {
    forget(actor, &names(copy.destination.as_str(), &driven.uid, token))?;
    let unmarked = CopyUnmarked { token: token.clone(), epoch: driven.epoch };
    actor.record(&driven.uid, vec![unmarked.into()])?;
    Ok(())
}

/// Removes the marker, durably. What it stood beside is gone durably by then, or it stays.
fn forget(actor: &mut Actor<'_>, names: &CopyNames) -> Result<(), ActError> {
    gone(actor.doors.remove(&names.marker))?;
    gone(actor.doors.sync_dir(&names.dir))?;
    Ok(())
}

/// Takes away a copy, whatever stage it was left in, but for its marker.
fn discard(
    actor: &mut Actor<'_>,
    driven: &Driven,
    state: &AgentState,
    token: &Token,
    copy: &Copy,
) -> Result<End, ActError> {
    let names = names(copy.destination.as_str(), &driven.uid, token);
    // Half a copy, or a second name of it: nobody looks for it, and it bears our token.
    gone(actor.doors.remove(&names.temp))?;
    // An earlier try was cut off between the rename and the look.
    if let End::Live(why) = take_out(actor, driven, token, copy, &names)? {
        return Ok(End::Live(why));
    }
    if actor.view.node(copy.destination.as_str(), false)? == Seen::Absent {
        gone(actor.doors.sync_dir(&names.dir))?;
        return Ok(End::Gone);
    }
    if !is_removable(&driven.uid, token, copy, state, actor.view)? {
        return Ok(End::Live("it is not the copy that was logged, or another marker is beside it"));
    }
    gone(actor.doors.rename_new(copy.destination.as_str(), &names.out))?;
    take_out(actor, driven, token, copy, &names)
}

/// Looks at what was renamed: it goes if it is what was logged, else it gets its name back.
fn take_out(
    actor: &mut Actor<'_>,
    driven: &Driven,
    token: &Token,
    copy: &Copy,
    names: &CopyNames,
) -> Result<End, ActError> {
    let found = match actor.doors.facts(&names.out) {
        Err(error) if error.kind == DoorKind::Absent => return Ok(End::Gone),
        found => found?,
    };
    let digest = match actor.doors.read_small(&names.marker) {
        Err(error) if error.kind == DoorKind::Absent => None,
        bytes => marker_digest(&bytes?, &driven.uid, token),
    };
    let whole = copy.file.whole.or(digest);
    let is_logged = (found.bytes, found.tail) == (copy.file.bytes, copy.file.tail) && whole == found.whole;
    if is_logged {
        gone(actor.doors.remove(&names.out))?;
        gone(actor.doors.sync_dir(&names.dir))?;
        return Ok(End::Gone);
    }
    match actor.doors.link_new(&names.out, copy.destination.as_str()) {
        Err(error) if error.kind == DoorKind::Unsupported => {
            actor.doors.rename_new(&names.out, copy.destination.as_str())?;
        }
        linked => {
            linked?;
            gone(actor.doors.remove(&names.out))?;
        }
    }
    gone(actor.doors.sync_dir(&names.dir))?;
    Ok(End::Live("it was continued while it was taken away; it has its name again"))
}

/// What is gone already is as good as removed.
fn gone(result: Result<(), DoorError>) -> Result<(), DoorError> {
    match result {
        Err(error) if error.kind == DoorKind::Absent => Ok(()),
        result => result,
    }
}

/// The paths that a settled or swept copy can leave, for a plan.
#[must_use]
pub fn paths(driven: &Driven, token: &Token, copy: &Copy) -> Vec<PathText> {
    let names = names(copy.destination.as_str(), &driven.uid, token);
    [copy.destination.as_str(), &names.marker, &names.temp, &names.out]
        .iter()
        .filter_map(|path| PathText::parse(*path).ok())
        .collect()
}
