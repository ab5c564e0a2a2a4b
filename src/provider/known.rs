//! The rules that are known: those built in, and further tables that somebody observed and saved.

use serde::{Deserialize, Serialize};

use crate::provider::claude::{self, Table};
use crate::provider::rule::Provider;

/// The number of this text format.
const FORMAT: u64 = 1;

/// Why a text holds no rules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// It is not JSON with the fields of a table.
    #[error("it holds no rules")]
    Json(#[from] serde_json::Error),
    /// A newer format, or another provider's.
    #[error("it holds rules of format {format} for {provider:?}; known are format {FORMAT} and \"claude\"")]
    Other {
        /// Its format.
        format: u64,
        /// Whose rules.
        provider: String,
    },
}

/// Tables beside those built in, which come first where their range holds a version.
///
/// ```
/// # use throughline::provider::KnownRules;
/// let known = KnownRules::default();
/// assert_eq!(known.find("claude", Some("2.1.300")).map(|rules| rules.version()), Some("2.1.280"));
/// assert_eq!(KnownRules::parse(known.to_text("claude")?.as_bytes())?, known);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownRules {
    claude: Vec<Table>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    throughline_rules: u64,
    provider: String,
    tables: Vec<Table>,
}

impl KnownRules {
    /// The rules for a provider, for the version that is asked for or the nearest known one.
    #[must_use]
    pub fn find(&self, name: &str, version: Option<&str>) -> Option<&dyn Provider> {
        match name {
            "claude" | "claude-code" => Some(claude::table(&self.claude, version)),
            _ => None,
        }
    }

    /// The table of Claude Code for a version, to begin another from.
    #[must_use]
    pub fn claude(&self, version: Option<&str>) -> &Table {
        claude::table(&self.claude, version)
    }

    /// Whether there is none beside those built in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claude.is_empty()
    }

    /// With a further table: it takes the place of one of the same range.
    #[must_use]
    pub fn with(mut self, table: Table) -> Self {
        self.claude.retain(|known| (&known.from, &known.to) != (&table.from, &table.to));
        self.claude.insert(0, table);
        self
    }

    /// With all tables of another.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        other.claude.into_iter().rev().fold(self, Self::with)
    }

    /// Reads what [`KnownRules::to_text`] wrote.
    ///
    /// # Errors
    ///
    /// [`RulesError`] where it is something else, or newer.
    pub fn parse(bytes: &[u8]) -> Result<Self, RulesError> {
        let file: File = serde_json::from_slice(bytes)?;
        if file.throughline_rules != FORMAT || file.provider != "claude" {
            return Err(RulesError::Other { format: file.throughline_rules, provider: file.provider });
        }
        Ok(Self { claude: file.tables })
    }

    /// The tables as a text that people can read and change.
    ///
    /// # Errors
    ///
    /// None that is known: tables are plain values.
    pub fn to_text(&self, provider: &str) -> Result<String, RulesError> {
        let file = File { throughline_rules: FORMAT, provider: provider.into(), tables: self.claude.clone() };
        Ok(serde_json::to_string_pretty(&file)? + "\n")
    }
}
