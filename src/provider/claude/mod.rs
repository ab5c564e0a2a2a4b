//! Claude Code: its rules, as tables by version.
//!
//! Everything here was observed by running the real program against a stand-in API and looking at what the API *received*;
//! the exit code says little (an empty history exits with 0 under the same id). A version that was not observed gets the
//! nearest table, and [`is_observed`] says so. The rows of `tests/corpus/claude/` are replayed against these rules.
//!
//! The files: [`path`](self) texts of paths · `reader` and `record` the scanner · `history` the walk · `lookup` which file is
//! found · `listing` what else lies in the folder · `keep` whether it lasts · `about` what a transcript's counts say ·
//! `identity`, `registry` the CLI's own small files · `launch` the process. None of them touches a disk.

mod about;
mod history;
mod identity;
mod keep;
mod launch;
mod listing;
mod lookup;
mod path;
mod reader;
mod record;
mod registry;

use std::collections::BTreeSet;

pub use self::identity::identity;
pub use self::launch::{CONFIG_DIR_VARIABLE, PROGRAM};
pub use self::path::{session_id, slug};
pub use self::record::{DIGEST_BYTES, HEAD_BYTES, TAIL_BYTES, WHOLE_BYTES_MAX, scan};
pub use self::registry::{REGISTRY_DIR, Registered, is_entry, registered};
use crate::event::Means;
use crate::id::IdentityKey;
use crate::provider::{Finding, Launch, LaunchAsk, Lookup, Place, Provider, Scanned};
use crate::snapshot::{Ask, Depth, Format, Owner, Seen, SnapshotError, Transcript, View};

/// The rules of one version range: what differs between versions is data, what does not is code.
#[derive(Debug)]
struct Claude {
    version: &'static str,
    /// A session that is not accepted in its own place is looked for in other project folders.
    searches: bool,
    /// A `system` record alone makes a file acceptable.
    system_counts: bool,
    /// `user` and `assistant` records without a message make a file unacceptable.
    messageless_spoils: bool,
    /// A fork of a file without a conversation starts a new session without a word.
    path_starts_fresh: bool,
}

/// Newest first.
static TABLES: [Claude; 3] = [
    Claude {
        version: "2.1.332",
        searches: true,
        system_counts: true,
        messageless_spoils: false,
        path_starts_fresh: false,
    },
    Claude {
        version: "2.1.280",
        searches: true,
        system_counts: false,
        messageless_spoils: false,
        path_starts_fresh: false,
    },
    Claude {
        version: "2.0.77",
        searches: false,
        system_counts: false,
        messageless_spoils: true,
        path_starts_fresh: true,
    },
];

/// The rules for a version: its own, else those of the nearest older one that was observed, else the oldest. Without a
/// version, or with one that is no version, the newest.
///
/// ```
/// # use throughline::provider::claude::rules;
/// assert_eq!(rules(Some("2.1.300 (Claude Code)")).version(), "2.1.280");
/// ```
#[must_use]
pub fn rules(version: Option<&str>) -> &'static dyn Provider {
    table(version)
}

/// Whether a version's rules were observed on that version itself; without a version there is nothing to doubt.
///
/// ```
/// # use throughline::provider::claude::is_observed;
/// assert!(is_observed(Some("2.1.280")) && !is_observed(Some("2.1.281")));
/// ```
#[must_use]
pub fn is_observed(version: Option<&str>) -> bool {
    version.is_none_or(|asked| numbers(asked).is_some_and(|asked| numbers(table(version).version) == Some(asked)))
}

/// The versions that were observed, newest first.
pub fn observed_versions() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.version)
}

fn table(version: Option<&str>) -> &'static Claude {
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
    fn accepts(&self, held: &Transcript) -> bool {
        let systems = if self.system_counts { held.systems } else { 0 };
        let spoilt = self.messageless_spoils && held.messageless > 0;
        !spoilt && held.turns + held.attachments + systems > 0
    }

    fn projects(&self, place: &Place) -> String {
        path::join(&path::root(place), "projects")
    }
}

impl Provider for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn version(&self) -> &'static str {
        self.version
    }

    fn is_observed(&self, asked: Option<&str>) -> bool {
        is_observed(asked)
    }

    fn config_variable(&self) -> &'static str {
        CONFIG_DIR_VARIABLE
    }

    fn resume_flag(&self) -> Option<&'static str> {
        Some(launch::RESUME)
    }

    fn config_root(&self, place: &Place) -> String {
        path::root(place)
    }

    fn own_dir(&self, view: &mut dyn View, place: &Place) -> Result<Seen<String>, SnapshotError> {
        if path::is_homeless(place) {
            return Ok(Seen::Unreadable("no home directory is known".into()));
        }
        let projects = self.projects(place);
        Ok(view.real_path(&place.cwd)?.map(|real| path::join(&projects, &slug(&real))))
    }

    fn lookup(
        &self,
        view: &mut dyn View,
        place: &Place,
        id: &str,
        hidden: &BTreeSet<String>,
        depth: Depth,
    ) -> Result<Lookup, SnapshotError> {
        lookup::by_id(self, view, place, id, hidden, depth)
    }

    fn lookup_path(&self, view: &mut dyn View, path: &str, depth: Depth) -> Result<Lookup, SnapshotError> {
        lookup::by_path(self, view, path, depth)
    }

    fn path_of(&self, view: &mut dyn View, place: &Place, id: &str) -> Result<Seen<String>, SnapshotError> {
        let Some(id) = session_id(id) else { return Ok(Seen::Absent) };
        Ok(self.own_dir(view, place)?.map(|dir| path::session(&dir, id)))
    }

    /// Observed on every version: a fork by path leaves the file as it is and writes into the own folder of the spawn.
    fn means(&self) -> &'static [Means] {
        &[Means::ByPath, Means::ByCopy]
    }

    fn largest(
        &self,
        view: &mut dyn View,
        place: &Place,
        except: &BTreeSet<String>,
        hidden: &BTreeSet<String>,
        depth: Depth,
    ) -> Result<Seen<Scanned>, SnapshotError> {
        listing::largest(self, view, place, except, hidden, depth)
    }

    fn newest(
        &self,
        view: &mut dyn View,
        place: &Place,
        hidden: &BTreeSet<String>,
        depth: Depth,
    ) -> Result<Seen<Scanned>, SnapshotError> {
        listing::newest(self, view, place, hidden, depth)
    }

    fn identity(&self, view: &mut dyn View, place: &Place) -> Result<Option<IdentityKey>, SnapshotError> {
        match path::account_file(place) {
            Some(file) => Ok(view.identity(&file, Format::Claude)?.is()),
            None => Ok(None),
        }
    }

    fn owners(&self, view: &mut dyn View, place: &Place, id: &str) -> Result<Seen<Vec<Owner>>, SnapshotError> {
        let Some(id) = session_id(id) else { return Ok(Seen::Absent) };
        view.owners(&path::join(&path::root(place), REGISTRY_DIR), id, Format::Claude)
    }

    fn keeping(
        &self,
        view: &mut dyn View,
        place: &Place,
        path: &str,
        fork: bool,
    ) -> Result<Vec<Finding>, SnapshotError> {
        keep::keeping(self, view, place, path, fork)
    }

    fn launch(&self, place: &Place, ask: &LaunchAsk<'_>) -> Launch {
        launch::launch(place, ask)
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
            assert_eq!((rules(asked).version(), is_observed(asked)), (version, observed), "{asked:?}");
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
