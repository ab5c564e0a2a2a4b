//! The end of a copy: settled where its spawn lived to see it, swept where it did not. Only under the agent's lease.
//!
//! A copy goes only if it is still what was logged, by the predicate that the preflight uses
//! ([`sweep::is_removable`](crate::chain::sweep::is_removable)): its token's marker is beside it, no other marker is, size
//! and content are those of the log. It is renamed first and looked at again under its new name, so that nobody can write
//! into it between the look and the end; one that turns out to have been continued is given its name back. A copy that is no
//! longer what was logged is somebody's conversation: it stays, without a marker, and is reported.

use crate::chain::actor::{ActError, Actor, Driven};
use crate::chain::names::{CopyNames, names};
use crate::chain::relocate::{gone, marker_of};
use crate::chain::state::{AgentState, Copy, CopyStage};
use crate::chain::sweep::is_removable;
use crate::event::{CopyRemoved, CopyUnmarked, Event, Left, Settle, SettleIntended, SweepIntended, Swept};
use crate::id::{AgentId, PathText, Token};
use crate::snapshot::Seen;
use crate::world::doors::DoorKind;

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
    /// That cannot be told: it stays in the log for the next sweep.
    Untold(String),
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
                forget(actor, &uid, token, &names(copy.destination.as_str(), &uid, token))?;
                report.removed.push(token.clone());
            }
            End::Live(why) => {
                report.left.push(Left { path: copy.destination.clone(), why: why.into() });
                live.push((token, copy));
            }
            End::Untold(why) => report.left.push(Left { path: copy.destination.clone(), why }),
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
            forget(actor, &driven.uid, token, &names(copy.destination.as_str(), &driven.uid, token))?;
            let removed = CopyRemoved { token: token.clone(), epoch: driven.epoch };
            actor.record(&driven.uid, vec![removed.into()])?;
            Ok(())
        }
        End::Live(_) => keep(actor, driven, token, copy),
        End::Untold(_) => Ok(()),
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
    forget(actor, &driven.uid, token, &names(copy.destination.as_str(), &driven.uid, token))?;
    let unmarked = CopyUnmarked { token: token.clone(), epoch: driven.epoch };
    actor.record(&driven.uid, vec![unmarked.into()])?;
    Ok(())
}

/// Removes the marker, durably, where it is this copy's. What it stood beside is gone durably by then, or it stays.
fn forget(actor: &mut Actor<'_>, uid: &AgentId, token: &Token, names: &CopyNames) -> Result<(), ActError> {
    if marker_of(actor, uid, token, names)?.is_some() {
        gone(actor.doors.remove(&names.marker))?;
    }
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
    // Half a copy, or half a marker: nobody looks for it, and it bears our token.
    gone(actor.doors.remove(&names.temp))?;
    gone(actor.doors.remove(&names.claim))?;
    // An earlier try was cut off between the rename and the look.
    match take_out(actor, driven, token, copy, &names)? {
        End::Gone => {}
        end @ (End::Live(_) | End::Untold(_)) => return Ok(end),
    }
    match is_removable(&driven.uid, token, copy, state, actor.view)? {
        Seen::Is(true) => {}
        Seen::Is(false) => return Ok(End::Live("it is not the copy that was logged, or another marker is beside it")),
        Seen::Absent => {
            gone(actor.doors.sync_dir(&names.dir))?;
            return Ok(End::Gone);
        }
        Seen::Unreadable(why) => return Ok(End::Untold(why)),
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
    let marker = marker_of(actor, &driven.uid, token, names)?;
    let whole = copy.file.whole.or(marker.and_then(|marker| marker.digest));
    let is_logged = (found.bytes, found.tail) == (copy.file.bytes, copy.file.tail) && whole == found.whole;
    if is_logged {
        gone(actor.doors.remove(&names.out))?;
        gone(actor.doors.sync_dir(&names.dir))?;
        return Ok(End::Gone);
    }
    match actor.doors.rename_new(&names.out, copy.destination.as_str()) {
        Err(error) if error.kind == DoorKind::Exists => {
            return Ok(End::Untold("it was continued while it was taken away, and its name is taken".into()));
        }
        renamed => renamed?,
    }
    gone(actor.doors.sync_dir(&names.dir))?;
    Ok(End::Live("it was continued while it was taken away; it has its name again"))
}

/// The paths that a settled or swept copy can leave, for a plan.
#[must_use]
pub fn paths(driven: &Driven, token: &Token, copy: &Copy) -> Vec<PathText> {
    let names = names(copy.destination.as_str(), &driven.uid, token);
    [copy.destination.as_str(), &names.marker, &names.claim, &names.temp, &names.out]
        .iter()
        .filter_map(|path| PathText::parse(*path).ok())
        .collect()
}
