//! The log from outside: what is stored, what is refused, what is found when somebody edits the file.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set up its world has failed")]

mod log_crash;
mod log_disk;
mod log_exchange;
mod log_fault;
mod log_flip;
mod log_full;
mod log_gate;
mod log_kill;
mod log_life;
mod log_many;
mod log_open;
mod log_readonly;
mod log_support;
mod log_verify;

use std::ops::ControlFlow;

use log_support::{Log, Place, Reader, Tally, blank, ended, entry, filled, fresh, hook, problems, put, stream};
use throughline::event::{AgentDeclared, Event};
use throughline::id::{Frontier, IdempotencyKey, ProviderName, Seq, Version};
use throughline::log::{
    Append, AppendError, Class, Damage, Expectation, Log as _, LogError, Opening, Recorded, Records as _,
};

#[test]
fn appended_events_come_back_as_they_were_and_in_order() {
    let place = Place::new();
    let log = place.log();
    let declared = Event::from(AgentDeclared { provider: ProviderName::parse("claude").unwrap(), forked_from: None });
    let first = put(&log, "agent/a", vec![declared.clone(), blank()]);
    let second = put(&log, "hook/a", vec![hook("x")]);
    assert_eq!((first.first, second.first), (Some(Seq(1)), Some(Seq(3))));
    let mut seen: Vec<Recorded> = Vec::new();
    log.events(Seq(0), &mut |recorded| {
        seen.push(recorded);
        ControlFlow::Continue(())
    })
    .unwrap();
    let flat: Vec<_> = seen.iter().map(|r| (r.seq.0, r.stream.to_string(), r.version.0, r.event.clone())).collect();
    assert_eq!(
        flat,
        [
            (1, "agent/a".to_owned(), 1, declared),
            (2, "agent/a".to_owned(), 2, blank()),
            (3, "hook/a".to_owned(), 1, hook("x")),
        ]
    );
    assert_eq!(seen[0].body, br#"{"provider":"claude"}"#);
    assert_eq!(seen[2].chain, log.anchor().unwrap().chain);
    assert_eq!(seen[2].chain, second.anchor.chain);
    assert_eq!(seen[1].stream_chain, log.frontier(&stream("agent/a")).unwrap().chain);
    assert!(problems(&log, None).is_empty());
}

#[test]
fn one_stream_can_be_read_from_any_version_and_left_at_any_event() {
    let place = Place::new();
    let log = filled(&place, 40);
    let collect = |from: u64, most: usize| {
        let mut versions = Vec::new();
        log.events_of(&stream("agent/a"), Version(from), &mut |recorded| {
            versions.push(recorded.version.0);
            if versions.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        versions
    };
    assert_eq!(collect(0, 99), (1..=20).collect::<Vec<_>>());
    assert_eq!(collect(18, 99), [18, 19, 20]);
    assert_eq!(collect(5, 2), [5, 6]);
    assert_eq!(collect(21, 9), [0_u64; 0]);
    let mut seqs = Vec::new();
    log.events(Seq(38), &mut |recorded| {
        seqs.push(recorded.seq.0);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seqs, [38, 39, 40]);
}

#[test]
fn a_wrong_expectation_is_a_conflict_that_says_what_is_there() {
    let place = Place::new();
    let log = place.log();
    let there = put(&log, "agent/a", vec![blank()]).frontiers.remove(0);
    let other = Expectation::Frontier { version: Version(1), chain: throughline::id::Digest::plain(b"other") };
    for expected in [Expectation::Version(Version(0)), Expectation::Version(Version(2)), other] {
        let result = log.append(&[entry("agent/a", expected.clone(), vec![blank()])], &Append::at(1));
        let Err(AppendError::Conflict { expected: found, actual, .. }) = result else { panic!("{result:?}") };
        assert_eq!((found, *actual), (expected, there.clone()));
    }
    for expected in [Expectation::Version(Version(1)), (&there).into()] {
        log.append(&[entry("agent/a", expected, vec![])], &Append::at(1)).unwrap();
    }
    assert_eq!(log.frontier(&stream("agent/a")).unwrap(), there);
}

#[test]
fn several_streams_are_appended_to_all_or_none() {
    let place = Place::new();
    let log = place.log();
    let before = log.anchor().unwrap();
    let entries = [
        entry("agent/a", Expectation::Version(Version(0)), vec![blank()]),
        entry("agent/b", Expectation::Version(Version(1)), vec![blank()]),
    ];
    assert!(matches!(log.append(&entries, &Append::at(1)), Err(AppendError::Conflict { .. })));
    let entries = [
        entry("agent/a", Expectation::Any, vec![blank(), blank()]),
        entry("agent/b", Expectation::Any, vec![blank(), fresh("never")]),
    ];
    let result = log.append(&entries, &Append::at(1));
    let Err(AppendError::Illegal { stream, index, kind, source }) = result else { panic!("{result:?}") };
    assert_eq!((stream.to_string().as_str(), index, kind), ("agent/b", 1, "fresh_intended"));
    assert_eq!(source.to_string(), "never means never");
    assert_eq!(log.anchor().unwrap(), before);
    assert!(log.streams().unwrap().is_empty());
    // What was folded of the refused append is forgotten.
    let done = log.append(&entries[..1], &Append::at(1)).unwrap();
    assert_eq!((done.first, done.anchor.seq), (Some(Seq(1)), Seq(2)));
    assert_eq!(log.state(&crate::stream("agent/a")).unwrap().1.events, 2);
}

#[test]
fn an_entry_without_events_only_checks() {
    let place = Place::new();
    let log = place.log();
    let held = put(&log, "agent/a", vec![blank()]);
    let check = entry("agent/a", Expectation::Version(Version(1)), vec![]);
    let only = log.append(std::slice::from_ref(&check), &Append::at(1)).unwrap();
    assert_eq!((only.first, only.anchor), (None, held.anchor));
    assert_eq!(only.frontiers, held.frontiers);
    let both = [check, entry("agent/b", Expectation::Any, vec![blank()])];
    assert_eq!(log.append(&both, &Append::at(1)).unwrap().first, Some(Seq(2)));
    let result = log.append(
        &[
            entry("agent/a", Expectation::Version(Version(9)), vec![]),
            entry("agent/b", Expectation::Any, vec![blank()]),
        ],
        &Append::at(1),
    );
    assert!(matches!(result, Err(AppendError::Conflict { .. })));
    assert_eq!(log.anchor().unwrap().seq, Seq(2));
    let nothing = log.append(&[], &Append::at(1)).unwrap();
    assert_eq!((nothing.first, nothing.anchor.seq), (None, Seq(2)));
}

#[test]
fn a_stream_named_twice_in_one_append_is_continued() {
    let place = Place::new();
    let log = place.log();
    let zero = Expectation::Version(Version(0));
    let entries = [entry("agent/a", zero.clone(), vec![blank()]), entry("agent/a", zero, vec![blank(), blank()])];
    let done = log.append(&entries, &Append::at(1)).unwrap();
    assert_eq!((done.frontiers.len(), done.frontiers[0].version), (1, Version(3)));
    assert!(problems(&log, None).is_empty());
}

#[test]
fn an_event_goes_only_into_its_own_family() {
    let place = Place::new();
    let log = place.log();
    let result = log.append(&[entry("audit/a", Expectation::Any, vec![blank()])], &Append::at(1));
    assert!(matches!(result, Err(AppendError::WrongFamily { kind: "fresh_intended", .. })));
}

#[test]
fn a_stale_epoch_is_fenced_at_the_append_and_nowhere_else() {
    let place = Place::new();
    let log = place.log();
    put(&log, "agent/a", vec![ended(5)]);
    let stale = [entry("agent/a", Expectation::Any, vec![ended(4)])];
    assert!(matches!(log.append(&stale, &Append::at(1)), Err(AppendError::Illegal { .. })));
    log.append(&stale, &Append { unfenced: true, ..Append::at(1) }).unwrap();
    assert_eq!(log.state(&stream("agent/a")).unwrap().1, Tally { events: 2, epoch: 5 });
    assert!(problems(&log, None).is_empty());
}

#[test]
fn a_repeated_key_returns_the_first_result_and_appends_nothing() {
    let place = Place::new();
    let log = place.log();
    put(&log, "agent/b", vec![blank()]);
    let key = Append { key: Some(IdempotencyKey::parse("k1").unwrap()), ..Append::at(1) };
    let request = [
        entry("agent/a", Expectation::Version(Version(0)), vec![blank(), fresh("x")]),
        entry("agent/b", Expectation::Version(Version(1)), vec![]),
    ];
    let first = log.append(&request, &key).unwrap();
    put(&log, "agent/a", vec![blank()]);
    put(&log, "agent/b", vec![blank()]);
    let later = Append { at_ms: 99, ..key.clone() };
    assert_eq!(log.append(&request, &later).unwrap(), first);
    assert_eq!(place.log().append(&request, &later).unwrap(), first);
    let mut read_again = request.clone();
    read_again[0].expected = Expectation::Version(Version(3));
    assert_eq!(log.append(&read_again, &later).unwrap(), first);
    let other = [entry("agent/a", Expectation::Any, vec![blank()])];
    assert!(matches!(log.append(&other, &key), Err(AppendError::KeyReused { .. })));
    assert_eq!(log.anchor().unwrap().seq, Seq(5));
    let check_key = Append { key: Some(IdempotencyKey::parse("k2").unwrap()), ..Append::at(1) };
    let check = [entry("agent/a", Expectation::Version(Version(3)), vec![])];
    let checked = log.append(&check, &check_key).unwrap();
    assert_eq!(checked.first, None);
    put(&log, "agent/a", vec![blank()]);
    assert_eq!(log.append(&check, &check_key).unwrap(), checked);
    assert!(problems(&log, None).is_empty());
}

#[test]
fn nothing_but_a_memo_can_be_changed() {
    let place = Place::new();
    let log = filled(&place, 80);
    let key = Append { key: Some(IdempotencyKey::parse("k").unwrap()), ..Append::at(1) };
    log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &key).unwrap();
    let conn = rusqlite::Connection::open(place.path()).unwrap();
    for (table, column) in [("events", "at_ms"), ("streams", "name"), ("receipts", "key"), ("store", "id")] {
        for sql in [format!("UPDATE {table} SET {column} = {column}"), format!("DELETE FROM {table}")] {
            assert!(conn.execute(&sql, []).unwrap_err().to_string().contains("only added to"), "{sql}");
        }
    }
    assert!(conn.execute("DELETE FROM memos", []).unwrap() > 0);
    assert!(problems(&log, None).is_empty());
}

#[test]
fn a_memo_that_is_gone_edited_or_of_other_rules_never_changes_an_answer() {
    let place = Place::new();
    let log = filled(&place, 200);
    let answers = |name: &str| Reader::open(&place.path()).unwrap().state(&stream(name)).unwrap();
    let (a, b) = (answers("agent/a"), answers("agent/b"));
    assert_eq!((a.1.events, b.1.events), (100, 50));
    for edit in [
        "state = zeroblob(16)",
        "state = x'00'",
        "fold = fold + 1",
        "fold = -1",
        "version = version - 1",
        "version = -1",
        "chain = zeroblob(32)",
        "proof = zeroblob(32)",
        "stream = stream + 1000",
    ] {
        place.tamper(&format!("UPDATE memos SET {edit}"));
        assert_eq!((answers("agent/a"), answers("agent/b")), (a.clone(), b.clone()), "{edit}");
        let found = problems(&log, None);
        assert!(!found.is_empty() && found.iter().all(|words| words.contains("memo")), "{edit}: {found:?}");
    }
    place.tamper("DELETE FROM memos");
    assert_eq!((answers("agent/a"), answers("agent/b")), (a, b));
    assert!(problems(&log, None).is_empty());
    // And the writer, which had one, writes another.
    let again = place.log();
    put(&again, "agent/a", vec![blank()]);
    assert_eq!(answers("agent/a").1.events, 101);
    assert!(problems(&again, None).is_empty());
}

#[test]
fn a_memo_is_really_used() {
    let place = Place::new();
    let log = filled(&place, 200);
    // An edited event before the memo: a fold from the start would stop there.
    place.tamper("UPDATE events SET body = x'7b7d' WHERE seq = 1");
    assert_eq!(log.state(&stream("agent/a")).unwrap().1.events, 100);
    place.tamper("DELETE FROM memos");
    assert_eq!(log.state(&stream("agent/a")).unwrap_err().seq(), Some(Seq(1)));
}

#[test]
fn what_a_newer_version_wrote_is_a_stop_that_names_it() {
    for (edit, words) in [("kind = 'zzz_unknown'", "zzz_unknown"), ("schema = 9", "schema 9"), ("body = '{}'", "body")]
    {
        let place = Place::new();
        let log = filled(&place, 9);
        // Digests as a newer version would have made them: the record is right, only the meaning is unknown.
        place.tamper(&format!("UPDATE events SET {} WHERE seq = 6", edit.replace("'{}'", "CAST('{\"x\":1}' AS BLOB)")));
        rechain(&place);
        let mut seen = Vec::new();
        let error = log
            .events(Seq(1), &mut |recorded| {
                seen.push(recorded.seq.0);
                ControlFlow::Continue(())
            })
            .unwrap_err();
        let LogError::Damaged(problem) = &error else { panic!("{error:?}") };
        assert!(matches!(problem.damage, Damage::Undecodable(_)), "{problem:?}");
        assert_eq!((seen, error.seq(), error.class()), (vec![1, 2, 3, 4, 5], Some(Seq(6)), Class::Corrupt));
        let source = std::error::Error::source(problem.as_ref()).unwrap().to_string();
        assert!(source.contains(words), "{source}");
        assert!(log.state(&stream("agent/a")).is_err());
        assert!(log.state(&stream("agent/b")).is_ok());
        let result = Log::open(&place.path(), &Opening::default())
            .unwrap()
            .append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1));
        assert!(matches!(result, Err(AppendError::Log(LogError::Damaged(_)))), "{result:?}");
    }
}

/// Recomputes every digest as the log's own writer would: the format, written down a second time.
fn rechain(place: &Place) {
    use throughline::id::Digest;
    let conn = rusqlite::Connection::open(place.path()).unwrap();
    let store: Vec<u8> = conn.query_row("SELECT store FROM store", [], |row| row.get(0)).unwrap();
    let sql = "SELECT e.seq, s.name, e.version, e.at_ms, e.kind, e.schema, e.body FROM events e \
               JOIN streams s ON s.id = e.stream ORDER BY e.seq";
    type Row = (i64, String, i64, i64, String, u32, Vec<u8>);
    let rows: Vec<Row> = conn
        .prepare(sql)
        .unwrap()
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?, r.get(6)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut chain = Digest::GENESIS;
    let mut chains = std::collections::BTreeMap::new();
    for (seq, name, version, at_ms, kind, schema, body) in rows {
        let length = |text: &str| u16::try_from(text.len()).unwrap().to_le_bytes();
        let content = [
            version.to_le_bytes().as_slice(),
            &at_ms.to_le_bytes(),
            &schema.to_le_bytes(),
            &length(&name),
            &length(&kind),
            name.as_bytes(),
            kind.as_bytes(),
            &body,
        ]
        .concat();
        let keyed = |domain: &str, of: &[u8], bytes: &[u8]| {
            Digest(*blake3::keyed_hash(&blake3::derive_key(domain, of), bytes).as_bytes())
        };
        let record = keyed("throughline record 1", &store, &content);
        chain = keyed("throughline chain 1", b"", &[chain.0, record.0].concat());
        let last = chains.entry(name).or_insert(Digest::GENESIS);
        *last = keyed("throughline stream chain 1", b"", &[last.0, record.0].concat());
        conn.execute(
            "UPDATE events SET record = ?2, chain = ?3, stream_chain = ?4 WHERE seq = ?1",
            (seq, &record.0[..], &chain.0[..], &last.0[..]),
        )
        .unwrap();
    }
}

#[test]
fn the_digests_are_what_the_format_says() {
    let place = Place::new();
    let log = filled(&place, 12);
    let before = (log.anchor().unwrap(), log.streams().unwrap());
    place.tamper("SELECT 1");
    rechain(&place);
    assert_eq!((log.anchor().unwrap(), log.streams().unwrap()), before);
    assert!(problems(&log, Some(before.0)).is_empty());
}

#[test]
fn what_a_writer_remembers_is_looked_up_again_once_another_has_written() {
    let place = Place::new();
    let (one, two) = (place.log(), place.log());
    put(&one, "agent/a", vec![ended(1)]);
    put(&one, "agent/b", vec![blank()]);
    put(&two, "agent/a", vec![ended(5)]);
    // This one learns of the other by a stream that the other did not touch, then is alone for a while.
    put(&one, "agent/b", vec![blank()]);
    put(&one, "agent/b", vec![blank()]);
    let stale = [entry("agent/a", Expectation::Any, vec![ended(1)])];
    assert!(matches!(one.append(&stale, &Append::at(1)), Err(AppendError::Illegal { .. })));
    let late = [entry("agent/a", Expectation::Version(Version(1)), vec![ended(6)])];
    assert!(matches!(one.append(&late, &Append::at(1)), Err(AppendError::Conflict { .. })));
    let done = put(&one, "agent/a", vec![ended(6)]);
    assert_eq!((done.first, done.frontiers[0].version), (Some(Seq(6)), Version(3)));
    assert!(problems(&two, Some(done.anchor)).is_empty());
}

#[test]
fn threads_that_append_at_once_leave_a_dense_log() {
    let place = Place::new();
    drop(place.log());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let place = &place;
            scope.spawn(move || {
                let log = place.log();
                for number in 0..40 {
                    put(&log, "agent/shared", vec![blank()]);
                    put(&log, &format!("agent/own{thread}"), vec![fresh(&format!("p{number}"))]);
                }
            });
        }
        let reader = Reader::open(&place.path()).unwrap();
        let mut last = 0;
        for _ in 0..50 {
            let (frontier, tally) = reader.state(&stream("agent/shared")).unwrap();
            assert_eq!(frontier.version.0, tally.events);
            assert!(tally.events >= last);
            last = tally.events;
            assert!(problems(&reader, None).is_empty());
        }
    });
    let log = place.log();
    let found = log_support::verify(&log, None);
    assert!(found.is_sound(), "{:?}", found.problems);
    assert_eq!((found.events, found.streams), (320, 5));
    let versions: Vec<_> = log.streams().unwrap().into_iter().map(|f: Frontier| f.version.0).collect();
    assert_eq!(versions, [40, 40, 40, 40, 160]);
}

#[test]
fn an_append_inside_a_read_is_refused_and_a_read_inside_a_read_is_not() {
    let place = Place::new();
    let log = filled(&place, 3);
    let mut tried = 0;
    log.events(Seq(1), &mut |_| {
        let result = log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1));
        assert!(matches!(result, Err(AppendError::InsideRead)));
        assert_eq!(log.anchor().unwrap().seq, Seq(3));
        tried += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(tried, 3);
    put(&log, "agent/a", vec![blank()]);
}
