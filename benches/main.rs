//! Ratios against the budgets: each of ours beside the bare thing it stands on, in turn, in one run.
//!
//! `cargo bench --bench ratios` prints them all; words behind `--` choose: `preflight-files`, `preflight-growth`,
//! `preflight-large`, `log-append`, `log-replay`, `log-writers`, `log-scale`, `relocation`, or a part of such a name, and `log-scale-10m`.
//! Only ratios count: the machine's speed is on both sides of each. Nothing here is a test, and no test is timed.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should stop")]

mod log;
mod preflight;
mod relocation;
mod scale;
mod writers;

use std::time::{Duration, Instant};

fn main() {
    if writers::is_writer() || scale::is_step() {
        return;
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    // Ten million events are only for those who ask for them.
    let on = |name: &str| match name {
        "log-scale-10m" => wanted.iter().any(|word| word == name),
        _ => wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())),
    };
    println!("{:<58} {:>12} {:>12} {:>7}  budget", "what", "ours", "bare", "ratio");
    let parts: [(&str, fn()); 9] = [
        ("preflight-files", preflight::files),
        ("preflight-growth", preflight::growth),
        ("preflight-large", preflight::large),
        ("log-append", log::appends),
        ("log-replay", log::replays),
        ("log-writers", writers::writers),
        ("log-scale", scale::million),
        ("log-scale-10m", scale::ten_million),
        ("relocation", relocation::gigabyte),
    ];
    for (_, part) in parts.into_iter().filter(|(name, _)| on(name)) {
        part();
    }
}

/// The median of a list.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median time of one call.
pub(crate) fn time(rounds: usize, mut call: impl FnMut()) -> Duration {
    call();
    let times = (0..rounds).map(|_| {
        let started = Instant::now();
        call();
        started.elapsed().as_secs_f64()
    });
    Duration::from_secs_f64(median(times.collect()))
}

/// Two things in turn, A B A B …: the medians of each, and the median of the ratios pair by pair.
pub(crate) fn paired(rounds: usize, mut ours: impl FnMut(), mut bare: impl FnMut()) -> (Duration, Duration, f64) {
    let once = |call: &mut dyn FnMut()| {
        let started = Instant::now();
        call();
        started.elapsed().as_secs_f64()
    };
    once(&mut ours);
    once(&mut bare);
    let pairs: Vec<(f64, f64)> = (0..rounds).map(|_| (once(&mut ours), once(&mut bare))).collect();
    let of = |pick: fn(&(f64, f64)) -> f64| median(pairs.iter().map(pick).collect());
    let seconds = Duration::from_secs_f64;
    (seconds(of(|pair| pair.0)), seconds(of(|pair| pair.1)), of(|pair| pair.0 / pair.1))
}

/// One line of times: ours over bare.
pub(crate) fn slower(what: &str, (ours, bare, ratio): (Duration, Duration, f64), budget: &str) {
    println!("{what:<58} {ours:>12.1?} {bare:>12.1?} {ratio:>6.2}×  {budget}");
}

/// One line of rates: ours over bare, from the times of the same number of events.
pub(crate) fn faster(what: &str, events: usize, (ours, bare, ratio): (Duration, Duration, f64), budget: &str) {
    #[expect(clippy::cast_precision_loss, reason = "counts for people")]
    let rate = |time: Duration| format!("{:.0}/s", events as f64 / time.as_secs_f64());
    println!("{what:<58} {:>12} {:>12} {:>6.2}×  {budget}", rate(ours), rate(bare), 1.0 / ratio);
}
