//! `simulate`: explores the protocols on a machine that can break, and says what was tried and what broke.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use serde_json::{Value, json};

use crate::cli::args::Simulate;
use crate::cli::error::{Failure, exit};
use crate::cli::output::Output;
use crate::sim::canary::Canary;
use crate::sim::explore::{Counts, Explorer, Options, Violation, replay, story};
use crate::sim::{check, random, scopes};

/// Explores, and gives 20 where a property was broken.
pub(super) fn simulate(args: &Simulate, output: &Output) -> Result<u8, Failure> {
    if args.list_canaries {
        for canary in Canary::ALL {
            let (name, property, words) = (canary.name(), canary.property(), canary.words());
            output.data(&format!("{name:<18}{property:<24}{}: {words}\n", canary.scope()))?;
        }
        return Ok(exit::OK);
    }
    if let Some(count) = args.seeds {
        return seeds(args.seed, count, output);
    }
    let stated: Vec<scopes::Stated> = match args.canary.as_deref() {
        Some(name) => {
            let found = Canary::named(name).and_then(scopes::of);
            vec![found.ok_or_else(|| Failure::usage("there is no such canary").next("see --list-canaries"))?]
        }
        None => scopes::all()
            .into_iter()
            .filter(|it| match args.scope.as_deref() {
                Some(name) => it.scope.name == name,
                None => args.exhaustive || args.list || it.is_quick,
            })
            .collect(),
    };
    if stated.is_empty() {
        let names: Vec<&str> = scopes::all().iter().map(|it| it.scope.name).collect();
        return Err(Failure::usage("there is no such scope").next(format!("scopes: {}", names.join(", "))));
    }
    if args.list {
        return list(&stated, output);
    }
    if let Some(schedule) = &args.schedule {
        return one(&stated[0], schedule, output);
    }
    let (mut rows, mut violations) = (Vec::new(), Vec::new());
    for stated in &stated {
        let started = Instant::now();
        let options = Options {
            prunes: !args.no_pruning,
            schedules_max: args.schedules_max.unwrap_or(u64::MAX),
            stops: !args.keep_going,
        };
        let mut explorer = Explorer::new(&stated.scope, options);
        explorer.all(&check::of(stated), &mut |counts| {
            progress(stated.scope.name, counts, output);
            true
        });
        let counts = explorer.counts;
        output.say(&format!(
            "{}: {} schedules, {} states, {} ends, {} deaths, {} faults, {} power cuts ({:.1} s){}",
            stated.scope.name,
            counts.schedules,
            counts.states,
            counts.ends,
            counts.crashes,
            counts.faults,
            counts.cuts,
            started.elapsed().as_secs_f64(),
            if explorer.violations.is_empty() { "" } else { ": BROKEN" }
        ));
        rows.push(row(stated.scope.name, &counts));
        violations.append(&mut explorer.violations);
    }
    let differing = if args.check { differing(&rows)? } else { Vec::new() };
    for name in &differing {
        output.say(&format!("{name}: the counts are not those that this version is known to have"));
    }
    if output.json {
        let told: Vec<Value> = violations.iter().map(violation).collect();
        output.value(&json!({"schema": 1, "scopes": rows, "violations": told, "differing": differing}))?;
    } else {
        for broken in &violations {
            output.data(&words(broken))?;
        }
    }
    let holds = violations.is_empty() && differing.is_empty();
    Ok(if holds { exit::OK } else { exit::FINDINGS })
}

/// The scopes whose counts differ from those that are kept: a change of a protocol changes them, and so does a search that
/// leaves something out. They are kept in `src/sim/counts.json`.
fn differing(rows: &[Value]) -> Result<Vec<String>, Failure> {
    let kept: Vec<Value> = serde_json::from_str(include_str!("../sim/counts.json"))
        .map_err(|error| Failure::of("json", exit::ERROR, &error))?;
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
    let missing = kept.iter().filter(|row| !rows.iter().any(|it| it["name"] == row["name"])).map(name);
    let changed = rows.iter().filter(|row| !kept.contains(row)).map(name);
    Ok(changed.chain(missing).collect())
}

/// Random worlds: what broke, and how many runs reached what.
fn seeds(first: u64, count: u64, output: &Output) -> Result<u8, Failure> {
    let started = Instant::now();
    let (mut runs, mut violations) = (Vec::new(), Vec::new());
    for seed in first..first.saturating_add(count) {
        match random::one(seed) {
            Ok(reached) => runs.push(reached),
            Err(broken) => violations.push(*broken),
        }
        if (seed - first).is_multiple_of(256) && !output.quiet && std::io::stderr().is_terminal() {
            // Talk that nobody can read any more is no error.
            let _ = write!(std::io::stderr(), "\r{} of {count} worlds ", seed - first);
        }
    }
    let shares = random::shares(&runs);
    output.say(&format!("{count} worlds, {} broken ({:.1} s)", violations.len(), started.elapsed().as_secs_f64()));
    let missed: Vec<&str> = shares.iter().filter(|(_, runs)| **runs == 0).map(|(name, _)| *name).collect();
    if output.json {
        let told: Vec<Value> = violations.iter().map(violation).collect();
        output
            .value(&json!({"schema": 1, "worlds": count, "reached": shares, "missed": missed, "violations": told}))?;
    } else {
        for (name, runs) in &shares {
            output.data(&format!("{runs:>8}  {name}\n"))?;
        }
        for broken in violations.iter().take(3) {
            output.data(&words(broken))?;
        }
    }
    Ok(if violations.is_empty() { exit::OK } else { exit::FINDINGS })
}

fn list(stated: &[scopes::Stated], output: &Output) -> Result<u8, Failure> {
    for it in stated {
        output.data(&format!("{:<16}{}\n", it.scope.name, it.scope.story))?;
    }
    Ok(exit::OK)
}

fn one(stated: &scopes::Stated, schedule: &str, output: &Output) -> Result<u8, Failure> {
    for line in story(&stated.scope, schedule) {
        output.data(&format!("{line}\n"))?;
    }
    match replay(&stated.scope, schedule, &check::of(stated)) {
        Ok(()) => Ok(exit::OK),
        Err(what) => {
            output.data(&format!("BROKEN: {what}\n"))?;
            Ok(exit::FINDINGS)
        }
    }
}

/// One line that is written over, where somebody looks.
fn progress(name: &str, counts: &Counts, output: &Output) {
    if output.quiet || !std::io::stderr().is_terminal() || !counts.schedules.is_multiple_of(4096) {
        return;
    }
    // Talk that nobody can read any more is no error.
    let _ = write!(std::io::stderr(), "\r{name}: {} schedules, {} states ", counts.schedules, counts.states);
}

fn row(name: &str, counts: &Counts) -> Value {
    json!({
        "name": name,
        "schedules": counts.schedules,
        "states": counts.states,
        "ends": counts.ends,
        "crashes": counts.crashes,
        "faults": counts.faults,
        "cuts": counts.cuts,
    })
}

fn violation(broken: &Violation) -> Value {
    json!({"scope": broken.scope, "what": broken.what, "schedule": broken.schedule, "story": broken.story})
}

fn words(broken: &Violation) -> String {
    let story: String = broken.story.iter().map(|line| format!("    {line}\n")).collect();
    format!(
        "{}: {}\n  replay: throughline simulate {}\n{story}",
        broken.scope,
        broken.what,
        if broken.scope == "random" {
            broken.schedule.clone()
        } else {
            format!("--scope {} --schedule {}", broken.scope, broken.schedule)
        }
    )
}
