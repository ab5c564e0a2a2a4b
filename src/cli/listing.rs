//! `log`: what happened, event by event, in either direction.

use std::path::Path;

use crate::chain::fold::State;
use crate::cli::args::{Filter, Listing};
use crate::cli::error::{Failure, exit};
use crate::cli::line::{line, printed};
use crate::cli::output::Output;
use crate::cli::store;
use crate::cli::walk::{PAGE, Part, Walk, Wanted, Way};
use crate::id::{AgentId, Seq};
use crate::log::{LogError, Recorded, Records};

/// So many events are kept at most, to be turned around.
const KEPT_MAX: u64 = 1_000;

/// What is done with each event.
type Each<'e> = dyn FnMut(&Recorded) -> Result<(), Failure> + 'e;

/// Lists events.
pub(super) fn log(args: &Listing, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let wanted = wanted(&args.filter)?;
    let reader = store::reader(&store::path(log)?)?;
    let end = reader.anchor().map_err(of_log)?.seq;
    let until = args.at.map_or(Ok(end), |at| place(Seq(at), end))?;
    let part = Part { from: Seq(args.from.unwrap_or(1).max(1)), until };
    let (mut lines, mut count) = (output.lines(), 0_u64);
    let mut each = |event: &Recorded| {
        count += 1;
        lines.print(&printed(event, output))
    };
    let listed = match (args.reversed, args.most) {
        (true, most) => backward(&*reader, &wanted, part, most.unwrap_or(u64::MAX), &mut each),
        (false, Some(most)) => last(&*reader, &wanted, part, most, &mut each),
        (false, None) => forward(&*reader, &wanted, part, &mut each),
    };
    // What was found before an error is printed before it.
    let finished = lines.finish();
    listed.and(finished)?;
    if let Some(uid) = wanted.agent.filter(|_| count == 0)
        && !is_known(&*reader, &uid, part)?
    {
        let narrowed = args.at.is_some() || args.from.is_some();
        let place = if narrowed { " in that part of the log" } else { "" };
        output.say(&format!("throughline: agent {uid} has no event{place}"));
    }
    Ok(exit::OK)
}

/// What the flags ask for.
pub(super) fn wanted(filter: &Filter) -> Result<Wanted, Failure> {
    let agent = filter.agent.as_deref().map(AgentId::parse).transpose();
    let agent = agent.map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Wanted { agent, kinds: filter.kind.clone() })
}

/// The place of an event that must be there.
pub(super) fn place(seq: Seq, end: Seq) -> Result<Seq, Failure> {
    if seq >= Seq(1) && seq <= end {
        return Ok(seq);
    }
    let where_it_ends = match end {
        Seq(0) => "it is empty".into(),
        end => format!("its events are 1 to {end}"),
    };
    let text = format!("the log has no event {seq}: {where_it_ends}");
    Err(Failure::new("no_event", exit::ERROR, text).next("see `throughline log -n 20`"))
}

/// Whether an agent has any event in a part of the log.
pub(super) fn is_known(records: &dyn Records<State>, uid: &AgentId, part: Part) -> Result<bool, Failure> {
    let wanted = Wanted { agent: Some(uid.clone()), kinds: Vec::new() };
    let mut walk = Walk::new(records, &wanted, part, Way::Backward, 1).map_err(of_log)?;
    Ok(walk.next().transpose().map_err(of_log)?.is_some())
}

fn forward(records: &dyn Records<State>, wanted: &Wanted, part: Part, each: &mut Each<'_>) -> Result<(), Failure> {
    for event in Walk::new(records, wanted, part, Way::Forward, PAGE).map_err(of_log)? {
        each(&event.map_err(of_log)?)?;
    }
    Ok(())
}

fn backward(
    records: &dyn Records<State>,
    wanted: &Wanted,
    part: Part,
    most: u64,
    each: &mut Each<'_>,
) -> Result<(), Failure> {
    if most == 0 {
        return Ok(());
    }
    let page = if wanted.is_everything() { most } else { PAGE };
    let walk = Walk::new(records, wanted, part, Way::Backward, page).map_err(of_log)?;
    for (event, number) in walk.zip(1..) {
        each(&event.map_err(of_log)?)?;
        // Asked before the next one is read.
        if number == most {
            break;
        }
    }
    Ok(())
}

/// The last `most` events in log order. Few are kept and turned around; of many only the first one's place is kept.
pub(super) fn last(
    records: &dyn Records<State>,
    wanted: &Wanted,
    part: Part,
    most: u64,
    each: &mut Each<'_>,
) -> Result<(), Failure> {
    if most > KEPT_MAX {
        let from = match wanted.is_everything() {
            true => (part.until.0 + 1).saturating_sub(most),
            false => {
                let mut from = part.until.0 + 1;
                backward(records, wanted, part, most, &mut |event| {
                    from = event.seq.0;
                    Ok(())
                })?;
                from
            }
        };
        return forward(records, wanted, Part { from: part.from.max(Seq(from)), ..part }, each);
    }
    let mut kept = Vec::new();
    let read = backward(records, wanted, part, most, &mut |event| {
        kept.push(event.clone());
        Ok(())
    });
    kept.iter().rev().try_for_each(each)?;
    read
}

/// All events as `log` prints them.
pub(super) fn all(records: &dyn Records<State>, output: &Output) -> Result<String, Failure> {
    let part = Part { from: Seq(1), until: records.anchor().map_err(of_log)?.seq };
    let mut text = String::new();
    forward(records, &Wanted::default(), part, &mut |event| {
        text.push_str(&line(event, output));
        Ok(())
    })?;
    Ok(text)
}

fn of_log(error: LogError) -> Failure {
    store::of_log(&error)
}
