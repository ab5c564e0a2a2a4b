//! A disk that is full: the writer says so, nothing that was there is harmed, and the log goes on when there is space again.
//!
//! Once by the shim, which refuses writes from the n-th on, and once on a small real file system that is filled up.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use throughline::log::{Append, AppendError, Class, Expectation, Records as _};

use crate::log_fault::{Op, Shim};
use crate::log_life::{After, LIFE, Step, World, survives};
use crate::log_support::{append, checkpoint, entry, fresh, labelled, reader, share, sound, why, writer};

const ENOSPC: i32 = 28;

#[test]
fn a_full_disk_refuses_what_comes_and_keeps_what_is_there() {
    let shim = Shim::build();
    let ops = World::whole_life(&shim);
    // Making a file or a folder takes space too.
    let takes = |op: &&Op| matches!(op, Op::Write { .. } | Op::Cut { .. } | Op::Create(_) | Op::MakeFolder(_));
    let points = ops.iter().filter(takes).count();
    assert!(points >= 50, "{points}");
    let heard: Mutex<[usize; 3]> = Mutex::default();
    // Every point in a process that goes on, every third one also in one that ends.
    let ways = (1..=points).flat_map(|at| [Some((at, After::Again)), (at % 3 == 0).then_some((at, After::Stop))]);
    share(ways.flatten(), |(at, after)| {
        let world = World::new();
        let space = world.dir.path().join("space");
        let words = [
            ("FAULT_FAIL", "wtcm".to_owned()),
            ("FAULT_AT", at.to_string()),
            ("FAULT_ERRNO", ENOSPC.to_string()),
            ("FAULT_UNTIL", space.to_str().unwrap().to_owned()),
        ];
        let status = world.lives(&shim, after, &words);
        assert!(status.success(), "full at {at}, {after:?}: {}", world.errors());
        let told = world.told();
        let [(step, class)] = told.failures.as_slice() else {
            panic!("full at {at}, {after:?}: failures {:?}", told.failures)
        };
        // SQLite keeps to itself why a file was not made, or not made shorter.
        let untold = ["Error code 14:", "Error code 1546:"].iter().any(|code| world.errors().contains(code));
        assert!(class == "DiskFull" || untold, "full at {at}, step {step}: {}", world.errors());
        let kind = match LIFE[*step] {
            Step::Open => 0,
            Step::Append { .. } => 1,
            Step::Checkpoint | Step::Close => 2,
        };
        heard.lock().unwrap()[kind] += 1;
        survives(&world.log(), &told).unwrap_or_else(|error| panic!("full at {at}, {after:?}: {error}"));
    });
    let [opens, appends, checkpoints] = heard.into_inner().unwrap();
    println!("a full disk at {points} points: {opens} openings, {appends} appends, {checkpoints} checkpoints refused");
    assert!(opens >= 20 && appends >= 50 && checkpoints >= 10);
}

/// Without it a machine on which nothing can be mounted passes.
const REQUIRED: &str = "THROUGHLINE_REQUIRE_MOUNT";

/// A small file system in memory; unmounted when dropped.
struct Small {
    dir: tempfile::TempDir,
    is_mounted: bool,
}

impl Small {
    fn mount(bytes: u64) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let option = format!("size={bytes}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &option, "throughline"]).arg(dir.path()).output();
        let is_mounted = mounted.as_ref().is_ok_and(|output| output.status.success());
        assert!(is_mounted || std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set: {mounted:?}");
        is_mounted.then_some(Self { dir, is_mounted })
    }

    fn filler(&self) -> PathBuf {
        self.dir.path().join("filler")
    }

    /// Fills the file system to the last byte, but for so many bytes.
    fn fill(&self, free: usize) {
        let mut filler = File::create(self.filler()).unwrap();
        let block = [1_u8; 4096];
        let mut bytes = 0_u64;
        while let Ok(count) = filler.write(&block) {
            bytes += count as u64;
        }
        filler.set_len(bytes - free as u64).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        if self.is_mounted {
            let unmounted = Command::new("umount").arg("-l").arg(self.dir.path()).status();
            assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
        }
    }
}

/// What the fill levels came to.
#[derive(Default, Debug)]
struct Levels {
    unopened: AtomicUsize,
    refused: AtomicUsize,
    /// Opening to write failed, reading did not.
    read: AtomicUsize,
    checkpoints: AtomicUsize,
}

#[test]
fn a_really_full_disk_refuses_what_comes_and_keeps_what_is_there() {
    let Some(small) = Small::mount(2 * 1024 * 1024) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let levels = Levels::default();
    for level in 0..60_usize {
        let log = small.dir.path().join(format!("{level}/log.db"));
        // From a log that cannot be made to one whose WAL, wal-index or checkpoint meets the end of the disk.
        let is_new = level % 3 == 0;
        if !is_new {
            let log = writer(&log).unwrap();
            append(&log, &[entry("agent/a", Expectation::Any, vec![fresh("before")])], &Append::at(1)).unwrap();
            if level % 3 == 2 {
                checkpoint(&log).unwrap();
            }
        }
        if level % 2 == 0 && !is_new {
            // As after a restart: the wal-index has to be made anew on the full disk.
            std::fs::remove_file(log.with_file_name("log.db-shm")).unwrap();
        }
        small.fill(level / 3 * 4096);
        until_full(&log, u64::from(!is_new), &levels);
        std::fs::remove_file(small.filler()).unwrap();
        let log_again = writer(&log).unwrap();
        append(&log_again, &[entry("agent/a", Expectation::Any, vec![fresh("after")])], &Append::at(1)).unwrap();
        sound(&log_again, None).unwrap();
        drop(log_again);
        std::fs::remove_dir_all(log.parent().unwrap()).unwrap();
    }
    println!("a really full disk: {levels:?}");
    for counter in [&levels.unopened, &levels.read, &levels.refused, &levels.checkpoints] {
        assert!(counter.load(Ordering::Relaxed) >= 5, "{levels:?}");
    }
}

/// How many frames the first part of a WAL's index holds.
const FRAMES: u64 = 4062;

#[test]
fn a_wal_that_outgrows_its_index_on_a_full_disk_ends_no_process() {
    let Some(small) = Small::mount(40 * 1024 * 1024) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let (mut unknown, mut full) = (0, 0);
    for pages in 4..28_usize {
        let path = small.dir.path().join(format!("{pages}/log.db"));
        let log = writer(&path).unwrap();
        let more = [entry("agent/a", Expectation::Any, vec![fresh("more")])];
        let frames = || std::fs::metadata(path.with_file_name("log.db-wal")).unwrap().len() / (4096 + 24);
        // Somebody else's blob brings the WAL near the end of its index.
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch(
            "PRAGMA wal_autocheckpoint = 0; CREATE TABLE blob (x); INSERT INTO blob VALUES (zeroblob(16400000))",
        )
        .unwrap();
        while frames() < FRAMES - 12 {
            append(&log, &more, &Append::at(1)).unwrap();
        }
        small.fill(pages * 4096);
        let mut last = log.anchor().unwrap();
        let error = loop {
            assert!(last.seq.0 < 5_000, "the disk is never full");
            match append(&log, &more, &Append::at(1)) {
                Ok(appended) => last = appended.anchor,
                Err(error) => break error,
            }
        };
        let is_unknown = matches!(error, AppendError::UnknownCommit(_));
        assert!(is_unknown || error.class() == Class::DiskFull, "{}", why(&error));
        unknown += usize::from(is_unknown);
        full += usize::from(!is_unknown);
        assert_eq!(log.anchor().unwrap(), last);
        assert_eq!(labelled(&reader(&path).unwrap()).unwrap().len() as u64, last.seq.0);
        std::fs::remove_file(small.filler()).unwrap();
        drop((log, conn));
        let log = writer(&path).unwrap();
        let there = log.anchor().unwrap().seq.0 - last.seq.0;
        assert!(there == 0 || there == 1 && is_unknown);
        append(&log, &more, &Append::at(1)).unwrap();
        sound(&log, Some(last)).unwrap();
        drop(log);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
    println!("a full disk at the end of a WAL's index: {full} full, {unknown} open commits");
    assert!(unknown > 0 && full > 0);
}

/// Appends until the disk is full, and looks at what there is then.
fn until_full(path: &Path, there: u64, levels: &Levels) {
    let count = |counter: &AtomicUsize| counter.fetch_add(1, Ordering::Relaxed);
    let log = match writer(path) {
        Ok(log) => log,
        Err(error) => {
            assert_eq!(error.class(), Class::DiskFull, "{}", why(&error));
            count(&levels.unopened);
            if there > 0 {
                let events = labelled(&reader(path).unwrap()).unwrap();
                assert_eq!(events.len() as u64, there);
                count(&levels.read);
            }
            return;
        }
    };
    let before = log.anchor().unwrap();
    let mut last = before;
    let mut appends = 0;
    let error = loop {
        appends += 1;
        assert!(appends < 5_000, "the disk is never full");
        let events = (0..5).map(|event| fresh(&format!("{event} {}", "x".repeat(200)))).collect();
        match append(&log, &[entry("agent/b", Expectation::Any, events)], &Append::at(1)) {
            Ok(appended) => last = appended.anchor,
            Err(error) => break error,
        }
    };
    assert!(!matches!(error, AppendError::UnknownCommit(_)), "{}", why(&error));
    assert_eq!(error.class(), Class::DiskFull, "{}", why(&error));
    count(&levels.refused);
    assert_eq!(log.anchor().unwrap(), last);
    assert_eq!(labelled(&reader(path).unwrap()).unwrap().len() as u64, last.seq.0);
    if let Err(error) = checkpoint(&log) {
        assert_eq!(error.class(), Class::DiskFull, "{}", why(&error));
        count(&levels.checkpoints);
    }
    sound(&log, Some(last)).unwrap();
}
