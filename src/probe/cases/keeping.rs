//! What is written and what is kept: clean-up, other writers, rights.

use super::{ID, Named, fork, named, plain};
use crate::probe::world::{Ask, BEYOND_CLEANUP_MS, Meanwhile, Thing, World};

pub(super) fn retentions() -> Named {
    let old = |ask: Ask, days: u64| World::new(ask).session("own", "complete").aged(days).holding(BEYOND_CLEANUP_MS);
    let settings = |world: World, text: &str| world.piece("{cfg}/settings.json", Thing::Text(text.into()));
    vec![
        named("fork_of_an_old_one", old(fork(), 400)),
        named("fork_of_one_of_31_days", old(fork(), 31)),
        named("fork_of_one_of_29_days", old(fork(), 29)),
        named("plain_of_an_old_one", old(plain(), 400)),
        named("fork_of_an_old_one_that_is_quick", World { holds_ms: 0, ..old(fork(), 400) }),
        named("period_is_longer", settings(old(fork(), 400), "{\"cleanupPeriodDays\":3650}")),
        named("period_is_shorter", settings(old(fork(), 10), "{\"cleanupPeriodDays\":7}")),
        named("period_is_zero", settings(old(fork(), 400), "{\"cleanupPeriodDays\":0}")),
        named("settings_are_torn", settings(old(fork(), 400), "{\"cleanupPeriodDays\":36")),
        named(
            "old_one_by_path_elsewhere",
            World::new(Ask::Path { path: "{room}/else/a.jsonl".into(), chosen: None })
                .held("{room}/else/a.jsonl", "complete", "else")
                .aged(400)
                .holding(BEYOND_CLEANUP_MS),
        ),
        named("cleaned_just_now", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now}".into()))),
        named("cleaned_an_hour_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now-1h}".into()))),
        named("cleaned_23_hours_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now-23h}".into()))),
        named("cleaned_25_hours_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now-25h}".into()))),
        named("cleaned_8_days_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now-192h}".into()))),
        named(
            "cleaned_just_now_by_an_old_file",
            old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now}".into())).aged(9),
        ),
        named(
            "cleaned_long_ago_by_a_new_file",
            old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("2020-01-01T00:00:00.000Z".into())),
        ),
        named("cleaned_at_no_time", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("no time".into()))),
        named(
            "period_is_zero_and_it_is_slow",
            World { holds_ms: 25_000, ..settings(old(fork(), 400), "{\"cleanupPeriodDays\":0}") },
        ),
        named("period_is_a_text", settings(old(fork(), 400), "{\"cleanupPeriodDays\":\"90\"}")),
        named("other_setting_is_wrong", settings(old(fork(), 400), "{\"permissions\":7}")),
        named("settings_are_empty", settings(old(fork(), 400), "")),
        named("cleaned_a_day_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("x".into())).aged(1)),
        named("cleaned_two_days_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("x".into())).aged(2)),
        named("cleaned_six_days_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("x".into())).aged(6)),
        named(
            "projects_settings",
            old(fork(), 400)
                .piece("{room}/w/p1/.claude/settings.json", Thing::Text("{\"cleanupPeriodDays\":3650}".into())),
        ),
        named(
            "projects_local_settings",
            old(fork(), 400)
                .piece("{room}/w/p1/.claude/settings.local.json", Thing::Text("{\"cleanupPeriodDays\":3650}".into())),
        ),
        named(
            "projects_settings_are_torn",
            old(fork(), 400).piece("{room}/w/p1/.claude/settings.json", Thing::Text("{".into())),
        ),
        named(
            "projects_settings_are_shorter",
            settings(old(fork(), 40), "{\"cleanupPeriodDays\":3650}")
                .piece("{room}/w/p1/.claude/settings.json", Thing::Text("{\"cleanupPeriodDays\":7}".into())),
        ),
        named("period_is_negative", settings(old(fork(), 400), "{\"cleanupPeriodDays\":-1}")),
        named("period_is_a_fraction", settings(old(fork(), 400), "{\"cleanupPeriodDays\":30.5}")),
        named("period_is_null", settings(old(fork(), 400), "{\"cleanupPeriodDays\":null}")),
        named("settings_are_a_list", settings(old(fork(), 400), "[]")),
        named("settings_are_a_folder", old(fork(), 400).piece("{cfg}/settings.json", Thing::Dir)),
        named(
            "settings_are_a_link",
            old(fork(), 400)
                .piece("{room}/set", Thing::Text("{\"cleanupPeriodDays\":3650}".into()))
                .piece("{cfg}/settings.json", Thing::Link("{room}/set".into())),
        ),
        named("old_twin", World::new(fork()).session("twin", "complete").aged(400).holding(BEYOND_CLEANUP_MS)),
    ]
}

pub(super) fn writers() -> Named {
    let while_it = |meanwhile: Meanwhile, ask: Ask| World {
        meanwhile: Some(meanwhile),
        ..World::new(ask).session("own", "complete")
    };
    vec![
        named("metadata_comes", while_it(Meanwhile::Appends, plain())),
        named("metadata_comes.fork", while_it(Meanwhile::Appends, fork())),
        named("driven_by_another", while_it(Meanwhile::Driver, plain())),
        named("driven_by_another.fork", while_it(Meanwhile::Driver, fork())),
        named("half_a_line", while_it(Meanwhile::HalfLine, plain())),
        named("registry_of_a_dead_one", World::new(plain()).session("own", "complete").piece("{cfg}/sessions/999999.json", Thing::Text(format!("{{\"pid\":999999,\"sessionId\":\"{ID}\",\"cwd\":\"/w\",\"procStart\":\"1\",\"version\":\"2.1.0\",\"kind\":\"interactive\"}}")))),
    ]
}

pub(super) fn rights() -> Named {
    let own = |ask: Ask| World::new(ask).session("own", "complete");
    let twin = |world: World| world.session("twin", "complete");
    vec![
        named("file_not_readable", own(plain()).mode(0)),
        named("file_not_readable_and_a_twin", twin(own(plain()).mode(0))),
        named("file_not_writable", own(plain()).mode(0o400)),
        named("file_not_writable.fork", own(fork()).mode(0o400)),
        named("folder_not_writable", own(plain()).piece("{own}", Thing::Dir).mode(0o500)),
        named("folder_not_writable.fork", own(fork()).piece("{own}", Thing::Dir).mode(0o500)),
        named("folder_not_readable", own(plain()).piece("{own}", Thing::Dir).mode(0)),
        named("folder_not_listable", own(plain()).piece("{own}", Thing::Dir).mode(0o100)),
        named("projects_not_listable", own(plain()).piece("{cfg}/projects", Thing::Dir).mode(0o100)),
        named(
            "projects_not_listable_and_a_twin",
            twin(World::new(plain())).piece("{cfg}/projects", Thing::Dir).mode(0o100),
        ),
        named("twin_not_readable", twin(World::new(plain())).mode(0)),
        named("one_beside_one_not_readable", twin(World::new(plain())).session("zwin", "complete").mode(0)),
        named(
            "one_beside_a_folder_not_readable",
            twin(World::new(plain())).session("zwin", "complete").piece("{cfg}/projects/zwin", Thing::Dir).mode(0),
        ),
        named("projects_not_writable.fork", twin(World::new(fork())).piece("{cfg}/projects", Thing::Dir).mode(0o500)),
        named(
            "path_not_writable",
            World::new(Ask::Path { path: "{room}/else/a.jsonl".into(), chosen: None })
                .held("{room}/else/a.jsonl", "complete", "else")
                .mode(0o400),
        ),
        named(
            "path_not_readable",
            World::new(Ask::Path { path: "{room}/else/a.jsonl".into(), chosen: None })
                .held("{room}/else/a.jsonl", "complete", "else")
                .mode(0),
        ),
    ]
}
