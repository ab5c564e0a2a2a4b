//! The probe against pretended agents: what is wrong is noticed, nothing is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::cli::{code, json_of, run, stderr, stdout};

/// A folder with a pretended agent, which is also where the probe plays.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    /// The agent says a version, and else does what the script says.
    fn new(version: &str, script: &str) -> Self {
        let bench = Self { dir: tempfile::tempdir().expect("a folder") };
        let text = format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit 0; fi\n{script}\n");
        fs::write(bench.agent(), text).expect("a script");
        fs::set_permissions(bench.agent(), fs::Permissions::from_mode(0o755)).expect("a mode");
        fs::create_dir(bench.temp()).expect("a folder");
        bench
    }

    fn agent(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    fn temp(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    fn probe(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.dir.path()).env("TMPDIR", self.temp());
        command.args(["probe", "claude", "--bin"]).arg(self.agent()).args(arguments);
        command
    }

    fn left(&self) -> Vec<PathBuf> {
        fs::read_dir(self.temp()).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
    }
}

const REFUSES: &str = "echo 'No conversation found with session ID: x' >&2; exit 1";

fn probed(bench: &Bench, arguments: &[&str]) -> Output {
    let output = run(bench.probe(arguments).arg("--json"));
    assert!(bench.left().is_empty(), "{:?}", bench.left());
    output
}

#[test]
fn an_agent_that_always_refuses_differs_where_it_should_continue() {
    let bench = Bench::new("2.1.332", REFUSES);
    let output = probed(&bench, &["--cases", "content.complete,content.empty,twin.own_absent"]);
    assert_eq!(code(&output), 20, "{output:?}");
    let report = json_of(&output);
    let status = |name: &str| {
        let cases = report["cases"].as_array().expect("cases");
        let case = cases.iter().find(|case| case["name"] == name).expect("the case");
        case["status"].as_str().expect("a word").to_owned()
    };
    assert_eq!(status("content.complete"), "differ");
    assert_eq!(status("content.empty"), "agree");
    assert_eq!(status("twin.own_absent.one"), "differ");
    assert_eq!(status("twin.own_absent.two"), "agree");
    assert_eq!((report["version"].as_str(), report["observed"].as_bool()), (Some("2.1.332"), Some(true)));
    assert_eq!(report["agree"].as_u64().zip(report["differ"].as_u64()), Some((3, 4)));
    let text = run(&mut bench.probe(&["--cases", "content.empty"]));
    assert_eq!(code(&text), 0, "{text:?}");
    assert!(stdout(&text).contains("2 of 2 agree"), "{text:?}");
}

#[test]
fn a_version_that_nobody_observed_is_judged_by_the_nearest_rules_and_that_is_said() {
    let bench = Bench::new("2.1.300 (Claude Code)", REFUSES);
    let report = json_of(&probed(&bench, &["--cases", "content.empty"]));
    assert_eq!((report["rules"].as_str(), report["observed"].as_bool()), (Some("2.1.280"), Some(false)));
    let text = run(&mut bench.probe(&["--cases", "content.empty"]));
    assert!(stdout(&text).contains("the nearest that there are"), "{text:?}");
}

#[test]
fn rules_that_are_learnt_are_saved_and_used() {
    let bench = Bench::new("2.1.305", REFUSES);
    let rules = bench.dir.path().join("rules.json");
    let file = rules.to_str().expect("UTF-8");
    let output = probed(&bench, &["--cases", "twin.own_absent", "--save", file]);
    // By its own rules it never searches: only in its own folder it should have found something.
    let report = json_of(&output);
    assert_eq!((report["rules"].as_str(), report["observed"].as_bool()), (Some("2.1.305"), Some(true)));
    assert_eq!(report["learnt"]["searches"].as_bool(), Some(false));
    assert_eq!((code(&output), report["differ"].as_u64()), (0, Some(0)), "{output:?}");
    let ask = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        command.env_clear().env("HOME", bench.dir.path()).current_dir(bench.dir.path());
        command
            .args(["preflight", "--json", "--exit-zero", "--session", "11111111-1111-4111-8111-111111111111"])
            .args(more);
        json_of(&run(&mut command)).to_string()
    };
    let agent = bench.agent();
    let agent = agent.to_str().expect("UTF-8");
    assert!(ask(&["--bin", agent]).contains("version_not_observed"));
    let with_rules = ask(&["--bin", agent, "--rules", file]);
    assert!(
        !with_rules.contains("version_not_observed") && with_rules.contains("as observed on 2.1.305"),
        "{with_rules}"
    );
    // A second version stands beside the first.
    let other = Bench::new("2.1.306", REFUSES);
    assert_eq!(code(&probed(&other, &["--cases", "content.empty", "--save", file])), 0);
    let text = fs::read_to_string(&rules).expect("rules");
    assert!(text.contains("2.1.305") && text.contains("2.1.306"), "{text}");
}

#[test]
fn what_cannot_be_probed_is_said_with_the_next_step() {
    let mute = Bench::new("", REFUSES);
    let output = probed(&mute, &["--cases", "content.empty"]);
    assert_eq!((code(&output), json_of(&output)["error"]["class"].as_str()), (1, Some("agent")), "{output:?}");
    let bench = Bench::new("2.1.332", REFUSES);
    let output = probed(&bench, &["--cases", "no.such.case"]);
    assert_eq!(code(&output), 2, "{output:?}");
    assert!(stderr(&output).contains("--list"), "{output:?}");
    let mut nobody = Command::new(env!("CARGO_BIN_EXE_throughline"));
    let output = run(nobody.env_clear().env("PATH", bench.dir.path()).args(["probe", "claude"]));
    assert!(stderr(&output).contains("--bin"), "{output:?}");
    let listed = run(&mut bench.probe(&["--list"]));
    assert!(stdout(&listed).lines().count() >= 150);
}

#[test]
fn random_worlds_are_the_same_for_a_seed_and_a_differing_one_is_made_small() {
    let bench = Bench::new("2.1.332", REFUSES);
    let names = |output: &Output| {
        let report = json_of(output);
        let cases = report["cases"].as_array().expect("cases").clone();
        cases.iter().map(|case| (case["name"].to_string(), case["foretold"].to_string())).collect::<Vec<_>>()
    };
    let arguments = ["--cases", "content.empty", "--random", "12", "--seed", "7"];
    let output = probed(&bench, &arguments);
    assert_eq!(code(&output), 20, "{output:?}");
    let report = json_of(&output);
    let differing: Vec<_> =
        report["cases"].as_array().expect("cases").iter().filter(|case| case["status"] == "differ").collect();
    // Where it should have continued, one file is enough to see it.
    assert!(!differing.is_empty());
    for case in differing {
        let files = case["evidence"]["world"].as_array().expect("a world").len();
        assert_eq!(files, 1, "{case:#}");
    }
    assert_eq!(names(&output).len(), names(&probed(&bench, &arguments)).len());
}

/// Whether a process works below a folder.
fn is_inhabited(folder: &Path) -> bool {
    let entries = fs::read_dir("/proc").expect("a process table").flatten();
    entries.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok()).any(|cwd| cwd.starts_with(folder))
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_interrupted_probe_leaves_nothing_and_a_killed_one_leaves_it_to_the_next() {
    // Its child is in its process group no more.
    let bench = Bench::new("2.1.332", "setsid sleep 300 & sleep 300");
    let temp = fs::canonicalize(bench.temp()).expect("a folder");
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let mut probe = bench.probe(&["--cases", "content.complete"]);
        let mut child = probe.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        wait_until("the agent runs", || is_inhabited(&temp));
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
        rustix::process::kill_process(pid, signal).expect("it is there");
        let status = child.wait().expect("an end");
        assert!(!status.success());
        if signal == rustix::process::Signal::KILL {
            assert!(is_inhabited(&temp) && !bench.left().is_empty(), "nobody could tidy up");
            let quick = Bench::new("2.1.332", REFUSES);
            let mut next = quick.probe(&["--cases", "content.empty"]);
            assert_eq!(code(&run(next.env("TMPDIR", &temp))), 0);
        }
        wait_until("the processes are gone", || !is_inhabited(&temp));
        assert!(bench.left().is_empty(), "{:?}", bench.left());
    }
}

#[test]
fn a_program_that_is_no_agent_is_not_judged() {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, version, script) in [
        ("fails", "2.1.332", "exit 1"),
        ("other words", "2.1.332", "echo 'unknown option' >&2; exit 2"),
        ("no version", "cat (GNU coreutils) 9.1", REFUSES),
        ("no answer", "", REFUSES),
    ] {
        let bench = Bench::new(version, script);
        let output = run(bench.probe(&["--cases", "content.empty"]).env("XDG_CACHE_HOME", dir.path()));
        assert_eq!(code(&output), 1, "{name}: {output:?}");
        assert!(stdout(&output).is_empty(), "{name}: {output:?}");
        assert!(bench.left().is_empty(), "{name}");
    }
}

#[test]
fn a_program_that_talks_without_end_does_not_fill_the_memory() {
    let bench = Bench::new(
        "2.1.332",
        "echo 'No conversation found with session ID: x' >&2; head -c 300000000 /dev/zero; exit 1",
    );
    let output = probed(&bench, &["--cases", "content.empty"]);
    assert_eq!(code(&output), 0, "{output:?}");
}

#[test]
fn rules_are_only_saved_where_rules_can_be() {
    let bench = Bench::new("2.1.332", REFUSES);
    let at = |name: &str| bench.dir.path().join(name);
    fs::write(at("other.json"), "{\"garbage\":1}").expect("a file");
    fs::create_dir(at("folder")).expect("a folder");
    run(Command::new("mkfifo").arg(at("pipe")));
    std::os::unix::fs::symlink(at("nowhere"), at("dangling")).expect("a link");
    for name in ["other.json", "folder", "pipe", "dangling", "none/rules.json"] {
        let output = run(bench.probe(&["--cases", "content.empty", "--save"]).arg(at(name)));
        assert_eq!(code(&output), 1, "{name}: {output:?}");
        assert!(stderr(&output).contains("; "), "{name} has no next step: {output:?}");
    }
    let kept = fs::read_to_string(at("other.json")).expect("the file");
    assert_eq!(kept, "{\"garbage\":1}");
    let pipe = fs::symlink_metadata(at("pipe")).expect("the pipe");
    assert!(!pipe.is_file(), "it is still a pipe");
}

#[test]
fn a_cache_that_is_a_pipe_is_passed_over() {
    let bench = Bench::new("2.1.332", REFUSES);
    let cache = bench.dir.path().join("cache/throughline");
    fs::create_dir_all(&cache).expect("a folder");
    run(Command::new("mkfifo").arg(cache.join("versions.json")));
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", bench.dir.path());
    command.env("XDG_CACHE_HOME", bench.dir.path().join("cache")).args(["preflight", "--session", "x", "--bin"]);
    let output = run(command.arg(bench.agent()));
    assert_eq!(code(&output), 11, "{output:?}");
}
