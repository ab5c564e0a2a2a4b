//! `spawn` with a pretended agent: what the preflight said is what is launched, and the log tells it as it was.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::{code, json_of, run, stderr, stdout};
use crate::stage::Stage;
use crate::support::{A, B, transcript};

#[test]
fn a_new_conversation_gets_an_id_of_our_choice_and_the_next_spawn_continues_it() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    assert_eq!(
        stage.kinds(),
        [
            "lease_taken",
            "agent_declared",
            "spawned",
            "launched",
            "session_reported",
            "turn_confirmed",
            "chain_head_moved",
            "segment_ended",
            "outcome_observed",
            "lease_ended"
        ]
    );
    assert_eq!(stage.head()["session"], session.as_str());
    let file = stage.world.file("login", "work", &session);
    assert_eq!(stage.head()["path"], file.to_str().expect("a path"));
    let verdict = stage.preflight("login", &["--session", &session]);
    assert_eq!((&verdict["verdict"], &verdict["confidence"]), (&"resume".into(), &"proven".into()));
    assert_eq!(stage.spawned("login", &["--session", &session]), session);
    let text = fs::read_to_string(file).expect("the session");
    assert_eq!(text.lines().count(), 4, "two turns in one file");
    assert!(stage.argv()[1].ends_with(&format!("--resume {session}")), "{:?}", stage.argv());
}

#[test]
fn a_session_of_another_login_of_the_same_identity_is_forked_by_its_path_and_stays_as_it_is() {
    let stage = Stage::new();
    let old = stage.spawned("login", &[]);
    stage.second_login();
    let original = stage.world.file("login", "work", &old);
    let before = fs::read(&original).expect("the session");
    let foretold = stage.preflight("second", &["--session", &old]);
    assert_eq!((&foretold["route"], &foretold["means"]), (&"relocate".into(), &"by_path".into()), "{foretold}");
    let new = stage.spawned("second", &["--session", &old]);
    assert_ne!(new, old);
    assert_eq!(fs::read(&original).expect("the session"), before);
    let copy = fs::read_to_string(stage.world.file("second", "work", &new)).expect("the fork");
    assert!(copy.starts_with(std::str::from_utf8(&before).expect("text")) && copy.len() > before.len());
    assert_eq!(stage.head()["session"], new.as_str());
}

#[test]
fn by_copy_does_the_same_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let old = stage.spawned("login", &[]);
    stage.second_login();
    let original = stage.world.file("login", "work", &old);
    let before = fs::read(&original).expect("the session");
    let foretold = stage.preflight("second", &["--session", &old, "--means", "by_copy"]);
    assert_eq!(foretold["means"], "by_copy", "{foretold}");
    let new = stage.spawned("second", &["--session", &old, "--means", "by_copy"]);
    assert_eq!(fs::read(&original).expect("the session"), before);
    let dir = stage.world.file("second", "work", &new);
    let names: Vec<String> = fs::read_dir(dir.parent().expect("a folder"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    assert_eq!(names, [format!("{new}.jsonl")], "the copy and its marker are gone");
    let kinds = stage.kinds();
    for kind in ["relocation_intended", "relocated", "fork_reported", "settle_intended", "copy_removed"] {
        assert_eq!(kinds.iter().filter(|it| *it == kind).count(), 1, "{kind}: {kinds:?}");
    }
}

#[test]
fn a_receipt_binds_the_spawn_and_what_moved_meanwhile_is_drift() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    let receipt = stage.world.path("receipt.json");
    let given = || fs::write(&receipt, stage.preflight("login", &["--session", &session]).to_string()).expect("a file");
    given();
    let path = receipt.to_str().expect("a path");
    let more = ["--session", session.as_str(), "--receipt", path];
    let launches = stage.argv().len();
    // The file is gone: another plan.
    let file = stage.world.file("login", "work", &session);
    let bytes = fs::read(&file).expect("the session");
    fs::remove_file(&file).expect("gone");
    let (output, report) = stage.spawn("login", &more);
    assert_eq!((code(&output), report), (15, None), "{output:?}");
    fs::write(&file, bytes).expect("back");
    // The log moved, by that very try.
    let (output, _) = stage.spawn("login", &more);
    assert_eq!(code(&output), 15, "{output:?}");
    assert_eq!(stage.argv().len(), launches, "nothing was started");
    given();
    assert_eq!(stage.spawned("login", &more), session);
}

#[test]
fn a_refused_session_is_remembered_and_a_new_conversation_follows_unless_a_receipt_says_stop() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    fs::write(stage.world.path("refuses"), "").expect("a flag");
    let receipt = stage.world.path("receipt.json");
    fs::write(&receipt, stage.preflight("login", &["--session", &session]).to_string()).expect("a file");
    let path = receipt.to_str().expect("a path");
    let (output, report) = stage.spawn("login", &["--session", &session, "--receipt", path]);
    let report = report.expect("a report");
    assert_eq!((code(&output), report["attempts"].as_array().map(Vec::len)), (1, Some(1)), "{report}");
    assert!(report["attempts"][0]["refused"].as_str().is_some_and(|why| why.starts_with("No conversation")));
    assert_eq!(
        stage.preflight("login", &["--session", &session])["verdict"],
        "fresh",
        "the same would be refused again"
    );
    assert_eq!(stage.head()["session"], session.as_str(), "the head stays");
    // Something of the file changed: it is worth a try again, and then a new conversation.
    let mut text = fs::read_to_string(stage.world.file("login", "work", &session)).expect("the session");
    text.push_str("{\"type\":\"system\"}\n");
    fs::write(stage.world.file("login", "work", &session), text).expect("the session");
    let (output, report) = stage.spawn("login", &["--session", &session]);
    let report = report.expect("a report");
    let words: Vec<&str> =
        report["attempts"].as_array().expect("attempts").iter().filter_map(|it| it["actual"].as_str()).collect();
    assert_eq!((code(&output), words), (0, vec!["unknown", "fresh"]), "{report}");
}

#[test]
fn without_a_chain_a_refused_session_is_recovered_once() {
    let stage = Stage::new();
    stage.world.session("login", "work", B, 3);
    let file = stage.world.file("login", "work", A);
    stage.world.write(&file, transcript(A, 1));
    // It is there when the preflight looks, and the agent refuses it: it refuses everything until it did once.
    fs::write(stage.world.path("refuses"), "").expect("a flag");
    let (_, report) = stage.spawn("login", &["--session", A]);
    let report = report.expect("a report");
    let attempts = report["attempts"].as_array().expect("attempts");
    let sessions: Vec<&Value> = attempts.iter().map(|it| &it["expected"]["session_id"]).collect();
    assert_eq!(sessions, [&Value::from(A), &Value::from(B), &Value::Null], "{report}");
}

#[test]
fn the_child_ends_with_its_own_code_and_its_streams_are_ours() {
    let stage = Stage::new();
    fs::write(stage.world.path("code"), "7").expect("a code");
    let (output, report) = stage.spawn("login", &[]);
    assert_eq!(code(&output), 7);
    assert_eq!(report.expect("a report")["code"], 7);
    let lines = stdout(&output);
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
}

#[test]
fn a_program_that_is_not_there_changes_nothing() {
    let stage = Stage::new();
    let mut command = stage.throughline(&[]);
    command.args(stage.question("spawn", "login", &["--", "/no/such/agent"]));
    let output = run(&mut command);
    assert_eq!(code(&output), 1, "{output:?}");
    assert!(stderr(&output).contains("could not be started"), "{output:?}");
    assert_eq!(stage.kinds().iter().filter(|kind| *kind == "launch_failed").count(), 1);
    assert_eq!(stage.preflight("login", &[])["verdict"], "fresh");
}

#[test]
fn a_second_driver_is_told_that_the_agent_is_busy_until_the_first_and_its_child_are_gone() {
    let stage = Stage::new();
    let wait = stage.world.path("wait");
    run(Command::new("mkfifo").arg(&wait));
    let agent = stage.agent();
    let mut first = stage.throughline(&[]);
    first.args(stage.question("spawn", "login", &["--"])).arg(&agent).args(["-p", "hi"]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a driver");
    while stage.launched().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (output, _) = stage.spawn("login", &[]);
    assert_eq!(code(&output), 12, "{output:?}");
    assert_eq!(stage.preflight("login", &[])["verdict"], "busy");
    // The driver dies; what it launched lives on.
    first.kill().expect("a signal");
    first.wait().expect("an end");
    let (output, _) = stage.spawn("login", &[]);
    assert_eq!(code(&output), 12, "{output:?}");
    assert!(stderr(&output).contains("still runs"), "{output:?}");
    // It answers, and ends. Nobody heard it, but its file says what it did: the id was ours.
    fs::write(&wait, "go").expect("a word");
    fs::remove_file(&wait).expect("gone");
    let verdict = loop {
        let verdict = stage.preflight("login", &[]);
        if verdict["verdict"] != "busy" {
            break verdict;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let session = verdict["conversation_at"]["session"].as_str().expect("where it is").to_owned();
    assert_eq!(stage.spawned("login", &["--session", &session]), session);
    let kinds = stage.kinds();
    assert!(kinds.iter().filter(|kind| *kind == "segment_ended").count() == 2, "{kinds:?}");
}

#[test]
fn a_copy_that_a_killed_driver_left_counts_as_absent_and_the_next_to_come_removes_it() {
    for sweeps in [false, true] {
        let stage = Stage::new();
        let old = stage.spawned("login", &[]);
        stage.second_login();
        let original = fs::read(stage.world.file("login", "work", &old)).expect("the session");
        let wait = stage.world.path("wait");
        run(Command::new("mkfifo").arg(&wait));
        let more = ["--session", &old, "--means", "by_copy", "--"];
        let mut driver = stage.throughline(&[]);
        driver.args(stage.question("spawn", "second", &more)).arg(stage.agent()).args(["-p", "hi"]);
        let before = stage.launched();
        let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a driver");
        let child = loop {
            match stage.launched() {
                Some(pid) if Some(&pid) != before.as_ref() => break pid,
                _ => std::thread::sleep(std::time::Duration::from_millis(20)),
            }
        };
        driver.kill().expect("a signal");
        driver.wait().expect("an end");
        run(Command::new("kill").args(["-9", &child]));
        let copy = stage.world.file("second", "work", &old);
        assert!(fs::metadata(&copy).is_ok(), "the copy is there");
        let foretold = loop {
            let foretold = stage.preflight("second", &more[..4]);
            if foretold["verdict"] != "busy" {
                break foretold;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        assert_eq!((&foretold["verdict"], &foretold["means"]), (&"resume".into(), &"by_copy".into()), "{foretold}");
        assert!(foretold["findings"].to_string().contains("leftover"), "{foretold}");
        fs::remove_file(&wait).expect("gone");
        if sweeps {
            let dry = run(&mut stage.throughline(&["--json", "sweep", "--agent", "a", "--dry-run"]));
            assert_eq!(json_of(&dry)["agents"][0]["removes"][0], copy.to_str().expect("a path"));
            assert!(fs::metadata(&copy).is_ok(), "nothing was done");
            let swept = run(&mut stage.throughline(&["--json", "sweep", "--all"]));
            assert_eq!(json_of(&swept)["agents"][0]["removed"].as_array().map(Vec::len), Some(1), "{swept:?}");
            let again = run(&mut stage.throughline(&["--json", "reconcile", "--agent", "a"]));
            assert_eq!(json_of(&again)["agents"][0]["done"], false, "twice is once");
            assert!(fs::metadata(&copy).is_err());
        }
        let new = stage.spawned("second", &more[..4]);
        assert_ne!(new, old);
        assert!(fs::metadata(&copy).is_err());
        assert_eq!(fs::read(stage.world.file("login", "work", &old)).expect("the session"), original);
    }
}

#[test]
fn a_report_that_could_not_be_written_is_said_before_anything_is_started() {
    let stage = Stage::new();
    let there = stage.world.path("agent");
    for report in ["/no/such/folder/report.json", there.to_str().expect("a path")] {
        let mut command = stage.throughline(&[]);
        command.args(stage.question("spawn", "login", &["--report", report, "--"])).arg(stage.agent());
        let output = run(&mut command);
        assert_eq!(code(&output), 1, "{output:?}");
        assert!(stderr(&output).contains("nothing was started"), "{output:?}");
    }
    assert!(stage.argv().is_empty());
}

#[test]
fn a_program_is_meant_from_where_it_is_named() {
    let stage = Stage::new();
    let mut command = stage.throughline(&[]);
    command.args(stage.question("spawn", "login", &["--", "./agent", "-p", "hi"])).current_dir(stage.world.path(""));
    assert_eq!(code(&run(&mut command)), 0);
    assert_eq!(stage.argv().len(), 1);
}

#[test]
fn a_signal_that_is_sent_to_the_driver_reaches_the_agent_and_its_end_is_written_down() {
    let stage = Stage::new();
    let agent = stage.world.path("trapped");
    let script = "#!/bin/sh\ntrap 'exit 9' TERM\necho up > \"$HOME/up\"\nsleep 60 &\nwait\n";
    fs::write(&agent, script).expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&agent, mode).expect("a mode");
    let mut driver = stage.throughline(&[]);
    driver.args(stage.question("spawn", "login", &["--"])).arg(&agent);
    let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a driver");
    while fs::metadata(stage.world.path("up")).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    run(Command::new("kill").args(["-TERM", &driver.id().to_string()]));
    assert_eq!(driver.wait().expect("an end").code(), Some(9));
    let kinds = stage.kinds();
    assert_eq!(&kinds[kinds.len() - 3..], ["segment_ended", "outcome_observed", "lease_ended"], "{kinds:?}");
}
