//! `follow` as a process beside others that append, checkpoint, replace and lock the log.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline::chain::fold::State;
use throughline::log::{Opening, SqliteLog};

use crate::cli::{code, json_of, run, run_with, stderr, stdout, throughline};
use crate::cli_history::told;
use crate::support::World;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A follower, and what it printed.
struct Follower {
    child: Child,
    out: Receiver<String>,
    said: Receiver<String>,
}

impl Follower {
    fn start(world: &World, words: &str) -> Self {
        let mut command = throughline(world);
        command.arg("follow").args(words.split_whitespace()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let out = lines_of(child.stdout.take().expect("stdout"));
        let said = lines_of(child.stderr.take().expect("stderr"));
        Self { child, out, said }
    }

    fn line(&self) -> String {
        self.out.recv_timeout(LONG).expect("a line in time")
    }

    fn seq(&self) -> u64 {
        let event: Value = serde_json::from_str(&self.line()).expect("an object a line");
        event["seq"].as_u64().expect("a seq")
    }

    /// Its exit code, and what it printed after the last line that was taken.
    fn end(mut self) -> (i32, Vec<String>, Vec<String>) {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None if begun.elapsed() > LONG => panic!("it does not end"),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        (status.code().expect("no signal"), rest(&self.out), rest(&self.said))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            if sender.send(line.expect("UTF-8")).is_err() {
                break;
            }
        }
    });
    receiver
}

fn rest(lines: &Receiver<String>) -> Vec<String> {
    let mut rest = Vec::new();
    loop {
        match lines.recv_timeout(LONG) {
            Ok(line) => rest.push(line),
            Err(RecvTimeoutError::Disconnected) => return rest,
            Err(RecvTimeoutError::Timeout) => panic!("its end is not closed"),
        }
    }
}

/// Another process appends one event.
fn append(world: &World, stream: &str, pane: &str) {
    let line = json!({"stream": stream, "kind": "fresh_intended", "body": {"pane": pane}}).to_string();
    let output = run_with(throughline(world).arg("append"), &line);
    assert_eq!(code(&output), 0, "{output:?}");
}

/// The last connection of a program that knows nothing of this log's habits takes the WAL away.
fn without_wal(world: &World) {
    let raw = rusqlite::Connection::open(world.path("log.db")).expect("SQLite");
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
    drop(raw);
    assert!(!world.path("log.db-wal").exists());
}

fn log(world: &World, words: &str) -> Vec<String> {
    let output = run(throughline(world).arg("log").args(words.split_whitespace()));
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn events_of_other_processes_are_printed_as_log_prints_them() {
    let world = World::new();
    told(&world);
    let (lines, objects, agent) = (
        Follower::start(&world, "-n 2"),
        Follower::start(&world, "--json --from 12"),
        Follower::start(&world, "--agent b --kind fresh_intended --kind resume_rejected -n 1"),
    );
    let begun = [vec![lines.line(), lines.line()], vec![objects.line()], vec![agent.line()]];
    append(&world, "agent/a", "one");
    append(&world, "agent/b", "two");
    let all = [
        [&begun[0][..], &[lines.line(), lines.line()]].concat(),
        [&begun[1][..], &[objects.line(), objects.line()]].concat(),
        [&begun[2][..], &[agent.line()]].concat(),
    ];
    assert_eq!(all[0], log(&world, "--from 11"));
    assert_eq!(all[1], log(&world, "--from 12 --json"));
    assert_eq!(all[2], [log(&world, "--from 9 --at 9"), log(&world, "--from 14")].concat());
}

#[test]
fn from_now_on_is_the_default_and_time_ends_it() {
    let world = World::new();
    told(&world);
    let follower = Follower::start(&world, "--until-idle 20");
    assert_eq!(follower.end(), (0, vec![], vec![]));
    for words in ["--from 1 --until-idle 0", "-n 99 --for 0"] {
        assert_eq!(Follower::start(&world, words).end(), (0, log(&world, ""), vec![]), "{words}");
    }
    let few = Follower::start(&world, "--from 1 --until-idle 0 --agent b");
    assert_eq!(few.end(), (0, log(&world, "--agent b"), vec![]));
    let (code, lines, said) = Follower::start(&world, "--agent nobody --from 99 --for 1").end();
    assert_eq!((code, lines), (0, vec![]));
    let expected = ["agent nobody has no event yet", "the log ends at 12; waiting for event 99"];
    assert_eq!(said, expected.map(|text| format!("throughline: {text}")));
}

#[test]
fn whoever_remembers_the_last_one_seen_misses_nothing_and_sees_nothing_twice_while_four_append() {
    const EACH: u64 = 12;
    let world = World::new();
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        append(&world, "agent/w0", "first");
        for writer in 0..4 {
            let world = &world;
            scope.spawn(move || (0..EACH).for_each(|_| append(world, &format!("agent/w{writer}"), "p")));
        }
        while (seen.len() as u64) < 4 * EACH + 1 {
            let next = seen.last().map_or(1, |last| last + 1);
            let follower = Follower::start(&world, &format!("--json --from {next}"));
            let most = (seen.len() + 9).min(4 * EACH as usize + 1);
            while seen.len() < most {
                seen.push(follower.seq());
            }
        }
    });
    assert_eq!(seen, (1..=4 * EACH + 1).collect::<Vec<_>>());
}

#[test]
fn checkpoints_and_a_wal_that_begins_anew_are_not_noticed() {
    let world = World::new();
    told(&world);
    let follower = Follower::start(&world, "--json --from 12");
    assert_eq!(follower.seq(), 12);
    append(&world, "agent/a", "one");
    assert_eq!(follower.seq(), 13);
    SqliteLog::<State>::open(&world.path("log.db"), &Opening::default())
        .expect("it opens")
        .checkpoint()
        .expect("copied");
    append(&world, "agent/a", "two");
    assert_eq!(follower.seq(), 14);
    let raw = rusqlite::Connection::open(world.path("log.db")).expect("SQLite");
    raw.busy_timeout(LONG).expect("set");
    let busy: i64 = raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).expect("a checkpoint");
    assert_eq!((busy, std::fs::metadata(world.path("log.db-wal")).expect("a WAL").len()), (0, 0));
    drop(raw);
    append(&world, "agent/a", "three");
    assert_eq!(follower.seq(), 15);
}

/// It is read as a file that does not change, until it does.
#[test]
fn a_log_without_a_wal_is_followed_into_its_next_one() {
    let world = World::new();
    told(&world);
    without_wal(&world);
    let follower = Follower::start(&world, "--json --from 12");
    assert_eq!(follower.seq(), 12);
    append(&world, "agent/a", "one");
    append(&world, "agent/a", "two");
    assert_eq!((follower.seq(), follower.seq()), (13, 14));
}

#[test]
fn a_reader_that_goes_ends_it_quietly_even_when_nothing_happens() {
    let world = World::new();
    told(&world);
    for words in ["follow --from 12", "follow", "follow --agent b --from 1", "log", "show 5"] {
        let mut command = throughline(&world);
        command.args(words.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        drop(child.stdout.take());
        let said = lines_of(child.stderr.take().expect("stderr"));
        let (_sender, out) = mpsc::channel();
        drop(_sender);
        assert_eq!(Follower { child, out, said }.end(), (0, vec![], vec![]), "{words}");
    }
}

#[test]
fn a_log_that_is_not_there_is_an_error_or_waited_for() {
    let world = World::new();
    let output = run(throughline(&world).args(["follow", "--json"]));
    assert_eq!((code(&output), &json_of(&output)["error"]["class"]), (1, &json!("no_log")));
    assert!(stderr(&output).contains("--wait"), "{}", stderr(&output));
    assert_eq!(Follower::start(&world, "--wait --for 1").end().0, 0);
    assert!(!world.path("log.db").exists(), "a reader never creates a log");
    let follower = Follower::start(&world, "--wait --json");
    let waits = follower.said.recv_timeout(LONG).expect("a word");
    assert!(waits.contains("waiting for a log at"), "{waits}");
    // What a creation that was cut off leaves.
    std::fs::write(world.path("log.db"), b"").expect("a file");
    // All of it comes from now on, also what was in it when it came.
    let other = World::new();
    told(&other);
    without_wal(&other);
    std::fs::rename(other.path("log.db"), world.path("log.db")).expect("put there");
    append(&world, "agent/a", "one");
    assert_eq!((1..=13).map(|_| follower.seq()).collect::<Vec<_>>(), (1..=13).collect::<Vec<_>>());
}

#[test]
fn another_file_under_the_name_of_the_log_is_not_followed_in_silence() {
    let world = World::new();
    told(&world);
    let other = world.path("other.db");
    assert_eq!(code(&run_with(throughline(&world).args(["append", "--log"]).arg(&other), "")), 0);
    for is_replaced in [false, true] {
        let follower = Follower::start(&world, "--json -n 1");
        assert_eq!(follower.seq(), 12);
        let (log, kept) = (world.path("log.db"), world.path("kept.db"));
        if is_replaced {
            std::fs::rename(&other, &log).expect("put over it");
        } else {
            std::fs::rename(&log, &kept).expect("moved away");
        }
        let (code, lines, said) = follower.end();
        assert_eq!((code, lines.len()), (1, 1), "{lines:?}");
        assert!(lines[0].contains("\"replaced\"") && said[0].contains("; follow the one"), "{said:?}");
        if !is_replaced {
            std::fs::rename(&kept, &log).expect("moved back");
        }
    }
}

#[test]
fn a_lock_is_waited_out_with_a_word() {
    let world = World::new();
    told(&world);
    // Under a rollback journal a writer keeps readers out.
    let raw = rusqlite::Connection::open(world.path("log.db")).expect("SQLite");
    raw.query_row("PRAGMA journal_mode = delete", [], |_| Ok(())).expect("another journal");
    let follower = Follower::start(&world, "--json -n 1");
    assert_eq!(follower.seq(), 12);
    raw.busy_timeout(LONG).expect("set");
    raw.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    let said = follower.said.recv_timeout(LONG).expect("a word");
    assert!(said.contains("locked by another process") && said.ends_with("; trying again"), "{said}");
    raw.execute_batch("ROLLBACK").expect("unlocked");
    drop(raw);
    append(&world, "agent/a", "one");
    assert_eq!(follower.seq(), 13);
}
