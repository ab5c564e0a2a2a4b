//! Eight processes that begin at once on one log: nothing is lost, doubled or out of order.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use throughline::log::{Append, Expectation};

use crate::log_support::{self, Place, append, dense, entry, fresh, labelled, sound};

const PLACE: &str = "THROUGHLINE_TEST_MANY";
const WHO: &str = "THROUGHLINE_TEST_WHO";
const PROCESSES: u64 = 8;
const EVENTS: u64 = 2_000;

/// Waits until a file is there.
fn wait_for(path: &std::path::Path) {
    while !path.try_exists().unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Not a test by itself: one of the processes.
#[test]
fn one_of_many_writers() {
    let (Ok(path), Ok(who)) = (std::env::var(PLACE), std::env::var(WHO)) else { return };
    let path = std::path::PathBuf::from(path);
    let log = log_support::writer(&path).unwrap();
    println!("ready");
    wait_for(&path.with_file_name("begin"));
    let mut longest = Duration::ZERO;
    for number in 0..EVENTS {
        let stream = if number % 2 == 0 { "agent/shared".to_owned() } else { format!("agent/{who}") };
        let entry = entry(&stream, Expectation::Any, vec![fresh(&format!("{who} {number}"))]);
        let began = Instant::now();
        append(&log, &[entry], &Append::at(1)).unwrap();
        longest = longest.max(began.elapsed());
    }
    println!("longest {}", longest.as_millis());
}

#[test]
fn eight_processes_append_to_one_log_and_nothing_is_lost() {
    let place = Place::new();
    drop(place.log());
    let start = |who: u64| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "log_many::one_of_many_writers"])
            .env(PLACE, place.path())
            .env(WHO, format!("w{who}"))
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
    std::fs::write(place.dir.path().join("begin"), "").unwrap();
    while !children.iter_mut().any(|child| child.try_wait().unwrap().is_some()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let reader = log_support::reader(&place.path()).unwrap();
    let so_far = by_process(&labelled(&reader).unwrap());
    let commits = (0..PROCESSES).map(|who| so_far.get(&format!("w{who}")).map_or(0, Vec::len));
    let (most, least) = (commits.clone().max().unwrap(), commits.min().unwrap());
    let mut longest = 0;
    for (child, output) in children.iter_mut().zip(outputs) {
        assert!(child.wait().unwrap().success());
        let text = std::io::read_to_string(output).unwrap();
        let waited = text.lines().find_map(|line| line.split_once("longest ")).unwrap().1;
        longest = longest.max(waited.parse::<u64>().unwrap());
    }
    let took = began.elapsed();
    let events = labelled(&reader).unwrap();
    assert_eq!(events.len() as u64, PROCESSES * EVENTS);
    assert!(dense(&events));
    let by_process = by_process(&events);
    assert_eq!(by_process.len() as u64, PROCESSES);
    assert!(by_process.values().all(|numbers| numbers.iter().copied().eq(0..EVENTS)), "each in its own order, once");
    sound(&reader, None).unwrap();
    println!(
        "{PROCESSES} processes, {EVENTS} events each: {} ms, longest wait {longest} ms, {most} and {least} commits when the \
         first was done",
        took.as_millis()
    );
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
