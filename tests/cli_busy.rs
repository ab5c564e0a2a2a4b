//! The command beside a writer that does not come to an end: busy, try again, and nothing is lost.

use std::io::Write as _;
use std::process::{Child, Stdio};

use crate::cli::{code, json_of, run, run_with, stderr, stdout, throughline};
use crate::support::{A, World};

/// An import that waits for its second line, inside its transaction.
fn importing(world: &World) -> Child {
    let mut command = throughline(world);
    let mut child = command.args(["import", "--unverified", "-"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let line = "{\"stream\":\"agent/held\",\"kind\":\"fresh_intended\",\"body\":{}}\n";
    // More than it reads ahead: what is written was taken.
    let lines = line.repeat(4_000);
    child.stdin.as_mut().expect("stdin").write_all(lines.as_bytes()).expect("it reads");
    child
}

const LINE: &str = r#"{"stream":"agent/a","kind":"fresh_intended","body":{}}"#;

#[test]
fn a_writer_that_waits_too_long_says_75_and_a_reader_does_not_wait() {
    let world = World::new();
    let mut holder = importing(&world);
    let mut append = throughline(&world);
    let output = run_with(append.args(["append", "--busy-ms", "100", "--json"]), LINE);
    assert_eq!(code(&output), 75, "{output:?}");
    let error = &json_of(&output)["error"];
    assert_eq!((error["class"].as_str(), error["code"].as_i64()), (Some("log_busy"), Some(75)));
    assert!(error["next"].as_str().is_some_and(|next| next.contains("try again")), "{error}");
    assert_eq!(code(&run(throughline(&world).arg("verify"))), 0);
    drop(holder.stdin.take());
    assert!(holder.wait().expect("an end").success());
    assert_eq!(code(&run_with(throughline(&world).arg("append"), LINE)), 0);
    assert!(stdout(&run(throughline(&world).arg("anchor"))).starts_with("4001:"));
}

#[test]
fn a_verdict_that_cannot_be_recorded_is_given_all_the_same() {
    let world = World::new();
    world.session("login", "work", A, 2);
    let ask = |more: &[&str]| {
        let mut command = throughline(&world);
        command.args(["preflight", "--session", A, "--agent", "a", "--config-dir"]).arg(world.path("login"));
        run(command.args(["--record", "--busy-ms", "100"]).args(more))
    };
    let recorded = ask(&["--json"]);
    assert_eq!((code(&recorded), json_of(&recorded)["recorded"].as_bool()), (0, Some(true)));
    let mut holder = importing(&world);
    let output = ask(&["--json"]);
    assert_eq!(code(&output), 75, "{output:?}");
    let value = json_of(&output);
    assert_eq!((value["verdict"].as_str(), value["recorded"].as_bool()), (Some("resume"), Some(false)));
    assert!(stderr(&output).contains("not recorded"), "{output:?}");
    holder.kill().expect("it was there");
    holder.wait().expect("an end");
}
