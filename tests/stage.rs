//! A pretended agent under the command: what the tests of spawning are told in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::cli::{code, json_of, run, run_with, stdout};
use crate::support::World;

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

/// A world with such an agent, and a log.
pub struct Stage {
    pub world: World,
}

impl Stage {
    pub fn new() -> Self {
        let stage = Self { world: World::new() };
        let agent = stage.agent();
        fs::write(&agent, AGENT).expect("a script");
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("a mode");
        stage.world.identity("login", "one");
        stage
    }

    pub fn agent(&self) -> PathBuf {
        self.world.path("agent")
    }

    pub fn throughline(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.world.path("")).env("THROUGHLINE_LOG", self.world.path("log.db"));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub fn question<'a>(&self, verb: &'a str, login: &str, more: &[&'a str]) -> Vec<String> {
        let (login, work) = (self.world.text(login), self.world.text("work"));
        let mut arguments: Vec<String> =
            [verb, "--agent", "a", "--provider-version", "2.1.332", "--config-dir", &login, "--cwd", &work]
                .iter()
                .map(|it| (*it).to_owned())
                .collect();
        arguments.extend(more.iter().map(|it| (*it).to_owned()));
        arguments
    }

    pub fn preflight(&self, login: &str, more: &[&str]) -> Value {
        let mut command = self.throughline(&["--json"]);
        json_of(&run(command.args(self.question("preflight", login, more))))
    }

    /// A spawn of the pretended agent, with its report.
    pub fn spawn(&self, login: &str, more: &[&str]) -> (Output, Option<Value>) {
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
    pub fn spawned(&self, login: &str, more: &[&str]) -> String {
        let (output, report) = self.spawn(login, more);
        assert_eq!(code(&output), 0, "{output:?}");
        let report = report.expect("a report");
        report["attempts"][0]["session"].as_str().expect("a session").to_owned()
    }

    pub fn kinds(&self) -> Vec<String> {
        let output = run(&mut self.throughline(&["export"]));
        let lines = stdout(&output);
        let values = lines.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("a line"));
        values.map(|value| value["kind"].as_str().expect("a kind").to_owned()).collect()
    }

    /// What the log knows of the agent.
    pub fn state(&self) -> Value {
        let output = run(&mut self.throughline(&["--json", "show", "--agent", "a"]));
        json_of(&output)["state"].clone()
    }

    /// Where its conversation is.
    pub fn head(&self) -> Value {
        self.state()["head"]["at"].clone()
    }

    pub fn argv(&self) -> Vec<String> {
        fs::read_to_string(self.world.path("argv")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Another login of the same identity.
    pub fn second_login(&self) {
        fs::create_dir(self.world.path("second")).expect("a folder");
        self.world.identity("second", "one");
    }

    /// The pid that the last `launched` event names.
    pub fn launched(&self) -> Option<String> {
        let output = run(&mut self.throughline(&["export"]));
        let lines = stdout(&output);
        let values = lines.lines().skip(1).filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let last = values.filter(|value| value["kind"] == "launched").last()?;
        last["body"]["pid"].as_u64().map(|pid| pid.to_string())
    }

    /// Appends hand-written events of agent `a`; they must be legal.
    pub fn append(&self, events: &[(&str, Value)]) {
        let lines = events
            .iter()
            .map(|(kind, body)| format!("{}\n", serde_json::json!({"stream": "agent/a", "kind": kind, "body": body})));
        let output = run_with(self.throughline(&["append"]).stdin(Stdio::piped()), &lines.collect::<String>());
        assert_eq!(code(&output), 0, "{output:?}");
    }
}
