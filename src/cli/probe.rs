//! `probe`: asks the installed agent whether our rules about it hold.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use crate::cli::args;
use crate::cli::error::{Failure, exit};
use crate::cli::output::{Output, visible};
use crate::cli::{installed, question};
use crate::probe::{self, Options, ProbeError, Report, Row, Status};
use crate::provider::KnownRules;
use crate::world::replace::Replacing;

/// Runs the probe and prints what it found.
pub(super) fn probe(args: &args::Probe, output: &Output) -> Result<u8, Failure> {
    if args.list {
        output.data(&(probe::case_names().join("\n") + "\n"))?;
        return Ok(exit::OK);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let signalled = Arc::clone(&stop);
    // Where another handler stands already, an interruption leaves the folder to the next probe.
    let _ = ctrlc::set_handler(move || signalled.store(true, Ordering::Relaxed));
    let options = Options {
        program: program(args)?,
        known: question::known(&args.tables)?,
        rules: args.rules_of.clone(),
        learn: args.save.is_some(),
        filter: args.cases.iter().flat_map(|words| words.split(',')).map(str::to_owned).collect(),
        jobs: args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from),
        random: args.random,
        seed: args.seed,
        command: std::env::current_exe().ok(),
    };
    if let Some(file) = &args.save {
        drop(saved(file)?);
    }
    let progress =
        Shown { output, counter: Mutex::new(output.progress("cases done")), differing: AtomicBool::new(false) };
    let report = probe::probe(&options, &stop, &progress).map_err(|error| failure(&error))?;
    drop(progress);
    if let Some(file) = &args.save {
        save(file, &report, output)?;
    }
    print(&report, output)?;
    Ok(if report.count(Status::Differ) > 0 { exit::FINDINGS } else { exit::OK })
}

/// The named program, or the one on the PATH.
fn program(args: &args::Probe) -> Result<PathBuf, Failure> {
    let named = args.bin.clone().or_else(|| installed::on_path(&args.agent)).ok_or_else(|| {
        Failure::new("no_agent", exit::ERROR, format!("there is no {} on the PATH", args.agent))
            .next("name it with --bin")
    })?;
    // It is started from other folders.
    std::path::absolute(&named).map_err(|error| Failure::of("io", exit::ERROR, &error))
}

/// How long others that replace files in the same folder are waited for.
const SAVE_WAIT: Duration = Duration::from_secs(2);

/// The rules in the file that is to be replaced; none where it is not there yet. Anything but a file of rules is refused,
/// before the minutes that a probe takes.
fn saved(file: &Path) -> Result<(Replacing, KnownRules), Failure> {
    let named = |error: &(dyn std::error::Error + 'static)| {
        let mut failure = Failure::of("rules", exit::ERROR, error);
        failure.message = format!("{}: {}", file.display(), failure.message);
        failure.or_next("name a file that `throughline probe --save` wrote, or a new one in a writable folder")
    };
    let replacing = Replacing::begin(file, SAVE_WAIT).map_err(|error| named(&error))?;
    let known = match replacing.bytes() {
        Some(bytes) => KnownRules::parse(bytes).map_err(|error| named(&error))?,
        None => KnownRules::default(),
    };
    Ok((replacing, known))
}

/// Adds the learnt table to a file, which is replaced as a whole.
fn save(file: &Path, report: &Report, output: &Output) -> Result<(), Failure> {
    let Some(table) = report.learnt.clone() else { return Ok(()) };
    let (replacing, known) = saved(file)?;
    let text = known.with(table).to_text("claude").map_err(|error| Failure::of("json", exit::ERROR, &error))?;
    replacing
        .replace(text.as_bytes())
        .map_err(|error| Failure::of("io", exit::ERROR, &error).or_next("name a file in a writable folder"))?;
    output.say(&format!(
        "the rules of {} are in {}; use them with --rules or $THROUGHLINE_RULES",
        report.version,
        file.display()
    ));
    Ok(())
}

/// Each case as it is done: those that differ at once, the others as a count.
struct Shown<'a> {
    output: &'a Output,
    counter: Mutex<crate::cli::output::Progress>,
    differing: AtomicBool,
}

impl probe::Progress for Shown<'_> {
    fn done(&self, done: usize, _all: usize, row: &Row) {
        if row.status == Status::Differ && !self.output.json {
            self.differing.store(true, Ordering::Relaxed);
            self.output.say(&format!("{}: differs", row.name));
        }
        self.counter.lock().unwrap_or_else(PoisonError::into_inner).at(done as u64);
    }
}

fn print(report: &Report, output: &Output) -> Result<(), Failure> {
    let count = |status| report.count(status);
    let (right, said) = report.naive();
    let judged = count(Status::Agree) + count(Status::Differ);
    if output.json {
        return output.value(&json!({
            "schema": 1, "version": report.version, "rules": report.rules, "observed": report.observed, "learnt": report.learnt,
            "agree": count(Status::Agree), "differ": count(Status::Differ), "undecided": count(Status::Undecided),
            "could_not_run": count(Status::CouldNotRun), "naive": {"right": right, "of": said}, "cases": report.rows,
        }));
    }
    let mut lines = output.lines();
    for row in &report.rows {
        let (mark, wanted) = match row.status {
            Status::Agree => (output.paint("32", "agree"), output.verbose),
            Status::Differ => (output.paint("1;31", "DIFFER"), true),
            Status::Undecided => (output.paint("33", "undecided"), true),
            Status::CouldNotRun => (output.paint("33", "could not run"), true),
        };
        if wanted {
            lines.print(&format!(
                "{mark} {}\n    rules: {}\n    agent: {}\n",
                row.name,
                visible(&row.foretold),
                visible(&row.seen)
            ))?;
        }
    }
    let observed = if report.observed { "observed on it" } else { "the nearest that there are" };
    lines.print(&format!("claude {}, rules of {} ({observed})\n", visible(&report.version), report.rules))?;
    lines.print(&format!(
        "{} of {judged} agree, {} differ; {} undecided, {} could not run\n",
        count(Status::Agree),
        count(Status::Differ),
        count(Status::Undecided),
        count(Status::CouldNotRun)
    ))?;
    lines.print(&format!("a check for \"there is a file that is not empty\": {right} of {said} right\n"))?;
    lines.finish()
}

fn failure(error: &ProbeError) -> Failure {
    match error {
        ProbeError::Interrupted => Failure::of("interrupted", exit::ERROR, error).next("nothing is left behind"),
        ProbeError::NoCase(_) => Failure::of("usage", exit::USAGE, error).next("see --list"),
        ProbeError::Version { .. } => {
            Failure::of("agent", exit::ERROR, error).next("name the agent's program with --bin")
        }
        ProbeError::NoAgent { .. } => Failure::of("agent", exit::ERROR, error)
            .next("name Claude Code's program with --bin, and see whether it runs here; nothing was judged"),
        ProbeError::NotLearnt(_) => Failure::of("agent", exit::ERROR, error).next("see that case with --cases"),
        ProbeError::Io { .. } => Failure::of("io", exit::ERROR, error).next("see the space and the rights in TMPDIR"),
    }
}
