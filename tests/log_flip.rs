//! One byte at a time: whatever is changed in whatever row, `verify` or the opening says so.

use rusqlite::types::Value;
use throughline::id::IdempotencyKey;
use throughline::log::{Append, Class, Expectation, Log as _, Opening, Records as _};

use crate::log_support::{Log, Place, Reader, blank, ended, entry, fresh, hook, put};

/// Short events, so that there are not more bytes than it takes; memos and receipts are among them.
fn short(log: &Log) {
    for number in 0..200_u64 {
        match number % 25 {
            3 => put(log, "agent/b", vec![fresh("p")]),
            7 => put(log, "hook/a", vec![hook("s")]),
            11 => put(log, "agent/b", vec![ended(number)]),
            13 => {
                let key = IdempotencyKey::parse(format!("k{number}")).unwrap();
                let key = Append { key: Some(key), ..Append::at(1) };
                log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &key).unwrap()
            }
            _ => put(log, "agent/a", vec![blank()]),
        };
    }
}

/// Every variant of a value with one byte flipped, as SQL parameter; texts go through a cast, to hold any bytes.
fn flips(value: &Value) -> Vec<Value> {
    let each = |bytes: &[u8], wrap: &dyn Fn(Vec<u8>) -> Value| {
        let flip = |at: usize| {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= if at.is_multiple_of(2) { 0x01 } else { 0x80 };
            wrap(bytes)
        };
        (0..bytes.len()).map(flip).collect()
    };
    match value {
        Value::Integer(number) => {
            each(&number.to_le_bytes(), &|bytes| Value::Integer(i64::from_le_bytes(bytes.try_into().unwrap())))
        }
        Value::Text(text) => each(text.as_bytes(), &Value::Blob),
        Value::Blob(bytes) => each(bytes, &Value::Blob),
        Value::Null | Value::Real(_) => panic!("no column holds {value:?}"),
    }
}

struct Column {
    table: &'static str,
    key: &'static str,
    name: &'static str,
    text: bool,
}

const fn column(table: &'static str, key: &'static str, name: &'static str, text: bool) -> Column {
    Column { table, key, name, text }
}

const COLUMNS: [Column; 25] = [
    column("events", "seq", "seq", false),
    column("events", "seq", "stream", false),
    column("events", "seq", "version", false),
    column("events", "seq", "at_ms", false),
    column("events", "seq", "kind", true),
    column("events", "seq", "schema", false),
    column("events", "seq", "body", false),
    column("events", "seq", "record", false),
    column("events", "seq", "chain", false),
    column("events", "seq", "stream_chain", false),
    column("streams", "id", "id", false),
    column("streams", "id", "name", true),
    column("memos", "stream", "stream", false),
    column("memos", "stream", "fold", false),
    column("memos", "stream", "version", false),
    column("memos", "stream", "chain", false),
    column("memos", "stream", "state", false),
    column("memos", "stream", "proof", false),
    column("receipts", "key", "request", false),
    column("receipts", "key", "first_seq", false),
    column("receipts", "key", "last_seq", false),
    column("receipts", "key", "proof", false),
    column("receipts", "key", "key", true),
    column("store", "id", "store", false),
    column("store", "id", "proof", false),
];

/// Flips every byte of the rows of a column that `mine` takes; how many flips were tried.
fn run(column: &Column, mine: &dyn Fn(usize) -> bool) -> usize {
    let place = Place::new();
    let log = Log::open(&place.path(), &Opening::default()).unwrap();
    short(&log);
    drop(log);
    place.tamper("SELECT 1");
    let conn = rusqlite::Connection::open(place.path()).unwrap();
    conn.execute_batch("PRAGMA synchronous = OFF").unwrap();
    let reader = Reader::open(&place.path()).unwrap();
    let Column { table, key, name, text } = column;
    let sql = format!("SELECT {key}, {name} FROM {table} ORDER BY {key}");
    let rows: Vec<(Value, Value)> = conn
        .prepare(&sql)
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(!rows.is_empty(), "{table} has rows");
    let cast = if *text { "CAST(?2 AS TEXT)" } else { "?2" };
    let set = format!("UPDATE {table} SET {name} = {cast} WHERE {key} = ?1");
    let mut tried = 0;
    for (id, value) in rows.iter().enumerate().filter(|(index, _)| mine(*index)).map(|(_, row)| row) {
        for flipped in flips(value) {
            // A constraint of SQLite's own may refuse it: then nothing was changed.
            if conn.prepare_cached(&set).unwrap().execute((id, &flipped)).is_err() {
                continue;
            }
            tried += 1;
            let found = reader.verify(None, &mut |_| {});
            let what = format!("{table}.{name} of {id:?}: {flipped:?} for {value:?}");
            match found {
                Ok(found) => {
                    assert!(!found.is_sound(), "{what}");
                    assert!(found.problems[0].seq.0 > 0, "{what}: {:?}", found.problems);
                }
                Err(error) => assert_eq!(error.class(), Class::Corrupt, "{what}: {error:?}"),
            }
            if *table == "store" {
                assert_eq!(Reader::open(&place.path()).map(drop).unwrap_err().class(), Class::Corrupt, "{what}");
            }
            // Back, by the key that the row has now.
            let now = if key == name { &flipped } else { id };
            let back = match (key == name, *text) {
                (true, true) => format!("UPDATE {table} SET {name} = ?2 WHERE {key} = CAST(?1 AS TEXT)"),
                _ => format!("UPDATE {table} SET {name} = ?2 WHERE {key} = ?1"),
            };
            assert_eq!(conn.prepare_cached(&back).unwrap().execute((now, value)).unwrap(), 1, "{what}");
        }
    }
    assert!(reader.verify(None, &mut |_| {}).unwrap().is_sound(), "{table}.{name} was put back");
    tried
}

#[test]
fn no_flipped_byte_of_any_row_goes_unnoticed() {
    let tried: usize = std::thread::scope(|scope| {
        let half = |half: usize| {
            scope.spawn(move || COLUMNS.iter().map(|column| run(column, &|index| index % 2 == half)).sum::<usize>())
        };
        let threads = [half(0), half(1)];
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(tried > 30_000, "{tried}");
}
