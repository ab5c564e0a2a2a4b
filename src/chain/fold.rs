//! The folds of all streams behind the log's own seam: what the log asks before it accepts an event.

use serde::{Deserialize, Serialize};

use crate::chain::illegal::Illegal;
use crate::chain::state::AgentState;
use crate::event::{Event, HookAnnounced, HookEvent};
use crate::id::StreamName;
use crate::log::Fold;

/// The fold of one stream, whatever its family.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// `agent/<uid>`
    Agent(Box<AgentState>),
    /// `audit/<uid>`: folded by no decision.
    Audit,
    /// `hook/<uid>`: the last announcement.
    Hook(Option<HookAnnounced>),
}

impl State {
    /// The agent's fold, where this is an agent's stream.
    #[must_use]
    pub fn agent(self) -> Option<AgentState> {
        match self {
            Self::Agent(state) => Some(*state),
            Self::Audit | Self::Hook(_) => None,
        }
    }
}

impl Fold for State {
    const VERSION: u32 = 2;
    type Illegal = Illegal;

    fn empty(stream: &StreamName) -> Self {
        match stream {
            StreamName::Agent(_) => Self::Agent(Box::default()),
            StreamName::Audit(_) => Self::Audit,
            StreamName::Hook(_) => Self::Hook(None),
        }
    }

    fn complete(&self, event: Event) -> Event {
        match (self, event) {
            (Self::Agent(state), Event::Agent(event)) => Event::Agent(state.complete(event)),
            (_, event) => event,
        }
    }

    fn admit(&self, event: &Event) -> Result<(), Illegal> {
        match (self, event) {
            (Self::Agent(state), Event::Agent(event)) => state.admit(event),
            (Self::Audit | Self::Hook(_), Event::Audit(_) | Event::Hook(_)) => Ok(()),
            (Self::Agent(_), Event::Audit(_) | Event::Hook(_)) | (Self::Audit | Self::Hook(_), Event::Agent(_)) => {
                Err(Illegal::OtherFamily { family: event.family() })
            }
        }
    }

    fn apply(&mut self, event: &Event) -> Result<(), Illegal> {
        match (self, event) {
            (Self::Agent(state), Event::Agent(event)) => state.apply(event),
            (Self::Audit, Event::Audit(_)) => Ok(()),
            (Self::Hook(last), Event::Hook(HookEvent::HookAnnounced(body))) => {
                *last = Some(body.clone());
                Ok(())
            }
            (Self::Agent(_) | Self::Audit | Self::Hook(_), _) => Err(Illegal::OtherFamily { family: event.family() }),
        }
    }

    fn encode(&self) -> Vec<u8> {
        // States are structs of texts and integers with text keys: they always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn decode(stream: &StreamName, bytes: &[u8]) -> Option<Self> {
        let state: Self = serde_json::from_slice(bytes).ok()?;
        let fits = matches!(
            (&state, stream),
            (Self::Agent(_), StreamName::Agent(_))
                | (Self::Audit, StreamName::Audit(_))
                | (Self::Hook(_), StreamName::Hook(_))
        );
        fits.then_some(state)
    }
}
