//! What was tried to mislead a preflight, each with the answer that it must get.

use serde_json::json;
use throughline::chain::{Ledger, Receipt};
use throughline::event::{Route, VerdictWord};

use crate::support::*;

fn answer(receipt: &Receipt) -> (VerdictWord, Option<&str>) {
    let verdict = receipt.verdict();
    (verdict.verdict, verdict.session_id.as_deref())
}

fn codes(receipt: &Receipt) -> Vec<&str> {
    receipt.verdict().findings.iter().map(|finding| finding.code.as_str()).collect()
}

const FRESH: (VerdictWord, Option<&str>) = (VerdictWord::Fresh, None);

fn newest(world: &World) -> throughline::chain::Request {
    let mut request = world.request(None);
    request.continue_newest = true;
    request
}

#[test]
fn continuing_without_an_id_bypasses_neither_chain_nor_identity_nor_rejection() {
    let world = World::new();
    world.identity("login", "me");
    world.session("login", "work", B, 2);
    let stale = world.session("login", "work", A, 3);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::open(&stale).and_then(|file| file.set_modified(later)).expect("the stale one is the newest");
    let receipt = ask(&given(&world.chain(&[A, B])), &newest(&world));
    assert_eq!((answer(&receipt), receipt.verdict().route), ((VerdictWord::Resume, Some(B)), Route::Redirect));
    let other = world.segment(A, "login", "work", json!({"identity": "somebody-else"}));
    assert_eq!(answer(&ask(&given(&other), &newest(&world))), FRESH);
    let rejected = (
        "resume_rejected",
        json!({"segment": "s", "session": A, "why": "x", "snapshot": "0".repeat(64), "for_good": true}),
    );
    let spawned = json!({"segment": "s", "cwd": world.text("work"), "config_dir": world.text("login"), "provider": "claude", "how": "resume"});
    let events = vec![("spawned", spawned), rejected];
    let receipt = ask(&given(&events), &newest(&world));
    assert_eq!((answer(&receipt), codes(&receipt).contains(&"rejected_before")), (FRESH, true));
}

#[test]
fn blanks_around_an_id_change_nothing() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let padded = format!(" {A}\n");
    let receipt = ask(&given(&world.chain(&[A])), &world.request(Some(&padded)));
    assert_eq!((answer(&receipt), receipt.verdict().route), ((VerdictWord::Resume, Some(A)), Route::Held));
}

#[test]
fn a_child_is_judged_where_it_was_launched_whoever_holds_the_lease_now() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let mut elsewhere = own();
    elsewhere.pid_ns += 1;
    let mut dead = own();
    dead.started += 1;
    let mut events = world.chain(&[A]);
    events.push(("lease_taken", json!({"epoch": 1, "holder": elsewhere})));
    events.push((
        "spawned",
        json!({"segment": "g", "cwd": world.text("work"), "config_dir": world.text("login"), "provider": "claude", "how": "resume", "session": A}),
    ));
    events.push(("launched", json!({"segment": "g", "pid": 4_000_000, "started": 1})));
    let busy = |events: &[(&str, serde_json::Value)]| answer(&ask(&given(events), &world.request(Some(A)))).0;
    assert_eq!(busy(&events), VerdictWord::Busy);
    events.push(("lease_ended", json!({"epoch": 1, "how": "reclaimed"})));
    assert_eq!(busy(&events), VerdictWord::Busy, "the lease ended, the child may live");
    events.push(("lease_taken", json!({"epoch": 2, "holder": dead})));
    assert_eq!(busy(&events), VerdictWord::Busy, "another holder's namespace says nothing of it");
    events.push(("segment_ended", json!({"segment": "g", "reason": "exited"})));
    assert_eq!(busy(&events), VerdictWord::Resume);
}

#[test]
fn a_lease_that_ended_is_over_whatever_its_epoch() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let mut events = world.chain(&[A]);
    for epoch in [7, 3] {
        events.push(("lease_taken", json!({"epoch": epoch, "holder": own()})));
        events.push(("lease_ended", json!({"epoch": epoch, "how": "released"})));
    }
    assert_eq!(answer(&ask(&given(&events), &world.request(Some(A)))).0, VerdictWord::Resume);
}

#[test]
fn what_hinges_on_an_identity_that_cannot_be_read_is_unknown() {
    let world = World::new();
    std::fs::create_dir_all(world.path("other")).expect("a folder");
    let source = world.session("other", "work", A, 2);
    world.identity("other", "me");
    let events = world.segment(A, "other", "work", json!({"path": source}));
    let verdict = || ask(&given(&events), &world.request(Some(A)));
    assert_eq!(answer(&verdict()), FRESH, "no identity here: no information");
    world.write(&world.path("login/.claude.json"), "{\"oauthAccount\":{");
    assert_eq!(codes(&verdict()), ["identity_unreadable"], "half-written");
    std::fs::remove_file(world.path("login/.claude.json")).expect("gone");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("login/.claude.json"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a fifo");
    assert_eq!(answer(&verdict()).0, VerdictWord::Unknown);
}

#[test]
fn a_heads_config_dir_that_is_gone_is_unknown_from_anywhere() {
    let world = World::new();
    std::fs::create_dir_all(world.path("elsewhere")).expect("a folder");
    for identity in [json!({}), json!({"identity": "me"})] {
        let events = world.segment(A, "gone", "work", identity);
        for cwd in ["work", "elsewhere"] {
            let mut request = world.request(Some(A));
            request.cwd = world.text(cwd);
            let receipt = ask(&given(&events), &request);
            assert_eq!(
                (answer(&receipt).0, codes(&receipt).contains(&"config_dir_gone")),
                (VerdictWord::Unknown, true)
            );
        }
    }
}

#[test]
fn where_the_cli_cannot_start_nothing_resumes() {
    let world = World::new();
    let file = world.write(&world.path("file"), "x");
    for cwd in [file, "/dev/null".into(), world.text("nowhere")] {
        let mut request = world.request(Some(A));
        request.cwd = cwd.clone();
        std::fs::create_dir_all(world.path("login/projects").join(throughline::provider::claude::slug(&cwd)))
            .expect("a folder");
        let path =
            world.path("login/projects").join(throughline::provider::claude::slug(&cwd)).join(format!("{A}.jsonl"));
        world.write(&path, transcript(A, 2));
        assert_eq!(answer(&ask(&Ledger::default(), &request)).0, VerdictWord::Unknown, "{cwd}");
    }
    let mut request = world.request(Some(A));
    request.config_dir = Some(throughline::provider::ConfigDir::Named("/dev/null".into()));
    assert_eq!(answer(&ask(&Ledger::default(), &request)).0, VerdictWord::Unknown);
}

#[test]
fn a_registry_that_cannot_be_read_holds_a_resume_back_and_a_fork_not() {
    let world = World::new();
    world.session("login", "work", A, 2);
    world.write(&world.path("login/sessions").join(format!("{}.json", own().pid)), "{\"pid\":");
    let mut request = world.request(Some(A));
    assert_eq!(codes(&ask(&Ledger::default(), &request)), ["registry_unreadable"]);
    assert_eq!(
        answer(&ask(&Ledger::default(), &world.request(Some(B)))).0,
        VerdictWord::Unknown,
        "nor is anything recovered"
    );
    request.fork = true;
    assert_eq!(answer(&ask(&Ledger::default(), &request)).0, VerdictWord::Resume);
}

#[test]
fn a_logged_copy_under_another_owners_marker_is_in_flight() {
    let world = World::new();
    let copy = world.session("login", "work", A, 2);
    let marker = format!("{copy}.tok.throughline-relocated");
    let intended = json!({"token": "tok", "session": A, "source": "/s", "destination": copy, "marker": marker, "file": facts(&copy)});
    let events = vec![("relocation_intended", intended), ("relocated", json!({"token": "tok", "file": facts(&copy)}))];
    for (owner, word) in [("a", VerdictWord::Fresh), ("b", VerdictWord::Busy)] {
        std::fs::write(&marker, json!({"owner_uid": owner, "token": "tok"}).to_string()).expect("a marker");
        assert_eq!(answer(&ask(&given(&events), &world.request(Some(A)))).0, word, "owned by {owner}");
    }
}

#[test]
fn a_blank_start_over_a_known_conversation_says_why() {
    let world = World::new();
    world.identity("login", "me");
    world.session("login", "work", A, 2);
    let receipt = ask(&given(&world.chain(&[A, B])), &world.request(Some(A)));
    assert_eq!((answer(&receipt), codes(&receipt)), (FRESH, vec!["not_found", "head_out_of_reach"]));
    let other = world.segment(B, "login", "work", json!({"identity": "somebody-else"}));
    let receipt = ask(&given(&other), &world.request(Some(A)));
    assert_eq!((answer(&receipt), codes(&receipt)), (FRESH, vec!["identity_differs"]));
    assert!(receipt.verdict().findings.iter().all(|finding| finding.next.is_some()));
}

#[test]
fn a_further_login_is_evidence_and_never_a_verdict() {
    let world = World::new();
    std::fs::create_dir_all(world.path("other")).expect("a folder");
    let there = world.session("other", "work", A, 2);
    let mut request = world.request(Some(A));
    request.also = vec![world.text("other"), world.text("nowhere")];
    let receipt = ask(&Ledger::default(), &request);
    assert_eq!((answer(&receipt), codes(&receipt)), (FRESH, vec!["not_found", "found_elsewhere"]));
    assert_eq!(receipt.verdict().findings[1].path.as_deref(), Some(there.as_str()));
    let mut kept = receipt.snapshot().clone();
    assert_eq!(throughline::chain::preflight(&Ledger::default(), &request, &mut kept).expect("recorded"), receipt);
}
