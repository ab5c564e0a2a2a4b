//! The holes of the published relocation, each under its own name: the history or the moment that makes it, and what comes
//! of it here. Those that only an order of steps makes (no sync, a crash between two steps, two relocations at once) are
//! explored in `sim.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::{code, json_of, run, run_with, stderr};
use crate::stage::Stage;
use crate::support::{facts, transcript};

/// A conversation in `login`, and a copy of it in `second` that a dead driver left under this stage of its way.
struct Left {
    stage: Stage,
    session: String,
    copy: PathBuf,
    marker: PathBuf,
}

impl Left {
    fn new(visible: bool) -> Self {
        Self::of(visible, "")
    }

    /// Of a source that begins with this.
    fn of(visible: bool, beginning: &str) -> Self {
        let stage = Stage::new();
        let session = stage.spawned("login", &[]);
        stage.second_login();
        let source = stage.world.file("login", "work", &session);
        let text = fs::read_to_string(&source).expect("the session");
        fs::write(&source, format!("{beginning}{text}")).expect("the session");
        let copy = stage.world.file("second", "work", &session);
        let bytes = fs::read(&source).expect("the session");
        stage.world.write(&copy, &bytes);
        let file = facts(copy.to_str().expect("a path"));
        let marker = PathBuf::from(format!("{}.throughline-relocated", copy.display()));
        let digest = blake3_of(&bytes);
        let says = json!({"schema": 1, "owner_uid": "a", "source": source, "bytes": bytes.len(), "digest": digest,
            "token": "t1"});
        fs::write(&marker, says.to_string()).expect("a marker");
        let host = throughline::world::process::host_name();
        let holder = json!({"host": host, "boot": "another boot", "pid": 1, "started": 1, "pid_ns": 1});
        let epoch = stage.state()["lease"]["epoch"].as_u64().expect("an epoch") + 1;
        let mut events = vec![
            ("lease_taken", json!({"epoch": epoch, "holder": holder})),
            (
                "relocation_intended",
                json!({"token": "t1", "session": session, "source": source, "destination": copy, "marker": marker,
                    "file": file, "epoch": epoch}),
            ),
        ];
        if visible {
            let mut whole = file.clone();
            whole["whole"] = json!(digest);
            events.push(("relocated", json!({"token": "t1", "file": whole, "epoch": epoch})));
        }
        stage.append(&events);
        Self { stage, session, copy, marker }
    }

    /// Sweeps agent `a`, and gives what was reported of it.
    fn swept(&self) -> Value {
        let output = run(&mut self.stage.throughline(&["--json", "sweep", "--agent", "a"]));
        assert_eq!(code(&output), 0, "{output:?}");
        json_of(&output)["agents"][0].clone()
    }

    fn is_settled(&self) -> bool {
        self.stage.state()["copies"].as_object().is_some_and(serde_json::Map::is_empty)
    }
}

fn blake3_of(bytes: &[u8]) -> String {
    throughline::id::Digest::plain(bytes).to_string()
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[test]
fn a_leftover_that_is_still_what_was_logged_goes_with_its_marker() {
    for visible in [true, false] {
        let left = Left::new(visible);
        assert_eq!(left.swept()["removed"], json!(["t1"]));
        assert!(!is_there(&left.copy) && !is_there(&left.marker) && left.is_settled());
    }
}

#[test]
fn f1_a_marker_without_its_copy_never_takes_the_file_that_came_there_later() {
    let left = Left::new(false);
    fs::write(&left.copy, transcript(&left.session, 7)).expect("another file");
    let report = left.swept();
    assert_eq!(report["removed"], json!([]), "{report}");
    assert_eq!(fs::read_to_string(&left.copy).expect("it"), transcript(&left.session, 7));
    assert!(!is_there(&left.marker) && left.is_settled());
}

#[test]
fn f3_a_copy_whose_marker_is_gone_is_nobodys_to_remove() {
    let left = Left::new(true);
    fs::remove_file(&left.marker).expect("gone");
    let report = left.swept();
    assert_eq!((&report["removed"], report["left"].as_array().map(Vec::len)), (&json!([]), Some(1)), "{report}");
    assert!(is_there(&left.copy) && left.is_settled());
}

#[test]
fn f4_a_copy_with_somebody_elses_marker_beside_ours_stays() {
    let left = Left::new(true);
    let other = PathBuf::from(format!("{}.tok.agentmux-relocated", left.copy.display()));
    fs::write(&other, json!({"owner_uid": "b", "source": "/s", "bytes": 1}).to_string()).expect("a marker");
    assert_eq!(left.swept()["removed"], json!([]));
    assert!(is_there(&left.copy) && is_there(&other) && !is_there(&left.marker));
}

#[test]
fn f5_a_copy_that_somebody_continued_is_kept_and_is_an_ordinary_session() {
    let left = Left::new(true);
    let mut bytes = fs::read(&left.copy).expect("the copy");
    bytes.extend_from_slice(b"{\"type\":\"user\",\"message\":{\"content\":\"more\"}}\n");
    fs::write(&left.copy, &bytes).expect("more");
    let report = left.swept();
    assert_eq!(report["removed"], json!([]), "{report}");
    assert_eq!(fs::read(&left.copy).expect("it"), bytes);
    assert!(!is_there(&left.marker) && left.is_settled());
}

#[test]
fn f6_within_one_login_there_is_no_copy_whatever_is_asked_for() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    fs::create_dir(stage.world.path("other")).expect("a folder");
    let (login, other) = (stage.world.text("login"), stage.world.text("other"));
    let question = ["preflight", "--agent", "b", "--fork-of", "a", "--provider-version", "2.1.332"];
    let mut command = stage.throughline(&["--json"]);
    command.args(question).args(["--config-dir", &login, "--cwd", &other, "--means", "by_copy"]);
    let foretold = json_of(&run(&mut command));
    assert_eq!((&foretold["route"], &foretold["session_id"]), (&json!("fork_from"), &json!(session)), "{foretold}");
    assert_ne!(foretold["means"], "by_copy", "{foretold}");
}

#[test]
fn f11_a_uid_with_a_dot_is_none() {
    let stage = Stage::new();
    let output = run(&mut stage.throughline(&["sweep", "--agent", "a.b"]));
    assert_eq!(code(&output), 2, "{output:?}");
}

#[test]
fn f12_a_link_that_leads_nowhere_is_seen_before_and_replaced_never() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    stage.second_login();
    let copy = stage.world.file("second", "work", &session);
    fs::create_dir_all(copy.parent().expect("a folder")).expect("folders");
    std::os::unix::fs::symlink("/nowhere/at/all", &copy).expect("a link");
    let more = ["--session", session.as_str(), "--means", "by_copy"];
    let foretold = stage.preflight("second", &more);
    assert_eq!(foretold["verdict"], "unknown", "{foretold}");
    assert!(foretold["findings"].to_string().contains("destination_taken"), "{foretold}");
    let (output, report) = stage.spawn("second", &more);
    assert_eq!((code(&output), report), (14, None), "{output:?}");
    assert!(is_there(&copy));
}

#[test]
fn f13_a_source_that_ends_in_the_middle_of_a_record_is_copied_up_to_its_last_whole_one() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    stage.second_login();
    let source = stage.world.file("login", "work", &session);
    let mut bytes = fs::read(&source).expect("the session");
    bytes.extend_from_slice(b"{\"type\":\"user\",\"mess");
    fs::write(&source, &bytes).expect("a torn tail");
    let new = stage.spawned("second", &["--session", &session, "--means", "by_copy"]);
    let fork = fs::read_to_string(stage.world.file("second", "work", &new)).expect("the fork");
    assert!(!fork.contains("\"mess\n") && fork.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert_eq!(fs::read(&source).expect("the session"), bytes, "the original is as it was");
}

#[test]
fn f15_a_copy_of_the_same_size_with_another_middle_is_not_the_one_that_was_logged() {
    // Longer than the tail that is compared first, so that only the digest of the whole tells.
    let left = Left::of(true, &format!("{{\"type\":\"x\",\"y\":\"{}\"}}\n", "a".repeat(200_000)));
    let mut bytes = fs::read(&left.copy).expect("the copy");
    bytes[100_000] = b'b';
    fs::write(&left.copy, &bytes).expect("another file");
    assert_eq!(left.swept()["removed"], json!([]));
    assert_eq!(fs::read(&left.copy).expect("it has its name again"), bytes);
    assert!(!is_there(&left.marker) && left.is_settled());
}

#[test]
fn l1_growth_is_remembered_until_a_fork_or_a_resume_is_confirmed() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    let file = stage.world.file("login", "work", &session);
    let mut bytes = fs::read(&file).expect("the session");
    bytes.extend_from_slice(b"{\"type\":\"system\",\"uuid\":\"s\",\"parentUuid\":null}\n");
    fs::write(&file, &bytes).expect("growth");
    let more = ["--session", session.as_str()];
    assert_eq!(stage.preflight("login", &more)["route"], "fork");
    // The fork dies before its id; its end names the grown file.
    let epoch = stage.state()["lease"]["epoch"].as_u64().expect("an epoch") + 1;
    let own = throughline::world::process::own().expect("this process");
    let facts = facts(file.to_str().expect("a path"));
    let recorded = stage.head()["file"].clone();
    let place = json!({"cwd": stage.world.text("work"), "config_dir": stage.world.text("login"), "provider": "claude"});
    let mut spawned = json!({"segment": "dies", "how": "fork", "session": session, "minted": "M", "epoch": epoch});
    for (key, value) in place.as_object().expect("fields") {
        spawned[key] = value.clone();
    }
    stage.append(&[
        ("lease_taken", json!({"epoch": epoch, "holder": own})),
        ("growth_seen", json!({"session": session, "recorded": recorded, "found": facts, "epoch": epoch})),
        ("spawned", spawned),
        ("segment_ended", json!({"segment": "dies", "reason": "crashed", "file": facts, "epoch": epoch})),
        ("lease_ended", json!({"epoch": epoch, "how": "released"})),
    ]);
    assert_eq!(stage.preflight("login", &more)["route"], "fork", "it is not laundered");
}

#[test]
fn l2_an_attempt_elsewhere_never_shadows_where_the_conversation_is() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    let head = stage.head();
    stage.second_login();
    fs::write(stage.world.path("refuses"), "").expect("a flag");
    let (_, report) = stage.spawn("second", &["--session", &session, "--on-reject", "stop"]);
    assert!(report.expect("a report")["attempts"][0]["refused"].is_string());
    assert_eq!(stage.head(), head);
}

#[test]
fn l14_a_copy_that_cannot_be_made_now_starts_nothing_and_leaves_the_head_where_it_is() {
    let stage = Stage::new();
    let session = stage.spawned("login", &[]);
    let head = stage.head();
    stage.second_login();
    // Nobody can make a folder below a file.
    let folder = stage.world.file("second", "work", &session);
    let folder = folder.parent().expect("a folder");
    fs::create_dir_all(folder.parent().expect("projects")).expect("folders");
    fs::write(folder, "in the way").expect("a file");
    let launches = stage.argv().len();
    let (output, report) = stage.spawn("second", &["--session", &session, "--means", "by_copy"]);
    assert_ne!(code(&output), 0, "{output:?}");
    assert!(report.is_none() && stderr(&output).contains("; "), "{output:?}");
    assert_eq!((stage.head(), stage.argv().len()), (head, launches), "no new conversation was begun");
}

#[test]
fn l16_an_event_without_the_present_epoch_is_refused() {
    let stage = Stage::new();
    stage.spawned("login", &[]);
    let body = json!({"segment": "x", "cwd": "/w", "config_dir": "/c", "provider": "claude", "how": "fresh"});
    let line = format!("{}\n", json!({"stream": "agent/a", "kind": "spawned", "body": body}));
    let mut command = stage.throughline(&["append"]);
    let output = run_with(&mut command, &line);
    assert_eq!(code(&output), 1, "{output:?}");
    assert!(stderr(&output).contains("epoch"), "{output:?}");
}
