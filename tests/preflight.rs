//! The eleven checks on real disks, and each deviation from the published algorithm under its own name.

use serde_json::{Value, json};
use throughline::chain::{Confidence, Ledger, Receipt, preflight};
use throughline::event::{Means, Route, VerdictWord};
use throughline::id::ProviderName;
use throughline::snapshot::{Question, SnapshotError, View};

use crate::support::*;

/// Verdict, route, session.
fn answer(receipt: &Receipt) -> (VerdictWord, Route, Option<&str>) {
    let verdict = receipt.verdict();
    (verdict.verdict, verdict.route, verdict.session_id.as_deref())
}

fn codes(receipt: &Receipt) -> Vec<&str> {
    receipt.verdict().findings.iter().map(|finding| finding.code.as_str()).collect()
}

fn steps(receipt: &Receipt) -> Vec<&str> {
    receipt.verdict().steps.iter().map(|step| step.id.as_str()).collect()
}

const FRESH: (VerdictWord, Route, Option<&str>) = (VerdictWord::Fresh, Route::None, None);

#[test]
fn check_1_without_a_resume_flag_or_a_config_dir_it_is_unknown() {
    let world = World::new();
    let mut request = world.request(Some(A));
    request.resume_flag = Some(String::new());
    assert_eq!(answer(&ask(&Ledger::default(), &request)).0, VerdictWord::Unknown);
    let mut request = world.request(Some(A));
    request.config_dir = None;
    let receipt = ask(&Ledger::default(), &request);
    assert_eq!((answer(&receipt).0, receipt.snapshot().len()), (VerdictWord::Unknown, 0), "nothing else is looked at");
    let mut request = world.request(Some(A));
    request.provider = ProviderName::parse("nobody").expect("a name");
    assert_eq!(codes(&ask(&Ledger::default(), &request)), ["unknown_provider"]);
}

#[test]
fn check_9_a_reachable_session_resumes_in_place() {
    let world = World::new();
    let path = world.session("login", "work", A, 2);
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Held, Some(A)));
    let verdict = receipt.verdict();
    assert_eq!(verdict.confidence, Confidence::Inferred, "without a log nothing is proven");
    let transcript = verdict.transcript.as_ref().expect("a transcript");
    assert_eq!((transcript.path.as_str(), transcript.writes_to.file.as_deref()), (path.as_str(), Some(path.as_str())));
    assert_eq!(verdict.launch.as_ref().expect("a launch").argv, ["claude", "--resume", A]);
    let mut request = world.request(Some(A));
    request.fork = true;
    let receipt = ask(&Ledger::default(), &request);
    let writes_to = &receipt.verdict().transcript.as_ref().expect("a transcript").writes_to;
    assert_eq!(writes_to.file, None, "the provider names the new file");
}

#[test]
fn check_10_another_conversation_is_recovered_only_for_a_held_id_without_a_chain() {
    let world = World::new();
    world.session("login", "work", B, 1);
    world.session("login", "work", C, 3);
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    assert_eq!(answer(&receipt), (VerdictWord::Recover, Route::Recovery, Some(C)), "the largest");
    let mut request = world.request(None);
    request.history = Some(A.into());
    assert_eq!(answer(&ask(&Ledger::default(), &request)), FRESH, "a rendered history is not held");
}

#[test]
fn check_11_nothing_held_is_fresh_and_the_disk_is_evidence_only() {
    let world = World::new();
    let receipt = ask(&Ledger::default(), &world.request(None));
    assert_eq!((answer(&receipt), receipt.verdict().recoverable_session_id.as_deref()), (FRESH, None));
    world.session("login", "work", C, 3);
    let receipt = ask(&Ledger::default(), &world.request(None));
    assert_eq!((answer(&receipt), receipt.verdict().recoverable_session_id.as_deref()), (FRESH, Some(C)));
}

#[test]
fn a_stale_id_that_still_exists_is_redirected_to_the_head() {
    let world = World::new();
    world.session("login", "work", A, 5);
    world.session("login", "work", B, 2);
    let receipt = ask(&given(&world.chain(&[A, B])), &world.request(Some(A)));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Redirect, Some(B)));
    assert_eq!(receipt.verdict().confidence, Confidence::Proven);
    assert!(steps(&receipt).contains(&"chain"), "the gate changed the answer");
    let receipt = ask(&given(&world.chain(&[A, B])), &world.request(Some(B)));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Held, Some(B)));
    assert!(!steps(&receipt).contains(&"chain"), "the gate did not change the answer");
}

#[test]
fn every_path_leaves_at_least_one_step() {
    let world = World::new();
    for request in [world.request(None), world.request(Some(A)), world.request(Some("../x")), world.request(Some(""))] {
        assert!(!ask(&Ledger::default(), &request).verdict().steps.is_empty());
    }
}

#[test]
fn deviation_identity_comes_before_poison() {
    let world = World::new();
    world.identity("login", "me");
    world.session("login", "work", A, 2);
    world.session("login", "work", B, 2);
    let mut events = world.segment(A, "login", "work", json!({"identity": "somebody-else"}));
    events.push(("spawned", spawn("s2", &world, A)));
    events.push((
        "resume_rejected",
        json!({"segment": "s2", "session": A, "why": "x", "snapshot": zeros(), "for_good": true}),
    ));
    let receipt = ask(&given(&events), &world.request(Some(B)));
    assert_eq!(answer(&receipt), FRESH, "another login's conversation is no reason to resume a third one");
    assert!(receipt.verdict().conversation_at.is_some());
}

fn spawn(segment: &str, world: &World, session: &str) -> Value {
    json!({"segment": segment, "cwd": world.text("work"), "config_dir": world.text("login"), "provider": "claude",
        "how": "resume", "session": session})
}

fn zeros() -> String {
    "0".repeat(64)
}

#[test]
fn deviation_leftovers_are_swept_virtually() {
    let world = World::new();
    std::fs::create_dir_all(world.path("other")).expect("a folder");
    let source = world.session("other", "work", A, 2);
    let copy = world.session("login", "work", A, 2);
    let marker = format!("{copy}.tok.throughline-relocated");
    std::fs::write(&marker, json!({"owner_uid": "a", "token": "tok"}).to_string()).expect("a marker");
    let mut events = world.segment(A, "other", "work", json!({"path": source, "file": facts(&source)}));
    events.push((
        "relocation_intended",
        json!({"token": "tok", "session": A, "source": source, "destination": copy, "marker": marker, "file": facts(&copy)}),
    ));
    events.push(("relocated", json!({"token": "tok", "file": facts(&copy)})));
    for (login, who) in [("login", "me"), ("other", "me")] {
        world.identity(login, who);
    }
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Relocate, Some(A)), "the copy counts as absent");
    assert_eq!(receipt.verdict().transcript.as_ref().expect("a transcript").path, source);
    // A copy that somebody continued is live: never absent.
    std::fs::write(&copy, transcript(A, 3)).expect("a longer copy");
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert!(!codes(&receipt).contains(&"leftover"));
}

#[test]
fn a_file_under_another_agents_marker_is_busy_where_it_alone_decides() {
    let world = World::new();
    let copy = world.session("login", "work", A, 2);
    std::fs::write(format!("{copy}.t.throughline-relocated"), json!({"owner_uid": "b", "token": "t"}).to_string())
        .expect("a marker");
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    assert_eq!((answer(&receipt).0, codes(&receipt)), (VerdictWord::Busy, vec!["copy_in_flight"]));
}

#[test]
fn deviation_recovery_never_beside_a_chain() {
    let world = World::new();
    world.session("login", "work", C, 3);
    let receipt = ask(&given(&world.chain(&[A])), &world.request(Some(A)));
    assert_eq!(answer(&receipt), FRESH);
    assert_eq!(receipt.verdict().conversation_at.as_ref().expect("the log knows").session, A);
}

#[test]
fn deviation_a_held_lease_is_busy() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let mut events = world.chain(&[A]);
    events.push(("lease_taken", json!({"epoch": 1, "holder": own()})));
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!((answer(&receipt).0, codes(&receipt)), (VerdictWord::Busy, vec!["lease_held"]));
    let mut request = world.request(Some(A));
    request.lease = Some(throughline::id::Epoch(1));
    assert_eq!(answer(&ask(&given(&events), &request)).0, VerdictWord::Resume, "the holder's own question");
    let mut dead = own();
    dead.boot = "another-boot".into();
    let mut events = world.chain(&[A]);
    events.push(("lease_taken", json!({"epoch": 1, "holder": dead})));
    assert_eq!(answer(&ask(&given(&events), &world.request(Some(A)))).0, VerdictWord::Resume, "a dead holder");
    let mut elsewhere = own();
    elsewhere.pid_ns += 1;
    let mut events = world.chain(&[A]);
    events.push(("lease_taken", json!({"epoch": 1, "holder": elsewhere})));
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&receipt).0, VerdictWord::Busy, "another pid namespace is never judged dead");
}

#[test]
fn a_process_that_a_dead_driver_launched_still_holds_the_conversation() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let mut events = world.chain(&[A]);
    let mut dead = own();
    dead.started += 1;
    events.push(("lease_taken", json!({"epoch": 1, "holder": dead})));
    events.push(("spawned", spawn("s2", &world, A)));
    events.push(("launched", json!({"segment": "s2", "pid": own().pid, "started": own().started})));
    assert_eq!(answer(&ask(&given(&events), &world.request(Some(A)))).0, VerdictWord::Busy);
}

#[test]
fn deviation_unreadable_is_unknown() {
    let world = World::new();
    let fifo = world.file("login", "work", A);
    std::fs::create_dir_all(fifo.parent().expect("a parent")).expect("folders");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).expect("a fifo");
    world.session("login", "work", C, 3);
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    assert_eq!(answer(&receipt).0, VerdictWord::Unknown, "never fresh, never another one: {:?}", receipt.verdict());
}

#[test]
fn a_config_dir_that_the_log_knew_and_that_is_gone_is_unknown() {
    let world = World::new();
    let ledger = given(&world.chain(&[A]));
    std::fs::remove_dir(world.path("login")).expect("the login goes");
    let receipt = ask(&ledger, &world.request(Some(A)));
    assert_eq!((answer(&receipt).0, codes(&receipt)), (VerdictWord::Unknown, vec!["config_dir_gone"]));
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    assert_eq!(answer(&receipt), FRESH, "one that nobody knew is just new");
}

#[test]
fn deviation_a_transient_relocation_failure_never_abandons_the_head() {
    let world = World::new();
    std::fs::create_dir_all(world.path("other")).expect("a folder");
    let source = world.session("other", "work", A, 2);
    for login in ["login", "other"] {
        world.identity(login, "me");
    }
    let mut events = world.segment(A, "other", "work", json!({"path": source, "file": facts(&source)}));
    let copy = world.file("login", "work", A);
    events.push((
        "relocation_intended",
        json!({"token": "t", "session": A, "source": source, "destination": copy, "marker": "/m", "file": facts(&source)}),
    ));
    events.push(("relocation_failed", json!({"token": "t", "why": "disk full", "transient": true})));
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Relocate, Some(A)));
}

#[test]
fn deviation_the_providers_lookup_decides_not_that_a_file_exists() {
    let world = World::new();
    let path = world.file("login", "work", A);
    world.write(&path, "{\"type\":\"last-prompt\"}\n");
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    assert_eq!(answer(&receipt), FRESH, "a file without a record that the CLI accepts");
    std::fs::create_dir_all(world.path("elsewhere")).expect("a folder");
    world.session("login", "elsewhere", B, 2);
    let receipt = ask(&Ledger::default(), &world.request(Some(B)));
    assert_eq!(answer(&receipt).0, VerdictWord::Resume, "no file under the own slug, and yet it resumes");
}

#[test]
fn deviation_log_order_not_clock() {
    // Times are not even an input of the fold: the same events in another order are another chain.
    let world = World::new();
    world.session("login", "work", A, 2);
    world.session("login", "work", B, 2);
    for (order, head) in [([A, B], B), ([B, A], A)] {
        let receipt = ask(&given(&world.chain(&order)), &world.request(Some(A)));
        assert_eq!(answer(&receipt).2, Some(head));
    }
}

#[test]
fn deviation_an_unconfirmed_attempt_never_becomes_head() {
    let world = World::new();
    world.session("login", "work", A, 2);
    world.session("login", "work", B, 2);
    let mut events = world.chain(&[A]);
    events.push(("spawned", spawn("s2", &world, B)));
    events.push(("session_reported", json!({"segment": "s2", "session": B})));
    events.push(("segment_ended", json!({"segment": "s2", "reason": "crashed"})));
    let receipt = ask(&given(&events), &world.request(Some(B)));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Redirect, Some(A)));
}

#[test]
fn deviation_an_intended_new_conversation_is_not_resurrected() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let mut events = world.chain(&[A]);
    events.push(("fresh_intended", json!({})));
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&receipt), FRESH);
    assert_eq!(receipt.verdict().conversation_at.as_ref().expect("the log knows").session, A);
}

#[test]
fn deviation_a_rejection_holds_under_equal_observations_only() {
    let world = World::new();
    let path = world.session("login", "work", A, 2);
    let before = ask(&given(&world.chain(&[A])), &world.request(Some(A)));
    for digest in [before.basis().snapshot, before.basis().lookup.expect("a lookup")] {
        let mut events = world.chain(&[A]);
        events.push(("spawned", spawn("s2", &world, A)));
        events.push(("resume_rejected", json!({"segment": "s2", "session": A, "why": "no", "snapshot": digest})));
        events.push(("segment_ended", json!({"segment": "s2", "reason": "exited"})));
        std::fs::write(&path, transcript(A, 2)).expect("the same file");
        let receipt = ask(&given(&events), &world.request(Some(A)));
        assert_eq!((answer(&receipt), codes(&receipt)), (FRESH, vec!["rejected_before"]));
        std::fs::write(&path, transcript(A, 3)).expect("another file");
        assert_eq!(answer(&ask(&given(&events), &world.request(Some(A)))).0, VerdictWord::Resume);
    }
}

#[test]
fn a_refused_head_never_revives_a_stale_id() {
    let world = World::new();
    world.session("login", "work", A, 2);
    world.session("login", "work", B, 2);
    let mut events = world.chain(&[A, B]);
    events.push(("spawned", spawn("s2", &world, B)));
    events.push((
        "resume_rejected",
        json!({"segment": "s2", "session": B, "why": "x", "snapshot": zeros(), "for_good": true}),
    ));
    assert_eq!(answer(&ask(&given(&events), &world.request(Some(A)))), FRESH);
}

#[test]
fn deviation_a_last_record_without_its_newline_is_complete() {
    let world = World::new();
    let path = world.session("login", "work", A, 2);
    let text = transcript(A, 2);
    std::fs::write(&path, text.trim_end()).expect("a file");
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    assert_eq!((answer(&receipt).0, codes(&receipt)), (VerdictWord::Resume, vec![]));
}

#[test]
fn deviation_growth_is_told_by_size_and_tail_digest() {
    let world = World::new();
    let path = world.session("login", "work", A, 2);
    let events = world.segment(A, "login", "work", json!({"path": path, "file": facts(&path)}));
    let table: [(String, &str, Route); 4] = [
        (transcript(A, 2), "", Route::Held),
        (transcript(A, 3), "continued_elsewhere", Route::Fork),
        (transcript(A, 1), "suspected_loss", Route::Fork),
        (transcript(A, 2).replace("turn 1", "TURN 1"), "suspected_loss", Route::Fork),
    ];
    for (text, code, route) in table {
        std::fs::write(&path, &text).expect("a file");
        let receipt = ask(&given(&events), &world.request(Some(A)));
        assert_eq!(answer(&receipt), (VerdictWord::Resume, route, Some(A)), "{code}");
        assert!(code.is_empty() || codes(&receipt).contains(&code), "{code}: {:?}", codes(&receipt));
    }
}

#[test]
fn deviation_paths_are_literal() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let mut request = world.request(Some(A));
    request.config_dir = Some(throughline::provider::ConfigDir::Named("~/login".into()));
    assert_eq!(answer(&ask(&Ledger::default(), &request)), FRESH, "no agent expands a tilde");
    request.expand_home(&world.text(""));
    assert_eq!(answer(&ask(&Ledger::default(), &request)).0, VerdictWord::Resume, "unless the caller does");
}

#[test]
fn deviation_one_retry_a_refused_recovery_is_not_found_again() {
    let world = World::new();
    world.session("login", "work", B, 3);
    let mut events = vec![("spawned", spawn("s1", &world, A))];
    events.push(("resume_rejected", json!({"segment": "s1", "session": A, "why": "x", "snapshot": zeros()})));
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&receipt), (VerdictWord::Recover, Route::Recovery, Some(B)));
    events.push((
        "resume_rejected",
        json!({"segment": "s1", "session": B, "why": "x", "snapshot": zeros(), "for_good": true}),
    ));
    assert_eq!(answer(&ask(&given(&events), &world.request(Some(A)))), FRESH);
}

#[test]
fn deviation_there_is_no_first_spawn_counter() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let mut request = world.request(None);
    request.history = Some(A.into());
    let mut events = Vec::new();
    for segment in ["s1", "s2"] {
        let receipt = ask(&given(&events), &request);
        assert_eq!(
            answer(&receipt),
            (VerdictWord::Resume, Route::History, Some(A)),
            "after {} spawns",
            events.len() / 2
        );
        events.push(("spawned", spawn(segment, &world, A)));
        events.push(("launch_failed", json!({"segment": segment, "why": "no such program"})));
    }
}

#[test]
fn deviation_by_path_before_by_copy() {
    let world = World::new();
    std::fs::create_dir_all(world.path("other")).expect("a folder");
    let source = world.session("other", "work", A, 2);
    let events = world.segment(A, "other", "work", json!({"path": source, "file": facts(&source)}));
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&receipt), FRESH, "an unknown identity is not an equal one");
    for login in ["login", "other"] {
        world.identity(login, "me");
    }
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Relocate, Some(A)));
    assert_eq!(receipt.verdict().means, Some(Means::ByPath));
    let argv = &receipt.verdict().launch.as_ref().expect("a launch").argv;
    assert_eq!(argv[..], ["claude", "--resume", source.as_str(), "--fork-session"]);
    world.identity("login", "somebody-else");
    assert_eq!(answer(&ask(&given(&events), &world.request(Some(A)))), FRESH, "never across identities");
}

#[test]
fn two_copies_make_the_agent_refuse_unless_the_log_knows_the_file() {
    let world = World::new();
    for cwd in ["app", "backup"] {
        std::fs::create_dir_all(world.path(cwd)).expect("a folder");
    }
    let original = world.session("login", "app", A, 2);
    world.session("login", "backup", A, 2);
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    assert_eq!(answer(&receipt), FRESH);
    assert!(codes(&receipt).contains(&"ambiguous"));
    let events = world.segment(A, "login", "work", json!({"path": original}));
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Relocate, Some(A)));
    assert_eq!(receipt.verdict().transcript.as_ref().expect("a transcript").path, original);
}

#[test]
fn a_fork_of_another_agent_begins_with_its_conversation() {
    let world = World::new();
    let path = world.session("login", "work", A, 2);
    let mut ledger = given(&[]);
    ledger.parent = Some(fold(&world.segment(A, "login", "work", json!({"path": path}))));
    let receipt = ask(&ledger, &world.request(None));
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::ForkFrom, Some(A)));
    assert_eq!(receipt.verdict().means, Some(Means::InPlace));
    let argv = &receipt.verdict().launch.as_ref().expect("a launch").argv;
    assert_eq!(argv[..], ["claude", "--resume", A, "--fork-session"]);
    // From another directory of another login with the same identity: by its path.
    for login in ["login", "third"] {
        std::fs::create_dir_all(world.path(login)).expect("a folder");
        world.identity(login, "me");
    }
    let mut request = world.request(None);
    request.config_dir = Some(throughline::provider::ConfigDir::Named(world.text("third")));
    let receipt = ask(&ledger, &request);
    assert_eq!((answer(&receipt).1, receipt.verdict().means), (Route::ForkFrom, Some(Means::ByPath)));
    // An agent with a conversation of its own is not sent back to its parent's.
    world.session("login", "work", B, 2);
    ledger.agent = Some(fold(&world.chain(&[B])));
    assert_eq!(answer(&ask(&ledger, &world.request(Some(B)))).2, Some(B));
}

#[test]
fn a_live_process_of_the_providers_registry_is_busy_for_a_resume_and_a_finding_for_a_fork() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let entry = json!({"pid": own().pid, "sessionId": A, "procStart": own().started.to_string()});
    world.write(&world.path("login/sessions/1.json"), entry.to_string());
    let mut request = world.request(Some(A));
    assert_eq!(answer(&ask(&Ledger::default(), &request)).0, VerdictWord::Busy);
    request.fork = true;
    let receipt = ask(&Ledger::default(), &request);
    assert_eq!((answer(&receipt).0, codes(&receipt)), (VerdictWord::Resume, vec!["live_owner"]));
    // Recovery never takes what somebody has open.
    let receipt = ask(&Ledger::default(), &world.request(Some(B)));
    assert_eq!(answer(&receipt), FRESH);
}

#[test]
fn bad_ids_are_fresh_with_a_finding() {
    let world = World::new();
    std::fs::create_dir_all(world.file("login", "work", A)).expect("a directory in the file's place");
    for id in [A, B, "../../etc/passwd", "a/b", "session1", "-p", " ", "x.jsonl", &"x".repeat(300), "a\0b"] {
        let receipt = ask(&Ledger::default(), &world.request(Some(id)));
        assert_eq!(answer(&receipt), FRESH, "{id:?}");
        assert!(!receipt.verdict().findings.is_empty(), "{id:?}");
    }
}

#[test]
fn a_snapshot_replays_to_the_same_verdict_and_refuses_other_questions() {
    let world = World::new();
    world.session("login", "work", A, 2);
    world.session("login", "work", B, 2);
    let ledger = given(&world.chain(&[A, B]));
    let receipt = ask(&ledger, &world.request(Some(A)));
    let again = preflight(&ledger, receipt.request(), &mut receipt.snapshot().clone()).expect("every answer is there");
    assert_eq!(again, receipt);
    let mut request = receipt.request().clone();
    request.cwd = world.text("login");
    let other = preflight(&ledger, &request, &mut receipt.snapshot().clone());
    assert!(matches!(other, Err(SnapshotError::NotRecorded { .. })));
}

#[test]
fn a_receipt_is_current_until_the_plan_changes() {
    let world = World::new();
    let path = world.session("login", "work", A, 2);
    let receipt = ask(&Ledger::default(), &world.request(Some(A)));
    std::fs::write(&path, transcript(A, 3)).expect("one more turn");
    let now = ask(&Ledger::default(), &world.request(Some(A)));
    assert_ne!(receipt.basis().snapshot, now.basis().snapshot);
    assert!(receipt.is_current(&now), "observations changed, the plan did not");
    std::fs::remove_file(&path).expect("gone");
    assert!(!receipt.is_current(&ask(&Ledger::default(), &world.request(Some(A)))));
}

#[test]
fn continue_without_an_id_takes_the_newest_and_never_proves_anything() {
    let world = World::new();
    let mut request = world.request(None);
    request.continue_newest = true;
    assert_eq!(answer(&ask(&Ledger::default(), &request)), FRESH);
    world.session("login", "work", A, 2);
    let receipt = ask(&Ledger::default(), &request);
    assert_eq!(answer(&receipt), (VerdictWord::Resume, Route::Recovery, Some(A)));
    assert_eq!(receipt.verdict().confidence, Confidence::Inferred);
}

/// A view that must not be asked.
struct Silent;

impl View for Silent {
    fn ask(&mut self, question: &Question) -> Result<throughline::snapshot::Answer, SnapshotError> {
        Err(SnapshotError::NotRecorded { question: Box::new(question.clone()) })
    }
}

#[test]
fn a_question_about_a_path_that_is_not_utf8_asks_nothing() {
    let world = World::new();
    let mut request = world.request(Some(A));
    request.unusable = Some("the working directory is not UTF-8".into());
    let receipt = preflight(&Ledger::default(), &request, &mut Silent).expect("nothing is asked");
    assert_eq!((answer(&receipt).0, codes(&receipt)), (VerdictWord::Unknown, vec!["not_utf8"]));
}

/// The trail of each way through the checks: which were reached, and what each found.
#[test]
fn the_trail_of_every_way_through_the_checks() {
    let world = World::new();
    for dir in ["other", "app", "backup"] {
        std::fs::create_dir_all(world.path(dir)).expect("a folder");
    }
    let (a, _, elsewhere) = (
        world.session("login", "work", A, 2),
        world.session("login", "work", B, 3),
        world.session("other", "work", C, 2),
    );
    for login in ["login", "other"] {
        world.identity(login, "me");
    }
    let nobody = "dddddddd-0000-4000-8000-00000000000d";
    let moved = world.segment(C, "other", "work", json!({"path": elsewhere}));
    let mut refused = world.chain(&[A]);
    refused.push(("spawned", spawn("s2", &world, A)));
    refused.push((
        "resume_rejected",
        json!({"segment": "s2", "session": A, "why": "x", "snapshot": zeros(), "for_good": true}),
    ));
    let mut intended = world.chain(&[A]);
    intended.push(("fresh_intended", json!({})));
    let mut held = world.chain(&[A]);
    held.push(("lease_taken", json!({"epoch": 1, "holder": own()})));
    let mut grown = world.segment(A, "login", "work", json!({"path": a}));
    grown.push(("growth_seen", json!({"session": A, "recorded": facts(&a), "found": facts(&a)})));
    let history = |id: &str| {
        let mut request = world.request(None);
        request.history = Some(id.into());
        request
    };
    let ways = [
        ("resume, held", Ledger::default(), world.request(Some(A))),
        ("resume, history", Ledger::default(), history(A)),
        ("redirect", given(&world.chain(&[A, B])), world.request(Some(A))),
        ("fork of a changed head", given(&grown), world.request(Some(A))),
        ("relocate", given(&moved), world.request(Some(A))),
        ("relocate, history out of reach", given(&moved), history(nobody)),
        ("recover", Ledger::default(), world.request(Some(nobody))),
        ("fresh, nothing held", Ledger::default(), world.request(None)),
        ("fresh, out of reach beside a chain", given(&world.chain(&[nobody])), world.request(Some(nobody))),
        ("fresh, gate refuses", given(&world.chain(&[nobody])), world.request(Some(A))),
        ("fresh, intended", given(&intended), world.request(Some(A))),
        ("fresh, refused before", given(&refused), world.request(Some(A))),
        ("busy, lease", given(&held), world.request(Some(A))),
        ("unknown, malformed world", Ledger::default(), {
            let mut request = world.request(Some(A));
            request.cwd = world.text("nowhere");
            request
        }),
    ];
    let mut trail = String::new();
    for (name, ledger, request) in ways {
        let receipt = ask(&ledger, &request);
        let verdict = receipt.verdict();
        trail.push_str(&format!("{name}: {} by {}\n", verdict.verdict, verdict.route));
        for step in &verdict.steps {
            trail.push_str(&format!("  {} {:<10} {}\n", if step.ok { "+" } else { "-" }, step.id, step.label));
        }
        for finding in &verdict.findings {
            trail.push_str(&format!("  ! {}\n", finding.code));
        }
    }
    insta::assert_snapshot!(trail);
}

#[test]
fn a_live_owner_of_what_is_forked_from_another_login_is_a_finding() {
    let world = World::new();
    std::fs::create_dir_all(world.path("other")).expect("a folder");
    let source = world.session("other", "work", A, 2);
    for login in ["login", "other"] {
        world.identity(login, "me");
    }
    let entry = json!({"pid": own().pid, "sessionId": A, "procStart": own().started.to_string()});
    world.write(&world.path("other/sessions/1.json"), entry.to_string());
    let events = world.segment(A, "other", "work", json!({"path": source}));
    let receipt = ask(&given(&events), &world.request(Some(A)));
    assert_eq!((answer(&receipt).1, codes(&receipt)), (Route::Relocate, vec!["live_owner"]));
}
