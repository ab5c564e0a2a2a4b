//! The agent that is installed does what our rules say.
//!
//! It is `$THROUGHLINE_CLAUDE`, else `claude` on the PATH. Where there is none, this says so and passes; with
//! `THROUGHLINE_CONFORMANCE=1` it fails. `$THROUGHLINE_CASES` chooses the cases by a part of their names, with commas between;
//! else they are those below and thirty random worlds: some two minutes.

#![expect(clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use throughline::probe::{Options, Progress, Row, Status, probe};
use throughline::provider::KnownRules;

const CASES: &str = "content.complete,content.cut,content.empty,content.metadata,content.system,content.sidechain,content.glued,\
    content.two_branches,content.parent,content.no_time,twin.own,worktree.,fork.,path.,continue.,new.,config.,rights.";

struct Silent;

impl Progress for Silent {
    fn done(&self, _done: usize, _all: usize, _row: &Row) {}
}

fn installed() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("THROUGHLINE_CLAUDE").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("claude")).find(|file| file.is_file())
}

#[test]
fn the_installed_claude_does_what_the_rules_say() {
    let Some(program) = installed() else {
        let wanted = std::env::var("THROUGHLINE_CONFORMANCE").is_ok_and(|value| value == "1");
        assert!(!wanted, "there is no claude on the PATH; name it with THROUGHLINE_CLAUDE");
        eprintln!("skipped: there is no claude on the PATH, and THROUGHLINE_CLAUDE names none");
        return;
    };
    let named = std::env::var("THROUGHLINE_CASES").ok();
    let options = Options {
        program: std::path::absolute(program).expect("a path"),
        known: KnownRules::default(),
        rules: None,
        learn: false,
        filter: named.as_deref().unwrap_or(CASES).split(',').map(|word| word.trim().to_owned()).collect(),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        random: if named.is_some() { 0 } else { 30 },
        seed: 1,
        command: Some(env!("CARGO_BIN_EXE_throughline").into()),
    };
    let report = probe(&options, &AtomicBool::new(false), &Silent).expect("the probe runs");
    let (right, said) = report.naive();
    eprintln!(
        "claude {}, rules of {}: {} agree, {} differ, {} undecided, {} could not run; a naive check is right in {right} of {said}",
        report.version,
        report.rules,
        report.count(Status::Agree),
        report.count(Status::Differ),
        report.count(Status::Undecided),
        report.count(Status::CouldNotRun),
    );
    let differing: Vec<&Row> = report.rows.iter().filter(|row| row.status == Status::Differ).collect();
    if !report.observed {
        // Nobody has looked at this version yet: the nearest rules may be wrong for it, and preflight says so.
        differing.iter().for_each(|row| eprintln!("{} differs: {} / {}", row.name, row.foretold, row.seen));
        return;
    }
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(report.count(Status::Agree) > report.rows.len() / 2, "hardly any case was decided");
}
