//! What is said of a stream: its frontier, and what its events amount to.

use super::breach::{Breach, Make, Rule, rule, same};
use super::say::{Desk, all, blank, ended, last_of, put, stream};
use super::tally::Tally;
use crate::id::{Digest, Version};

pub(super) const RULES: &[Rule] = &[
    rule!(a_frontier_is_the_last_version_and_chain, "A frontier is the stream's last version and its chain there."),
    rule!(an_unknown_stream_is_at_version_0, "A stream without events is at version 0, with a chain of zero bytes."),
    rule!(streams_are_sorted, "The streams are listed in the order of their names."),
    rule!(streams_have_their_frontiers, "The streams are listed with the frontiers that they have now."),
    rule!(a_state_is_the_fold_of_its_events, "A state is the fold of all events of its stream, however many."),
    rule!(a_state_rests_on_its_frontier, "A state comes with the frontier of its stream's last event."),
    rule!(an_unknown_state_is_empty, "The state of a stream without events is the empty one, at version 0."),
];

fn a_frontier_is_the_last_version_and_chain(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    for name in ["agent/a", "agent/b", "agent/a"] {
        desk.put(name, vec![blank()])?;
        let last = last_of(&all(desk.records())?, name);
        same("the frontier", &Some(desk.records().frontier(&stream(name))?), &last)?;
    }
    Ok(())
}

fn an_unknown_stream_is_at_version_0(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let unknown = desk.records().frontier(&stream("agent/b"))?;
    same("the frontier", &(unknown.version, unknown.chain), &(Version(0), Digest::GENESIS))
}

fn streams_are_sorted(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    for name in ["agent/c", "agent/a", "agent/b"] {
        desk.put(name, vec![blank()])?;
    }
    let names: Vec<_> = desk.records().streams()?.into_iter().map(|frontier| frontier.stream).collect();
    same("the streams", &names, &["agent/a", "agent/b", "agent/c"].map(stream).to_vec())
}

fn streams_have_their_frontiers(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    for name in ["agent/a", "agent/b", "agent/a"] {
        desk.put(name, vec![blank()])?;
    }
    let events = all(desk.records())?;
    let last: Vec<_> = ["agent/a", "agent/b"].iter().filter_map(|name| last_of(&events, name)).collect();
    let mut found = desk.records().streams()?;
    found.sort();
    same("the frontiers", &found, &last)
}

fn a_state_is_the_fold_of_its_events(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let mut writer = desk.bench.writer()?;
    for number in 1..=110 {
        put(&*writer, "agent/a", vec![ended(number)])?;
        if number % 40 == 0 {
            put(&*writer, "agent/b", vec![blank()])?;
            writer = desk.bench.writer()?;
        }
        if number % 11 == 0 {
            let state = desk.bench.reader()?.state(&stream("agent/a"))?.1;
            same("the state", &state, &Tally { events: number, epoch: number })?;
        }
    }
    let states = (writer.records().state(&stream("agent/a"))?.1, desk.records().state(&stream("agent/b"))?.1);
    same("the states", &states, &(Tally { events: 110, epoch: 110 }, Tally { events: 2, epoch: 0 }))
}

fn a_state_rests_on_its_frontier(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank(), blank()])?;
    desk.put("agent/b", vec![blank()])?;
    let last = last_of(&all(desk.records())?, "agent/a");
    same("the frontier", &Some(desk.records().state(&stream("agent/a"))?.0), &last)
}

fn an_unknown_state_is_empty(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let (frontier, state) = desk.records().state(&stream("agent/b"))?;
    same("version and state", &(frontier.version, state), &(Version(0), Tally::default()))
}
