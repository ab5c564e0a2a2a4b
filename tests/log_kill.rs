//! Several processes on one log, some of them killed: what was acknowledged is there.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use throughline::id::{Anchor, IdempotencyKey};
use throughline::log::{Append, Entry, Expectation, Records as _};

use crate::log_support::{
    self, Dice, Log, Place, Reader, append, blank, dense, entry, fresh, labelled, problems, put, sound, stream,
};

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

const WHO: &str = "THROUGHLINE_TEST_WHO";

/// What a writer appends as its so-many-th: one to five events on two streams, every third time with a key.
fn mixed(who: &str, number: u64) -> (Vec<Entry>, Append) {
    let events = |from: u64, to: u64| (from..to).map(|event| fresh(&format!("{who} {number} {event}"))).collect();
    let (count, other) = (1 + number % 5, ["agent/a", "agent/b", "agent/c"][(number % 3) as usize]);
    let own = entry(&format!("agent/{who}"), Expectation::Any, events(0, count / 2));
    let entries = vec![own, entry(other, Expectation::Any, events(count / 2, count))];
    let key = number.is_multiple_of(3).then(|| IdempotencyKey::parse(format!("{who} {number}")).unwrap());
    (entries, Append { key, ..Append::at(1) })
}

/// Not a test by itself: one of the writers that [`five_hundred_kills_lose_nothing_that_was_acknowledged`] kills.
#[test]
fn one_of_the_writers_that_are_killed() {
    let (Ok(path), Ok(who)) = (std::env::var(PLACE), std::env::var(WHO)) else { return };
    let log = log_support::writer(path.as_ref()).unwrap();
    for number in 0.. {
        let (entries, how) = mixed(&who, number);
        let done = append(&log, &entries, &how).unwrap();
        println!("acknowledged {number} {} {}", done.first.unwrap(), done.anchor);
    }
}

/// Kills one writer at a random moment after it was acknowledged something; gives all that it was acknowledged.
fn killed(place: &Place, who: &str, dice: &mut Dice) -> Vec<(u64, u64, Anchor)> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "log_kill::one_of_the_writers_that_are_killed"])
        .env(PLACE, place.path())
        .env(WHO, who)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut acknowledged = Vec::new();
    let mut hear = |line: String| {
        let Some((_, words)) = line.split_once("acknowledged ") else { return false };
        let [number, first, anchor] = *words.split(' ').collect::<Vec<_>>().as_slice() else { return false };
        // The last line may be cut off; every other one is whole.
        let Ok(anchor) = anchor.parse() else { return false };
        acknowledged.push((number.parse().unwrap(), first.parse().unwrap(), anchor));
        true
    };
    let mut wanted = 1 + dice.below(8);
    while wanted > 0 {
        wanted -= u64::from(hear(lines.next().unwrap()));
    }
    std::thread::sleep(Duration::from_micros(dice.below(5_000)));
    writer.kill().unwrap();
    writer.wait().unwrap();
    lines.for_each(|line| {
        hear(line);
    });
    acknowledged
}

#[test]
fn five_hundred_kills_lose_nothing_that_was_acknowledged() {
    const WRITERS: usize = 4;
    const KILLS: usize = 125;
    let place = Place::new();
    drop(place.log());
    let acknowledged: Vec<(String, u64, u64, Anchor)> = std::thread::scope(|scope| {
        let kill = |writer: usize| {
            let place = &place;
            scope.spawn(move || {
                let mut dice = Dice(writer as u64);
                let mut acknowledged = Vec::new();
                for round in 0..KILLS {
                    let who = format!("w{writer}r{round}");
                    let done = killed(place, &who, &mut dice).into_iter();
                    acknowledged.extend(done.map(|(number, first, anchor)| (who.clone(), number, first, anchor)));
                }
                acknowledged
            })
        };
        let threads: Vec<_> = (0..WRITERS).map(kill).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let reader = log_support::reader(&place.path()).unwrap();
    let events = labelled(&reader).unwrap();
    assert!(dense(&events));
    let mut appends: BTreeMap<(&str, u64), Vec<(u64, &str)>> = BTreeMap::new();
    for event in &events {
        let [who, number, place] = *event.label.split(' ').collect::<Vec<_>>().as_slice() else {
            panic!("{}", event.label)
        };
        appends.entry((who, number.parse().unwrap())).or_default().push((event.seq, place));
    }
    for ((who, number), found) in &appends {
        // All of it, in order, in one piece, once.
        let expected: Vec<String> = (0..1 + number % 5).map(|place| place.to_string()).collect();
        assert!(
            found.iter().map(|(_, place)| *place).eq(expected.iter().map(String::as_str)),
            "{who} {number}: {found:?}"
        );
        assert!(found.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0), "{who} {number}: {found:?}");
    }
    for (who, number, first, anchor) in &acknowledged {
        let found = appends.get(&(who.as_str(), *number)).unwrap_or_else(|| panic!("{who} {number} is lost"));
        assert_eq!(found[0].0, *first, "{who} {number}");
        let event = &events[usize::try_from(anchor.seq.0).unwrap() - 1];
        assert_eq!((event.seq, event.chain), (anchor.seq.0, anchor.chain), "{who} {number}");
    }
    sound(&reader, None).unwrap();
    let unheard = appends.len() - acknowledged.len();
    println!(
        "{} kills: {} appends acknowledged, {unheard} there that nobody heard of",
        WRITERS * KILLS,
        acknowledged.len()
    );
    assert!(acknowledged.len() > WRITERS * KILLS / 2 && unheard > 0);
    put(&place.log(), "agent/a", vec![blank()]);
}
