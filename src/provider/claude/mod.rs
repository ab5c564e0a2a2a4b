//! Claude Code: its rules, as tables by version.
//!
//! Everything here was observed by running the real program against a stand-in API and looking at what the API *received*;
//! the exit code says little (an empty history exits with 0 under the same id). A version that was not observed gets the
//! nearest table, and [`is_observed`] says so. The rows of `tests/corpus/claude/` are replayed against these rules.
//!
//! The files: `table` what differs by version · `path` texts of paths · `reader` and `record` the scanner · `history` the
//! walk · `lookup` which file is found · `listing` what else lies in the folder · `keep` whether it lasts · `about` what a
//! transcript's counts say · `identity`, `registry` the CLI's own small files · `launch` the process · `report` what it says
//! · `hooks` what it tells its hooks and the settings that name them. None of them touches a disk.

mod about;
mod history;
pub mod hooks;
mod identity;
mod keep;
mod launch;
mod listing;
mod lookup;
mod path;
mod reader;
mod record;
mod registry;
mod report;
mod table;

use std::collections::BTreeSet;

pub use self::identity::identity;
#[cfg(feature = "probe")]
pub(crate) use self::keep::{AT_ITS_START, IN_A_LONG_RUN};
pub use self::launch::{CONFIG_DIR_VARIABLE, PROGRAM};
pub use self::path::{session_id, slug};
#[doc(hidden)]
pub use self::record::check_scan;
pub use self::record::{DIGEST_BYTES, HEAD_BYTES, TAIL_BYTES, WHOLE_BYTES_MAX, scan};
pub use self::registry::{REGISTRY_DIR, Registered, is_entry, registered};
pub(in crate::provider) use self::table::table;
pub use self::table::{Cleaning, Origin, Table, Times, is_observed, observed_versions};
use crate::event::Means;
use crate::id::IdentityKey;
use crate::provider::finding::Finding;
use crate::provider::rule::{Launch, LaunchAsk, Lookup, Output, Place, Provider, Report, Scanned};
use crate::snapshot::{Ask, Depth, Format, Owner, Seen, SnapshotError, View};

/// The rules for a version: its own, else those of the nearest older one that was observed, else the oldest. Without a
/// version, or with one that is no version, the newest.
///
/// ```
/// # use throughline::provider::claude::rules;
/// assert_eq!(rules(Some("2.1.300 (Claude Code)")).version(), "2.1.280");
/// ```
#[must_use]
pub fn rules(version: Option<&str>) -> &'static dyn Provider {
    table(&[], version)
}

impl Provider for Table {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn format(&self) -> Format {
        Format::Claude
    }

    fn version(&self) -> &str {
        &self.to
    }

    fn is_observed(&self, asked: Option<&str>) -> bool {
        self.is_observed_on(asked)
    }

    fn program(&self) -> &'static str {
        PROGRAM
    }

    fn config_variable(&self) -> &'static str {
        CONFIG_DIR_VARIABLE
    }

    fn id_as_taken<'t>(&self, given: &'t str) -> &'t str {
        session_id(given).filter(|id| self.trims_ids || *id == given).unwrap_or(given)
    }

    fn resume_flag(&self) -> Option<&'static str> {
        Some(launch::RESUME)
    }

    fn config_root(&self, place: &Place) -> String {
        self.root(place)
    }

    fn own_dir(&self, view: &mut dyn View, place: &Place) -> Result<Seen<String>, SnapshotError> {
        self.folder(view, place)
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

    fn identity(&self, view: &mut dyn View, place: &Place) -> Result<Seen<IdentityKey>, SnapshotError> {
        match path::account_file(place) {
            Some(file) => view.identity(&file, Format::Claude),
            None => Ok(Seen::Absent),
        }
    }

    fn owners(&self, view: &mut dyn View, place: &Place, id: &str) -> Result<Seen<Vec<Owner>>, SnapshotError> {
        let Some(id) = session_id(id).filter(|_| self.registers) else { return Ok(Seen::Absent) };
        view.owners(&path::join(&self.root(place), REGISTRY_DIR), id, Format::Claude)
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

    fn minting(&self, id: &str) -> Vec<String> {
        launch::minting(id)
    }

    fn tells(&self, argv: &[String]) -> bool {
        report::tells(argv)
    }

    fn report(&self, line: &[u8], from: Output) -> Option<Report> {
        report::report(line, from)
    }
}
