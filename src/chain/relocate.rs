//! `by_copy`: a session file relocated for one spawn, for providers that cannot read it where it lies.
//!
//! The original is only read. The copy is made under a name that nobody looks for, checked, and becomes visible in one step
//! that replaces nothing; before that step its marker, which says whose it is, is durable. The intent is in the log before
//! anything is on the disk. So at every moment a leftover can be told from an ordinary session, and from somebody else's
//! copy: `leftovers` removes exactly what is still what was logged.

use std::collections::BTreeSet;

use crate::chain::actor::{ActError, Actor, Driven};
use crate::chain::names::{CopyNames, MARKER_SCHEMA, MarkerFile, names};
use crate::chain::sweep::{Claim, claim};
use crate::event::{FileFacts, Relocated, RelocationFailed, RelocationIntended};
use crate::id::{AgentId, PathText, SessionId, Token};
use crate::provider::Provider;
use crate::snapshot::{Ask, Depth, Seen};
use crate::world::doors::{DoorError, DoorKind, Fresh};

/// What is to be relocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relocation {
    /// Which session.
    pub session: SessionId,
    /// The original.
    pub source: String,
    /// Where the provider will look for it.
    pub destination: String,
}

/// Why there is no copy. The head stays where it is, and no new conversation was begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelocateError {
    /// Something is at the destination.
    #[error("{path:?} is there already; move it aside, or start in a config dir that does not have the session")]
    Taken {
        /// Where.
        path: String,
    },
    /// A copy of somebody else is on its way to the same place.
    #[error("another copy is on its way there ({marker:?}); try again when that spawn has settled")]
    InFlight {
        /// Its marker.
        marker: String,
    },
    /// The original could not be read, or has no whole record.
    #[error("the session's file {path:?} cannot be copied: {why}")]
    Source {
        /// The original.
        path: String,
        /// Why, for people.
        why: String,
    },
    /// The original was changed while it was copied.
    #[error("the session's file {path:?} changed while it was copied; try again")]
    Changed {
        /// The original.
        path: String,
    },
    /// The world or the log failed.
    #[error("the copy could not be made")]
    Act(#[source] ActError),
}

impl<E: Into<ActError>> From<E> for RelocateError {
    fn from(error: E) -> Self {
        Self::Act(error.into())
    }
}

impl RelocateError {
    /// Whether another try may succeed with nothing else changed by us.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Taken { .. } | Self::Source { .. } => false,
            Self::InFlight { .. } | Self::Changed { .. } => true,
            Self::Act(ActError::Door(error)) => error.is_transient(),
            Self::Act(_) => true,
        }
    }
}

/// Makes the copy. Gives its token.
///
/// # Errors
///
/// [`RelocateError`]; nothing of the copy is left, or what is left is in the log and the next sweep takes it.
///
/// # Crash
///
/// The log says that a copy was intended, or that it is there. Anything that lies beside the destination bears the token.
pub fn relocate(
    actor: &mut Actor<'_>,
    driven: &Driven,
    rules: &dyn Provider,
    what: &Relocation,
) -> Result<Token, RelocateError> {
    let file = whole_records(actor, rules, &what.source)?;
    destination_is_free(actor, &what.destination)?;
    let token = Token::parse(actor.doors.fresh(Fresh::Token))?;
    let names = names(&what.destination, &driven.uid, &token);
    let intended = RelocationIntended {
        token: token.clone(),
        session: what.session.clone(),
        source: PathText::parse(what.source.as_str())?,
        destination: PathText::parse(what.destination.as_str())?,
        marker: PathText::parse(names.marker.as_str())?,
        file: file.clone(),
        epoch: driven.epoch,
    };
    actor.record(&driven.uid, vec![intended.into()])?;
    let copy = match prepare(actor, &driven.uid, what, &names, &token, &file) {
        Ok(copy) => copy,
        Err(error) => {
            give_up(actor, driven, &names, token, &error);
            return Err(error);
        }
    };
    // The marker is durable before the copy is visible.
    let synced = actor.doors.sync_dir(&names.dir).map_err(RelocateError::from);
    if let Err(error) = synced.and_then(|()| show(actor, &names, &what.destination)) {
        // The claim is ours: nobody else could have made it while it stood. One that cannot be taken back stays in the log.
        if gone(actor.doors.remove(&names.marker)).is_ok() {
            give_up(actor, driven, &names, token, &error);
        }
        return Err(error);
    }
    // From here on the copy is visible: whatever fails now leaves it to the sweep, which goes by the log.
    gone(actor.doors.remove(&names.temp))?;
    actor.doors.sync_dir(&names.dir)?;
    actor.record(&driven.uid, vec![Relocated { token: token.clone(), file: copy, epoch: driven.epoch }.into()])?;
    Ok(token)
}

/// Takes away what was prepared and closes the intent. What cannot be taken away stays in the log as intended, and the next
/// sweep finds it; that the log may refuse to be told is no worse.
fn give_up(actor: &mut Actor<'_>, driven: &Driven, names: &CopyNames, token: Token, error: &RelocateError) {
    if take_back(actor, names).is_ok() {
        let failed =
            RelocationFailed { token, why: error.to_string(), transient: error.is_transient(), epoch: driven.epoch };
        let _ = actor.record(&driven.uid, vec![failed.into()]);
    }
}

/// The facts of the original up to the end of its last whole record: a parent may be in the middle of a turn.
fn whole_records(actor: &mut Actor<'_>, rules: &dyn Provider, source: &str) -> Result<FileFacts, RelocateError> {
    let wrong = |why: &str| RelocateError::Source { path: source.into(), why: why.into() };
    let transcript = match actor.view.transcript(source, rules.format(), Depth::Windows)? {
        Seen::Is(transcript) => transcript,
        Seen::Absent => return Err(wrong("it is not there")),
        Seen::Unreadable(why) => return Err(wrong(&why)),
    };
    let bytes = if transcript.torn_tail { transcript.torn_at.unwrap_or(0) } else { transcript.bytes };
    if bytes == 0 {
        return Err(wrong("it has no whole record"));
    }
    match actor.view.tail(source, bytes)? {
        Seen::Is(tail) => Ok(FileFacts { bytes, tail, whole: None }),
        Seen::Absent => Err(RelocateError::Changed { path: source.into() }),
        Seen::Unreadable(why) => Err(wrong(&why)),
    }
}

fn destination_is_free(actor: &mut Actor<'_>, destination: &str) -> Result<(), RelocateError> {
    match claim(destination, &BTreeSet::new(), None, actor.view)? {
        Claim::Free => Ok(()),
        Claim::Taken => Err(RelocateError::Taken { path: destination.into() }),
        Claim::InFlight { marker } => Err(RelocateError::InFlight { marker }),
        Claim::Untold { why } => Err(RelocateError::Source { path: destination.into(), why }),
    }
}

/// Everything but the last step: the copy under a name that nobody looks for, and its marker.
fn prepare(
    actor: &mut Actor<'_>,
    uid: &AgentId,
    what: &Relocation,
    names: &CopyNames,
    token: &Token,
    file: &FileFacts,
) -> Result<FileFacts, RelocateError> {
    actor.doors.make_dir(&names.dir)?;
    let copy = actor.doors.copy_new(&what.source, &names.temp, file.bytes)?;
    let changed = || RelocateError::Changed { path: what.source.clone() };
    if (copy.bytes, copy.tail) != (file.bytes, file.tail) {
        return Err(changed());
    }
    // What was copied is what was there before and is there after: the source was not replaced in between.
    if actor.view.tail(&what.source, file.bytes)? != Seen::Is(file.tail) {
        return Err(changed());
    }
    let marker = MarkerFile {
        schema: MARKER_SCHEMA,
        owner_uid: uid.as_str().into(),
        source: what.source.clone(),
        bytes: Some(copy.bytes),
        digest: copy.whole,
        token: Some(token.as_str().into()),
        store: Some(actor.log.records().store()),
    };
    // A struct of texts and integers always has a JSON form.
    let bytes = serde_json::to_vec(&marker).unwrap_or_default();
    actor.doors.write_new(&names.claim, &bytes)?;
    let in_flight = RelocateError::InFlight { marker: names.marker.clone() };
    rename_or_link(actor, &names.claim, &names.marker).map_err(|error| if_taken(error, in_flight))?;
    Ok(copy)
}

/// Gives a file its name in one step that replaces nothing; where it fails, it has not got it.
fn rename_or_link(actor: &mut Actor<'_>, from: &str, to: &str) -> Result<(), DoorError> {
    match actor.doors.rename_new(from, to) {
        Err(error) if error.kind == DoorKind::Unsupported => actor.doors.link_new(from, to),
        renamed => renamed,
    }
}

/// The one step in which the copy becomes visible.
fn show(actor: &mut Actor<'_>, names: &CopyNames, destination: &str) -> Result<(), RelocateError> {
    let taken = RelocateError::Taken { path: destination.into() };
    rename_or_link(actor, &names.temp, destination).map_err(|error| if_taken(error, taken))
}

/// What it means that a name is taken; any other failure is the door's own.
fn if_taken(error: DoorError, taken: RelocateError) -> RelocateError {
    if error.kind == DoorKind::Exists { taken } else { error.into() }
}

/// Takes away what a copy that was not shown left: all of it bears its token.
fn take_back(actor: &mut Actor<'_>, names: &CopyNames) -> Result<(), DoorError> {
    gone(actor.doors.remove(&names.temp))?;
    gone(actor.doors.remove(&names.claim))?;
    gone(actor.doors.sync_dir(&names.dir))
}

/// What is gone already is as good as removed.
pub(super) fn gone(result: Result<(), DoorError>) -> Result<(), DoorError> {
    match result {
        Err(error) if error.kind == DoorKind::Absent => Ok(()),
        result => result,
    }
}

/// The marker beside a copy, where it is the one of this token.
pub(super) fn marker_of(
    actor: &mut Actor<'_>,
    uid: &AgentId,
    token: &Token,
    names: &CopyNames,
) -> Result<Option<MarkerFile>, DoorError> {
    let bytes = match actor.doors.read_small(&names.marker) {
        Err(error) if error.kind == DoorKind::Absent => return Ok(None),
        bytes => bytes?,
    };
    let marker = serde_json::from_slice::<MarkerFile>(&bytes).ok();
    Ok(marker.filter(|it| it.owner_uid == uid.as_str() && it.token.as_deref() == Some(token.as_str())))
}
