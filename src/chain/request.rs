//! What a preflight is asked, and what the log knows for it: two values.

use serde::{Deserialize, Serialize};

use crate::chain::state::AgentState;
use crate::event::{HookAnnounced, Means};
use crate::id::{AgentId, Epoch, Frontier, IdentityKey, ProviderName};
use crate::provider::{ConfigDir, KnownRules};
use crate::snapshot::Depth;

/// What will be spawned: the very values that the child process will get.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Whose CLI.
    pub provider: ProviderName,
    /// Its version, where it is known; else the newest observed rules are used.
    #[serde(default)]
    pub provider_version: Option<String>,
    /// Tables beside the rules that are built in.
    #[serde(default, skip_serializing_if = "KnownRules::is_empty")]
    pub rules: KnownRules,
    /// The login's folder; `None` where the caller has none to give.
    pub config_dir: Option<ConfigDir>,
    /// The working directory; absolute.
    pub cwd: String,
    /// The session id that the caller holds, as it is: it may be malformed.
    #[serde(default)]
    pub session: Option<String>,
    /// The session id of the history that the pane renders.
    #[serde(default)]
    pub history: Option<String>,
    /// Whose conversation, where the log is to be asked.
    #[serde(default)]
    pub agent: Option<AgentId>,
    /// The agent whose conversation a first spawn may continue.
    #[serde(default)]
    pub fork_of: Option<AgentId>,
    /// Who is signed in, where the caller knows better than the login's folder.
    #[serde(default)]
    pub identity: Option<IdentityKey>,
    /// The flag that resumes: the provider's own (`None`), another, or (`Some("")`) none at all.
    #[serde(default)]
    pub resume_flag: Option<String>,
    /// The caller asks for a fork.
    #[serde(default)]
    pub fork: bool,
    /// Which way a session that lies elsewhere is to be reached, where the provider has several; else its best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Means>,
    /// The caller tells the CLI to continue without naming an id.
    #[serde(default)]
    pub continue_newest: bool,
    /// Further logins' folders, searched for evidence only.
    #[serde(default)]
    pub also: Vec<String>,
    /// How much of a transcript may be read.
    pub depth: Depth,
    /// Why the question cannot even be asked: a path that is not UTF-8.
    #[serde(default)]
    pub unusable: Option<String>,
    /// The lease that the caller holds itself.
    #[serde(default)]
    pub lease: Option<Epoch>,
}

impl Request {
    /// A request with nothing but the required parts.
    #[must_use]
    pub fn new(provider: ProviderName, config_dir: Option<ConfigDir>, cwd: impl Into<String>) -> Self {
        Self {
            provider,
            provider_version: None,
            rules: KnownRules::default(),
            config_dir,
            cwd: cwd.into(),
            session: None,
            history: None,
            agent: None,
            fork_of: None,
            identity: None,
            resume_flag: None,
            fork: false,
            means: None,
            continue_newest: false,
            also: Vec::new(),
            depth: Depth::Windows,
            unusable: None,
            lease: None,
        }
    }

    /// Replaces a leading `~` of the config dirs and the working directory by `home`. Paths are literal otherwise: the
    /// agents' own rule. Preflight and spawn must do the same, so it is asked for, never assumed.
    pub fn expand_home(&mut self, home: &str) {
        let expand = |text: &mut String| {
            if text == "~" {
                *text = home.into();
            } else if let Some(rest) = text.strip_prefix("~/") {
                *text = format!("{}/{rest}", home.trim_end_matches('/'));
            }
        };
        if let Some(ConfigDir::Named(text)) = &mut self.config_dir {
            expand(text);
        }
        expand(&mut self.cwd);
        self.also.iter_mut().for_each(expand);
    }
}

/// What the log knows, as far as a request asks: folds with the frontiers that they rest on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Every stream that was asked; nothing where there is no log.
    pub streams: Option<Vec<Frontier>>,
    /// The agent's fold, where one was named.
    pub agent: Option<AgentState>,
    /// The parent's, where one was named or declared.
    pub parent: Option<AgentState>,
    /// What the agent's hooks announced last.
    pub announced: Option<HookAnnounced>,
}
