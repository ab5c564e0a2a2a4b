//! The preflight: eleven checks, in order, over the fold of the log and a snapshot of the world.
//!
//! `verdict = decide(fold(log), snapshot, request)`: no clock, no disk, no randomness. The view that is passed in is asked
//! as little as the answer needs, each question once; what it answered is the receipt's snapshot, and replaying that gives
//! the same verdict. Nothing is written and nothing is started.
//!
//! Where this deviates from the published algorithm on purpose, a test in `tests/preflight.rs` names it.

use std::collections::BTreeSet;

use crate::chain::asking::{Asking, Stop, unreadable};
use crate::chain::driver::{self, Driver};
use crate::chain::reconcile;
use crate::chain::request::{Ledger, Request};
use crate::chain::state::Placed;
use crate::chain::sweep;
use crate::chain::verdict::{Basis, Confidence, ConversationAt, Receipt, Step, TranscriptAt, Verdict};
use crate::event::{Means, Route, VerdictWord};
use crate::id::{Frontier, StreamName};
use crate::provider::{Finding, Launch, Place};
use crate::snapshot::{Ask, NodeKind, Recorder, Seen, SnapshotError, View};

/// Answers what the next spawn will do.
///
/// # Errors
///
/// [`SnapshotError`] only where `view` is a recording that lacks an answer. A world that cannot be read is a verdict
/// (`unknown`), not an error. Nothing is changed on disk.
///
/// # Examples
///
/// A replay: the snapshot of a receipt gives the same receipt.
///
/// ```
/// use throughline::chain::{preflight, Ledger, Request};
/// use throughline::event::VerdictWord;
/// use throughline::id::ProviderName;
/// use throughline::snapshot::Snapshot;
///
/// // No config dir: nothing is asked, nothing is known.
/// let request = Request::new(ProviderName::parse("claude")?, None, "/w/app");
/// let receipt = preflight(&Ledger::default(), &request, &mut Snapshot::default())?;
/// assert_eq!(receipt.verdict().verdict, VerdictWord::Unknown);
/// let again = preflight(&Ledger::default(), &request, &mut receipt.snapshot().clone())?;
/// assert!(receipt.is_current(&again));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn preflight(ledger: &Ledger, request: &Request, view: &mut dyn View) -> Result<Receipt, SnapshotError> {
    let mut recorder = Recorder::new(view);
    let ledger = &*reconcile::virtually(ledger, request, &mut recorder)?;
    let (mut verdict, mut lookup) = decide(ledger, request, &mut recorder, None)?;
    // A rejection may have been remembered under the snapshot as a whole: then it holds for this very one.
    let digest = recorder.snapshot().digest();
    let refused = ledger.agent.as_ref().and_then(|agent| {
        agent.rejected.iter().find(|(_, rejection)| rejection.snapshot == digest).map(|(session, _)| session.as_str())
    });
    if refused.is_some() {
        (verdict, lookup) = decide(ledger, request, &mut recorder, refused)?;
    }
    let snapshot = recorder.into_snapshot();
    let basis = Basis { streams: ledger.streams.clone(), snapshot: snapshot.digest(), lookup };
    Ok(Receipt::new(request.clone(), verdict, basis, snapshot))
}

type Decided = (Verdict, Option<crate::id::Digest>);

fn decide(
    ledger: &Ledger,
    request: &Request,
    recorder: &mut Recorder<'_>,
    refused: Option<&str>,
) -> Result<Decided, SnapshotError> {
    let early = |finding: Finding, detail: &str| {
        let mut answer = Answer::new(VerdictWord::Unknown);
        answer.steps.push(Step {
            id: "provider".into(),
            label: "the provider's rules".into(),
            ok: false,
            detail: detail.into(),
        });
        answer.findings.push(finding);
        (answer.into_verdict(), None)
    };
    let name = request.provider.family();
    let Some(rules) = request.rules.find(name, request.provider_version.as_deref()) else {
        let finding = Finding::new("unknown_provider", format!("there are no rules for provider {name:?}"));
        return Ok(early(finding.next("providers with rules: claude"), "no rules"));
    };
    if let Some(why) = &request.unusable {
        return Ok(early(Finding::new("not_utf8", why.clone()), why));
    }
    // Check 1: nothing to resume with, or nowhere to look.
    let flag = request.resume_flag.as_deref().or(rules.resume_flag()).unwrap_or("");
    if flag.is_empty() {
        return Ok(early(
            Finding::new("no_resume_flag", "the provider is started without a resume flag"),
            "no resume flag",
        ));
    }
    let Some(config_dir) = request.config_dir.clone() else {
        return Ok(early(Finding::new("no_config_dir", "no config dir is known for the spawn"), "no config dir"));
    };
    let asking = Asking {
        request,
        ledger,
        rules,
        place: Place { config_dir, cwd: request.cwd.clone() },
        view: recorder,
        hidden: BTreeSet::new(),
        candidate: None,
        refused,
        steps: Vec::new(),
        findings: Vec::new(),
        elsewhere: None,
        looked: std::collections::BTreeMap::new(),
        unread_identity: None,
    };
    Preflight { asking, route: Route::Held }.run(flag)
}

/// A verdict being put together.
pub(super) struct Answer {
    pub(super) word: VerdictWord,
    pub(super) session: Option<String>,
    pub(super) recoverable: Option<String>,
    pub(super) transcript: Option<TranscriptAt>,
    pub(super) conversation_at: Option<ConversationAt>,
    pub(super) route: Route,
    pub(super) means: Option<Means>,
    pub(super) confidence: Confidence,
    pub(super) findings: Vec<Finding>,
    pub(super) steps: Vec<Step>,
    pub(super) launch: Option<Launch>,
}

impl Answer {
    pub(super) fn new(word: VerdictWord) -> Self {
        Self {
            word,
            session: None,
            recoverable: None,
            transcript: None,
            conversation_at: None,
            route: Route::None,
            means: None,
            confidence: Confidence::Inferred,
            findings: Vec::new(),
            steps: Vec::new(),
            launch: None,
        }
    }

    fn into_verdict(self) -> Verdict {
        Verdict {
            verdict: self.word,
            session_id: self.session,
            recoverable_session_id: self.recoverable,
            transcript: self.transcript,
            conversation_at: self.conversation_at,
            route: self.route,
            means: self.means,
            confidence: self.confidence,
            findings: self.findings,
            steps: self.steps,
            launch: self.launch,
        }
    }
}

pub(super) struct Preflight<'a, 'v> {
    pub(super) asking: Asking<'a, 'v>,
    pub(super) route: Route,
}

impl<'a> Preflight<'a, '_> {
    fn run(mut self, flag: &str) -> Result<Decided, SnapshotError> {
        let mut answer = match self.checks() {
            Ok(answer) => answer,
            Err(Stop::Snapshot(error)) => return Err(error),
            Err(Stop::Unknown(finding)) => {
                self.asking.find(finding);
                Answer::new(VerdictWord::Unknown)
            }
            Err(Stop::Busy(finding)) => {
                self.asking.find(finding);
                Answer::new(VerdictWord::Busy)
            }
        };
        if matches!(answer.word, VerdictWord::Fresh | VerdictWord::Busy | VerdictWord::Unknown) {
            answer.conversation_at = self.asking.head().map(conversation_at);
        }
        if let Some(launch) = &mut answer.launch {
            let own = self.asking.rules.resume_flag().unwrap_or("");
            for argument in launch.argv.iter_mut().filter(|argument| argument.as_str() == own) {
                *argument = flag.into();
            }
        }
        match self.hook() {
            Ok(()) => {}
            Err(Stop::Snapshot(error)) => return Err(error),
            Err(Stop::Unknown(finding) | Stop::Busy(finding)) => self.asking.find(finding),
        }
        let of = answer.session.clone().or_else(|| self.asking.candidate.clone());
        let lookup = of.and_then(|id| self.asking.looked.get(&id).map(|looked| looked.digest));
        if !self.asking.rules_are_exact() {
            answer.confidence = Confidence::Inferred;
        }
        answer.findings = self.asking.findings;
        answer.steps = self.asking.steps;
        Ok((answer.into_verdict(), lookup))
    }

    /// An agent that is asked for and that no log knows: what it held may be stale, and nobody would say so.
    fn stranger(&mut self) {
        let Some(agent) = &self.asking.request.agent else { return };
        let stream = StreamName::Agent(agent.clone());
        let is_new = |known: &Frontier| known.version.0 == 0 && known.stream == stream;
        let finding = match &self.asking.ledger.streams {
            None => Finding::new("no_log", format!("there is no log, so nothing is known of agent {agent}"))
                .next("name the log, or bind the agent's conversation"),
            Some(streams) if streams.iter().any(is_new) => {
                Finding::new("agent_unknown", format!("the log knows nothing of agent {agent}"))
                    .next("see its name in `throughline log`, or bind its conversation")
            }
            Some(_) => return,
        };
        self.asking.find(finding);
    }

    fn checks(&mut self) -> Result<Answer, Stop> {
        let version = self.asking.rules.version();
        let exact = self.asking.rules_are_exact();
        let detail = format!("{} as observed on {version}", self.asking.rules.name());
        self.asking.step("provider", "the provider's rules", exact, detail);
        if !exact {
            let asked = self.asking.request.provider_version.clone().unwrap_or_default();
            let text = format!("version {asked} was not observed; the rules of {version} are used");
            self.asking.find(Finding::new("version_not_observed", text));
        }
        self.stranger();
        self.lease()?;
        self.surroundings()?;
        if let Some(agent) = self.asking.ledger.agent.as_ref()
            && agent.fresh_intended
        {
            self.asking.step(
                "intent",
                "what the user asked for",
                true,
                "a new conversation, after the head's last move",
            );
            let mut answer = self.fresh();
            answer.confidence = Confidence::Proven;
            return Ok(answer);
        }
        self.hide_leftovers()?;
        if self.asking.request.continue_newest && self.asking.request.session.is_none() {
            return self.newest();
        }
        self.candidate()
    }

    /// A session that the provider's hooks announced and the chain does not know: it counts once its file exists, and
    /// then the chain is behind. Said, never acted on: only a confirmation moves the head.
    fn hook(&mut self) -> Result<(), Stop> {
        let asking = &mut self.asking;
        let (Some(announced), Some(agent)) = (&asking.ledger.announced, &asking.ledger.agent) else { return Ok(()) };
        if agent.sessions.contains_key(&announced.session) {
            return Ok(());
        }
        let path = match &announced.transcript {
            Some(path) => Seen::Is(path.as_str().to_owned()),
            None => asking.rules.path_of(asking.view, &asking.place, announced.session.as_str())?,
        };
        let Seen::Is(path) = path else { return Ok(()) };
        if let Seen::Is(_) = asking.view.node(&path, true)? {
            let text = format!("a hook announced session {}, which the chain does not know", announced.session);
            asking.find(
                Finding::new("stale_chain", text).at(&path).next("if that is the conversation, bind the agent to it"),
            );
        }
        Ok(())
    }

    /// Check 2: another live driver.
    fn lease(&mut self) -> Result<(), Stop> {
        let Some(agent) = self.asking.ledger.agent.as_ref() else { return Ok(()) };
        let detail = match driver::driver(agent, self.asking.request.lease, None, self.asking.view)? {
            Driver::Held { why } => return Err(self.held(&why)),
            Driver::Ours => format!("epoch {} is the caller's own", agent.lease.epoch),
            Driver::Dead => "the holder and what it launched are dead; it can be reclaimed".into(),
            Driver::Nobody => "nobody holds it".into(),
        };
        self.asking.step("lease", "the agent's lease", true, detail);
        Ok(())
    }

    fn held(&mut self, why: &str) -> Stop {
        self.asking.step("lease", "the agent's lease", false, format!("held elsewhere: {why}"));
        Stop::Busy(Finding::new("lease_held", format!("another driver holds the agent's lease: {why}")))
    }

    /// Check 3: what everything rests on must be readable.
    fn surroundings(&mut self) -> Result<(), Stop> {
        let asking = &mut self.asking;
        match asking.rules.own_dir(asking.view, &asking.place)? {
            Seen::Is(_) => {}
            Seen::Absent => {
                return Err(Stop::Unknown(
                    Finding::new("cwd_missing", "the working directory does not exist; the CLI cannot start there")
                        .at(&asking.place.cwd.clone())
                        .next("create it, or ask for the directory that the conversation was in"),
                ));
            }
            Seen::Unreadable(why) => {
                let cwd = asking.place.cwd.clone();
                return Err(Stop::Unknown(unreadable(&cwd, &why)));
            }
        }
        // Its own name inside it: there only for a directory that may be entered.
        let cwd = asking.place.cwd.clone();
        match asking.view.node(&format!("{}/.", cwd.trim_end_matches('/')), true)? {
            Seen::Is(_) => {}
            Seen::Absent => {
                let text = "the working directory is no directory; the CLI cannot start there";
                return Err(Stop::Unknown(Finding::new("cwd_unusable", text).at(&cwd).next("name a directory")));
            }
            Seen::Unreadable(why) => return Err(Stop::Unknown(unreadable(&cwd, &why))),
        }
        let root = asking.rules.config_root(&asking.place);
        match asking.view.node(&root, true)? {
            Seen::Unreadable(why) => return Err(Stop::Unknown(unreadable(&root, &why))),
            Seen::Is(node) if node.kind == NodeKind::Special => {
                return Err(Stop::Unknown(unreadable(&root, "the config dir is a device, a pipe or a socket")));
            }
            Seen::Is(node) if node.kind != NodeKind::Dir => {
                let text = "the config dir is no directory: the CLI starts, and saves nothing";
                asking.find(Finding::new("not_a_directory", text).at(&root).next("name a directory"));
            }
            Seen::Is(_) | Seen::Absent => {}
        }
        let known: Vec<&Placed> =
            asking.ledger.agent.iter().flat_map(|agent| agent.sessions.values().chain(&agent.head)).collect();
        for placed in known {
            if asking.rules.config_root(&crate::chain::asking::place_of(&placed.at)) == root {
                asking.known_config_dir_is_there(&placed.at)?;
            }
        }
        Ok(())
    }

    /// Check 6: what the sweep before the spawn would remove counts as absent.
    fn hide_leftovers(&mut self) -> Result<(), Stop> {
        let asking = &mut self.asking;
        let (Some(agent), Some(uid)) = (asking.ledger.agent.as_ref(), asking.request.agent.as_ref()) else {
            return Ok(());
        };
        if agent.copies.is_empty() {
            return Ok(());
        }
        asking.hidden = match sweep::removable(uid, agent, asking.view)? {
            Seen::Is(hidden) => hidden,
            Seen::Absent => BTreeSet::new(),
            Seen::Unreadable(why) => {
                let finding =
                    Finding::new("leftover_unreadable", format!("what a dead spawn left cannot be judged: {why}"));
                return Err(Stop::Unknown(finding.next("make it readable for this user and ask again")));
            }
        };
        for path in asking.hidden.clone() {
            let finding = Finding::new("leftover", "a copy that a dead spawn left; it counts as absent").at(&path);
            asking.find(finding.next("the next spawn removes it first"));
        }
        let detail = format!("{} of {} leftover copies count as absent", asking.hidden.len(), agent.copies.len());
        asking.step("sweep", "leftovers of dead spawns", true, detail);
        Ok(())
    }
}

fn conversation_at(head: &Placed) -> ConversationAt {
    ConversationAt {
        session: head.at.session.as_str().into(),
        config_dir: head.at.config_dir.as_str().into(),
        cwd: head.at.cwd.as_str().into(),
        path: head.at.path.as_ref().map(|path| path.as_str().into()),
    }
}

impl Asking<'_, '_> {
    fn rules_are_exact(&self) -> bool {
        self.rules.is_observed(self.request.provider_version.as_deref())
    }
}
