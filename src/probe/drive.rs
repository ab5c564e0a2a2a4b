//! How the probe drives Claude Code: its command line and its environment.

use std::collections::BTreeMap;

use super::world::{Ask, Built};
use crate::provider::ConfigDir;
use crate::provider::claude::CONFIG_DIR_VARIABLE;

/// The words after the program: one prompt without a terminal, the result as JSON.
pub(super) fn arguments(ask: &Ask, prompt: &str) -> Vec<String> {
    let mut words = vec!["-p", prompt, "--output-format", "json"];
    let chosen = match ask {
        Ask::Resume { id, fork, chosen } => {
            words.extend(["--resume", id]);
            words.extend(fork.then_some("--fork-session"));
            chosen.as_ref()
        }
        Ask::Path { path, chosen } => {
            words.extend(["--resume", path, "--fork-session"]);
            chosen.as_ref()
        }
        Ask::Continue => {
            words.push("--continue");
            None
        }
        Ask::New { chosen } => Some(chosen),
    };
    if let Some(chosen) = chosen {
        words.extend(["--session-id", chosen]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// The whole environment of a run beside `PATH`: nothing of the person's own reaches it, and everything that could speak to
/// the outside is off.
pub(super) fn environment(built: &Built, base: &str) -> BTreeMap<String, String> {
    let room = built.room.to_string_lossy();
    let mut variables: BTreeMap<String, String> = [
        ("HOME", built.home.clone()),
        ("TMPDIR", format!("{room}/tmp")),
        ("LANG", "C.UTF-8".into()),
        ("SHELL", "/bin/sh".into()),
        ("ANTHROPIC_BASE_URL", base.to_owned()),
        // Not a secret: the stand-in takes anything.
        ("ANTHROPIC_API_KEY", "no-key-at-all".into()),
        ("CLAUDE_CODE_TMPDIR", format!("{room}/tmp")),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ("CLAUDE_CODE_ENABLE_TELEMETRY", "0".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("DISABLE_ERROR_REPORTING", "1".into()),
        ("DISABLE_BUG_COMMAND", "1".into()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("NO_PROXY", "127.0.0.1".into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if let ConfigDir::Named(text) = &built.place.config_dir {
        variables.insert(CONFIG_DIR_VARIABLE.into(), text.clone());
    }
    variables
}
