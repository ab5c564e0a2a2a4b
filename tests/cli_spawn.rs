//! `spawn` with a pretended agent: what the preflight said is what is launched, and the log tells it as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::cli::{code, json_of, run, stderr, stdout};
use crate::support::{A, B, World, transcript};

/// An agent that keeps its sessions where Claude Code does, takes the same arguments, and says the same frames.
const AGENT: &str = r#"#!/bin/sh
prev=; resume=; id=; fork=; say=
for a in "$@"; do
    case "$prev" in --resume) resume=$a ;; --session-id) id=$a ;; --output-format) say=$a ;; esac
    [ "$a" = --fork-session ] && fork=1
    prev=$a
done
echo "$@" >> "$HOME/argv"
dir=$CLAUDE_CONFIG_DIR/projects/$(pwd -P | sed 's/[^A-Za-z0-9]/-/g')
mkdir -p "$dir"
case "$resume" in
    "") source= ;;
    /*) source=$resume ;;
    *) source=$dir/$resume.jsonl ;;
esac
if [ -n "$resume" ] && { [ ! -s "$source" ] || [ -e "$HOME/refuses" ]; }; then
    rm -f "$HOME/refuses-once"
    echo "No conversation found with session ID: $resume" >&2
    exit 1
fi
[ -n "$id" ] || id=$resume
file=$dir/$id.jsonl
[ -n "$say" ] && echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$id\"}"
[ -n "$fork" ] && cat "$source" > "$file"
last=$(tail -n 1 "$file" 2>/dev/null | sed -n 's/.*"uuid":"\([^"]*\)".*/"\1"/p')
turn=$(uuidgen 2>/dev/null || cat /proc/sys/kernel/random/uuid)
record() { echo "{\"type\":\"$1\",\"uuid\":\"$turn-$1\",\"parentUuid\":${2:-null},\"isSidechain\":false,\"message\":{\"role\":\"$1\",\"content\":\"x\"}}" >> "$file"; }
record user "$last"
[ -p "$HOME/wait" ] && cat "$HOME/wait" > /dev/null
record assistant "\"$turn-user\""
[ -n "$say" ] && echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"$id\"}"
[ -e "$HOME/code" ] && exit "$(cat "$HOME/code")"
exit 0
"#;

pub struct Stage {
    world: World,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { world: World::new() };
        let agent = stage.agent();
        fs::write(&agent, AGENT).expect("a script");
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("a mode");
        stage.world.identity("login", "one");
        stage
    }

    fn agent(&self) -> PathBuf {
        self.world.path("agent")
    }

    fn throughline(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.world.path("")).env("THROUGHLINE_LOG", self.world.path("log.db"));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn question<'a>(&self, verb: &'a str, login: &str, more: &[&'a str]) -> Vec<String> {
        let (login, work) = (self.world.text(login), self.world.text("work"));
        let mut arguments: Vec<String> =
            [verb, "--agent", "a", "--provider-version", "2.1.332", "--config-dir", &login, "--cwd", &work]
                .iter()
                .map(|it| (*it).to_owned())
                .collect();
        arguments.extend(more.iter().map(|it| (*it).to_owned()));
        arguments
    }

    fn preflight(&self, login: &str, more: &[&str]) -> Value {
        let mut command = self.throughline(&["--json"]);
        json_of(&run(command.args(self.question("preflight", login, more))))
    }

    /// A spawn of the pretended agent, with its report.
    fn spawn(&self, login: &str, more: &[&str]) -> (Output, Option<Value>) {
        let report = self.world.path("report.json");
        let _ = fs::remove_file(&report);
        let agent = self.agent();
        let mut command = self.throughline(&[]);
        command.args(self.question("spawn", login, more)).arg("--report").arg(&report).arg("--").arg(agent);
        let output = run(command.args(["-p", "hi", "--output-format", "stream-json"]));
        let report = fs::read(&report).ok().map(|bytes| serde_json::from_slice(&bytes).expect("a report"));
        (output, report)
    }

    /// A spawn that must work; gives the session that it ended in.
    fn spawned(&self, login: &str, more: &[&str]) -> String {
        let (output, report) = self.spawn(login, more);
        assert_eq!(code(&output), 0, "{output:?}");
        let report = report.expect("a report");
        report["attempts"][0]["session"].as_str().expect("a session").to_owned()
    }

    fn kinds(&self) -> Vec<String> {
        let output = run(&mut self.throughline(&["export"]));
        let lines = stdout(&output);
        let values = lines.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("a line"));
        values.map(|value| value["kind"].as_str().expect("a kind").to_owned()).collect()
    }

    fn head(&self) -> Value {
        let output = run(&mut self.throughline(&["--json", "show", "--agent", "a"]));
        json_of(&output)["state"]["head"]["at"].clone()
    }

    fn argv(&self) -> Vec<String> {
        fs::read_to_string(self.world.path("argv")).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

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
    fs::create_dir(stage.world.path("second")).expect("a folder");
    stage.world.identity("second", "one");
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
    fs::create_dir(stage.world.path("second")).expect("a folder");
    stage.world.identity("second", "one");
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
    let launched = || stage.kinds().iter().any(|kind| kind == "launched");
    while !launched() {
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

/// The pid that the last `launched` event names.
fn launched(stage: &Stage) -> Option<String> {
    let output = run(&mut stage.throughline(&["export"]));
    let lines = stdout(&output);
    let values = lines.lines().skip(1).filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = values.filter(|value| value["kind"] == "launched").last()?;
    last["body"]["pid"].as_u64().map(|pid| pid.to_string())
}

#[test]
fn a_copy_that_a_killed_driver_left_counts_as_absent_and_the_next_to_come_removes_it() {
    for sweeps in [false, true] {
        let stage = Stage::new();
        let old = stage.spawned("login", &[]);
        fs::create_dir(stage.world.path("second")).expect("a folder");
        stage.world.identity("second", "one");
        let original = fs::read(stage.world.file("login", "work", &old)).expect("the session");
        let wait = stage.world.path("wait");
        run(Command::new("mkfifo").arg(&wait));
        let more = ["--session", &old, "--means", "by_copy", "--"];
        let mut driver = stage.throughline(&[]);
        driver.args(stage.question("spawn", "second", &more)).arg(stage.agent()).args(["-p", "hi"]);
        let before = launched(&stage);
        let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a driver");
        let child = loop {
            match launched(&stage) {
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
