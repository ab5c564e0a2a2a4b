//! The rules of Claude Code against what the real program was seen to do.
//!
//! `tests/corpus/claude/` holds rows that were run with the real program; every one of them is replayed here. The tables
//! below are the further facts that were observed one by one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

#[path = "provider_view.rs"]
mod view;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use throughline::event::Means;
use throughline::provider::claude::{self, TAIL_BYTES, WHOLE_BYTES_MAX, slug};
use throughline::provider::source::NOT_EXAMINED;
use throughline::provider::{ConfigDir, FoundBy, LaunchAsk, Lookup, Outcome, Place, Provider, rules};
use throughline::snapshot::{Answer, Depth, Question, Recorder, Seen, SnapshotError, Transcript, View};
use view::{Thing, World, scan};

const ID: &str = "11111111-1111-4111-8111-111111111111";
const OTHER_ID: &str = "22222222-2222-4222-8222-222222222222";
const ROOT: &str = "/w/cfg";
const VERSIONS: [&str; 3] = ["2.1.332", "2.1.280", "2.0.77"];

fn claude_at(version: &str) -> &'static dyn Provider {
    rules("claude", Some(version)).expect("known")
}

fn newest() -> &'static dyn Provider {
    rules("claude", None).expect("known")
}

fn place() -> Place {
    Place { config_dir: ConfigDir::Named(ROOT.into()), cwd: "/w/p1".into() }
}

/// A world with the working directory in it.
fn world() -> World {
    World::new().with("/w/p1", Thing::Dir).with(&format!("{ROOT}/projects"), Thing::Dir)
}

/// The path of the session in a project folder; `own` is the working directory's.
fn at(dir: &str) -> String {
    let dir = if dir == "own" { "-w-p1" } else { dir };
    format!("{ROOT}/projects/{dir}/{ID}.jsonl")
}

fn lookup_as(rules: &dyn Provider, world: &mut World, id: &str) -> Lookup {
    rules.lookup(world, &place(), id, &BTreeSet::new(), Depth::Windows).expect("a world answers")
}

fn lookup(world: &mut World) -> Lookup {
    lookup_as(newest(), world, ID)
}

fn codes(found: &Lookup) -> Vec<&str> {
    found.findings.iter().map(|finding| finding.code.as_str()).collect()
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Continues => "continues",
        Outcome::Empty => "empty",
        Outcome::Refused => "refused",
        Outcome::StartsFresh => "fresh",
        Outcome::Unknown { .. } => "unknown",
    }
}

fn unbase64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().filter_map(digit).collect();
    let bytes = digits.chunks(4).flat_map(|group| {
        let bits = group.iter().fold(0u32, |bits, &digit| bits << 6 | u32::from(digit)) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    });
    bytes.collect()
}

fn contents() -> BTreeMap<String, Value> {
    serde_json::from_str(include_str!("corpus/claude/contents.json")).expect("the corpus parses")
}

fn content(name: &str) -> Vec<u8> {
    unbase64(contents()[name]["base64"].as_str().expect("a file"))
}

fn complete() -> Vec<u8> {
    content("complete")
}

/// Puts a state of the corpus into a project folder.
fn put(world: &mut World, dir: &str, state: &str) {
    let path = at(dir);
    let content = &contents()[state];
    match content["kind"].as_str() {
        None => world.put(path.rsplit_once('/').unwrap().0, Thing::Dir),
        Some("file") => world.file(&path, unbase64(content["base64"].as_str().unwrap())),
        Some("directory") => world.put(&path, Thing::Dir),
        Some("dangling_symlink") => world.put(&path, Thing::Link("/w/nowhere".into())),
        Some("symlink_to") => {
            world.file("/w/elsewhere.jsonl", complete());
            world.put(&path, Thing::Link("/w/elsewhere.jsonl".into()));
        }
        Some(other) => panic!("unknown kind {other}"),
    }
}

/// A line of a transcript.
fn record(kind: &str, uuid: &str, parent: Option<&str>) -> Value {
    let message = json!({"role": kind, "content": uuid});
    json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "message": message,
        "timestamp": "2026-11-30T20:00:00.000Z",
    })
}

fn lines(records: &[Value]) -> Vec<u8> {
    records.iter().flat_map(|record| format!("{record}\n").into_bytes()).collect()
}

fn four_turns() -> [Value; 4] {
    [
        record("user", "1", None),
        record("assistant", "a", Some("1")),
        record("user", "2", Some("a")),
        record("assistant", "b", Some("2")),
    ]
}

// ---- the corpus ----

#[test]
fn every_content_of_the_corpus_has_its_observed_outcome() {
    let mut rows = 0;
    for line in include_str!("corpus/claude/content.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("the corpus parses");
        let case = row["case"].as_str().unwrap();
        let mut world = world();
        if let Some(bytes) = row["content"]["base64"].as_str() {
            world.file(&at("own"), unbase64(bytes));
        }
        let found = lookup(&mut world);
        assert_eq!(row["plain"], row["fork"], "a fork has the history of a resume");
        let evidence =
            ["partial_history", "torn_tail", "unparsable_lines", "nul_run", "missing_parents", "unanswered_turn"];
        match row["plain"].as_str().unwrap() {
            "resumed" => {
                assert_eq!(found.outcome, Outcome::Continues, "{case}");
                assert!(!codes(&found).contains(&"partial_history"), "{case}: {found:?}");
                assert!(found.transcript.as_ref().is_some_and(|held| held.reached == held.turns), "{case}: {found:?}");
            }
            "partial" => {
                assert_eq!(found.outcome, Outcome::Continues, "{case}");
                assert!(codes(&found).iter().any(|code| evidence.contains(code)), "{case}: {found:?}");
            }
            "empty" => {
                assert_eq!((&found.outcome, codes(&found)[0]), (&Outcome::Empty, "empty_history"), "{case}");
            }
            "refused" => {
                assert_eq!(found.outcome, Outcome::Refused, "{case}: {found:?}");
                assert!(["not_found", "empty_file", "not_accepted"].contains(&codes(&found)[0]), "{case}: {found:?}");
            }
            other => panic!("unknown outcome {other}"),
        }
        rows += 1;
    }
    assert_eq!(rows, 46);
}

#[test]
fn every_world_of_the_corpus_has_its_observed_outcome() {
    let mut rows = 0;
    for line in include_str!("corpus/claude/worlds.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("the corpus parses");
        let mut world = world();
        for (dir, state) in row["states"].as_object().unwrap() {
            put(&mut world, dir, state.as_str().unwrap());
        }
        let found = lookup(&mut world);
        let observed = &row["observed"];
        let expected = match observed["outcome"].as_str().unwrap() {
            "resumed" | "partial" => "continues",
            other => other,
        };
        assert_eq!(word(&found.outcome), expected, "{row}: {found:?}");
        let read = match (expected, observed["history_from"].as_str()) {
            ("continues", Some(dir)) => Some(at(dir)),
            // Without a history, the file is known from where the turn went.
            ("empty", _) => Some(at("own")),
            _ => None,
        };
        assert_eq!(found.path, read, "{row}");
        if let Some(dir) = observed["writes"]["dir"].as_str() {
            let fork = row["fork"].as_bool().unwrap();
            let writes = if fork { at("own") } else { found.path.clone().unwrap() };
            assert_eq!(writes, at(dir), "{row}");
        }
        rows += 1;
    }
    assert_eq!(rows, 60);
}

// ---- where ----

#[test]
fn slugs_are_the_observed_ones() {
    for (path, expected) in [
        ("/w/sl/plain", "-w-sl-plain"),
        ("/w/sl/UPPER.Case", "-w-sl-UPPER-Case"),
        ("/w/sl/dot.dir", "-w-sl-dot-dir"),
        ("/w/sl/.hidden", "-w-sl--hidden"),
        ("/w/sl/under_score", "-w-sl-under-score"),
        ("/w/sl/sp ace", "-w-sl-sp-ace"),
        ("/w/sl/two  sp", "-w-sl-two--sp"),
        ("/w/sl/ünï", "-w-sl--n-"),
        ("/w/sl/日本語", "-w-sl----"),
        ("/w/sl/emoji😀x", "-w-sl-emoji--x"),
        ("/w/sl/e\u{301}comb", "-w-sl-e-comb"),
        ("/w/sl/a~b", "-w-sl-a-b"),
        ("/w/sl/~", "-w-sl--"),
        ("/w/sl/a+b@c", "-w-sl-a-b-c"),
        ("/w/sl/a-b", "-w-sl-a-b"),
        ("/w/sl/a.b", "-w-sl-a-b"),
        ("/w/sl/a_b", "-w-sl-a-b"),
        ("/w/sl/trailing.", "-w-sl-trailing-"),
        ("/w/sl/100%", "-w-sl-100-"),
        ("/w/sl/tab\tx", "-w-sl-tab-x"),
        ("/w/sl/quote'\"", "-w-sl-quote--"),
        ("/w/sl/back\\slash", "-w-sl-back-slash"),
        ("/w/sl/new\nline", "-w-sl-new-line"),
        ("/w/sl/ctrl\u{1}", "-w-sl-ctrl-"),
        ("/w/sl/(par)", "-w-sl--par-"),
        ("/w/sl/ßΣ", "-w-sl---"),
        ("/w/sl/١٢", "-w-sl---"),
        ("/w/sl/²½", "-w-sl---"),
        ("/w/sl/ⅷ", "-w-sl--"),
        // From the chain's own records.
        ("/x/😀y", "-x---y"),
        ("C:\\code\\café (old)@2~x", "C--code-caf---old--2-x"),
    ] {
        assert_eq!(slug(path), expected, "{path}");
    }
}

#[test]
fn long_slugs_end_in_a_hash_of_the_whole_path() {
    let dir = |n: usize| format!("/w/sl/L/{}/{}", "x".repeat(100), "x".repeat(n - 109));
    let plain = |path: &str| path.encode_utf16().map(|_| '-').collect::<String>();
    assert_eq!(slug(&dir(200)).len(), 200);
    assert_eq!(slug(&dir(200)), dir(200).replace('/', "-"));
    for (units, hash) in [(201, "d9hm7x"), (250, "qg6u6z")] {
        assert_eq!(slug(&dir(units)), format!("{}-{hash}", &dir(units).replace('/', "-")[..200]), "{units}");
    }
    for tail in ["日".repeat(60), "😀".repeat(46)] {
        let path = format!("/w/sl/{}/{tail}", "q".repeat(100));
        assert_eq!(slug(&path), format!("-w-sl-{}-{}", "q".repeat(100), plain(&tail)), "{path}");
    }
    let emoji = format!("/w/sl/{}/{}", "q".repeat(100), "😀".repeat(50));
    assert!(slug(&emoji).starts_with(&format!("-w-sl-{}-{}-", "q".repeat(100), "-".repeat(93))));
    assert_eq!(slug(&format!("/home/u/{}repo", "deeply_nested/".repeat(20))).len(), 207);
    assert!(slug(&format!("/home/u/{}repo", "deeply_nested/".repeat(20))).ends_with("-fygn57"));
    assert!(slug(&format!("C:\\Users\\asafe\\{}", "a".repeat(230))).ends_with("-py1bvd"));
}

#[test]
fn the_own_folder_is_named_after_the_physical_directory() {
    let mut world = world().with("/w/sl/plain", Thing::Dir).with("/w/sl/link", Thing::Link("plain".into()));
    for (cwd, expected) in [
        ("/w/sl/plain", Seen::Is("/w/cfg/projects/-w-sl-plain".into())),
        ("/w/sl/plain/", Seen::Is("/w/cfg/projects/-w-sl-plain".into())),
        ("/w/sl/link", Seen::Is("/w/cfg/projects/-w-sl-plain".into())),
        ("/w/gone", Seen::Absent),
    ] {
        let place = Place { cwd: cwd.into(), ..place() };
        assert_eq!(newest().own_dir(&mut world, &place).unwrap(), expected, "{cwd}");
    }
    world.put("/w/locked", Thing::LockedDir);
    let place = Place { cwd: "/w/locked/x".into(), ..place() };
    assert!(matches!(newest().own_dir(&mut world, &place).unwrap(), Seen::Unreadable(_)));
    let found = newest().lookup(&mut world, &place, ID, &BTreeSet::new(), Depth::Windows).unwrap();
    assert_eq!((word(&found.outcome), codes(&found)[0]), ("unknown", "cwd_unusable"));
}

#[test]
fn sessions_lie_where_each_spelling_of_the_config_dir_puts_them() {
    for (text, projects) in [
        ("", "/w/p1/projects"),
        ("~/cfgx", "/w/p1/~/cfgx/projects"),
        ("relcfg", "/w/p1/relcfg/projects"),
        ("./relcfg", "/w/p1/relcfg/projects"),
        ("/w/tcfg/", "/w/tcfg/projects"),
        ("/w//tcfg", "/w/tcfg/projects"),
        ("/w/x/../tcfg", "/w/tcfg/projects"),
        (" /w/tcfg ", "/w/p1/ /w/tcfg /projects"),
        ("/w/e\u{301}", "/w/é/projects"),
    ] {
        let mut world = World::new().with("/w/p1", Thing::Dir);
        world.file(&format!("{projects}/-w-p1/{ID}.jsonl"), complete());
        let place = Place { config_dir: ConfigDir::Named(text.into()), ..place() };
        let found = newest().lookup(&mut world, &place, ID, &BTreeSet::new(), Depth::Windows).unwrap();
        assert_eq!((word(&found.outcome), found.found_by), ("continues", Some(FoundBy::Own)), "{text:?}: {found:?}");
        assert_eq!(newest().config_root(&place), projects.strip_suffix("/projects").unwrap(), "{text:?}");
    }
    let ambient = |home: &str| Place { config_dir: ConfigDir::Ambient { home: home.into() }, ..place() };
    assert_eq!(newest().config_root(&ambient("/w/home")), "/w/home/.claude");
    assert!(matches!(newest().own_dir(&mut world(), &ambient("")).unwrap(), Seen::Unreadable(_)));
}

#[test]
fn a_config_dir_that_is_a_link_is_followed() {
    let mut world = world().with("/w/link", Thing::Link("/w/cfg".into()));
    world.file(&at("own"), complete());
    let place = Place { config_dir: ConfigDir::Named("/w/link".into()), ..place() };
    let found = newest().lookup(&mut world, &place, ID, &BTreeSet::new(), Depth::Windows).unwrap();
    assert_eq!(word(&found.outcome), "continues");
}

#[test]
fn the_id_is_taken_as_the_cli_takes_it() {
    let mut world = world();
    world.file(&at("own"), complete());
    for (id, expected, code) in [
        (ID, "continues", None),
        (" 11111111-1111-4111-8111-111111111111\t", "continues", None),
        ("", "refused", Some("malformed_id")),
        ("11111111111141118111111111111111", "refused", Some("malformed_id")),
        ("{11111111-1111-4111-8111-111111111111}", "refused", Some("malformed_id")),
        ("session1", "refused", Some("malformed_id")),
        ("../-w-p1/11111111-1111-4111-8111-111111111111", "refused", Some("malformed_id")),
        ("-p", "refused", Some("malformed_id")),
        ("11111111-1111-4111-8111-111111111111.jsonl", "refused", Some("path_not_id")),
        (OTHER_ID, "refused", Some("not_found")),
    ] {
        let found = lookup_as(newest(), &mut world, id);
        assert_eq!((word(&found.outcome), codes(&found).first().copied()), (expected, code), "{id:?}");
    }
    // The letters' case is that of the file.
    let lower = "aaaaaaaa-1111-4111-8111-111111111111";
    world.file(&format!("{ROOT}/projects/-w-p1/{lower}.jsonl"), complete());
    assert_eq!(word(&lookup_as(newest(), &mut world, lower).outcome), "continues");
    assert_eq!(word(&lookup_as(newest(), &mut world, &lower.to_uppercase()).outcome), "refused");
    for id in ["00000000-0000-0000-0000-000000000000", "99999999-9999-9999-9999-999999999999"] {
        world.file(&format!("{ROOT}/projects/-w-p1/{id}.jsonl"), complete());
        assert_eq!(word(&lookup_as(newest(), &mut world, id).outcome), "continues", "{id}");
    }
    for version in VERSIONS {
        let held = claude_at(version).path_of(&mut world, &place(), " 11111111-1111-4111-8111-111111111111").unwrap();
        assert_eq!(held, Seen::Is(at("own")));
        assert_eq!(claude_at(version).path_of(&mut world, &place(), "x").unwrap(), Seen::Absent);
    }
}

// ---- what ----

fn own(bytes: impl AsRef<[u8]>) -> Lookup {
    let mut world = world();
    world.file(&at("own"), bytes);
    lookup(&mut world)
}

fn reached(found: &Lookup) -> (u64, u64) {
    found.transcript.as_ref().map_or((0, 0), |held| (held.reached, held.turns))
}

#[test]
fn further_contents_have_their_observed_outcomes() {
    let user = json!({"type": "user", "message": {"role": "user", "content": "x"}});
    for (case, records, outcome, sent) in [
        ("one system record", vec![json!({"type":"system","uuid":"s","parentUuid":null})], "empty", (0, 0)),
        ("one progress record", vec![json!({"type":"progress","uuid":"s"})], "refused", (0, 0)),
        ("an unknown type", vec![json!({"type":"novelty","uuid":"s"})], "refused", (0, 0)),
        (
            "a meta record",
            vec![json!({"type":"user","uuid":"s","isMeta":true,"message":{"content":"x"}})],
            "continues",
            (1, 1),
        ),
        ("a minimal one", vec![json!({"type":"user","uuid":"s","message":{"content":"x"}})], "continues", (1, 1)),
        ("without an id", vec![user.clone()], "continues", (1, 1)),
        ("without a message", vec![json!({"type":"user","uuid":"s"})], "refused", (0, 0)),
        ("a null message", vec![json!({"type":"user","uuid":"s","message":null})], "refused", (0, 0)),
        (
            "two roots",
            vec![
                record("user", "1", None),
                record("assistant", "a", Some("1")),
                record("user", "2", None),
                record("assistant", "b", Some("2")),
            ],
            "continues",
            (2, 4),
        ),
        (
            "an unknown parent",
            vec![
                record("user", "1", None),
                record("assistant", "a", Some("1")),
                record("user", "2", Some("gone")),
                record("assistant", "b", Some("2")),
            ],
            "continues",
            (4, 4),
        ),
        (
            "two branches",
            vec![
                record("user", "1", None),
                record("assistant", "a", Some("1")),
                record("user", "2", Some("a")),
                record("user", "3", Some("a")),
            ],
            "continues",
            (3, 4),
        ),
        (
            "compacted",
            vec![
                record("user", "1", None),
                record("assistant", "a", Some("1")),
                json!({"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null,"logicalParentUuid":"a"}),
                record("user", "s", Some("c")),
                record("assistant", "b", Some("s")),
            ],
            "continues",
            (2, 4),
        ),
        (
            "a boundary at the end",
            vec![
                record("user", "1", None),
                record("assistant", "a", Some("1")),
                json!({"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null}),
            ],
            "continues",
            (2, 2),
        ),
        (
            "a turn behind a progress record",
            vec![
                record("user", "1", None),
                json!({"type":"progress","uuid":"p","parentUuid":"1"}),
                record("assistant", "a", Some("p")),
            ],
            "continues",
            (2, 2),
        ),
    ] {
        let found = own(lines(&records));
        assert_eq!((word(&found.outcome), reached(&found)), (outcome, sent), "{case}: {found:?}");
        let partial = codes(&found).contains(&"partial_history");
        assert_eq!(partial, sent.0 < sent.1 && case != "compacted", "{case}");
        assert_eq!(codes(&found).contains(&"compacted"), case == "compacted", "{case}");
    }
}

#[test]
fn a_line_that_is_cut_takes_no_other_with_it() {
    let whole: Vec<String> = four_turns().iter().map(Value::to_string).collect();
    let nul = "\0".repeat(64);
    for cut in [
        r#"{"type":"user","message":"#,
        "[",
        r#"{"a":[1,"#,
        r#"{"a":""#,
        r#"{"type":"assistant","message":{"content":"#,
        "{",
        "\"",
        "x",
        "5",
        "null",
        &nul,
        "]",
        "{\"a\":[{",
        "\u{feff}{}",
    ] {
        for place in 0..=whole.len() {
            let mut text = whole.clone();
            text.insert(place, cut.into());
            for end in ["", "\n", "\r\n"] {
                let bytes = text.join(if end == "\r\n" { "\r\n" } else { "\n" }) + end;
                let held = scan(bytes.as_bytes(), Depth::Windows);
                let bom = cut.starts_with('\u{feff}') && place == 0;
                assert_eq!((held.turns, held.reached), (4, 4), "{cut:?} at {place}, {end:?}: {held:?}");
                assert_eq!(held.unparsable, u64::from(!bom), "{cut:?} at {place}, {end:?}");
                // A number parses: it is no record, but nothing was cut.
                let torn = place == whole.len() && end.is_empty() && !["5", "null"].contains(&cut);
                assert_eq!(held.torn_tail, torn, "{cut:?} at {place}, {end:?}");
                let start = text[..place].iter().map(|line| line.len() + end.len().max(1)).sum::<usize>() as u64;
                assert_eq!(held.torn_at, torn.then_some(start));
                assert_eq!(held.unparsable_at, (!bom).then_some(start), "{cut:?} at {place}, {end:?}");
                let nul_at = cut.find('\0').map(|at| start + at as u64);
                assert_eq!(held.nul_at, nul_at, "{cut:?} at {place}, {end:?}");
            }
        }
    }
}

#[test]
fn values_over_several_lines_are_records_and_arrays_are_none() {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap() + "\n";
    let records: String = four_turns().iter().map(pretty).collect();
    let held = scan(records.as_bytes(), Depth::Windows);
    assert_eq!((held.turns, held.reached, held.unparsable), (4, 4, 0));
    for array in [json!(four_turns()).to_string(), pretty(&json!(four_turns()))] {
        let held = scan(array.as_bytes(), Depth::Windows);
        assert_eq!((held.turns, held.unparsable), (0, 1), "{array}");
    }
    // Cut inside: the whole ones before it and behind it stay.
    let mut cut = pretty(&four_turns()[0]);
    cut.push_str(&pretty(&four_turns()[1])[..60]);
    cut.push('\n');
    cut.push_str(&lines(&four_turns()[2..]).iter().map(|&byte| char::from(byte)).collect::<String>());
    assert_eq!(scan(cut.as_bytes(), Depth::Windows).turns, 3);
}

#[test]
fn megabytes_of_metadata_hide_no_turn() {
    let noise = lines(&vec![json!({"type": "cost-state", "note": "x".repeat(1000)}); 3000]);
    for bytes in [[noise.clone(), lines(&four_turns())].concat(), [lines(&four_turns()), noise].concat()] {
        let found = own(bytes);
        assert_eq!((word(&found.outcome), reached(&found)), ("continues", (4, 4)));
    }
}

#[test]
fn what_the_records_say_of_themselves_is_kept() {
    let mut records = four_turns();
    records[0]["cwd"] = json!("/first/\u{1f600}");
    records[3]["cwd"] = json!("/last");
    let text = lines(&records);
    let held = scan(&text, Depth::Whole);
    assert_eq!((held.cwd.as_deref(), held.cwd_last.as_deref()), (Some("/first/\u{1f600}"), Some("/last")));
    assert_eq!((held.bytes, held.examined), (text.len() as u64, text.len() as u64));
    assert_eq!(held.tail, throughline::id::Digest::plain(&text));
    assert!(!held.unanswered && scan(&lines(&records[..3]), Depth::Whole).unanswered);
    let long = [vec![b'\n'; 100_000], text].concat();
    assert_eq!(scan(&long, Depth::Whole).tail, throughline::id::Digest::plain(&long[long.len() - 65536..]));
}

#[test]
fn keys_and_types_are_compared_as_javascript_does() {
    for (line, turns, sidechain) in [
        (r#"{"\u0074ype":"us\u0065r","message":{"content":""}}"#, 1, 0),
        (r#"{"type":"user","type":"x","message":{"content":""}}"#, 0, 0),
        (r#"{"type":["user"],"message":{"content":""}}"#, 0, 0),
        (r#"{"type":"user","message":{"content":""},"isSidechain":"true"}"#, 0, 1),
        (r#"{"type":"user","message":{"content":""},"isSidechain":true}"#, 0, 1),
        (r#"{"outer":{"type":"user","message":{"content":""}}}"#, 0, 0),
        ("{\"type\":\"user\",\"message\":{\"\u{7f}\":1e400,\"content\":[]}}", 1, 0),
    ] {
        let held = scan(line.as_bytes(), Depth::Windows);
        assert_eq!((held.turns, held.sidechain, held.unparsable), (turns, sidechain, 0), "{line}");
    }
}

// ---- which file ----

#[test]
fn the_own_place_is_looked_at_first() {
    let full = || Thing::File(complete());
    let link = |to: &str| Thing::Link(to.into());
    for (case, thing, expected, code) in [
        ("a link to a file", link("/w/real.jsonl"), "continues", "symlinked"),
        ("a dangling link", link("/w/gone"), "refused", "not_found"),
        ("a loop", link(&at("own")), "refused", "not_found"),
        ("a directory", Thing::Dir, "refused", "directory_in_place"),
        ("a link to a directory", link("/w/p1"), "refused", "directory_in_place"),
        ("a FIFO", Thing::Special, "unknown", "would_block"),
        ("a link to a device", link("/w/null"), "unknown", "would_block"),
        ("a file that cannot be read", Thing::Locked(complete()), "unknown", "unreadable"),
        ("an empty file", Thing::File(Vec::new()), "refused", "empty_file"),
        ("metadata", Thing::File(content("metadata")), "refused", "not_accepted"),
    ] {
        let mut world = world().with("/w/real.jsonl", full()).with("/w/null", Thing::Special).with(&at("own"), thing);
        let found = lookup(&mut world);
        assert_eq!((word(&found.outcome), codes(&found).first().copied()), (expected, Some(code)), "{case}: {found:?}");
        assert_eq!(found.path.is_some(), expected == "continues", "{case}");
        // With a complete copy elsewhere, only what is absent or not accepted falls back to it.
        world.put(&at("aaa"), full());
        let found = lookup(&mut world);
        let falls_back = ["not_found", "empty_file", "not_accepted"].contains(&code);
        assert_eq!(
            found.found_by,
            if falls_back { Some(FoundBy::Unique) } else { (code == "symlinked").then_some(FoundBy::Own) },
            "{case}"
        );
        // And two of them are ambiguous.
        world.put(&at("bbb"), full());
        let found = lookup(&mut world);
        assert_eq!(codes(&found)[0] == "ambiguous", falls_back, "{case}: {found:?}");
        assert_eq!(found.others.len(), if falls_back { 2 } else { 0 }, "{case}");
    }
}

#[test]
fn a_folder_in_the_way_is_no_folder() {
    let mut plain = world().with(&format!("{ROOT}/projects/-w-p1"), Thing::File(Vec::new()));
    plain.file(&at("aaa"), complete());
    assert_eq!(lookup(&mut plain).found_by, Some(FoundBy::Unique));
    let mut linked = world().with(&format!("{ROOT}/projects/-w-p1"), Thing::Link("/w/store".into()));
    linked.file(&format!("/w/store/{ID}.jsonl"), complete());
    assert_eq!(lookup(&mut linked).found_by, Some(FoundBy::Own));
    // As another folder, a link does not count.
    let mut foreign = world().with(&format!("{ROOT}/projects/aaa"), Thing::Link("/w/store".into()));
    foreign.file(&format!("/w/store/{ID}.jsonl"), complete());
    assert_eq!(codes(&lookup(&mut foreign))[0], "not_found");
    let mut locked = world().with(&format!("{ROOT}/projects/-w-p1"), Thing::LockedDir);
    assert_eq!(word(&lookup(&mut locked).outcome), "unknown");
    let mut unlistable = world().with(&format!("{ROOT}/projects"), Thing::LockedDir);
    assert_eq!(word(&lookup(&mut unlistable).outcome), "unknown");
}

#[test]
fn names_that_only_look_alike_are_not_found() {
    for path in [
        format!("{ROOT}/projects/-w-p1/{ID}.JSONL"),
        format!("{ROOT}/projects/{ID}.jsonl"),
        format!("{ROOT}/projects/-w-p1/sub/{ID}.jsonl"),
    ] {
        let mut world = world().with(&path, Thing::File(complete()));
        assert_eq!(codes(&lookup(&mut world)), ["not_found"], "{path}");
    }
}

#[test]
fn a_second_foreign_file_counts_by_its_bytes() {
    let turn = format!("{}\n", record("user", "1", None));
    let nested = r#"{"type":"x","y":{"type":"user"}}"#.to_owned();
    let deep = format!("{0}\n{turn}{0}\n", json!({"type": "mode", "note": "x".repeat(3_000_000)}));
    for (case, thing, counts) in [
        ("empty", Thing::File(vec![]), false),
        ("a newline", Thing::File(b"\n".to_vec()), false),
        ("metadata", Thing::File(content("metadata")), false),
        ("attachments", Thing::File(content("attachments")), false),
        ("system", Thing::File(content("system")), false),
        ("spaced", Thing::File(content("spaced")), false),
        ("a directory", Thing::Dir, false),
        ("a FIFO", Thing::Special, false),
        ("a link", Thing::Link("/w/real.jsonl".into()), false),
        ("unreadable", Thing::Locked(complete()), false),
        ("assistant only", Thing::File(content("assistant_only")), true),
        ("user only", Thing::File(content("user_only")), true),
        ("sidechain", Thing::File(content("sidechain")), true),
        ("messageless", Thing::File(content("messageless")), true),
        ("garbage with the text", Thing::File(content("garbage_user")), true),
        ("cut user", Thing::File(content("cut_user")), true),
        ("nested", Thing::File(nested.into_bytes()), true),
        ("one turn in megabytes", Thing::File(deep.into_bytes()), true),
    ] {
        let mut world = world().with("/w/real.jsonl", Thing::File(complete())).with(&at("zzz"), thing);
        world.file(&at("aaa"), complete());
        let found = lookup(&mut world);
        assert_eq!(codes(&found).contains(&"ambiguous"), counts, "{case}: {found:?}");
        assert_eq!(found.path, (!counts).then(|| at("aaa")), "{case}");
        assert_eq!(codes(&found).contains(&"unreadable_candidate"), case == "unreadable");
    }
    // The own file counts too, if it was not accepted and has those bytes.
    for (state, counts) in [("sidechain", true), ("cut_user", true), ("garbage_user", true), ("metadata", false)] {
        let mut world = world();
        put(&mut world, "own", state);
        put(&mut world, "aaa", "complete");
        let found = lookup(&mut world);
        assert_eq!(codes(&found)[0] == "ambiguous", counts, "{state}: {found:?}");
        if counts {
            assert_eq!(found.others, [at("own"), at("aaa")]);
            assert!(found.findings[0].next.is_some());
        }
    }
}

#[test]
fn a_single_foreign_file_must_count_and_be_accepted() {
    for (state, code) in [
        ("spaced", "not_found"),
        ("attachments", "not_found"),
        ("system", "not_found"),
        ("garbage_user", "not_accepted"),
        ("sidechain", "not_accepted"),
    ] {
        let mut world = world();
        put(&mut world, "aaa", state);
        assert_eq!(codes(&lookup(&mut world)), [code], "{state}");
    }
    let mut world = world();
    put(&mut world, "aaa", "messageless");
    assert_eq!(word(&lookup(&mut world).outcome), "empty");
}

#[test]
fn worktrees_come_before_other_folders_and_are_never_ambiguous() {
    let mut world = world();
    world.worktrees = Seen::Is(vec!["/w/main".into(), "/w/p1".into(), "/w/wt".into(), "/w/wt2".into()]);
    put(&mut world, "zzz", "complete");
    assert_eq!(lookup(&mut world).found_by, Some(FoundBy::Unique));
    put(&mut world, "-w-wt2", "complete");
    let found = lookup(&mut world);
    assert_eq!((found.found_by, found.path.clone()), (Some(FoundBy::Worktree), Some(at("-w-wt2"))));
    assert!(codes(&found).contains(&"foreign_bucket"));
    put(&mut world, "-w-wt", "complete");
    assert_eq!(lookup(&mut world).path, Some(at("-w-wt")));
    for state in ["empty", "metadata"] {
        put(&mut world, "-w-wt", state);
        assert_eq!(lookup(&mut world).path, Some(at("-w-wt2")), "{state}");
    }
    put(&mut world, "-w-wt", "attachments");
    let found = lookup(&mut world);
    assert_eq!((word(&found.outcome), found.found_by), ("empty", Some(FoundBy::Worktree)));
    for (thing, code) in
        [(Thing::Dir, "directory_in_place"), (Thing::Special, "would_block"), (Thing::Locked(vec![]), "unreadable")]
    {
        let outcome = if code == "directory_in_place" { "refused" } else { "unknown" };
        world.put(&at("-w-main"), thing);
        let found = lookup(&mut world);
        assert_eq!((word(&found.outcome), codes(&found)[0]), (outcome, code));
    }
    world.worktrees = Seen::Unreadable("git says no".into());
    assert_eq!(codes(&lookup(&mut world))[0], "worktrees_unreadable");
    put(&mut world, "own", "complete");
    assert_eq!(lookup(&mut world).found_by, Some(FoundBy::Own));
}

#[test]
fn hidden_files_are_absent() {
    let mut world = world();
    world.file(&at("own"), complete());
    world.file(&at("aaa"), complete());
    world.file(&at("bbb"), complete());
    let mut look = |hidden: &[&str]| {
        let hidden = hidden.iter().map(|dir| at(dir)).collect();
        newest().lookup(&mut world, &place(), ID, &hidden, Depth::Windows).unwrap()
    };
    assert_eq!(look(&[]).found_by, Some(FoundBy::Own));
    assert_eq!(codes(&look(&["own"]))[0], "ambiguous");
    assert_eq!(look(&["own", "aaa"]).path, Some(at("bbb")));
    assert_eq!(codes(&look(&["own", "aaa", "bbb"])), ["not_found"]);
}

/// A world in which one question cannot be answered.
struct Blind<'w>(&'w mut World, Question);

impl View for Blind<'_> {
    fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
        let answer = self.0.ask(question)?;
        if *question != self.1 {
            return Ok(answer);
        }
        let why = || "permission denied".to_owned();
        Ok(match answer {
            Answer::Node(_) => Answer::Node(Seen::Unreadable(why())),
            Answer::Text(_) => Answer::Text(Seen::Unreadable(why())),
            Answer::Texts(_) => Answer::Texts(Seen::Unreadable(why())),
            Answer::Entries(_) => Answer::Entries(Seen::Unreadable(why())),
            Answer::Flag(_) => Answer::Flag(Seen::Unreadable(NOT_EXAMINED.into())),
            Answer::Transcript(_) => Answer::Transcript(Seen::Unreadable(why())),
            other => panic!("a lookup asks for no {other:?}"),
        })
    }
}

#[test]
fn what_cannot_be_read_makes_the_answer_unknown_and_never_another() {
    let mut blinded = 0;
    for line in include_str!("corpus/claude/worlds.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("the corpus parses");
        let mut world = world();
        for (dir, state) in row["states"].as_object().unwrap() {
            put(&mut world, dir, state.as_str().unwrap());
        }
        lookup(&mut world);
        for question in std::mem::take(&mut world.asked) {
            let mut blind = Blind(&mut world, question.clone());
            let found = newest().lookup(&mut blind, &place(), ID, &BTreeSet::new(), Depth::Windows).unwrap();
            assert_eq!(word(&found.outcome), "unknown", "{row}: {question:?}");
            assert!(!found.findings.is_empty() && found.path.is_none());
            blinded += 1;
        }
    }
    assert!(blinded > 200, "{blinded}");
}

#[test]
fn an_accepted_own_file_asks_for_little() {
    let mut world = world();
    world.file(&at("own"), complete());
    let mut recorder = Recorder::new(&mut world);
    newest().lookup(&mut recorder, &place(), ID, &BTreeSet::new(), Depth::Windows).unwrap();
    let snapshot = recorder.into_snapshot();
    assert_eq!(snapshot.len(), 3, "the directory, the name, the bytes: {snapshot:?}");
    // And the answers alone give the same answer again.
    let replayed = newest().lookup(&mut snapshot.clone(), &place(), ID, &BTreeSet::new(), Depth::Windows);
    assert_eq!(replayed.unwrap(), lookup(&mut world));
}

#[test]
fn versions_differ_where_they_were_seen_to_differ() {
    type Row = (&'static str, &'static [(&'static str, &'static str)], [&'static str; 3]);
    let table: [Row; 8] = [
        ("found elsewhere", &[("aaa", "complete")], ["continues", "continues", "refused"]),
        (
            "not accepted here, found elsewhere",
            &[("own", "metadata"), ("aaa", "complete")],
            ["continues", "continues", "refused"],
        ),
        ("system", &[("own", "system")], ["empty", "refused", "refused"]),
        ("attachments", &[("own", "attachments")], ["empty", "empty", "empty"]),
        ("messageless", &[("own", "messageless")], ["empty", "empty", "refused"]),
        ("complete", &[("own", "complete"), ("aaa", "complete")], ["continues"; 3]),
        ("metadata", &[("own", "metadata")], ["refused"; 3]),
        ("directory", &[("own", "dir"), ("aaa", "complete")], ["refused"; 3]),
    ];
    for (case, states, expected) in table {
        let mut world = world();
        for (dir, state) in states {
            put(&mut world, dir, state);
        }
        let found = VERSIONS.map(|version| word(&lookup_as(claude_at(version), &mut world, ID).outcome));
        assert_eq!(found, expected, "{case}");
    }
    let mut single = world();
    single.file(&at("own"), r#"{"type":"user","uuid":"1"}"#);
    for version in VERSIONS {
        assert_eq!(word(&lookup_as(claude_at(version), &mut single, ID).outcome), "refused", "{version}");
    }
}

#[test]
fn a_path_is_forked_whatever_lies_elsewhere() {
    for (case, thing, expected) in [
        ("complete", Thing::File(complete()), ["continues"; 3]),
        ("torn", Thing::File(content("torn_tail")), ["continues"; 3]),
        ("empty", Thing::File(vec![]), ["refused", "refused", "fresh"]),
        ("metadata", Thing::File(content("metadata")), ["refused", "refused", "fresh"]),
        ("a directory", Thing::Dir, ["refused", "refused", "fresh"]),
        ("a FIFO", Thing::Special, ["unknown"; 3]),
        ("unreadable", Thing::Locked(complete()), ["unknown"; 3]),
        ("a link", Thing::Link("/w/real".into()), ["continues"; 3]),
        ("dangling", Thing::Link("/w/gone".into()), ["refused", "refused", "fresh"]),
    ] {
        let mut world = world().with("/w/real", Thing::File(complete())).with("/w/any name.jsonl", thing);
        for dir in ["own", "aaa", "bbb"] {
            put(&mut world, dir, "complete");
        }
        let found = VERSIONS.map(|version| {
            let found = claude_at(version).lookup_path(&mut world, "/w/any name.jsonl", Depth::Windows).unwrap();
            assert!(word(&found.outcome) == "continues" || !found.findings.is_empty(), "{case}");
            word(&found.outcome)
        });
        assert_eq!(found, expected, "{case}");
    }
    let mut world = world();
    let found = newest().lookup_path(&mut world, "/w/gone.jsonl", Depth::Windows).unwrap();
    assert_eq!(codes(&found), ["not_found"]);
    let found = newest().lookup_path(&mut world, "/w/gone.txt", Depth::Windows).unwrap();
    assert_eq!(codes(&found), ["not_a_session_path"]);
    for version in VERSIONS {
        assert_eq!(claude_at(version).means(), [Means::ByPath, Means::ByCopy]);
    }
}

// ---- what else ----

#[test]
fn the_largest_real_conversation_is_found() {
    let dir = format!("{ROOT}/projects/-w-p1");
    let id = |n: u8| format!("0000000{n}-0000-4000-8000-000000000000");
    let big = |n: usize| [lines(&four_turns()), lines(&vec![json!({"type": "mode"}); n])].concat();
    let mut world = world();
    let mut file = |name: String, thing| world.put(&format!("{dir}/{name}.jsonl"), thing);
    file(id(1), Thing::File(big(10)));
    file(id(2), Thing::File(big(20)));
    file(id(3), Thing::File(big(30)));
    file(id(4), Thing::File(lines(&vec![json!({"type": "mode"}); 9000])));
    file(id(5), Thing::File(content("sidechain").repeat(9)));
    file(id(6), Thing::File(content("attachments").repeat(9)));
    file(id(7), Thing::Link(format!("{dir}/{}.jsonl", id(1))));
    file(id(8), Thing::Dir);
    file("agent-abc".into(), Thing::File(big(90)));
    file("notes".into(), Thing::File(big(90)));
    let mut largest = |except: &[String], hidden: &[String]| {
        let hidden = hidden.iter().map(|id| format!("{dir}/{id}.jsonl")).collect();
        let except = except.iter().cloned().collect();
        newest().largest(&mut world, &place(), &except, &hidden, Depth::Windows).unwrap().map(|scanned| {
            assert_eq!(scanned.path, format!("{dir}/{}.jsonl", scanned.session));
            scanned.session
        })
    };
    assert_eq!(largest(&[], &[]), Seen::Is(id(3)));
    assert_eq!(largest(&[id(3)], &[]), Seen::Is(id(2)));
    assert_eq!(largest(&[id(3)], &[id(2)]), Seen::Is(id(1)));
    assert_eq!(largest(&[id(3), id(1)], &[id(2)]), Seen::Absent);
    world.put(&format!("{dir}/{}.jsonl", id(9)), Thing::Locked(vec![b' '; 9_000_000]));
    let unread = newest().largest(&mut world, &place(), &BTreeSet::new(), &BTreeSet::new(), Depth::Windows).unwrap();
    assert!(matches!(unread, Seen::Unreadable(_)), "{unread:?}");
    let none =
        newest().largest(&mut self::world(), &place(), &BTreeSet::new(), &BTreeSet::new(), Depth::Windows).unwrap();
    assert_eq!(none, Seen::Absent);
}

#[test]
fn only_so_many_transcripts_are_opened() {
    let mut world = world();
    for n in 0..200 {
        world.file(&format!("{ROOT}/projects/-w-p1/00000000-0000-4000-8000-{n:012}.jsonl"), content("metadata"));
    }
    let found = newest().largest(&mut world, &place(), &BTreeSet::new(), &BTreeSet::new(), Depth::Windows).unwrap();
    assert!(matches!(found, Seen::Unreadable(_)), "{found:?}");
    assert_eq!(world.asked.len(), 2 + 64);
}

#[test]
fn continue_takes_what_was_changed_last_even_if_it_is_empty() {
    let dir = format!("{ROOT}/projects/-w-p1");
    let id = |n: u8| format!("0000000{n}-0000-4000-8000-000000000000");
    let mut world = world();
    for (age, (name, bytes)) in [
        ("notes".to_owned(), complete()),
        (id(1), content("metadata")),
        (id(2), content("sidechain")),
        (id(3), vec![]),
        (id(4), complete()),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("{dir}/{name}.jsonl");
        world.file(&path, bytes);
        world.age.insert(path, age.try_into().unwrap());
    }
    // Neither links nor directories are sessions, however young they are.
    world.put(&format!("{dir}/{}.jsonl", id(5)), Thing::Link(format!("{dir}/{}.jsonl", id(4))));
    world.put(&format!("{dir}/{}.jsonl", id(6)), Thing::Dir);
    let mut take = |hidden: &[u8]| {
        let hidden = hidden.iter().map(|&n| format!("{dir}/{}.jsonl", id(n))).collect();
        newest().newest(&mut world, &place(), &hidden, Depth::Windows).unwrap().map(|scanned| scanned.session)
    };
    assert_eq!(take(&[]), Seen::Is(id(3)));
    assert_eq!(take(&[3]), Seen::Is(id(4)));
    assert_eq!(take(&[3, 4]), Seen::Absent);
}

#[test]
fn a_login_is_known_by_its_account_and_organisation() {
    let account = br#"{"oauthAccount":{"accountUuid":"acc","organizationUuid":"org"}}"#;
    let mut world = world();
    assert_eq!(newest().identity(&mut world, &place()).unwrap().is(), None);
    world.file("/w/cfg/.claude.json", account);
    let key = newest().identity(&mut world, &place()).unwrap().is().unwrap();
    assert_eq!(Some(key), claude::identity(account));
    world.file("/w/cfg/.claude.json", &account[..40]);
    assert_eq!(newest().identity(&mut world, &place()).unwrap().is(), None);
    world.put("/w/cfg/.claude.json", Thing::Locked(account.to_vec()));
    assert_eq!(newest().identity(&mut world, &place()).unwrap().is(), None);
    world.file("/w/home/.claude.json", account);
    let ambient = Place { config_dir: ConfigDir::Ambient { home: "/w/home".into() }, ..place() };
    assert_eq!(newest().identity(&mut world, &ambient).unwrap().is(), None);
}

#[test]
fn owners_are_the_processes_of_the_registry() {
    let mut world = world();
    assert_eq!(newest().owners(&mut world, &place(), ID).unwrap(), Seen::Absent);
    world.file("/w/cfg/sessions/7.json", format!(r#"{{"pid":7,"sessionId":"{ID}","procStart":"5"}}"#));
    world.file("/w/cfg/sessions/8.json", format!(r#"{{"pid":8,"sessionId":"{OTHER_ID}"}}"#));
    world.file("/w/cfg/sessions/9.json", "{");
    let owners = newest().owners(&mut world, &place(), ID).unwrap().is().unwrap();
    assert_eq!(owners.iter().map(|owner| owner.pid).collect::<Vec<_>>(), [7]);
}

#[test]
fn what_will_not_be_kept_is_said_before() {
    let keeping = |world: &mut World, fork| {
        let findings = newest().keeping(world, &place(), &at("own"), fork).unwrap();
        findings.into_iter().map(|finding| (finding.code, finding.path.unwrap_or_default())).collect::<Vec<_>>()
    };
    let mut world = world();
    world.file(&at("own"), complete());
    assert_eq!((keeping(&mut world, false), keeping(&mut world, true)), (vec![], vec![]));
    world.unwritable.insert(at("own"));
    assert_eq!(keeping(&mut world, false), [("not_writable".to_owned(), at("own"))]);
    assert_eq!(keeping(&mut world, true), []);
    world.unwritable.insert("/w/cfg/projects/-w-p1".into());
    assert_eq!(keeping(&mut world, true), [("not_writable".to_owned(), "/w/cfg/projects/-w-p1".to_owned())]);

    // A folder that does not exist yet is as good as the nearest one that does.
    let mut bare = World::new().with("/w/p1", Thing::Dir).with("/w/other.jsonl", Thing::File(complete()));
    let mut fork = |unwritable: &str| {
        bare.unwritable = BTreeSet::from([unwritable.to_owned()]);
        newest().keeping(&mut bare, &place(), "/w/other.jsonl", true).unwrap().len()
    };
    assert_eq!((fork("/w"), fork("/"), fork("/w/p1")), (1, 0, 0));
    let mut plain = World::new().with("/w/p1", Thing::Dir).with(ROOT, Thing::File(vec![]));
    assert_eq!(keeping(&mut plain, true), [("not_a_directory".to_owned(), ROOT.to_owned())]);
}

#[test]
fn a_source_that_the_clean_up_would_take_is_named_before_a_fork() {
    for (age, settings, warned) in [
        (27, None, false),
        (28, None, true),
        (31, None, true),
        (400, None, true),
        (400, Some(r#"{"cleanupPeriodDays":3650}"#), false),
        (31, Some(r#"{"cleanupPeriodDays":0}"#), false),
        (31, Some(r#"{"cleanupPeriodDays":"90"}"#), false),
        (27, Some(r#"{"cleanupPeriodDays":0}"#), false),
        (5, Some(r#"{"cleanupPeriodDays":7}"#), true),
        (4, Some(r#"{"cleanupPeriodDays":7}"#), false),
        (31, Some("{"), false),
        (31, Some("{}"), true),
    ] {
        let mut world = world();
        for path in [at("own"), at("aaa"), "/w/cfg2/projects/-w-p1/x.jsonl".into()] {
            world.file(&path, complete());
            world.age.insert(path, age);
        }
        if let Some(settings) = settings {
            world.file("/w/cfg/settings.json", settings);
        }
        let mut retention = |path: &str, fork| {
            let findings = newest().keeping(&mut world, &place(), path, fork).unwrap();
            findings.iter().any(|finding| finding.code == "retention")
        };
        assert_eq!(retention(&at("own"), true), warned, "{age} {settings:?}");
        assert_eq!(retention(&at("aaa"), true), warned, "{age} {settings:?}");
        assert!(!retention(&at("own"), false), "a resume saves its own file");
        assert!(
            !retention("/w/cfg2/projects/-w-p1/x.jsonl", true),
            "another login's clean-up is not run by this spawn"
        );
    }
}

#[test]
fn a_launch_sets_the_config_dir_or_makes_sure_that_it_is_not_set() {
    let ask = LaunchAsk::InPlace { session: ID, fork: true };
    let named = newest().launch(&place(), &ask);
    assert_eq!(named.argv, ["claude", "--resume", ID, "--fork-session"]);
    assert_eq!(named.env["CLAUDE_CONFIG_DIR"].as_deref(), Some(ROOT));
    let ambient = Place { config_dir: ConfigDir::Ambient { home: "/w".into() }, ..place() };
    assert_eq!(newest().launch(&ambient, &ask).env["CLAUDE_CONFIG_DIR"], None);
}

// ---- size ----

/// Bytes that are made when they are read.
struct Made {
    len: u64,
    make: fn(u64) -> u8,
    read: u64,
}

impl throughline::provider::source::Source for Made {
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let count = buf.len().min(usize::try_from(self.len - offset).unwrap());
        for (at, byte) in buf[..count].iter_mut().enumerate() {
            *byte = (self.make)(offset + at as u64);
        }
        self.read += count as u64;
        Ok(count)
    }
}

#[test]
fn a_large_file_is_read_at_its_ends() {
    const LINE: &[u8] = b"{\"type\":\"user\",\"message\":{\"content\":\"\"},\"cwd\":\"/w\"}             \n";
    let mut source = Made { len: 40 << 20, make: |at| LINE[usize::try_from(at).unwrap() % LINE.len()], read: 0 };
    let held = claude::scan(&mut source, Depth::Windows).unwrap();
    assert!(held.turns > 0 && held.reached > 0 && !held.is_whole(), "{held:?}");
    assert!(source.read < 2 << 20, "{}", source.read);
    assert!(held.unparsable <= 1, "the end of the bytes may cut a line, the windows do not: {held:?}");
    let whole = claude::scan(&mut source, Depth::Whole).unwrap();
    assert_eq!((whole.turns, whole.examined, whole.tail), ((40 << 20) / LINE.len() as u64, whole.bytes, held.tail));
}

#[test]
fn a_turn_behind_a_large_record_is_reached_by_a_larger_window() {
    let tail = lines(&[json!({"type": "mode", "note": "x".repeat(3 << 20)})]);
    let noise = lines(&vec![json!({"type": "mode", "note": "x".repeat(1000)}); 9000]);
    let mut bytes = [noise.clone(), lines(&four_turns()), tail.clone()].concat();
    let held = scan(&bytes, Depth::Windows);
    assert_eq!((held.turns, held.reached, held.is_whole(), held.unparsable), (4, 4, false, 0));
    // Turns only in front: one is enough to know that there is a history.
    bytes = [lines(&four_turns()), noise.clone(), tail].concat();
    let found = own(&bytes);
    assert_eq!(word(&found.outcome), "continues");
    // Pretty-printed: a window that begins inside a value blames nobody.
    let pretty: String = four_turns().iter().map(|turn| serde_json::to_string_pretty(turn).unwrap() + "\n").collect();
    let held = scan(&[noise, pretty.repeat(6000).into_bytes()].concat(), Depth::Windows);
    assert!(held.turns > 0 && !held.is_whole() && held.unparsable == 0, "{held:?}");
}

/// One line of 300 MiB, without an end.
struct Endless {
    read: u64,
}

impl throughline::provider::source::Source for Endless {
    fn len(&self) -> u64 {
        300 << 20
    }
    fn read_at(&mut self, _: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        buf.fill(b'x');
        self.read += buf.len() as u64;
        Ok(buf.len())
    }
}

#[test]
fn a_line_without_an_end_is_not_examined_and_not_judged() {
    let mut source = Endless { read: 0 };
    let held = claude::scan(&mut source, Depth::Windows).unwrap();
    assert_eq!((held.turns, held.unparsable, held.examined, held.is_whole()), (0, 0, 0, false));
    assert!(source.read <= TAIL_BYTES.iter().sum::<u64>() + WHOLE_BYTES_MAX, "{}", source.read);
    let held = claude::scan(&mut source, Depth::Whole).unwrap();
    assert_eq!((held.turns, held.unparsable, held.torn_at, held.is_whole()), (0, 1, Some(0), true));
}

#[test]
fn what_was_not_examined_decides_nothing() {
    // Attachments were seen, and 100 bytes were not: whether a turn is among them is not known.
    struct Part(World, Transcript);
    impl View for Part {
        fn ask(&mut self, question: &Question) -> Result<Answer, SnapshotError> {
            match question {
                Question::Transcript { .. } => Ok(Answer::Transcript(Seen::Is(self.1.clone()))),
                other => self.0.ask(other),
            }
        }
    }
    let mut world = world();
    world.file(&at("own"), complete());
    for (examined, turns, outcome) in [(900, 0, "unknown"), (900, 1, "continues"), (1000, 0, "empty")] {
        let held = Transcript { bytes: 1000, examined, turns, reached: turns, attachments: 3, ..Transcript::default() };
        let mut part = Part(world.clone(), held);
        let found = newest().lookup(&mut part, &place(), ID, &BTreeSet::new(), Depth::Windows).unwrap();
        assert_eq!(word(&found.outcome), outcome);
        assert_eq!(codes(&found).contains(&"not_examined"), examined < 1000);
        let next = found.findings.iter().find_map(|finding| finding.next.as_deref());
        assert_eq!(next.is_some_and(|next| next.contains("--deep")), examined < 1000);
        let largest =
            newest().largest(&mut part, &place(), &BTreeSet::new(), &BTreeSet::new(), Depth::Windows).unwrap();
        match outcome {
            "unknown" => assert!(matches!(largest, Seen::Unreadable(_))),
            "continues" => assert_eq!(largest.map(|scanned| scanned.session), Seen::Is(ID.into())),
            _ => assert_eq!(largest, Seen::Absent),
        }
    }
}

#[test]
fn values_that_never_close_are_not_read_over_and_over() {
    const OPEN: &[u8] = b"{\"a\":[\n";
    let mut source = Made { len: 1 << 20, make: |at| OPEN[usize::try_from(at).unwrap() % OPEN.len()], read: 0 };
    let held = claude::scan(&mut source, Depth::Windows).unwrap();
    assert_eq!(held.unparsable, (1u64 << 20).div_ceil(OPEN.len() as u64));
    assert!(source.read < 100 << 20, "{}", source.read);
}

// ---- laws ----

/// Texts that come near to transcripts.
fn near_transcripts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(four_turns()[0].to_string().into_bytes()),
        2 => Just(four_turns()[1].to_string().into_bytes()),
        2 => Just(four_turns()[3].to_string().into_bytes()),
        1 => Just(serde_json::to_string_pretty(&four_turns()[2]).unwrap().into_bytes()),
        3 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"{\"a\":[\n".to_vec()),
        1 => Just(b"]}".to_vec()),
        1 => Just(b"{".to_vec()),
        1 => Just(vec![0; 8]),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// What the scanner says of small bytes, said in another way: value by value, with another parser.
fn by_lines(bytes: &[u8]) -> (u64, u64) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let line_end = |from: usize| text[from..].find('\n').map_or(text.len(), |found| from + found);
    let truthy = |value: &Value| match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    };
    let (mut turns, mut lost, mut at) = (0, 0, 0);
    loop {
        at += text[at..].len() - text[at..].trim_start_matches([' ', '\t', '\r', '\n']).len();
        if at == text.len() {
            return (turns, lost);
        }
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let value = values.next().and_then(Result::ok);
        let end = at + values.byte_offset();
        let follows = !text[end..line_end(end)].trim_matches([' ', '\t', '\r']).is_empty();
        match value {
            Some(Value::Object(record)) => {
                let turn = matches!(record.get("type").and_then(Value::as_str), Some("user" | "assistant"));
                let main = !record.get("isSidechain").is_some_and(truthy);
                let content = record.get("message").and_then(|message| message.as_object()?.get("content"));
                turns += u64::from(turn && main && content.is_some_and(|it| it.is_string() || it.is_array()));
                lost += u64::from(follows);
                at = line_end(end);
            }
            Some(_) if !follows => {
                lost += 1;
                at = line_end(end);
            }
            Some(_) | None => {
                lost += 1;
                at = line_end(at);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_scanned_and_small_ones_alike_at_any_depth(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let whole = scan(&bytes, Depth::Whole);
        prop_assert_eq!(&whole, &scan(&bytes, Depth::Windows));
        prop_assert!(whole.is_whole() && whole.reached <= whole.turns);
    }

    #[test]
    fn a_second_reader_sees_the_same_records(bytes in near_transcripts()) {
        let held = scan(&bytes, Depth::Windows);
        prop_assert_eq!((held.turns, held.unparsable), by_lines(&bytes));
        prop_assert!(held.reached <= held.turns);
        prop_assert_eq!(held.reached > 0, held.turns > 0);
        prop_assert_eq!(held.unparsable_at.is_some(), held.unparsable > 0);
        prop_assert_eq!(held.torn_at.is_some(), held.torn_tail);
    }

    #[test]
    fn bytes_appended_on_a_new_line_change_no_record_before(bytes in near_transcripts()) {
        let before = scan(&bytes, Depth::Windows);
        let after = scan(&[bytes, b"\n".to_vec(), lines(&four_turns()[..1])].concat(), Depth::Windows);
        prop_assert!(after.turns > 0, "{before:?} {after:?}");
    }
}

#[test]
fn the_transcript_of_nothing_is_the_default() {
    let tail = throughline::id::Digest::plain(b"");
    assert_eq!(scan(b"", Depth::Windows), Transcript { tail, ..Transcript::default() });
}

/// Observed on 2.1.332: a line's first value is taken, what follows it on the line is not.
#[test]
fn what_follows_a_value_on_its_line_is_dropped_and_the_value_is_kept() {
    let turns: Vec<String> = four_turns().iter().map(Value::to_string).collect();
    let [one, two, three, four] = turns.as_slice() else { unreachable!("four turns") };
    for (text, turns, reached, lost) in [
        (format!("{one}{two}{three}{four}\n"), 1, 1, 1),
        (format!("{one} {two}\n{three}{four}\n"), 2, 2, 2),
        (format!("{one}\n{two} xxx\n{three}\n{four}\n"), 4, 4, 1),
        (format!("{one},\n{two}\n{three}\n{four}\n"), 4, 4, 1),
        (format!("{one}\0\0\n{two}\n{three}\n{four}\n"), 4, 4, 1),
        (format!("{}{two}\n{three}\n{four}\n", &one[..one.len() - 5]), 2, 2, 1),
        (format!("{one}\r{two}\r{three}\r{four}\r"), 1, 1, 1),
        (format!("[{one}]\n{two}\n{three}\n{four}\n"), 3, 3, 1),
    ] {
        let held = scan(text.as_bytes(), Depth::Windows);
        assert_eq!((held.turns, held.reached, held.unparsable), (turns, reached, lost), "{text}");
    }
    let held = scan(format!("{one}\n{two}{}", &three[..9]).as_bytes(), Depth::Windows);
    assert_eq!((held.turns, held.torn_at), (2, Some((one.len() + 1 + two.len()) as u64)), "a cut second value");
}

/// Observed on 2.1.332: a message is an object whose content is a text or a list; a side chain is whatever JavaScript takes
/// for true.
#[test]
fn messages_and_side_chains_are_what_the_cli_takes_for_them() {
    for (message, is) in [
        (json!({"content": "x"}), true),
        (json!({"role": "user", "content": ""}), true),
        (json!({"content": []}), true),
        (json!({"content": [{"type": "text", "text": "x"}]}), true),
        (json!({"role": "user"}), false),
        (json!({"role": "user", "content": null}), false),
        (json!({"content": 5}), false),
        (json!({"content": {"a": "x"}}), false),
        (json!({}), false),
        (json!("x"), false),
        (json!(true), false),
        (json!([]), false),
        (json!(null), false),
    ] {
        let record = json!({"type": "user", "uuid": "u", "message": message});
        let found = own(format!("{record}\n"));
        assert_eq!(word(&found.outcome), if is { "continues" } else { "refused" }, "{message}");
    }
    for (side, is) in [
        (json!(true), true),
        (json!("true"), true),
        (json!("false"), true),
        (json!(1), true),
        (json!({}), true),
        (json!([]), true),
        (json!(false), false),
        (json!(null), false),
        (json!(0), false),
        (json!(""), false),
    ] {
        let record = json!({"type": "user", "uuid": "u", "message": {"content": "x"}, "isSidechain": side});
        let found = own(format!("{record}\n"));
        assert_eq!(word(&found.outcome), if is { "refused" } else { "continues" }, "{side}");
    }
}

/// Observed: 2.1.332 and 2.1.280 take the first value of a glued line, 2.0.77 loses the whole line.
#[test]
fn a_glued_line_counts_by_version() {
    let [one, two, ..] = four_turns().map(|turn| turn.to_string());
    for (version, glued) in [("2.1.332", "continues"), ("2.1.280", "continues"), ("2.0.77", "refused")] {
        for (text, expected) in [(format!("{one}{two}\n"), glued), (format!("{one}{two}\n{two}\n"), "continues")] {
            let mut world = world();
            world.file(&at("-w-p1"), text);
            let found = lookup_as(claude_at(version), &mut world, ID);
            assert_eq!(word(&found.outcome), expected, "{version}: {found:?}");
        }
    }
}
