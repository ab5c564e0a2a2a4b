//! Several writer processes on one log, beside the same number on raw SQLite with its own busy wait.
//!
//! Each process is this executable again, told by an environment variable what to be. All begin when a file appears, write
//! one event a commit for the same time, and say how many commits they had and how long each took.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use throughline::chain::fold::State;
use throughline::log::{Opening, SqliteLog};

use crate::log::{Raw, append, entry_for};

const ROLE: &str = "THROUGHLINE_BENCH_WRITER";
const SECONDS: u64 = 3;
const BUSY_MS: u64 = 10_000;

/// Runs as a writer if this process is one.
pub(crate) fn is_writer() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let mut words = role.splitn(3, ' ');
    let mut word = || words.next().expect("three words");
    let (kind, number, dir) = (word(), word().parse().expect("a number"), word());
    let path = Path::new(dir).join("log.db");
    let mut waits = Vec::new();
    match kind {
        "ours" => {
            let opening = Opening { busy_ms: BUSY_MS, ..Opening::default() };
            let log = SqliteLog::<State>::open(&path, &opening).expect("a log");
            run(Path::new(dir), &mut waits, |_| append(&log, &[entry_for(number)]));
        }
        _ => {
            let mut raw = Raw::shared(&path, Duration::from_millis(BUSY_MS));
            run(Path::new(dir), &mut waits, |count| raw.append_one(number, count));
        }
    }
    waits.sort_unstable();
    let at = |per_mille: usize| waits.get((waits.len() * per_mille / 1_000).min(waits.len() - 1)).expect("a commit");
    println!("{} {} {}", waits.len(), at(999), at(1_000));
    true
}

fn run(dir: &Path, waits: &mut Vec<u64>, mut commit: impl FnMut(usize)) {
    while !dir.join("go").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(SECONDS) {
        let each = Instant::now();
        commit(waits.len());
        waits.push(u64::try_from(each.elapsed().as_micros()).expect("short"));
    }
}

/// What the writers of one run said.
#[derive(Clone, Debug)]
struct Run {
    total: u64,
    least: u64,
    most: u64,
    p999_ms: f64,
    longest_ms: f64,
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn together(kind: &str, writers: usize) -> Run {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("log.db");
    if kind == "ours" {
        drop(SqliteLog::<State>::open(&path, &Opening::default()).expect("a log"));
    } else {
        drop(Raw::new(&path));
    }
    let start = |number| {
        Command::new(std::env::current_exe().expect("this executable"))
            .env(ROLE, format!("{kind} {number} {}", dir.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a writer")
    };
    let children: Vec<Child> = (0..writers).map(start).collect();
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(dir.path().join("go"), b"").expect("a file");
    let mut said = Vec::new();
    for mut child in children {
        let mut text = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("figures");
        assert!(child.wait().expect("an end").success(), "a writer failed");
        let figures: Vec<u64> = text.split_whitespace().map(|word| word.parse().expect("a figure")).collect();
        said.push((figures[0], figures[1], figures[2]));
    }
    let commits = || said.iter().map(|figures| figures.0);
    Run {
        total: commits().sum(),
        least: commits().min().unwrap_or(0),
        most: commits().max().unwrap_or(0),
        p999_ms: said.iter().map(|figures| figures.1).max().unwrap_or(0) as f64 / 1e3,
        longest_ms: said.iter().map(|figures| figures.2).max().unwrap_or(0) as f64 / 1e3,
    }
}

/// 1, 2, 4 and 8 writers.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) fn writers() {
    for writers in [1, 2, 4, 8] {
        let mut runs: Vec<(Run, Run)> =
            (0..3).map(|_| (together("ours", writers), together("stock", writers))).collect();
        runs.sort_by(|a, b| {
            let ratio = |pair: &(Run, Run)| pair.0.total as f64 / pair.1.total as f64;
            ratio(a).total_cmp(&ratio(b))
        });
        let (ours, stock) = &runs[1];
        let line = |run: &Run| {
            format!(
                "{}/s; {}-{} a process ({:.1}); p99.9 {:.0} ms, longest {:.0} ms",
                run.total / SECONDS,
                run.least,
                run.most,
                run.most as f64 / run.least.max(1) as f64,
                run.p999_ms,
                run.longest_ms
            )
        };
        let ratio = ours.total as f64 / stock.total as f64;
        println!(
            "{writers} writers, 1 a commit: total {ratio:.2}× the stock busy wait (≥ 0.75×); max/min ≤ 2.5; p99.9 ≤ 250 ms, longest ≤ 1 s"
        );
        println!("    ours:  {}\n    stock: {}", line(ours), line(stock));
    }
}
