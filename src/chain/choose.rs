//! Checks 5 and 7 to 11: which session the spawn will use, by the gate, by the provider's lookup, or by a scan.
//!
//! The second half of the preflight, apart from it only for size: it turns a candidate into an answer.

use std::collections::BTreeSet;

use crate::chain::asking::{Looked, Stop, unreadable};
use crate::chain::gate::{self, Decision, Identities, Row};
use crate::chain::preflight::{Answer, Preflight};
use crate::chain::verdict::{Confidence, TranscriptAt, WritesTo};
use crate::event::{Means, Route, VerdictWord};
use crate::provider::{ConfigDir, Finding, LaunchAsk, Outcome, Place, Scanned};
use crate::snapshot::{Life, Seen};

/// How many sessions with a live owner the recovery scan passes over before it gives up.
const OWNED_SKIPPED_MAX: usize = 64;

impl Preflight<'_, '_> {
    /// Checks 5 and 7 to 11.
    pub(super) fn candidate(&mut self) -> Result<Answer, Stop> {
        let request = self.asking.request;
        let rules = self.asking.rules;
        let given = |id: &'_ Option<String>| {
            id.as_deref().map(|id| rules.id_as_taken(id).to_owned()).filter(|id| !id.is_empty())
        };
        let (held, history) = (given(&request.session), given(&request.history));
        let (held, history) = (held.as_deref(), history.as_deref());
        match (held, history) {
            (Some(id), _) => {
                self.asking.step("session-id", "the session id that is held", true, id);
                self.asking.candidate = Some(id.into());
                self.route = Route::Held;
                self.gated(id, true)
            }
            (None, Some(id)) => {
                self.asking.step("session-id", "the session id that is held", false, "none");
                self.asking.step("history", "the session of the history that the pane renders", true, id);
                self.asking.candidate = Some(id.into());
                self.route = Route::History;
                self.gated(id, false)
            }
            (None, None) => {
                self.asking.step("session-id", "the session id that is held", false, "none");
                self.without_candidate()
            }
        }
    }

    /// Nothing held: only a fork of the parent's conversation may be taken; else fresh, with what is on disk as evidence.
    fn without_candidate(&mut self) -> Result<Answer, Stop> {
        if self.asking.head().is_none() && self.asking.ledger.parent.is_some() {
            let (decision, row) = gate::decide(&mut self.asking)?;
            if decision == Decision::ForkFrom {
                return self.forked(Route::ForkFrom, row);
            }
            self.chain_step(decision, row);
        }
        if let Some(head) = self.asking.head() {
            let id = head.at.session.as_str();
            self.asking.find(
                Finding::new("chain_not_held", format!("the log knows this agent's conversation: session {id}"))
                    .next(format!("ask with --session {id} to continue it")),
            );
        }
        let mut answer = self.fresh();
        if let Some(found) = self.scan(&BTreeSet::new())? {
            answer.recoverable = Some(found.session);
        }
        Ok(answer)
    }

    /// Checks 7 and 8: the gate, where there is a chain or a fork source.
    fn gated(&mut self, id: &str, held: bool) -> Result<Answer, Stop> {
        let chained = self.asking.head().is_some() || self.asking.ledger.parent.is_some();
        if !chained {
            return self.looked(id, held);
        }
        // An unreachable history may only be relocated or forked from.
        let reachable = held || self.asking.look_surely(id)?.lookup.outcome == Outcome::Continues;
        let (decision, row) = gate::decide(&mut self.asking)?;
        let counts = reachable || matches!(decision, Decision::Relocate | Decision::ForkFrom);
        if !counts {
            self.asking.step("transcript", "the session's file", false, "out of reach; a rendered history is not held");
            return Ok(self.fresh());
        }
        match decision {
            Decision::Allow => {
                if row == Row::HeadRejected && !gate::Facts::candidate_is_head(&self.asking) {
                    // A refused head never revives a stale id: with a chain, only its head is ever resumed.
                    self.chain_step(Decision::Refuse, row);
                    self.explain(row)?;
                    return Ok(self.refused());
                }
                self.looked(id, held)
            }
            Decision::Redirect => {
                self.chain_step(decision, row);
                self.route = Route::Redirect;
                let head = self.head_id();
                self.looked(&head, held)
            }
            Decision::Fork => {
                self.chain_step(decision, row);
                let head = self.head_id();
                let looked = self.asking.look_surely(&head)?;
                self.owners(&head, true)?;
                let path = looked.lookup.path.clone().unwrap_or_default();
                self.resume(&head, &path, Route::Fork, Means::InPlace, true, &looked.lookup.findings)
            }
            Decision::Relocate => self.forked(Route::Relocate, row),
            Decision::ForkFrom => self.forked(Route::ForkFrom, row),
            Decision::Refuse => {
                self.chain_step(decision, row);
                self.explain(row)?;
                Ok(self.refused())
            }
        }
    }

    /// Why the gate refused, with what the lookup of the head says: a person is about to see a blank conversation.
    fn explain(&mut self, row: Row) -> Result<(), Stop> {
        let Some(head) = self.asking.head() else { return Ok(()) };
        let id = head.at.session.as_str();
        let finding = match row {
            Row::IdentityDiffers => Finding::new(
                "identity_differs",
                "the conversation belongs to another identity than the one signed in here",
            )
            .next("sign in as the one that it belongs to, or bind the agent to another conversation"),
            Row::HeadRejected => {
                Finding::new("rejected_before", "the provider refused the head, and nothing has changed")
            }
            Row::NoChain
            | Row::ForkSource
            | Row::ForkSourceUnusable
            | Row::HeadChanged
            | Row::HeadHeld
            | Row::HeadNotHeld
            | Row::HeadElsewhere
            | Row::OutOfReachHeld
            | Row::OutOfReach => {
                let looked = self.asking.look_surely(id)?;
                for finding in looked.lookup.findings {
                    self.asking.find(finding);
                }
                Finding::new(
                    "head_out_of_reach",
                    format!("the conversation is session {id}, and the CLI cannot reach it from here"),
                )
                .next("ask from the login and the directory that conversation_at names, or bind the agent anew")
            }
        };
        self.asking.find(finding);
        Ok(())
    }

    fn head_id(&self) -> String {
        self.asking.head().map(|head| head.at.session.as_str().to_owned()).unwrap_or_default()
    }

    fn chain_step(&mut self, decision: Decision, row: Row) {
        let words = match row {
            Row::NoChain => "no chain",
            Row::ForkSource => "the parent's conversation can be forked",
            Row::ForkSourceUnusable => "the parent's conversation cannot be forked from here",
            Row::HeadRejected => "the provider refused the head under these observations",
            Row::IdentityDiffers => "the conversation belongs to another identity than the one signed in here",
            Row::HeadChanged => "the head's file was changed since it was confirmed: it is forked, not appended to",
            Row::HeadHeld => "the head is here and held",
            Row::HeadNotHeld => "the held id is stale: the conversation moved on",
            Row::HeadElsewhere => "the head lies where the CLI would not look; it is forked from there",
            Row::OutOfReachHeld => "the head is held and out of reach",
            Row::OutOfReach => "the head is out of reach, and another id is held",
        };
        let head = self.head_id();
        let detail = if head.is_empty() { words.to_owned() } else { format!("{words} (head {head})") };
        self.asking.step("chain", "the agent's chain", decision != Decision::Refuse, detail);
    }

    fn refused(&mut self) -> Answer {
        let mut answer = self.fresh();
        answer.confidence = Confidence::Proven;
        answer
    }

    /// Checks 9 to 11 for one session.
    fn looked(&mut self, id: &str, held: bool) -> Result<Answer, Stop> {
        let looked = match self.asking.look_surely(id) {
            Ok(looked) => looked,
            Err(stop) => {
                self.asking.step("transcript", "the session's file", false, "it cannot be told");
                return Err(stop);
            }
        };
        if let Some(finding) = self.other_identity(id)? {
            self.asking.step("transcript", "the session's file", false, finding.detail.clone());
            self.asking.find(finding);
            return Ok(self.refused());
        }
        let rejected = self.asking.rejected(id, looked.digest);
        if looked.lookup.outcome == Outcome::Continues && !rejected {
            let path = looked.lookup.path.clone().unwrap_or_default();
            let turns = looked.lookup.transcript.as_ref().map_or(0, |transcript| transcript.reached);
            let detail = format!("{path} ({turns} messages of the history are reached)");
            self.asking.step("transcript", "the session's file", true, detail);
            let fork = self.asking.request.fork;
            self.owners(id, fork)?;
            return self.resume(id, &path, self.route, Means::InPlace, fork, &looked.lookup.findings);
        }
        self.not_resumable(id, &looked, rejected)?;
        if !held || self.asking.head().is_some() {
            return Ok(self.fresh());
        }
        let except = BTreeSet::from([id.to_owned()]);
        match self.scan(&except)? {
            Some(found) => {
                let text = format!("session {} is the largest conversation of this project", found.session);
                self.asking.step("recovery", "another conversation of this project", true, text);
                let fork = self.asking.request.fork;
                // What a refusal of it would be remembered under.
                self.asking.look(&found.session)?;
                let mut answer =
                    self.resume(&found.session, &found.path, Route::Recovery, Means::InPlace, fork, &[])?;
                answer.word = VerdictWord::Recover;
                answer.confidence = Confidence::Inferred;
                Ok(answer)
            }
            None => {
                self.asking.step("recovery", "another conversation of this project", false, "none");
                Ok(self.fresh())
            }
        }
    }

    fn not_resumable(&mut self, id: &str, looked: &Looked, rejected: bool) -> Result<(), Stop> {
        let detail = if rejected {
            let text = "the provider refused it, and nothing that it read has changed";
            self.asking.find(Finding::new("rejected_before", text));
            text.to_owned()
        } else {
            looked
                .lookup
                .findings
                .first()
                .map_or_else(|| "accepted, but no earlier turn is reached".into(), |finding| finding.detail.clone())
        };
        self.asking.step("transcript", "the session's file", false, detail);
        for finding in looked.lookup.findings.clone() {
            self.asking.find(finding);
        }
        self.elsewhere_by_also(id)
    }

    /// Further logins' folders are searched for evidence only.
    fn elsewhere_by_also(&mut self, id: &str) -> Result<(), Stop> {
        for dir in self.asking.request.also.clone() {
            let place = Place { config_dir: ConfigDir::Named(dir.clone()), cwd: self.asking.place.cwd.clone() };
            let asking = &mut self.asking;
            let lookup = asking.rules.lookup(asking.view, &place, id, &BTreeSet::new(), asking.request.depth)?;
            if let (Outcome::Continues, Some(path)) = (lookup.outcome, lookup.path) {
                let finding = Finding::new("found_elsewhere", format!("the session is in config dir {dir:?}"));
                asking.find(finding.at(&path).next(format!("ask with --config-dir {dir:?}")));
            }
        }
        Ok(())
    }

    /// A session whose confirmed place belongs to another identity is never resumed, with or without a chain.
    fn other_identity(&mut self, id: &str) -> Result<Option<Finding>, Stop> {
        let Some(agent) = self.asking.ledger.agent.as_ref() else { return Ok(None) };
        let placed = agent.sessions.iter().find(|(session, _)| session.as_str() == id).map(|(_, placed)| placed);
        let Some(placed) = placed.filter(|placed| placed.at.identity.is_some()) else { return Ok(None) };
        if self.asking.compare_identity(&placed.at)? == Identities::Differ {
            let text = "the session belongs to another identity than the one signed in here";
            return Ok(Some(Finding::new("identity_differs", text)));
        }
        Ok(None)
    }

    /// A live process that has the session open: it would append to the same file. Of a fork's source, only a finding.
    fn owners(&mut self, id: &str, fork: bool) -> Result<(), Stop> {
        let place = self.asking.place.clone();
        self.owners_at(&place, id, fork)
    }

    fn owners_at(&mut self, place: &Place, id: &str, fork: bool) -> Result<(), Stop> {
        let asking = &mut self.asking;
        match asking.rules.owners(asking.view, place, id)? {
            Seen::Absent => {}
            Seen::Unreadable(why) => {
                let text = format!("who has the session open cannot be told: {why}");
                let finding =
                    Finding::new("registry_unreadable", text).next("make the registry readable, or ask for a fork");
                if !fork {
                    return Err(Stop::Unknown(finding));
                }
                asking.find(finding);
            }
            Seen::Is(owners) => {
                for owner in owners.iter().filter(|owner| owner.life != Life::Dead) {
                    let words = if owner.life == Life::Alive { "" } else { " (it may be dead)" };
                    let finding =
                        Finding::new("live_owner", format!("process {} has the session open{words}", owner.pid))
                            .next("end it, or ask for a fork");
                    if owner.life == Life::Alive && !fork {
                        asking.step("owner", "who has the session open", false, finding.detail.clone());
                        return Err(Stop::Busy(finding));
                    }
                    asking.find(finding);
                }
            }
        }
        Ok(())
    }

    /// A fork of a session that is reached by its path, by a copy, or (a parent's) in place.
    fn forked(&mut self, route: Route, row: Row) -> Result<Answer, Stop> {
        let decision = if route == Route::Relocate { Decision::Relocate } else { Decision::ForkFrom };
        self.chain_step(decision, row);
        let Some(source) = self.asking.elsewhere.clone() else { return Ok(self.fresh()) };
        self.owners_at(&source.place, &source.session, true)?;
        self.resume(&source.session, &source.path, route, source.means, true, &[])
    }

    /// The largest real conversation that no live process has open.
    fn scan(&mut self, except: &BTreeSet<String>) -> Result<Option<Scanned>, Stop> {
        let mut except = except.clone();
        for _ in 0..OWNED_SKIPPED_MAX {
            let asking = &mut self.asking;
            let found =
                asking.rules.largest(asking.view, &asking.place, &except, &asking.hidden, asking.request.depth)?;
            let found = match found {
                Seen::Is(found) => found,
                Seen::Absent => {
                    asking.step("scan", "conversations of this project on disk", false, "none");
                    return Ok(None);
                }
                Seen::Unreadable(why) => {
                    let root = asking.rules.config_root(&asking.place);
                    return Err(Stop::Unknown(unreadable(&root, &why)));
                }
            };
            let owners = match asking.rules.owners(asking.view, &asking.place, &found.session)? {
                Seen::Is(owners) => owners,
                Seen::Absent => Vec::new(),
                Seen::Unreadable(why) => {
                    let text = format!("who has a conversation open cannot be told: {why}");
                    return Err(Stop::Unknown(
                        Finding::new("registry_unreadable", text).next("make the registry readable"),
                    ));
                }
            };
            let marked = asking.foreign_marker(&found.path)?;
            // One retry: what the provider refused already is not found a second time.
            let refused = asking.has_rejection(&found.session) && {
                let digest = asking.look(&found.session)?.digest;
                asking.rejected(&found.session, digest)
            };
            if owners.iter().all(|owner| owner.life == Life::Dead) && marked == Seen::Absent && !refused {
                asking.step("scan", "conversations of this project on disk", true, found.path.clone());
                return Ok(Some(found));
            }
            except.insert(found.session);
        }
        let text = format!(
            "the {OWNED_SKIPPED_MAX} largest conversations are all held or in flight; smaller ones were not looked at"
        );
        self.asking.find(Finding::new("scan_stopped", text));
        Ok(None)
    }

    /// What the CLI takes when it is told to continue without an id.
    pub(super) fn newest(&mut self) -> Result<Answer, Stop> {
        let asking = &mut self.asking;
        let found = match asking.rules.newest(asking.view, &asking.place, &asking.hidden, asking.request.depth)? {
            Seen::Is(found) => found,
            Seen::Absent => {
                asking.step(
                    "scan",
                    "the newest session of this project",
                    false,
                    "none: the CLI starts blank, silently",
                );
                return Ok(self.fresh());
            }
            Seen::Unreadable(why) => {
                let root = asking.rules.config_root(&asking.place);
                return Err(Stop::Unknown(unreadable(&root, &why)));
            }
        };
        asking.step("scan", "the newest session of this project", true, found.path.clone());
        let head = asking.head().map(|head| head.at.session.as_str());
        let text = "--continue takes whatever session is newest, which need not be the one you see";
        asking.find(
            Finding::new("id_not_named", text).next(format!("launch with an id: {}", head.unwrap_or(&found.session))),
        );
        asking.candidate = Some(found.session.clone());
        self.route = Route::Recovery;
        // What is newest is a candidate like any other: identity, rejections, live owners, and with a chain only its head.
        let chained = self.asking.head().is_some();
        let mut answer = if chained { self.gated(&found.session, true)? } else { self.looked(&found.session, false)? };
        if answer.route == Route::Recovery {
            answer.confidence = Confidence::Inferred;
        }
        Ok(answer)
    }

    fn resume(
        &mut self,
        id: &str,
        path: &str,
        route: Route,
        means: Means,
        fork: bool,
        findings: &[Finding],
    ) -> Result<Answer, Stop> {
        for finding in findings {
            self.asking.find(finding.clone());
        }
        let asking = &mut self.asking;
        for finding in asking.rules.keeping(asking.view, &asking.place, path, fork)? {
            asking.find(finding);
        }
        let own = asking.rules.own_dir(asking.view, &asking.place)?.is().unwrap_or_default();
        let writes_to = if fork {
            WritesTo { dir: own, file: None }
        } else {
            let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
            WritesTo { dir: dir.into(), file: Some(path.into()) }
        };
        let ask = match means {
            Means::ByPath => LaunchAsk::ByPath { path },
            Means::InPlace | Means::ByCopy => LaunchAsk::InPlace { session: id, fork },
        };
        let mut answer = Answer::new(VerdictWord::Resume);
        answer.launch = Some(asking.rules.launch(&asking.place, &ask));
        answer.session = Some(id.into());
        answer.transcript = Some(TranscriptAt { path: path.into(), writes_to });
        answer.route = route;
        answer.means = Some(means);
        let chained = asking.head().is_some_and(|head| head.at.session.as_str() == id) || route == Route::ForkFrom;
        answer.confidence = if chained { Confidence::Proven } else { Confidence::Inferred };
        Ok(answer)
    }

    pub(super) fn fresh(&mut self) -> Answer {
        let mut answer = Answer::new(VerdictWord::Fresh);
        answer.launch = Some(self.asking.rules.launch(&self.asking.place, &LaunchAsk::Fresh));
        answer
    }
}
