//! Where the files lie, and what they and the folders are called.

use super::{ID, Named, OTHER, fork, named, plain};
use crate::probe::world::{Ask, Thing, World};

pub(super) fn places() -> Named {
    let world = || World::new(plain());
    let file = format!("{{own}}/{ID}.jsonl");
    vec![
        named(
            "link_to_a_file",
            world().held("{room}/else.jsonl", "complete", "else").own(Thing::Link("{room}/else.jsonl".into())),
        ),
        named(
            "link_to_a_file.fork",
            World::new(fork())
                .held("{room}/else.jsonl", "complete", "else")
                .own(Thing::Link("{room}/else.jsonl".into())),
        ),
        named("link_to_nothing", world().own(Thing::Link("{room}/nothing".into()))),
        named(
            "link_to_nothing_and_a_twin",
            world().own(Thing::Link("{room}/nothing".into())).session("twin", "complete"),
        ),
        named("links_in_a_circle", world().own(Thing::Link(file.clone()))),
        named("a_folder", world().own(Thing::Dir)),
        named("a_folder_and_a_twin", world().own(Thing::Dir).session("twin", "complete")),
        named("a_folder.fork", World::new(fork()).own(Thing::Dir)),
        named("a_pipe", World { most_ms: Some(12_000), ..world().own(Thing::Fifo) }),
        named(
            "a_hard_link",
            world().held("{room}/else.jsonl", "complete", "else").own(Thing::HardLink("{room}/else.jsonl".into())),
        ),
        named("upper_case_extension", world().held(format!("{{own}}/{ID}.JSONL"), "complete", "own")),
        named("no_extension", world().held(format!("{{own}}/{ID}"), "complete", "own")),
        named("beside_the_folders", world().held(format!("{{cfg}}/projects/{ID}.jsonl"), "complete", "root")),
        named("below_the_folder", world().held(format!("{{own}}/sub/{ID}.jsonl"), "complete", "sub")),
        named("in_a_sidecar_folder", world().held(format!("{{own}}/{ID}/subagents/{ID}.jsonl"), "complete", "sub")),
        named(
            "own_folder_is_a_link",
            world()
                .held(format!("{{room}}/else/{ID}.jsonl"), "complete", "else")
                .piece("{own}", Thing::Link("{room}/else".into())),
        ),
        named("own_folder_is_a_file", world().piece("{own}", Thing::Text("x".into()))),
        named(
            "own_folder_is_a_file_and_a_twin",
            world().piece("{own}", Thing::Text("x".into())).session("twin", "complete"),
        ),
        named(
            "projects_is_a_link",
            world()
                .held(format!("{{room}}/else/{{slug:{{room}}/w/p1:slug}}/{ID}.jsonl"), "complete", "else")
                .piece("{cfg}/projects", Thing::Link("{room}/else".into())),
        ),
        named("projects_is_a_file", world().piece("{cfg}/projects", Thing::Text("x".into()))),
        named("no_config_dir_yet", world()),
        named("a_subagents_file_only", world().held("{own}/agent-a1b2c3.jsonl", "sidechain_of_an_agent", "own")),
    ]
}

pub(super) fn ids() -> Named {
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

pub(super) fn slugs() -> Named {
    let long = |units: usize| {
        let mut text = String::from("{room}/w");
        while text.len() < units {
            let more = (units - text.len()).min(90);
            text.push('/');
            text.push_str(&"x".repeat(more.max(1)));
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
        ("long", long(185)),
        ("very_long", long(700)),
    ];
    let mut cases: Named = spelled
        .into_iter()
        .map(|(name, cwd)| named(name, World::new(plain()).at(&cwd).session("own", "complete")))
        .collect();
    let linked = World::new(plain())
        .piece("{room}/w/real", Thing::Dir)
        .piece("{room}/w/link", Thing::Link("{room}/w/real".into()));
    cases.push(named(
        "through_a_link",
        linked.clone().at("{room}/w/link").held(
            format!("{{cfg}}/projects/{{slug:{{room}}/w/real:slug}}/{ID}.jsonl"),
            "complete",
            "real",
        ),
    ));
    cases.push(named(
        "collision",
        World::new(plain()).at("{room}/w/a.b").held(
            format!("{{cfg}}/projects/{{slug:{{room}}/w/a-b:slug}}/{ID}.jsonl"),
            "complete",
            "other",
        ),
    ));
    let prefix = long(185);
    cases.push(named(
        "long_with_the_other_hash",
        World::new(plain()).at(&prefix).held(
            format!("{{cfg}}/projects/{{slug:{prefix}x:slug}}/{ID}.jsonl"),
            "complete",
            "other",
        ),
    ));
    cases
}

pub(super) fn configs() -> Named {
    let at = |config: Option<&str>, root: &str, cwd: &str| {
        let file = format!("{root}/projects/{{slug:{cwd}:slug}}/{ID}.jsonl");
        World::new(plain()).at(cwd).with_config(config).held(file, "complete", "cfg")
    };
    const CWD: &str = "{room}/w/p1";
    vec![
        named("not_set", at(None, "{room}/h/.claude", CWD)),
        named("not_set_and_xdg", at(None, "{room}/h/.config/claude", CWD)),
        named("empty", at(Some(""), CWD, CWD)),
        named("tilde", at(Some("~/cfgx"), &format!("{CWD}/~/cfgx"), CWD)),
        named("tilde_is_not_home", at(Some("~/cfgx"), "{room}/h/cfgx", CWD)),
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
        named(
            "a_file",
            World::new(plain()).with_config(Some("{room}/file")).piece("{room}/file", Thing::Text("x".into())),
        ),
        named(
            "home_is_combining",
            World { home: "{room}/e\u{301}home".into(), ..at(None, "{room}/\u{e9}home/.claude", CWD) },
        ),
    ]
}
