//! A log of 1 k, 1 M and (asked for by `log-scale-10m`) 10 M events: how fast, how large, and how much memory.
//!
//! Each step is a process of its own, so that its peak of memory is its own. `VmHWM` is what Linux says of it.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rusqlite::OpenFlags;
use throughline::chain::fold::State;
use throughline::chain::{Request, ledger, observe::RealView, preflight};
use throughline::id::{AgentId, ProviderName, Seq};
use throughline::log::{Opening, Reader, Records as _, Replay, SqliteLog};
use throughline::provider::ConfigDir;
use throughline::world::{clock, process};

use crate::log::{Raw, append, burst};

const ROLE: &str = "THROUGHLINE_BENCH_SCALE";
/// Events of a commit: of ten streams, a run of a hundred of each, as what belongs together comes together.
const A_COMMIT: usize = 1_000;
const A_RUN: usize = 100;

/// Runs one step if this process is to.
pub(crate) fn is_step() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let mut words = role.splitn(3, ' ');
    let mut word = || words.next().expect("three words");
    let (step, count, dir): (_, usize, _) = (word(), word().parse().expect("a count"), Path::new(word()));
    let (path, raw) = (dir.join("log.db"), dir.join("raw.db"));
    let began = Instant::now();
    match step {
        "append" => {
            let log = SqliteLog::<State>::open(&path, &Opening::default()).expect("a log");
            for from in (0..count).step_by(A_COMMIT) {
                append(&log, &bursts(from / A_RUN, A_COMMIT / A_RUN));
            }
            log.checkpoint().expect("a checkpoint");
        }
        "raw-append" => {
            let mut raw = Raw::new(&raw);
            for from in (0..count).step_by(A_COMMIT) {
                raw.append_runs(from / A_RUN, A_COMMIT / A_RUN, A_RUN);
            }
            raw.checkpoint();
        }
        "preflight" => {
            let reader = Reader::open(&path).expect("a reader");
            let login = ConfigDir::Named(dir.to_string_lossy().into_owned());
            let mut request =
                Request::new(ProviderName::parse("claude").expect("a name"), Some(login), dir.to_string_lossy());
            request.agent = Some(AgentId::parse("a-1").expect("an agent"));
            let ledger = ledger::read(&*reader, &request).expect("a sound log");
            let own = process::own().expect("this process");
            drop(preflight(&ledger, &request, &mut RealView::new(clock::now_ms(), own)).expect("a real disk"));
        }
        "replay" => {
            let reader = Reader::<State>::open(&path).expect("a reader");
            let replay = Replay::of(&*reader, Seq(1)).expect("a sound log");
            let mut read = 0;
            for event in replay {
                read += usize::from(event.expect("a sound log").seq.0 > 0);
            }
            assert_eq!(read, count);
        }
        "raw-read" => {
            let conn = rusqlite::Connection::open_with_flags(&raw, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("SQLite");
            let mut statement =
                conn.prepare("SELECT stream, version, kind, body FROM events ORDER BY seq").expect("SQL");
            let mut rows = statement.query([]).expect("rows");
            let mut read = 0;
            while let Some(row) = rows.next().expect("a row") {
                read += std::hint::black_box(row.get_ref(3).expect("a column").as_bytes().expect("bytes")).len().min(1);
            }
            assert_eq!(read, count);
        }
        "verify" => {
            let reader = Reader::<State>::open(&path).expect("a reader");
            assert!(reader.verify(None, &mut |_| {}).expect("a readable log").is_sound());
        }
        other => unreachable!("no step {other}"),
    }
    let took = began.elapsed().as_micros();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap_or("0");
    println!("{took} {}", peak.trim());
    true
}

fn bursts(first: usize, streams: usize) -> Vec<throughline::log::Entry> {
    (first..first + streams).map(|stream| burst(stream, A_RUN)).collect()
}

fn step(name: &str, count: usize, dir: &Path) -> (f64, f64) {
    let output = Command::new(std::env::current_exe().expect("this executable"))
        .env(ROLE, format!("{name} {count} {}", dir.display()))
        .output()
        .expect("a step");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = text.split_whitespace().map(|word| word.parse().expect("a figure")).collect();
    (figures[0] / 1e6, figures[1] / 1024.0)
}

/// 1 k and 1 M events.
pub(crate) fn million() {
    for count in [1_000, 1_000_000] {
        of(count);
    }
}

/// 10 M events: some minutes, and 6 GB in the folder for temporary files.
pub(crate) fn ten_million() {
    of(10_000_000);
}

#[expect(clippy::cast_precision_loss, reason = "counts for people")]
fn of(count: usize) {
    let dir = tempfile::tempdir().expect("a folder");
    let size = |name: &str| {
        let of =
            |suffix: &str| std::fs::metadata(dir.path().join(format!("{name}{suffix}"))).map_or(0, |meta| meta.len());
        (of("") + of("-wal")) as f64 / count as f64
    };
    println!("{count} events in {} streams:", count.min(100_000) / 100);
    let say = |name: &str, beside: Option<&str>| {
        let (seconds, peak) = step(name, count, dir.path());
        let rate = |seconds: f64| count as f64 / seconds / 1e3;
        let raw = beside.map(|raw| {
            let (raw_seconds, raw_peak) = step(raw, count, dir.path());
            format!("; raw SQLite {:.0} k/s, {raw_peak:.0} MB: {:.2}×", rate(raw_seconds), raw_seconds / seconds)
        });
        let words = if name == "preflight" {
            format!("{:.2} ms", seconds * 1e3)
        } else {
            format!("{seconds:.2} s, {:.0} k/s", rate(seconds))
        };
        println!("    {name:<22} {words}, peak {peak:.0} MB{}", raw.unwrap_or_default());
    };
    say("append", Some("raw-append"));
    say("preflight", None);
    say("replay", Some("raw-read"));
    say("verify", None);
    println!("    {:<22} {:.0} bytes an event; raw SQLite {:.0}", "on disk", size("log.db"), size("raw.db"));
}
