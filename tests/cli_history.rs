//! `log`, `show` and `anchor` as a person and a script see them: columns, colours, earlier moments, damage.

use std::io::Read as _;

use serde_json::{Value, json};

use crate::cli::{code, json_of, run, run_with, stderr, stdout, throughline};
use crate::support::{A, B, World};

const DAY: i64 = 1_700_000_000_000;

/// A history with one of everything that the lines tell apart, one second from event to event.
pub(crate) fn story() -> Vec<(&'static str, &'static str, Value)> {
    let digest = "ab".repeat(32);
    let file = |bytes: u64| json!({"bytes": bytes, "tail": digest});
    let at =
        |session: &str| json!({"session": session, "config_dir": "/w/login", "cwd": "/w/app", "provider": "claude"});
    let spawned = |segment: &str, cwd: &str| json!({"segment": segment, "cwd": cwd, "config_dir": "/w/login", "provider": "claude", "how": "fresh"});
    vec![
        ("agent/a", "agent_declared", json!({"provider": "claude"})),
        ("agent/a", "spawned", spawned("s1", "/w/app")),
        ("agent/a", "session_reported", json!({"segment": "s1", "session": A})),
        ("agent/a", "turn_confirmed", json!({"segment": "s1", "session": A, "file": file(120)})),
        ("agent/a", "chain_head_moved", json!({"segment": "s1", "to": at(A)})),
        ("hook/a", "hook_announced", json!({"hook": "SessionStart", "session": A, "cause": "clear"})),
        (
            "audit/a",
            "verdict_given",
            json!({"verdict": "resume", "session": A, "route": "held", "snapshot": digest, "version": 5}),
        ),
        ("agent/b", "spawned", spawned("s9", "/w/two words\u{1b}[2J\u{202e}\nfake=1")),
        (
            "agent/b",
            "resume_rejected",
            json!({"segment": "s9", "session": B, "why": "no conversation found", "snapshot": digest}),
        ),
        ("agent/a", "segment_ended", json!({"segment": "s1", "reason": "exited", "code": 0, "file": file(240)})),
        (
            "agent/a",
            "lease_taken",
            json!({"epoch": 1, "holder": {"host": "h", "boot": "b", "pid": 7, "started": 1, "pid_ns": 4}}),
        ),
        ("agent/a", "fresh_intended", json!({"pane": "p 1"})),
    ]
}

/// The story as lines for `import --unverified`.
pub(crate) fn lines() -> String {
    let line = |((stream, kind, body), second): (&(&str, &str, Value), i64)| {
        json!({"stream": stream, "kind": kind, "body": body, "at_ms": DAY + 1_000 * second}).to_string() + "\n"
    };
    story().iter().zip(0..).map(line).collect()
}

pub(crate) fn told(world: &World) {
    let imported = run_with(throughline(world).args(["import", "--unverified", "-"]), &lines());
    assert_eq!(code(&imported), 0, "{imported:?}");
}

fn ask(world: &World, words: &str) -> std::process::Output {
    run(throughline(world).args(words.split_whitespace()))
}

fn out(world: &World, words: &str) -> String {
    let output = ask(world, words);
    assert_eq!(code(&output), 0, "{words}: {output:?}");
    stdout(&output)
}

/// Digests rest on a log's random id.
fn without_digests(text: &str) -> String {
    let fixed = "ab".repeat(32);
    let mut seen = String::new();
    let mut run = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_hexdigit() && !c.is_ascii_uppercase() {
            run.push(c);
            continue;
        }
        seen.push_str(if run.len() == 64 && run != fixed { "DIGEST" } else { &run });
        run.clear();
        if c != '\0' {
            seen.push(c);
        }
    }
    seen
}

fn transcript(world: &World, commands: &[&str]) -> String {
    let (root, mut seen) = (world.text(""), String::new());
    for words in commands {
        let output = ask(world, words);
        let text = without_digests(&(stdout(&output) + &stderr(&output))).replace(&root, "/world/");
        seen.push_str(&format!("$ throughline {words}\n{text}exit {}\n\n", code(&output)));
    }
    seen
}

#[test]
fn what_a_person_sees_of_a_history() {
    let world = World::new();
    told(&world);
    insta::assert_snapshot!(transcript(
        &world,
        &[
            "log",
            "log --reversed -n 3",
            "log --at 4 -n 2",
            "log --from 11",
            "log --agent b",
            "log --kind spawned --kind chain_head_moved --reversed",
            "log --agent nobody",
            "log --agent b --at 3",
            "log --at 13",
            "show 5",
            "show 6",
            "show 7",
            "show 10",
            "show 0",
            "show 13",
            "show --agent a --at 2",
            "show --agent b --at 2",
            "anchor --at 3",
        ]
    ));
}

#[test]
fn what_a_script_sees_of_a_history() {
    let world = World::new();
    told(&world);
    let commands =
        ["log --json --at 2", "log --json -n 1 --reversed", "show 10 --json", "show 7 --json", "show 13 --json"];
    insta::assert_snapshot!(transcript(&world, &commands));
    for line in out(&world, "log --json").lines() {
        let event: Value = serde_json::from_str(line).expect("an object a line");
        assert_eq!(event.as_object().expect("an object").len(), 10, "{event}");
    }
    let shown = json_of(&ask(&world, "show 5 --json"));
    assert_eq!((&shown["before"]["head"], &shown["after"]["head"]["at"]["session"]), (&Value::Null, &json!(A)));
    let first = json_of(&ask(&world, "log --json --from 3 --at 3"));
    assert_eq!(out(&world, "anchor --at 3").trim(), format!("3:{}", first["chain"].as_str().expect("a digest")));
}

#[test]
fn reversed_is_the_reverse_for_every_filter() {
    let world = World::new();
    told(&world);
    let mut listed = 0;
    for agent in ["", "--agent a", "--agent b"] {
        for kind in ["", "--kind spawned"] {
            for part in ["", "--at 9", "--from 2 --at 11 -n 3"] {
                let words = format!("log {agent} {kind} {part}");
                let backwards = out(&world, &format!("{words} --reversed"));
                let turned: String = backwards.lines().rev().map(|line| format!("{line}\n")).collect();
                assert_eq!(out(&world, &words), turned, "{words}");
                listed += turned.lines().count();
            }
        }
    }
    assert_eq!(listed, 62);
}

/// More than is kept to be turned around, and more than a page.
#[test]
fn the_last_events_of_a_long_log_are_the_same_however_many_are_asked_for() {
    let world = World::new();
    let line = |number: usize| {
        let stream = if number.is_multiple_of(5) { "agent/b" } else { "agent/a" };
        json!({"stream": stream, "kind": "fresh_intended", "body": {"pane": number.to_string()}}).to_string() + "\n"
    };
    let text: String = (1..=2_600).map(line).collect();
    assert_eq!(code(&run_with(throughline(&world).args(["import", "--unverified", "-"]), &text)), 0);
    for filter in ["", "--agent a", "--agent b"] {
        let all = out(&world, &format!("log {filter}"));
        let all: Vec<&str> = all.lines().collect();
        for most in [0, 1, 999, 1_001, 2_079, 5_000] {
            let expected = &all[all.len().saturating_sub(most)..];
            let listed = out(&world, &format!("log {filter} -n {most}"));
            assert!(listed.lines().eq(expected.iter().copied()), "{filter} -n {most}");
            let reversed = out(&world, &format!("log {filter} -n {most} --reversed"));
            assert!(reversed.lines().eq(expected.iter().rev().copied()), "{filter} -n {most} --reversed");
        }
    }
}

#[test]
fn an_earlier_moment_is_what_the_log_said_then() {
    let world = World::new();
    let mut then = Vec::new();
    for line in lines().lines() {
        let imported = run_with(throughline(&world).args(["import", "--unverified", "-"]), &format!("{line}\n"));
        assert_eq!(code(&imported), 0, "{imported:?}");
        then.push((out(&world, "log"), stdout(&ask(&world, "show --agent a --json")), out(&world, "anchor")));
    }
    for ((log, shown, anchor), seq) in then.iter().zip(1..) {
        assert_eq!(&out(&world, &format!("log --at {seq}")), log);
        assert_eq!(&out(&world, &format!("anchor --at {seq}")), anchor);
        let at = json_of(&ask(&world, &format!("show --agent a --json --at {seq}")));
        let shown: Value = serde_json::from_str(shown).expect("JSON");
        assert_eq!((&at["state"], &at["frontier"]), (&shown["state"], &shown["frontier"]), "{seq}");
        assert_eq!(at["at"], seq);
    }
}

#[test]
fn an_unknown_kind_is_a_usage_error_that_names_the_near_ones() {
    let world = World::new();
    for command in ["log", "follow"] {
        let output = ask(&world, &format!("{command} --kind spawnd"));
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("a similar value exists: 'spawned'"), "{}", stderr(&output));
        let output = ask(&world, &format!("{command} --kind spawnd --json"));
        assert_eq!(json_of(&output)["error"]["next"], "did you mean spawned?");
    }
    assert!(stdout(&ask(&world, "log --help")).contains("outcome_observed"), "the help names every kind");
}

/// Without escapes of colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut seen = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        seen.push_str(part.split_once('m').expect("an escape of a colour").1);
    }
    seen
}

#[test]
fn colours_are_the_plain_text_with_escapes_around_it() {
    let world = World::new();
    told(&world);
    for words in ["log", "log --reversed -n 4", "show 5", "show 9"] {
        let coloured = out(&world, &format!("{words} --color always"));
        assert!(coloured.contains('\u{1b}'), "{words}");
        assert_eq!(plain(&coloured), out(&world, words), "{words}");
    }
    let coloured = out(&world, "log --color always");
    for (kind, colour) in [("chain_head_moved", "1;32"), ("resume_rejected", "1;31"), ("fresh_intended", "33")] {
        assert!(coloured.contains(&format!("\u{1b}[{colour}m{kind}")), "{kind}: {coloured:?}");
    }
    assert!(!out(&world, "log --json --color always").contains('\u{1b}'));
}

/// What the command prints on a terminal of its own.
fn on_a_terminal(world: &World, words: &str, environment: &[(&str, &str)]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("granted");
    let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("UTF-8");
    let slave = std::fs::OpenOptions::new().read(true).write(true).open(name).expect("its other end");
    let mut command = throughline(world);
    command.args(words.split_whitespace()).envs(environment.iter().copied());
    let mut child = command.stdout(slave).spawn().expect("it starts");
    // The other end is open in the child alone, so that its end is the end.
    drop(command);
    let (mut master, mut bytes, mut block) = (std::fs::File::from(master), Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = master.read(&mut block) {
        bytes.extend_from_slice(&block[..count]);
    }
    assert!(child.wait().expect("it ends").success());
    String::from_utf8(bytes).expect("UTF-8").replace('\r', "")
}

#[test]
fn colours_are_for_terminals_and_no_color_wins_over_auto() {
    let world = World::new();
    told(&world);
    let text = out(&world, "log");
    for (words, environment, expected) in [
        ("log", vec![], true),
        ("log", vec![("NO_COLOR", "")], true),
        ("log", vec![("NO_COLOR", "1")], false),
        ("log", vec![("TERM", "dumb")], false),
        ("log --color never", vec![], false),
        ("log --color always", vec![("NO_COLOR", "1")], true),
    ] {
        let seen = on_a_terminal(&world, words, &environment);
        assert_eq!(seen.contains('\u{1b}'), expected, "{words} {environment:?}");
        assert_eq!(plain(&seen), text, "{words} {environment:?}");
    }
    let off = run(throughline(&world).args(["log", "--color", "always"]).env("NO_COLOR", "1"));
    assert!(stdout(&off).contains('\u{1b}'), "asked for in so many words");
}

#[test]
fn what_an_event_says_never_drives_the_terminal() {
    let world = World::new();
    told(&world);
    for words in ["log", "show 8", "show --agent b", "follow --from 1 --until-idle 0"] {
        let seen = out(&world, words);
        assert!(!seen.contains(['\u{1b}', '\u{202e}']), "{words}: {seen:?}");
        assert!(seen.contains("two words"), "{words}: {seen}");
    }
    assert_eq!(out(&world, "log").lines().count(), story().len(), "an event is a line, whatever it says");
}

#[test]
fn damage_stops_where_it_lies_and_what_comes_before_it_on_the_way_is_shown() {
    let world = World::new();
    told(&world);
    let raw = rusqlite::Connection::open(world.path("log.db")).expect("SQLite");
    raw.execute_batch("DROP TRIGGER events_no_update; UPDATE events SET at_ms = 1 WHERE seq IN (4, 5)")
        .expect("edited");
    drop(raw);
    let seqs = |words: &str| {
        let output = ask(&world, words);
        let seq = |line: &str| line.split_whitespace().next().and_then(|word| word.parse().ok());
        (stdout(&output).lines().filter_map(seq).collect::<Vec<u64>>(), code(&output), stderr(&output))
    };
    for (words, expected) in [
        ("log", vec![1, 2, 3]),
        ("log --reversed", vec![12, 11, 10, 9, 8, 7, 6]),
        ("log -n 9", vec![6, 7, 8, 9, 10, 11, 12]),
        ("follow --from 1 --until-idle 0", vec![1, 2, 3]),
        ("show 5", vec![]),
        ("show 10", vec![]),
        ("show --agent a --at 11", vec![]),
    ] {
        let (seen, code, said) = seqs(words);
        assert_eq!((seen, code), (expected, 65), "{words}: {said}");
        assert!(said.contains("event 4") || said.contains("event 5"), "{words}: {said}");
        assert!(said.contains("; run `verify`"), "{words}: {said}");
    }
    assert_eq!(seqs("log -n 7").1, 0, "what is not read is not judged");
    assert_eq!(seqs("show 3").1, 0);
}

#[test]
fn an_agent_that_no_log_knows_is_said_so_and_quiet_is_not_mute() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let ask = || {
        let mut command = throughline(&world);
        command.args(["preflight", "--json", "--session", A, "--agent", "typo", "--config-dir"]);
        let output = run(command.arg(world.path("login")));
        let findings = json_of(&output)["findings"].clone();
        findings.as_array().expect("findings").iter().map(|finding| finding["code"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ask(), ["no_log"]);
    let line = r#"{"stream":"agent/a","kind":"fresh_intended","body":{}}"#;
    assert_eq!(code(&run_with(throughline(&world).arg("append"), line)), 0);
    assert_eq!(ask(), ["agent_unknown"]);
    let output = run(throughline(&world).args(["-q", "--log", "/no/such/log.db", "verify"]));
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("throughline:") && !output.stderr.is_empty(), "{output:?}");
}
