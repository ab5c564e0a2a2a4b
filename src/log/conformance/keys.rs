//! What a request with an idempotency key does when it comes again.

use super::breach::{Breach, Make, Rule, refused, rule, same};
use super::say::{Desk, STORE, all, blank, ended, entry, export, fresh, keyed, never, put, source, version};
use crate::log::{Append, AppendError, Appended, Entry, Mode};

pub(super) const RULES: &[Rule] = &[
    rule!(a_repeated_request_appends_nothing, "A request whose key was used for it adds nothing to the log."),
    rule!(a_repeated_request_names_its_place, "A repeated request answers the place of the events of the first one."),
    rule!(
        a_repeated_request_has_its_anchor,
        "A repeated request answers the anchor as it was, though the log went on."
    ),
    rule!(a_repeated_request_has_its_frontiers, "A repeated request answers the frontiers as they were then."),
    rule!(a_key_stands_for_its_events, "A key that was used for other events is refused."),
    rule!(a_key_stands_for_its_streams, "A key that was used for another stream is refused."),
    rule!(a_key_refused_writes_nothing, "A request with a key that stands for another one adds nothing to the log."),
    rule!(a_key_forgets_expectations, "A repeated request may expect something else."),
    rule!(a_key_forgets_checks, "A repeated request may check other streams."),
    rule!(a_key_forgets_how_events_are_grouped, "A repeated request may name a stream once for each of its events."),
    rule!(a_key_forgets_the_time, "A repeated request may be of another time."),
    rule!(a_key_comes_before_expectations, "A repeated request is answered though it would be a conflict now."),
    rule!(a_key_comes_before_the_fence, "A repeated request is answered though it would be fenced now."),
    rule!(a_key_is_known_to_every_handle, "A key counts for all who have the log open."),
    rule!(a_key_outlives_its_handle, "A key counts after the log was closed and opened again."),
    rule!(a_check_uses_its_key, "The key of a request without events stands for that request."),
    rule!(a_refusal_uses_no_key, "The key of a refused request is free."),
    rule!(a_key_outlives_an_import, "The key of a check on an empty log counts after an import gave it another id."),
];

/// A request with the key `k`, sent once.
fn sent(make: &Make<'_>, entries: &[Entry]) -> Result<(Desk, Appended), Breach> {
    let desk = Desk::new(make)?;
    let first = desk.log.append(entries, &keyed("k"))?;
    Ok((desk, first))
}

fn one() -> Vec<Entry> {
    vec![entry("agent/a", vec![fresh("x")])]
}

fn a_repeated_request_appends_nothing(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = sent(make, &one())?;
    desk.log.append(&one(), &keyed("k"))?;
    same("how many events there are", &all(desk.records())?.len(), &1)
}

fn a_repeated_request_names_its_place(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, first) = sent(make, &one())?;
    same("the first place", &desk.log.append(&one(), &keyed("k"))?.first, &first.first)
}

fn a_repeated_request_has_its_anchor(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, first) = sent(make, &one())?;
    desk.put("agent/b", vec![blank()])?;
    same("the anchor", &desk.log.append(&one(), &keyed("k"))?.anchor, &first.anchor)
}

fn a_repeated_request_has_its_frontiers(make: &Make<'_>) -> Result<(), Breach> {
    let entries = [one(), vec![entry("agent/b", Vec::new())]].concat();
    let (desk, first) = sent(make, &entries)?;
    desk.put("agent/a", vec![blank()])?;
    desk.put("agent/b", vec![blank()])?;
    same("the frontiers", &desk.log.append(&entries, &keyed("k"))?.frontiers, &first.frontiers)
}

fn a_key_stands_for_its_events(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = sent(make, &one())?;
    let other = desk.log.append(&[entry("agent/a", vec![fresh("y")])], &keyed("k"));
    refused!("a key that was used for another event", other, AppendError::KeyReused { .. })
}

fn a_key_stands_for_its_streams(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = sent(make, &one())?;
    let other = desk.log.append(&[entry("agent/b", vec![fresh("x")])], &keyed("k"));
    refused!("a key that was used for another stream", other, AppendError::KeyReused { .. })
}

fn a_key_refused_writes_nothing(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = sent(make, &one())?;
    let other = desk.log.append(&[entry("agent/b", vec![fresh("y"), fresh("z")])], &keyed("k"));
    refused!("a key that was used for another request", other, AppendError::KeyReused { .. })?;
    same("how many events there are", &all(desk.records())?.len(), &1)
}

fn a_key_forgets_expectations(make: &Make<'_>) -> Result<(), Breach> {
    let new = [Entry { expected: version(0), ..entry("agent/a", vec![blank()]) }];
    let (desk, _) = sent(make, &new)?;
    desk.log.append(&[entry("agent/a", vec![blank()])], &keyed("k"))?;
    Ok(())
}

fn a_key_forgets_checks(make: &Make<'_>) -> Result<(), Breach> {
    let checked = [Entry { expected: version(0), ..entry("agent/b", Vec::new()) }];
    let (desk, _) = sent(make, &[&checked[..], &one()].concat())?;
    desk.log.append(&one(), &keyed("k"))?;
    Ok(())
}

fn a_key_forgets_how_events_are_grouped(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = sent(make, &[entry("agent/a", vec![blank(), blank()])])?;
    desk.log.append(&[entry("agent/a", vec![blank()]), entry("agent/a", vec![blank()])], &keyed("k"))?;
    Ok(())
}

fn a_key_forgets_the_time(make: &Make<'_>) -> Result<(), Breach> {
    let (desk, _) = sent(make, &one())?;
    desk.log.append(&one(), &Append { at_ms: 99, ..keyed("k") })?;
    Ok(())
}

fn a_key_comes_before_expectations(make: &Make<'_>) -> Result<(), Breach> {
    let new = [Entry { expected: version(0), ..entry("agent/a", vec![blank()]) }];
    let (desk, _) = sent(make, &new)?;
    desk.log.append(&new, &keyed("k"))?;
    Ok(())
}

fn a_key_comes_before_the_fence(make: &Make<'_>) -> Result<(), Breach> {
    let of_a_lease = [entry("agent/a", vec![ended(5)])];
    let (desk, _) = sent(make, &of_a_lease)?;
    desk.put("agent/a", vec![ended(6)])?;
    desk.log.append(&of_a_lease, &keyed("k"))?;
    Ok(())
}

fn a_key_is_known_to_every_handle(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let other = desk.bench.writer()?;
    desk.log.append(&one(), &keyed("k"))?;
    let reused = other.append(&[entry("agent/b", vec![blank()])], &keyed("k"));
    refused!("a key that another handle used", reused, AppendError::KeyReused { .. })
}

fn a_key_outlives_its_handle(make: &Make<'_>) -> Result<(), Breach> {
    let bench = make(STORE)?;
    let first = bench.writer()?;
    first.append(&one(), &keyed("k"))?;
    drop(first);
    let reused = bench.writer()?.append(&[entry("agent/b", vec![blank()])], &keyed("k"));
    refused!("a key that was used before the log was closed", reused, AppendError::KeyReused { .. })
}

fn a_check_uses_its_key(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let check = Entry { expected: version(1), ..entry("agent/a", Vec::new()) };
    desk.log.append(&[check], &keyed("k"))?;
    let reused = desk.log.append(&[entry("agent/b", vec![blank()])], &keyed("k"));
    refused!("a key that was used for a check", reused, AppendError::KeyReused { .. })
}

fn a_refusal_uses_no_key(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let refused = desk.log.append(&[entry("agent/a", vec![never()])], &keyed("k"));
    refused!("an illegal event", refused, AppendError::Illegal { .. })?;
    put(&*desk.log, "agent/a", vec![blank()])?;
    desk.log.append(&one(), &keyed("k"))?;
    Ok(())
}

fn a_key_outlives_an_import(make: &Make<'_>) -> Result<(), Breach> {
    let check = [Entry { expected: version(0), ..entry("agent/c", Vec::new()) }];
    let (desk, _) = sent(make, &check)?;
    desk.import(&export(&source()?)?, Mode::Verified)?;
    let reused = desk.log.append(&[entry("agent/b", vec![blank()])], &keyed("k"));
    refused!("a key that was used before the import", reused, AppendError::KeyReused { .. })
}
