//! The protocols on the simulated machine: the scopes that take little time, whole; what the explorer itself promises.

use throughline::sim::canary::Canary;
use throughline::sim::explore::{Explorer, Options, Violation, replay};
use throughline::sim::scopes::{self, Stated};
use throughline::sim::{check, random};

fn scope(name: &str) -> Stated {
    scopes::all().into_iter().find(|it| it.scope.name == name).unwrap_or_else(|| panic!("{name} is no scope"))
}

fn explored(name: &str, options: Options) -> (u64, u64, Vec<Violation>) {
    let stated = scope(name);
    let mut explorer = Explorer::new(&stated.scope, options);
    explorer.all(&check::of(&stated), &mut |_| true);
    (explorer.counts.schedules, explorer.counts.ends, explorer.violations)
}

/// Everything that can happen in a scope holds, and as much was tried as this version is known to try: a change of a
/// protocol changes the counts (`simulate --exhaustive --json` prints them), and so does a search that leaves something out.
fn holds(name: &str, ends_min: u64) {
    let (schedules, ends, violations) = explored(name, Options::default());
    assert!(violations.is_empty(), "{violations:#?}");
    assert!(ends >= ends_min, "{name}: only {ends} ends in {schedules} schedules");
    let kept: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../src/sim/counts.json")).expect("the counts");
    let row = kept.iter().find(|row| row["name"] == name).expect("a scope that is counted");
    assert_eq!((row["schedules"].as_u64(), row["ends"].as_u64()), (Some(schedules), Some(ends)), "{name}");
}

#[test]
fn a_spawn_in_place_survives_every_death_fault_and_power_cut() {
    holds("in_place", 250);
}

#[test]
fn a_spawn_of_a_silent_agent_survives_every_death() {
    holds("in_place_quiet", 15);
}

#[test]
fn two_spawns_of_one_agent_are_one_after_the_other_or_busy() {
    holds("two_spawns", 100);
}

#[test]
fn two_spawns_by_a_copy_never_take_each_others() {
    holds("two_copies", 150);
}

#[test]
fn a_new_conversation_survives_every_death_fault_and_power_cut() {
    holds("fresh", 300);
}

#[test]
fn a_fork_by_its_path_survives_every_death_fault_and_power_cut() {
    holds("by_path", 400);
}

#[test]
fn a_fork_by_a_copy_survives_every_death_fault_and_power_cut() {
    holds("by_copy", 900);
}

#[test]
fn a_sweep_beside_a_spawn_takes_nothing_that_lives() {
    holds("spawn_and_sweep", 100);
}

#[test]
fn who_interferes_with_a_copy_loses_nothing_and_breaks_nothing() {
    for name in ["outside_writer", "append_to_copy", "second_copy", "clean_up"] {
        holds(name, 2);
    }
}

#[test]
fn another_identity_never_continues_the_conversation() {
    holds("other_identity", 10);
}

#[test]
fn every_canary_is_found() {
    for &canary in Canary::ALL {
        let stated = scopes::of(canary).unwrap_or_else(|| panic!("{} names no scope", canary.name()));
        let mut explorer = Explorer::new(&stated.scope, Options { schedules_max: 50_000, ..Options::default() });
        explorer.all(&check::of(&stated), &mut |_| true);
        let found = explorer.violations.first().unwrap_or_else(|| panic!("{} was not found", canary.name()));
        let again = replay(&stated.scope, &found.schedule, &check::of(&stated));
        assert_eq!(again, Err(found.what.clone()), "{} replays: {}", canary.name(), found.schedule);
    }
}

#[test]
fn a_schedule_replays_and_what_is_none_is_said() {
    let stated = scope("in_place");
    assert_eq!(replay(&stated.scope, "20.1!", &check::of(&stated)), Ok(()));
    assert!(replay(&stated.scope, "20.x", &check::of(&stated)).is_err());
}

#[test]
fn leaving_out_moments_that_were_met_before_loses_no_end() {
    // Without that, only a world with few orders can be gone through whole.
    let stated = scope("in_place_quiet");
    let all = |prunes: bool| {
        let mut explorer = Explorer::new(&stated.scope, Options { prunes, ..Options::default() });
        explorer.all(&check::of(&stated), &mut |_| true);
        assert!(explorer.violations.is_empty(), "{:?}", explorer.violations);
        (explorer.ends().clone(), explorer.counts.schedules)
    };
    let ((pruned, few), (whole, many)) = (all(true), all(false));
    assert_eq!(pruned, whole);
    assert!(few < many, "{few} of {many}");
}

#[test]
fn random_worlds_hold_and_reach_what_they_are_for() {
    let mut runs = Vec::new();
    for seed in 1..=1_500 {
        match random::one(seed) {
            Ok(reached) => runs.push(reached),
            Err(violation) => panic!("{violation:#?}"),
        }
    }
    let shares = random::shares(&runs);
    let often = ["resumed in place", "forked", "new conversation", "copied", "busy", "a process died", "a door failed"];
    for name in often {
        assert!(shares[name] > 0, "{name} was never reached: {shares:?}");
    }
}

#[test]
fn a_seed_is_one_run_always_the_same() {
    for seed in 1..50 {
        assert_eq!(random::one(seed), random::one(seed));
    }
}
