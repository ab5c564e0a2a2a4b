//! Eight processes that begin at once on one log: nothing is lost, doubled or out of order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use throughline::log::{Append, Expectation};

use crate::log_support::{self, Place, append, dense, entry, fresh, labelled, sound};

const PLACE: &str = "THROUGHLINE_TEST_MANY";
const WHO: &str = "THROUGHLINE_TEST_WHO";
const STOCK: &str = "stock";
const PROCESSES: u64 = 8;
const EVENTS: u64 = 2_000;

/// Waits until a file is there.
fn wait_for(path: &Path) {
    while !path.try_exists().unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Not a test by itself: one of the processes.
#[test]
fn one_of_many_writers() {
    let (Ok(path), Ok(who)) = (std::env::var(PLACE), std::env::var(WHO)) else { return };
    let path = PathBuf::from(path);
    let (kind, who) = who.split_once(' ').unwrap();
    if kind == STOCK {
        let conn = raw(&path);
        write_all(&path, |number| {
            conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            conn.execute("INSERT INTO events (who, number) VALUES (?, ?)", (who, number.cast_signed())).unwrap();
            conn.execute_batch("COMMIT").unwrap();
        });
    } else {
        let log = log_support::writer(&path).unwrap();
        write_all(&path, |number| {
            let stream = if number % 2 == 0 { "agent/shared".to_owned() } else { format!("agent/{who}") };
            let entry = entry(&stream, Expectation::Any, vec![fresh(&format!("{who} {number}"))]);
            append(&log, &[entry], &Append::at(1)).unwrap();
        });
    }
}

/// SQLite as it is, with its own wait.
fn raw(path: &Path) -> rusqlite::Connection {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.busy_timeout(Duration::from_secs(120)).unwrap();
    conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0").unwrap();
    conn
}

fn write_all(path: &Path, mut write: impl FnMut(u64)) {
    println!("ready");
    wait_for(&path.with_file_name("begin"));
    let mut longest = Duration::ZERO;
    for number in 0..EVENTS {
        let began = Instant::now();
        write(number);
        longest = longest.max(began.elapsed());
    }
    println!("longest {}", longest.as_millis());
}

/// Starts all of them at once and waits for them; says how it went, with `count` asked when the first is done.
fn together(kind: &str, path: &Path, count: impl FnOnce() -> BTreeMap<String, u64>) -> String {
    let start = |who: u64| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "log_many::one_of_many_writers"])
            .env(PLACE, path)
            .env(WHO, format!("{kind} w{who}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<_> = (0..PROCESSES).map(start).collect();
    let mut outputs: Vec<_> =
        children.iter_mut().map(|child| std::io::BufReader::new(child.stdout.take().unwrap())).collect();
    for output in &mut outputs {
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert_ne!(std::io::BufRead::read_line(output, &mut line).unwrap(), 0, "a writer did not begin");
        }
    }
    let began = Instant::now();
    std::fs::write(path.with_file_name("begin"), "").unwrap();
    while !children.iter_mut().any(|child| child.try_wait().unwrap().is_some()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let so_far = count();
    let commits = (0..PROCESSES).map(|who| so_far.get(&format!("w{who}")).copied().unwrap_or(0));
    let (most, least) = (commits.clone().max().unwrap(), commits.min().unwrap());
    let mut longest = 0;
    for (child, output) in children.iter_mut().zip(outputs) {
        assert!(child.wait().unwrap().success());
        let text = std::io::read_to_string(output).unwrap();
        let waited = text.lines().find_map(|line| line.split_once("longest ")).unwrap().1;
        longest = longest.max(waited.parse::<u64>().unwrap());
    }
    let took = began.elapsed().as_millis();
    format!("{kind}: {took} ms, longest wait {longest} ms, {most} and {least} commits when the first was done")
}

#[test]
fn eight_processes_append_to_one_log_and_nothing_is_lost() {
    let place = Place::new();
    drop(place.log());
    let reader = log_support::reader(&place.path()).unwrap();
    let counts =
        || by_process(&labelled(&reader).unwrap()).into_iter().map(|(who, all)| (who, all.len() as u64)).collect();
    let ours = together("ours", &place.path(), counts);
    let events = labelled(&reader).unwrap();
    assert_eq!(events.len() as u64, PROCESSES * EVENTS);
    assert!(dense(&events));
    let by_process = by_process(&events);
    assert_eq!(by_process.len() as u64, PROCESSES);
    assert!(by_process.values().all(|numbers| numbers.iter().copied().eq(0..EVENTS)), "each in its own order, once");
    sound(&reader, None).unwrap();
    // The same beside it on SQLite alone: figures for people, nothing is asserted of them.
    let beside = Place::new();
    let conn = raw(&beside.path());
    conn.query_row("PRAGMA journal_mode = wal", [], |_| Ok(())).unwrap();
    let sql = "CREATE TABLE events (seq INTEGER PRIMARY KEY, who TEXT, number INTEGER, UNIQUE (who, number)) STRICT";
    conn.execute_batch(sql).unwrap();
    let counts = || {
        let mut statement = conn.prepare("SELECT who, count(*) FROM events GROUP BY who").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let stock = together(STOCK, &beside.path(), counts);
    println!("{PROCESSES} processes, {EVENTS} events each:\n  {ours}\n  {stock}");
}

/// The numbers of each process's events in log order.
fn by_process(events: &[log_support::Labelled]) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for event in events {
        let (who, number) = event.label.split_once(' ').unwrap();
        found.entry(who.to_owned()).or_default().push(number.parse().unwrap());
    }
    found
}
