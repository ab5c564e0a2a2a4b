//! The command as a process: exit codes, words, JSON, the observed corpus, hand-written histories, bad input.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{self, A, B, World, transcript};

const ID: &str = "11111111-1111-4111-8111-111111111111";

/// The command, with nothing of this machine's surroundings.
pub(crate) fn throughline(world: &World) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.env_clear().env("HOME", world.path("home")).env("THROUGHLINE_LOG", world.path("log.db"));
    command.current_dir(world.path("work"));
    command
}

pub(crate) fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("the command runs")
}

pub(crate) fn run_with(command: &mut Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("stdin").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("no signal")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

pub(crate) fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn ask(world: &World, more: &[&str]) -> Output {
    let login = world.path("login");
    let mut command = throughline(world);
    command.args(["preflight", "--json", "--provider", "claude", "--config-dir"]).arg(login).arg("--cwd");
    run(command.arg(world.path("work")).args(more))
}

fn unbase64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|&byte| byte != b'=') {
        let digit = ALPHABET.iter().position(|&letter| letter == byte).expect("base64");
        bits = (bits << 6) | u32::try_from(digit).expect("six bits");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).expect("eight bits"));
        }
    }
    bytes
}

fn corpus(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/claude").join(name);
    std::fs::read_to_string(path).expect("the corpus")
}

fn put(path: &Path, content: &Value, contents: &Value) {
    let parent = path.parent().expect("a parent");
    std::fs::create_dir_all(parent).expect("folders");
    match content["kind"].as_str() {
        None => {}
        Some("file") => std::fs::write(path, unbase64(content["base64"].as_str().expect("text"))).expect("a file"),
        Some("directory") => std::fs::create_dir(path).expect("a directory"),
        Some("dangling_symlink") => std::os::unix::fs::symlink("/nowhere/at/all", path).expect("a link"),
        Some("symlink_to") => {
            let target = parent.parent().and_then(Path::parent).expect("the login").join("linked.jsonl");
            put(&target, &contents[content["content"].as_str().expect("a name")], contents);
            std::os::unix::fs::symlink(target, path).expect("a link");
        }
        Some(other) => panic!("content kind {other}"),
    }
}

/// What an observed outcome is as a verdict.
fn verdict_of(outcome: &str) -> &'static str {
    match outcome {
        "resumed" | "partial" => "resume",
        "refused" | "empty" => "fresh",
        other => panic!("outcome {other}"),
    }
}

#[test]
fn every_content_of_the_corpus_gets_the_observed_answer() {
    let mut rows = 0;
    for line in corpus("content.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("a row");
        let world = World::new();
        let path = world.file("login", "work", ID);
        put(&path, &row["content"], &Value::Null);
        for (flag, outcome) in [(None, &row["plain"]), (Some("--fork"), &row["fork"])] {
            let outcome = outcome.as_str().expect("an outcome");
            let more: Vec<&str> = ["--session", ID, "--exit-zero"].into_iter().chain(flag).collect();
            let output = ask(&world, &more);
            let answer = json_of(&output);
            assert_eq!(code(&output), 0);
            assert_eq!(answer["verdict"], verdict_of(outcome), "{} {flag:?}: {answer:#}", row["case"]);
            if verdict_of(outcome) == "resume" {
                assert_eq!(answer["transcript"]["path"], json!(path), "{}", row["case"]);
            }
            let findings = answer["findings"].as_array().expect("findings");
            let found =
                |codes: &[&str]| findings.iter().any(|it| codes.contains(&it["code"].as_str().expect("a code")));
            match outcome {
                "partial" => assert!(
                    found(&["partial_history", "torn_tail", "unanswered_turn", "nul_run", "missing_parents"]),
                    "{answer:#}"
                ),
                "resumed" => assert!(!found(&["partial_history", "unanswered_turn"]), "{answer:#}"),
                _ => assert!(!findings.is_empty(), "{answer:#}"),
            }
        }
        rows += 1;
    }
    assert_eq!(rows, 46);
}

#[test]
fn every_world_of_the_corpus_gets_the_observed_answer() {
    let contents: Value = serde_json::from_str(&corpus("contents.json")).expect("contents");
    let mut rows = 0;
    for line in corpus("worlds.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("a row");
        let world = World::new();
        let own = world.file("login", "work", ID);
        let dir_of = |name: &str| match name {
            "own" => own.parent().expect("a folder").to_owned(),
            other => world.path("login/projects").join(other),
        };
        for (dir, state) in row["states"].as_object().expect("states") {
            put(&dir_of(dir).join(format!("{ID}.jsonl")), &contents[state.as_str().expect("a name")], &contents);
        }
        let mut more = vec!["--session", ID, "--exit-zero"];
        if row["fork"] == true {
            more.push("--fork");
        }
        let answer = json_of(&ask(&world, &more));
        let observed = &row["observed"];
        let outcome = observed["outcome"].as_str().expect("an outcome");
        assert_eq!(answer["verdict"], verdict_of(outcome), "world {}: {answer:#}", row["id"]);
        if verdict_of(outcome) == "resume" {
            let from = dir_of(observed["history_from"].as_str().expect("a folder")).join(format!("{ID}.jsonl"));
            assert_eq!(answer["transcript"]["path"], json!(from), "world {}", row["id"]);
            let writes = &answer["transcript"]["writes_to"];
            assert_eq!(writes["dir"], json!(dir_of(observed["writes"]["dir"].as_str().expect("a folder"))));
            assert_eq!(writes["file"].is_null(), observed["writes"]["file"] == "new", "world {}", row["id"]);
        }
        rows += 1;
    }
    assert_eq!(rows, 60);
}

fn lines_of(world: &World, sessions: &[&str]) -> String {
    let events = world.chain(sessions);
    let line =
        |(kind, body): &(&str, Value)| json!({"stream": "agent/a", "kind": kind, "body": body}).to_string() + "\n";
    events.iter().map(line).collect()
}

#[test]
fn a_stale_id_that_still_exists_is_redirected_by_a_hand_written_history() {
    let world = World::new();
    for id in [A, B] {
        world.session("login", "work", id, 2);
    }
    let imported = run_with(throughline(&world).args(["import", "--unverified", "-"]), &lines_of(&world, &[A, B]));
    assert_eq!(code(&imported), 0, "{imported:?}");
    let output = ask(&world, &["--agent", "a", "--session", A]);
    let answer = json_of(&output);
    assert_eq!((code(&output), &answer["verdict"], &answer["session_id"]), (0, &json!("resume"), &json!(B)));
    assert_eq!((&answer["route"], &answer["schema"]), (&json!("redirect"), &json!(1)));
    assert_eq!(answer["basis"]["streams"][0]["stream"], "agent/a");
    assert_eq!(answer["basis"]["streams"][0]["version"], 10);
    let answer = json_of(&ask(&world, &["--session", A]));
    assert_eq!((&answer["verdict"], &answer["session_id"]), (&json!("resume"), &json!(A)));
    assert_eq!(answer["confidence"], "inferred");
    assert_eq!(answer["basis"]["streams"], Value::Null);
}

#[test]
fn each_verdict_has_its_exit_code() {
    let world = World::new();
    assert_eq!(code(&ask(&world, &["--session", A])), 11, "fresh");
    world.session("login", "work", B, 2);
    assert_eq!(code(&ask(&world, &["--session", B])), 0, "resume");
    assert_eq!(code(&ask(&world, &["--session", A])), 10, "recover");
    assert_eq!(code(&ask(&world, &["--session", B, "--resume-flag", ""])), 14, "unknown");
    let own = support::own();
    let entry = json!({"pid": own.pid, "sessionId": B, "procStart": own.started.to_string()}).to_string();
    world.write(&world.path("login/sessions/1.json"), entry);
    assert_eq!(code(&ask(&world, &["--session", B])), 12, "busy");
    assert_eq!(code(&ask(&world, &["--session", B, "--exit-zero"])), 0);
}

#[test]
fn usage_errors_are_2_and_json_where_json_was_asked_for() {
    let world = World::new();
    for arguments in [vec!["no-such-command"], vec!["preflight", "--no-such-flag"], vec!["preflight", "--agent", "a.b"]]
    {
        let output = run(throughline(&world).args(&arguments));
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(!stderr(&output).is_empty());
        let output = run(throughline(&world).args(&arguments).arg("--json"));
        assert_eq!((code(&output), &json_of(&output)["error"]["class"]), (2, &json!("usage")), "{arguments:?}");
    }
}

#[test]
fn errors_are_one_sentence_with_a_next_step() {
    let world = World::new();
    for (arguments, expected) in [(vec!["verify"], 1), (vec!["anchor"], 1), (vec!["log"], 1), (vec!["export"], 1)] {
        let output = run(throughline(&world).args(&arguments));
        assert_eq!(code(&output), expected, "{arguments:?}");
        assert_eq!(stderr(&output).trim_end().lines().count(), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains("; "), "{}", stderr(&output));
        assert!(!world.path("log.db").exists(), "a reader never creates a log");
    }
}

#[test]
fn what_is_not_a_log_is_65_and_stays_as_it_is() {
    let world = World::new();
    let log = world.path("log.db");
    for bytes in [&b"not a database"[..], b"", &[0; 5000]] {
        std::fs::write(&log, bytes).expect("a file");
        for arguments in
            [vec!["verify"], vec!["log"], vec!["anchor"], vec!["preflight", "--agent", "a", "--session", A]]
        {
            let output = run(throughline(&world).args(&arguments));
            assert_eq!(code(&output), 65, "{arguments:?} on {} bytes: {output:?}", bytes.len());
        }
        assert_eq!(std::fs::read(&log).expect("it is there"), bytes);
    }
}

#[test]
fn an_agentless_question_works_beside_a_broken_log() {
    let world = World::new();
    std::fs::write(world.path("log.db"), "not a database").expect("a file");
    world.session("login", "work", A, 2);
    assert_eq!(code(&ask(&world, &["--session", A])), 0);
}

#[test]
fn a_history_survives_export_and_import_and_an_edit_does_not() {
    let world = World::new();
    run_with(throughline(&world).args(["import", "--unverified", "-"]), &lines_of(&world, &[A, B]));
    let anchor = stdout(&run(throughline(&world).arg("anchor")));
    let exported = stdout(&run(throughline(&world).arg("export")));
    assert_eq!(exported.lines().count(), 11);
    let header: Value = serde_json::from_str(exported.lines().next().expect("a header")).expect("JSON");
    assert_eq!((&header["throughline"], &header["from_seq"]), (&json!(1), &json!(1)));
    let copy = world.path("copy.db");
    let copied = run_with(throughline(&world).arg("--log").arg(&copy).args(["import", "-"]), &exported);
    assert_eq!(code(&copied), 0, "{copied:?}");
    assert_eq!(stdout(&run(throughline(&world).arg("--log").arg(&copy).arg("anchor"))), anchor);
    assert_eq!(code(&run(throughline(&world).arg("verify").arg("--anchor").arg(anchor.trim()))), 0);
    let edited = exported.replacen(B, A, 1);
    let refused = run_with(throughline(&world).arg("--log").arg(world.path("x.db")).args(["import", "-"]), &edited);
    assert_eq!(code(&refused), 65, "{refused:?}");
    let new =
        run_with(throughline(&world).arg("--log").arg(world.path("n.db")).args(["import", "--as-new", "-"]), &exported);
    assert_eq!(code(&new), 0, "{new:?}");
    assert_ne!(stdout(&run(throughline(&world).arg("--log").arg(world.path("n.db")).arg("anchor"))), anchor);
}

#[test]
fn a_bad_line_imports_nothing() {
    let world = World::new();
    let mut lines = lines_of(&world, &[A]);
    lines.push_str(
        "{\"stream\":\"agent/a\",\"kind\":\"turn_confirmed\",\"body\":{\"segment\":\"nobody\",\"session\":\"x\"}}\n",
    );
    let output = run_with(throughline(&world).args(["import", "--unverified", "-"]), &lines);
    assert_ne!(code(&output), 0);
    assert!(stderr(&output).contains("line 6"), "{}", stderr(&output));
    assert_eq!(stdout(&run(throughline(&world).arg("log"))), "");
}

#[test]
fn append_is_fenced_and_conditional() {
    let world = World::new();
    let line = |kind: &str, body: Value| json!({"stream": "agent/a", "kind": kind, "body": body}).to_string() + "\n";
    let taken = line("lease_taken", json!({"epoch": 1, "holder": support::own()}));
    assert_eq!(code(&run_with(throughline(&world).args(["append", "--expect", "agent/a=0"]), &taken)), 0);
    let again = run_with(throughline(&world).args(["append", "--expect", "agent/a=0"]), &taken);
    assert_eq!(code(&again), 1, "{again:?}");
    let stale = line("session_bound", json!({"session": A}));
    let output = run_with(throughline(&world).args(["append", "--json"]), &stale);
    assert_eq!((code(&output), &json_of(&output)["error"]["class"]), (1, &json!("refused")), "{output:?}");
    assert!(stderr(&output).contains("epoch 0"), "{}", stderr(&output));
    let key = ["append", "--key", "k"];
    let fresh = line("fresh_intended", json!({}));
    let (first, second) =
        (run_with(throughline(&world).args(key), &fresh), run_with(throughline(&world).args(key), &fresh));
    assert_eq!((code(&first), code(&second)), (0, 0));
    assert_eq!(stderr(&first), stderr(&second), "a repeated append returns the first one's result");
    let other = run_with(throughline(&world).args(key), &line("agent_declared", json!({"provider": "claude"})));
    assert_eq!(code(&other), 1, "the same key for something else");
}

#[test]
fn bind_adopts_a_conversation_and_a_stale_id_is_redirected_to_it() {
    let world = World::new();
    for id in [A, B] {
        world.session("login", "work", id, 2);
    }
    let bind = |session: &str, more: &[&str]| {
        let mut command = throughline(&world);
        command.args(["bind", "--agent", "a", "--session", session, "--config-dir"]).arg(world.path("login"));
        run(command.args(more))
    };
    let plan = bind(B, &["--dry-run"]);
    assert_eq!(stdout(&plan).lines().count(), 5, "{plan:?}");
    assert!(!world.path("log.db").exists(), "a dry run writes nothing");
    assert_eq!(code(&bind(B, &[])), 0);
    let answer = json_of(&ask(&world, &["--agent", "a", "--session", A]));
    assert_eq!(
        (&answer["session_id"], &answer["route"], &answer["confidence"]),
        (&json!(B), &json!("redirect"), &json!("proven"))
    );
    assert_eq!(code(&bind(B, &[])), 0, "again: nothing to do");
    assert_eq!(code(&bind(A, &[])), 1, "the head is elsewhere");
    assert_eq!(code(&bind(A, &["--replace"])), 0);
    assert_eq!(code(&bind("cccccccc-0000-4000-8000-00000000000c", &["--replace"])), 1, "no such session");
    assert_eq!(code(&run(throughline(&world).arg("verify"))), 0);
    let shown = json_of(&run(throughline(&world).args(["show", "--agent", "a", "--json"])));
    assert_eq!(shown["state"]["head"]["at"]["session"], A);
}

#[test]
fn a_recorded_verdict_stands_in_the_audit_stream_and_moves_no_frontier() {
    let world = World::new();
    world.session("login", "work", A, 2);
    run_with(throughline(&world).args(["import", "--unverified", "-"]), &lines_of(&world, &[A]));
    let first = json_of(&ask(&world, &["--agent", "a", "--session", A, "--record"]));
    let second = json_of(&ask(&world, &["--agent", "a", "--session", A]));
    assert_eq!(first["basis"], second["basis"]);
    let log = stdout(&run(throughline(&world).args(["log", "--kind", "verdict_given"])));
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[test]
fn the_log_is_listed_forwards_backwards_and_in_part() {
    let world = World::new();
    run_with(throughline(&world).args(["import", "--unverified", "-"]), &lines_of(&world, &[A, B]));
    let seqs = |more: &[&str]| {
        let text = stdout(&run(throughline(&world).arg("log").args(more)));
        text.lines().map(|line| line.split_whitespace().next().expect("a seq").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seqs(&[]).len(), 10);
    assert_eq!(seqs(&["-n", "2"]), ["9", "10"]);
    assert_eq!(seqs(&["-n", "2", "--reversed"]), ["10", "9"]);
    assert_eq!(seqs(&["--kind", "spawned"]), ["1", "6"]);
    assert_eq!(seqs(&["--agent", "nobody"]), [""; 0]);
    let shown = stdout(&run(throughline(&world).args(["show", "4"])));
    assert!(shown.contains("chain_head_moved") && shown.contains("stream chain"), "{shown}");
    assert_eq!(code(&run(throughline(&world).args(["show", "11"]))), 1);
}

#[test]
fn a_removed_last_event_is_told_against_an_anchor() {
    let world = World::new();
    run_with(throughline(&world).args(["import", "--unverified", "-"]), &lines_of(&world, &[A, B]));
    let anchor = stdout(&run(throughline(&world).arg("anchor")));
    let raw = rusqlite::Connection::open(world.path("log.db")).expect("SQLite");
    let triggers: Vec<String> = {
        let mut statement = raw.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").expect("a query");
        let names = statement.query_map([], |row| row.get(0)).expect("rows");
        names.map(|name| name.expect("a name")).collect()
    };
    assert!(raw.execute("DELETE FROM events WHERE seq = 10", []).is_err(), "a trigger refuses");
    for trigger in triggers {
        raw.execute(&format!("DROP TRIGGER \"{trigger}\""), []).expect("dropped");
    }
    raw.execute("DELETE FROM events WHERE seq = 10", []).expect("removed");
    raw.execute("DELETE FROM memos", []).expect("removed");
    drop(raw);
    let output = run(throughline(&world).args(["verify", "--anchor", anchor.trim()]));
    assert_eq!(code(&output), 65, "{output:?}");
    assert!(stderr(&output).contains("10"), "{}", stderr(&output));
}

#[test]
fn a_path_that_is_not_utf8_is_unknown() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    let bad = std::ffi::OsStr::from_bytes(b"/w/bad\xff");
    for flag in ["--cwd", "--config-dir", "--also"] {
        let output = run(throughline(&world).args(["preflight", "--json", "--session", A, flag]).arg(bad));
        assert_eq!(code(&output), 14, "{flag}: {output:?}");
    }
}

#[test]
fn the_demo_ends_with_0_and_can_be_kept() {
    let world = World::new();
    let output = run(throughline(&world).arg("demo"));
    assert_eq!(code(&output), 0, "{output:?}");
    assert!(stdout(&output).contains("A naive check says: continue"));
    assert!(!world.path("log.db").exists(), "the demo touches nobody's log");
    let kept = world.path("kept");
    assert_eq!(code(&run(throughline(&world).arg("demo").arg("--keep").arg(&kept))), 0);
    assert!(kept.join("stale/log.db").exists());
    assert_eq!(code(&run(throughline(&world).arg("demo").arg("--keep").arg(&kept))), 1, "a folder that is not empty");
    assert_eq!(code(&run(throughline(&world).args(["demo", "--json"]))), 0);
}

#[test]
fn completions_and_the_man_page_name_every_command() {
    let world = World::new();
    let script = stdout(&run(throughline(&world).args(["completions", "bash"])));
    let page = stdout(&run(throughline(&world).arg("man")));
    for command in
        ["preflight", "bind", "log", "show", "follow", "anchor", "verify", "export", "import", "append", "demo"]
    {
        assert!(script.contains(command) && page.contains(command), "{command}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let world = World::new();
    run_with(throughline(&world).args(["import", "--unverified", "-"]), &lines_of(&world, &[A, B]));
    for command in ["log", "export"] {
        let mut child =
            throughline(&world).arg(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((code(&output), stderr(&output)), (0, String::new()), "{command}");
    }
}

/// The whole answer, as a person sees it, with nothing to redact but the world's own folder.
#[test]
fn what_a_person_sees() {
    let world = World::new();
    world.session("login", "work", B, 2);
    let text = transcript(A, 2);
    world.write(&world.file("login", "work", A), &text[..text.len() - 20]);
    run_with(throughline(&world).args(["import", "--unverified", "-"]), &lines_of(&world, &[B]));
    let (root, slug) = (world.text(""), throughline::provider::claude::slug(&world.text("work")));
    let mut seen = String::new();
    for more in [
        vec!["--session", A],
        vec!["--session", "nobody", "-q"],
        vec!["--agent", "a", "--session", A],
        vec!["--agent", "a"],
        vec!["--session", "aaaaaaaa-0000-4000-8000-00000000000d", "--fork"],
    ] {
        let mut command = throughline(&world);
        command.args(["preflight", "--config-dir"]).arg(world.path("login"));
        let output = run(command.args(&more));
        let text = stdout(&output).replace(&root, "/w/").replace(&slug, "SLUG");
        seen.push_str(&format!("$ throughline preflight {}\n{text}exit {}\n\n", more.join(" "), code(&output)));
    }
    insta::assert_snapshot!(seen);
}
