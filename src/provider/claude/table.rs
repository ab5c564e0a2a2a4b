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
    /// They decide which record is the last one; what comes of missing ones is not known.
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
    /// A `system` record alone makes a file acceptable.
    pub system_counts: bool,
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
    /// A fork of a file without a conversation starts a new session without a word.
    pub path_starts_fresh: bool,
    /// It can work in a directory with a backslash in its path.
    pub takes_backslashes: bool,
    /// An empty settings file keeps it from cleaning up, as a broken one does.
    pub empty_settings_spoil: bool,
}

/// The tables that are built in, newest first.
static TABLES: [Table; 3] = [
    Table {
        from: Cow::Borrowed("2.1.332"),
        to: Cow::Borrowed("2.1.332"),
        origin: Origin::Observed,
        searches: true,
        system_counts: true,
        messageless_spoils: false,
        glued_counts: true,
        spread_counts: true,
        finds_tip: true,
        times: Times::Ignored,
        path_starts_fresh: false,
        takes_backslashes: true,
        empty_settings_spoil: true,
    },
    Table {
        from: Cow::Borrowed("2.1.280"),
        to: Cow::Borrowed("2.1.280"),
        origin: Origin::Observed,
        searches: true,
        system_counts: true,
        messageless_spoils: false,
        glued_counts: true,
        spread_counts: true,
        finds_tip: true,
        times: Times::OfTheTip,
        path_starts_fresh: false,
        takes_backslashes: false,
        empty_settings_spoil: false,
    },
    Table {
        from: Cow::Borrowed("2.0.77"),
        to: Cow::Borrowed("2.0.77"),
        origin: Origin::Observed,
        searches: false,
        system_counts: false,
        messageless_spoils: true,
        glued_counts: false,
        spread_counts: false,
        finds_tip: false,
        times: Times::Decide,
        path_starts_fresh: true,
        takes_backslashes: false,
        empty_settings_spoil: false,
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
        let systems = if self.system_counts { held.systems } else { 0 };
        let spoilt = self.messageless_spoils && held.messageless > 0;
        if spoilt || self.turns(held) + held.attachments + systems == 0 {
            return Taken::No;
        }
        match self.times {
            Times::OfTheTip if held.untimed_tip => return Taken::No,
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

    /// The turns that this version takes.
    fn turns(&self, held: &Transcript) -> u64 {
        let lost = [(self.glued_counts, held.glued), (self.spread_counts, held.spread)];
        let lost: u64 = lost.into_iter().filter(|(counts, _)| !counts).map(|(_, turns)| turns).sum();
        held.turns - lost.min(held.turns)
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
            (held(0, 0, 0, 1), [Taken::Yes, Taken::Yes, Taken::No]),
            (Transcript { untimed: 1, untimed_tip: true, ..held(0, 0, 0, 1) }, [Taken::Yes, Taken::No, Taken::No]),
            (held(0, 1, 1, 0), [Taken::Yes, Taken::Yes, Taken::No]),
            (held(0, 1, 0, 0), [Taken::No; 3]),
            (Transcript { others: 3, sidechain: 4, ..Transcript::default() }, [Taken::No; 3]),
            (Transcript { glued: 1, ..held(1, 0, 0, 0) }, [Taken::Yes, Taken::Yes, Taken::No]),
            (Transcript { spread: 1, ..held(1, 0, 0, 0) }, [Taken::Yes, Taken::Yes, Taken::No]),
            (Transcript { misled: true, ..held(1, 0, 0, 0) }, [Taken::No, Taken::No, Taken::Yes]),
            (Transcript { circle: true, ..held(1, 0, 0, 0) }, [Taken::Yes, Taken::Yes, Taken::Hangs]),
            (Transcript { untimed: 1, untimed_tip: true, ..held(1, 0, 0, 0) }, [Taken::Yes, Taken::No, UNSURE]),
            (Transcript { untimed: 1, ..held(2, 0, 0, 0) }, [Taken::Yes, Taken::Yes, UNSURE]),
        ] {
            assert_eq!(TABLES.each_ref().map(|table| table.takes(&held)), taken, "{held:?}");
        }
    }
}
