//! A writer's life, ended or hindered at every single operation on its files: by a power cut, by SIGKILL, by a failed sync.
//!
//! The writer is a child process with the shim of `tests/fault/shim.c` under SQLite. What it was told is the measure: what
//! was acknowledged is there, what was refused is not, and of what is open it is all or nothing.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use throughline::log::Records as _;

use crate::log_disk::{Disk, Image, restore};
use crate::log_fault::{Op, Shim};
use crate::log_life::{After, LIFE, Step, Told, Word, World, log_in, survives};
use crate::log_support::{Dice, Writer, quick_dir, share};

/// Set to any value, it makes the power cuts ten times as thorough.
const WHOLE: &str = "THROUGHLINE_TEST_WHOLE";

/// What the power cuts of one life came to.
#[derive(Default, Debug)]
struct Survey {
    operations: usize,
    images: usize,
    /// Images that lack something of what was done but not synced.
    lossy: usize,
    /// Images from before the log was acknowledged to be open.
    unborn: usize,
    /// Images in which an append is there that was not acknowledged yet.
    ahead: usize,
    failures: Vec<String>,
}

/// Cuts the power after every operation, and asks for what was acknowledged by then.
fn cut_everywhere(ops: &[Op], seeds: u64) -> Survey {
    cut(ops, seeds, |_| true)
}

/// Cuts the power whenever the writer has just been told something.
fn cut_after_words(ops: &[Op]) -> Survey {
    cut(ops, 0, |op| matches!(op, Op::Said(_)))
}

/// Cuts the power after some operations.
fn cut(ops: &[Op], seeds: u64, is_cut: impl Fn(&Op) -> bool + Send + Sync) -> Survey {
    let (mut disk, mut told, mut dice) = (Disk::default(), Told::default(), Dice(7));
    let (mut seen, mut lossy, mut unborn) = (BTreeSet::new(), 0, 0);
    let jobs = ops.iter().enumerate().flat_map(|(place, op)| {
        disk.apply(op);
        if let Op::Said(line) = op {
            told.hear(line);
        }
        let images = if is_cut(op) { disk.images(seeds, &mut dice) } else { Vec::new() };
        let whole = images.get(1).cloned();
        let mut jobs = Vec::new();
        for image in images {
            let mut hasher = DefaultHasher::new();
            (&image, told.lines).hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                lossy += usize::from(Some(&image) != whole.as_ref());
                unborn += usize::from(told.store.is_none());
                jobs.push((place, image, told.clone()));
            }
        }
        jobs
    });
    let (images, ahead, failures) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    share(jobs, |(place, image, told)| {
        images.fetch_add(1, Ordering::Relaxed);
        match holds_in(&image, &told) {
            Ok(count) => {
                let acknowledged = told.anchor().map_or(0, |anchor| anchor.seq.0);
                ahead.fetch_add(usize::from(count > acknowledged), Ordering::Relaxed);
            }
            Err(error) => {
                failures.lock().unwrap().push(format!("after operation {place} ({}): {error}", name(&ops[place])))
            }
        }
    });
    Survey {
        operations: ops.iter().filter(|op| op.is_operation()).count(),
        images: images.into_inner(),
        ahead: ahead.into_inner(),
        failures: failures.into_inner().unwrap(),
        lossy,
        unborn,
    }
}

/// An operation without its bytes.
fn name(op: &Op) -> String {
    let Op::Write { path, at, data } = op else { return format!("{op:?}") };
    format!("write {} bytes at {at} of {}", data.len(), path.display())
}

/// Whether the log of an image holds what was told.
fn holds_in(image: &Image, told: &Told) -> Result<u64, String> {
    let dir = quick_dir();
    restore(image, dir.path());
    survives(&log_in(dir.path()), told)
}

#[test]
fn a_power_cut_after_any_operation_loses_nothing_that_was_acknowledged() {
    let ops = World::whole_life(&Shim::build());
    let seeds = if std::env::var_os(WHOLE).is_some() { 60 } else { 6 };
    let survey = cut_everywhere(&ops, seeds);
    println!("power cuts: {survey:?}");
    assert_eq!(survey.failures, [""; 0]);
    // The life reached what it is meant to reach.
    assert!(survey.operations > 200, "{survey:?}");
    assert!(survey.images > 1_000, "{survey:?}");
    assert!(survey.lossy > 500, "{survey:?}");
    assert!(survey.unborn > 20, "{survey:?}");
    assert!(survey.ahead > 5, "{survey:?}");
}

#[test]
fn a_power_cut_is_noticed_where_folders_are_not_synced() {
    let ops = World::whole_life(&Shim::build());
    let folders: BTreeSet<_> =
        ops.iter().filter_map(|op| if let Op::MakeFolder(path) = op { Some(path) } else { None }).collect();
    let is_of_a_folder =
        |op: &Op| matches!(op, Op::Sync(path) if path.as_os_str().is_empty() || folders.contains(path));
    let dropped: Vec<Op> = ops.iter().filter(|op| !is_of_a_folder(op)).cloned().collect();
    assert!(dropped.len() + 4 <= ops.len());
    assert!(!cut_after_words(&dropped).failures.is_empty());
    // One of them alone is enough: the folder of the log, the folder above it.
    for folder in folders {
        let above = folder.parent().unwrap();
        let dropped: Vec<Op> = ops.iter().filter(|op| **op != Op::Sync(above.to_owned())).cloned().collect();
        assert!(!cut_after_words(&dropped).failures.is_empty(), "{}", above.display());
    }
}

const HASTY: &str = "THROUGHLINE_TEST_HASTY";

/// Not a test by itself: a writer of the same events that is told they are there before they were synced. It copies them,
/// one append at a time, out of a log that somebody else made.
#[test]
fn the_writer_that_does_not_wait() {
    let Some(source) = std::env::var_os(HASTY).map(PathBuf::from) else { return };
    let (path, acks) = (std::env::var_os("THROUGHLINE_TEST_LIFE").unwrap(), std::env::var_os("FAULT_ACKS").unwrap());
    let told = Told::read(&source.with_file_name("acks"));
    let tell = |line: &str| {
        let mut file = std::fs::File::options().create(true).append(true).open(&acks).unwrap();
        std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).unwrap();
    };
    let store = crate::log_support::Reader::open(&source).unwrap().store();
    let opening = throughline::log::Opening { store: Some(store), ..Default::default() };
    drop(Writer::open(path.as_ref(), &opening).unwrap());
    tell(&format!("opened {store}"));
    let conn = rusqlite::Connection::open(&path).unwrap();
    let synchronous = std::env::var("THROUGHLINE_TEST_SYNCHRONOUS").unwrap();
    let journal = std::env::var("THROUGHLINE_TEST_JOURNAL").unwrap();
    conn.pragma_update(None, "journal_mode", &journal).unwrap();
    conn.execute_batch(&format!("PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 0")).unwrap();
    conn.execute("ATTACH ?1 AS source", [source.to_str().unwrap()]).unwrap();
    for (step, word) in &told.steps {
        let Word::Did { first, anchor } = word else { panic!("{word:?}") };
        conn.execute_batch(&format!(
            "BEGIN;
             INSERT OR IGNORE INTO main.streams SELECT * FROM source.streams
                 WHERE id IN (SELECT stream FROM source.events WHERE seq <= {last});
             INSERT INTO main.events SELECT * FROM source.events WHERE seq BETWEEN {first} AND {last};
             INSERT INTO main.receipts SELECT * FROM source.receipts WHERE first_seq = {first};
             COMMIT",
            first = first.0,
            last = anchor.seq.0,
        ))
        .unwrap();
        tell(&format!("did {step} {first} {anchor}"));
    }
}

#[test]
fn a_power_cut_is_noticed_where_the_writer_does_not_wait_for_the_disk() {
    let shim = Shim::build();
    let source = World::new();
    assert!(source.lives(&shim, After::Stop, &[]).success());
    let copy = source.dir.path().join("log.db");
    rusqlite::Connection::open(source.log()).unwrap().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    let ways = [
        ("wal", "FULL", true),
        ("wal", "NORMAL", false),
        ("wal", "OFF", false),
        ("delete", "EXTRA", true),
        ("delete", "FULL", false),
    ];
    for (journal, synchronous, is_safe) in ways {
        let world = World::new();
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        shim.under(&mut command, &world.root());
        let status = command
            .args(["--exact", "--nocapture", "log_crash::the_writer_that_does_not_wait"])
            .env(HASTY, &copy)
            .env("THROUGHLINE_TEST_LIFE", world.log())
            .env("THROUGHLINE_TEST_SYNCHRONOUS", synchronous)
            .env("THROUGHLINE_TEST_JOURNAL", journal)
            .env("FAULT_ACKS", world.acks())
            .env("FAULT_TRACE", world.dir.path().join("trace"))
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        let survey = cut_after_words(&world.trace());
        let lost = survey.failures.iter().filter(|error| error.contains("was told to be")).count();
        assert_eq!(lost == 0, is_safe, "{journal} {synchronous}: {survey:?}");
    }
}

/// The step that a line speaks of.
fn step_of(line: &str) -> Option<usize> {
    line.strip_prefix("did ")?.split(' ').next()?.parse().ok()
}

/// Every operation of a life: its number from 1, and whether it writes.
fn operations(ops: &[Op]) -> Vec<(usize, bool)> {
    let operations = ops.iter().filter(|op| op.is_operation());
    operations.zip(1..).map(|(op, number)| (number, matches!(op, Op::Write { .. }))).collect()
}

/// Every way to kill a writer: in place of each operation, and after half of each write.
fn kills(ops: &[Op]) -> Vec<(usize, bool)> {
    operations(ops)
        .into_iter()
        .flat_map(|(number, writes)| [Some((number, false)), writes.then_some((number, true))])
        .flatten()
        .collect()
}

fn kill_words((number, torn): (usize, bool)) -> [(&'static str, String); 2] {
    [("FAULT_KILL", number.to_string()), ("FAULT_TORN", u8::from(torn).to_string())]
}

#[test]
fn a_writer_killed_at_any_operation_loses_nothing_that_it_acknowledged() {
    use std::os::unix::process::ExitStatusExt as _;
    let shim = Shim::build();
    let kills = kills(&World::whole_life(&shim));
    let (ahead, unborn) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count = kills.len();
    share(kills.into_iter(), |kill| {
        let world = World::new();
        let status = world.lives(&shim, After::Stop, &kill_words(kill));
        assert_eq!(status.signal(), Some(9), "operation {kill:?}");
        let told = world.told();
        let found = survives(&world.log(), &told).unwrap_or_else(|error| panic!("killed at {kill:?}: {error}"));
        ahead.fetch_add(usize::from(found > told.anchor().map_or(0, |anchor| anchor.seq.0)), Ordering::Relaxed);
        unborn.fetch_add(usize::from(told.store.is_none()), Ordering::Relaxed);
    });
    let (ahead, unborn) = (ahead.into_inner(), unborn.into_inner());
    println!("killed at {count} points: {unborn} before the log was open, {ahead} after a commit that nobody heard of");
    assert!(count > 300 && unborn > 20 && ahead > 10);
}

#[test]
fn what_a_killed_writer_left_is_durable_before_a_second_one_acknowledges_it() {
    let shim = Shim::build();
    let kills = kills(&World::whole_life(&shim)).into_iter().filter(|(_, torn)| !torn);
    let (inherited, lost) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    share(kills, |kill| {
        let world = World::new();
        world.lives(&shim, After::Stop, &kill_words(kill));
        let first = world.told();
        assert!(world.lives(&shim, After::Second, &[]).success(), "after a kill at {kill:?}");
        let (mut disk, mut told) = (Disk::default(), Told::default());
        for op in world.trace() {
            disk.apply(&op);
            let Op::Said(line) = &op else { continue };
            told.hear(line);
            let second = told.lines > first.lines;
            let is_inherited = step_of(line).is_some_and(|step| first.in_flight() == Some(step));
            // The power is cut when the second writer has been told what the first one was not.
            if second && (is_inherited || step_of(line).is_none()) {
                inherited.fetch_add(usize::from(is_inherited), Ordering::Relaxed);
                if let Err(error) = holds_in(&disk.synced(), &told) {
                    lost.lock().unwrap().push(format!("killed at {kill:?}, then {line:?}: {error}"));
                }
            }
        }
    });
    let lost = lost.into_inner().unwrap();
    let inherited = inherited.into_inner();
    println!("second writers: {inherited} acknowledgements of what a first one began, {} lost", lost.len());
    assert_eq!(lost, [""; 0]);
    assert!(inherited > 100);
}

#[test]
fn a_failed_sync_is_never_an_acknowledgement() {
    let shim = Shim::build();
    let ops = World::whole_life(&shim);
    let syncs: Vec<PathBuf> =
        ops.iter().filter_map(|op| if let Op::Sync(path) = op { Some(path.clone()) } else { None }).collect();
    let (unknown, unheard) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let ways = (0..syncs.len()).flat_map(|sync| [(sync, After::Stop), (sync, After::Again)]);
    share(ways, |(sync, after)| {
        let world = World::new();
        let at = (sync + 1).to_string();
        let words = [("FAULT_FAIL", "s".to_owned()), ("FAULT_AT", at), ("FAULT_ERRNO", "5".to_owned())];
        let status = world.lives(&shim, after, &words);
        let path = &syncs[sync];
        assert!(status.success(), "sync {sync} of {}", path.display());
        let told = world.told();
        match told.failures.as_slice() {
            [] => drop(unheard.lock().unwrap().insert((sync, path.clone()))),
            [(step, class)] => {
                let is_commit = matches!(LIFE[*step], Step::Append { .. });
                assert_eq!(
                    class,
                    if is_commit { "Unknown" } else { "Io" },
                    "sync {sync} of {}, step {step}",
                    path.display()
                );
                unknown.fetch_add(usize::from(is_commit), Ordering::Relaxed);
            }
            more => panic!("one failure became {more:?}"),
        }
        // What was acknowledged is what was synced, whatever failed: looked at three times after it, and at the end.
        let mut disk = Disk::default();
        let (mut so_far, mut problems, mut looks) = (Told::default(), Vec::new(), None);
        for op in world.trace() {
            disk.apply(&op);
            if let Op::Failed(_) = op {
                looks = Some(3);
            }
            let Op::Said(line) = &op else { continue };
            so_far.hear(line);
            if let Some(left) = looks.filter(|left| *left > 0) {
                looks = Some(left - 1);
                problems.extend(holds_in(&disk.synced(), &so_far).err());
            }
        }
        assert!(looks.is_some(), "sync {sync} did not fail");
        problems.extend(holds_in(&disk.synced(), &so_far).err());
        assert_eq!(problems, [""; 0], "sync {sync} of {}", path.display());
        survives(&world.log(), &told).unwrap_or_else(|error| panic!("sync {sync} of {}: {error}", path.display()));
    });
    let (unknown, unheard) = (unknown.into_inner(), unheard.into_inner().unwrap());
    println!("failed syncs: {} of them, {unknown} open commits, not heard of: {unheard:?}", syncs.len());
    assert!(unknown >= 10);
    // SQLite syncs the folder of a journal or WAL that it made and does not ask how that went: the log does it once more.
    assert!(unheard.iter().all(|(_, path)| path == Path::new("made/here")), "{unheard:?}");
}
