//! A log that its reader may not write: in a folder and on files that are read-only for the user.
//!
//! The reader is this test executable as another user, where this one is root, for whom nothing is read-only. What it
//! answers is never older than what was acknowledged before it was asked, or it says that it is busy; and it leaves the
//! folder as it was.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use throughline::log::{Append, Class, Expectation, Records as _};

use crate::log_support::{append, blank, checkpoint, entry, labelled, put, reader, sound, why, writer};

const PLACE: &str = "THROUGHLINE_TEST_READ";
const HOW: &str = "THROUGHLINE_TEST_HOW";
const NOBODY: u32 = 65_534;
const LIVE: Duration = Duration::from_millis(1_500);

/// A folder with a log in `log/`, and an executable that another user may run.
struct Hall {
    dir: tempfile::TempDir,
    is_root: bool,
}

impl Hall {
    /// Nothing where a user for whom the files are read-only cannot be had.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("log")).unwrap();
        chmod(dir.path(), 0o755);
        let is_root = rustix::process::geteuid().is_root();
        let hall = Self { dir, is_root };
        let program = hall.dir.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        chmod(&program, 0o755);
        let probe = hall.child("nothing").output();
        let is_possible = probe.as_ref().is_ok_and(|output| output.status.success());
        if !is_possible {
            println!("skipped: no reader can be run as another user: {probe:?}");
        }
        is_possible.then_some(hall)
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn log(&self) -> PathBuf {
        self.folder().join("log.db")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.folder().join(format!("log.db{suffix}"))
    }

    fn child(&self, how: &str) -> Command {
        let mut command = Command::new(self.dir.path().join("program"));
        command
            .args(["--exact", "--nocapture", "log_readonly::the_reader_who_may_not_write"])
            .env(PLACE, self.log())
            .env(HOW, how)
            .stdin(Stdio::null());
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// A log of five events, the last two in the WAL alone.
    fn fill(&self) {
        let log = writer(&self.log()).unwrap();
        put(&log, "agent/a", vec![blank(), blank(), blank()]);
        checkpoint(&log).unwrap();
        put(&log, "agent/a", vec![blank(), blank()]);
    }

    /// Nobody but root writes here from now on.
    fn close(&self, folder: u32) {
        for entry in std::fs::read_dir(self.folder()).unwrap() {
            chmod(&entry.unwrap().path(), 0o444);
        }
        chmod(&self.folder(), folder);
    }

    /// Every file with its bytes.
    fn everything(&self) -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap());
        files.map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap())).collect()
    }

    /// What a reader says who opens the log now.
    fn answer(&self) -> String {
        let output = self.child("once").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find_map(|line| line.split_once("answer: ")).expect_answer(&text)
    }

    /// The reader answers so many events and leaves everything as it was.
    fn reads(&self, events: usize) {
        let before = self.everything();
        assert_eq!(self.answer(), format!("{events} events"));
        assert_eq!(self.answer(), format!("{events} events"), "a second time");
        assert!(self.everything() == before, "{:?} became {:?}", before.keys(), self.everything().keys());
    }
}

trait ExpectAnswer {
    fn expect_answer(self, text: &str) -> String;
}

impl ExpectAnswer for Option<(&str, &str)> {
    fn expect_answer(self, text: &str) -> String {
        self.unwrap_or_else(|| panic!("no answer in {text:?}")).1.to_owned()
    }
}

impl Drop for Hall {
    fn drop(&mut self) {
        // What is closed cannot be removed by a user who is not root.
        chmod(&self.folder(), 0o755);
    }
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Not a test by itself: the reader, as the user for whom the log is read-only.
#[test]
fn the_reader_who_may_not_write() {
    let (Some(path), Ok(how)) = (std::env::var_os(PLACE).map(PathBuf::from), std::env::var(HOW)) else { return };
    match how.as_str() {
        "once" => println!("answer: {}", once(&path)),
        "again" => again(&path),
        _ => {}
    }
}

fn once(path: &Path) -> String {
    let reader = match reader(path) {
        Ok(reader) => reader,
        Err(error) => return format!("{:?}: {}", error.class(), why(&error)),
    };
    match (labelled(&reader), reader.anchor()) {
        (Ok(events), Ok(anchor)) => {
            assert_eq!(events.len() as u64, anchor.seq.0);
            format!("{} events", events.len())
        }
        (Err(error), _) | (_, Err(error)) => format!("{:?}: {}", error.class(), why(&error)),
    }
}

/// The last place in a log, once by its end and once by all its events: the older of the two.
fn newest_of(records: &throughline::log::SqliteRecords<crate::log_support::Tally>) -> Result<u64, (Class, String)> {
    let seq = records.anchor().map_err(|error| (error.class(), why(&error)))?.seq.0;
    let events = labelled(records).map_err(|error| (error.class(), why(&error)))?;
    Ok(seq.min(events.len() as u64))
}

/// Reads again and again, anew and through one handle, until there is a file `stop`, and at least some times.
fn again(path: &Path) {
    let (acks, stop) = (path.with_file_name("../acks"), path.with_file_name("../stop"));
    let acknowledged = || std::fs::read_to_string(&acks).unwrap().trim().parse::<u64>().unwrap();
    let held = reader(path).unwrap();
    println!("ready");
    std::io::stdout().flush().unwrap();
    let (mut read, mut busy, mut newest, mut wrong) = (0, 0, 0, Vec::new());
    while read < 40 || !stop.try_exists().unwrap() {
        for way in ["anew", "held"] {
            let before = acknowledged();
            let found = match way {
                "anew" => {
                    reader(path).map_err(|error| (error.class(), why(&error))).and_then(|reader| newest_of(&reader))
                }
                _ => newest_of(&held),
            };
            match found {
                Ok(seq) if seq >= before => (read, newest) = (read + 1, newest.max(seq)),
                Ok(seq) => wrong.push(format!("{way}: {seq} although {before} were acknowledged")),
                Err((Class::Busy, _)) => busy += 1,
                Err((_, error)) => wrong.push(format!("{way}: {error}")),
            }
        }
    }
    println!("answer: read {read} busy {busy} newest {newest} wrong {} {:?}", wrong.len(), wrong.first());
}

const WRITES: &str = "THROUGHLINE_TEST_WRITES";

/// Not a test by itself: a writer that appends until there is a file `stop`, checkpoints now and then, and opens anew.
#[test]
fn the_writer_whose_log_is_read_by_others() {
    let Some(path) = std::env::var_os(WRITES).map(PathBuf::from) else { return };
    let (acks, stop) = (path.with_file_name("../acks"), path.with_file_name("../stop"));
    let acks = File::options().write(true).open(acks).unwrap();
    let mut log = writer(&path).unwrap();
    for number in 1_u64.. {
        if stop.try_exists().unwrap() {
            return;
        }
        let done = append(&log, &[entry("agent/a", Expectation::Any, vec![blank()])], &Append::at(1)).unwrap();
        acks.write_all_at(format!("{:>20}", done.anchor.seq.0).as_bytes(), 0).unwrap();
        if number.is_multiple_of(40) {
            checkpoint(&log).unwrap();
        }
        if number.is_multiple_of(150) {
            drop(log);
            log = writer(&path).unwrap();
        }
    }
}

fn wait_for_ready(child: &mut Child) -> std::io::BufReader<std::process::ChildStdout> {
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut output, &mut line).unwrap(), 0, "the reader did not begin");
    }
    output
}

#[test]
fn a_log_in_a_read_only_folder_is_read_and_left_as_it_is() {
    for gone in [&[][..], &["-shm"], &["-wal", "-shm"]] {
        let Some(hall) = Hall::new() else { return };
        hall.fill();
        if gone.contains(&"-wal") {
            let conn = rusqlite::Connection::open(hall.log()).unwrap();
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
        for suffix in gone {
            let _ = std::fs::remove_file(hall.beside(suffix));
        }
        let names: Vec<String> = hall.everything().into_keys().collect();
        // Beside them the two lock files of the writer.
        assert_eq!(names.len(), 5 - gone.len(), "{names:?}");
        hall.close(0o555);
        hall.reads(5);
    }
}

#[test]
fn a_read_only_log_in_a_writable_folder_is_read_and_can_be_written_afterwards() {
    for gone in [&[][..], &["-shm"], &["-wal", "-shm"]] {
        let Some(hall) = Hall::new() else { return };
        hall.fill();
        if gone.contains(&"-wal") {
            let conn = rusqlite::Connection::open(hall.log()).unwrap();
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
        for suffix in gone {
            let _ = std::fs::remove_file(hall.beside(suffix));
        }
        hall.close(0o777);
        let before = hall.everything();
        assert_eq!(hall.answer(), "5 events");
        let mut after = hall.everything();
        // What SQLite makes beside a WAL that is there.
        if !gone.contains(&"-wal") {
            after.remove("log.db-shm");
        }
        assert!(after.iter().all(|(name, bytes)| before.get(name) == Some(bytes)), "{:?}", after.keys());
        if !hall.is_root {
            continue;
        }
        let log = writer(&hall.log()).unwrap();
        put(&log, "agent/a", vec![blank()]);
        sound(&log, None).unwrap();
        assert_eq!(hall.answer(), "6 events");
    }
}

#[test]
fn a_reader_who_may_not_write_is_never_behind_a_live_writer() {
    for gone in [&[][..], &["-shm"], &["-wal", "-shm"]] {
        let Some(hall) = Hall::new() else { return };
        if !hall.is_root {
            println!("skipped: one user cannot write what is read-only for the same user");
            return;
        }
        hall.fill();
        if gone.contains(&"-wal") {
            let conn = rusqlite::Connection::open(hall.log()).unwrap();
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
        for suffix in gone {
            let _ = std::fs::remove_file(hall.beside(suffix));
        }
        hall.close(0o555);
        let acks = hall.dir.path().join("acks");
        std::fs::write(&acks, format!("{:>20}", 5)).unwrap();
        chmod(&acks, 0o644);
        // The handle that stays open is older than the writer.
        let mut child = hall.child("again").stdout(Stdio::piped()).spawn().unwrap();
        let output = wait_for_ready(&mut child);
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "log_readonly::the_writer_whose_log_is_read_by_others"])
            .env(WRITES, hall.log())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + LIVE;
        let newest = || std::fs::read_to_string(&acks).unwrap().trim().parse::<u64>().unwrap();
        while (Instant::now() < until || newest() < 100)
            && writer.try_wait().unwrap().is_none()
            && child.try_wait().unwrap().is_none()
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::write(hall.dir.path().join("stop"), "").unwrap();
        assert!(writer.wait().unwrap().success());
        let text = std::io::read_to_string(output).unwrap();
        assert!(child.wait().unwrap().success());
        let answer = text.lines().find_map(|line| line.split_once("answer: ")).expect_answer(&text);
        println!("without {gone:?}: {answer}");
        assert!(answer.contains(" wrong 0 "), "without {gone:?}: {answer}");
        let word =
            |word: &str| answer.split(' ').skip_while(|found| *found != word).nth(1).unwrap().parse::<u64>().unwrap();
        assert!(word("read") > 20 && word("newest") > 20, "{answer}");
    }
}

/// Puts a log that SQLite journals the old way into a hall, with a transaction that its writer did not finish.
fn with_hot_journal(hall: &Hall) {
    hall.fill();
    let other = tempfile::tempdir().unwrap();
    let path = other.path().join("log.db");
    let conn = rusqlite::Connection::open(hall.log()).unwrap();
    conn.pragma_update(None, "journal_mode", "delete").unwrap();
    drop(conn);
    std::fs::copy(hall.log(), &path).unwrap();
    let conn = rusqlite::Connection::open(&path).unwrap();
    // Without syncs the journal is whole at every moment: then it and what is written under it make the moment in which a
    // killed writer had written everything, and had not removed its journal.
    conn.execute_batch("PRAGMA synchronous = OFF; BEGIN IMMEDIATE").unwrap();
    for number in 1..=400 {
        conn.execute(
            "INSERT INTO events (seq, stream, version, at_ms, kind, schema, body, record, chain, stream_chain)
             SELECT 5 + ?1, stream, 5 + ?1, at_ms, kind, schema, body, record, chain, stream_chain FROM events
             WHERE seq = 5",
            [number],
        )
        .unwrap();
    }
    std::fs::copy(other.path().join("log.db-journal"), hall.beside("-journal")).unwrap();
    conn.execute_batch("COMMIT").unwrap();
    std::fs::copy(&path, hall.log()).unwrap();
}

#[test]
fn a_reader_sees_nothing_of_a_transaction_that_its_writer_did_not_finish() {
    let Some(hall) = Hall::new() else { return };
    with_hot_journal(&hall);
    // Without its journal the file says something else: there is something to be taken back.
    let half = tempfile::tempdir().unwrap();
    std::fs::copy(hall.log(), half.path().join("log.db")).unwrap();
    assert_ne!(once(&half.path().join("log.db")), "5 events");
    hall.close(0o555);
    let before = hall.everything();
    let answer = hall.answer();
    assert!(answer == "5 events" || answer.starts_with("Busy: "), "{answer}");
    assert!(hall.everything() == before);
    println!("beside a hot journal: {answer}");
    // A user who may write takes it back.
    if hall.is_root {
        let log = writer(&hall.log()).unwrap();
        put(&log, "agent/a", vec![blank()]);
        sound(&log, None).unwrap();
        assert_eq!(labelled(&log).unwrap().len(), 6);
    }
}

#[test]
fn a_log_with_a_rollback_journal_is_read_in_a_read_only_folder() {
    let Some(hall) = Hall::new() else { return };
    hall.fill();
    let conn = rusqlite::Connection::open(hall.log()).unwrap();
    conn.pragma_update(None, "journal_mode", "delete").unwrap();
    drop(conn);
    hall.close(0o555);
    hall.reads(5);
}
