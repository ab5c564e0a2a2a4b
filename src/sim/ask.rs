//! The questions of the scopes: whose conversation, from which login, by which way.

use crate::chain::request::Request;
use crate::event::Means;
use crate::id::{AgentId, ProviderName};
use crate::provider::ConfigDir;
use crate::sim::setting::{CWD, SESSION};

/// A question that an actor of a scope asks.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Whose conversation.
    pub agent: &'static str,
    /// In which login.
    pub login: &'static str,
    /// The session that is held; a pane without one holds what it was told last.
    pub session: Option<&'static str>,
    /// Which way, where there are several.
    pub means: Option<Means>,
    /// Whether the agent says on stdout what it does.
    pub tells: bool,
    /// Another identity is signed in there than the one the conversation belongs to.
    pub is_foreign: bool,
}

impl Ask {
    /// About the conversation that is there at the beginning.
    pub(super) const fn new(agent: &'static str, login: &'static str) -> Self {
        Self { agent, login, session: Some(SESSION), means: None, tells: true, is_foreign: false }
    }

    /// By this way.
    pub(super) const fn by(self, means: Means) -> Self {
        Self { means: Some(means), ..self }
    }

    /// Whether the conversation that is there at the beginning is this agent's.
    #[must_use]
    pub fn has_history(&self) -> bool {
        self.session.is_some()
    }

    /// The request.
    ///
    /// # Errors
    ///
    /// Never, for the names of the scopes.
    pub fn request(&self) -> Result<Request, crate::id::IdError> {
        let provider = ProviderName::parse("claude")?;
        let mut request = Request::new(provider, Some(ConfigDir::Named(self.login.into())), CWD);
        request.agent = Some(AgentId::parse(self.agent)?);
        request.session = self.session.map(str::to_owned);
        request.means = self.means;
        Ok(request)
    }
}
