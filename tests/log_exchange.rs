//! Out as text and back.

use throughline::id::Seq;
use throughline::log::{Class, Import, ImportError, LineError, Log as _, Mode, Records as _};

use crate::log_support::{Log, Place, Tally, blank, ended, filled, problems, put, stream};

fn export(log: &Log) -> String {
    let mut text = Vec::new();
    let anchor = log.export(&mut text, &mut |_| {}).unwrap();
    assert_eq!(anchor, log.anchor().unwrap());
    String::from_utf8(text).unwrap()
}

fn import(log: &Log, text: &str, mode: Mode) -> Result<throughline::log::Imported, ImportError> {
    log.import(&mut text.as_bytes(), &Import { mode, at_ms: 7 }, &mut |_| {})
}

/// The line, the event and what is wrong.
fn line(result: Result<throughline::log::Imported, ImportError>) -> (u64, u64, LineError) {
    match result {
        Err(ImportError::Line { line, seq: Seq(seq), source }) => (line, seq, source),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_text_is_what_the_format_says() {
    let place = Place::new();
    let log = place.log();
    put(&log, "agent/a", vec![blank()]);
    let mut records = Vec::new();
    log.events(Seq(1), &mut |recorded| {
        records.push(recorded);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    let (store, anchor, record) = (log.store(), log.anchor().unwrap(), &records[0]);
    let zeros = "0".repeat(64);
    assert_eq!(
        export(&log),
        format!(
            "{{\"throughline\":1,\"store\":\"{store}\",\"from_seq\":1,\"prev_chain\":\"{zeros}\",\"events\":1,\
             \"anchor\":\"{anchor}\"}}\n{{\"seq\":1,\"stream\":\"agent/a\",\"version\":1,\"at_ms\":1,\
             \"kind\":\"fresh_intended\",\"schema\":1,\"body\":{{}},\"record\":\"{}\",\"chain\":\"{}\"}}\n",
            record.record, record.chain
        )
    );
}

#[test]
fn a_verified_import_gives_the_same_log() {
    let place = Place::new();
    let log = filled(&place, 100);
    let text = export(&log);
    let other = Place::new();
    let copy = other.log();
    assert_ne!(copy.store(), log.store());
    let imported = import(&copy, &text, Mode::Verified).unwrap();
    assert_eq!((imported.events, imported.anchor), (100, log.anchor().unwrap()));
    for copy in [&copy, &other.log()] {
        assert_eq!(copy.store(), log.store());
        assert_eq!(copy.streams().unwrap(), log.streams().unwrap());
        assert_eq!(export(copy), text);
        assert!(problems(copy, Some(imported.anchor)).is_empty());
    }
    put(&copy, "agent/a", vec![blank()]);
    assert!(problems(&copy, Some(imported.anchor)).is_empty());
    assert!(matches!(import(&copy, &text, Mode::Verified), Err(ImportError::NotEmpty { events: 101 })));
}

#[test]
fn another_process_that_had_the_empty_log_open_learns_its_new_id() {
    let place = Place::new();
    let text = export(&filled(&place, 10));
    let other = Place::new();
    let (copy, bystander) = (other.log(), other.log());
    import(&copy, &text, Mode::Verified).unwrap();
    put(&bystander, "agent/a", vec![blank()]);
    assert_eq!(bystander.store(), copy.store());
    assert!(problems(&copy, None).is_empty());
}

#[test]
fn an_import_as_new_keeps_the_events_and_not_the_digests() {
    let place = Place::new();
    let log = filled(&place, 50);
    let other = Place::new();
    let copy = other.log();
    let store = copy.store();
    let imported = import(&copy, &export(&log), Mode::AsNew).unwrap();
    assert_eq!(copy.store(), store);
    assert_ne!(imported.anchor, log.anchor().unwrap());
    assert!(problems(&copy, Some(imported.anchor)).is_empty());
    let states = |log: &Log| ["agent/a", "agent/b"].map(|name| log.state(&stream(name)).unwrap().1);
    assert_eq!(states(&copy), states(&log));
}

#[test]
fn an_export_that_was_edited_is_refused_at_its_line_and_nothing_is_stored() {
    let place = Place::new();
    let log = filled(&place, 20);
    let text = export(&log);
    let lines: Vec<&str> = text.lines().collect();
    let with = |edit: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        edit(&mut lines);
        lines.join("\n")
    };
    let check = |text: &str, expected: (u64, u64), what: &dyn Fn(&LineError) -> bool| {
        for mode in [Mode::Verified, Mode::AsNew] {
            let other = Place::new();
            let copy = other.log();
            let result = import(&copy, text, mode);
            assert_eq!(result.as_ref().unwrap_err().class(), Class::Corrupt);
            let (number, seq, source) = line(result);
            assert_eq!((number, seq), expected, "{source:?}");
            assert!(what(&source), "{source:?}");
            assert_eq!(copy.anchor().unwrap().seq, Seq(0));
            assert!(copy.streams().unwrap().is_empty() && problems(&copy, None).is_empty());
        }
    };
    let body = with(&|lines| lines[5] = lines[5].replace("p4", "p5"));
    check(&body, (6, 5), &|source| matches!(source, LineError::Record));
    let blank_line = with(&|lines| {
        lines.insert(1, "  ".into());
        lines[6] = lines[6].replace("\"at_ms\":1", "\"at_ms\":2");
    });
    check(&blank_line, (7, 5), &|source| matches!(source, LineError::Record));
    let gone = with(&|lines| drop(lines.remove(9)));
    check(&gone, (10, 9), &|source| matches!(source, LineError::Seq { expected: 9, found: 10 }));
    let swapped = with(&|lines| lines.swap(3, 4));
    check(&swapped, (4, 3), &|source| matches!(source, LineError::Seq { expected: 3, found: 4 }));
    let chain = with(&|lines| {
        let at = lines[8].len() - 3;
        let digit = if lines[8].as_bytes()[at] == b'0' { "1" } else { "0" };
        lines[8].replace_range(at..=at, digit);
    });
    check(&chain, (9, 8), &|source| matches!(source, LineError::Chain));
    let twice = with(&|lines| lines[2] = lines[2].replace("\"at_ms\"", "\"seq\":2,\"at_ms\""));
    check(&twice, (3, 2), &|source| matches!(source, LineError::Json(_)));
    let foreign = with(&|lines| lines[0] = lines[0].replace(&log.store().to_string(), &uuid::Uuid::nil().to_string()));
    check(&foreign, (2, 1), &|source| matches!(source, LineError::Record));
}

#[test]
fn an_export_that_was_cut_off_is_noticed() {
    let place = Place::new();
    let text = export(&filled(&place, 20));
    let cut: String = text.lines().take(11).map(|line| line.to_owned() + "\n").collect();
    let other = Place::new();
    let copy = other.log();
    let result = import(&copy, &cut, Mode::Verified);
    let Err(ImportError::CutOff { expected, found }) = result else { panic!("{result:?}") };
    assert_eq!((expected.seq, found.seq), (Seq(20), Seq(10)));
    assert_eq!(copy.anchor().unwrap().seq, Seq(0));
    // In the middle of a line.
    assert!(matches!(line(import(&copy, &text[..text.len() - 9], Mode::Verified)), (21, 20, LineError::Json(_))));
    // A header without them is one, too.
    let (header, rest) = cut.split_once('\n').unwrap();
    let fewer = text.replacen("\"events\":20", "\"events\":19", 1);
    assert_ne!(fewer, text);
    let result = import(&copy, &fewer, Mode::Verified);
    assert!(matches!(result, Err(ImportError::CutOff { .. })), "a count that does not fit: {result:?}");
    let (short, _) = header.split_once(",\"events\"").unwrap();
    assert_eq!(import(&copy, &format!("{short}}}\n{rest}"), Mode::Verified).unwrap().events, 10);
}

#[test]
fn what_is_no_export_is_refused() {
    let place = Place::new();
    let log = place.log();
    let none = |result| matches!(result, Err(ImportError::NoHeader { .. }));
    assert!(none(import(&log, "", Mode::Verified)));
    assert!(none(import(&log, "\n \n", Mode::Verified)));
    assert!(none(import(&log, "hello", Mode::Verified)));
    assert!(none(import(&log, r#"{"stream":"agent/a","kind":"fresh_intended","body":{}}"#, Mode::Verified)));
    assert!(matches!(import(&log, r#"{"throughline":2,"x":[]}"#, Mode::AsNew), Err(ImportError::Newer { found: 2 })));
    let text = export(&log);
    let middle = text.replace("\"from_seq\":1", "\"from_seq\":4");
    assert!(matches!(import(&log, &middle, Mode::Verified), Err(ImportError::NotFromStart { from_seq: 4 })));
    assert_eq!(import(&log, &text, Mode::Verified).unwrap().events, 0);
}

const WRITTEN: &str = r#"
{"stream":"agent/a","kind":"segment_ended","body":{"segment":"s1","reason":"exited","epoch":3}}

{"kind":"segment_ended","body":{"reason":"crashed","segment":"s2"},"stream":"agent/a","at_ms":42}
{"stream":"hook/a","kind":"hook_announced","body":{"session":"x","hook":"Stop"}}
"#;

#[test]
fn hand_written_lines_become_events_and_the_fold_completes_them() {
    let place = Place::new();
    let log = place.log();
    let imported = import(&log, WRITTEN, Mode::Unverified).unwrap();
    assert_eq!(imported.events, 3);
    let mut seen = Vec::new();
    log.events(Seq(1), &mut |recorded| {
        seen.push((recorded.at_ms, String::from_utf8(recorded.body).unwrap()));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(
        seen,
        [
            (7, r#"{"epoch":3,"reason":"exited","segment":"s1"}"#.to_owned()),
            (42, r#"{"epoch":3,"reason":"crashed","segment":"s2"}"#.to_owned()),
            (7, r#"{"hook":"Stop","session":"x"}"#.to_owned()),
        ]
    );
    // Into a log that has events, and with a lease that is over.
    let stale = r#"{"stream":"agent/a","kind":"segment_ended","body":{"segment":"s","reason":"x","epoch":1}}"#;
    assert_eq!(import(&log, stale, Mode::Unverified).unwrap().anchor.seq, Seq(4));
    assert_eq!(log.state(&stream("agent/a")).unwrap().1, Tally { events: 3, epoch: 3 });
    put(&log, "agent/a", vec![ended(3)]);
    assert!(problems(&log, None).is_empty());
}

#[test]
fn one_bad_hand_written_line_keeps_all_out() {
    let check = |bad: &str, what: &dyn Fn(&LineError) -> bool| {
        let place = Place::new();
        let log = filled(&place, 5);
        let before = log.anchor().unwrap();
        let (number, seq, source) = line(import(&log, &format!("{WRITTEN}{bad}\n"), Mode::Unverified));
        assert_eq!((number, seq), (6, 9));
        assert!(what(&source), "{source:?}");
        assert_eq!(log.anchor().unwrap(), before);
        put(&log, "agent/a", vec![blank()]);
        assert!(problems(&log, Some(before)).is_empty());
    };
    check("{", &|source| matches!(source, LineError::Json(_)));
    check("[]", &|source| matches!(source, LineError::Json(_)));
    check("\u{0}", &|source| matches!(source, LineError::Json(_)));
    let of = |body: &str| format!(r#"{{"stream":"agent/a","kind":"fresh_intended","body":{body}}}"#);
    check(&of(r#"{"pane":"never"}"#), &|source| matches!(source, LineError::Illegal(_)));
    check(&of(r#"{"pane":"x","extra":1}"#), &|source| matches!(source, LineError::Undecodable(_)));
    check(&of(r#"{"pane":"x","pane":"x"}"#), &|source| matches!(source, LineError::Json(_)));
    check(&of(r#"{"pane":1.5}"#), &|source| matches!(source, LineError::Json(_)));
    let kind = r#"{"stream":"agent/a","kind":"from_the_future","body":{}}"#;
    check(kind, &|source| matches!(source, LineError::Undecodable(_)));
    let schema = r#"{"stream":"agent/a","kind":"fresh_intended","schema":9,"body":{}}"#;
    check(schema, &|source| matches!(source, LineError::Undecodable(_)));
    check(r#"{"stream":"agent/a.b","kind":"fresh_intended","body":{}}"#, &|source| {
        matches!(source, LineError::Json(_))
    });
}

#[test]
fn an_export_that_was_edited_on_purpose_can_be_taken_as_hand_written() {
    let place = Place::new();
    let text = export(&filled(&place, 20)).replace("\"p4\"", "\"other\"");
    let other = Place::new();
    assert_eq!(import(&other.log(), &text, Mode::Unverified).unwrap().events, 20);
}

#[test]
fn a_line_without_an_end_is_refused_in_bounded_memory() {
    struct Endless;
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(b' ');
            Ok(buffer.len())
        }
    }
    let place = Place::new();
    let mut endless = std::io::BufReader::with_capacity(1 << 20, Endless);
    let options = Import { mode: Mode::Unverified, at_ms: 0 };
    let result = place.log().import(&mut endless, &options, &mut |_| {});
    assert!(matches!(line(result), (1, _, LineError::TooLong)));
}
