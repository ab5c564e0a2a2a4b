//! Writers in line: who waits, for how long, and what a dead, stopped or forked one does to the others.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use throughline::log::{Append, AppendError, Class, Expectation, Import, Log as _, Mode, Opening, Records as _};

use crate::log_support::{Log, Place, blank, entry, problems, put, stream};

const PLACE: &str = "THROUGHLINE_TEST_GATE";

/// Not a test by itself: the writer that stays inside its transaction until its input ends.
#[test]
fn the_writer_that_stays_inside() {
    let Ok(path) = std::env::var(PLACE) else { return };
    let log = Log::open(path.as_ref(), &Opening::default()).unwrap();
    let import = Import { mode: Mode::Unverified, at_ms: 1 };
    log.import(&mut BufReader::with_capacity(1, std::io::stdin()), &import, &mut |line| println!("line {line}"))
        .unwrap();
}

/// Starts it, and waits until it is inside.
fn inside(place: &Place) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "log_gate::the_writer_that_stays_inside"])
        .env(PLACE, place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = br#"{"stream":"agent/held","kind":"fresh_intended","body":{}}"#;
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(&[line.as_slice(), b"\n"].concat()).unwrap();
    stdin.flush().unwrap();
    let stdout = BufReader::new(child.stdout.as_mut().unwrap());
    assert!(stdout.lines().map(Result::unwrap).any(|line| line.contains("line 1")));
    child
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

fn impatient(place: &Place, busy_ms: u64) -> Log {
    Log::open(&place.path(), &Opening { busy_ms, ..Opening::default() }).unwrap()
}

fn tried(log: &Log) -> (Result<(), AppendError>, Duration) {
    let began = Instant::now();
    let result = log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1));
    (result.map(drop), began.elapsed())
}

#[test]
fn a_stopped_writer_makes_the_others_busy_and_a_dead_one_lets_them_through() {
    let place = Place::new();
    drop(place.log());
    let log = impatient(&place, 300);
    let mut holder = inside(&place);
    signal(&holder, "-STOP");
    for _ in 0..3 {
        let (result, took) = tried(&log);
        assert!(matches!(&result, Err(AppendError::Log(error)) if error.class() == Class::Busy), "{result:?}");
        assert!(took >= Duration::from_millis(290) && took < Duration::from_secs(5), "{took:?}");
    }
    // Reading needs no turn.
    assert_eq!(log.anchor().unwrap().seq.0, 0);
    signal(&holder, "-KILL");
    holder.wait().unwrap();
    let patient = impatient(&place, 20_000);
    tried(&log).0.or_else(|_| tried(&patient).0).unwrap();
    tried(&patient).0.unwrap();
    assert!(problems(&log, None).is_empty());
    assert_eq!(log.frontier(&stream("agent/held")).unwrap().version.0, 0);
}

#[test]
fn a_writer_that_was_stopped_goes_on_where_it_was() {
    let place = Place::new();
    drop(place.log());
    let log = impatient(&place, 100);
    let mut holder = inside(&place);
    signal(&holder, "-STOP");
    assert!(tried(&log).0.is_err());
    signal(&holder, "-CONT");
    drop(holder.stdin.take());
    let mut rest = String::new();
    holder.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert!(holder.wait().unwrap().success(), "{rest}");
    tried(&impatient(&place, 20_000)).0.unwrap();
    // The one that gave up stood in line all the time, and is not in the way now.
    tried(&log).0.unwrap();
    assert_eq!(log.anchor().unwrap().seq.0, 3);
    assert!(problems(&log, None).is_empty());
}

#[test]
fn no_wait_and_any_wait_are_waits() {
    let place = Place::new();
    for busy_ms in [0, u64::MAX] {
        tried(&impatient(&place, busy_ms)).0.unwrap();
    }
    let mut holder = inside(&place);
    let (result, took) = tried(&impatient(&place, 0));
    assert!(matches!(&result, Err(AppendError::Log(error)) if error.class() == Class::Busy), "{result:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn handles_of_one_process_take_turns() {
    let place = Place::new();
    drop(place.log());
    let path = place.path();
    let begin = std::sync::Barrier::new(3);
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let writer = |number: usize| {
            let (path, begin) = (&path, &begin);
            move || {
                let log = Log::open(path, &Opening { busy_ms: 20_000, ..Opening::default() }).unwrap();
                begin.wait();
                let until = Instant::now() + Duration::from_millis(600);
                let mut count = 0;
                while Instant::now() < until {
                    put(&log, &format!("agent/{number}"), vec![blank()]);
                    count += 1;
                }
                count
            }
        };
        let threads: Vec<_> = (0..3).map(|number| scope.spawn(writer(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(counts.iter().all(|count| *count > 0), "somebody starved: {counts:?}");
    let log = place.log();
    assert_eq!(log.anchor().unwrap().seq.0, counts.iter().sum::<usize>() as u64);
    assert!(problems(&log, None).is_empty());
}

#[test]
fn a_writer_that_goes_away_in_its_turn_leaves_the_gate() {
    let place = Place::new();
    drop(place.log());
    let [first, second] = [0, 1].map(|_| impatient(&place, 20_000));
    std::thread::scope(|scope| {
        // Both have met another, so that each keeps the gate for its turn.
        let path = place.path();
        let other = scope.spawn(move || {
            let log = Log::open(&path, &Opening { busy_ms: 20_000, ..Opening::default() }).unwrap();
            (0..50).for_each(|_| drop(put(&log, "agent/other", vec![blank()])));
        });
        (0..50).for_each(|_| drop(put(&first, "agent/first", vec![blank()])));
        drop(first);
        (0..50).for_each(|_| drop(put(&second, "agent/second", vec![blank()])));
        other.join().unwrap();
    });
    assert_eq!(second.anchor().unwrap().seq.0, 150);
}

#[test]
fn without_its_lock_files_a_log_is_written_all_the_same() {
    let place = Place::new();
    drop(place.log());
    for name in ["log.db-queue", "log.db-gate"] {
        let path = place.dir.path().join(name);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
    }
    let log = place.log();
    put(&log, "agent/a", vec![blank()]);
    let mut holder = inside(&place);
    let (result, took) = tried(&impatient(&place, 200));
    assert!(matches!(&result, Err(AppendError::Log(error)) if error.class() == Class::Busy), "{result:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn a_handle_that_a_fork_carried_away_refuses_and_takes_nothing_with_it() {
    let place = Place::new();
    let log = place.log();
    put(&log, "agent/a", vec![blank()]);
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            let refused = matches!(tried(&log).0, Err(AppendError::Log(throughline::log::LogError::Forked)))
                && matches!(log.anchor(), Err(throughline::log::LogError::Forked));
            drop(log);
            std::process::exit(if refused { 0 } else { 1 });
        }
        fork::Fork::Parent(child) => {
            let status = fork::waitpid(child).unwrap();
            assert_eq!(status, 0, "the child could write or read through its parent's handle");
        }
    }
    // Its locks are still there: the shell that comes now is not the last one, and must not remove the WAL.
    put(&log, "agent/a", vec![blank()]);
    let shell = rusqlite::Connection::open(place.path()).unwrap();
    shell.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(shell);
    put(&log, "agent/a", vec![blank()]);
    assert_eq!(place.log().anchor().unwrap().seq.0, 3);
    assert!(problems(&log, None).is_empty());
}
