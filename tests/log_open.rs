//! What is opened, what is refused, and what is left in the folder.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use throughline::id::StoreId;
use throughline::log::{
    Append, AppendError, Class, Expectation, Import, Journal, Log as _, LogError, Mode, OpenError, Opening,
    Records as _,
};

use crate::log_support::{Log, Place, Reader, blank, entry, filled, fresh, names, problems, put, stream};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_log_is_made_for_its_owner_alone() {
    let place = Place::new();
    let path = place.dir.path().join("state/throughline/log.db");
    let log = Log::open(&path, &Opening::default()).unwrap();
    put(&log, "agent/a", vec![blank()]);
    for name in ["log.db", "log.db-wal", "log.db-shm", "log.db-gate", "log.db-queue"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(log.journal(), Journal::Wal);
}

#[test]
fn without_leave_to_create_nothing_is_created() {
    let place = Place::new();
    let opening = Opening { create: false, ..Opening::default() };
    let error = Log::open(&place.path(), &opening).unwrap_err();
    assert_eq!(error.class(), Class::NotThere);
    assert!(matches!(Reader::open(&place.path()), Err(OpenError::NotThere { .. })));
    assert!(matches!(Reader::open(&place.dir.path().join("no/where/log.db")), Err(OpenError::NotThere { .. })));
    assert!(place.names().is_empty());
    std::fs::write(place.path(), b"").unwrap();
    assert!(matches!(Log::open(&place.path(), &opening), Err(OpenError::NotThere { .. })));
    assert!(matches!(Reader::open(&place.path()), Err(OpenError::NotALog { .. })));
    assert_eq!(place.names(), ["log.db"]);
    assert_eq!(std::fs::read(place.path()).unwrap(), b"");
}

#[test]
fn the_store_id_is_given_once() {
    let place = Place::new();
    let id: StoreId = "11111111-2222-4333-8444-555555555555".parse().unwrap();
    let log = Log::open(&place.path(), &Opening { store: Some(id), ..Opening::default() }).unwrap();
    assert_eq!(log.store(), id);
    let other = Opening { store: Some(StoreId(uuid::Uuid::nil())), ..Opening::default() };
    assert_eq!(Log::open(&place.path(), &other).unwrap().store(), id);
    assert_ne!(Place::new().log().store(), Place::new().log().store());
}

#[test]
fn a_reader_makes_nothing_but_the_shared_memory_of_a_wal_that_is_there() {
    let place = Place::new();
    drop(filled(&place, 10));
    let read = |expected: &[&str]| {
        let reader = Reader::open(&place.path()).unwrap();
        assert_eq!(reader.state(&stream("agent/a")).unwrap().1.events, 6);
        assert!(problems(&reader, None).is_empty());
        assert_eq!(place.names(), expected);
        drop(reader);
        assert_eq!(place.names(), expected);
    };
    let bytes = || std::fs::read(place.dir.path().join("log.db-wal")).unwrap();
    let before = (bytes(), std::fs::read(place.path()).unwrap());
    read(&["log.db", "log.db-gate", "log.db-queue", "log.db-shm", "log.db-wal"]);
    std::fs::remove_file(place.dir.path().join("log.db-shm")).unwrap();
    read(&["log.db", "log.db-gate", "log.db-queue", "log.db-shm", "log.db-wal"]);
    assert_eq!(before, (bytes(), std::fs::read(place.path()).unwrap()));
    // As sqlite's own shell leaves it: everything in one file.
    let shell = rusqlite::Connection::open(place.path()).unwrap();
    shell.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(shell);
    assert_eq!(place.names(), ["log.db", "log.db-gate", "log.db-queue"]);
    read(&["log.db", "log.db-gate", "log.db-queue"]);
}

#[test]
fn a_reader_without_locks_sees_what_is_committed_after_it_was_opened() {
    let place = Place::new();
    drop(filled(&place, 10));
    let shell = rusqlite::Connection::open(place.path()).unwrap();
    shell.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(shell);
    let reader = Reader::open(&place.path()).unwrap();
    assert_eq!(place.names(), ["log.db", "log.db-gate", "log.db-queue"]);
    assert_eq!(reader.anchor().unwrap().seq.0, 10);
    let log = place.log();
    put(&log, "agent/a", vec![blank()]);
    assert_eq!(reader.anchor().unwrap().seq.0, 11);
    log.checkpoint().unwrap();
    put(&log, "agent/a", vec![blank()]);
    assert_eq!(reader.state(&stream("agent/a")).unwrap().1.events, 8);
    assert!(problems(&reader, None).is_empty());
}

#[test]
fn a_reader_follows_a_file_that_was_put_in_the_place_of_another() {
    let (place, other) = (Place::new(), Place::new());
    let one_file = |place: &Place, count| {
        drop(filled(place, count));
        let shell = rusqlite::Connection::open(place.path()).unwrap();
        shell.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    };
    one_file(&place, 10);
    one_file(&other, 20);
    let reader = Reader::open(&place.path()).unwrap();
    let store = reader.store();
    std::fs::rename(other.path(), place.path()).unwrap();
    assert_eq!(reader.anchor().unwrap().seq.0, 20);
    assert_ne!(reader.store(), store);
    assert!(problems(&reader, None).is_empty());
}

#[test]
fn what_is_not_a_log_is_refused_as_what_it_is_and_stays_as_it_is() {
    let check = |make: &dyn Fn(&Path), expected: &dyn Fn(&OpenError) -> bool| {
        let place = Place::new();
        make(&place.path());
        // SQLite's own files may appear beside what says of itself that it is a log of this format; a writer's are there.
        let look = || {
            let names: Vec<String> = place.names().into_iter().filter(|name| !name.contains("log.db-")).collect();
            (names, std::fs::read(place.path()).ok())
        };
        let before = look();
        for error in [
            Log::open(&place.path(), &Opening::default()).map(drop).unwrap_err(),
            Reader::open(&place.path()).map(drop).unwrap_err(),
        ] {
            assert!(expected(&error), "{error:?}");
            assert_eq!(error.class(), Class::Corrupt);
        }
        assert!(look() == before);
    };
    let not = |error: &OpenError| matches!(error, OpenError::NotALog { .. });
    check(&|path| std::fs::write(path, "just some text\n").unwrap(), &not);
    check(&|path| std::fs::write(path, vec![0; 8192]).unwrap(), &not);
    check(&|path| std::fs::write(path, [b"SQLite format 3\0".to_vec(), vec![7; 5000]].concat()).unwrap(), &|error| {
        matches!(error, OpenError::Log { .. } | OpenError::NotALog { .. })
    });
    check(&|path| std::fs::create_dir(path).unwrap(), &not);
    let sql =
        |sql: &'static str| move |path: &Path| rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    check(&sql("CREATE TABLE t (x)"), &not);
    check(&sql("PRAGMA journal_mode = wal; CREATE TABLE t (x)"), &not);
    check(&sql("PRAGMA application_id = 77; CREATE TABLE t (x)"), &not);
    let made = |sql: &'static str| {
        move |path: &Path| {
            drop(Log::open(path, &Opening::default()).unwrap());
            let conn = rusqlite::Connection::open(path).unwrap();
            conn.execute_batch(sql).unwrap();
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
    };
    check(&made("PRAGMA user_version = 2"), &|error| matches!(error, OpenError::Newer { found: 2, known: 1, .. }));
    check(&made("PRAGMA application_id = 5"), &not);
    check(&made("ALTER TABLE events ADD COLUMN extra INTEGER"), &|error| {
        matches!(error, OpenError::Altered { table: "events", .. })
    });
    check(&made("DROP TABLE memos"), &|error| matches!(error, OpenError::Altered { table: "memos", .. }));
    check(&made("DROP TRIGGER store_no_delete; DELETE FROM store"), &|error| {
        matches!(error, OpenError::Log { source: LogError::Damaged(_), .. })
    });
}

#[test]
fn another_applications_database_gets_no_files_beside_it() {
    let place = Place::new();
    let sql = "PRAGMA application_id = 77; PRAGMA journal_mode = wal; CREATE TABLE t (x)";
    rusqlite::Connection::open(place.path()).unwrap().execute_batch(sql).unwrap();
    assert!(matches!(Log::open(&place.path(), &Opening::default()), Err(OpenError::NotALog { .. })));
    assert!(matches!(Reader::open(&place.path()), Err(OpenError::NotALog { .. })));
    assert_eq!(place.names(), ["log.db"]);
}

#[test]
fn a_file_that_was_cut_short_is_corrupt_and_never_a_panic() {
    let place = Place::new();
    let log = filled(&place, 300);
    log.checkpoint().unwrap();
    drop(log);
    std::fs::remove_file(place.dir.path().join("log.db-wal")).unwrap();
    let whole = std::fs::read(place.path()).unwrap();
    for cut in (1..whole.len()).step_by(1_777) {
        std::fs::write(place.path(), &whole[..cut]).unwrap();
        match Reader::open(&place.path()) {
            Err(error) => assert_eq!(error.class(), Class::Corrupt, "{cut}: {error:?}"),
            Ok(reader) => match reader.verify(None, &mut |_| {}) {
                Err(error) => assert_eq!(error.class(), Class::Corrupt, "{cut}: {error:?}"),
                Ok(found) => assert!(!found.is_sound(), "{cut}"),
            },
        }
        if let Err(error) = Log::open(&place.path(), &Opening::default()) {
            assert_eq!(error.class(), Class::Corrupt, "{cut}: {error:?}");
        }
        for name in names(place.dir.path()).iter().filter(|name| *name != "log.db") {
            std::fs::remove_file(place.dir.path().join(name)).unwrap();
        }
    }
}

#[test]
fn no_byte_of_the_file_can_make_a_reader_panic() {
    let place = Place::new();
    let log = filled(&place, 120);
    log.checkpoint().unwrap();
    drop(log);
    std::fs::remove_file(place.dir.path().join("log.db-wal")).unwrap();
    let whole = std::fs::read(place.path()).unwrap();
    let mut noticed = 0;
    // Every byte of the header, then bytes of every page.
    for at in (0..100).chain((100..whole.len()).step_by(97)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        std::fs::write(place.path(), &bytes).unwrap();
        let sound = Reader::open(&place.path()).is_ok_and(|reader| {
            let _ = (reader.streams(), reader.state(&stream("agent/a")));
            let _ = reader.export(&mut std::io::sink(), &mut |_| {});
            reader.verify(None, &mut |_| {}).is_ok_and(|found| found.is_sound())
        });
        noticed += u32::from(!sound);
        for name in names(place.dir.path()).iter().filter(|name| *name != "log.db") {
            std::fs::remove_file(place.dir.path().join(name)).unwrap();
        }
    }
    assert!(noticed > 100, "{noticed}");
}

#[test]
fn a_log_that_is_locked_for_long_is_busy_and_unchanged() {
    let place = Place::new();
    drop(filled(&place, 3));
    let holder = rusqlite::Connection::open(place.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let log = Log::open(&place.path(), &Opening { busy_ms: 20, ..Opening::default() }).unwrap();
    let before = log.anchor().unwrap();
    let result = log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1));
    assert!(matches!(&result, Err(AppendError::Log(LogError::Busy(_)))), "{result:?}");
    assert_eq!(result.unwrap_err().class(), Class::Busy);
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(log.anchor().unwrap(), before);
    put(&log, "agent/a", vec![blank()]);
}

#[test]
fn all_who_make_one_log_at_once_get_it() {
    for _ in 0..5 {
        let place = Place::new();
        let stores: Vec<StoreId> = std::thread::scope(|scope| {
            let open = |_| {
                scope.spawn(|| {
                    let log = place.log();
                    put(&log, "agent/a", vec![blank()]);
                    log.store()
                })
            };
            let threads: Vec<_> = (0..6).map(open).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(stores.iter().all(|store| *store == stores[0]));
        let log = place.log();
        assert_eq!(log.anchor().unwrap().seq.0, 6);
        assert!(problems(&log, None).is_empty());
    }
}

#[test]
fn a_wal_that_grew_is_copied_back_when_the_log_is_opened_again() {
    let place = Place::new();
    let log = place.log();
    let wal = || std::fs::metadata(place.dir.path().join("log.db-wal")).unwrap().len();
    while wal() <= throughline::log::WAL_BYTES_AT_OPEN {
        put(&log, "agent/a", vec![blank(); 500]);
    }
    drop(log);
    let grown = wal();
    let log = place.log();
    put(&log, "agent/a", vec![blank(); 500]);
    assert!(wal() <= grown, "the WAL was begun anew");
    assert!(problems(&log, None).is_empty());
}

/// The locks that this process holds on a file, as the kernel lists them with each of its descriptors. (The list of all
/// processes' locks shifts while it is read.)
fn locks_on(path: &Path) -> std::collections::BTreeSet<String> {
    let path = std::fs::canonicalize(path).unwrap();
    let mut locks = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let entry = entry.unwrap();
        // One that was closed meanwhile holds nothing.
        if !std::fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            continue;
        }
        let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(entry.file_name())).unwrap_or_default();
        let lock = |line: &str| Some(line.strip_prefix("lock:")?.split_once(": ")?.1.to_owned());
        locks.extend(info.lines().filter_map(lock));
    }
    locks
}

#[test]
fn a_reader_beside_a_writer_of_the_same_process_takes_no_lock_away() {
    let place = Place::new();
    let log = place.log();
    put(&log, "agent/a", vec![blank()]);
    let held = locks_on(&place.path());
    assert!(!held.is_empty(), "a writer holds a lock on its file for as long as it is open");
    drop(Reader::open(&place.path()).unwrap());
    assert_eq!(locks_on(&place.path()), held, "a descriptor was closed beside SQLite's own");
    // A reader without locks, opened while nobody wrote, and closed while somebody does.
    let other = Place::new();
    drop(other.log());
    let _ = std::fs::remove_file(other.path().with_file_name("log.db-wal"));
    let early = Reader::open(&other.path()).unwrap();
    let log = other.log();
    let held = locks_on(&other.path());
    assert!(!held.is_empty());
    drop(early);
    assert_eq!(locks_on(&other.path()), held);
    drop(log);
    assert!(locks_on(&other.path()).is_empty());
}

#[test]
fn an_empty_file_is_waited_for_and_then_refused() {
    let place = Place::new();
    std::fs::write(place.path(), "").unwrap();
    assert!(matches!(Reader::open(&place.path()), Err(OpenError::NotALog { found: "an empty file", .. })));
    assert!(Reader::open(&place.path()).is_err_and(|error| error.class() == Class::Corrupt));
    let path = place.path();
    let maker = std::thread::spawn(move || Log::open(&path, &Opening::default()).map(drop).unwrap());
    assert!(Reader::open(&place.path()).is_ok());
    maker.join().unwrap();
}

#[test]
fn no_log_is_made_beside_a_wal_that_holds_one() {
    for empty in [true, false] {
        let place = Place::new();
        drop(filled(&place, 5));
        let wal = place.path().with_file_name("log.db-wal");
        let before = std::fs::read(&wal).unwrap();
        assert!(!before.is_empty(), "one-shot writers leave the events in the WAL");
        if empty {
            std::fs::write(place.path(), "").unwrap();
        } else {
            std::fs::remove_file(place.path()).unwrap();
        }
        let error = Log::open(&place.path(), &Opening::default()).unwrap_err();
        assert_eq!(error.class(), Class::Corrupt, "{error}");
        assert_eq!(std::fs::read(&wal).unwrap(), before, "the events are still there to be rescued");
    }
}

#[test]
fn two_copies_of_one_log_are_told_apart_by_an_anchor() {
    let place = Place::new();
    drop(filled(&place, 20));
    let copy = Place::new();
    for name in ["log.db", "log.db-wal"] {
        std::fs::copy(place.dir.path().join(name), copy.dir.path().join(name)).unwrap();
    }
    let (log, other) = (place.log(), copy.log());
    assert_eq!(log.store(), other.store());
    let shared = log.anchor().unwrap();
    let here = put(&log, "agent/a", vec![blank()]);
    put(&other, "agent/a", vec![fresh("elsewhere"), blank()]);
    // Each goes on from what they share, and says of the other's end that it is none of its own.
    for (one, anchor) in [(&log, other.anchor().unwrap()), (&other, here.anchor)] {
        assert!(problems(one, Some(shared)).is_empty());
        assert_eq!(problems(one, Some(anchor)).len(), 1, "{anchor}");
    }
    // Who has read the one does not write into the other by mistake.
    let expected = Expectation::from(&here.frontiers[0]);
    let result = other.append(&[entry("agent/a", expected, vec![blank()])], &Append::at(1));
    assert!(matches!(result, Err(AppendError::Conflict { .. })), "{result:?}");
}

#[test]
fn a_clock_that_was_set_back_changes_nothing_but_the_time_that_is_shown() {
    let place = Place::new();
    let log = place.log();
    for at_ms in [1_000, 500, -7, i64::MIN, i64::MAX, 0] {
        log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(at_ms)).unwrap();
    }
    let mut seen = Vec::new();
    log.events(throughline::id::Seq(1), &mut |event| {
        seen.push((event.seq.0, event.at_ms));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, [(1, 1_000), (2, 500), (3, -7), (4, i64::MIN), (5, i64::MAX), (6, 0)]);
    assert!(problems(&log, None).is_empty());
}

#[test]
fn a_log_that_is_replaced_while_it_is_open_is_followed_by_readers_and_refused_by_its_writer() {
    let (place, other) = (Place::new(), Place::new());
    let log = filled(&place, 10);
    let reader = Reader::open(&place.path()).unwrap();
    drop(filled(&other, 20));
    let aside = |suffix: &str| place.dir.path().join(format!("old.db{suffix}"));
    let of = |place: &Place, suffix: &str| place.dir.path().join(format!("log.db{suffix}"));
    for suffix in ["", "-wal", "-shm"] {
        std::fs::rename(of(&place, suffix), aside(suffix)).unwrap();
    }
    let result = log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1));
    assert!(matches!(result, Err(AppendError::Log(LogError::Replaced))), "{result:?}");
    assert!(matches!(reader.anchor(), Err(LogError::Replaced)));
    for suffix in ["", "-wal"] {
        std::fs::copy(of(&other, suffix), of(&place, suffix)).unwrap();
    }
    assert_eq!(reader.anchor().unwrap().seq.0, 20);
    assert!(problems(&reader, None).is_empty());
    assert!(matches!(log.anchor(), Err(LogError::Replaced)));
    let result = log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1));
    assert!(matches!(result, Err(AppendError::Log(LogError::Replaced))), "{result:?}");
    // Nothing went anywhere.
    assert_eq!([place.path(), aside("")].map(|path| Reader::open(&path).unwrap().anchor().unwrap().seq.0), [20, 10]);
}

#[test]
fn a_log_that_is_restored_in_its_place_is_not_written_by_who_had_it_open() {
    for restored in [true, false] {
        let place = Place::new();
        let log = filled(&place, 10);
        log.checkpoint().unwrap();
        let backup = std::fs::read(place.path()).unwrap();
        for _ in 0..5 {
            put(&log, "agent/a", vec![blank()]);
        }
        let reader = Reader::open(&place.path()).unwrap();
        assert_eq!(reader.anchor().unwrap().seq.0, 15);
        std::fs::remove_file(place.dir.path().join("log.db-wal")).unwrap();
        std::fs::remove_file(place.dir.path().join("log.db-shm")).unwrap();
        if restored {
            std::fs::write(place.path(), &backup).unwrap();
        }
        let result = log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1));
        assert!(matches!(result, Err(AppendError::Log(LogError::Replaced))), "{result:?}");
        assert!(matches!(log.checkpoint(), Err(LogError::Replaced)));
        // All handles of a process share what SQLite knows of the WAL: as long as this one is there, no other is right.
        let again = Log::open(&place.path(), &Opening::default());
        assert!(matches!(again, Err(OpenError::Log { source: LogError::Replaced, .. })), "{again:?}");
        assert!(matches!(log.anchor(), Err(LogError::Replaced)));
        assert!(matches!(reader.anchor(), Err(LogError::Replaced)));
        drop(log);
        assert_eq!(reader.anchor().unwrap().seq.0, 10);
        // The log is what was restored, sound, and goes on from there.
        let log = place.log();
        assert_eq!(log.anchor().unwrap().seq.0, 10);
        put(&log, "agent/a", vec![blank()]);
        assert!(problems(&log, None).is_empty());
        assert_eq!(reader.anchor().unwrap().seq.0, 11);
    }
}

#[test]
fn a_log_whose_shared_memory_was_taken_away_is_not_written_and_not_read() {
    let place = Place::new();
    let log = filled(&place, 10);
    let reader = Reader::open(&place.path()).unwrap();
    std::fs::remove_file(place.dir.path().join("log.db-shm")).unwrap();
    let result = log.append(&[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1));
    assert!(matches!(result, Err(AppendError::Log(LogError::Replaced))), "{result:?}");
    assert!(matches!(reader.anchor(), Err(LogError::Replaced)));
    drop(log);
    assert_eq!(reader.anchor().unwrap().seq.0, 10);
}

#[test]
fn a_log_that_is_restored_while_an_import_goes_on_loses_nothing_that_was_acknowledged() {
    let place = Place::new();
    let log = filled(&place, 3);
    log.checkpoint().unwrap();
    let backup = std::fs::read(place.path()).unwrap();
    let line = "{\"stream\":\"agent/a\",\"kind\":\"fresh_intended\",\"body\":{}}\n";
    let import = Import { mode: Mode::Unverified, at_ms: 1 };
    let result = log.import(&mut line.repeat(9).as_bytes(), &import, &mut |at| {
        if at == 5 {
            for suffix in ["-wal", "-shm"] {
                std::fs::remove_file(place.dir.path().join(format!("log.db{suffix}"))).unwrap();
            }
            std::fs::write(place.path(), &backup).unwrap();
        }
    });
    assert!(result.unwrap_err().to_string().contains("removed or replaced") || log.anchor().is_err());
    drop(log);
    assert_eq!(place.log().anchor().unwrap().seq.0, 3);
}

#[test]
fn a_log_with_two_names_is_refused_under_both() {
    let place = Place::new();
    drop(filled(&place, 3));
    std::fs::hard_link(place.path(), place.dir.path().join("other.db")).unwrap();
    for path in [place.path(), place.dir.path().join("other.db")] {
        assert!(matches!(Log::open(&path, &Opening::default()), Err(OpenError::NotALog { .. })));
        assert!(matches!(Reader::open(&path), Err(OpenError::NotALog { .. })));
    }
    std::fs::remove_file(place.dir.path().join("other.db")).unwrap();
    assert_eq!(place.log().anchor().unwrap().seq.0, 3);
}

#[test]
fn a_call_inside_a_call_does_not_take_the_log_away_from_it() {
    let place = Place::new();
    drop(filled(&place, 10));
    let shell = rusqlite::Connection::open(place.path()).unwrap();
    shell.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(shell);
    let reader = Reader::open(&place.path()).unwrap();
    let mut inside = None;
    let result = reader.events(throughline::id::Seq(1), &mut |_| {
        if inside.is_none() {
            put(&place.log(), "agent/a", vec![blank()]);
            inside = Some(reader.anchor());
        }
        std::ops::ControlFlow::Continue(())
    });
    assert!(matches!(inside, Some(Err(LogError::Changed))), "{inside:?}");
    assert!(matches!(result, Err(LogError::Changed)), "{result:?}");
    assert_eq!(reader.anchor().unwrap().seq.0, 11);
    assert!(problems(&reader, None).is_empty());
}
