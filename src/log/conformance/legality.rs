//! What the fold is asked, when, and what its "no" does.

use super::breach::{Breach, Make, Rule, refused, rule, same};
use super::say::{Desk, SOURCE, all, because, blank, ended, entry, export, hook, never, stream};
use super::tally::Tally;
use crate::log::{Append, AppendError, BODY_BYTES_MAX, Log as _, MemoryLog, Mode};

pub(super) const RULES: &[Rule] = &[
    rule!(an_illegal_event_refuses_all, "An illegal event keeps out the legal ones before it, in every stream."),
    rule!(
        an_illegal_event_is_named,
        "The refusal of an event says which stream, which event of its entry, which kind."
    ),
    rule!(the_fence_is_asked, "An event that the fence does not admit is refused at an append."),
    rule!(the_fence_sees_the_event_before, "The fence is asked about an event after those before it in the append."),
    rule!(the_fence_can_be_left_out, "An unfenced append asks no fence for any of its streams."),
    rule!(the_fence_is_not_asked_again, "An event that is in the log is folded without a fence."),
    rule!(a_family_keeps_to_itself, "An event of another family than its stream's is refused."),
    rule!(an_event_has_a_longest_body, "A body longer than `BODY_BYTES_MAX` is refused."),
    rule!(a_refusal_leaves_no_state, "What was folded of a refused append has no part in the next one."),
];

fn an_illegal_event_refuses_all(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let entries = [entry("agent/a", vec![blank()]), entry("agent/b", vec![blank(), never()])];
    refused!("an append with an illegal event", desk.append(&entries), AppendError::Illegal { .. })?;
    same("how many events there are", &all(desk.records())?.len(), &0)
}

fn an_illegal_event_is_named(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let entries = [entry("agent/a", vec![blank()]), entry("agent/b", vec![blank(), never()])];
    let result = desk.append(&entries);
    let Err(AppendError::Illegal { stream: found, index, kind, .. }) = result else {
        return Err(Breach::new("an illegal event", "a refusal", &result));
    };
    same("stream, index and kind", &(found, index, kind), &(stream("agent/b"), 1, "fresh_intended"))
}

fn the_fence_is_asked(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![ended(5)])?;
    desk.put("agent/a", vec![ended(5)])?;
    let stale = desk.append(&[entry("agent/a", vec![ended(4)])]);
    refused!("an event of a lease that is over", stale, AppendError::Illegal { .. })
}

fn the_fence_sees_the_event_before(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let stale = desk.append(&[entry("agent/a", vec![ended(5), ended(4)])]);
    refused!("a lease that ends and one that was over", stale, AppendError::Illegal { .. })
}

fn the_fence_can_be_left_out(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.append(&[entry("agent/a", vec![ended(5)]), entry("agent/b", vec![ended(5)])])?;
    let stale = [entry("agent/a", vec![ended(4)]), entry("agent/b", vec![ended(4)])];
    desk.log.append(&stale, &Append { unfenced: true, ..Append::at(1) })?;
    Ok(())
}

fn the_fence_is_not_asked_again(make: &Make<'_>) -> Result<(), Breach> {
    // The event was unfenced when it was appended, to the log that is imported.
    let source = MemoryLog::<Tally>::new(SOURCE);
    for epoch in [5, 4, 3] {
        source.append(&[entry("agent/a", vec![ended(epoch)])], &Append { unfenced: true, ..Append::at(1) })?;
    }
    let desk = Desk::new(make)?;
    desk.import(&export(&source)?, Mode::Verified)?;
    let state = desk.bench.reader()?.state(&stream("agent/a"))?.1;
    same("the state", &state, &Tally { events: 3, epoch: 5 })
}

fn a_family_keeps_to_itself(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let foreign = desk.append(&[entry("agent/a", vec![blank(), hook("x")])]);
    refused!("a hook's event for an agent's stream", foreign, AppendError::WrongFamily { kind: "hook_announced", .. })
}

fn an_event_has_a_longest_body(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let long = because(&"x".repeat(BODY_BYTES_MAX), 1);
    let result = desk.append(&[entry("agent/a", vec![long])]).map(|appended| appended.anchor.seq);
    refused!("a body that is too long", result, AppendError::TooLong { bytes, .. } if bytes > BODY_BYTES_MAX)
}

fn a_refusal_leaves_no_state(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![ended(1)])?;
    let refused = desk.append(&[entry("agent/a", vec![ended(9), never()])]);
    refused!("an append with an illegal event", refused, AppendError::Illegal { .. })?;
    // The lease of epoch 9 never was.
    desk.put("agent/a", vec![ended(2)])?;
    same("the state", &desk.records().state(&stream("agent/a"))?.1, &Tally { events: 2, epoch: 2 })
}
