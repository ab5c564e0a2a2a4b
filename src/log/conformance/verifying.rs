//! What `verify` says of a log that is sound, and of an anchor that is not the log's.

use super::breach::{Breach, Make, Rule, rule, same};
use super::say::{Desk, STORE, all, blank, hook};
use crate::id::{Anchor, Digest, Seq};
use crate::log::{Damage, Verification};

pub(super) const RULES: &[Rule] = &[
    rule!(a_sound_log_is_counted, "Of a sound log, `verify` says the id, the anchor, and how many events and streams."),
    rule!(an_anchor_of_the_past_holds, "A log that went on is still the one that an earlier anchor was taken of."),
    rule!(a_log_that_ends_early_is_cut_off, "A log that ends before an anchor's place is cut off there."),
    rule!(another_history_is_found, "A log with another chain at an anchor's place is another history."),
];

/// A log of three events in two streams, and the anchor after each.
fn three(make: &Make<'_>) -> Result<(Desk, Vec<Anchor>), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    desk.put("hook/a", vec![hook("x")])?;
    desk.put("agent/a", vec![blank()])?;
    let anchors = all(desk.records())?.iter().map(|event| Anchor { seq: event.seq, chain: event.chain }).collect();
    Ok((desk, anchors))
}

fn verify(desk: &Desk, anchor: Option<Anchor>) -> Result<Verification, Breach> {
    Ok(desk.records().verify(anchor, &mut |_| {})?)
}

fn a_sound_log_is_counted(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, anchors) = three(make)?;
    let found = verify(&desk, None)?;
    same("what is wrong", &found.problems.len(), &0)?;
    same("events and streams", &(found.events, found.streams), &(3, 2))?;
    same("the id", &found.store, &STORE)?;
    same("the anchor", &Some(found.anchor), &anchors.last().copied())
}

fn an_anchor_of_the_past_holds(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, mut anchors) = three(make)?;
    anchors.push(Anchor { seq: Seq(0), chain: Digest::GENESIS });
    for anchor in anchors {
        let found = verify(&desk, Some(anchor))?;
        same(&format!("what is wrong with {anchor}"), &found.problems.len(), &0)?;
    }
    Ok(())
}

fn a_log_that_ends_early_is_cut_off(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = three(make)?;
    let problems = verify(&desk, Some(Anchor { seq: Seq(4), chain: Digest::plain(b"gone") }))?.problems;
    match &problems[..] {
        [problem] if problem.seq == Seq(4) && matches!(problem.damage, Damage::CutOff { last: Seq(3), .. }) => Ok(()),
        found => Err(Breach::new("a log that is known to have had a fourth event", "cut off at 4", &found)),
    }
}

fn another_history_is_found(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = three(make)?;
    for seq in [0, 2, 3] {
        let problems = verify(&desk, Some(Anchor { seq: Seq(seq), chain: Digest::plain(b"other") }))?.problems;
        match &problems[..] {
            [problem] if problem.seq == Seq(seq) && matches!(problem.damage, Damage::OtherHistory { .. }) => {}
            found => return Err(Breach::new("an anchor of another history", "that history at its place", &found)),
        }
    }
    Ok(())
}
