//! What differs between versions, as data.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::provider::claude::path;
use crate::provider::rule::Place;
use crate::snapshot::{Ask, Seen, SnapshotError, Transcript, View};

/// How a table came to be known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The program itself was run.
    Observed,
    /// It stands in the program's documents or its code.
    Read,
}

/// What a version makes of the times of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    /// They do not matter.
    Ignored,
    /// Where the history's last record has none, the session is refused.
    OfTheTip,
    /// They decide which record is the last one. Without any the CLI fails; what comes of a few that are missing depends.
    Decide,
}

/// The rules of one version range: what differs between versions is data, what does not is code.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The first version of the range.
    pub from: Cow<'static, str>,
    /// The last one.
    pub to: Cow<'static, str>,
    /// How this is known.
    pub origin: Origin,
    /// A session that is not accepted in its own place is looked for in other project folders.
    pub searches: bool,
    /// `user` and `assistant` records without a message make a file unacceptable.
    pub messageless_spoils: bool,
    /// A record counts although more follows on its line.
    pub glued_counts: bool,
    /// A record counts although it goes over several lines.
    pub spread_counts: bool,
    /// The history ends where the CLI's own metadata says, and gaps in it are bridged; else it is the straight way from the
    /// last record, and a circle on it makes the CLI hang.
    pub finds_tip: bool,
    /// What the times of records are for.
    pub times: Times,
    /// What a fork by path cannot read, or what holds no conversation, starts a new session without a word.
    pub path_starts_fresh: bool,
    /// Blanks around an id do not matter, nor does the case of the ending by which a path is known.
    pub trims_ids: bool,
    /// Long names of project folders are cut, and a hash follows.
    pub cuts_slugs: bool,
    /// The login's folder is composed (NFC).
    pub composes_paths: bool,
    /// It can work in a directory with a backslash in its path.
    pub takes_backslashes: bool,
    /// `--continue` goes by when files were changed; else by the times in them.
    pub continues_by_change: bool,
    /// When it cleans up.
    pub cleans: Cleaning,
    /// An empty settings file keeps it from cleaning up, as a broken one does.
    pub empty_settings_spoil: bool,
    /// Its processes say in a registry which session they have.
    pub registers: bool,
    /// Where a fork cannot be saved, it may fail; else it answers and saves nothing.
    pub unsaved_fails: bool,
}

/// When a version deletes the sessions that nobody changed for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleaning {
    /// Some six seconds after its start, once a day, and not where its settings are broken.
    Later,
    /// At each start, whatever its settings are: also the session that it is about to resume.
    AtOnce,
}

/// The tables that are built in, newest first.
static TABLES: [Table; 3] = [
    Table {
        from: Cow::Borrowed("2.1.332"),
        to: Cow::Borrowed("2.1.332"),
        origin: Origin::Observed,
        searches: true,
        messageless_spoils: false,
        glued_counts: true,
        spread_counts: true,
        finds_tip: true,
        times: Times::Ignored,
        path_starts_fresh: false,
        trims_ids: true,
        cuts_slugs: true,
        composes_paths: true,
        takes_backslashes: true,
        continues_by_change: true,
        cleans: Cleaning::Later,
        empty_settings_spoil: true,
        registers: true,
        unsaved_fails: false,
    },
    Table {
        from: Cow::Borrowed("2.1.280"),
        to: Cow::Borrowed("2.1.280"),
        origin: Origin::Observed,
        searches: true,
        messageless_spoils: false,
        glued_counts: true,
        spread_counts: true,
        finds_tip: true,
        times: Times::OfTheTip,
        path_starts_fresh: false,
        trims_ids: true,
        cuts_slugs: true,
        composes_paths: true,
        takes_backslashes: false,
        continues_by_change: true,
        cleans: Cleaning::Later,
        empty_settings_spoil: false,
        registers: true,
        unsaved_fails: false,
    },
    Table {
        from: Cow::Borrowed("2.0.77"),
        to: Cow::Borrowed("2.0.77"),
        origin: Origin::Observed,
        searches: false,
        messageless_spoils: true,
        glued_counts: false,
        spread_counts: false,
        finds_tip: false,
        times: Times::Decide,
        path_starts_fresh: true,
        trims_ids: false,
        cuts_slugs: false,
        composes_paths: false,
        takes_backslashes: true,
        continues_by_change: false,
        cleans: Cleaning::AtOnce,
        empty_settings_spoil: false,
        registers: false,
        unsaved_fails: true,
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
    table(&[], version).is_observed_on(version)
}

/// The versions that were observed, newest first.
pub fn observed_versions() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.to.as_ref())
}

/// The table for a version: of `more` or of those built in, the one whose range holds it (of `more` first), else the nearest
/// older one, else the oldest. Without a version, or with one that is no version, the newest.
pub(in crate::provider) fn table<'t>(more: &'t [Table], version: Option<&str>) -> &'t Table {
    let all = || more.iter().chain(&TABLES);
    let [newest, .., oldest] = &TABLES;
    let asked = version.and_then(numbers);
    if let Some(found) = all().find(|table| asked.is_some_and(|asked| table.holds(asked))) {
        return found;
    }
    let is_older = |table: &&Table| asked.is_none_or(|asked| numbers(&table.to).is_some_and(|to| to <= asked));
    let nearest = all().filter(is_older).fold(None::<&Table>, |best, table| match best {
        Some(best) if numbers(&best.to) >= numbers(&table.to) => Some(best),
        _ => Some(table),
    });
    nearest.unwrap_or(if asked.is_none() { newest } else { oldest })
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

/// What a version makes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It is a session.
    Yes,
    /// It is none.
    No,
    /// The CLI does not come to an end with it.
    Hangs,
    /// That cannot be told.
    Unsure(&'static str),
}

impl Table {
    /// Whether these rules were observed on this very version.
    pub(in crate::provider) fn is_observed_on(&self, version: Option<&str>) -> bool {
        self.origin == Origin::Observed
            && version.is_none_or(|version| numbers(version).is_some_and(|asked| self.holds(asked)))
    }

    fn holds(&self, asked: [u64; 3]) -> bool {
        numbers(&self.from).is_some_and(|from| from <= asked) && numbers(&self.to).is_some_and(|to| asked <= to)
    }

    /// Whether the CLI takes the file for a session, whatever of it is sent.
    pub(super) fn takes(&self, held: &Transcript) -> Taken {
        if (self.messageless_spoils && held.messageless > 0) || held.main() <= self.lost(held) {
            return Taken::No;
        }
        match self.times {
            Times::OfTheTip if held.untimed_tip => return Taken::No,
            Times::Decide if held.untimed == held.main() && !held.odd_times => return Taken::No,
            Times::Decide if held.untimed > 0 => return Taken::Unsure("some records have no time"),
            Times::Decide if held.disordered => return Taken::Unsure("the last record is not the latest"),
            Times::Ignored | Times::OfTheTip | Times::Decide => {}
        }
        match self.finds_tip {
            true if held.misled => Taken::No,
            false if held.circle => Taken::Hangs,
            true | false => Taken::Yes,
        }
    }

    /// Main records that this version does not take.
    fn lost(&self, held: &Transcript) -> u64 {
        let lost = [(self.glued_counts, held.glued), (self.spread_counts, held.spread)];
        lost.into_iter().filter(|(counts, _)| !counts).map(|(_, records)| records).sum()
    }

    fn turns(&self, held: &Transcript) -> u64 {
        held.turns - self.lost(held).min(held.turns)
    }

    /// The turns that are sent; where only windows were looked at, at least one if there is one.
    pub(super) fn history(&self, held: &Transcript) -> u64 {
        let reached = if self.finds_tip { held.reached } else { held.straight };
        if held.is_whole() {
            reached.min(self.turns(held) + held.sidechain)
        } else {
            self.turns(held).min(reached.max(1))
        }
    }

    /// The physical text of the login's folder.
    pub(super) fn root(&self, place: &Place) -> String {
        path::root(place, self.composes_paths)
    }

    /// The name of a working directory's project folder.
    #[must_use]
    pub fn slug(&self, real_path: &str) -> String {
        if self.cuts_slugs { path::slug(real_path) } else { path::uncut_slug(real_path) }
    }

    pub(super) fn projects(&self, place: &Place) -> String {
        path::join(&self.root(place), "projects")
    }

    /// The folder of the working directory's own sessions.
    pub(super) fn folder(&self, view: &mut dyn View, place: &Place) -> Result<Seen<String>, SnapshotError> {
        if path::is_homeless(place) {
            return Ok(Seen::Unreadable("no home directory is known".into()));
        }
        let projects = self.projects(place);
        Ok(view.real_path(&place.cwd)?.map(|real| path::join(&projects, &self.slug(&real))))
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
            assert_eq!((table(&[], asked).to.as_ref(), is_observed(asked)), (version, observed), "{asked:?}");
        }
    }

    #[test]
    fn a_further_table_comes_first_where_it_holds_and_by_age_elsewhere() {
        let more = [Table { from: "2.1.300".into(), to: "2.1.310".into(), searches: false, ..TABLES[0].clone() }];
        for (asked, from) in [
            ("2.1.299", "2.1.280"),
            ("2.1.300", "2.1.300"),
            ("2.1.305", "2.1.300"),
            ("2.1.311", "2.1.300"),
            ("2.1.332", "2.1.332"),
            ("2.0.1", "2.0.77"),
        ] {
            assert_eq!(table(&more, Some(asked)).from, from, "{asked}");
        }
        let other = [Table { searches: false, ..TABLES[0].clone() }];
        assert!(!table(&other, Some("2.1.332")).searches && table(&other, None).from == "2.1.332");
        let read = [Table { origin: Origin::Read, from: "3".into(), to: "4".into(), ..TABLES[0].clone() }];
        let found = table(&read, Some("3.5"));
        assert_eq!((found.from.as_ref(), found.is_observed_on(Some("3.5"))), ("3", false));
    }

    #[test]
    fn the_tables_stand_newest_first() {
        assert!(TABLES.iter().map(|table| numbers(&table.from)).is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn what_is_accepted_depends_on_the_version() {
        let held = |turns, messageless, attachments, systems| Transcript {
            turns,
            messageless,
            attachments,
            systems,
            reached: turns,
            straight: turns,
            ..Transcript::default()
        };
        const UNSURE: Taken = Taken::Unsure("some records have no time");
        for (held, taken) in [
            (held(1, 0, 0, 0), [Taken::Yes; 3]),
            (held(0, 0, 1, 0), [Taken::Yes; 3]),
            (held(0, 0, 0, 1), [Taken::Yes; 3]),
            (Transcript { untimed: 1, untimed_tip: true, ..held(0, 0, 0, 1) }, [Taken::Yes, Taken::No, Taken::No]),
            (
                Transcript { untimed: 1, untimed_tip: true, odd_times: true, ..held(1, 0, 0, 0) },
                [Taken::Yes, Taken::No, UNSURE],
            ),
            (held(0, 1, 1, 0), [Taken::Yes, Taken::Yes, Taken::No]),
            (held(0, 1, 0, 0), [Taken::No; 3]),
            (Transcript { others: 3, sidechain: 4, ..Transcript::default() }, [Taken::No; 3]),
            (Transcript { glued: 1, ..held(1, 0, 0, 0) }, [Taken::Yes, Taken::Yes, Taken::No]),
            (Transcript { spread: 1, ..held(1, 0, 0, 0) }, [Taken::Yes, Taken::Yes, Taken::No]),
            (Transcript { misled: true, ..held(1, 0, 0, 0) }, [Taken::No, Taken::No, Taken::Yes]),
            (Transcript { circle: true, ..held(1, 0, 0, 0) }, [Taken::Yes, Taken::Yes, Taken::Hangs]),
            (Transcript { untimed: 1, untimed_tip: true, ..held(1, 0, 0, 0) }, [Taken::Yes, Taken::No, Taken::No]),
            (Transcript { untimed: 1, ..held(2, 0, 0, 0) }, [Taken::Yes, Taken::Yes, UNSURE]),
        ] {
            assert_eq!(TABLES.each_ref().map(|table| table.takes(&held)), taken, "{held:?}");
        }
    }
}
