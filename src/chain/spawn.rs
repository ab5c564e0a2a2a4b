//! The act that a verdict is about: one spawn of an agent, under its lease, in one order.
//!
//! Lock → lease, on the condition that the log is where the receipt found it → observe → decide again → compare the plans →
//! sweep → relocate where it goes by a copy → `spawned` → launch, held → `launched` → reports → one append of proof, head and
//! settling → files → `segment_ended` → lease back. What the preflight said is what is launched, or the answer is a [`Drift`]
//! before anything was started.
//!
//! A refusal by the provider is remembered with what it rested on. Then, where the caller wants it, the plan is made anew:
//! at most once it is a recovery, then it is a new conversation; it never goes round.

use crate::chain::actor::{ActError, Actor, Driven};
use crate::chain::lease::{self, LeaseError, Taken};
use crate::chain::ledger;
use crate::chain::leftovers;
use crate::chain::place::{self, PlaceError, facts};
use crate::chain::preflight::preflight;
use crate::chain::relocate::{self, RelocateError, Relocation};
use crate::chain::request::{Ledger, Request};
use crate::chain::segment::{Plan, ProcessOutcome, Segment};
use crate::chain::track::{Asked, Track};
use crate::chain::verdict::{Expected, Receipt, Verdict};
use crate::event::{
    AgentDeclared, Event, GrowthSeen, How, LaunchFailed, Launched, Means, OutcomeObserved, RetentionExtended, Route,
    Rung, Spawned, VerdictWord,
};
use crate::id::{AgentId, PaneId, PathText, SegmentId, SessionId, StreamName};
use crate::log::{Entry, Expectation};
use crate::provider::{Launch, LaunchAsk, Provider};
use crate::snapshot::Seen;
use crate::world::doors::{Command, DoorError, Fresh};

/// What is to be spawned.
#[derive(Clone, Debug)]
pub struct SpawnAsk<'a> {
    /// The very question of the preflight.
    pub request: &'a Request,
    /// The answer that the caller acted on, where it has one: anything else is drift.
    pub receipt: Option<&'a Expected>,
    /// Program and arguments instead of the provider's bare program; what resumes is added to them.
    pub command: &'a [String],
    /// Launch although it could not be told what will happen.
    pub anyway: bool,
    /// After a refusal, plan anew: a recovery, then a new conversation.
    pub falls_through: bool,
    /// Where a person sees it.
    pub pane: Option<PaneId>,
}

/// Why the plan is not the one of the receipt. Nothing was launched.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Drift {
    /// The log has moved.
    #[error("the log has moved since the receipt was given")]
    Log {
        /// The streams that moved.
        streams: Vec<StreamName>,
    },
    /// The world has moved, and another plan follows.
    #[error("the plan was {}, now it is {}", expected.verdict, found.verdict)]
    Plan {
        /// What the receipt said.
        expected: Box<Verdict>,
        /// What it would be now.
        found: Box<Verdict>,
    },
    /// A leftover that the plan counted as absent could not be removed.
    #[error("the leftover {path:?} could not be removed, and the plan had counted on it: {why}")]
    Sweep {
        /// Which.
        path: String,
        /// Why.
        why: String,
    },
}

/// Why nothing was launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// No agent was named: there is nothing to write the spawn down under.
    #[error("a spawn is written down under its agent; name it")]
    NoAgent,
    /// Somebody else holds the conversation.
    #[error("{why}")]
    Busy {
        /// Who, for people.
        why: String,
    },
    /// It could not be told what the spawn would do.
    #[error("it cannot be told what the spawn would do: {why}")]
    Unknown {
        /// Why, for people.
        why: String,
    },
    /// It is not what the receipt said.
    #[error(transparent)]
    Drift(Drift),
    /// The session could not be copied to where the provider looks. The head stays; no new conversation was begun.
    #[error(transparent)]
    Relocate(#[from] RelocateError),
    /// The process could not be started.
    #[error("the agent could not be started")]
    Launch(#[source] DoorError),
    /// The caller's own lease is over.
    #[error("{why}")]
    LeaseOver {
        /// Why, for people.
        why: String,
    },
    /// The world or the log failed.
    #[error(transparent)]
    Act(ActError),
}

impl<E: Into<ActError>> From<E> for SpawnError {
    fn from(error: E) -> Self {
        Self::Act(error.into())
    }
}

impl From<LeaseError> for SpawnError {
    fn from(error: LeaseError) -> Self {
        let why = error.to_string();
        match error {
            LeaseError::Held { .. } => Self::Busy { why },
            LeaseError::Moved { streams } => Self::Drift(Drift::Log { streams }),
            LeaseError::Over { .. } => Self::LeaseOver { why },
            LeaseError::Act(error) => Self::Act(error),
        }
    }
}

impl From<PlaceError> for SpawnError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Snapshot(error) => error.into(),
            PlaceError::Name(error) => error.into(),
        }
    }
}

/// One process that was launched: what was planned, and what came of it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The segment.
    pub segment: SegmentId,
    /// The plan.
    pub expected: Verdict,
    /// What happened; `unknown` where nothing was proved.
    pub actual: VerdictWord,
    /// The id that we chose for its session.
    pub minted: Option<SessionId>,
    /// The rest.
    pub heard: ProcessOutcome,
}

/// What a spawn did: its processes, one after another, and the last one's exit code.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In order; never empty.
    pub attempts: Vec<Attempt>,
    /// The exit code of the last one.
    pub code: i32,
}

/// Spawns.
///
/// Returns when the process is gone.
///
/// # Errors
///
/// [`SpawnError`]: nothing was launched, and the lease is given back. A copy that was made is removed, or is in the log for
/// the next sweep.
///
/// # Crash
///
/// What was intended and not finished is in the log; the next preflight answers as if it were swept and reconciled, and the
/// next spawn does that first. A child that lives keeps the agent busy.
pub fn spawn(actor: &mut Actor<'_>, ask: &SpawnAsk<'_>) -> Result<Outcome, SpawnError> {
    let uid = ask.request.agent.clone().ok_or(SpawnError::NoAgent)?;
    let taken = lease::take(actor, &uid, ask.request, ask.receipt)?;
    let mut request = ask.request.clone();
    request.lease = Some(taken.driven.epoch);
    let mut attempts = Vec::new();
    let result = Spawning { ask, request: &request, uid: &uid, taken: &taken }.run(actor, &mut attempts);
    let events = Vec::new();
    let released = lease::release(actor, &taken, events);
    // What was launched is told, also where something failed afterwards.
    match (result, attempts.last().map(|last| last.heard.code)) {
        (Err(error), None) => Err(error),
        (Err(error), Some(code)) => {
            if let Some(last) = attempts.last_mut() {
                last.heard.unrecorded.get_or_insert_with(|| error.to_string());
            }
            Ok(Outcome { attempts, code })
        }
        (Ok(()), code) => {
            if let (Err(error), Some(last)) = (released, attempts.last_mut()) {
                last.heard.unrecorded.get_or_insert_with(|| error.to_string());
            }
            Ok(Outcome { attempts, code: code.unwrap_or(0) })
        }
    }
}

/// How often a process is launched at most: as planned, as a recovery, as a new conversation.
const ATTEMPTS_MAX: usize = 3;

struct Spawning<'a> {
    ask: &'a SpawnAsk<'a>,
    request: &'a Request,
    uid: &'a AgentId,
    taken: &'a Taken,
}

impl Spawning<'_> {
    fn driven(&self) -> &Driven {
        &self.taken.driven
    }

    fn run(&self, actor: &mut Actor<'_>, attempts: &mut Vec<Attempt>) -> Result<(), SpawnError> {
        for round in 0..ATTEMPTS_MAX {
            let ledger = ledger::read(actor.log.records(), self.request)?;
            let receipt = preflight(&ledger, self.request, actor.view)?;
            let found = receipt.verdict();
            if let (0, Some(given)) = (round, self.ask.receipt)
                && !given.verdict.same_plan(found)
            {
                let (expected, found) = (Box::new(given.verdict.clone()), Box::new(found.clone()));
                return Err(SpawnError::Drift(Drift::Plan { expected, found }));
            }
            // After a recovery was refused, nothing else is tried but a new conversation.
            if round + 1 == ATTEMPTS_MAX && found.verdict != VerdictWord::Fresh {
                return Ok(());
            }
            let attempt = self.attempt(actor, &ledger, &receipt)?;
            let is_refused = attempt.heard.refused.is_some();
            attempts.push(attempt);
            if !is_refused || !self.ask.falls_through {
                return Ok(());
            }
        }
        Ok(())
    }

    fn attempt(&self, actor: &mut Actor<'_>, ledger: &Ledger, receipt: &Receipt) -> Result<Attempt, SpawnError> {
        let verdict = receipt.verdict();
        let rules = self.rules().ok_or_else(|| SpawnError::Unknown { why: why_of(verdict) })?;
        // Whatever the answer is, what dead spawns left goes: it would be in the way of others.
        self.sweep(actor, ledger, verdict)?;
        let launch = self.launch(rules, verdict)?;
        let mut plan = self.plan(actor, rules, receipt, &launch)?;
        if verdict.means == Some(Means::ByCopy) {
            plan.token = Some(self.relocate(actor, rules, verdict)?);
        }
        let events = self.beforehand(actor, ledger, rules, &plan, verdict)?;
        actor.record(self.uid, events)?;
        self.start(actor, &plan, &launch)?;
        let track = Track::new(Asked { how: plan.how, session: plan.session.clone(), minted: plan.minted.clone() });
        let heard = Segment::new(self.request, rules, self.driven(), &plan, track).listen(actor)?;
        self.clean(actor)?;
        let actual = actual(&plan, verdict, &heard);
        self.audit(actor, &plan, verdict, actual, &heard)?;
        Ok(Attempt { segment: plan.segment, expected: verdict.clone(), actual, minted: plan.minted, heard })
    }

    fn rules(&self) -> Option<&dyn Provider> {
        self.request.rules.find(self.request.provider.family(), self.request.provider_version.as_deref())
    }

    /// What is started: what the verdict says, or a plain process where nothing can be resumed by its nature.
    fn launch(&self, rules: &dyn Provider, verdict: &Verdict) -> Result<Launch, SpawnError> {
        match verdict.verdict {
            VerdictWord::Busy => Err(SpawnError::Busy { why: why_of(verdict) }),
            VerdictWord::Unknown => {
                let is_plain = verdict.findings.iter().any(|finding| finding.code == "no_resume_flag");
                if !is_plain && !self.ask.anyway {
                    return Err(SpawnError::Unknown { why: why_of(verdict) });
                }
                Ok(rules.launch(&place::place(self.request), &LaunchAsk::Fresh))
            }
            VerdictWord::Resume | VerdictWord::Recover | VerdictWord::Fresh => {
                verdict.launch.clone().ok_or_else(|| SpawnError::Unknown { why: why_of(verdict) })
            }
        }
    }

    /// Removes what dead spawns left; what the plan counted as absent must be gone then.
    fn sweep(&self, actor: &mut Actor<'_>, ledger: &Ledger, verdict: &Verdict) -> Result<(), SpawnError> {
        let Some(agent) = &ledger.agent else { return Ok(()) };
        let report = leftovers::sweep(actor, self.driven(), agent)?;
        let counted =
            |path: &str| verdict.findings.iter().any(|it| it.code == "leftover" && it.path.as_deref() == Some(path));
        match report.left.iter().find(|left| counted(left.path.as_str())) {
            Some(left) => {
                let (path, why) = (left.path.as_str().to_owned(), left.why.clone());
                Err(SpawnError::Drift(Drift::Sweep { path, why }))
            }
            None => Ok(()),
        }
    }

    fn plan(
        &self,
        actor: &mut Actor<'_>,
        rules: &dyn Provider,
        receipt: &Receipt,
        launch: &Launch,
    ) -> Result<Plan, SpawnError> {
        let verdict = receipt.verdict();
        let session = verdict.session_id.as_deref().map(SessionId::parse).transpose()?;
        let how = match (&session, launch.mints) {
            (None, _) => How::Fresh,
            (Some(_), true) => How::Fork,
            (Some(_), false) => How::Resume,
        };
        let minted = if launch.mints { Some(SessionId::parse(actor.doors.fresh(Fresh::Session))?) } else { None };
        let reads = verdict.transcript.as_ref().map(|transcript| transcript.path.clone());
        let (mut before, mut turns) = (None, 0);
        if let Some(path) = &reads {
            // What is proved later is proved against this: what could not be read now must not count as nothing.
            let untold = || SpawnError::Unknown { why: format!("{path:?} could not be read again") };
            before = Some(facts(actor.view, path)?.ok_or_else(untold)?);
            let found = rules.lookup_path(actor.view, path, self.request.depth)?;
            turns = found.transcript.ok_or_else(untold)?.reached;
        }
        Ok(Plan {
            segment: SegmentId::parse(actor.doors.fresh(Fresh::Segment))?,
            how,
            session,
            minted,
            token: None,
            reads,
            before,
            turns,
            snapshot: receipt.basis().lookup.unwrap_or(receipt.basis().snapshot),
            tells: rules.tells(self.ask.command),
        })
    }

    fn relocate(
        &self,
        actor: &mut Actor<'_>,
        rules: &dyn Provider,
        verdict: &Verdict,
    ) -> Result<crate::id::Token, SpawnError> {
        let none = || SpawnError::Unknown { why: "the plan names no session to copy".into() };
        let (id, from) = verdict.session_id.as_ref().zip(verdict.transcript.as_ref()).ok_or_else(none)?;
        let destination = match rules.path_of(actor.view, &place::place(self.request), id)? {
            Seen::Is(path) => path,
            Seen::Absent | Seen::Unreadable(_) => return Err(none()),
        };
        let what = Relocation { session: SessionId::parse(id.as_str())?, source: from.path.clone(), destination };
        Ok(relocate::relocate(actor, self.driven(), rules, &what)?)
    }

    /// What is to be said before a process is launched, and the source of a fork saved from the agent's own clean-up.
    fn beforehand(
        &self,
        actor: &mut Actor<'_>,
        ledger: &Ledger,
        rules: &dyn Provider,
        plan: &Plan,
        verdict: &Verdict,
    ) -> Result<Vec<Event>, SpawnError> {
        let epoch = self.driven().epoch;
        let mut events: Vec<Event> = Vec::new();
        let agent = ledger.agent.as_ref();
        if agent.is_none_or(|agent| agent.provider.is_none()) {
            let forked_from = self.request.fork_of.clone();
            events.push(AgentDeclared { provider: self.request.provider.clone(), forked_from }.into());
        }
        if plan.how == How::Fork
            && let Some(path) = verdict.findings.iter().find(|it| it.code == "retention").and_then(|it| it.path.clone())
        {
            let mtime_before_ms = actor.doors.touch(&path)?;
            events.push(RetentionExtended { path: PathText::parse(path)?, mtime_before_ms, epoch }.into());
        }
        if let (Route::Fork, Some(head), Some(found)) =
            (verdict.route, agent.and_then(|agent| agent.head.as_ref()), plan.before.clone())
            && let Some(recorded) = head.at.file.clone()
        {
            events.push(GrowthSeen { session: head.at.session.clone(), recorded, found, epoch }.into());
        }
        let place = place::place(self.request);
        events.push(
            Spawned {
                segment: plan.segment.clone(),
                pane: self.ask.pane.clone(),
                cwd: PathText::parse(place.cwd.as_str())?,
                config_dir: PathText::parse(place::config_text(rules, &place))?,
                identity: place::identity(self.request, rules, actor.view)?,
                provider: self.request.provider.clone(),
                how: plan.how,
                means: verdict.means.unwrap_or(Means::InPlace),
                session: plan.session.clone(),
                minted: plan.minted.clone(),
                token: plan.token.clone(),
                rung: if plan.how == How::Fresh { Rung::Fresh } else { Rung::Native },
                epoch,
            }
            .into(),
        );
        Ok(events)
    }

    /// Launches the process, writes down which it is, and lets it go.
    fn start(&self, actor: &mut Actor<'_>, plan: &Plan, launch: &Launch) -> Result<(), SpawnError> {
        let (segment, epoch) = (plan.segment.clone(), self.driven().epoch);
        let argv = argv(self.ask.command, launch, plan.minted.as_ref().map(|id| self.minting(id)).unwrap_or_default());
        let command = Command { argv, cwd: launch.cwd.clone(), env: launch.env.clone(), tells: plan.tells };
        let launched = match actor.doors.launch(&command) {
            Ok(launched) => launched,
            Err(error) => {
                let failed = LaunchFailed { segment, why: error.to_string(), epoch };
                actor.record(self.uid, vec![failed.into()])?;
                self.clean(actor)?;
                return Err(SpawnError::Launch(error));
            }
        };
        let event = Launched { segment, pid: launched.pid, started: launched.started, epoch };
        if let Err(error) = actor.record(self.uid, vec![event.into()]) {
            actor.doors.abandon();
            return Err(error.into());
        }
        Ok(actor.doors.release()?)
    }

    fn minting(&self, id: &SessionId) -> Vec<String> {
        self.rules().map(|rules| rules.minting(id.as_str())).unwrap_or_default()
    }

    /// A copy that no process uses any more and that nothing was proved of goes at once.
    fn clean(&self, actor: &mut Actor<'_>) -> Result<(), SpawnError> {
        let (_, state) = actor.log.records().state(&StreamName::Agent(self.uid.clone()))?;
        if let Some(agent) = state.agent().filter(|agent| !agent.copies.is_empty()) {
            leftovers::sweep(actor, self.driven(), &agent)?;
        }
        Ok(())
    }

    fn audit(
        &self,
        actor: &mut Actor<'_>,
        plan: &Plan,
        verdict: &Verdict,
        actual: VerdictWord,
        heard: &ProcessOutcome,
    ) -> Result<(), SpawnError> {
        let (segment, session) = (plan.segment.clone(), heard.session.clone());
        let event = OutcomeObserved { segment, expected: verdict.verdict, actual, session };
        let stream = StreamName::Audit(self.uid.clone());
        actor.append(&[Entry { stream, expected: Expectation::Any, events: vec![event.into()] }])?;
        Ok(())
    }
}

/// What happened, in the words of a verdict. Nothing proved is `unknown`.
fn actual(plan: &Plan, verdict: &Verdict, heard: &ProcessOutcome) -> VerdictWord {
    match (&heard.session, plan.how) {
        (None, _) => VerdictWord::Unknown,
        (Some(_), How::Fresh) => VerdictWord::Fresh,
        (Some(_), How::Resume | How::Fork) if heard.drift.is_some() => VerdictWord::Fresh,
        (Some(_), How::Resume | How::Fork) => verdict.verdict,
    }
}

/// The command with what resumes: the caller's own before the first `--`, else at the end.
fn argv(command: &[String], launch: &Launch, minting: Vec<String>) -> Vec<String> {
    let (program, resuming) = launch.argv.split_at(launch.argv.len().min(1));
    let own = if command.is_empty() { program } else { command };
    let at = own.iter().position(|argument| argument == "--").unwrap_or(own.len());
    let (before, after) = own.split_at(at);
    [before, resuming, &minting, after].concat()
}

fn why_of(verdict: &Verdict) -> String {
    verdict.findings.first().map_or_else(|| verdict.verdict.to_string(), |finding| finding.detail.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_resumes_stands_before_the_first_double_dash() {
        let launch = Launch {
            argv: ["claude", "--resume", "S"].map(str::to_owned).to_vec(),
            cwd: "/w".into(),
            env: BTreeMap::new(),
            mints: true,
        };
        for (command, expected) in [
            ("", "claude --resume S --session-id M"),
            ("claude -p hi", "claude -p hi --resume S --session-id M"),
            ("npx claude -p -- hi", "npx claude -p --resume S --session-id M -- hi"),
        ] {
            let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            let minting = ["--session-id", "M"].map(str::to_owned).to_vec();
            assert_eq!(argv(&command, &launch, minting).join(" "), expected);
        }
    }
}
