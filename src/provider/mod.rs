//! What each agent CLI does: where its sessions live, what it can resume, how it is launched.
//!
//! A [`Provider`] is rules as pure functions over a [`View`](crate::snapshot::View): it decides nothing about chains or leases, it says what that
//! CLI *would do* when asked for a session here. Rules were observed on versions, so each provider is a set of tables, one a
//! version range; another agent or version is a further table.

pub mod claude;
mod finding;
mod known;
mod rule;
pub mod source;

pub use self::finding::Finding;
pub use self::known::{KnownRules, RulesError};
pub use self::rule::{
    ConfigDir, FoundBy, Launch, LaunchAsk, Lookup, Outcome, Output, Place, Provider, Report, Scanned,
};

/// The rules for a provider, for the version that is asked for or the nearest known one.
///
/// ```
/// # use throughline::provider::rules;
/// assert_eq!(rules("claude", None).map(|rules| rules.version()), Some("2.1.332"));
/// assert!(rules("no-such-agent", None).is_none());
/// ```
#[must_use]
pub fn rules(name: &str, version: Option<&str>) -> Option<&'static dyn Provider> {
    match name {
        "claude" | "claude-code" => Some(claude::rules(version)),
        _ => None,
    }
}
