//! Several files of one id: other folders, worktrees, forks, paths, and the newest of a folder.

use super::{CHOSEN, ID, Named, OTHER, fork, named, plain};
use crate::probe::world::{Ask, Thing, World};

pub(super) fn twins() -> Named {
    let own = [
        "absent",
        "empty",
        "metadata",
        "sidechain",
        "sidechain_spaced",
        "garbage_that_names_a_user",
        "cut_in_the_first_prompt",
        "system",
        "one_attachment",
    ];
    let mut cases: Named = Vec::new();
    let with = |ask: Ask, own: &str| match own {
        "absent" => World::new(ask),
        own => World::new(ask).session("own", own),
    };
    for own in own {
        cases.push(named(format!("own_{own}.one"), with(plain(), own).session("twin", "complete")));
        cases.push(named(format!("own_{own}.one.fork"), with(fork(), own).session("twin", "complete")));
        cases.push(named(
            format!("own_{own}.two"),
            with(plain(), own).session("twin", "complete").session("zwin", "complete"),
        ));
    }
    cases.push(named(
        "own_complete.two",
        with(plain(), "complete").session("twin", "complete").session("zwin", "complete"),
    ));
    cases.push(named(
        "own_complete.two.fork",
        with(fork(), "complete").session("twin", "complete").session("zwin", "complete"),
    ));
    let beside = [
        "empty",
        "newline",
        "metadata",
        "attachments",
        "system",
        "assistant_only",
        "user_only",
        "sidechain",
        "messageless_tree",
        "garbage_that_names_a_user",
        "cut_in_the_first_prompt",
        "nested_user",
        "a_turn_between_megabytes",
        "spaced",
        "pretty",
        "text",
    ];
    for beside in beside {
        cases.push(named(
            format!("one_beside_{beside}"),
            World::new(plain()).session("twin", "complete").session("zwin", beside),
        ));
        cases.push(named(format!("only_{beside}"), World::new(plain()).session("zwin", beside)));
    }
    let twin = format!("{{cfg}}/projects/twin/{ID}.jsonl");
    let zwin = format!("{{cfg}}/projects/zwin/{ID}.jsonl");
    let elsewhere = || World::new(plain()).held("{room}/else.jsonl", "complete", "else");
    let complete = || World::new(plain()).session("twin", "complete");
    cases.extend([
        named("only_a_link", elsewhere().piece(&twin, Thing::Link("{room}/else.jsonl".into()))),
        named(
            "only_in_a_linked_folder",
            World::new(plain())
                .held(format!("{{room}}/else/{ID}.jsonl"), "complete", "else")
                .piece("{cfg}/projects/twin", Thing::Link("{room}/else".into())),
        ),
        named("only_a_folder", World::new(plain()).piece(&twin, Thing::Dir)),
        named(
            "one_beside_a_link",
            complete()
                .held("{room}/else.jsonl", "complete", "else")
                .piece(&zwin, Thing::Link("{room}/else.jsonl".into())),
        ),
        named("one_beside_a_folder", complete().piece(&zwin, Thing::Dir)),
        named("one_beside_a_pipe", complete().piece(&zwin, Thing::Fifo)),
        named("one_beside_its_hard_link", complete().piece(&zwin, Thing::HardLink(twin.clone()))),
        named(
            "one_beside_another_id",
            complete().held(format!("{{cfg}}/projects/zwin/{OTHER}.jsonl"), "complete", "other"),
        ),
        named("one_in_a_hidden_folder", World::new(plain()).session(".hidden", "complete")),
    ]);
    cases
}

pub(super) fn worktrees() -> Named {
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
        named(
            "main_from_a_subfolder",
            held(world(plain()).piece("{room}/w/wt/sub", Thing::Dir).at("{room}/w/wt/sub"), "main", "complete"),
        ),
        named(
            "own_root_from_a_subfolder",
            held(world(plain()).piece("{room}/w/wt/sub", Thing::Dir).at("{room}/w/wt/sub"), "wt", "complete"),
        ),
        named("sibling_beside_a_twin", held(main(plain()), "wt", "complete").session("twin", "complete")),
        named("two_siblings", held(held(main(plain()), "wt", "complete"), "wt2", "complete")),
        named(
            "two_siblings_the_other_way",
            held(held(world(plain()).at("{room}/w/wt"), "wt2", "complete"), "main", "complete"),
        ),
        named(
            "made_in_the_other_order",
            held(
                held(
                    World {
                        worktrees: vec!["{room}/w/main".into(), "{room}/w/z".into(), "{room}/w/a".into()],
                        ..main(plain())
                    },
                    "z",
                    "complete",
                ),
                "a",
                "complete",
            ),
        ),
        named("empty_sibling_and_another", held(held(main(plain()), "wt", "empty"), "wt2", "complete")),
        named("metadata_sibling_and_a_twin", held(main(plain()), "wt", "metadata").session("twin", "complete")),
        named("sidechain_sibling_and_a_twin", held(main(plain()), "wt", "sidechain").session("twin", "complete")),
        named("attachment_sibling_and_a_twin", held(main(plain()), "wt", "one_attachment").session("twin", "complete")),
        named("system_sibling_and_a_twin", held(main(plain()), "wt", "system").session("twin", "complete")),
        named("spaced_sibling", held(main(plain()), "wt", "spaced")),
        named("own_and_sibling", held(main(plain()), "wt", "complete").session("own", "complete")),
        named(
            "linked_sibling",
            main(plain())
                .held("{room}/else.jsonl", "complete", "else")
                .piece(of("wt"), Thing::Link("{room}/else.jsonl".into())),
        ),
        named(
            "linked_sibling_folder",
            main(plain())
                .held(format!("{{room}}/else/{ID}.jsonl"), "complete", "else")
                .piece("{cfg}/projects/{slug:{room}/w/wt:slug}", Thing::Link("{room}/else".into())),
        ),
        named("folder_for_the_siblings_file", main(plain()).piece(of("wt"), Thing::Dir)),
        named(
            "folder_for_the_siblings_file_and_another",
            held(main(plain()).piece(of("wt"), Thing::Dir), "wt2", "complete"),
        ),
        named(
            "deleted_sibling",
            held(main(plain()), "wt", "complete").piece("{room}/w/wt/.git", Thing::Text("gone".into())),
        ),
    ]
}

pub(super) fn forks() -> Named {
    let chosen = || Ask::Resume { id: ID.into(), fork: true, chosen: Some(CHOSEN.into()) };
    vec![
        named("chosen_id", World::new(chosen()).session("own", "complete")),
        named("chosen_id_from_a_twin", World::new(chosen()).session("twin", "complete")),
        named("chosen_id_of_an_empty_file", World::new(chosen()).session("own", "empty")),
        named("from_a_twin_into_the_own_folder", World::new(fork()).session("twin", "complete")),
        named("own_folder_is_new", World::new(fork()).at("{room}/w/new").session("twin", "complete")),
    ]
}

pub(super) fn paths() -> Named {
    let path = |path: &str, chosen: Option<&str>| Ask::Path { path: path.into(), chosen: chosen.map(str::to_owned) };
    let beside = || World::new(path("{room}/else/any-name.jsonl", None));
    let chosen = || World::new(path("{room}/else/any-name.jsonl", Some(CHOSEN)));
    const AT: &str = "{room}/else/any-name.jsonl";
    let mut cases: Named = [
        "complete",
        "cut_in_the_last_reply",
        "spaced",
        "empty",
        "metadata",
        "sidechain",
        "system",
        "attachments",
        "messageless_tree",
        "garbage_first",
        "no_session_in_the_records",
        "hundred_turns",
        "a_turn_of_megabytes",
    ]
    .map(|content| named(content, beside().held(AT, content, "else")))
    .into();
    cases.extend(
        ["complete", "empty", "metadata", "cut_in_the_last_reply"]
            .map(|content| named(format!("chosen_id.{content}"), chosen().held(AT, content, "else"))),
    );
    cases.extend([
        named("megabytes", beside().held(AT, "a_conversation_of_megabytes", "else")),
        named("absent", beside()),
        named("a_folder", beside().piece(AT, Thing::Dir)),
        named(
            "a_link",
            beside().held("{room}/real.jsonl", "complete", "real").piece(AT, Thing::Link("{room}/real.jsonl".into())),
        ),
        named(
            "blanks",
            World::new(path("{room}/two  blanks/a name.jsonl", None)).held(
                "{room}/two  blanks/a name.jsonl",
                "complete",
                "else",
            ),
        ),
        named(
            "not_ascii",
            World::new(path("{room}/ünï 日本😀/é.jsonl", None)).held("{room}/ünï 日本😀/é.jsonl", "complete", "else"),
        ),
        named(
            "combining",
            World::new(path("{room}/e\u{301}/a.jsonl", None)).held("{room}/e\u{301}/a.jsonl", "complete", "else"),
        ),
        named(
            "upper_case_extension",
            World::new(path("{room}/else/a.JSONL", None)).held("{room}/else/a.JSONL", "complete", "else"),
        ),
        named("the_id_is_in_the_own_folder_too", beside().held(AT, "complete", "else").session("own", "complete")),
        named(
            "the_id_is_in_two_other_folders_too",
            beside().held(AT, "complete", "else").session("twin", "complete").session("zwin", "complete"),
        ),
        named(
            "in_another_login",
            World::new(path(&format!("{{room}}/login/projects/x/{ID}.jsonl"), None)).held(
                format!("{{room}}/login/projects/x/{ID}.jsonl"),
                "complete",
                "else",
            ),
        ),
        named(
            "in_the_own_folder",
            World::new(path(&format!("{{room}}/cfg/projects/twin/{ID}.jsonl"), None)).session("twin", "complete"),
        ),
        named(
            "chosen_id_exists",
            chosen().held(AT, "complete", "else").held(format!("{{own}}/{CHOSEN}.jsonl"), "complete", "taken"),
        ),
    ]);
    cases
}

pub(super) fn continues() -> Named {
    let world = || World::new(Ask::Continue);
    let held = |world: World, id: &str, content: &str, days: u64| {
        let tag: String = id.chars().take(4).collect();
        world
            .piece(format!("{{own}}/{id}.jsonl"), Thing::Session { content: content.into(), tag, id: id.into() })
            .aged(days)
    };
    let mut cases: Named = vec![
        named("nothing", world()),
        named("one", held(world(), ID, "complete", 1)),
        named("the_newer", held(held(world(), ID, "complete", 2), OTHER, "complete", 1)),
        named("the_older_by_name", held(held(world(), ID, "complete", 1), OTHER, "complete", 2)),
        named("only_in_another_folder", world().session("twin", "complete")),
        named("not_an_id", held(held(world(), ID, "complete", 2), "notes", "complete", 1)),
        named("a_subagents_file", held(held(world(), ID, "complete", 2), "agent-a1b2c3", "sidechain_of_an_agent", 1)),
        named(
            "a_sibling_worktree",
            World { worktrees: vec!["{room}/w/main".into(), "{room}/w/wt".into()], ..world().at("{room}/w/main") }
                .held(format!("{{cfg}}/projects/{{slug:{{room}}/w/wt:slug}}/{ID}.jsonl"), "complete", "wt"),
        ),
    ];
    for content in [
        "empty",
        "metadata",
        "sidechain",
        "system",
        "one_attachment",
        "messageless_user",
        "text",
        "user_only",
        "cut_in_the_last_reply",
    ] {
        cases.push(named(format!("newest_{content}"), held(held(world(), ID, "complete", 2), OTHER, content, 1)));
        cases.push(named(format!("only_{content}"), held(world(), OTHER, content, 1)));
    }
    cases
}

pub(super) fn news() -> Named {
    let world = || World::new(Ask::New { chosen: CHOSEN.into() });
    vec![
        named("chosen_id", world()),
        named("taken", world().held(format!("{{own}}/{CHOSEN}.jsonl"), "complete", "taken")),
        named("taken_by_an_empty_file", world().held(format!("{{own}}/{CHOSEN}.jsonl"), "empty", "taken")),
        named("taken_by_metadata", world().held(format!("{{own}}/{CHOSEN}.jsonl"), "metadata", "taken")),
        named("in_another_folder", world().held(format!("{{cfg}}/projects/twin/{CHOSEN}.jsonl"), "complete", "taken")),
    ]
}
