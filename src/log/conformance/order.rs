//! Which place an event gets, in the log and in its stream, and that no clock has a say in it.

use super::breach::{Breach, Make, Rule, rule, same};
use super::say::{Desk, all, blank, ended, entry, fresh, in_order, labels, never, put, stream};
use crate::log::{Append, Recorded};

pub(super) const RULES: &[Rule] = &[
    rule!(places_are_dense, "Places count from 1 over the whole log without a gap, whatever the streams are."),
    rule!(versions_are_dense, "Versions count from 1 in each stream without a gap, whatever other streams get."),
    rule!(the_log_is_in_the_order_of_its_appends, "Events are read in the order of their appends, whoever appended."),
    rule!(an_entry_keeps_its_order, "The events of one entry come in the order in which they were given."),
    rule!(a_request_keeps_its_order, "The entries of one append come in the order in which they were given."),
    rule!(a_stream_named_twice_is_continued, "A later entry of one append goes on where an earlier one ended."),
    rule!(a_refusal_uses_up_no_place, "The place after a refused append is the one that it would have got."),
    rule!(a_refusal_uses_up_no_version, "The version after a refused append is the one that it would have got."),
    rule!(a_refusal_names_no_stream, "A stream that only refused appends named does not exist."),
    rule!(names_differ_by_case, "Two streams whose names differ in the case of a letter are two streams."),
    rule!(times_are_kept_as_given, "The writer's time is kept as it was given, from the least to the greatest."),
    rule!(a_clock_set_back_is_kept, "A time before that of the last event is kept as it was given."),
    rule!(the_clock_decides_no_order, "Events are read in log order, whatever their times say."),
];

fn places_are_dense(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    desk.append(&[entry("agent/a", vec![blank(), blank()]), entry("agent/b", vec![blank()])])?;
    desk.put("agent/b", vec![blank()])?;
    let places: Vec<u64> = all(desk.records())?.iter().map(|recorded| recorded.seq.0).collect();
    same("the places of five events", &places, &vec![1, 2, 3, 4, 5])
}

fn versions_of(events: &[Recorded], name: &str) -> Vec<u64> {
    events.iter().filter(|recorded| *recorded.stream == stream(name)).map(|recorded| recorded.version.0).collect()
}

fn versions_are_dense(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    for name in ["agent/a", "agent/b", "agent/a", "agent/b", "agent/a"] {
        desk.put(name, vec![blank()])?;
    }
    let events = all(desk.records())?;
    same("the versions of the first stream", &versions_of(&events, "agent/a"), &vec![1, 2, 3])?;
    same("the versions of the second stream", &versions_of(&events, "agent/b"), &vec![1, 2])
}

fn the_log_is_in_the_order_of_its_appends(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let other = desk.bench.writer()?;
    desk.put("agent/b", vec![fresh("1")])?;
    put(&*other, "agent/a", vec![fresh("2")])?;
    desk.put("agent/a", vec![fresh("3")])?;
    put(&*other, "agent/b", vec![fresh("4")])?;
    for (whose, records) in [("one writer", desk.records()), ("the other writer", other.records())] {
        let found = labels(&in_order(records)?);
        same(&format!("what {whose} reads"), &found, &["1", "2", "3", "4"].map(str::to_owned).to_vec())?;
    }
    Ok(())
}

fn an_entry_keeps_its_order(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![fresh("1"), fresh("2"), fresh("3")])?;
    let found = labels(&all(desk.records())?);
    same("the events of an entry", &found, &["1", "2", "3"].map(str::to_owned).to_vec())
}

fn a_request_keeps_its_order(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.append(&[entry("agent/b", vec![fresh("1")]), entry("agent/a", vec![fresh("2")])])?;
    let found = labels(&all(desk.records())?);
    same("the events of two entries", &found, &["1", "2"].map(str::to_owned).to_vec())
}

fn a_stream_named_twice_is_continued(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.append(&[entry("agent/a", vec![fresh("1")]), entry("agent/a", vec![fresh("2"), fresh("3")])])?;
    let events = all(desk.records())?;
    same("the events of the stream", &labels(&events), &["1", "2", "3"].map(str::to_owned).to_vec())?;
    same("their versions", &versions_of(&events, "agent/a"), &vec![1, 2, 3])
}

fn a_refusal_uses_up_no_place(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    if let Ok(appended) = desk.append(&[entry("agent/a", vec![never()])]) {
        return Err(Breach::new("an illegal event", "a refusal", &appended));
    }
    let next = desk.put("agent/b", vec![blank()])?;
    same("the next place", &next.first.map(|seq| seq.0), &Some(2))
}

fn a_refusal_uses_up_no_version(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    if let Ok(appended) = desk.append(&[entry("agent/a", vec![never()])]) {
        return Err(Breach::new("an illegal event", "a refusal", &appended));
    }
    let next = desk.put("agent/a", vec![blank()])?;
    let versions: Vec<u64> = next.frontiers.iter().map(|frontier| frontier.version.0).collect();
    same("the version of the stream", &versions, &vec![1])
}

fn a_refusal_names_no_stream(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    if let Ok(appended) = desk.append(&[entry("agent/b", vec![never()])]) {
        return Err(Breach::new("an illegal event", "a refusal", &appended));
    }
    let names: Vec<_> = desk.records().streams()?.into_iter().map(|frontier| frontier.stream).collect();
    same("the streams", &names, &vec![stream("agent/a")])
}

fn names_differ_by_case(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    desk.put("agent/A", vec![blank()])?;
    let names: Vec<_> = all(desk.records())?.iter().map(|recorded| recorded.stream.to_string()).collect();
    same("the streams of two events", &names, &["agent/a", "agent/A"].map(str::to_owned).to_vec())
}

/// Appends one event at each time, and gives the times and the labels as they are read.
fn at_times(make: &Make<'_>, times: &[i64]) -> Result<(Vec<i64>, Vec<String>), Breach> {
    let desk = Desk::new(make)?;
    for (number, at_ms) in times.iter().enumerate() {
        desk.log.append(&[entry("agent/a", vec![fresh(&number.to_string())])], &Append::at(*at_ms))?;
    }
    let times = all(desk.records())?.iter().map(|recorded| recorded.at_ms).collect();
    Ok((times, labels(&in_order(desk.records())?)))
}

fn times_are_kept_as_given(make: &Make<'_>) -> Result<(), Breach> {
    let times = [i64::MIN, -1, 0, 1, i64::MAX];
    same("the times", &at_times(make, &times)?.0, &times.to_vec())
}

fn a_clock_set_back_is_kept(make: &Make<'_>) -> Result<(), Breach> {
    same("the times", &at_times(make, &[5_000, 3_000, 4_000])?.0, &vec![5_000, 3_000, 4_000])
}

fn the_clock_decides_no_order(make: &Make<'_>) -> Result<(), Breach> {
    let found = at_times(make, &[5_000, 3_000, 4_000])?.1;
    same("the order of the events", &found, &["0", "1", "2"].map(str::to_owned).to_vec())?;
    // Nor what is allowed: a fence is an epoch.
    let desk = Desk::new(make)?;
    desk.log.append(&[entry("agent/a", vec![ended(1)])], &Append::at(9))?;
    desk.log.append(&[entry("agent/a", vec![ended(2)])], &Append::at(8))?;
    Ok(())
}
