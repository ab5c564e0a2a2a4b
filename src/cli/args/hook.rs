//! The grammar of `hook`: what an agent's hook runs, and how it is made to.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::provider::claude::hooks::EVENTS;

#[derive(Args, Debug)]
pub(in crate::cli) struct Hook {
    #[command(subcommand)]
    pub(in crate::cli) command: HookCommand,
}

#[derive(Subcommand, Debug)]
pub(in crate::cli) enum HookCommand {
    /// What Claude Code runs as its hook: writes down which session it is in. Prints nothing, and never fails
    Claude(Announce),
    /// Have Claude Code run it when a session begins and ends
    Install(Install),
    /// Take out of the settings what `install` put there
    Uninstall(Uninstall),
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Announce {
    /// The agent whose conversation it is; else $THROUGHLINE_AGENT
    #[arg(long, value_name = "UID")]
    pub(in crate::cli) agent: Option<String>,
    /// How long to wait for other writers before nothing is written down
    #[arg(long, value_name = "MS", default_value_t = 1_000)]
    pub(in crate::cli) busy_ms: u64,
    /// Exit with 1 where something went wrong, to look for it by hand
    #[arg(long)]
    pub(in crate::cli) strict: bool,
}

/// Whose settings.
#[derive(Args, Debug)]
pub(in crate::cli) struct Settings {
    /// The login's folder, whose settings.json is edited
    #[arg(long, value_name = "D")]
    pub(in crate::cli) config_dir: PathBuf,
    /// Print what would be changed, and change nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Install {
    #[command(flatten)]
    pub(in crate::cli) settings: Settings,
    /// The agent whose conversation it will be; else what $THROUGHLINE_AGENT is when the hook runs
    #[arg(long, value_name = "UID")]
    pub(in crate::cli) agent: Option<String>,
    /// When the hook runs, with commas between
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', default_values = EVENTS, value_parser = event)]
    pub(in crate::cli) events: Vec<String>,
    /// How the hook calls this program; else by its path
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) program: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Uninstall {
    #[command(flatten)]
    pub(in crate::cli) settings: Settings,
}

fn event(text: &str) -> Result<String, &'static str> {
    let is_name = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_name { Ok(text.to_owned()) } else { Err("the name of an event is letters and digits") }
}
