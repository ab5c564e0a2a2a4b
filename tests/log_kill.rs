//! Several processes on one log, some of them killed: what was acknowledged is there.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use throughline::log::Records as _;

use crate::log_support::{Log, Place, Reader, blank, fresh, problems, put, stream};

const PLACE: &str = "THROUGHLINE_TEST_LOG";

/// Not a test by itself: the writer that [`a_killed_writer_loses_nothing_that_it_acknowledged`] starts and kills.
#[test]
fn the_writer_that_is_killed() {
    let Ok(path) = std::env::var(PLACE) else { return };
    let log = Log::open(path.as_ref(), &throughline::log::Opening::default()).unwrap();
    for number in 0.. {
        let done = put(&log, "agent/shared", vec![blank(), fresh(&format!("p{number}"))]);
        println!("acknowledged {}", done.anchor);
    }
}

fn writer(place: &Place) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "log_kill::the_writer_that_is_killed"])
        .env(PLACE, place.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_writer_loses_nothing_that_it_acknowledged() {
    let place = Place::new();
    drop(place.log());
    for round in 0..4 {
        let mut writers = [writer(&place), writer(&place)];
        let mut acknowledged = Vec::new();
        let first = BufReader::new(writers[0].stdout.take().unwrap());
        for line in first.lines().map(Result::unwrap) {
            if let Some((_, anchor)) = line.split_once("acknowledged ") {
                acknowledged.push(anchor.parse().unwrap());
            }
            if acknowledged.len() == 5 + 7 * round {
                break;
            }
        }
        for writer in &mut writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        let reader = Reader::open(&place.path()).unwrap();
        for anchor in acknowledged {
            assert!(problems(&reader, Some(anchor)).is_empty(), "{anchor}");
        }
        let (frontier, tally) = reader.state(&stream("agent/shared")).unwrap();
        assert_eq!((frontier.version.0 % 2, tally.events), (0, frontier.version.0), "both events of a commit, or none");
    }
    let log = place.log();
    put(&log, "agent/shared", vec![blank()]);
    assert!(problems(&log, None).is_empty());
}
