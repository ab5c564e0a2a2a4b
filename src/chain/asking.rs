//! The questions of one preflight: what the provider would do, whose copy a file is, how the head compares with the disk.
//!
//! [`Asking`] holds the inputs and the trail of one decision. It answers the gate's [`Facts`] from the provider's rules; it
//! does not choose a verdict.

use std::collections::{BTreeMap, BTreeSet};

use crate::chain::gate::{Facts, Here, Identities};
use crate::chain::request::{Ledger, Request};
use crate::chain::state::{AgentState, Placed};
use crate::chain::sweep::{Claim, claim, foreign_marker};
use crate::chain::verdict::Step;
use crate::event::{FileFacts, Location, Means};
use crate::id::{Digest, IdentityKey};
use crate::provider::{ConfigDir, Finding, Lookup, Outcome, Place, Provider};
use crate::snapshot::{Ask, NodeKind, Recorder, Seen, SnapshotError, Transcript};

/// What ends a decision early.
pub(super) enum Stop {
    /// The view has no answer: a replay under other rules.
    Snapshot(SnapshotError),
    /// It cannot be told.
    Unknown(Finding),
    /// Somebody else's copy alone decides.
    Busy(Finding),
}

impl From<SnapshotError> for Stop {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

/// A provider's lookup with what a decision needs beside it.
#[derive(Clone)]
pub(super) struct Looked {
    pub(super) lookup: Lookup,
    /// The digest of the observations that the rule asked for.
    pub(super) digest: Digest,
    /// The marker of somebody else's copy without which the outcome would be another.
    pub(super) in_flight: Option<String>,
}

/// Where a session that lies elsewhere can be forked from.
#[derive(Clone)]
pub(super) struct Elsewhere {
    pub(super) session: String,
    pub(super) path: String,
    pub(super) means: Means,
    /// The login and the working directory that it belongs to.
    pub(super) place: Place,
}

/// One decision under way.
pub(super) struct Asking<'a, 'v> {
    pub(super) request: &'a Request,
    pub(super) ledger: &'a Ledger,
    pub(super) rules: &'a dyn Provider,
    pub(super) place: Place,
    pub(super) view: &'a mut Recorder<'v>,
    pub(super) hidden: BTreeSet<String>,
    pub(super) candidate: Option<String>,
    /// A session whose rejection holds for the snapshot as a whole.
    pub(super) refused: Option<&'a str>,
    pub(super) steps: Vec<Step>,
    pub(super) findings: Vec<Finding>,
    pub(super) elsewhere: Option<Elsewhere>,
    pub(super) looked: BTreeMap<String, Looked>,
    /// Why an identity that was asked for could not be read.
    pub(super) unread_identity: Option<String>,
}

impl<'a> Asking<'a, '_> {
    pub(super) fn step(&mut self, id: &str, label: &str, ok: bool, detail: impl Into<String>) {
        self.steps.push(Step { id: id.into(), label: label.into(), ok, detail: detail.into() });
    }

    pub(super) fn find(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    pub(super) fn head(&self) -> Option<&'a Placed> {
        self.ledger.agent.as_ref().and_then(|agent| agent.head.as_ref())
    }

    /// What the provider does with this id here, asked once.
    pub(super) fn look(&mut self, id: &str) -> Result<Looked, Stop> {
        if let Some(looked) = self.looked.get(id) {
            return Ok(looked.clone());
        }
        let depth = self.request.depth;
        let mut scoped = Recorder::new(self.view);
        let lookup = self.rules.lookup(&mut scoped, &self.place, id, &self.hidden, depth)?;
        let digest = scoped.into_snapshot().digest();
        let in_flight = self.in_flight(id, &lookup)?;
        let looked = Looked { lookup, digest, in_flight };
        self.looked.insert(id.into(), looked.clone());
        Ok(looked)
    }

    /// A marker beside a file that is none of this agent's logged copies.
    pub(super) fn foreign_marker(&mut self, path: &str) -> Result<Seen<String>, Stop> {
        let own = self.request.agent.as_ref().zip(self.ledger.agent.as_ref());
        Ok(foreign_marker(path, own, self.view)?)
    }

    /// The marker of somebody else's copy that alone decides what the provider does.
    fn in_flight(&mut self, id: &str, lookup: &Lookup) -> Result<Option<String>, Stop> {
        let mut marked = None;
        let mut without = self.hidden.clone();
        for path in lookup.path.iter().chain(&lookup.others) {
            match self.foreign_marker(path)? {
                Seen::Is(marker) => {
                    without.insert(path.clone());
                    marked = Some(marker);
                }
                Seen::Absent => {}
                Seen::Unreadable(why) => return Err(Stop::Unknown(unreadable(path, &why))),
            }
        }
        let Some(marker) = marked else { return Ok(None) };
        let again = self.rules.lookup(self.view, &self.place, id, &without, self.request.depth)?;
        let same = again.outcome == lookup.outcome && again.path == lookup.path;
        Ok(if same { None } else { Some(marker) })
    }

    /// As [`Asking::look`], where an outcome that cannot be told ends the decision.
    pub(super) fn look_surely(&mut self, id: &str) -> Result<Looked, Stop> {
        let looked = self.look(id)?;
        if let Some(marker) = &looked.in_flight {
            return Err(in_flight(marker));
        }
        if let Outcome::Unknown { why } = &looked.lookup.outcome {
            for finding in looked.lookup.findings.clone() {
                self.find(finding);
            }
            let mut finding = Finding::new("not_told", why.clone());
            finding.path = looked.lookup.path.clone();
            return Err(Stop::Unknown(finding));
        }
        Ok(looked)
    }

    /// Whether the log knows a refusal of this session, under whatever observations.
    pub(super) fn has_rejection(&self, id: &str) -> bool {
        self.ledger.agent.iter().any(|agent| agent.rejected.keys().any(|session| session.as_str() == id))
    }

    /// Whether the provider refused this session under equal observations, or for good.
    pub(super) fn rejected(&self, id: &str, digest: Digest) -> bool {
        let rejection = self.ledger.agent.as_ref().and_then(|agent| {
            agent.rejected.iter().find(|(session, _)| session.as_str() == id).map(|(_, rejection)| rejection)
        });
        self.refused == Some(id) || rejection.is_some_and(|it| it.for_good || it.snapshot == digest)
    }

    /// The identity recorded for a place, else (the legacy rule) the one found there now.
    fn identity_at(&mut self, at: &Location) -> Result<Seen<IdentityKey>, Stop> {
        match &at.identity {
            Some(identity) => Ok(Seen::Is(identity.clone())),
            None => Ok(self.rules.identity(self.view, &place_of(at))?),
        }
    }

    fn own_identity(&mut self) -> Result<Seen<IdentityKey>, Stop> {
        match &self.request.identity {
            Some(identity) => Ok(Seen::Is(identity.clone())),
            None => Ok(self.rules.identity(self.view, &self.place)?),
        }
    }

    pub(super) fn compare_identity(&mut self, at: &Location) -> Result<Identities, Stop> {
        let (theirs, ours) = (self.identity_at(at)?, self.own_identity()?);
        self.unread_identity = None;
        Ok(match (theirs, ours) {
            (Seen::Is(theirs), Seen::Is(ours)) if theirs == ours => Identities::Equal,
            (Seen::Is(_), Seen::Is(_)) => Identities::Differ,
            (Seen::Unreadable(why), _) | (_, Seen::Unreadable(why)) => {
                self.unread_identity = Some(why);
                Identities::Unknown
            }
            (Seen::Absent, _) | (_, Seen::Absent) => Identities::Unknown,
        })
    }

    /// Whether a place has the same login's folder as the spawn: by device and inode, else by literal text.
    fn same_config_dir(&mut self, at: &Location) -> Result<bool, Stop> {
        let (theirs, ours) = (self.rules.config_root(&place_of(at)), self.rules.config_root(&self.place));
        Ok(theirs == ours || self.view.same_file(&theirs, &ours)? == Seen::Is(true))
    }

    fn same_cwd(&mut self, at: &Location) -> Result<bool, Stop> {
        let (theirs, ours) = (at.cwd.as_str(), self.place.cwd.clone());
        Ok(theirs == ours || self.view.same_file(theirs, &ours)? == Seen::Is(true))
    }

    /// A login's folder that the log knows must be there: one that is gone may be a disk that is not mounted.
    pub(super) fn known_config_dir_is_there(&mut self, at: &Location) -> Result<(), Stop> {
        let root = self.rules.config_root(&place_of(at));
        match self.view.node(&root, true)? {
            Seen::Is(_) => Ok(()),
            Seen::Absent => Err(Stop::Unknown(
                Finding::new("config_dir_gone", "the log knows this config dir, and it is not there")
                    .at(&root)
                    .next("mount or restore it; what lies there cannot be judged without it"),
            )),
            Seen::Unreadable(why) => Err(Stop::Unknown(unreadable(&root, &why))),
        }
    }

    /// The file of a confirmed place: where it was seen, else where the provider would have put it.
    fn file_of(&mut self, at: &Location) -> Result<Option<String>, Stop> {
        if let Some(path) = &at.path {
            return Ok(Some(path.as_str().to_owned()));
        }
        Ok(self.rules.path_of(self.view, &place_of(at), at.session.as_str())?.is())
    }

    /// How the file at `path` compares with what was confirmed; says what changed as findings.
    pub(super) fn compare(&mut self, at: &Location, path: &str, found: &Transcript) -> Result<Here, Stop> {
        let grown = self.ledger.agent.as_ref().and_then(|agent| agent.grown.get(&at.session));
        let Some(file) = &at.file else {
            return Ok(if grown.is_some() { Here::Changed } else { Here::AsConfirmed });
        };
        if found.bytes == file.bytes && found.tail == file.tail {
            return Ok(if grown.is_some() { Here::Changed } else { Here::AsConfirmed });
        }
        let finding = if found.bytes > file.bytes && self.begins_as(path, file)? {
            let more = found.bytes - file.bytes;
            Finding::new(
                "continued_elsewhere",
                format!("the file has {more} bytes more than when the log confirmed it"),
            )
        } else {
            let text = format!(
                "the file had {} bytes when the log confirmed it; it has {} now and is not a \
                 continuation",
                file.bytes, found.bytes
            );
            Finding::new("suspected_loss", text)
                .next("the head is forked, never appended to; look for a backup of the file")
        };
        self.find(finding.at(path));
        Ok(Here::Changed)
    }

    fn begins_as(&mut self, path: &str, file: &FileFacts) -> Result<bool, Stop> {
        Ok(self.view.tail(path, file.bytes)? == Seen::Is(file.tail))
    }

    /// Whether the file that a lookup found is the one that was confirmed, not a twin.
    fn is_the_file(&mut self, at: &Location, found: &str) -> Result<bool, Stop> {
        let Some(path) = at.path.as_ref().map(|path| path.as_str()) else { return Ok(true) };
        if path == found || self.view.same_file(path, found)? == Seen::Is(true) {
            return Ok(true);
        }
        match self.view.node(path, true)? {
            Seen::Is(node) if node.kind == NodeKind::File => {
                self.find(
                    Finding::new("twin", "another file of the same id hides the confirmed one from the CLI").at(found),
                );
                Ok(false)
            }
            Seen::Is(_) | Seen::Absent => Ok(true),
            Seen::Unreadable(why) => Err(Stop::Unknown(unreadable(path, &why))),
        }
    }

    /// Whether a place can be forked from where it lies; keeps how. A parent that lives may grow without a finding.
    fn forkable(&mut self, at: &Location, rejected: bool, may_grow: bool) -> Result<bool, Stop> {
        if at.provider.family() != self.rules.name() || rejected {
            return Ok(false);
        }
        self.known_config_dir_is_there(at)?;
        let same_dir = self.same_config_dir(at)?;
        match self.compare_identity(at)? {
            Identities::Equal => {}
            Identities::Differ => return Ok(false),
            // Unknown is "not equal" across logins, and no information within one.
            Identities::Unknown if same_dir => {}
            Identities::Unknown => {
                return match self.unread_identity.take() {
                    // One that cannot be read now may be equal: what hinges on it cannot be told.
                    Some(why) => Err(Stop::Unknown(
                        Finding::new("identity_unreadable", format!("who is signed in could not be read: {why}"))
                            .next("make the account file readable, or give the identity"),
                    )),
                    None => Ok(false),
                };
            }
        }
        let Some(path) = self.file_of(at)? else { return Ok(false) };
        if self.hidden.contains(&path) {
            return Ok(false);
        }
        let lookup = self.rules.lookup_path(self.view, &path, self.request.depth)?;
        match &lookup.outcome {
            Outcome::Continues => {}
            Outcome::Unknown { why } => return Err(Stop::Unknown(unreadable(&path, why))),
            Outcome::Empty | Outcome::Refused | Outcome::StartsFresh => return Ok(false),
        }
        match self.foreign_marker(&path)? {
            Seen::Absent => {}
            Seen::Is(_) => return Ok(false),
            Seen::Unreadable(why) => return Err(Stop::Unknown(unreadable(&path, &why))),
        }
        let Some(means) = self.means(same_dir) else { return Ok(false) };
        if means == Means::ByCopy {
            self.destination_is_free(at.session.as_str())?;
        }
        if let Some(transcript) = &lookup.transcript
            && !may_grow
        {
            self.compare(at, &path, transcript)?;
        }
        for finding in lookup.findings {
            self.find(finding);
        }
        self.elsewhere = Some(Elsewhere { session: at.session.as_str().into(), path, means, place: place_of(at) });
        Ok(true)
    }

    /// The way to a session that lies elsewhere: the one that is asked for, else the provider's best. A copy within one
    /// login would make two files of one id there.
    fn means(&self, same_dir: bool) -> Option<Means> {
        let possible = |means: &Means| *means != Means::ByCopy || !same_dir;
        let mut ways = self.rules.means().iter().copied().filter(possible);
        let asked = self.request.means.filter(|asked| ways.clone().any(|way| way == *asked));
        asked.or_else(|| ways.next())
    }

    /// A copy needs a login's folder that does not have the id anywhere: a second file would hide or break the first.
    fn destination_is_free(&mut self, id: &str) -> Result<(), Stop> {
        let taken = |path: &str| {
            let text = "the id is in the destination already; a copy would make a twin of it";
            Stop::Unknown(
                Finding::new("destination_taken", text)
                    .at(path)
                    .next("move that file aside, or start in a config dir that does not have the id"),
            )
        };
        let lookup = self.rules.lookup(self.view, &self.place, id, &self.hidden, self.request.depth)?;
        if let Some(path) = lookup.path.iter().chain(&lookup.others).next() {
            return Err(taken(path));
        }
        let destination = match self.rules.path_of(self.view, &self.place, id)? {
            Seen::Is(path) => path,
            Seen::Absent => return Ok(()),
            Seen::Unreadable(why) => return Err(Stop::Unknown(unreadable(id, &why))),
        };
        let own = self.request.agent.as_ref().zip(self.ledger.agent.as_ref());
        match claim(&destination, &self.hidden, own, self.view)? {
            Claim::Free => Ok(()),
            Claim::Taken => Err(taken(&destination)),
            Claim::InFlight { marker } => Err(in_flight(&marker)),
            Claim::Untold { why } => Err(Stop::Unknown(unreadable(&destination, &why))),
        }
    }
}

fn in_flight(marker: &str) -> Stop {
    let text = "a relocated copy of another agent, or one that the log does not know, decides what the CLI would do";
    let next = "wait until that spawn has settled; if it is dead, remove the copy with its marker";
    Stop::Busy(Finding::new("copy_in_flight", text).at(marker).next(next))
}

/// A place of the log as the provider's rules take it.
pub(super) fn place_of(at: &Location) -> Place {
    Place { config_dir: ConfigDir::Named(at.config_dir.as_str().into()), cwd: at.cwd.as_str().into() }
}

pub(super) fn unreadable(path: &str, why: &str) -> Finding {
    Finding::new("unreadable", format!("it could not be read: {why}"))
        .at(path)
        .next("make it readable for this user and ask again")
}

impl Facts for Asking<'_, '_> {
    type Stop = Stop;

    fn has_head(&self) -> bool {
        self.head().is_some()
    }

    fn candidate_is_head(&self) -> bool {
        self.head().map(|head| head.at.session.as_str()) == self.candidate.as_deref()
    }

    fn fork_source(&mut self) -> Result<Option<bool>, Stop> {
        let Some(parent) = self.ledger.parent.as_ref() else { return Ok(None) };
        let Some(head) = &parent.head else { return Ok(Some(false)) };
        let id = head.at.session.as_str();
        if !self.forkable(&head.at, for_good(parent, id), true)? {
            return Ok(Some(false));
        }
        // Within one login, what the CLI reaches by itself needs no path.
        if self.same_config_dir(&head.at)? {
            let looked = self.look(id)?;
            let found = looked.lookup.path.clone();
            if looked.in_flight.is_none()
                && looked.lookup.outcome == Outcome::Continues
                && let Some(found) = found
                && self.is_the_file(&head.at, &found)?
            {
                let place = self.place.clone();
                self.elsewhere = Some(Elsewhere { session: id.into(), path: found, means: Means::InPlace, place });
            }
        }
        Ok(Some(true))
    }

    fn identities(&mut self) -> Result<Identities, Stop> {
        match self.head() {
            Some(head) => self.compare_identity(&head.at),
            None => Ok(Identities::Unknown),
        }
    }

    fn head_rejected(&mut self) -> Result<bool, Stop> {
        let Some(head) = self.head() else { return Ok(false) };
        let id = head.at.session.as_str();
        if !self.has_rejection(id) {
            return Ok(false);
        }
        let digest = self.look(id)?.digest;
        Ok(self.rejected(id, digest))
    }

    fn here(&mut self) -> Result<Here, Stop> {
        let Some(head) = self.head() else { return Ok(Here::No) };
        let looked = self.look_surely(head.at.session.as_str())?;
        if looked.lookup.outcome != Outcome::Continues {
            return Ok(Here::No);
        }
        let (Some(path), Some(transcript)) = (&looked.lookup.path, &looked.lookup.transcript) else {
            return Ok(Here::No);
        };
        if !self.is_the_file(&head.at, path)? {
            return Ok(Here::No);
        }
        self.compare(&head.at, path, transcript)
    }

    fn relocatable(&mut self) -> Result<bool, Stop> {
        let Some(head) = self.head() else { return Ok(false) };
        self.known_config_dir_is_there(&head.at)?;
        if !self.same_cwd(&head.at)? {
            return Ok(false);
        }
        self.forkable(&head.at, false, false)
    }
}

fn for_good(state: &AgentState, id: &str) -> bool {
    state.rejected.iter().any(|(session, rejection)| session.as_str() == id && rejection.for_good)
}
