//! What differs between versions, as data.

use crate::provider::claude::path;
use crate::provider::rule::Place;
use crate::snapshot::{Ask, Seen, SnapshotError, Transcript, View};

/// The rules of one version range: what differs between versions is data, what does not is code.
#[derive(Debug)]
pub(super) struct Claude {
    pub(super) version: &'static str,
    /// A session that is not accepted in its own place is looked for in other project folders.
    pub(super) searches: bool,
    /// A `system` record alone makes a file acceptable.
    pub(super) system_counts: bool,
    /// `user` and `assistant` records without a message make a file unacceptable.
    pub(super) messageless_spoils: bool,
    /// A record counts although more follows on its line.
    pub(super) glued_counts: bool,
    /// A fork of a file without a conversation starts a new session without a word.
    pub(super) path_starts_fresh: bool,
}

/// Newest first.
static TABLES: [Claude; 3] = [
    Claude {
        version: "2.1.332",
        searches: true,
        system_counts: true,
        messageless_spoils: false,
        glued_counts: true,
        path_starts_fresh: false,
    },
    Claude {
        version: "2.1.280",
        searches: true,
        system_counts: false,
        messageless_spoils: false,
        glued_counts: true,
        path_starts_fresh: false,
    },
    Claude {
        version: "2.0.77",
        searches: false,
        system_counts: false,
        messageless_spoils: true,
        glued_counts: false,
        path_starts_fresh: true,
    },
];

/// Whether a version's rules were observed on that version itself; without a version there is nothing to doubt.
///
/// ```
/// # use throughline::provider::claude::is_observed;
/// assert!(is_observed(Some("2.1.280")) && !is_observed(Some("2.1.281")));
/// ```
#[must_use]
pub fn is_observed(version: Option<&str>) -> bool {
    let digits = |asked: &str| {
        asked.trim().trim_start_matches('v').split(|c: char| !c.is_ascii_digit() && c != '.').next()
            == Some(table(version).version)
    };
    version.is_none_or(digits)
}

/// The versions that were observed, newest first.
pub fn observed_versions() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.version)
}

pub(super) fn table(version: Option<&str>) -> &'static Claude {
    let [newest, .., oldest] = &TABLES;
    let Some(asked) = version.and_then(numbers) else { return newest };
    TABLES.iter().find(|table| numbers(table.version).is_some_and(|known| known <= asked)).unwrap_or(oldest)
}

/// The numbers at the front of a text such as `2.1.332 (Claude Code)`.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let text = version.trim().trim_start_matches('v');
    let text = text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut parts = text.split('.').map(str::parse::<u64>);
    let mut part = || parts.next().map_or(Ok(0), |part| part);
    let first = part().ok()?;
    Some([first, part().ok()?, part().ok()?])
}

impl Claude {
    /// Whether the CLI takes the file for a session, whatever of it is sent.
    pub(super) fn accepts(&self, held: &Transcript) -> bool {
        let systems = if self.system_counts { held.systems } else { 0 };
        let spoilt = self.messageless_spoils && held.messageless > 0;
        !spoilt && self.turns(held) + held.attachments + systems > 0
    }

    /// The turns that this version takes.
    pub(super) fn turns(&self, held: &Transcript) -> u64 {
        if self.glued_counts { held.turns } else { held.turns - held.glued.min(held.turns) }
    }

    pub(super) fn projects(&self, place: &Place) -> String {
        path::join(&path::root(place), "projects")
    }

    /// The folder of the working directory's own sessions.
    pub(super) fn folder(&self, view: &mut dyn View, place: &Place) -> Result<Seen<String>, SnapshotError> {
        if path::is_homeless(place) {
            return Ok(Seen::Unreadable("no home directory is known".into()));
        }
        let projects = self.projects(place);
        Ok(view.real_path(&place.cwd)?.map(|real| path::join(&projects, &path::slug(&real))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_gets_its_own_rules_or_the_nearest_older_ones() {
        for (asked, version, observed) in [
            (None, "2.1.332", true),
            (Some("2.1.332"), "2.1.332", true),
            (Some("2.1.332 (Claude Code)\n"), "2.1.332", true),
            (Some("v2.0.77"), "2.0.77", true),
            (Some("2.1.333"), "2.1.332", false),
            (Some("3"), "2.1.332", false),
            (Some("2.1.331"), "2.1.280", false),
            (Some("2.1.280-beta.1"), "2.1.280", true),
            (Some("2.1"), "2.0.77", false),
            (Some("2.0.9"), "2.0.77", false),
            (Some("1.0.128"), "2.0.77", false),
            (Some("next"), "2.1.332", false),
            (Some(""), "2.1.332", false),
            (Some("99999999999999999999.1.1"), "2.1.332", false),
        ] {
            assert_eq!((table(asked).version, is_observed(asked)), (version, observed), "{asked:?}");
        }
    }

    #[test]
    fn the_tables_stand_newest_first() {
        assert!(TABLES.iter().map(|table| numbers(table.version)).is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn what_is_accepted_depends_on_the_version() {
        let held = |turns, messageless, attachments, systems| Transcript {
            turns,
            messageless,
            attachments,
            systems,
            ..Transcript::default()
        };
        for (held, accepted) in [
            (held(1, 0, 0, 0), [true, true, true]),
            (held(0, 0, 1, 0), [true, true, true]),
            (held(0, 0, 0, 1), [true, false, false]),
            (held(0, 1, 1, 0), [true, true, false]),
            (held(0, 1, 0, 0), [false, false, false]),
            (Transcript { others: 3, sidechain: 4, ..Transcript::default() }, [false, false, false]),
        ] {
            assert_eq!(TABLES.each_ref().map(|table| table.accepts(&held)), accepted, "{held:?}");
        }
    }
}
