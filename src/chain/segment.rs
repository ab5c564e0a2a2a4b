//! One provider process under a lease: launched, listened to, ended; what it proves goes into the log as it is proved.
//!
//! The process is held until the log says that it was launched. A proof and the move of the head are one append, together
//! with the intent to settle its copy; only then is a file touched. An attempt, an echo, a failed launch move nothing.

use crate::chain::actor::{ActError, Actor, Driven};
use crate::chain::leftovers;
use crate::chain::place::{self, PlaceError, facts};
use crate::chain::request::Request;
use crate::chain::state::AgentState;
use crate::chain::track::{Told, Track};
use crate::event::{
    ChainHeadMoved, Event, FileFacts, ForkReported, How, ResumeConfirmed, ResumeRejected, SegmentEnded,
    SessionReported, Settle, SettleIntended, TurnConfirmed,
};
use crate::id::{Digest, SegmentId, SessionId, StreamName, Token};
use crate::provider::{Output, Provider, Report};
use crate::snapshot::{Ask, Seen};
use crate::world::doors::{DoorKind, Heard};

/// What one process was launched for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The segment.
    pub segment: SegmentId,
    /// What was asked of the provider.
    pub how: How,
    /// The attempted session; of a fork, its source.
    pub session: Option<SessionId>,
    /// The id that we chose.
    pub minted: Option<SessionId>,
    /// The copy that it uses.
    pub token: Option<Token>,
    /// The file that it reads.
    pub reads: Option<String>,
    /// That file before the launch.
    pub before: Option<FileFacts>,
    /// How many turns of it are reached.
    pub turns: u64,
    /// What a refusal is remembered under.
    pub snapshot: Digest,
    /// Whether the process says on stdout what becomes of its session.
    pub tells: bool,
}

/// What became of one process.
#[derive(Clone, Debug, Default)]
pub struct ProcessOutcome {
    /// Its exit code, or 128 + the signal.
    pub code: i32,
    /// The session that it proved to be in last.
    pub session: Option<SessionId>,
    /// The provider's words, where it refused the session.
    pub refused: Option<String>,
    /// The sessions that it named and cannot have.
    pub foreign: Vec<String>,
    /// What was proved and is not what was planned, for people.
    pub drift: Option<String>,
    /// Why the log does not have all of it.
    pub unrecorded: Option<String>,
}

/// Why something is not said now.
enum Later {
    /// It may be possible later.
    Why(String),
    /// This actor cannot go on.
    Never(ActError),
}

/// A process that runs, and what is not yet in the log.
pub(super) struct Segment<'r> {
    request: &'r Request,
    rules: &'r dyn Provider,
    driven: &'r Driven,
    plan: &'r Plan,
    track: Track,
    told: ProcessOutcome,
    /// Events that the log did not take yet, in order.
    waiting: Vec<Event>,
    /// The size of the watched file when it was last looked at.
    looked_bytes: Option<u64>,
    settling: bool,
    /// A session that the process proved to be in, and whether that is news: not yet said, since not yet durable.
    unproved: Option<(SessionId, bool)>,
    /// Why not.
    why_unproved: Option<String>,
}

impl<'r> Segment<'r> {
    pub(super) fn new(
        request: &'r Request,
        rules: &'r dyn Provider,
        driven: &'r Driven,
        plan: &'r Plan,
        track: Track,
    ) -> Self {
        let (told, waiting) = (ProcessOutcome::default(), Vec::new());
        Self {
            request,
            rules,
            driven,
            plan,
            track,
            told,
            waiting,
            looked_bytes: None,
            settling: false,
            unproved: None,
            why_unproved: None,
        }
    }

    /// Listens until the process is gone. What the log does not take is offered again with the next event; in the end it is
    /// said.
    pub(super) fn listen(mut self, actor: &mut Actor<'_>) -> Result<ProcessOutcome, ActError> {
        loop {
            match actor.doors.hear()? {
                Heard::Stdout(line) => self.line(actor, &line, Output::Stdout)?,
                Heard::Stderr(line) => self.line(actor, &line, Output::Stderr)?,
                Heard::Quiet if self.plan.tells => {}
                Heard::Quiet => self.look(actor)?,
                Heard::Ended(code) => {
                    self.look(actor)?;
                    return self.end(actor, code);
                }
            }
        }
    }

    fn line(&mut self, actor: &mut Actor<'_>, line: &[u8], from: Output) -> Result<(), ActError> {
        match self.rules.report(line, from) {
            Some(report) => self.take(actor, &report),
            None => Ok(()),
        }
    }

    /// What the file says where the process itself does not: an answered turn more than there was.
    fn look(&mut self, actor: &mut Actor<'_>) -> Result<(), ActError> {
        let watched = match (&self.plan.minted, &self.plan.session) {
            (Some(minted), _) => Some((minted.clone(), self.path_of(actor, minted)?.is())),
            (None, Some(session)) if self.plan.how == How::Resume => Some((session.clone(), self.plan.reads.clone())),
            (None, _) => None,
        };
        let Some((session, Some(path))) = watched else { return Ok(()) };
        let Seen::Is(node) = actor.view.node(&path, true)? else { return Ok(()) };
        if self.looked_bytes.replace(node.bytes) == Some(node.bytes) {
            return Ok(());
        }
        let found = self.rules.lookup_path(actor.view, &path, self.request.depth)?;
        let more = found.transcript.is_some_and(|it| !it.unanswered && it.reached > self.plan.turns);
        if more && self.track.confirmed() != Some(&session) {
            self.take(actor, &Report::Turn { session: session.as_str().into() })?;
        }
        Ok(())
    }

    fn take(&mut self, actor: &mut Actor<'_>, report: &Report) -> Result<(), ActError> {
        for told in self.track.hear(report) {
            match told {
                Told::Reported(session) => {
                    let event = self.reported(session);
                    self.waiting.push(event);
                }
                Told::Foreign { session } => self.told.foreign.push(session),
                Told::Refused { why } => {
                    if let Some(session) = self.plan.session.clone() {
                        let (segment, snapshot) = (self.plan.segment.clone(), self.plan.snapshot);
                        let epoch = self.driven.epoch;
                        let rejected = ResumeRejected { segment, session, why, snapshot, for_good: false, epoch };
                        self.waiting.push(rejected.into());
                    }
                }
                Told::Confirmed { session, first } => {
                    let is_new = first || self.unproved.as_ref().is_some_and(|(_, is_new)| *is_new);
                    self.unproved = Some((session, is_new));
                    self.prove(actor)?;
                }
            }
        }
        self.write(actor)
    }

    /// Says what was proved, once it is durable: what the log calls proved must outlast a power cut, and the agent itself has
    /// not seen to that. Where it cannot be made durable now, it is tried again with the next proof, and at the end.
    fn prove(&mut self, actor: &mut Actor<'_>) -> Result<(), ActError> {
        let Some((session, first)) = self.unproved.clone() else { return Ok(()) };
        let at = match self.durable(actor, &session) {
            Ok(at) => at,
            Err(Later::Never(error)) => return Err(error),
            Err(Later::Why(why)) => {
                self.why_unproved = Some(why);
                return Ok(());
            }
        };
        self.unproved = None;
        self.why_unproved = None;
        self.confirmed(actor, session, first, at)
    }

    /// Makes the session's file durable, and gives its facts. Nothing where its provider keeps it elsewhere.
    fn durable(&self, actor: &mut Actor<'_>, session: &SessionId) -> Result<Option<(String, FileFacts)>, Later> {
        let path = match self.path_of(actor, session).map_err(Later::Never)? {
            Seen::Is(path) => path,
            Seen::Absent => return Ok(None),
            Seen::Unreadable(why) => return Err(Later::Why(why)),
        };
        match actor.doors.sync_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind == DoorKind::Died => return Err(Later::Never(error.into())),
            Err(error) => return Err(Later::Why(error.to_string())),
        }
        match facts(actor.view, &path).map_err(|error| Later::Never(error.into()))? {
            Some(file) => Ok(Some((path, file))),
            None => Err(Later::Why(format!("{path:?} could not be read"))),
        }
    }

    fn reported(&self, session: SessionId) -> Event {
        let (segment, epoch) = (self.plan.segment.clone(), self.driven.epoch);
        match (&self.plan.session, self.plan.how) {
            (Some(from), How::Fork) => ForkReported { segment, from: from.clone(), session, epoch }.into(),
            (_, How::Fresh | How::Resume | How::Fork) => SessionReported { segment, session, epoch }.into(),
        }
    }

    fn confirmed(
        &mut self,
        actor: &mut Actor<'_>,
        session: SessionId,
        first: bool,
        at: Option<(String, FileFacts)>,
    ) -> Result<(), ActError> {
        let (path, file) = at.map_or((None, None), |(path, file)| (Some(path), Some(file)));
        let (segment, epoch) = (self.plan.segment.clone(), self.driven.epoch);
        if first {
            self.compare(actor, path.as_deref())?;
        }
        let is_resume = self.plan.how == How::Resume && self.plan.session.as_ref() == Some(&session);
        self.waiting.push(if is_resume && first {
            ResumeConfirmed { segment: segment.clone(), session: session.clone(), file: file.clone(), epoch }.into()
        } else {
            TurnConfirmed { segment: segment.clone(), session: session.clone(), file: file.clone(), epoch }.into()
        });
        if !first {
            return Ok(());
        }
        let at = path.as_deref().map(|path| (path, file));
        let to = place::location(self.request, self.rules, actor.view, &session, at).map_err(of_place)?;
        // Where it moves from is filled in when it is written: something may still wait before it.
        self.waiting.push(ChainHeadMoved { from: None, to, segment: Some(segment), epoch }.into());
        if let Some(token) = &self.plan.token {
            let how = if self.plan.session.as_ref() == Some(&session) { Settle::Unmark } else { Settle::Remove };
            self.waiting.push(SettleIntended { token: token.clone(), how, epoch }.into());
            self.settling = true;
        }
        Ok(())
    }

    /// Whether the history came along.
    fn compare(&mut self, actor: &mut Actor<'_>, path: Option<&str>) -> Result<(), ActError> {
        let Some(path) = path else { return Ok(()) };
        let found = self.rules.lookup_path(actor.view, path, self.request.depth)?;
        let reached = found.transcript.map(|transcript| transcript.reached);
        let came = match (self.plan.how, &self.plan.before) {
            (How::Fresh, _) | (How::Resume, None) => true,
            (How::Resume, Some(before)) => actor.view.tail(path, before.bytes)? == Seen::Is(before.tail),
            (How::Fork, _) => reached.is_none_or(|reached| reached > self.plan.turns),
        };
        if !came {
            self.told.drift = Some("the history that was to be continued is not in the session's file".into());
        } else if self.plan.how == How::Resume && reached.is_some_and(|reached| reached <= self.plan.turns + 1) {
            // The question and its answer are two.
            self.told.drift = Some("somebody else wrote into the session's file, and hides what was answered".into());
        }
        Ok(())
    }

    /// Where a session of this process lies: where it was found, or where its provider puts a new one.
    fn path_of(&self, actor: &mut Actor<'_>, session: &SessionId) -> Result<Seen<String>, ActError> {
        if self.plan.how == How::Resume && self.plan.session.as_ref() == Some(session) {
            return Ok(self.plan.reads.clone().map_or(Seen::Absent, Seen::Is));
        }
        Ok(self.rules.path_of(actor.view, &place::place(self.request), session.as_str())?)
    }

    /// Offers the log what waits; then the copy is settled, if its end was decided.
    fn write(&mut self, actor: &mut Actor<'_>) -> Result<(), ActError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let state = self.state(actor)?;
        let head = state.head.as_ref().map(|head| head.at.origin());
        let mut events = self.waiting.clone();
        for event in &mut events {
            if let Event::Agent(crate::event::AgentEvent::ChainHeadMoved(body)) = event {
                body.from.clone_from(&head);
            }
        }
        match actor.record(&self.driven.uid, events) {
            Ok(_) => {
                self.waiting.clear();
                self.told.unrecorded = None;
            }
            Err(error) => {
                self.told.unrecorded = Some(error.to_string());
                return Ok(());
            }
        }
        if std::mem::take(&mut self.settling)
            && let Some(token) = &self.plan.token
        {
            let state = self.state(actor)?;
            leftovers::settle(actor, self.driven, &state, token)?;
        }
        Ok(())
    }

    fn state(&self, actor: &Actor<'_>) -> Result<AgentState, ActError> {
        let (_, state) = actor.log.records().state(&StreamName::Agent(self.driven.uid.clone()))?;
        Ok(state.agent().unwrap_or_default())
    }

    fn end(mut self, actor: &mut Actor<'_>, code: i32) -> Result<ProcessOutcome, ActError> {
        self.prove(actor)?;
        self.told.code = code;
        self.told.session = self.track.confirmed().cloned();
        self.told.refused = self.track.refused().map(str::to_owned);
        let file = match self.told.session.clone() {
            Some(session) => match self.path_of(actor, &session)?.is() {
                Some(path) => facts(actor.view, &path)?,
                None => None,
            },
            None => None,
        };
        let reason = match code {
            0 => "exited",
            1..=128 => "failed",
            _ => "ended by a signal",
        };
        let (segment, epoch) = (self.plan.segment.clone(), self.driven.epoch);
        self.waiting.push(SegmentEnded { segment, reason: reason.into(), code: Some(code), file, epoch }.into());
        self.write(actor)?;
        if let Some(why) = self.why_unproved {
            self.told.unrecorded.get_or_insert(why);
        }
        Ok(self.told)
    }
}

fn of_place(error: PlaceError) -> ActError {
    match error {
        PlaceError::Snapshot(error) => error.into(),
        PlaceError::Name(error) => error.into(),
    }
}
