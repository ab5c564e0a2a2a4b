//! What was done to a log is told apart.

use std::ops::ControlFlow;

use throughline::id::{Anchor, IdempotencyKey, Seq};
use throughline::log::{Append, Class, Damage, Expectation, Log as _, Note, Problem, Records as _};

use crate::log_support::{Log, Place, Reader, blank, entry, fill, filled, put, verify};

/// The first problem after some SQL.
fn after(count: u64, sql: &str) -> Problem {
    let place = Place::new();
    drop(filled(&place, count));
    place.tamper(sql);
    let reader = Reader::open(&place.path()).unwrap();
    let mut found = verify(&reader, None);
    assert!(!found.is_sound(), "{sql}");
    assert!(found.anchor.seq < found.problems[0].seq || found.problems.len() > 1 || found.anchor.seq.0 >= count - 1);
    found.problems.remove(0)
}

fn check(sql: &str, seq: u64, what: &dyn Fn(&Damage) -> bool) {
    let problem = after(40, sql);
    assert!(problem.seq == Seq(seq) && what(&problem.damage), "{sql}: {problem:?}");
}

#[test]
fn edited_missing_and_reordered_are_told_apart() {
    let edited = |damage: &Damage| matches!(damage, Damage::Edited);
    check("UPDATE events SET body = x'7b7d' WHERE seq = 9", 9, &edited);
    check("UPDATE events SET at_ms = 2 WHERE seq = 40", 40, &edited);
    check("UPDATE events SET kind = 'launched' WHERE seq = 1", 1, &edited);
    check("UPDATE events SET record = zeroblob(32) WHERE seq = 9", 9, &edited);
    check("UPDATE events SET chain = zeroblob(32) WHERE seq = 9", 9, &edited);
    check("UPDATE events SET chain = zeroblob(32) WHERE seq = 40", 40, &edited);
    check("UPDATE events SET stream_chain = zeroblob(32) WHERE seq = 9", 9, &edited);
    check("UPDATE events SET body = x'7b7d', chain = zeroblob(32) WHERE seq = 9", 9, &edited);
    check("UPDATE events SET record = x'00' WHERE seq = 9", 9, &|damage| {
        matches!(damage, Damage::Unreadable { column: "record" })
    });
    check("UPDATE events SET stream = 77 WHERE seq = 9", 9, &|damage| matches!(damage, Damage::NoStream { id: 77 }));
    check("UPDATE streams SET name = 'agent/zz' WHERE name = 'agent/b'", 3, &edited);
    check("UPDATE streams SET name = 'what' WHERE name = 'agent/b'", 3, &|d| matches!(d, Damage::NoStream { .. }));
    let missing =
        |next: u64| move |damage: &Damage| matches!(damage, Damage::Missing { next: found } if found.0 == next);
    check("DELETE FROM events WHERE seq = 9", 9, &missing(10));
    check("DELETE FROM events WHERE seq IN (1, 2, 3)", 1, &missing(4));
    check("DELETE FROM events WHERE seq = 9; UPDATE events SET seq = seq - 1 WHERE seq > 9", 9, &missing(9));
    check("DELETE FROM events WHERE seq = 39; UPDATE events SET seq = 39 WHERE seq = 40", 39, &|d| {
        missing(39)(d) || edited(d)
    });
    let found = |at: i64| move |damage: &Damage| matches!(damage, Damage::Reordered { found } if *found == at);
    check("UPDATE events SET seq = 99 WHERE seq = 9", 9, &found(99));
    check("UPDATE events SET seq = -9 WHERE seq = 9", 9, &found(-9));
    let swap = "UPDATE events SET seq = 1000 WHERE seq = 9; UPDATE events SET seq = 9 WHERE seq = 14; \
                UPDATE events SET seq = 14 WHERE seq = 1000";
    check(swap, 9, &found(14));
}

#[test]
fn events_from_another_store_are_recognised() {
    let (place, other) = (Place::new(), Place::new());
    drop(filled(&place, 40));
    drop(filled(&other, 40));
    let attach = format!("ATTACH '{}' AS other", other.path().display());
    let check = |sql: &str, seq: u64| {
        place.tamper(&format!("{attach}; {sql}"));
        let problem = verify(&Reader::open(&place.path()).unwrap(), None).problems.remove(0);
        assert!(problem.seq == Seq(seq) && matches!(problem.damage, Damage::OtherStore), "{problem:?}");
    };
    check("DELETE FROM events WHERE seq = 20; INSERT INTO events SELECT * FROM other.events WHERE seq = 20", 20);
    check("DELETE FROM events WHERE seq >= 10; INSERT INTO events SELECT * FROM other.events WHERE seq >= 10", 10);
    check("DELETE FROM events; INSERT INTO events SELECT * FROM other.events", 1);
}

#[test]
fn what_was_cut_off_is_found_with_an_anchor_and_not_without() {
    let place = Place::new();
    let log = filled(&place, 41);
    let anchor = log.anchor().unwrap();
    assert!(verify(&log, Some(anchor)).is_sound());
    place.tamper("DELETE FROM events WHERE seq = 41");
    assert!(verify(&log, None).is_sound());
    let problem = verify(&log, Some(anchor)).problems.remove(0);
    assert!(matches!(problem.damage, Damage::CutOff { last: Seq(40), .. }), "{problem:?}");
    assert_eq!(problem.seq, Seq(41));
    // The log goes on, and is another history.
    put(&log, "agent/a", vec![blank()]);
    assert!(verify(&log, None).is_sound());
    let problem = verify(&log, Some(anchor)).problems.remove(0);
    assert!(matches!(problem.damage, Damage::OtherHistory { .. }), "{problem:?}");
    let other = Place::new();
    let problem = verify(&filled(&other, 50), Some(anchor)).problems.remove(0);
    assert!(matches!(problem.damage, Damage::OtherHistory { .. }), "{problem:?}");
    let nothing = Anchor { seq: Seq(0), chain: throughline::id::Digest::GENESIS };
    assert!(verify(&log, Some(nothing)).is_sound());
}

#[test]
fn a_memo_a_receipt_or_a_name_of_what_was_cut_off_is_evidence() {
    let place = Place::new();
    let log = place.log();
    put(&log, "agent/a", vec![blank(); 40]);
    place.tamper("DELETE FROM events WHERE seq = 40");
    assert!(matches!(verify(&log, None).problems[0].damage, Damage::CutOff { .. }));
    let place = Place::new();
    let log = place.log();
    put(&log, "agent/a", vec![blank()]);
    put(&log, "agent/b", vec![blank()]);
    place.tamper("DELETE FROM events WHERE seq = 2");
    assert!(matches!(verify(&log, None).problems[0].damage, Damage::NoEvents { .. }));
    let place = Place::new();
    let log = place.log();
    put(&log, "agent/a", vec![blank()]);
    let key = Append { key: Some(IdempotencyKey::parse("k").unwrap()), ..Append::at(1) };
    log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &key).unwrap();
    place.tamper("DELETE FROM events WHERE seq = 2");
    assert!(matches!(verify(&log, None).problems[0].damage, Damage::Receipt { .. }));
}

#[test]
fn an_event_that_the_rules_refuse_is_named() {
    let place = Place::new();
    let log = filled(&place, 8);
    place.tamper("UPDATE events SET body = CAST('{\"pane\":\"never\"}' AS BLOB) WHERE seq = 5");
    crate::rechain(&place);
    let problem = verify(&log, None).problems.remove(0);
    assert!(matches!(problem.damage, Damage::Illegal(_)) && problem.seq == Seq(5), "{problem:?}");
    assert_eq!(std::error::Error::source(&problem).unwrap().to_string(), "never means never");
    let error = log.state(&crate::stream("agent/a")).unwrap_err();
    assert_eq!((error.seq(), error.class()), (Some(Seq(5)), Class::Corrupt));
}

#[test]
fn missing_triggers_and_foreign_tables_are_notes() {
    let place = Place::new();
    let log = filled(&place, 8);
    assert!(verify(&log, None).notes.is_empty());
    place.tamper("CREATE TABLE mine (x)");
    let found = verify(&log, None);
    assert!(found.is_sound());
    let gone = found.notes.iter().filter(|note| matches!(note, Note::NoTrigger { .. })).count();
    assert_eq!(gone, 8);
    assert!(found.notes.contains(&Note::Foreign { name: "mine".into() }));
}

#[test]
fn a_reader_of_events_stops_at_the_first_that_does_not_hold() {
    let place = Place::new();
    let log = filled(&place, 20);
    place.tamper("UPDATE events SET at_ms = 5 WHERE seq = 12");
    let read = |from: u64| {
        let mut last = 0;
        let result = log.events(Seq(from), &mut |recorded| {
            last = recorded.seq.0;
            ControlFlow::Continue(())
        });
        (last, result.map_err(|error| error.seq()))
    };
    assert_eq!(read(1), (11, Err(Some(Seq(12)))));
    assert_eq!(read(12), (0, Err(Some(Seq(12)))));
    assert_eq!(read(13), (20, Ok(())));
    let mut text = Vec::new();
    assert!(log.export(&mut text, &mut |_| {}).is_err());
}

#[test]
fn progress_ends_at_the_end() {
    let place = Place::new();
    let log: Log = place.log();
    put(&log, "agent/a", vec![blank(); 3_000]);
    fill(&log, 7);
    let mut seen = Vec::new();
    log.verify(None, &mut |seq| seen.push(seq.0)).unwrap();
    assert_eq!(seen, [1024, 2048, 3007]);
}
