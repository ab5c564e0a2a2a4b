//! The command beside a writer that does not come to an end: busy, try again, and nothing is lost.

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

use crate::cli::{code, json_of, run, run_with, stderr, stdout, throughline};
use crate::support::{A, World};

/// A writer that has begun and does not come to an end.
fn holding(world: &World) -> rusqlite::Connection {
    drop(run_with(throughline(world).arg("append"), LINE));
    let holder = rusqlite::Connection::open(world.path("log.db")).expect("a log");
    holder.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    holder
}

const LINE: &str = r#"{"stream":"agent/a","kind":"fresh_intended","body":{}}"#;

#[test]
fn a_writer_that_waits_too_long_says_75_and_a_reader_does_not_wait() {
    let world = World::new();
    let holder = holding(&world);
    let mut append = throughline(&world);
    let output = run_with(append.args(["append", "--busy-ms", "100", "--json"]), LINE);
    assert_eq!(code(&output), 75, "{output:?}");
    let error = &json_of(&output)["error"];
    assert_eq!((error["class"].as_str(), error["code"].as_i64()), (Some("log_busy"), Some(75)));
    assert!(error["next"].as_str().is_some_and(|next| next.contains("try again")), "{error}");
    assert_eq!(code(&run(throughline(&world).arg("verify"))), 0);
    drop(holder);
    assert_eq!(code(&run_with(throughline(&world).arg("append"), LINE)), 0);
    assert!(stdout(&run(throughline(&world).arg("anchor"))).starts_with("2:"));
}

#[test]
fn a_verdict_that_cannot_be_recorded_is_given_all_the_same() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let ask = |more: &[&str]| {
        let mut command = throughline(&world);
        command.args(["preflight", "--session", A, "--agent", "b", "--config-dir"]).arg(world.path("login"));
        run(command.args(["--record", "--busy-ms", "100"]).args(more))
    };
    let recorded = ask(&["--json"]);
    assert_eq!((code(&recorded), json_of(&recorded)["recorded"].as_bool()), (0, Some(true)));
    let _holder = holding(&world);
    let output = ask(&["--json"]);
    assert_eq!(code(&output), 75, "{output:?}");
    let value = json_of(&output);
    assert_eq!((value["verdict"].as_str(), value["recorded"].as_bool()), (Some("resume"), Some(false)));
    assert!(stderr(&output).contains("not recorded"), "{output:?}");
}

#[test]
fn an_import_that_is_fed_slowly_keeps_nobody_waiting() {
    let world = World::new();
    let mut import = throughline(&world);
    let mut slow = import.args(["import", "--unverified", "-"]).stdin(Stdio::piped()).spawn().expect("it starts");
    // More than it reads ahead: what is written was taken.
    slow.stdin.as_mut().expect("stdin").write_all(format!("{LINE}\n").repeat(4_000).as_bytes()).expect("it reads");
    assert_eq!(code(&run_with(throughline(&world).args(["append", "--busy-ms", "100"]), LINE)), 0);
    drop(slow.stdin.take());
    assert!(slow.wait().expect("an end").success());
    assert!(stdout(&run(throughline(&world).arg("anchor"))).starts_with("4001:"));
}

#[test]
fn an_output_that_cannot_be_written_hides_nothing() {
    let world = World::new();
    let full = || File::options().write(true).open("/dev/full").expect("a device that is always full");
    let line = world.path("line");
    std::fs::write(&line, LINE).expect("a file");
    let mut append = throughline(&world);
    let output = append.args(["append", "--json"]).arg(&line).stdout(full()).output().expect("it runs");
    assert_eq!(code(&output), 1, "{output:?}");
    assert!(stderr(&output).contains("is done and in the log"), "{output:?}");
    assert!(stdout(&run(throughline(&world).arg("anchor"))).starts_with("1:"));
    let output = throughline(&world).arg("export").stdout(full()).output().expect("it runs");
    assert_eq!(code(&output), 1, "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("only a beginning") && !said.contains("nothing was written"), "{said}");
}
