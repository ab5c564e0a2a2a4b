//! Every store of this crate keeps every rule, and every rule catches the store that breaks it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

mod wrong_stores;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use throughline::id::StoreId;
use throughline::log::conformance::{Bench, Make, Tally, broken, rules};
use throughline::log::{Cause, Log, MemoryLog, Opening, Reader, Records, SqliteLog};

use crate::wrong_stores::Wrong;

struct InMemory(MemoryLog<Tally>);

impl Bench for InMemory {
    fn writer(&self) -> Result<Box<dyn Log<Tally>>, Cause> {
        Ok(Box::new(self.0.clone()))
    }

    fn reader(&self) -> Result<Box<dyn Records<Tally>>, Cause> {
        Ok(Box::new(self.0.clone()))
    }
}

struct OnDisk {
    dir: tempfile::TempDir,
    store: StoreId,
}

impl Bench for OnDisk {
    fn writer(&self) -> Result<Box<dyn Log<Tally>>, Cause> {
        let opening = Opening { store: Some(self.store), busy_ms: 200, ..Opening::default() };
        Ok(Box::new(SqliteLog::open(&self.dir.path().join("log.db"), &opening)?))
    }

    fn reader(&self) -> Result<Box<dyn Records<Tally>>, Cause> {
        Ok(Box::new(Reader::open(&self.dir.path().join("log.db"))?.into_records()))
    }
}

/// Every broken rule, one a line.
#[track_caller]
fn keeps_every_rule(make: &Make<'_>) {
    let broken: Vec<String> =
        broken(make).iter().map(|(rule, breach)| format!("{}: {}\n    {breach}", rule.name, rule.says)).collect();
    assert!(broken.is_empty(), "{} of {} rules are broken:\n{}", broken.len(), rules().count(), broken.join("\n"));
}

#[test]
fn a_log_in_memory_keeps_every_rule() {
    keeps_every_rule(&|store| Ok(Box::new(InMemory(MemoryLog::new(store)))));
}

#[test]
fn a_log_on_a_disk_keeps_every_rule() {
    keeps_every_rule(&|store| Ok(Box::new(OnDisk { dir: tempfile::tempdir()?, store })));
}

/// The names of the rules that a store breaks.
fn broken_by(wrong: &Wrong) -> Vec<&'static str> {
    broken(&|store| Ok(wrong.bench(store))).iter().map(|(rule, _)| rule.name).collect()
}

/// Rules that lean on one another, and rules that nothing breaks, would both show here.
#[test]
fn every_rule_catches_the_store_that_breaks_it_and_no_other() {
    let wrong = wrong_stores::all();
    let caught: Vec<&str> = wrong.iter().map(|wrong| wrong.rule).collect();
    let twice: BTreeSet<_> =
        caught.iter().filter(|rule| caught.iter().filter(|other| other == rule).count() > 1).collect();
    let named: BTreeSet<_> = caught.iter().copied().collect();
    let known: BTreeSet<_> = rules().map(|rule| rule.name).collect();
    let mut faults: Vec<String> = known.difference(&named).map(|rule| format!("{rule} has no wrong store")).collect();
    faults.extend(named.difference(&known).map(|rule| format!("{rule} is no rule")));
    faults.extend(twice.iter().map(|rule| format!("{rule} has two wrong stores")));
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut faults = Vec::new();
        while let Some(wrong) = wrong.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = broken_by(wrong);
            if found != [wrong.rule] {
                faults.push(format!("the store that {} is to break {}, and breaks {found:?}", wrong.bug, wrong.rule));
            }
        }
        faults
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        faults.extend(workers.into_iter().flat_map(|worker| worker.join().unwrap()));
    });
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
