//! On what condition an append happens.

use super::breach::{Breach, Make, Rule, refused, rule, same};
use super::say::{Desk, all, blank, entry, fresh, last_of, never, stream, version};
use crate::id::{Digest, Version};
use crate::log::{AppendError, Entry, Expectation};

pub(super) const RULES: &[Rule] = &[
    rule!(fewer_events_than_there_are_is_a_conflict, "A version below the stream's is a conflict."),
    rule!(more_events_than_there_are_is_a_conflict, "A version above the stream's is a conflict."),
    rule!(version_zero_is_a_new_stream, "Version 0 is expected of a stream that has no event, and of no other."),
    rule!(another_history_is_a_conflict, "A frontier of the right version and another chain is a conflict."),
    rule!(a_history_that_went_on_is_a_conflict, "A frontier that the stream had once is a conflict."),
    rule!(what_is_there_is_expected, "The stream's own version and its own frontier are no conflict."),
    rule!(one_conflict_refuses_every_stream, "A conflict of one stream keeps out the events of all."),
    rule!(a_conflict_without_events_refuses_all, "The conflict of an entry without events keeps out those of others."),
    rule!(expectations_are_of_before_the_append, "What an append adds to a stream is not part of what is expected."),
    rule!(a_conflict_says_what_is_there, "A conflict names the stream, what was expected and the stream's frontier."),
    rule!(a_conflict_comes_before_the_law, "An illegal event with a wrong expectation is a conflict."),
];

/// A log with two events in a stream, and what was seen of it after the first and after the second.
fn two(make: &Make<'_>) -> Result<(Desk, Vec<Expectation>), Breach> {
    let desk = Desk::new(make)?;
    let mut seen = Vec::new();
    for number in ["1", "2"] {
        desk.put("agent/a", vec![fresh(number)])?;
        seen.extend(last_of(&all(desk.records())?, "agent/a").as_ref().map(Expectation::from));
    }
    Ok((desk, seen))
}

fn conflicts(desk: &Desk, expected: Expectation) -> Result<(), Breach> {
    let what = format!("an append that expects {expected:?} of two events");
    refused!(&what, desk.expecting("agent/a", expected), AppendError::Conflict { .. })
}

fn fewer_events_than_there_are_is_a_conflict(make: &Make<'_>) -> Result<(), Breach> {
    conflicts(&two(make)?.0, version(1))
}

fn more_events_than_there_are_is_a_conflict(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = two(make)?;
    conflicts(&desk, version(3))?;
    conflicts(&desk, version(u64::MAX))
}

fn version_zero_is_a_new_stream(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = two(make)?;
    conflicts(&desk, version(0))?;
    desk.expecting("agent/b", version(0))?;
    Ok(())
}

fn another_history_is_a_conflict(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = two(make)?;
    conflicts(&desk, Expectation::Frontier { version: Version(2), chain: Digest::plain(b"another") })
}

fn a_history_that_went_on_is_a_conflict(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, seen) = two(make)?;
    seen.first().map_or(Ok(()), |first| conflicts(&desk, first.clone()))
}

fn what_is_there_is_expected(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, seen) = two(make)?;
    if let Some(held) = seen.last() {
        desk.expecting("agent/a", held.clone())?;
    }
    desk.expecting("agent/a", version(3))?;
    Ok(())
}

fn one_conflict_refuses_every_stream(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let entries = [entry("agent/a", vec![blank()]), Entry { expected: version(5), ..entry("agent/b", vec![blank()]) }];
    refused!("an append with a conflict", desk.append(&entries), AppendError::Conflict { .. })?;
    same("how many events there are", &all(desk.records())?.len(), &0)
}

fn a_conflict_without_events_refuses_all(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let entries = [Entry { expected: version(5), ..entry("agent/a", Vec::new()) }, entry("agent/b", vec![blank()])];
    refused!("a check that fails", desk.append(&entries), AppendError::Conflict { .. })?;
    same("how many events there are", &all(desk.records())?.len(), &0)
}

fn expectations_are_of_before_the_append(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let of = |name, expected| Entry { expected, ..entry(name, vec![blank()]) };
    desk.append(&[of("agent/a", version(0)), of("agent/a", version(0))])?;
    let counted = desk.append(&[of("agent/b", Expectation::Any), of("agent/b", version(1))]);
    refused!("an entry that counts what is appended with it", counted, AppendError::Conflict { .. })
}

fn a_conflict_says_what_is_there(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = two(make)?;
    let there = last_of(&all(desk.records())?, "agent/a");
    let result = desk.expecting("agent/a", version(7));
    let Err(AppendError::Conflict { stream: found, expected, actual }) = result else {
        return Err(Breach::new("a wrong expectation", "a conflict", &result));
    };
    same("the stream of a conflict", &found, &stream("agent/a"))?;
    same("what was expected", &expected, &version(7))?;
    same("what is there", &Some(*actual), &there)
}

fn a_conflict_comes_before_the_law(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let entries = [entry("agent/a", vec![never()]), Entry { expected: version(5), ..entry("agent/b", vec![blank()]) }];
    refused!("an illegal event and a conflict", desk.append(&entries), AppendError::Conflict { .. })
}
