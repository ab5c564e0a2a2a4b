//! Wrong in what a request with an idempotency key does when it comes again.

use throughline::event::Event;
use throughline::id::{IdempotencyKey, Version};
use throughline::log::{Append, AppendError, Entry, Expectation, Log as _, Records as _};

use super::Wrong;
use super::helpers::{events_in, refusal, repeated, unconditional, unkeyed};

fn reused(append: &Append) -> AppendError {
    AppendError::KeyReused { key: append.key.clone().unwrap() }
}

/// The key under another name.
fn renamed(append: &Append, name: u64) -> Append {
    let key = append.key.as_ref().map(|key| IdempotencyKey::parse(format!("{name}-{key}")).unwrap());
    Append { key, ..append.clone() }
}

pub(super) fn all() -> Vec<Wrong> {
    vec![
        Wrong {
            append: |it, entries, append| {
                let (appended, again) = repeated(it, entries, append)?;
                if again {
                    let append = Append { unfenced: true, ..unkeyed(append) };
                    it.log.append(&unconditional(entries), &append)?;
                }
                Ok(appended)
            },
            ..Wrong::new("a_repeated_request_appends_nothing", "looks the key up for the answer, after the append")
        },
        Wrong {
            append: |it, entries, append| {
                let (mut appended, again) = repeated(it, entries, append)?;
                if again {
                    appended.first = None;
                }
                Ok(appended)
            },
            ..Wrong::new("a_repeated_request_names_its_place", "answers that nothing was appended this time")
        },
        Wrong {
            append: |it, entries, append| {
                let (mut appended, again) = repeated(it, entries, append)?;
                if again {
                    appended.anchor = it.log.anchor().unwrap();
                }
                Ok(appended)
            },
            ..Wrong::new("a_repeated_request_has_its_anchor", "answers a repeated key with the present anchor")
        },
        Wrong {
            append: |it, entries, append| {
                let (mut appended, again) = repeated(it, entries, append)?;
                if again {
                    appended.frontiers.iter_mut().for_each(|held| *held = it.log.frontier(&held.stream).unwrap());
                }
                Ok(appended)
            },
            ..Wrong::new("a_repeated_request_has_its_frontiers", "answers a repeated key with the present frontiers")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                let Err(AppendError::KeyReused { key }) = &result else { return result };
                let shape = |entries: &[Entry]| -> Vec<_> {
                    entries.iter().map(|entry| (entry.stream.clone(), entry.events.len())).collect()
                };
                match it.shared.requests.borrow().get(key) {
                    Some((first, _, answer)) if shape(first) == shape(entries) => Ok(answer.clone()),
                    _ => result,
                }
            },
            ..Wrong::new("a_key_stands_for_its_events", "compares the streams of two requests, not their events")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                let Err(AppendError::KeyReused { key }) = &result else { return result };
                let events = |entries: &[Entry]| -> Vec<Event> {
                    entries.iter().flat_map(|entry| entry.events.clone()).collect()
                };
                match it.shared.requests.borrow().get(key) {
                    Some((first, _, answer)) if events(first) == events(entries) => Ok(answer.clone()),
                    _ => result,
                }
            },
            ..Wrong::new("a_key_stands_for_its_streams", "compares the events of two requests, not their streams")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                if matches!(result, Err(AppendError::KeyReused { .. })) {
                    it.log.append(entries, &unkeyed(append))?;
                }
                result
            },
            ..Wrong::new("a_key_refused_writes_nothing", "finds the key taken after the events are committed")
        },
        Wrong {
            append: |it, entries, append| {
                let expected = |entries: &[Entry]| -> Vec<_> {
                    let with_events = entries.iter().filter(|entry| !entry.events.is_empty());
                    with_events.map(|entry| entry.expected.clone()).collect()
                };
                let first = append.key.as_ref().and_then(|key| it.shared.requests.borrow().get(key).cloned());
                match first {
                    Some((first, ..))
                        if expected(&first).contains(&Expectation::Version(Version(0)))
                            && expected(&first) != expected(entries) =>
                    {
                        Err(reused(append))
                    }
                    _ => it.log.append(entries, append),
                }
            },
            ..Wrong::new("a_key_forgets_expectations", "makes the whole request the digest of a key")
        },
        Wrong {
            append: |it, entries, append| {
                let checks = |entries: &[Entry]| entries.iter().filter(|entry| entry.events.is_empty()).count();
                let first = append.key.as_ref().and_then(|key| it.shared.requests.borrow().get(key).cloned());
                match first {
                    Some((first, ..)) if events_in(entries) > 0 && checks(&first) != checks(entries) => {
                        Err(reused(append))
                    }
                    _ => it.log.append(entries, append),
                }
            },
            ..Wrong::new("a_key_forgets_checks", "makes every entry a part of the digest of a key")
        },
        Wrong {
            append: |it, entries, append| {
                let groups = |entries: &[Entry]| -> Vec<usize> {
                    entries.iter().map(|entry| entry.events.len()).filter(|events| *events > 0).collect()
                };
                let first = append.key.as_ref().and_then(|key| it.shared.requests.borrow().get(key).cloned());
                match first {
                    Some((first, ..)) if groups(&first) != groups(entries) => Err(reused(append)),
                    _ => it.log.append(entries, append),
                }
            },
            ..Wrong::new("a_key_forgets_how_events_are_grouped", "makes the digest of a key entry by entry")
        },
        Wrong {
            append: |it, entries, append| {
                let first = append.key.as_ref().and_then(|key| it.shared.requests.borrow().get(key).cloned());
                match first {
                    Some((_, first, _)) if first.at_ms != append.at_ms => Err(reused(append)),
                    _ => it.log.append(entries, append),
                }
            },
            ..Wrong::new("a_key_forgets_the_time", "makes the time a part of the digest of a key")
        },
        Wrong {
            append: |it, entries, append| {
                let known = append.key.as_ref().is_some_and(|key| it.shared.requests.borrow().contains_key(key));
                if known && let [one, ..] = entries {
                    it.log.append(&[Entry { events: Vec::new(), ..one.clone() }], &unkeyed(append))?;
                }
                it.log.append(entries, append)
            },
            ..Wrong::new("a_key_comes_before_expectations", "compares before it looks the key up")
        },
        Wrong {
            append: |it, entries, append| {
                let known = append.key.as_ref().is_some_and(|key| it.shared.requests.borrow().contains_key(key));
                match refusal(it, entries, true) {
                    Some(error) if known => Err(error),
                    _ => it.log.append(entries, append),
                }
            },
            ..Wrong::new("a_key_comes_before_the_fence", "asks the fence before it looks the key up")
        },
        Wrong {
            append: |it, entries, append| match &append.key {
                Some(key) if !it.keys.borrow().contains(key) && it.shared.keys.borrow().contains(key) => {
                    it.log.append(entries, &unkeyed(append))
                }
                _ => it.log.append(entries, append),
            },
            ..Wrong::new("a_key_is_known_to_every_handle", "reads the keys when the log is opened")
        },
        Wrong {
            append: |it, entries, append| it.log.append(entries, &renamed(append, it.shared.opened.get())),
            ..Wrong::new("a_key_outlives_its_handle", "keeps the keys in the memory of those who have it open")
        },
        Wrong {
            append: |it, entries, append| match (events_in(entries), it.log.anchor().unwrap().seq.0) {
                (0, 1..) => it.log.append(entries, &unkeyed(append)),
                _ => it.log.append(entries, append),
            },
            ..Wrong::new("a_check_uses_its_key", "keeps a key with the events that it wrote, where there are any")
        },
        Wrong {
            append: |it, entries, append| {
                let refused = |key| it.keys.borrow().contains(key) && !it.shared.keys.borrow().contains(key);
                if append.key.as_ref().is_some_and(refused) {
                    return Err(reused(append));
                }
                let result = it.log.append(entries, append);
                if let (Err(AppendError::Illegal { .. }), Some(key)) = (&result, &append.key) {
                    it.keys.borrow_mut().insert(key.clone());
                }
                result
            },
            ..Wrong::new("a_refusal_uses_no_key", "keeps the key of a refused append")
        },
        Wrong {
            append: |it, entries, append| it.log.append(entries, &renamed(append, u64::from(it.shared.flag.get()))),
            import: |it, text, import, progress| {
                let imported = it.log.import(&mut text.as_bytes(), &import, progress)?;
                it.shared.flag.set(true);
                Ok(imported)
            },
            ..Wrong::new("a_key_outlives_an_import", "makes the log anew for an import, without its keys")
        },
    ]
}
