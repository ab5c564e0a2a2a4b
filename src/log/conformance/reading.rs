//! Where a read begins, where it ends and how it goes on.

use std::time::Duration;

use super::breach::{Breach, Make, Rule, refused, rule, same};
use super::say::{Desk, SOURCE, fresh, keep, labels, stream};
use crate::id::{Seq, Version};
use crate::log::{Cursor, Follow, LogError, Recorded};

pub(super) const RULES: &[Rule] = &[
    rule!(a_read_begins_at_its_place, "A read from a place on begins with the event there."),
    rule!(a_read_from_beyond_the_end_is_empty, "A read from a place beyond the end hands out nothing."),
    rule!(a_break_ends_a_read, "A read ends with the event at which it is told to."),
    rule!(a_break_ends_a_read_of_one_stream, "A read of one stream ends with the event at which it is told to."),
    rule!(one_stream_begins_at_its_version, "A read of one stream from a version on begins with the event there."),
    rule!(one_stream_is_no_other, "A read of one stream hands out its events, and none of a longer name."),
    rule!(
        a_cursor_goes_on_where_it_stopped,
        "A read that was told to end goes on behind the last event, no gap, no repeat."
    ),
    rule!(a_cursor_reaches_later_events, "A read that reached the end goes on with what was appended since."),
    rule!(a_follower_waits_at_the_end, "A follower that found nothing new gets the next event once it is there."),
    rule!(a_cursor_is_of_its_log, "A cursor that is used on another log finds damage, and hands out nothing."),
];

/// A log of single events in one stream.
fn of(make: &Make<'_>, names: &[&str]) -> Result<Desk, Breach> {
    let desk = Desk::new(make)?;
    for name in names {
        desk.put("agent/a", vec![fresh(name)])?;
    }
    Ok(desk)
}

fn are(what: &str, found: &[Recorded], expected: &[&str]) -> Result<(), Breach> {
    same(what, &labels(found), &expected.iter().map(|name| (*name).to_owned()).collect())
}

fn a_read_begins_at_its_place(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1", "2", "3"])?;
    for (from, expected) in [(0, &["1", "2", "3"][..]), (1, &["1", "2", "3"]), (2, &["2", "3"]), (3, &["3"])] {
        let mut seen = Vec::new();
        desk.records().events(Seq(from), &mut keep(&mut seen, usize::MAX))?;
        are(&format!("the events from {from} on"), &seen, expected)?;
    }
    Ok(())
}

fn a_read_from_beyond_the_end_is_empty(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1", "2"])?;
    for from in [9, u64::MAX] {
        let mut seen = Vec::new();
        desk.records().read(&mut Cursor::at(Seq(from)), &mut keep(&mut seen, usize::MAX))?;
        are(&format!("the events from {from} on"), &seen, &[])?;
    }
    Ok(())
}

fn a_break_ends_a_read(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1", "2", "3"])?;
    let mut seen = Vec::new();
    desk.records().read(&mut Cursor::at(Seq(1)), &mut keep(&mut seen, 1))?;
    are("the events up to the first", &seen, &["1"])
}

fn a_break_ends_a_read_of_one_stream(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1", "2", "3"])?;
    let mut seen = Vec::new();
    desk.records().events_of(&stream("agent/a"), Version(1), &mut keep(&mut seen, 1))?;
    are("the events up to the first", &seen, &["1"])
}

fn one_stream_begins_at_its_version(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1", "2", "3"])?;
    for (from, expected) in
        [(0, &["1", "2", "3"][..]), (1, &["1", "2", "3"]), (2, &["2", "3"]), (3, &["3"]), (4, &[]), (u64::MAX, &[])]
    {
        let mut seen = Vec::new();
        desk.records().events_of(&stream("agent/a"), Version(from), &mut keep(&mut seen, usize::MAX))?;
        are(&format!("the events from version {from} on"), &seen, expected)?;
    }
    Ok(())
}

fn one_stream_is_no_other(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1"])?;
    desk.put("agent/ab", vec![fresh("2")])?;
    desk.put("agent/a", vec![fresh("3")])?;
    let mut seen = Vec::new();
    desk.records().events_of(&stream("agent/a"), Version(1), &mut keep(&mut seen, usize::MAX))?;
    are("the events of the stream", &seen, &["1", "3"])?;
    let mut none = Vec::new();
    desk.records().events_of(&stream("agent/c"), Version(1), &mut keep(&mut none, usize::MAX))?;
    are("the events of an unknown stream", &none, &[])
}

fn a_cursor_goes_on_where_it_stopped(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1", "2", "3", "4"])?;
    let (mut cursor, mut seen) = (Cursor::at(Seq(1)), Vec::new());
    desk.records().read(&mut cursor, &mut keep(&mut seen, 2))?;
    desk.records().read(&mut cursor, &mut keep(&mut seen, usize::MAX))?;
    are("the events of two reads", &seen, &["1", "2", "3", "4"])
}

fn a_cursor_reaches_later_events(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1", "2"])?;
    let (mut cursor, mut seen) = (Cursor::at(Seq(1)), Vec::new());
    desk.records().read(&mut cursor, &mut keep(&mut seen, usize::MAX))?;
    desk.put("agent/b", vec![fresh("3")])?;
    desk.put("agent/a", vec![fresh("4")])?;
    desk.records().read(&mut cursor, &mut keep(&mut seen, usize::MAX))?;
    are("the events of two reads", &seen, &["1", "2", "3", "4"])
}

fn a_follower_waits_at_the_end(make: &Make<'_>) -> Result<(), Breach> {
    let desk = of(make, &["1", "2"])?;
    let reader = desk.bench.reader()?;
    let mut follow = Follow::of(&*reader, Seq(3));
    let mut seen: Vec<_> = follow.next_within(Duration::ZERO)?.into_iter().collect();
    are("the events so far", &seen, &[])?;
    desk.put("agent/a", vec![fresh("3")])?;
    seen.extend(follow.next_within(Duration::ZERO)?);
    are("the events by then", &seen, &["3"])
}

fn a_cursor_is_of_its_log(make: &Make<'_>) -> Result<(), Breach> {
    let one = of(make, &["1", "2"])?;
    let other = Desk::of(make, SOURCE)?;
    // Shorter, as long, longer.
    for name in ["3", "4", "5"] {
        other.put("agent/a", vec![fresh(name)])?;
        let (mut cursor, mut seen) = (Cursor::at(Seq(1)), Vec::new());
        one.records().read(&mut cursor, &mut keep(&mut seen, usize::MAX))?;
        let result = other.records().read(&mut cursor, &mut keep(&mut seen, usize::MAX));
        refused!("a cursor of another log", result, LogError::Damaged(_))?;
        are("the events of both reads", &seen, &["1", "2"])?;
    }
    Ok(())
}
