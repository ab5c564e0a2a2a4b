//! From what was seen to a table: each field of the rules is decided by one case.

use std::borrow::Cow;

use super::judge::{Fate, Word};
use crate::provider::claude::{Cleaning, Origin, Table, Times};

/// A case that decides, and what it decides.
type Deciding = (&'static str, fn(&mut Table, &Fate));

const DECIDING: [Deciding; 14] = [
    ("twin.own_absent.one", |table, seen| table.searches = seen.word == Word::Continues),
    ("content.messageless_tree", |table, seen| table.messageless_spoils = seen.word == Word::Refused),
    ("content.glued_records", |table, seen| table.glued_counts = seen.word == Word::Continues),
    ("content.pretty", |table, seen| table.spread_counts = seen.word == Word::Continues),
    ("content.parent_unknown", |table, seen| table.finds_tip = seen.turns == Some(4)),
    ("content.no_time_in_the_last_turn", |table, seen| {
        table.times = match (seen.word, seen.turns) {
            (Word::Continues, Some(4)) => Times::Ignored,
            (Word::Continues, _) => Times::Decide,
            _ => Times::OfTheTip,
        };
    }),
    ("id.blanks_around", |table, seen| table.trims_ids = seen.word == Word::Continues),
    ("slug.long", |table, seen| table.cuts_slugs = seen.word == Word::Continues),
    ("config.combining_folder_is_composed", |table, seen| table.composes_paths = seen.word == Word::Continues),
    ("continue.newest_user_only", |table, seen| table.continues_by_change = seen.turns == Some(1)),
    ("retention.fork_of_an_old_one_that_is_quick", |table, seen| {
        table.cleans = if seen.source_lost { Cleaning::AtOnce } else { Cleaning::Later };
    }),
    ("slug.backslash", |table, seen| table.takes_backslashes = seen.word == Word::Continues),
    ("retention.settings_are_empty", |table, seen| table.empty_settings_spoil = !seen.source_lost),
    ("path.empty", |table, seen| table.path_starts_fresh = seen.word == Word::Fresh),
];

/// The names of the cases that decide.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    DECIDING.iter().map(|(name, _)| *name)
}

/// The table for a version by what was seen; else the name of the first case that is missing.
pub(super) fn learn<'f>(
    version: &str,
    nearest: &Table,
    seen: impl Fn(&str) -> Option<&'f Fate>,
) -> Result<Table, &'static str> {
    let version: Cow<'static, str> = Cow::Owned(version.to_owned());
    let mut table = Table { from: version.clone(), to: version, origin: Origin::Observed, ..nearest.clone() };
    for (name, decide) in DECIDING {
        decide(&mut table, seen(name).ok_or(name)?);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::cases;

    #[test]
    fn each_deciding_case_is_there_once() {
        let cases = cases::all();
        for name in names() {
            assert_eq!(cases.iter().filter(|case| case.name == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn case_names_are_different() {
        let mut names: Vec<String> = cases::all().into_iter().map(|case| case.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert!(names.len() == all && all >= 150, "{all}");
    }
}
