//! The fixed cases: what Claude Code is asked, in which worlds.

use super::content::{ID, names};
use crate::probe::judge::BEYOND_CLEANUP_MS;
use crate::probe::world::{Ask, Meanwhile, Thing, World};

/// The id that a fork or a new session is to get.
const CHOSEN: &str = "33333333-3333-4333-8333-333333333333";
/// An id beside the one that is asked for.
const OTHER: &str = "22222222-2222-4222-8222-222222222222";

/// A world with a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::probe) struct Case {
    /// Its group, a dot, and what is special in it.
    pub(in crate::probe) name: String,
    pub(in crate::probe) world: World,
    /// It is about rights: a superuser has them all, so somebody else has to run it.
    pub(in crate::probe) ordinary_user: bool,
}

/// All of them, in order.
pub(in crate::probe) fn all() -> Vec<Case> {
    let groups: [(&str, Vec<(String, World)>); 14] = [
        ("content", contents()),
        ("place", places()),
        ("id", ids()),
        ("slug", slugs()),
        ("twin", twins()),
        ("worktree", worktrees()),
        ("fork", forks()),
        ("path", paths()),
        ("continue", continues()),
        ("new", news()),
        ("retention", retentions()),
        ("config", configs()),
        ("writer", writers()),
        ("rights", rights()),
    ];
    let cases = groups.into_iter().flat_map(|(group, cases)| {
        cases.into_iter().map(move |(name, world)| Case {
            name: format!("{group}.{name}"),
            world,
            ordinary_user: group == "rights",
        })
    });
    cases.collect()
}

type Named = Vec<(String, World)>;

pub(in crate::probe) fn plain() -> Ask {
    Ask::Resume { id: ID.into(), fork: false, chosen: None }
}

pub(in crate::probe) fn fork() -> Ask {
    Ask::Resume { id: ID.into(), fork: true, chosen: None }
}

fn named(name: impl Into<String>, world: World) -> (String, World) {
    (name.into(), world)
}

impl World {
    /// A session's file in a project folder: `own`, or a folder's name. The tag is the folder's, without what a mark
    /// cannot hold.
    pub(in crate::probe) fn session(self, folder: &str, content: &str) -> Self {
        let at = if folder == "own" { "{own}".to_owned() } else { format!("{{cfg}}/projects/{folder}") };
        let tag: String = folder.chars().filter(char::is_ascii_alphanumeric).collect();
        self.held(format!("{at}/{ID}.jsonl"), content, &tag)
    }

    /// A session's file anywhere.
    pub(in crate::probe) fn held(self, at: impl Into<String>, content: &str, tag: &str) -> Self {
        self.piece(at, Thing::Session { content: content.into(), tag: tag.into(), id: ID.into() })
    }

    fn own(self, thing: Thing) -> Self {
        self.piece(format!("{{own}}/{ID}.jsonl"), thing)
    }

    pub(in crate::probe) fn at(self, cwd: &str) -> Self {
        Self { cwd: cwd.into(), ..self }
    }

    fn holding(self, holds_ms: u64) -> Self {
        Self { holds_ms, ..self }
    }

    fn with_config(self, config: Option<&str>) -> Self {
        Self { config: config.map(str::to_owned), ..self }
    }
}

fn contents() -> Named {
    let each = names().flat_map(|name| {
        [("", plain()), (".fork", fork())]
            .map(|(suffix, ask)| {
                let world = World { uncounted: name.starts_with("tool_"), ..World::new(ask) };
                named(format!("{name}{suffix}"), world.session("own", name))
            })
    });
    std::iter::once(named("absent", World::new(plain()))).chain(each).collect()
}

fn places() -> Named {
    let world = || World::new(plain());
    let file = format!("{{own}}/{ID}.jsonl");
    vec![
        named("link_to_a_file", world().held("{room}/else.jsonl", "complete", "else").own(Thing::Link("{room}/else.jsonl".into()))),
        named("link_to_a_file.fork", World::new(fork()).held("{room}/else.jsonl", "complete", "else").own(Thing::Link("{room}/else.jsonl".into()))),
        named("link_to_nothing", world().own(Thing::Link("{room}/nothing".into()))),
        named("link_to_nothing_and_a_twin", world().own(Thing::Link("{room}/nothing".into())).session("twin", "complete")),
        named("links_in_a_circle", world().own(Thing::Link(file.clone()))),
        named("a_folder", world().own(Thing::Dir)),
        named("a_folder_and_a_twin", world().own(Thing::Dir).session("twin", "complete")),
        named("a_folder.fork", World::new(fork()).own(Thing::Dir)),
        named("a_pipe", World { most_ms: Some(12_000), ..world().own(Thing::Fifo) }),
        named("a_hard_link", world().held("{room}/else.jsonl", "complete", "else").own(Thing::HardLink("{room}/else.jsonl".into()))),
        named("upper_case_extension", world().held(format!("{{own}}/{ID}.JSONL"), "complete", "own")),
        named("no_extension", world().held(format!("{{own}}/{ID}"), "complete", "own")),
        named("beside_the_folders", world().held(format!("{{cfg}}/projects/{ID}.jsonl"), "complete", "root")),
        named("below_the_folder", world().held(format!("{{own}}/sub/{ID}.jsonl"), "complete", "sub")),
        named("in_a_sidecar_folder", world().held(format!("{{own}}/{ID}/subagents/{ID}.jsonl"), "complete", "sub")),
        named("own_folder_is_a_link", world().held(format!("{{room}}/else/{ID}.jsonl"), "complete", "else").piece("{own}", Thing::Link("{room}/else".into()))),
        named("own_folder_is_a_file", world().piece("{own}", Thing::Text("x".into()))),
        named("own_folder_is_a_file_and_a_twin", world().piece("{own}", Thing::Text("x".into())).session("twin", "complete")),
        named("projects_is_a_link", world().held(format!("{{room}}/else/{{slug:{{room}}/w/p1:slug}}/{ID}.jsonl"), "complete", "else").piece("{cfg}/projects", Thing::Link("{room}/else".into()))),
        named("projects_is_a_file", world().piece("{cfg}/projects", Thing::Text("x".into()))),
        named("no_config_dir_yet", world()),
        named("a_subagents_file_only", world().held("{own}/agent-a1b2c3.jsonl", "sidechain_of_an_agent", "own")),
    ]
}

fn ids() -> Named {
    let world = |id: &str, held: &str| {
        let ask = Ask::Resume { id: id.into(), fork: false, chosen: None };
        World::new(ask).held(format!("{{own}}/{held}.jsonl"), "complete", "own")
    };
    const LETTERS: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
    let same = |name: &str, id: &str| named(name, world(id, id));
    vec![
        same("zeros", "00000000-0000-0000-0000-000000000000"),
        same("any_version", "12345678-1234-9234-f234-123456789abc"),
        same("upper_case", &LETTERS.to_uppercase()),
        named("upper_for_lower", world(&LETTERS.to_uppercase(), LETTERS)),
        named("lower_for_upper", world(LETTERS, &LETTERS.to_uppercase())),
        named("blanks_around", world(&format!("  {LETTERS} "), LETTERS)),
        named("newline_behind", world(&format!("{LETTERS}\n"), LETTERS)),
        named("no_dashes", world(&LETTERS.replace('-', ""), LETTERS)),
        named("braces", world(&format!("{{{LETTERS}}}"), LETTERS)),
        same("a_word", "session1"),
        same("a_subagent", "agent-a1b2c3"),
        named("a_path_up", world(&format!("../x/{LETTERS}"), LETTERS)),
        named("a_letter_too_many", world(&format!("{LETTERS}e"), LETTERS)),
        named("a_letter_too_few", world(&LETTERS[..35], LETTERS)),
        named("not_hexadecimal", world("gggggggg-bbbb-4ccc-8ddd-eeeeeeeeeeee", LETTERS)),
        named("of_nothing", world(OTHER, LETTERS)),
    ]
}

fn slugs() -> Named {
    let long = |units: usize| {
        let mut text = String::from("{room}/w");
        while text.len() < units {
            text.push('/');
            text.push_str(&"x".repeat(90));
        }
        text
    };
    let spelled = [
        ("upper_case", "{room}/w/UPPER.Case".to_owned()),
        ("hidden", "{room}/w/.hidden".into()),
        ("underscore", "{room}/w/under_score".into()),
        ("blanks", "{room}/w/two  blanks".into()),
        ("letters_with_marks", "{room}/w/ünï".into()),
        ("wide_letters", "{room}/w/日本語".into()),
        ("beyond_the_first_plane", "{room}/w/emoji😀x".into()),
        ("combining", "{room}/w/e\u{301}comb".into()),
        ("other_digits", "{room}/w/١٢²ⅷ".into()),
        ("quotes", "{room}/w/quote'\"".into()),
        ("backslash", "{room}/w/back\\slash".into()),
        ("control", "{room}/w/tab\tnew\nline\u{1}".into()),
        ("tilde", "{room}/w/~".into()),
        ("long", long(250)),
        ("very_long", long(700)),
    ];
    let mut cases: Named = spelled
        .into_iter()
        .map(|(name, cwd)| named(name, World::new(plain()).at(&cwd).session("own", "complete")))
        .collect();
    let linked = World::new(plain()).piece("{room}/w/real", Thing::Dir).piece("{room}/w/link", Thing::Link("{room}/w/real".into()));
    cases.push(named(
        "through_a_link",
        linked.clone().at("{room}/w/link").held(format!("{{cfg}}/projects/{{slug:{{room}}/w/real:slug}}/{ID}.jsonl"), "complete", "real"),
    ));
    cases.push(named("collision", World::new(plain()).at("{room}/w/a.b").held(format!("{{cfg}}/projects/{{slug:{{room}}/w/a-b:slug}}/{ID}.jsonl"), "complete", "other")));
    let prefix = long(250);
    cases.push(named(
        "long_with_the_other_hash",
        World::new(plain()).at(&prefix).held(format!("{{cfg}}/projects/{{slug:{prefix}x:slug}}/{ID}.jsonl"), "complete", "other"),
    ));
    cases
}

fn twins() -> Named {
    let own = ["absent", "empty", "metadata", "sidechain", "sidechain_spaced", "garbage_that_names_a_user", "cut_in_the_first_prompt", "system", "one_attachment"];
    let mut cases: Named = Vec::new();
    let with = |ask: Ask, own: &str| match own {
        "absent" => World::new(ask),
        own => World::new(ask).session("own", own),
    };
    for own in own {
        cases.push(named(format!("own_{own}.one"), with(plain(), own).session("twin", "complete")));
        cases.push(named(format!("own_{own}.one.fork"), with(fork(), own).session("twin", "complete")));
        cases.push(named(format!("own_{own}.two"), with(plain(), own).session("twin", "complete").session("zwin", "complete")));
    }
    cases.push(named("own_complete.two", with(plain(), "complete").session("twin", "complete").session("zwin", "complete")));
    cases.push(named("own_complete.two.fork", with(fork(), "complete").session("twin", "complete").session("zwin", "complete")));
    let beside = ["empty", "newline", "metadata", "attachments", "system", "assistant_only", "user_only", "sidechain", "messageless_tree", "garbage_that_names_a_user", "cut_in_the_first_prompt", "nested_user", "a_turn_between_megabytes", "spaced", "pretty", "text"];
    for beside in beside {
        cases.push(named(format!("one_beside_{beside}"), World::new(plain()).session("twin", "complete").session("zwin", beside)));
        cases.push(named(format!("only_{beside}"), World::new(plain()).session("zwin", beside)));
    }
    let twin = format!("{{cfg}}/projects/twin/{ID}.jsonl");
    let zwin = format!("{{cfg}}/projects/zwin/{ID}.jsonl");
    let elsewhere = || World::new(plain()).held("{room}/else.jsonl", "complete", "else");
    let complete = || World::new(plain()).session("twin", "complete");
    cases.extend([
        named("only_a_link", elsewhere().piece(&twin, Thing::Link("{room}/else.jsonl".into()))),
        named("only_in_a_linked_folder", World::new(plain()).held(format!("{{room}}/else/{ID}.jsonl"), "complete", "else").piece("{cfg}/projects/twin", Thing::Link("{room}/else".into()))),
        named("only_a_folder", World::new(plain()).piece(&twin, Thing::Dir)),
        named("one_beside_a_link", complete().held("{room}/else.jsonl", "complete", "else").piece(&zwin, Thing::Link("{room}/else.jsonl".into()))),
        named("one_beside_a_folder", complete().piece(&zwin, Thing::Dir)),
        named("one_beside_a_pipe", complete().piece(&zwin, Thing::Fifo)),
        named("one_beside_its_hard_link", complete().piece(&zwin, Thing::HardLink(twin.clone()))),
        named("one_beside_another_id", complete().held(format!("{{cfg}}/projects/zwin/{OTHER}.jsonl"), "complete", "other")),
        named("one_in_a_hidden_folder", World::new(plain()).session(".hidden", "complete")),
    ]);
    cases
}

fn worktrees() -> Named {
    let world = |ask: Ask| World {
        worktrees: vec!["{room}/w/main".into(), "{room}/w/wt".into(), "{room}/w/wt2".into()],
        ..World::new(ask)
    };
    let of = |path: &str| format!("{{cfg}}/projects/{{slug:{{room}}/w/{path}:slug}}/{ID}.jsonl");
    let held = |world: World, path: &str, content: &str| {
        let tag: String = path.chars().filter(char::is_ascii_alphanumeric).collect();
        world.held(of(path), content, &tag)
    };
    let main = |ask: Ask| world(ask).at("{room}/w/main");
    vec![
        named("sibling", held(main(plain()), "wt", "complete")),
        named("sibling.fork", held(main(fork()), "wt", "complete")),
        named("main", held(world(plain()).at("{room}/w/wt"), "main", "complete")),
        named("main_from_a_subfolder", held(world(plain()).piece("{room}/w/wt/sub", Thing::Dir).at("{room}/w/wt/sub"), "main", "complete")),
        named("own_root_from_a_subfolder", held(world(plain()).piece("{room}/w/wt/sub", Thing::Dir).at("{room}/w/wt/sub"), "wt", "complete")),
        named("sibling_beside_a_twin", held(main(plain()), "wt", "complete").session("twin", "complete")),
        named("two_siblings", held(held(main(plain()), "wt", "complete"), "wt2", "complete")),
        named("two_siblings_the_other_way", held(held(world(plain()).at("{room}/w/wt"), "wt2", "complete"), "main", "complete")),
        named("made_in_the_other_order", held(held(World { worktrees: vec!["{room}/w/main".into(), "{room}/w/z".into(), "{room}/w/a".into()], ..main(plain()) }, "z", "complete"), "a", "complete")),
        named("empty_sibling_and_another", held(held(main(plain()), "wt", "empty"), "wt2", "complete")),
        named("metadata_sibling_and_a_twin", held(main(plain()), "wt", "metadata").session("twin", "complete")),
        named("sidechain_sibling_and_a_twin", held(main(plain()), "wt", "sidechain").session("twin", "complete")),
        named("attachment_sibling_and_a_twin", held(main(plain()), "wt", "one_attachment").session("twin", "complete")),
        named("system_sibling_and_a_twin", held(main(plain()), "wt", "system").session("twin", "complete")),
        named("spaced_sibling", held(main(plain()), "wt", "spaced")),
        named("own_and_sibling", held(main(plain()), "wt", "complete").session("own", "complete")),
        named("linked_sibling", main(plain()).held("{room}/else.jsonl", "complete", "else").piece(of("wt"), Thing::Link("{room}/else.jsonl".into()))),
        named("linked_sibling_folder", main(plain()).held(format!("{{room}}/else/{ID}.jsonl"), "complete", "else").piece("{cfg}/projects/{slug:{room}/w/wt:slug}", Thing::Link("{room}/else".into()))),
        named("folder_for_the_siblings_file", main(plain()).piece(of("wt"), Thing::Dir)),
        named("folder_for_the_siblings_file_and_another", held(main(plain()).piece(of("wt"), Thing::Dir), "wt2", "complete")),
        named("deleted_sibling", held(main(plain()), "wt", "complete").piece("{room}/w/wt/.git", Thing::Text("gone".into()))),
    ]
}

fn forks() -> Named {
    let chosen = |ask: fn() -> Ask| match ask() {
        Ask::Resume { id, .. } => Ask::Resume { id, fork: true, chosen: Some(CHOSEN.into()) },
        other => other,
    };
    vec![
        named("chosen_id", World::new(chosen(fork)).session("own", "complete")),
        named("chosen_id_from_a_twin", World::new(chosen(fork)).session("twin", "complete")),
        named("chosen_id_of_an_empty_file", World::new(chosen(fork)).session("own", "empty")),
        named("from_a_twin_into_the_own_folder", World::new(fork()).session("twin", "complete")),
        named("own_folder_is_new", World::new(fork()).at("{room}/w/new").session("twin", "complete")),
    ]
}

fn paths() -> Named {
    let path = |path: &str, chosen: Option<&str>| Ask::Path { path: path.into(), chosen: chosen.map(str::to_owned) };
    let beside = || World::new(path("{room}/else/any-name.jsonl", None));
    let chosen = || World::new(path("{room}/else/any-name.jsonl", Some(CHOSEN)));
    const AT: &str = "{room}/else/any-name.jsonl";
    let mut cases: Named = ["complete", "cut_in_the_last_reply", "spaced", "empty", "metadata", "sidechain", "system", "attachments", "messageless_tree", "garbage_first", "no_session_in_the_records", "hundred_turns", "a_turn_of_megabytes"]
        .map(|content| named(content, beside().held(AT, content, "else")))
        .into();
    cases.extend(["complete", "empty", "metadata", "cut_in_the_last_reply"].map(|content| named(format!("chosen_id.{content}"), chosen().held(AT, content, "else"))));
    cases.extend([
        named("absent", beside()),
        named("a_folder", beside().piece(AT, Thing::Dir)),
        named("a_link", beside().held("{room}/real.jsonl", "complete", "real").piece(AT, Thing::Link("{room}/real.jsonl".into()))),
        named("blanks", World::new(path("{room}/two  blanks/a name.jsonl", None)).held("{room}/two  blanks/a name.jsonl", "complete", "else")),
        named("not_ascii", World::new(path("{room}/ünï 日本😀/é.jsonl", None)).held("{room}/ünï 日本😀/é.jsonl", "complete", "else")),
        named("combining", World::new(path("{room}/e\u{301}/a.jsonl", None)).held("{room}/e\u{301}/a.jsonl", "complete", "else")),
        named("upper_case_extension", World::new(path("{room}/else/a.JSONL", None)).held("{room}/else/a.JSONL", "complete", "else")),
        named("the_id_is_in_the_own_folder_too", beside().held(AT, "complete", "else").session("own", "complete")),
        named("the_id_is_in_two_other_folders_too", beside().held(AT, "complete", "else").session("twin", "complete").session("zwin", "complete")),
        named("in_another_login", World::new(path(&format!("{{room}}/login/projects/x/{ID}.jsonl"), None)).held(format!("{{room}}/login/projects/x/{ID}.jsonl"), "complete", "else")),
        named("in_the_own_folder", World::new(path(&format!("{{room}}/cfg/projects/twin/{ID}.jsonl"), None)).session("twin", "complete")),
        named("chosen_id_exists", chosen().held(AT, "complete", "else").held(format!("{{own}}/{CHOSEN}.jsonl"), "complete", "taken")),
    ]);
    cases
}

fn continues() -> Named {
    let world = || World::new(Ask::Continue);
    let held = |world: World, id: &str, content: &str, days: u64| {
        let tag: String = id.chars().take(4).collect();
        world.piece(format!("{{own}}/{id}.jsonl"), Thing::Session { content: content.into(), tag, id: id.into() }).aged(days)
    };
    let mut cases: Named = vec![
        named("nothing", world()),
        named("one", held(world(), ID, "complete", 1)),
        named("the_newer", held(held(world(), ID, "complete", 2), OTHER, "complete", 1)),
        named("the_older_by_name", held(held(world(), ID, "complete", 1), OTHER, "complete", 2)),
        named("only_in_another_folder", world().session("twin", "complete")),
        named("not_an_id", held(held(world(), ID, "complete", 2), "notes", "complete", 1)),
        named("a_subagents_file", held(held(world(), ID, "complete", 2), "agent-a1b2c3", "sidechain_of_an_agent", 1)),
        named("a_sibling_worktree", World { worktrees: vec!["{room}/w/main".into(), "{room}/w/wt".into()], ..world().at("{room}/w/main") }.held(format!("{{cfg}}/projects/{{slug:{{room}}/w/wt:slug}}/{ID}.jsonl"), "complete", "wt")),
    ];
    for content in ["empty", "metadata", "sidechain", "system", "one_attachment", "messageless_user", "text", "user_only", "cut_in_the_last_reply"] {
        cases.push(named(format!("newest_{content}"), held(held(world(), ID, "complete", 2), OTHER, content, 1)));
        cases.push(named(format!("only_{content}"), held(world(), OTHER, content, 1)));
    }
    cases
}

fn news() -> Named {
    let world = || World::new(Ask::New { chosen: CHOSEN.into() });
    vec![
        named("chosen_id", world()),
        named("taken", world().held(format!("{{own}}/{CHOSEN}.jsonl"), "complete", "taken")),
        named("taken_by_an_empty_file", world().held(format!("{{own}}/{CHOSEN}.jsonl"), "empty", "taken")),
        named("taken_by_metadata", world().held(format!("{{own}}/{CHOSEN}.jsonl"), "metadata", "taken")),
        named("in_another_folder", world().held(format!("{{cfg}}/projects/twin/{CHOSEN}.jsonl"), "complete", "taken")),
    ]
}

fn retentions() -> Named {
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
        named("old_one_by_path_elsewhere", World::new(Ask::Path { path: "{room}/else/a.jsonl".into(), chosen: None }).held("{room}/else/a.jsonl", "complete", "else").aged(400).holding(BEYOND_CLEANUP_MS)),
        named("cleaned_just_now", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now}".into()))),
        named("cleaned_an_hour_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now-1h}".into()))),
        named("cleaned_23_hours_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now-23h}".into()))),
        named("cleaned_25_hours_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now-25h}".into()))),
        named("cleaned_8_days_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now-192h}".into()))),
        named("cleaned_just_now_by_an_old_file", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("{now}".into())).aged(9)),
        named("cleaned_long_ago_by_a_new_file", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("2020-01-01T00:00:00.000Z".into()))),
        named("cleaned_at_no_time", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("no time".into()))),
        named("period_is_zero_and_it_is_slow", World { holds_ms: 25_000, ..settings(old(fork(), 400), "{\"cleanupPeriodDays\":0}") }),
        named("period_is_a_text", settings(old(fork(), 400), "{\"cleanupPeriodDays\":\"90\"}")),
        named("other_setting_is_wrong", settings(old(fork(), 400), "{\"permissions\":7}")),
        named("settings_are_empty", settings(old(fork(), 400), "")),
        named("cleaned_a_day_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("x".into())).aged(1)),
        named("cleaned_two_days_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("x".into())).aged(2)),
        named("cleaned_six_days_ago", old(fork(), 400).piece("{cfg}/.last-cleanup", Thing::Text("x".into())).aged(6)),
        named("projects_settings", old(fork(), 400).piece("{room}/w/p1/.claude/settings.json", Thing::Text("{\"cleanupPeriodDays\":3650}".into()))),
        named("projects_local_settings", old(fork(), 400).piece("{room}/w/p1/.claude/settings.local.json", Thing::Text("{\"cleanupPeriodDays\":3650}".into()))),
        named("projects_settings_are_torn", old(fork(), 400).piece("{room}/w/p1/.claude/settings.json", Thing::Text("{".into()))),
        named("projects_settings_are_shorter", settings(old(fork(), 40), "{\"cleanupPeriodDays\":3650}").piece("{room}/w/p1/.claude/settings.json", Thing::Text("{\"cleanupPeriodDays\":7}".into()))),
        named("period_is_negative", settings(old(fork(), 400), "{\"cleanupPeriodDays\":-1}")),
        named("period_is_a_fraction", settings(old(fork(), 400), "{\"cleanupPeriodDays\":30.5}")),
        named("period_is_null", settings(old(fork(), 400), "{\"cleanupPeriodDays\":null}")),
        named("settings_are_a_list", settings(old(fork(), 400), "[]")),
        named("settings_are_a_folder", old(fork(), 400).piece("{cfg}/settings.json", Thing::Dir)),
        named("settings_are_a_link", old(fork(), 400).piece("{room}/set", Thing::Text("{\"cleanupPeriodDays\":3650}".into())).piece("{cfg}/settings.json", Thing::Link("{room}/set".into()))),
        named("old_twin", World::new(fork()).session("twin", "complete").aged(400).holding(BEYOND_CLEANUP_MS)),
    ]
}

fn configs() -> Named {
    let at = |config: Option<&str>, root: &str, cwd: &str| {
        let file = format!("{root}/projects/{{slug:{cwd}:slug}}/{ID}.jsonl");
        World::new(plain()).at(cwd).with_config(config).held(file, "complete", "cfg")
    };
    const CWD: &str = "{room}/w/p1";
    vec![
        named("not_set", at(None, "{room}/home/.claude", CWD)),
        named("not_set_and_xdg", at(None, "{room}/home/.config/claude", CWD)),
        named("empty", at(Some(""), CWD, CWD)),
        named("tilde", at(Some("~/cfgx"), &format!("{CWD}/~/cfgx"), CWD)),
        named("tilde_is_not_home", at(Some("~/cfgx"), "{room}/home/cfgx", CWD)),
        named("relative", at(Some("relcfg"), &format!("{CWD}/relcfg"), CWD)),
        named("relative_with_dot", at(Some("./relcfg"), &format!("{CWD}/relcfg"), CWD)),
        named("relative_up", at(Some("../relcfg"), "{room}/w/relcfg", CWD)),
        named("slash_behind", at(Some("{cfg}/"), "{cfg}", CWD)),
        named("two_slashes", at(Some("{room}//cfg"), "{cfg}", CWD)),
        named("dots_inside", at(Some("{room}/x/../cfg"), "{cfg}", CWD)),
        named("blanks_around", at(Some(" {cfg} "), &format!("{CWD}/ {{cfg}} "), CWD)),
        named("a_link", at(Some("{room}/link"), "{cfg}", CWD).piece("{room}/link", Thing::Link("{cfg}".into()))),
        named("combining_folder_is_composed", at(Some("{room}/e\u{301}cfg"), "{room}/\u{e9}cfg", CWD)),
        named("combining_folder_is_combining", at(Some("{room}/e\u{301}cfg"), "{room}/e\u{301}cfg", CWD)),
        named("not_there", World::new(plain()).with_config(Some("{room}/no/such"))),
        named("a_file", World::new(plain()).with_config(Some("{room}/file")).piece("{room}/file", Thing::Text("x".into()))),
        named("home_is_combining", World { home: "{room}/e\u{301}home".into(), ..at(None, "{room}/\u{e9}home/.claude", CWD) }),
    ]
}

fn writers() -> Named {
    let while_it = |meanwhile: Meanwhile, ask: Ask| World { meanwhile: Some(meanwhile), ..World::new(ask).session("own", "complete") };
    vec![
        named("metadata_comes", while_it(Meanwhile::Appends, plain())),
        named("metadata_comes.fork", while_it(Meanwhile::Appends, fork())),
        named("driven_by_another", while_it(Meanwhile::Driver, plain())),
        named("driven_by_another.fork", while_it(Meanwhile::Driver, fork())),
        named("half_a_line", while_it(Meanwhile::HalfLine, plain())),
        named("registry_of_a_dead_one", World::new(plain()).session("own", "complete").piece("{cfg}/sessions/999999.json", Thing::Text(format!("{{\"pid\":999999,\"sessionId\":\"{ID}\",\"cwd\":\"/w\",\"procStart\":\"1\",\"version\":\"2.1.0\",\"kind\":\"interactive\"}}")))),
    ]
}

fn rights() -> Named {
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
        named("projects_not_listable_and_a_twin", twin(World::new(plain())).piece("{cfg}/projects", Thing::Dir).mode(0o100)),
        named("twin_not_readable", twin(World::new(plain())).mode(0)),
        named("one_beside_one_not_readable", twin(World::new(plain())).session("zwin", "complete").mode(0)),
        named("one_beside_a_folder_not_readable", twin(World::new(plain())).session("zwin", "complete").piece("{cfg}/projects/zwin", Thing::Dir).mode(0)),
        named("projects_not_writable.fork", twin(World::new(fork())).piece("{cfg}/projects", Thing::Dir).mode(0o500)),
        named("path_not_writable", World::new(Ask::Path { path: "{room}/else/a.jsonl".into(), chosen: None }).held("{room}/else/a.jsonl", "complete", "else").mode(0o400)),
        named("path_not_readable", World::new(Ask::Path { path: "{room}/else/a.jsonl".into(), chosen: None }).held("{room}/else/a.jsonl", "complete", "else").mode(0)),
    ]
}
