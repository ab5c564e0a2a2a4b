//! Wrong in what is kept: places, times, bytes, digests, frontiers and states.

use throughline::event::{AgentEvent, Event, FreshIntended};
use throughline::id::{Digest, PaneId, Seq};
use throughline::log::conformance::Tally;
use throughline::log::{Cursor, Damage, Fold as _, Log as _, LogError, Problem, Recorded, Records as _};

use super::helpers::{every, made_of, once};
use super::{Each, Handle, Wrong};

pub(super) fn all() -> Vec<Wrong> {
    [places(), digests(), streams(), verify()].into_iter().flatten().collect()
}

/// Hands out in another order; a read that goes on or is told to end stays as it is.
fn sorted<K: Ord>(
    it: &Handle,
    cursor: &mut Cursor,
    each: &mut Each<'_>,
    key: impl Fn(&Recorded) -> K,
) -> Result<(), LogError> {
    let mut events = every(&it.log);
    if cursor.next() > Seq(1) || events.is_sorted_by_key(&key) {
        return it.plain_read(cursor, each);
    }
    events.sort_by_key(key);
    // It ends at the end or where `each` wants it to.
    let _ = events.into_iter().try_for_each(each);
    Ok(())
}

fn places() -> Vec<Wrong> {
    vec![
        Wrong {
            append: |it, entries, append| {
                let appended = it.log.append(entries, append)?;
                if entries.len() > 1 {
                    it.shared.places.borrow_mut().insert(appended.anchor.seq.0);
                }
                Ok(appended)
            },
            recorded: |it, event| {
                let places = it.shared.places.borrow();
                event.seq.0 += places.range(..event.seq.0).count() as u64;
            },
            ..Wrong::new("places_are_dense", "reserves one place too many for an append of several streams")
        },
        Wrong {
            recorded: |it, event| {
                if event.version.0 >= 3 && it.log.streams().unwrap().len() > 1 {
                    event.version.0 -= 1;
                }
            },
            ..Wrong::new(
                "versions_are_dense",
                "counts on from a cache that is one event behind once streams take turns",
            )
        },
        Wrong {
            read: |it, cursor, each| {
                let own = it.own.borrow().clone();
                let is_own = |event: &Recorded| own.contains(&event.seq.0);
                if own.is_empty() {
                    it.plain_read(cursor, each)
                } else {
                    sorted(it, cursor, each, |event| !is_own(event))
                }
            },
            ..Wrong::new(
                "the_log_is_in_the_order_of_its_appends",
                "hands out what this handle appended from its own list",
            )
        },
        Wrong {
            recorded: |_, event| event.at_ms = event.at_ms.max(0),
            ..Wrong::new("times_are_kept_as_given", "stores a time as an unsigned number")
        },
        Wrong {
            recorded: |it, event| {
                let before = every(&it.log).into_iter().filter(|other| other.seq <= event.seq);
                event.at_ms = before.map(|other| other.at_ms).max().unwrap_or(event.at_ms);
            },
            ..Wrong::new("a_clock_set_back_is_kept", "never lets the time of an event go back")
        },
        Wrong {
            read: |it, cursor, each| sorted(it, cursor, each, |event| event.at_ms),
            ..Wrong::new("the_clock_decides_no_order", "reads by an index on the time")
        },
    ]
}

/// The second event or a later one of a hook's stream: what only the known log has.
fn is_later_hook(event: &Recorded) -> bool {
    event.stream.family() == "hook" && event.version.0 > 1
}

fn digests() -> Vec<Wrong> {
    vec![
        Wrong {
            recorded: |_, event| {
                if let Event::Agent(AgentEvent::FreshIntended(FreshIntended { pane: Some(pane) })) = &event.event {
                    event.event = FreshIntended { pane: Some(PaneId::parse(pane.as_str().trim()).unwrap()) }.into();
                }
            },
            ..Wrong::new("an_event_comes_back_as_given", "trims texts")
        },
        Wrong {
            recorded: |_, event| {
                event.body = String::from_utf8(event.body.clone()).unwrap().replace('é', "\\u00e9").into_bytes();
            },
            ..Wrong::new("a_body_is_canonical", "writes bodies in ASCII")
        },
        Wrong {
            recorded: |it, event| {
                if is_later_hook(event) {
                    event.record = made_of(event, it.log.store().0.as_u128(), Digest::GENESIS, 0).record;
                }
            },
            ..Wrong::new("records_are_what_the_format_says", "leaves the version out of a hook's record")
        },
        Wrong {
            recorded: |it, event| {
                let half = it.log.store().0.as_u128() >> 64 << 64;
                event.record = made_of(event, half, Digest::GENESIS, event.version.0 - 1).record;
            },
            ..Wrong::new("records_are_of_their_store", "binds a record to the first half of the id")
        },
        Wrong {
            recorded: |it, event| {
                if is_later_hook(event) {
                    let before = once(it, &event.stream, event.version.0 - 1).unwrap().chain;
                    let store = it.log.store().0.as_u128();
                    event.chain = made_of(event, store, before, event.version.0 - 1).chain;
                }
            },
            ..Wrong::new("chains_are_what_the_format_says", "links a hook's event to the one before it in its stream")
        },
        Wrong {
            recorded: |_, event| {
                if is_later_hook(event) {
                    event.stream_chain = event.chain;
                }
            },
            ..Wrong::new("stream_chains_are_what_the_format_says", "links a hook's stream to the log")
        },
        Wrong {
            recorded: |it, event| {
                if event.seq.0 > 64 {
                    let store = it.log.store().0.as_u128();
                    event.chain = made_of(event, store, Digest::GENESIS, event.version.0 - 1).chain;
                }
            },
            ..Wrong::new("long_chains_hold", "begins a new chain in the second page")
        },
        Wrong {
            anchor: |it| {
                let mut anchor = it.log.anchor()?;
                anchor.chain = every(&it.log).pop().map_or(anchor.chain, |last| last.record);
                Ok(anchor)
            },
            ..Wrong::new("an_anchor_is_the_last_place_and_chain", "takes the last record for the chain")
        },
        Wrong {
            anchor: |it| {
                let mut anchor = it.log.anchor()?;
                if anchor.seq.0 == 0 {
                    anchor.chain = Digest::plain(it.log.store().0.as_bytes());
                }
                Ok(anchor)
            },
            ..Wrong::new("an_empty_log_has_the_empty_chain", "begins the chain with the id")
        },
    ]
}

fn streams() -> Vec<Wrong> {
    vec![
        Wrong {
            frontier: |it, stream| {
                let mut frontier = it.log.frontier(stream)?;
                if frontier.version.0 > 0 {
                    frontier.chain = it.log.anchor()?.chain;
                }
                Ok(frontier)
            },
            ..Wrong::new("a_frontier_is_the_last_version_and_chain", "takes the log's chain for the stream's")
        },
        Wrong {
            frontier: |it, stream| {
                let mut frontier = it.log.frontier(stream)?;
                if frontier.version.0 == 0 {
                    frontier.chain = Digest::plain(stream.to_string().as_bytes());
                }
                Ok(frontier)
            },
            ..Wrong::new("an_unknown_stream_is_at_version_0", "begins a stream's chain with its name")
        },
        Wrong {
            streams: |it| {
                let mut streams = it.log.streams()?;
                let events = every(&it.log);
                streams.sort_by_key(|held| events.iter().position(|event| *event.stream == held.stream));
                Ok(streams)
            },
            ..Wrong::new("streams_are_sorted", "lists the streams in the order in which they were made")
        },
        Wrong {
            streams: |it| {
                let streams = it.log.streams()?.into_iter();
                Ok(streams.map(|held| once(it, &held.stream, 1).unwrap_or(held)).collect())
            },
            ..Wrong::new("streams_have_their_frontiers", "lists the frontier that a stream was made with")
        },
        Wrong {
            state: |it, stream| {
                let (frontier, mut state) = it.log.state(stream)?;
                if frontier.version.0 >= 64 {
                    let kept = frontier.version.0 / 32 * 32;
                    state = Tally::empty(stream);
                    for event in
                        every(&it.log).iter().filter(|event| *event.stream == *stream && event.version.0 <= kept)
                    {
                        state.apply(&event.event).unwrap();
                    }
                }
                Ok((frontier, state))
            },
            ..Wrong::new("a_state_is_the_fold_of_its_events", "takes a memo for the state")
        },
        Wrong {
            state: |it, stream| {
                let (frontier, state) = it.log.state(stream)?;
                let before = once(it, stream, frontier.version.0.saturating_sub(1));
                Ok((before.unwrap_or(frontier), state))
            },
            ..Wrong::new("a_state_rests_on_its_frontier", "names the frontier that the last event was folded on")
        },
        Wrong {
            state: |it, stream| {
                let (frontier, state) = it.log.state(stream)?;
                if frontier.version.0 > 0 {
                    return Ok((frontier, state));
                }
                let damage = Damage::NoStream { id: 0 };
                Err(LogError::Damaged(Box::new(Problem::new(Seq(0), Some(stream.clone()), damage))))
            },
            ..Wrong::new("an_unknown_state_is_empty", "takes a stream without events for one whose name is gone")
        },
        Wrong {
            state: |it, stream| {
                let mut state = Tally::empty(stream);
                for event in every(&it.log).iter().filter(|event| *event.stream == *stream) {
                    if state.admit(&event.event).is_ok() {
                        state.apply(&event.event).unwrap();
                    }
                }
                Ok((it.log.frontier(stream)?, state))
            },
            ..Wrong::new("the_fence_is_not_asked_again", "folds by the same function that appends")
        },
    ]
}

fn verify() -> Vec<Wrong> {
    vec![
        Wrong {
            verify: |it, anchor| {
                let mut found = it.log.verify(anchor, &mut |_| {})?;
                let agents: std::collections::BTreeSet<_> =
                    it.log.streams()?.iter().map(|held| held.stream.agent().clone()).collect();
                found.streams = agents.len() as u64;
                Ok(found)
            },
            ..Wrong::new("a_sound_log_is_counted", "counts agents for streams")
        },
        Wrong {
            verify: |it, anchor| {
                let mut found = it.log.verify(anchor, &mut |_| {})?;
                if let Some(anchor) = anchor.filter(|anchor| anchor.seq < found.anchor.seq && found.is_sound()) {
                    found.problems.push(Problem::new(anchor.seq, None, Damage::OtherHistory { anchor }));
                }
                Ok(found)
            },
            ..Wrong::new("an_anchor_of_the_past_holds", "compares an anchor with the end alone")
        },
        Wrong {
            verify: |it, anchor| {
                let mut found = it.log.verify(anchor, &mut |_| {})?;
                found.problems.retain(|problem| !matches!(problem.damage, Damage::CutOff { .. }));
                Ok(found)
            },
            ..Wrong::new("a_log_that_ends_early_is_cut_off", "compares an anchor where its event is met")
        },
        Wrong {
            verify: |it, anchor| {
                let mut found = it.log.verify(anchor, &mut |_| {})?;
                found.problems.retain(|problem| !matches!(problem.damage, Damage::OtherHistory { .. }));
                Ok(found)
            },
            ..Wrong::new("another_history_is_found", "compares an anchor's place, not its chain")
        },
    ]
}
