//! Several who have one log open: what each knows of what the others did.

use std::ops::ControlFlow;

use super::breach::{Breach, Make, Rule, refused, rule, same};
use super::say::{Desk, all, blank, ended, entry, export, in_order, never, put, source, version};
use crate::id::Seq;
use crate::log::{Append, AppendError, Cursor, Entry, Import, Mode, Replay};

pub(super) const RULES: &[Rule] = &[
    rule!(a_reader_sees_what_was_committed, "A reader sees what was committed before it asked, though opened earlier."),
    rule!(an_anchor_is_of_now, "A reader's anchor, and a replay up to it, are of the moment at which they are asked."),
    rule!(a_reader_sees_no_refused_append, "A reader sees nothing of an append that was refused."),
    rule!(a_reader_sees_no_half_import, "Who asks while an import goes on sees nothing of it, or is told to wait."),
    rule!(
        a_writer_folds_what_others_wrote,
        "The fence knows what another handle appended since this one's last append."
    ),
    rule!(a_writer_expects_what_others_wrote, "An expectation is of the log, not of what this handle saw of it."),
    rule!(an_append_inside_a_read_is_refused, "An append inside a read of the same handle is refused."),
    rule!(an_append_inside_an_import_is_refused, "An append while the same handle imports is refused."),
    rule!(a_read_is_of_one_moment, "A read hands out nothing that was appended while it went on."),
    rule!(a_read_inside_a_read_is_answered, "Inside a read, the same handle answers other questions."),
];

fn a_reader_sees_what_was_committed(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let reader = desk.bench.reader()?;
    same("the events of an empty log", &in_order(&*reader)?.len(), &0)?;
    desk.put("agent/a", vec![blank()])?;
    same("the events after an append", &in_order(&*reader)?.len(), &1)
}

fn an_anchor_is_of_now(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let reader = desk.bench.reader()?;
    desk.put("agent/b", vec![blank()])?;
    same("the anchor's place", &reader.anchor()?.seq, &Seq(2))?;
    let replay = Replay::of(&*reader, Seq(1))?;
    desk.put("agent/c", vec![blank()])?;
    let replayed = replay.collect::<Result<Vec<_>, _>>()?;
    same("the events of a replay", &replayed.len(), &2)
}

fn a_reader_sees_no_refused_append(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let reader = desk.bench.reader()?;
    let refused = desk.append(&[entry("agent/a", vec![blank(), never()])]);
    refused!("an illegal event", refused, AppendError::Illegal { .. })?;
    same("how many events the reader sees", &in_order(&*reader)?.len(), &1)
}

fn a_reader_sees_no_half_import(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let (reader, text) = (desk.bench.reader()?, export(&source()?)?);
    let mut seen = Vec::new();
    desk.log.import(&mut text.as_bytes(), &Import { mode: Mode::Unverified, at_ms: 1 }, &mut |_| {
        // "Try again" is an answer; half of it is not.
        let all = [in_order(&*reader), in_order(desk.records())];
        seen.extend(all.into_iter().filter_map(|events| Some(events.ok()?.len())));
    })?;
    same("the most events seen meanwhile", &seen.into_iter().max().unwrap_or(0), &0)
}

fn a_writer_folds_what_others_wrote(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let other = desk.bench.writer()?;
    desk.put("agent/a", vec![ended(1)])?;
    put(&*other, "agent/a", vec![ended(5)])?;
    // It learns that somebody else wrote by another stream first.
    desk.put("agent/b", vec![blank()])?;
    let stale = desk.append(&[entry("agent/a", vec![ended(3)])]);
    refused!("an event of a lease that another handle ended", stale, AppendError::Illegal { .. })
}

fn a_writer_expects_what_others_wrote(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let other = desk.bench.writer()?;
    desk.put("agent/a", vec![blank()])?;
    put(&*other, "agent/a", vec![blank()])?;
    let late = desk.append(&[Entry { expected: version(1), ..entry("agent/a", vec![blank()]) }]);
    refused!("a version that another handle left behind", late, AppendError::Conflict { .. })
}

fn an_append_inside_a_read_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let mut inside = None;
    desk.records().read(&mut Cursor::at(Seq(1)), &mut |_| {
        inside = Some(desk.append(&[entry("agent/b", vec![blank()])]));
        ControlFlow::Break(())
    })?;
    refused!("an append inside a read", inside.unwrap_or(Err(AppendError::InsideRead)), AppendError::InsideRead)?;
    desk.put("agent/b", vec![blank()])?;
    Ok(())
}

fn an_append_inside_an_import_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let (text, mut inside) = (export(&source()?)?, None);
    desk.log.import(&mut text.as_bytes(), &Import { mode: Mode::Verified, at_ms: 1 }, &mut |line| {
        if line == 3 {
            inside = Some(desk.append(&[entry("agent/z", vec![blank()])]));
        }
    })?;
    refused!("an append inside an import", inside.unwrap_or(Err(AppendError::InsideRead)), AppendError::InsideRead)
}

fn a_read_is_of_one_moment(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let other = desk.bench.writer()?;
    for _ in 0..3 {
        desk.put("agent/a", vec![blank()])?;
    }
    let mut seen = Vec::new();
    desk.records().read(&mut Cursor::at(Seq(1)), &mut |event| {
        // It may be refused or not; the read does not see it.
        let _ = other.append(&[entry("agent/b", vec![blank()])], &Append::at(1));
        seen.push(event);
        if seen.len() < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    same("how many events are read", &seen.len(), &3)
}

fn a_read_inside_a_read_is_answered(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    desk.put("agent/b", vec![blank()])?;
    let (records, mut inside) = (desk.records(), Vec::new());
    records.read(&mut Cursor::at(Seq(1)), &mut |event| {
        inside.push(records.frontier(&event.stream).and_then(|frontier| Ok((frontier.version, all(records)?.len()))));
        ControlFlow::Continue(())
    })?;
    let answers = inside.into_iter().collect::<Result<Vec<_>, _>>()?;
    same("how often it was answered", &answers.len(), &2)?;
    Ok(())
}
