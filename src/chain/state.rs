//! What the log knows about one agent's conversation: the fold of `agent/<uid>`.
//!
//! [`AgentState::apply`] is total over the events and pure: an event that cannot have happened in this order is a typed
//! [`Illegal`], never skipped, never a panic. [`AgentState::admit`] is the fence asked once, when an event is appended: an
//! event of a driver whose lease is not the present one is refused. Order is log order; no clock is read.
//!
//! The state stays small: what is live (lease, open segments, copies on their way) and the last confirmed place of each
//! session. It does not keep history; the log does.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::chain::illegal::Illegal;
use crate::event::{AgentEvent, FileFacts, Holder, How, Location, Means, Origin, Settle};
use crate::id::{AgentId, Digest, Epoch, IdentityKey, PathText, ProviderName, SegmentId, SessionId, Token};

/// The lease as the log knows it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Lease {
    /// The last epoch; 0 = never taken.
    pub epoch: Epoch,
    /// Who holds it.
    pub holder: Option<Holder>,
}

/// An open segment: a provider process that was spawned and has not ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Segment {
    /// The working directory.
    pub cwd: PathText,
    /// The login's folder.
    pub config_dir: PathText,
    /// Who was signed in there.
    pub identity: Option<IdentityKey>,
    /// Whose CLI.
    pub provider: ProviderName,
    /// What was asked.
    pub how: How,
    /// Which way.
    pub means: Means,
    /// The attempted session.
    pub session: Option<SessionId>,
    /// The id we chose.
    pub minted: Option<SessionId>,
    /// The copy it uses.
    pub token: Option<Token>,
    /// Pid and start time, once launched.
    pub process: Option<(u32, u64)>,
    /// Who launched it: where its pid means something.
    pub launcher: Option<Holder>,
    /// The ids it reported.
    pub reported: BTreeSet<SessionId>,
    /// The sessions it confirmed, with the file as it was then.
    pub confirmed: BTreeMap<SessionId, Option<FileFacts>>,
}

/// A confirmed place of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Placed {
    /// Where.
    pub at: Location,
    /// The segment that confirmed it.
    pub segment: Option<SegmentId>,
}

/// A refusal by the provider.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rejection {
    /// Its words.
    pub why: String,
    /// The observations under which it was attempted.
    pub snapshot: Digest,
    /// The file was read and cannot be accepted.
    pub for_good: bool,
}

/// How far a relocated copy has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyStage {
    /// Intended: it may be there or not.
    Pending,
    /// Visible and owned.
    Visible,
    /// Its end is decided.
    Settling(Settle),
}

/// A copy that was made for one spawn and has not been settled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Copy {
    /// How far.
    pub stage: CopyStage,
    /// Which session.
    pub session: SessionId,
    /// The original.
    pub source: PathText,
    /// The copy.
    pub destination: PathText,
    /// The marker.
    pub marker: PathText,
    /// The original's facts, then the copy's.
    pub file: FileFacts,
}

/// The fold of an agent's stream.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentState {
    /// The declared provider.
    pub provider: Option<ProviderName>,
    /// The agent whose conversation a first spawn may continue.
    pub forked_from: Option<AgentId>,
    /// The lease.
    pub lease: Lease,
    /// Where the conversation was last confirmed to be.
    pub head: Option<Placed>,
    /// The last confirmed place of each session.
    pub sessions: BTreeMap<SessionId, Placed>,
    /// The open segments.
    pub open: BTreeMap<SegmentId, Segment>,
    /// The last refusal of each session that was not confirmed since.
    pub rejected: BTreeMap<SessionId, Rejection>,
    /// What was found of each session that was continued elsewhere and not confirmed since.
    pub grown: BTreeMap<SessionId, FileFacts>,
    /// The copies that are not settled.
    pub copies: BTreeMap<Token, Copy>,
    /// The sweep that has begun and not ended.
    pub sweeping: Option<(Vec<Token>, Vec<PathText>)>,
    /// The session that a person named as this agent's and that the head has not moved to yet.
    pub bound: Option<SessionId>,
    /// The user asked for a new conversation after the head's last move.
    pub fresh_intended: bool,
}

impl AgentState {
    /// Applies one event.
    ///
    /// # Errors
    ///
    /// [`Illegal`] when it cannot follow; the state is then unchanged.
    pub fn apply(&mut self, event: &AgentEvent) -> Result<(), Illegal> {
        match event {
            AgentEvent::AgentDeclared(body) => {
                self.provider = Some(body.provider.clone());
                self.forked_from = body.forked_from.clone();
            }
            AgentEvent::LeaseTaken(body) => {
                self.lease = Lease { epoch: body.epoch.max(self.lease.epoch), holder: Some(body.holder.clone()) };
            }
            AgentEvent::LeaseEnded(body) => {
                // In log order an end ends what was taken before it; the fence has seen to the epochs of appended ones.
                self.lease.epoch = self.lease.epoch.max(body.epoch);
                self.lease.holder = None;
            }
            AgentEvent::Spawned(body) => {
                if self.open.contains_key(&body.segment) {
                    return Err(Illegal::SegmentOpen { segment: body.segment.clone() });
                }
                if let Some(token) = &body.token
                    && !self.copies.contains_key(token)
                {
                    return Err(Illegal::NoSuchCopy { token: token.clone(), needed: "visible" });
                }
                let segment = Segment {
                    cwd: body.cwd.clone(),
                    config_dir: body.config_dir.clone(),
                    identity: body.identity.clone(),
                    provider: body.provider.clone(),
                    how: body.how,
                    means: body.means,
                    session: body.session.clone(),
                    minted: body.minted.clone(),
                    token: body.token.clone(),
                    process: None,
                    launcher: None,
                    reported: BTreeSet::new(),
                    confirmed: BTreeMap::new(),
                };
                self.open.insert(body.segment.clone(), segment);
            }
            AgentEvent::Launched(body) => {
                let launcher = self.lease.holder.clone();
                let segment = self.segment(&body.segment)?;
                segment.process = Some((body.pid, body.started));
                segment.launcher = launcher;
            }
            AgentEvent::LaunchFailed(body) => {
                self.segment(&body.segment)?;
                self.open.remove(&body.segment);
            }
            AgentEvent::SessionReported(body) => self.report(&body.segment, &body.session, true)?,
            AgentEvent::ForkReported(body) => self.report(&body.segment, &body.session, false)?,
            AgentEvent::ResumeConfirmed(body) => self.confirm(&body.segment, &body.session, body.file.as_ref())?,
            AgentEvent::TurnConfirmed(body) => self.confirm(&body.segment, &body.session, body.file.as_ref())?,
            AgentEvent::ResumeRejected(body) => {
                self.segment(&body.segment)?;
                let rejection = Rejection { why: body.why.clone(), snapshot: body.snapshot, for_good: body.for_good };
                self.rejected.insert(body.session.clone(), rejection);
            }
            AgentEvent::ChainHeadMoved(body) => self.move_head(body.from.as_ref(), &body.to, body.segment.as_ref())?,
            AgentEvent::SegmentEnded(body) => self.end(&body.segment, body.file.as_ref())?,
            AgentEvent::SessionBound(body) => self.bound = Some(body.session.clone()),
            AgentEvent::GrowthSeen(body) => {
                self.grown.insert(body.session.clone(), body.found.clone());
            }
            AgentEvent::RelocationIntended(body) => {
                if self.copies.contains_key(&body.token) {
                    return Err(Illegal::TokenInUse { token: body.token.clone() });
                }
                let copy = Copy {
                    stage: CopyStage::Pending,
                    session: body.session.clone(),
                    source: body.source.clone(),
                    destination: body.destination.clone(),
                    marker: body.marker.clone(),
                    file: body.file.clone(),
                };
                self.copies.insert(body.token.clone(), copy);
            }
            AgentEvent::Relocated(body) => {
                let copy = self.copy(&body.token, CopyStage::Pending, "intended")?;
                copy.stage = CopyStage::Visible;
                copy.file = body.file.clone();
            }
            AgentEvent::RelocationFailed(body) => {
                self.copy(&body.token, CopyStage::Pending, "intended")?;
                self.copies.remove(&body.token);
            }
            AgentEvent::SettleIntended(body) => match self.copies.get_mut(&body.token) {
                // Its end can be decided anew: one that was to go is kept where it was continued meanwhile.
                Some(copy) if copy.stage == CopyStage::Visible || body.how == Settle::Unmark => {
                    copy.stage = CopyStage::Settling(body.how);
                }
                Some(_) | None => {
                    return Err(Illegal::NoSuchCopy { token: body.token.clone(), needed: "visible" });
                }
            },
            AgentEvent::CopyRemoved(body) => {
                self.copy(&body.token, CopyStage::Settling(Settle::Remove), "about to be removed")?;
                self.copies.remove(&body.token);
            }
            AgentEvent::CopyUnmarked(body) => {
                // Also what was to be removed: somebody had continued it by then, and it stays.
                match self.copies.get(&body.token).map(|copy| copy.stage) {
                    Some(CopyStage::Settling(_)) => self.copies.remove(&body.token),
                    Some(CopyStage::Pending | CopyStage::Visible) | None => {
                        return Err(Illegal::NoSuchCopy { token: body.token.clone(), needed: "being settled" });
                    }
                };
            }
            AgentEvent::SweepIntended(body) => {
                if let Some(token) = body.tokens.iter().find(|token| !self.copies.contains_key(*token)) {
                    return Err(Illegal::NoSuchCopy { token: token.clone(), needed: "known" });
                }
                self.sweeping = Some((body.tokens.clone(), body.temps.clone()));
            }
            AgentEvent::Swept(body) => {
                let (intended, _) = self.sweeping.as_ref().ok_or(Illegal::NoSweep)?;
                if let Some(token) = body.tokens.iter().find(|token| !intended.contains(token)) {
                    return Err(Illegal::NoSuchCopy { token: token.clone(), needed: "being swept" });
                }
                self.sweeping = None;
                for token in &body.tokens {
                    self.copies.remove(token);
                }
            }
            AgentEvent::RetentionExtended(_) => {}
            AgentEvent::FreshIntended(_) => self.fresh_intended = true,
        }
        Ok(())
    }

    /// The fence: whether a driver may append this event now.
    ///
    /// What a person or a backend says without driving (`agent_declared`, `fresh_intended`) is unfenced. Without any
    /// lease ever taken, epoch 0 is the present one.
    ///
    /// # Errors
    ///
    /// [`Illegal`] when the event's lease is not the present one.
    pub fn admit(&self, event: &AgentEvent) -> Result<(), Illegal> {
        let current = self.lease.epoch;
        match event {
            AgentEvent::AgentDeclared(_) | AgentEvent::FreshIntended(_) => Ok(()),
            AgentEvent::LeaseTaken(body) => {
                if self.lease.holder.is_some() {
                    return Err(Illegal::LeaseHeld { epoch: current });
                }
                if Some(body.epoch.0) != current.0.checked_add(1) {
                    return Err(Illegal::EpochOrder { found: body.epoch, last: current });
                }
                Ok(())
            }
            AgentEvent::LeaseEnded(body) => self.fence(body.epoch),
            AgentEvent::Spawned(body) => self.fence(body.epoch),
            AgentEvent::Launched(body) => self.fence(body.epoch),
            AgentEvent::LaunchFailed(body) => self.fence(body.epoch),
            AgentEvent::SessionReported(body) => self.fence(body.epoch),
            AgentEvent::ForkReported(body) => self.fence(body.epoch),
            AgentEvent::ResumeConfirmed(body) => self.fence(body.epoch),
            AgentEvent::TurnConfirmed(body) => self.fence(body.epoch),
            AgentEvent::ResumeRejected(body) => self.fence(body.epoch),
            AgentEvent::ChainHeadMoved(body) => self.fence(body.epoch),
            AgentEvent::SegmentEnded(body) => self.fence(body.epoch),
            AgentEvent::SessionBound(body) => self.fence(body.epoch),
            AgentEvent::GrowthSeen(body) => self.fence(body.epoch),
            AgentEvent::RelocationIntended(body) => self.fence(body.epoch),
            AgentEvent::Relocated(body) => self.fence(body.epoch),
            AgentEvent::RelocationFailed(body) => self.fence(body.epoch),
            AgentEvent::SettleIntended(body) => self.fence(body.epoch),
            AgentEvent::CopyRemoved(body) => self.fence(body.epoch),
            AgentEvent::CopyUnmarked(body) => self.fence(body.epoch),
            AgentEvent::SweepIntended(body) => self.fence(body.epoch),
            AgentEvent::Swept(body) => self.fence(body.epoch),
            AgentEvent::RetentionExtended(body) => self.fence(body.epoch),
        }
    }

    /// Fills in what a hand-written event leaves out and only the fold knows: the origin of a head move.
    #[must_use]
    pub fn complete(&self, mut event: AgentEvent) -> AgentEvent {
        if let AgentEvent::ChainHeadMoved(body) = &mut event
            && body.from.is_none()
        {
            body.from = self.head.as_ref().map(|head| head.at.origin());
        }
        event
    }

    fn fence(&self, found: Epoch) -> Result<(), Illegal> {
        let current = self.lease.epoch;
        if found != current {
            return Err(Illegal::StaleEpoch { found, current });
        }
        if self.lease.holder.is_none() && current != Epoch(0) {
            return Err(Illegal::NoLease { last: current });
        }
        Ok(())
    }

    fn segment(&mut self, segment: &SegmentId) -> Result<&mut Segment, Illegal> {
        self.open.get_mut(segment).ok_or_else(|| Illegal::SegmentNotOpen { segment: segment.clone() })
    }

    fn copy(&mut self, token: &Token, stage: CopyStage, needed: &'static str) -> Result<&mut Copy, Illegal> {
        match self.copies.get_mut(token) {
            Some(copy) if copy.stage == stage => Ok(copy),
            Some(_) | None => Err(Illegal::NoSuchCopy { token: token.clone(), needed }),
        }
    }

    fn report(&mut self, id: &SegmentId, session: &SessionId, may_echo: bool) -> Result<(), Illegal> {
        let segment = self.segment(id)?;
        let echo = may_echo && segment.session.as_ref() == Some(session);
        if let Some(minted) = &segment.minted
            && minted != session
            && !echo
        {
            return Err(Illegal::NotMinted { segment: id.clone(), minted: minted.clone(), found: session.clone() });
        }
        segment.reported.insert(session.clone());
        Ok(())
    }

    fn confirm(&mut self, id: &SegmentId, session: &SessionId, file: Option<&FileFacts>) -> Result<(), Illegal> {
        let segment = self.segment(id)?;
        let named = segment.reported.contains(session)
            || segment.session.as_ref() == Some(session)
            || segment.minted.as_ref() == Some(session);
        if !named {
            return Err(Illegal::Unreported { segment: id.clone(), session: session.clone() });
        }
        let known = segment.confirmed.entry(session.clone()).or_default();
        if file.is_some() {
            *known = file.cloned();
        }
        let place = (segment.config_dir.clone(), segment.cwd.clone());
        self.rejected.remove(session);
        self.grown.remove(session);
        self.learn(&place, session, file);
        Ok(())
    }

    /// New facts of a file count for the session's place under the same login and directory, never for another one.
    fn learn(&mut self, place: &(PathText, PathText), session: &SessionId, file: Option<&FileFacts>) {
        let Some(file) = file else { return };
        for placed in self.head.iter_mut().chain(self.sessions.get_mut(session)) {
            if placed.at.session == *session && placed.at.config_dir == place.0 && placed.at.cwd == place.1 {
                placed.at.file = Some(file.clone());
            }
        }
    }

    fn move_head(&mut self, from: Option<&Origin>, to: &Location, segment: Option<&SegmentId>) -> Result<(), Illegal> {
        let actual = self.head.as_ref().map(|head| head.at.origin());
        if !same_origin(from, actual.as_ref()) {
            return Err(Illegal::HeadElsewhere { found: words_of(from), actual: words_of(actual.as_ref()) });
        }
        let not_confirmed = || Illegal::NotConfirmed { session: to.session.clone() };
        let known = match segment {
            Some(id) => self.segment(id)?.confirmed.get(&to.session).cloned().ok_or_else(not_confirmed)?,
            None if self.bound.as_ref() == Some(&to.session) => None,
            None => return Err(not_confirmed()),
        };
        let mut at = to.clone();
        at.file = at.file.or(known);
        let placed = Placed { at, segment: segment.cloned() };
        self.sessions.insert(to.session.clone(), placed.clone());
        self.head = Some(placed);
        self.rejected.remove(&to.session);
        self.grown.remove(&to.session);
        self.bound = None;
        self.fresh_intended = false;
        Ok(())
    }

    fn end(&mut self, id: &SegmentId, file: Option<&FileFacts>) -> Result<(), Illegal> {
        let segment = self.segment(id)?.clone();
        self.open.remove(id);
        // The end names one file, the one that the segment wrote last: the head's, if this segment confirmed it.
        let head = self.head.as_ref().map(|head| head.at.session.clone());
        if let Some(session) = head.filter(|session| segment.confirmed.contains_key(session)) {
            self.learn(&(segment.config_dir, segment.cwd), &session, file);
        }
        Ok(())
    }
}

fn same_origin(found: Option<&Origin>, actual: Option<&Origin>) -> bool {
    match (found, actual) {
        (None, None) => true,
        (Some(found), Some(actual)) => {
            found.session == actual.session
                && found.config_dir == actual.config_dir
                && (found.path == actual.path || found.path.is_none() || actual.path.is_none())
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn words_of(origin: Option<&Origin>) -> String {
    origin.map_or_else(|| "nowhere".into(), |at| format!("session {} in {:?}", at.session, at.config_dir.as_str()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot build its events should stop")]

    use super::*;
    use crate::event::Event;
    use crate::id::StreamName;
    use serde_json::{Value, json};

    fn event(kind: &str, body: Value) -> AgentEvent {
        let stream: StreamName = "agent/a".parse().unwrap();
        match Event::decode(&stream, kind, 1, body.to_string().as_bytes()) {
            Ok(Event::Agent(event)) => event,
            other => unreachable!("{kind}: {other:?}"),
        }
    }

    fn given(events: &[(&str, Value)]) -> AgentState {
        let mut state = AgentState::default();
        for (kind, body) in events {
            let event = state.complete(event(kind, body.clone()));
            state.apply(&event).unwrap();
        }
        state
    }

    fn when(state: &AgentState, kind: &str, body: Value) -> Result<AgentState, Illegal> {
        let (event, mut next) = (event(kind, body), state.clone());
        next.apply(&event).map(|()| next)
    }

    fn spawned(segment: &str, session: &str) -> (&'static str, Value) {
        let body = json!({"segment": segment, "cwd": "/w", "config_dir": "/c", "provider": "claude", "how": "resume",
            "session": session});
        ("spawned", body)
    }

    fn at(session: &str) -> Value {
        json!({"session": session, "config_dir": "/c", "cwd": "/w", "provider": "claude"})
    }

    fn confirmed(segment: &str, session: &str) -> Vec<(&'static str, Value)> {
        vec![
            spawned(segment, session),
            ("session_reported", json!({"segment": segment, "session": session})),
            ("turn_confirmed", json!({"segment": segment, "session": session})),
            ("chain_head_moved", json!({"segment": segment, "to": at(session)})),
        ]
    }

    fn file(bytes: u64) -> Value {
        json!({"bytes": bytes, "tail": Digest::plain(&bytes.to_le_bytes()).to_string()})
    }

    fn head(state: &AgentState) -> Option<&str> {
        state.head.as_ref().map(|head| head.at.session.as_str())
    }

    fn holder() -> Value {
        json!({"host": "h", "boot": "b", "pid": 7, "started": 1, "pid_ns": 4})
    }

    #[test]
    fn an_attempt_and_an_early_echo_never_move_the_head() {
        let mut events = confirmed("s1", "A");
        events.push(("segment_ended", json!({"segment": "s1", "reason": "exited"})));
        events.push(spawned("s2", "B"));
        events.push(("session_reported", json!({"segment": "s2", "session": "B"})));
        assert_eq!(head(&given(&events)), Some("A"));
    }

    #[test]
    fn only_a_confirmed_session_becomes_head() {
        let state = given(&[spawned("s1", "A")]);
        let refused = when(&state, "chain_head_moved", json!({"segment": "s1", "to": at("A")}));
        assert!(matches!(refused, Err(Illegal::NotConfirmed { .. })));
        let unreported = when(&state, "turn_confirmed", json!({"segment": "s1", "session": "B"}));
        assert!(matches!(unreported, Err(Illegal::Unreported { .. })));
    }

    #[test]
    fn a_head_move_from_elsewhere_is_illegal() {
        let mut events = confirmed("s1", "A");
        events.push(spawned("s2", "B"));
        events.push(("turn_confirmed", json!({"segment": "s2", "session": "B"})));
        let state = given(&events);
        for from in
            [json!(null), json!({"session": "X", "config_dir": "/c"}), json!({"session": "A", "config_dir": "/d"})]
        {
            let mut body = json!({"segment": "s2", "to": at("B")});
            if !from.is_null() {
                body["from"] = from;
            }
            assert!(matches!(when(&state, "chain_head_moved", body), Err(Illegal::HeadElsewhere { .. })));
        }
        let moved = json!({"segment": "s2", "to": at("B"), "from": {"session": "A", "config_dir": "/c"}});
        assert_eq!(head(&when(&state, "chain_head_moved", moved).unwrap()), Some("B"));
    }

    #[test]
    fn a_report_of_another_id_than_the_minted_one_is_illegal() {
        let body = json!({"segment": "s1", "cwd": "/w", "config_dir": "/c", "provider": "claude", "how": "fork",
            "session": "A", "minted": "M"});
        let state = given(&[("spawned", body)]);
        let report = |session: &str| when(&state, "session_reported", json!({"segment": "s1", "session": session}));
        assert!(report("M").is_ok());
        assert!(report("A").is_ok(), "an early echo of the attempted id proves nothing and harms nothing");
        assert!(matches!(report("X"), Err(Illegal::NotMinted { .. })));
        let fork = when(&state, "fork_reported", json!({"segment": "s1", "from": "A", "session": "X"}));
        assert!(matches!(fork, Err(Illegal::NotMinted { .. })));
    }

    #[test]
    fn the_end_of_an_unconfirmed_attempt_never_launders_growth() {
        let mut events = confirmed("s1", "A");
        events.push(("segment_ended", json!({"segment": "s1", "reason": "exited", "file": file(10)})));
        events.push(("growth_seen", json!({"session": "A", "recorded": file(10), "found": file(20)})));
        events.push(spawned("s2", "A"));
        events.push(("segment_ended", json!({"segment": "s2", "reason": "crashed", "file": file(20)})));
        let state = given(&events);
        assert_eq!(state.head.as_ref().unwrap().at.file.as_ref().unwrap().bytes, 10);
        assert!(state.grown.contains_key(&SessionId::parse("A").unwrap()));
    }

    #[test]
    fn a_segment_that_resumed_in_place_resets_what_is_known_of_the_file() {
        let mut events = confirmed("s1", "A");
        events.push(("segment_ended", json!({"segment": "s1", "reason": "exited", "file": file(10)})));
        events.push(spawned("s2", "A"));
        events.push(("resume_confirmed", json!({"segment": "s2", "session": "A", "file": file(15)})));
        events.push(("segment_ended", json!({"segment": "s2", "reason": "exited", "file": file(20)})));
        assert_eq!(given(&events).head.unwrap().at.file.unwrap().bytes, 20);
    }

    #[test]
    fn a_stale_epoch_is_refused_at_the_door() {
        let taken = ("lease_taken", json!({"epoch": 1, "holder": holder()}));
        let state = given(std::slice::from_ref(&taken));
        let spawn = |epoch: u64| {
            let mut body = spawned("s1", "A").1;
            body["epoch"] = json!(epoch);
            event("spawned", body)
        };
        assert_eq!(state.admit(&spawn(1)), Ok(()));
        assert!(matches!(state.admit(&spawn(0)), Err(Illegal::StaleEpoch { .. })));
        let second = event("lease_taken", json!({"epoch": 2, "holder": holder()}));
        assert!(matches!(state.admit(&second), Err(Illegal::LeaseHeld { .. })));
        let ended = given(&[taken, ("lease_ended", json!({"epoch": 1, "how": "released"}))]);
        assert!(matches!(ended.admit(&spawn(1)), Err(Illegal::NoLease { .. })));
        assert_eq!(ended.admit(&second), Ok(()));
        let skipped = event("lease_taken", json!({"epoch": 3, "holder": holder()}));
        assert!(matches!(ended.admit(&skipped), Err(Illegal::EpochOrder { .. })));
    }

    #[test]
    fn a_copy_goes_through_its_stages_in_order() {
        let intended =
            json!({"token": "t", "session": "A", "source": "/s", "destination": "/d", "marker": "/m", "file": file(9)});
        let state = given(&[("relocation_intended", intended.clone())]);
        assert!(matches!(when(&state, "relocation_intended", intended), Err(Illegal::TokenInUse { .. })));
        assert!(when(&state, "settle_intended", json!({"token": "t", "how": "remove"})).is_err());
        let visible = when(&state, "relocated", json!({"token": "t", "file": file(8)})).unwrap();
        let settling = when(&visible, "settle_intended", json!({"token": "t", "how": "remove"})).unwrap();
        assert!(when(&visible, "copy_unmarked", json!({"token": "t"})).is_err(), "its end was not decided");
        assert!(when(&settling, "copy_unmarked", json!({"token": "t"})).unwrap().copies.is_empty(), "it was continued");
        assert!(when(&settling, "copy_removed", json!({"token": "t"})).unwrap().copies.is_empty());
        assert!(matches!(when(&visible, "swept", json!({"tokens": ["t"], "temps": []})), Err(Illegal::NoSweep)));
        let sweeping = when(&visible, "sweep_intended", json!({"tokens": ["t"], "temps": []})).unwrap();
        assert!(when(&sweeping, "swept", json!({"tokens": ["t"], "temps": []})).unwrap().copies.is_empty());
    }

    #[test]
    fn a_bound_session_moves_the_head_without_a_segment_and_no_other_does() {
        let state = given(&[("session_bound", json!({"session": "A"}))]);
        assert!(when(&state, "chain_head_moved", json!({"to": at("B")})).is_err());
        let bound = when(&state, "chain_head_moved", json!({"to": at("A")})).unwrap();
        assert_eq!((head(&bound), bound.bound.is_none()), (Some("A"), true));
    }

    #[test]
    fn a_new_conversation_is_intended_until_the_head_moves() {
        let mut events = vec![("fresh_intended", json!({}))];
        assert!(given(&events).fresh_intended);
        events.extend(confirmed("s1", "A"));
        assert!(!given(&events).fresh_intended);
    }
}
