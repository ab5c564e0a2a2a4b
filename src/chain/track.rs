//! What a launched process says of its session, and what that proves. Pure: reports in, facts out.
//!
//! An early echo of the attempted id proves nothing; a result that is no error proves everything; a refusal counts only
//! before anything was proved. Where we chose the id of a new session or of a fork, no other id is believed.

use std::collections::BTreeSet;

use crate::event::How;
use crate::id::SessionId;
use crate::provider::Report;

/// What a spawn asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// What is asked of the provider.
    pub how: How,
    /// The attempted session; of a fork, its source.
    pub session: Option<SessionId>,
    /// The id that we chose for the new one.
    pub minted: Option<SessionId>,
}

/// Something that a report told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// The process names this session for the first time.
    Reported(SessionId),
    /// A turn of this session ended well.
    Confirmed {
        /// Which.
        session: SessionId,
        /// Whether it is the first proof that the process is in it.
        first: bool,
    },
    /// The attempted session was refused.
    Refused {
        /// The provider's words.
        why: String,
    },
    /// The process names a session that it cannot have: not the one that was chosen for it, or no id at all.
    Foreign {
        /// What it named.
        session: String,
    },
}

/// What is known of one launched process.
#[derive(Clone, Debug)]
pub struct Track {
    asked: Asked,
    reported: BTreeSet<SessionId>,
    confirmed: Option<SessionId>,
    refused: Option<String>,
}

impl Track {
    /// Begins with nothing known.
    #[must_use]
    pub fn new(asked: Asked) -> Self {
        Self { asked, reported: BTreeSet::new(), confirmed: None, refused: None }
    }

    /// The session that was proved last.
    #[must_use]
    pub fn confirmed(&self) -> Option<&SessionId> {
        self.confirmed.as_ref()
    }

    /// Why the attempted session was refused, where it was and nothing was proved.
    #[must_use]
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref().filter(|_| self.confirmed.is_none())
    }

    /// Takes a report in.
    pub fn hear(&mut self, report: &Report) -> Vec<Told> {
        match report {
            Report::Named { session } => self.named(session),
            Report::Turn { session } => {
                let mut told = self.named(session);
                if let Ok(session) = SessionId::parse(session.as_str())
                    && self.is_possible(&session)
                {
                    let first = self.confirmed.as_ref() != Some(&session);
                    self.confirmed = Some(session.clone());
                    told.push(Told::Confirmed { session, first });
                }
                told
            }
            Report::Refused { why } => {
                let counts = self.confirmed.is_none() && self.refused.is_none() && self.asked.session.is_some();
                self.refused.get_or_insert_with(|| why.clone());
                if counts { vec![Told::Refused { why: why.clone() }] } else { Vec::new() }
            }
            Report::Failed { .. } => Vec::new(),
        }
    }

    fn named(&mut self, session: &str) -> Vec<Told> {
        let Ok(id) = SessionId::parse(session) else { return vec![Told::Foreign { session: session.into() }] };
        // The echo of what was attempted is told by nobody: it says nothing.
        if self.asked.session.as_ref() == Some(&id) && self.asked.how == How::Fork || self.reported.contains(&id) {
            return Vec::new();
        }
        self.reported.insert(id.clone());
        if self.is_possible(&id) { vec![Told::Reported(id)] } else { vec![Told::Foreign { session: session.into() }] }
    }

    /// Whether the process can be in this session. A fork can turn out to have kept the id of its source; whether that is
    /// what happened, only a result says.
    fn is_possible(&self, id: &SessionId) -> bool {
        match &self.asked.minted {
            Some(minted) => minted == id,
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot build its ids should stop")]

    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).unwrap()
    }

    fn track(how: How, session: Option<&str>, minted: Option<&str>) -> Track {
        Track::new(Asked { how, session: session.map(id), minted: minted.map(id) })
    }

    fn named(session: &str) -> Report {
        Report::Named { session: session.into() }
    }

    fn turn(session: &str) -> Report {
        Report::Turn { session: session.into() }
    }

    fn confirmed(session: &str, first: bool) -> Told {
        Told::Confirmed { session: id(session), first }
    }

    #[test]
    fn an_echo_proves_nothing_and_a_result_does() {
        let mut track = track(How::Resume, Some("A"), None);
        assert_eq!(track.hear(&named("A")), [Told::Reported(id("A"))]);
        assert_eq!(track.confirmed(), None);
        assert_eq!(track.hear(&turn("A")), [confirmed("A", true)]);
        assert_eq!(track.hear(&turn("A")), [confirmed("A", false)]);
    }

    #[test]
    fn a_fork_is_in_the_session_that_was_chosen_and_in_no_other() {
        let mut track = track(How::Fork, Some("A"), Some("M"));
        assert_eq!(track.hear(&named("A")), []);
        assert_eq!(track.hear(&turn("A")), [], "an echo in a result is no proof of the fork");
        assert_eq!(track.hear(&named("X")), [Told::Foreign { session: "X".into() }]);
        assert_eq!(track.hear(&turn("X")), [], "it was said once");
        assert_eq!(track.hear(&turn("M")), [Told::Reported(id("M")), confirmed("M", true)]);
    }

    #[test]
    fn without_a_chosen_id_the_process_says_which_it_is_in() {
        let mut track = track(How::Fork, Some("A"), None);
        assert_eq!(track.hear(&named("A")), []);
        assert_eq!(track.hear(&turn("F")), [Told::Reported(id("F")), confirmed("F", true)]);
        // It kept the id of its source.
        let mut kept = Track::new(track.asked.clone());
        assert_eq!(kept.hear(&turn("A")), [confirmed("A", true)]);
    }

    #[test]
    fn a_refusal_counts_once_and_only_before_a_proof() {
        let refused = Report::Refused { why: "no".into() };
        let mut track = track(How::Resume, Some("A"), None);
        assert_eq!(track.hear(&refused), [Told::Refused { why: "no".into() }]);
        assert_eq!(track.hear(&refused), []);
        assert_eq!(track.refused(), Some("no"));
        let mut proved = Track::new(track.asked.clone());
        proved.hear(&turn("A"));
        assert_eq!(proved.hear(&refused), []);
        assert_eq!(proved.refused(), None);
        let mut fresh = super::tests::track(How::Fresh, None, Some("M"));
        assert_eq!(fresh.hear(&refused), [], "nothing was attempted");
    }

    #[test]
    fn an_id_that_is_none_is_foreign() {
        let mut track = track(How::Fresh, None, None);
        assert_eq!(track.hear(&named("../x")), [Told::Foreign { session: "../x".into() }]);
        assert_eq!(track.hear(&turn("../x")), [Told::Foreign { session: "../x".into() }]);
    }

    #[test]
    fn a_failed_turn_says_nothing_of_the_session() {
        let mut track = track(How::Resume, Some("A"), None);
        assert_eq!(track.hear(&Report::Failed { why: "401".into() }), []);
    }
}
