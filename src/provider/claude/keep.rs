//! Whether what a spawn writes will be kept, and whether what it reads will last.
//!
//! Observed on 2.1.332: a transcript that cannot be written, or a folder in which no fork can be created, makes the CLI print
//! its reply, exit with 0, and save nothing. And some six seconds after its start it deletes every session file that was not
//! changed for `cleanupPeriodDays` (30 unless its settings say otherwise): also the source of a fork that it has just made. A
//! plain resume saves its own file, because it appends to it.
//!
//! It cleans up at most once a day, which it knows by when `.last-cleanup` was changed, whatever that file says. The settings
//! of the working directory come before the login's; where one of these files cannot be used (no JSON object, a period that
//! is no integer from 1 on, even a folder in its place) it does not clean up at all.

use crate::provider::claude::path;
use crate::provider::claude::table::{Cleaning, Table};
use crate::provider::finding::Finding;
use crate::provider::rule::Place;
use crate::provider::source::NOT_SETTINGS;
use crate::snapshot::{Ask, NodeKind, Seen, SnapshotError, View};

const PERIOD_SETTING: &str = "cleanupPeriodDays";
const PERIOD_DAYS_DEFAULT: i64 = 30;
/// What a finding of the code `retention` says where the CLI deletes its source before it reads it, and where after a while.
pub(crate) const AT_ITS_START: &str = "the CLI deletes it at its start";
pub(crate) const IN_A_LONG_RUN: &str = "a run of more than six seconds may delete it";
/// From so few days left on, a fork's source is in danger.
const LEFT_DAYS_MIN: i64 = 2;

/// What should be known before a spawn that reads `file`.
pub(super) fn keeping(
    rules: &Table,
    view: &mut dyn View,
    place: &Place,
    file: &str,
    fork: bool,
) -> Result<Vec<Finding>, SnapshotError> {
    if !fork {
        let mut findings: Vec<Finding> = not_writable(file, &view.writable(file)?).into_iter().collect();
        findings.extend(not_kept(rules, view, place)?);
        if rules.cleans == Cleaning::AtOnce && is_swept(&rules.projects(place), file) {
            findings.extend(retention(rules, view, place, file)?);
        }
        return Ok(findings);
    }
    let mut findings: Vec<Finding> = not_kept(rules, view, place)?.into_iter().collect();
    if let Seen::Is(dir) = rules.folder(view, place)? {
        findings.extend(creatable(view, &dir)?);
    }
    if is_swept(&rules.projects(place), file) {
        findings.extend(retention(rules, view, place, file)?);
    }
    Ok(findings)
}

/// Whether a fork's file could be created in a folder that may not exist yet.
fn creatable(view: &mut dyn View, dir: &str) -> Result<Option<Finding>, SnapshotError> {
    let mut here = dir;
    loop {
        match view.node(here, true)? {
            Seen::Is(node) if node.kind == NodeKind::Dir => return Ok(not_writable(here, &view.writable(here)?)),
            Seen::Is(_) => {
                let detail = "a file stands where a folder of sessions should be; the CLI would save nothing";
                return Ok(Some(Finding::new("not_a_directory", detail).at(here).next("move it away")));
            }
            Seen::Unreadable(why) => return Ok(not_writable(here, &Seen::Unreadable(why))),
            Seen::Absent => match path::parent(here) {
                Some(parent) => here = parent,
                None => return Ok(None),
            },
        }
    }
}

fn not_writable(at: &str, writable: &Seen<bool>) -> Option<Finding> {
    match writable {
        Seen::Is(true) | Seen::Absent => None,
        Seen::Is(false) => {
            let detail = "it cannot be written: the CLI would answer, exit with 0, and save nothing";
            Some(Finding::new("not_writable", detail).at(at).next("make it writable"))
        }
        Seen::Unreadable(why) => {
            Some(Finding::new("writable_unknown", format!("whether new turns are saved cannot be told: {why}")).at(at))
        }
    }
}

/// Whether the CLI's clean-up here looks at a file: `projects/*/*.jsonl` of this login, no others.
fn is_swept(projects: &str, file: &str) -> bool {
    file.ends_with(".jsonl") && path::parent(file).and_then(path::parent) == Some(projects)
}

/// Where a period of no days means: nothing at all.
fn not_kept(rules: &Table, view: &mut dyn View, place: &Place) -> Result<Option<Finding>, SnapshotError> {
    if rules.cleans != Cleaning::AtOnce {
        return Ok(None);
    }
    for settings in settings(rules, place) {
        if matches!(view.setting(&settings, PERIOD_SETTING)?, Seen::Is(0)) {
            let detail = format!("{PERIOD_SETTING} is 0: this version of the CLI keeps no session");
            return Ok(Some(Finding::new("not_kept", detail).at(&settings).next("set it to a number of days")));
        }
    }
    Ok(None)
}

/// The files in which the CLI looks for its settings, the first to count first.
fn settings(rules: &Table, place: &Place) -> [String; 3] {
    let own = path::join(&place.cwd, ".claude");
    [
        path::join(&own, "settings.local.json"),
        path::join(&own, "settings.json"),
        path::join(&rules.root(place), "settings.json"),
    ]
}

fn retention(rules: &Table, view: &mut dyn View, place: &Place, file: &str) -> Result<Option<Finding>, SnapshotError> {
    let root = rules.root(place);
    let mut period = None;
    let mut known = true;
    for settings in &settings(rules, place) {
        match view.setting(settings, PERIOD_SETTING)? {
            Seen::Is(days) if days >= 1 => drop(period.get_or_insert(days)),
            // Broken settings count as none.
            Seen::Is(_) if rules.cleans == Cleaning::AtOnce => {}
            Seen::Unreadable(why) if why == NOT_SETTINGS && rules.cleans == Cleaning::AtOnce => {}
            Seen::Is(_) => return Ok(None),
            Seen::Unreadable(why) if why == NOT_SETTINGS => {
                let is_empty = matches!(view.node(settings, true)?, Seen::Is(node) if node.kind == NodeKind::File && node.bytes == 0);
                if !is_empty || rules.empty_settings_spoil {
                    return Ok(None);
                }
            }
            Seen::Unreadable(_) => known = false,
            Seen::Absent => {}
        }
    }
    let period = period.unwrap_or(PERIOD_DAYS_DEFAULT);
    let Seen::Is(age) = view.age_days(file)? else { return Ok(None) };
    let left = period.saturating_sub(age);
    if left > LEFT_DAYS_MIN {
        return Ok(None);
    }
    let is_cleaned = matches!(view.age_days(&path::join(&root, ".last-cleanup"))?, Seen::Is(0));
    let when = match left {
        ..=0 if rules.cleans == Cleaning::AtOnce => AT_ITS_START.to_owned(),
        ..=0 if is_cleaned => "the next clean-up, a day after the last, deletes it".to_owned(),
        ..=0 => IN_A_LONG_RUN.to_owned(),
        1 => "it has 1 day left".to_owned(),
        days => format!("it has {days} days left"),
    };
    let rule = if known { format!("{PERIOD_SETTING} is {period}") } else { format!("{PERIOD_SETTING} cannot be read") };
    let detail = format!("the source was last changed {age} days ago and {rule}: {when}");
    let next =
        format!("touch it, or set {PERIOD_SETTING} in {} to a larger number", path::join(&root, "settings.json"));
    Ok(Some(Finding::new("retention", detail).at(file).next(next)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_session_files_of_this_login_are_swept() {
        for (file, swept) in [
            ("/c/projects/-w/a.jsonl", true),
            ("/c/projects/a.jsonl", false),
            ("/c/projects/-w/a/b.jsonl", false),
            ("/d/projects/-w/a.jsonl", false),
            ("/c/projects/-w/a.json", false),
        ] {
            assert_eq!(is_swept("/c/projects", file), swept, "{file}");
        }
    }
}
