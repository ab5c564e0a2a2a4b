//! Wrong in what an append does, on what condition, and what it answers.

use throughline::event::{AgentEvent, Event, SegmentEnded};
use throughline::id::{Anchor, Digest, Seq, StreamName, Version};
use throughline::log::{Append, AppendError, Entry, Expectation, Fold as _, Log as _, Records as _};

use super::Wrong;
use super::helpers::{chain_at, count, epoch_of, events_in, every, expecting, once, refusal, unkeyed};

pub(super) fn all() -> Vec<Wrong> {
    [order(), answers(), expectations(), legality()].into_iter().flatten().collect()
}

fn order() -> Vec<Wrong> {
    vec![
        Wrong {
            append: |it, entries, append| {
                let reversed = |entry: &Entry| match entry.events.len() {
                    3.. => Entry { events: entry.events.iter().rev().cloned().collect(), ..entry.clone() },
                    _ => entry.clone(),
                };
                it.log.append(&entries.iter().map(reversed).collect::<Vec<_>>(), append)
            },
            ..Wrong::new("an_entry_keeps_its_order", "takes the events of a longer entry from a stack")
        },
        Wrong {
            append: |it, entries, append| {
                let mut sorted = entries.to_vec();
                sorted.sort_by(|one, other| one.stream.cmp(&other.stream));
                let mut appended = it.log.append(&sorted, append)?;
                let place = |stream: &StreamName| entries.iter().position(|entry| entry.stream == *stream);
                appended.frontiers.sort_by_key(|frontier| place(&frontier.stream));
                Ok(appended)
            },
            ..Wrong::new("a_request_keeps_its_order", "locks the streams by name and appends in that order")
        },
        Wrong {
            append: |it, entries, append| {
                if append.key.is_some() {
                    return it.log.append(entries, append);
                }
                let mut merged: Vec<Entry> = Vec::new();
                for entry in entries {
                    match merged.iter_mut().find(|met| met.stream == entry.stream) {
                        Some(met) => *met = entry.clone(),
                        None => merged.push(entry.clone()),
                    }
                }
                it.log.append(&merged, append)
            },
            ..Wrong::new("a_stream_named_twice_is_continued", "collects a request in a map: the last entry wins")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                if matches!(result, Err(AppendError::Illegal { .. })) {
                    it.shared.number.set(it.shared.number.get() + 1);
                }
                let mut appended = result?;
                let burnt = it.shared.number.get();
                appended.first.iter_mut().for_each(|first| first.0 += burnt);
                Ok(appended)
            },
            ..Wrong::new("a_refusal_uses_up_no_place", "takes the place from a counter before it asks the fold")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                if matches!(result, Err(AppendError::Illegal { .. })) {
                    it.shared.streams.borrow_mut().extend(entries.iter().map(|entry| entry.stream.clone()));
                }
                let mut appended = result?;
                for frontier in &mut appended.frontiers {
                    frontier.version.0 += u64::from(it.shared.streams.borrow().contains(&frontier.stream));
                }
                Ok(appended)
            },
            ..Wrong::new("a_refusal_uses_up_no_version", "counts a stream's version before it asks the fold")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                if matches!(result, Err(AppendError::Illegal { .. })) {
                    it.shared.streams.borrow_mut().extend(entries.iter().map(|entry| entry.stream.clone()));
                }
                result
            },
            streams: |it| {
                let mut streams = it.log.streams()?;
                for named in &*it.shared.streams.borrow() {
                    if count(it, named) == 0 {
                        streams.push(it.log.frontier(named)?);
                    }
                }
                streams.sort();
                Ok(streams)
            },
            ..Wrong::new("a_refusal_names_no_stream", "makes the stream in a transaction of its own")
        },
        Wrong {
            append: |it, entries, append| {
                let folded = |entry: &Entry| {
                    let stream = entry.stream.to_string().to_lowercase().parse().unwrap();
                    Entry { stream, ..entry.clone() }
                };
                it.log.append(&entries.iter().map(folded).collect::<Vec<_>>(), append)
            },
            ..Wrong::new("names_differ_by_case", "keeps names in a column that ignores case")
        },
    ]
}

fn answers() -> Vec<Wrong> {
    vec![
        Wrong {
            append: |it, entries, append| {
                let mut appended = it.log.append(entries, append)?;
                appended.first = appended.first.map(|_| appended.anchor.seq);
                Ok(appended)
            },
            ..Wrong::new("an_answer_names_its_first_place", "answers the place of the last insert")
        },
        Wrong {
            append: |it, entries, append| {
                let mut appended = it.log.append(entries, append)?;
                if let (Some(first), [one, _, ..], None) = (appended.first, entries, &append.key) {
                    let seq = first.0 + one.events.len().max(1) as u64 - 1;
                    appended.anchor = Anchor { seq: Seq(seq), chain: chain_at(it, seq) };
                }
                Ok(appended)
            },
            ..Wrong::new("an_answer_is_of_the_log_after_it", "reads the anchor after the first stream's events")
        },
        Wrong {
            append: |it, entries, append| {
                let before: Vec<_> = entries.iter().map(|entry| it.log.frontier(&entry.stream).unwrap()).collect();
                let mut appended = it.log.append(entries, append)?;
                for frontier in &mut appended.frontiers {
                    let held = before.iter().find(|held| held.stream == frontier.stream && held.version.0 > 0);
                    if let (Some(held), None) = (held, &append.key) {
                        *frontier = held.clone();
                    }
                }
                Ok(appended)
            },
            ..Wrong::new("an_answer_is_of_the_streams_after_it", "answers the frontier that it compared with")
        },
        Wrong {
            append: |it, entries, append| {
                let mut appended = it.log.append(entries, append)?;
                appended.frontiers.sort();
                Ok(appended)
            },
            ..Wrong::new("an_answer_names_streams_as_they_came", "collects the frontiers in a sorted map")
        },
        Wrong {
            append: |it, entries, append| {
                let mut appended = it.log.append(entries, append)?;
                if entries.is_empty() {
                    appended.first = Some(appended.anchor.seq.next());
                }
                Ok(appended)
            },
            ..Wrong::new("nothing_to_append_is_no_error", "answers the next place, whether it is taken or not")
        },
        Wrong {
            append: |it, entries, append| {
                let mut appended = it.log.append(entries, append)?;
                if !entries.is_empty() && events_in(entries) == 0 {
                    appended.first = Some(appended.anchor.seq.next());
                }
                Ok(appended)
            },
            ..Wrong::new("a_check_appends_nothing", "asks whether there are entries, not whether there are events")
        },
    ]
}

fn expectations() -> Vec<Wrong> {
    vec![
        Wrong {
            append: |it, entries, append| {
                let mine = it.own.borrow().last() == Some(&it.log.anchor().unwrap().seq.0);
                let entries = expecting(entries, |entry| match entry.expected {
                    Expectation::Version(Version(v)) if mine && v > 0 && v < count(it, &entry.stream) => {
                        Some(Expectation::Any)
                    }
                    _ => None,
                });
                it.log.append(&entries, append)
            },
            ..Wrong::new(
                "fewer_events_than_there_are_is_a_conflict",
                "forgives a version that its own append left behind",
            )
        },
        Wrong {
            append: |it, entries, append| {
                let entries = expecting(entries, |entry| match (&entry.expected, count(it, &entry.stream)) {
                    (Expectation::Version(Version(v)), there @ 1..) if *v == there + 1 => Some(Expectation::Any),
                    _ => None,
                });
                it.log.append(&entries, append)
            },
            ..Wrong::new("more_events_than_there_are_is_a_conflict", "compares with the version that comes next, too")
        },
        Wrong {
            append: |it, entries, append| {
                let entries = expecting(entries, |entry| match entry.expected {
                    Expectation::Version(Version(0)) => Some(Expectation::Any),
                    _ => None,
                });
                it.log.append(&entries, append)
            },
            ..Wrong::new("version_zero_is_a_new_stream", "takes 0 for a version that was not given")
        },
        Wrong {
            append: |it, entries, append| {
                let entries = expecting(entries, |entry| match entry.expected {
                    Expectation::Frontier { version, .. } => Some(Expectation::Version(version)),
                    _ => None,
                });
                it.log.append(&entries, append)
            },
            ..Wrong::new("another_history_is_a_conflict", "compares only versions, not chains")
        },
        Wrong {
            append: |it, entries, append| {
                let entries = expecting(entries, |entry| match entry.expected {
                    Expectation::Frontier { version, chain } => {
                        let held = once(it, &entry.stream, version.0).is_some_and(|held| held.chain == chain);
                        held.then_some(Expectation::Any)
                    }
                    _ => None,
                });
                it.log.append(&entries, append)
            },
            ..Wrong::new("a_history_that_went_on_is_a_conflict", "looks the chain up at the version that is expected")
        },
        Wrong {
            append: |it, entries, append| {
                let entries = expecting(entries, |entry| match entry.expected {
                    Expectation::Frontier { version, .. } => {
                        Some(Expectation::Frontier { version, chain: it.log.anchor().unwrap().chain })
                    }
                    _ => None,
                });
                let entries = if entries.iter().any(|e| matches!(e.expected, Expectation::Frontier { .. })) {
                    expecting(&entries, |_| Some(Expectation::Version(Version(u64::MAX))))
                } else {
                    entries
                };
                it.log.append(&entries, append)
            },
            ..Wrong::new("what_is_there_is_expected", "compares a frontier with the chain of the log")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                if let Err(AppendError::Conflict { stream, .. }) = &result {
                    let before = entries.iter().take_while(|entry| entry.stream != *stream).cloned();
                    let _ = it.log.append(&before.collect::<Vec<_>>(), &unkeyed(append));
                }
                result
            },
            ..Wrong::new("one_conflict_refuses_every_stream", "commits stream by stream")
        },
        Wrong {
            append: |it, entries, append| {
                let is_check = |entry: &Entry| entry.events.is_empty() && entry.expected != Expectation::Any;
                let kept: Vec<Entry> = match events_in(entries) {
                    0 => entries.to_vec(),
                    _ => entries.iter().filter(|entry| !is_check(entry)).cloned().collect(),
                };
                it.log.append(&kept, append)
            },
            ..Wrong::new("a_conflict_without_events_refuses_all", "skips entries without events before it compares")
        },
        Wrong {
            append: |it, entries, append| {
                let mut turned = entries.to_vec();
                for (at, entry) in entries.iter().enumerate() {
                    let same = entries[..at].iter().filter(|earlier| earlier.stream == entry.stream);
                    let added: usize = same.map(|earlier| earlier.events.len()).sum();
                    if let (Expectation::Version(Version(v)), 1..) = (&entry.expected, added) {
                        let holds = *v == count(it, &entry.stream) + added as u64;
                        let never = Expectation::Version(Version(u64::MAX));
                        turned[at].expected = if holds { Expectation::Any } else { never };
                    }
                }
                it.log.append(&turned, append)
            },
            ..Wrong::new("expectations_are_of_before_the_append", "compares each entry when its turn comes")
        },
        Wrong {
            append: |it, entries, append| {
                it.log.append(entries, append).map_err(|error| match error {
                    AppendError::Conflict { stream, expected, mut actual } => {
                        actual.chain = Digest::GENESIS;
                        AppendError::Conflict { stream, expected, actual }
                    }
                    other => other,
                })
            },
            ..Wrong::new("a_conflict_says_what_is_there", "does not look the chain up for a conflict")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                match (&result, refusal(it, entries, false)) {
                    (Err(AppendError::Conflict { .. }), Some(illegal)) => Err(illegal),
                    _ => result,
                }
            },
            ..Wrong::new("a_conflict_comes_before_the_law", "folds before it compares")
        },
    ]
}

fn legality() -> Vec<Wrong> {
    vec![
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                if let Err(AppendError::Illegal { stream, .. }) = &result {
                    let before = entries.iter().take_while(|entry| entry.stream != *stream).cloned();
                    let _ = it.log.append(&before.collect::<Vec<_>>(), &unkeyed(append));
                }
                result
            },
            ..Wrong::new("an_illegal_event_refuses_all", "rolls back to the entry, not to the request")
        },
        Wrong {
            append: |it, entries, append| {
                it.log.append(entries, append).map_err(|error| match error {
                    AppendError::Illegal { stream, index, kind, source } => {
                        let before = entries.iter().take_while(|entry| entry.stream != stream);
                        let index = index + before.map(|entry| entry.events.len()).sum::<usize>();
                        AppendError::Illegal { stream, index, kind, source }
                    }
                    other => other,
                })
            },
            ..Wrong::new("an_illegal_event_is_named", "counts the events of the request, not those of the entry")
        },
        Wrong {
            append: |it, entries, append| {
                let last = every(&it.log).pop().map(|event| (*event.stream).clone());
                let in_a_row = matches!(entries, [one] if Some(&one.stream) == last.as_ref() && one.events.len() == 1);
                it.log.append(entries, &Append { unfenced: append.unfenced || in_a_row, ..append.clone() })
            },
            ..Wrong::new("the_fence_is_asked", "admits a stream for as long as no other one is written")
        },
        Wrong {
            append: |it, entries, append| {
                let admitted = |entry: &Entry| {
                    let state = it.log.state(&entry.stream).unwrap().1;
                    entry.events.len() > 1 && entry.events.iter().all(|event| state.admit(event).is_ok())
                };
                let at_once = entries.iter().all(admitted);
                it.log.append(entries, &Append { unfenced: append.unfenced || at_once, ..append.clone() })
            },
            ..Wrong::new("the_fence_sees_the_event_before", "asks the fence about all events before it folds one")
        },
        Wrong {
            append: |it, entries, append| match (append.unfenced, entries) {
                (true, [_, rest @ ..]) if !rest.is_empty() => match refusal(it, rest, true) {
                    Some(error) => Err(error),
                    None => it.log.append(entries, append),
                },
                _ => it.log.append(entries, append),
            },
            ..Wrong::new("the_fence_can_be_left_out", "leaves the fence out for the first entry alone")
        },
        Wrong {
            append: |it, entries, append| {
                let own = |entry: &Entry| {
                    let events = entry.events.iter().filter(|event| event.family() == entry.stream.family());
                    Entry { events: events.cloned().collect(), ..entry.clone() }
                };
                it.log.append(&entries.iter().map(own).collect::<Vec<_>>(), append)
            },
            ..Wrong::new("a_family_keeps_to_itself", "leaves out what does not belong there")
        },
        Wrong {
            append: |it, entries, append| {
                let cut = |event: &Event| match event {
                    Event::Agent(AgentEvent::SegmentEnded(ended)) => {
                        let reason = ended.reason.chars().take(1_000).collect();
                        SegmentEnded { reason, ..ended.clone() }.into()
                    }
                    other => other.clone(),
                };
                let short = |entry: &Entry| Entry { events: entry.events.iter().map(cut).collect(), ..entry.clone() };
                it.log.append(&entries.iter().map(short).collect::<Vec<_>>(), append)
            },
            ..Wrong::new("an_event_has_a_longest_body", "cuts a text to the length of its column")
        },
        Wrong {
            append: |it, entries, append| {
                let epochs = || entries.iter().flat_map(|entry| &entry.events).filter_map(epoch_of);
                if let (Some(epoch), Some(entry)) = (epochs().max(), entries.first())
                    && epoch < it.shared.number.get()
                {
                    let (stream, kind, source) = (entry.stream.clone(), "segment_ended", "stale".into());
                    return Err(AppendError::Illegal { stream, index: 0, kind, source });
                }
                let result = it.log.append(entries, append);
                if let (Err(AppendError::Illegal { index: 1.., .. }), Some(epoch)) = (&result, epochs().max()) {
                    it.shared.number.set(epoch);
                }
                result
            },
            ..Wrong::new("a_refusal_leaves_no_state", "keeps the state that it folded before the refusal")
        },
    ]
}
