//! `hook` as an agent and a person see it: an announcement that is never in the way, and settings that come back as they were.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{code, json_of, run, run_with, stderr, stdout, throughline};
use crate::support::{A, B, World};

/// What Claude Code tells a hook, text of the conversation included.
fn told(hook: &str, session: &str, more: Value) -> String {
    let mut value = json!({"session_id": session, "transcript_path": "/w/t.jsonl", "cwd": "/w/app", "hook_event_name": hook,
        "permission_mode": "default", "prompt": "SECRET WORDS", "last_assistant_message": "SECRET WORDS"});
    for (key, field) in more.as_object().into_iter().flatten() {
        value[key] = field.clone();
    }
    value.to_string()
}

fn announce(world: &World, more: &[&str], input: &str) -> Output {
    let output = run_with(throughline(world).args(["hook", "claude"]).args(more), input);
    assert_eq!(stdout(&output), "", "{output:?}");
    output
}

/// The events of the log, as `log` lists them.
fn events(world: &World) -> Vec<Value> {
    let listed = stdout(&run(throughline(world).args(["log", "--json"])));
    listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn what_a_hook_is_told_is_in_the_log_once_and_no_word_of_the_conversation() {
    let world = World::new();
    let start = told("SessionStart", A, json!({"source": "startup"}));
    for _ in 0..2 {
        let output = announce(&world, &["--agent", "marks"], &start);
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{output:?}");
    }
    for (hook, session, more) in [
        ("SessionEnd", A, json!({"reason": "clear"})),
        ("SessionStart", B, json!({"source": "clear"})),
        ("UserPromptSubmit", B, json!({})),
        ("HookOfAnotherYear", B, json!({"unheard": [1, {"of": null}]})),
    ] {
        assert_eq!(code(&announce(&world, &["--agent", "marks", "--strict"], &told(hook, session, more))), 0);
    }
    let found = events(&world);
    let said: Vec<_> =
        found.iter().map(|event| (event["body"]["hook"].as_str(), event["body"]["cause"].as_str())).collect();
    let expected = [
        (Some("SessionStart"), Some("startup")),
        (Some("SessionEnd"), Some("clear")),
        (Some("SessionStart"), Some("clear")),
        (Some("UserPromptSubmit"), None),
        (Some("HookOfAnotherYear"), None),
    ];
    assert_eq!(said, expected);
    assert_eq!(found[2]["stream"], "hook/marks");
    let body =
        json!({"hook": "SessionStart", "session": B, "cause": "clear", "transcript": "/w/t.jsonl", "cwd": "/w/app"});
    assert_eq!(found[2]["body"], body);
    for name in ["log.db", "log.db-wal"] {
        let bytes = fs::read(world.path(name)).expect("the log");
        assert!(!bytes.windows(6).any(|window| window == b"SECRET"), "{name}");
    }
}

#[test]
fn the_agent_is_named_by_the_command_or_by_the_surroundings() {
    let world = World::new();
    let input = told("SessionStart", A, json!({}));
    let with = |agent: &str, more: &[&str]| {
        run_with(throughline(&world).env("THROUGHLINE_AGENT", agent).args(["hook", "claude"]).args(more), &input)
    };
    assert_eq!(stderr(&with("around", &[])), "");
    assert_eq!(stderr(&with("around", &["--agent", "said"])), "");
    let streams: Vec<_> = events(&world).iter().map(|event| event["stream"].clone()).collect();
    assert_eq!(streams, ["hook/around", "hook/said"]);
    for output in [with("", &[]), with("a.b", &[]), announce(&world, &[], &input)] {
        assert_eq!((code(&output), stdout(&output).as_str()), (0, ""), "{output:?}");
        let said = stderr(&output);
        assert!(said.contains("--agent") || said.contains("agent id"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert_eq!(events(&world).len(), 2);
}

#[test]
fn nothing_that_goes_wrong_is_in_the_agents_way() {
    let world = World::new();
    let good = told("SessionStart", A, json!({"source": "startup"}));
    let long = told("PostToolUse", A, json!({"tool_response": "x".repeat(3 << 20)}));
    fs::write(world.path("text"), "not a log").expect("a file");
    let text = world.text("text");
    let below = world.text("text/log.db");
    let agent = ["--agent", "marks"];
    for (more, input, words) in [
        (&agent[..], "", "the hook's input"),
        (&agent, "{", "the hook's input"),
        (&agent, "[1]", "the hook's input"),
        (&agent, "\u{0}", "the hook's input"),
        (&agent, "{\"hook_event_name\": \"Stop\"}", "session_id"),
        (&agent, "{\"hook_event_name\": \"Stop\", \"session_id\": \"a/b\"}", "session id"),
        (&agent, &long, "stdin is longer"),
        (&[], &good, "--agent"),
        (&["--agent", "a.b"], &good, "agent id"),
        (&["--agent"], &good, "--agent"),
        (&["--agent", "marks", "--made-later"], &good, "--made-later"),
        (&["--agent", "marks", "--busy-ms", "soon"], &good, "soon"),
        (&["--agent", "marks", "elsewhere", "--json"], &good, "elsewhere"),
        (&["--agent", "marks", "--log", &text], &good, "not a database"),
        (&["--agent", "marks", "--log", &below, "--json"], &good, "text/log.db"),
    ] {
        // It may have ended before it read: a closed pipe is no error of the one who writes.
        let mut command = throughline(&world);
        command.args(["hook", "claude"]).args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut strict = throughline(&world);
        strict.args(["hook", "claude", "--strict"]).args(more).stdin(Stdio::piped()).stdout(Stdio::piped());
        for (command, expected) in [(&mut command, 0), (strict.stderr(Stdio::piped()), 1)] {
            let mut child = command.spawn().expect("it starts");
            let _ = child.stdin.take().expect("stdin").write_all(input.as_bytes());
            let output = child.wait_with_output().expect("an end");
            assert_eq!((code(&output), stdout(&output).as_str()), (expected, ""), "{more:?} {output:?}");
            let said = stderr(&output);
            assert!(said.contains(words) && said.lines().count() == 1, "{more:?}: {said}");
        }
    }
    assert!(!world.path("log.db").exists());
    // Who writes what is too long, or for nobody, is heard to the end.
    assert_eq!(code(&announce(&world, &agent, &long)), 0);
    assert_eq!(code(&announce(&world, &[], &long)), 0);
    assert_eq!(code(&announce(&world, &["--agent", "a.b"], &told("Stop", A, json!({"x": "y".repeat(900_000)})))), 0);
}

#[test]
fn a_log_that_cannot_be_written_is_no_reason_to_fail() {
    let world = World::new();
    let input = told("SessionStart", A, json!({}));
    let missing = world.text("not/yet/there/log.db");
    assert_eq!(stderr(&announce(&world, &["--agent", "a", "--log", &missing], &input)), "");
    for (name, mode) in [("not", 0o700), ("not/yet/there", 0o700), ("not/yet/there/log.db", 0o600)] {
        assert_eq!(fs::metadata(world.path(name)).expect("made").mode() & 0o777, mode, "{name}");
    }
    assert_eq!(stderr(&announce(&world, &["--agent", "a"], &input)), "");
    let holder = rusqlite::Connection::open(world.path("log.db")).expect("a log");
    holder.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    // The same again has nothing to wait for.
    assert_eq!(stderr(&announce(&world, &["--agent", "a"], &input)), "");
    let other = told("SessionEnd", A, json!({}));
    for (more, least, most) in [(&[][..], 1_000, 6_000), (&["--busy-ms", "2000"], 2_000, 9_000)] {
        let began = Instant::now();
        let output = announce(&world, &[&["--agent", "a"], more].concat(), &other);
        let took = began.elapsed();
        assert_eq!(code(&output), 0);
        assert!(stderr(&output).contains("try again"), "{output:?}");
        assert!(took >= Duration::from_millis(least) && took < Duration::from_millis(most), "{took:?}");
    }
    drop(holder);
    assert_eq!(events(&world).len(), 1);
}

#[test]
fn a_stdin_that_never_ends_is_given_up() {
    let world = World::new();
    let mut command = throughline(&world);
    let began = Instant::now();
    command
        .args(["hook", "claude", "--agent", "a"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(told("SessionStart", A, json!({})).as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("an end");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    drop(stdin);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, ""));
    assert!(stderr(&output).contains("did not end within 2000 ms"), "{output:?}");
    assert!(!world.path("log.db").exists());
}

#[test]
fn a_session_that_a_hook_announced_makes_the_chain_stale() {
    let world = World::new();
    let path = world.session("login", "work", A, 2);
    let bind = |session: &str| {
        let mut command = throughline(&world);
        command.args(["bind", "--agent", "marks", "--session", session, "--config-dir"]).arg(world.path("login"));
        assert_eq!(code(&run(&mut command)), 0);
    };
    let findings = || {
        let mut command = throughline(&world);
        command.args(["preflight", "--agent", "marks", "--session", A, "--json", "--exit-zero", "--config-dir"]);
        let answer = json_of(&run(command.arg(world.path("login"))));
        let codes =
            answer["findings"].as_array().expect("findings").iter().map(|it| it["code"].as_str().map(str::to_owned));
        codes.map(|code| code.expect("a code")).any(|code| code == "stale_chain")
    };
    bind(A);
    let start = |session: &str, path: &str| {
        announce(
            &world,
            &["--agent", "marks"],
            &told("SessionStart", session, json!({"source": "clear", "transcript_path": path})),
        );
    };
    start(A, &path);
    assert!(!findings());
    let other = world.text("login/other.jsonl");
    start(B, &other);
    assert!(!findings(), "its file is not there yet");
    fs::write(&other, "{}").expect("a file");
    assert!(findings());
}

/// `hook install` or `uninstall` on the login of a world.
fn on(world: &World, verb: &str, more: &[&str]) -> Output {
    run(throughline(world).args(["hook", verb, "--config-dir"]).arg(world.path("login")).args(more))
}

fn settings(world: &World) -> std::path::PathBuf {
    world.path("login/settings.json")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("a name").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// The commands that the settings run on an event.
fn commands(world: &World, event: &str) -> Vec<String> {
    let value: Value = serde_json::from_slice(&fs::read(settings(world)).expect("settings")).expect("JSON");
    let groups = value["hooks"][event].as_array().cloned().unwrap_or_default();
    groups.iter().map(|group| group["hooks"][0]["command"].as_str().expect("a command").to_owned()).collect()
}

#[test]
fn settings_are_edited_in_place_and_come_back_byte_for_byte() {
    for old in [
        "{\r\n\t\"model\": \"x\",\r\n\t\"hooks\": {}\r\n}",
        "\u{feff}{\"a\":1}",
        "{}\n",
        "{\n    \"hooks\": {\"Stop\": []}\n}\n",
    ] {
        let world = World::new();
        fs::write(settings(&world), old).expect("settings");
        fs::set_permissions(settings(&world), fs::Permissions::from_mode(0o644)).expect("a mode");
        let dry = on(&world, "install", &["--agent", "marks", "--dry-run"]);
        assert_eq!(code(&dry), 0, "{dry:?}");
        let lines = stdout(&dry);
        assert!(
            lines.lines().all(|line| line.starts_with('+')) && lines.contains("hook claude --agent marks"),
            "{lines}"
        );
        assert_eq!(fs::read_to_string(settings(&world)).expect("settings"), old);
        let first = on(&world, "install", &["--agent", "marks", "--json"]);
        assert_eq!((code(&first), &json_of(&first)["changed"]), (0, &json!(true)), "{first:?}");
        let new = fs::read_to_string(settings(&world)).expect("settings");
        assert!(new.len() > old.len());
        let again = on(&world, "install", &["--agent", "marks", "--json"]);
        assert_eq!((code(&again), &json_of(&again)["changed"]), (0, &json!(false)));
        assert!(stderr(&again).contains("already"), "{again:?}");
        assert_eq!(fs::read_to_string(settings(&world)).expect("settings"), new);
        let dry = on(&world, "uninstall", &["--dry-run"]);
        assert!(
            stdout(&dry).lines().all(|line| line.starts_with('-')) && stdout(&dry).contains("hook claude"),
            "{dry:?}"
        );
        assert_eq!(fs::read_to_string(settings(&world)).expect("settings"), new);
        assert_eq!(code(&on(&world, "uninstall", &[])), 0);
        assert_eq!(fs::read_to_string(settings(&world)).expect("settings"), old);
        assert_eq!(fs::metadata(settings(&world)).expect("settings").mode() & 0o777, 0o644);
        assert_eq!(names(&world.path("login")), ["settings.json"]);
    }
}

#[test]
fn settings_that_were_not_there_are_made_and_removed_again() {
    let world = World::new();
    assert_eq!(stdout(&on(&world, "install", &["--dry-run", "--json"])).lines().count(), 1);
    assert!(names(&world.path("login")).is_empty());
    let output = on(&world, "install", &["--events", "Stop,SessionStart,Stop"]);
    assert_eq!(code(&output), 0, "{output:?}");
    assert!(stderr(&output).contains("$THROUGHLINE_AGENT"), "{output:?}");
    assert_eq!(fs::metadata(settings(&world)).expect("settings").mode() & 0o777, 0o600);
    assert_eq!(
        [commands(&world, "Stop").len(), commands(&world, "SessionStart").len(), commands(&world, "SessionEnd").len()],
        [1, 1, 0]
    );
    assert_eq!(code(&on(&world, "uninstall", &[])), 0);
    assert!(names(&world.path("login")).is_empty());
    let output = on(&world, "uninstall", &[]);
    assert!(code(&output) == 0 && stderr(&output).contains("nothing to do"), "{output:?}");
}

#[test]
fn the_installed_command_is_what_a_shell_runs() {
    let world = World::new();
    let folder = world.path("it's \"here\" $HOME");
    fs::create_dir(&folder).expect("a folder");
    let program = folder.join("throughline");
    symlink(env!("CARGO_BIN_EXE_throughline"), &program).expect("a link");
    let mut install = throughline(&world);
    install
        .args(["hook", "install", "--agent", "marks", "--log", "my logs/l.db", "--config-dir"])
        .arg(world.path("login"));
    assert_eq!(code(&run(install.arg("--program").arg(&program))), 0);
    let start = commands(&world, "SessionStart");
    assert_eq!(start, commands(&world, "SessionEnd"));
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &start[0]]).current_dir("/").env_clear();
    let output = run_with(&mut shell, &told("SessionStart", A, json!({"source": "resume"})));
    assert_eq!((code(&output), stdout(&output).as_str(), stderr(&output).as_str()), (0, "", ""));
    let mut log = throughline(&world);
    let listed = stdout(&run(log.args(["log", "--json", "--log"]).arg(world.path("work/my logs/l.db"))));
    assert!(listed.contains("hook/marks") && listed.contains("resume"), "{listed}");
    assert_eq!(code(&on(&world, "uninstall", &[])), 0);
    assert!(names(&world.path("login")).is_empty());
}

#[test]
fn what_is_not_settings_is_left_as_it_is_and_said() {
    let world = World::new();
    for (old, words) in [
        ("", "not JSON"),
        ("{\"a\": 1,}", "not JSON"),
        ("[]", "not an object"),
        ("{\"hooks\": []}", "not an object"),
        ("{\"hooks\": {\"SessionStart\": 1}}", "not an array"),
        ("{\"hooks\": {}, \"hooks\": {}}", "given twice"),
        ("\u{feff}", "not JSON"),
    ] {
        fs::write(settings(&world), old).expect("settings");
        let output = on(&world, "install", &["--json"]);
        assert_eq!(code(&output), 1, "{old}: {output:?}");
        let error = &json_of(&output)["error"];
        assert!(error["message"].as_str().is_some_and(|it| it.contains(words)) && error["next"].is_string(), "{error}");
        assert_eq!(fs::read_to_string(settings(&world)).expect("settings"), old);
    }
    fs::write(settings(&world), b"{\"a\": \"\xff\"}").expect("settings");
    assert!(stderr(&on(&world, "install", &[])).contains("UTF-8"));
    fs::write(settings(&world), "{}").expect("settings");
    assert_eq!(code(&on(&world, "install", &["--agent", "a"])), 0);
    let other = on(&world, "install", &["--agent", "b"]);
    assert!(code(&other) == 1 && stderr(&other).contains("hook uninstall"), "{other:?}");
    let mut command = throughline(&world);
    let none = run(command.args(["hook", "install", "--config-dir"]).arg(world.path("none")));
    assert!(code(&none) == 1 && stderr(&none).contains("no folder"), "{none:?}");
    let mut command = throughline(&world);
    let program =
        run(command.args(["hook", "install", "--program", "/bin/sh", "--config-dir"]).arg(world.path("login")));
    assert!(code(&program) == 1 && stderr(&program).contains("not called throughline"), "{program:?}");
    for bad in [&["--agent", "a.b"][..], &["--events", "a b"], &["--events", ""]] {
        assert_eq!(code(&on(&world, "install", bad)), 2, "{bad:?}");
    }
}

#[test]
fn a_link_to_settings_stays_a_link() {
    let world = World::new();
    fs::create_dir(world.path("dotfiles")).expect("a folder");
    let target = world.path("dotfiles/claude.json");
    fs::write(&target, "{}").expect("settings");
    symlink("../dotfiles/claude.json", settings(&world)).expect("a link");
    assert_eq!(code(&on(&world, "install", &[])), 0);
    assert!(fs::symlink_metadata(settings(&world)).expect("a link").is_symlink());
    assert!(fs::read_to_string(&target).expect("settings").contains("hook claude"));
    assert_eq!(
        (names(&world.path("login")), names(&world.path("dotfiles"))),
        (vec!["settings.json".into()], vec!["claude.json".into()])
    );
    assert_eq!(code(&on(&world, "uninstall", &[])), 0);
    assert_eq!(fs::read_to_string(&target).expect("settings"), "{}");
}

#[test]
fn settings_that_may_not_be_written_are_refused() {
    let world = World::new();
    fs::write(settings(&world), "{}").expect("settings");
    let nobody = |login: u32, file: u32| {
        fs::set_permissions(settings(&world), fs::Permissions::from_mode(file)).expect("a mode");
        fs::set_permissions(world.path("login"), fs::Permissions::from_mode(login)).expect("a mode");
        fs::set_permissions(world.path("."), fs::Permissions::from_mode(0o755)).expect("a mode");
        let program = world.path("throughline");
        fs::copy(env!("CARGO_BIN_EXE_throughline"), &program).expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
        let mut command = std::process::Command::new(&program);
        command.env_clear().current_dir("/").args(["hook", "install", "--config-dir"]).arg(world.path("login"));
        if rustix::process::geteuid().is_root() {
            // For root nothing is read-only: another user it is, in whose folder and with whose file.
            std::os::unix::fs::chown(world.path("login"), Some(65_534), None).expect("an owner");
            std::os::unix::fs::chown(settings(&world), Some(65_534), Some(65_534)).expect("an owner");
            std::os::unix::process::CommandExt::uid(&mut command, 65_534);
            std::os::unix::process::CommandExt::gid(&mut command, 65_534);
        }
        let output = run(&mut command);
        fs::set_permissions(world.path("login"), fs::Permissions::from_mode(0o755)).expect("a mode");
        output
    };
    for (login, file) in [(0o755, 0o444), (0o555, 0o644)] {
        let output = nobody(login, file);
        assert_eq!(code(&output), 1, "{output:?}");
        assert!(stderr(&output).contains("; "), "a next step: {output:?}");
        assert_eq!(fs::read_to_string(settings(&world)).expect("settings"), "{}");
        assert_eq!(names(&world.path("login")), ["settings.json"]);
    }
    assert_eq!(code(&nobody(0o755, 0o644)), 0);
}

#[test]
fn an_install_that_is_killed_leaves_the_old_settings_or_the_new_ones() {
    let world = World::new();
    let old = format!("{{\n  \"pad\": \"{}\"\n}}\n", "x".repeat(1 << 20));
    fs::write(settings(&world), &old).expect("settings");
    assert_eq!(code(&on(&world, "install", &[])), 0);
    let new = fs::read_to_string(settings(&world)).expect("settings");
    let (mut killed, mut kept) = (0, 0);
    for round in 0..60_u64 {
        fs::write(settings(&world), &old).expect("settings");
        let mut command = throughline(&world);
        command.args(["hook", "install", "--config-dir"]).arg(world.path("login"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_micros(500 * round));
        child.kill().expect("a kill");
        killed += usize::from(!child.wait().expect("an end").success());
        let found = fs::read_to_string(settings(&world)).expect("settings");
        assert!(found == old || found == new, "round {round}: {} bytes", found.len());
        kept += usize::from(found == old);
    }
    assert!(killed > 0 && kept > 0, "no kill came in time");
    // What a crash left beside it is in nobody's way.
    fs::write(world.path("login/.settings.json.throughline-0"), "half").expect("a file");
    fs::write(settings(&world), &old).expect("settings");
    assert_eq!(code(&on(&world, "install", &[])), 0);
    assert_eq!(fs::read_to_string(settings(&world)).expect("settings"), new);
}

#[test]
fn of_two_installs_at_once_none_is_lost_and_none_is_twice() {
    for old in [None, Some("{\"a\": 1}")] {
        let world = World::new();
        if let Some(old) = old {
            fs::write(settings(&world), old).expect("settings");
        }
        let start = |events: &str| {
            let mut command = throughline(&world);
            command.args(["hook", "install", "--events", events, "--config-dir"]).arg(world.path("login"));
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
        };
        let events = ["Stop", "SessionStart", "SessionEnd", "Stop", "PreCompact", "SessionStart"];
        let children = events.map(start);
        for child in children {
            let output = child.wait_with_output().expect("an end");
            assert_eq!(code(&output), 0, "{output:?}");
        }
        for event in events {
            assert_eq!(commands(&world, event).len(), 1, "{event}");
        }
        assert_eq!(names(&world.path("login")), ["settings.json"]);
    }
}
