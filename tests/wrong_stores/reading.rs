//! Wrong in what a read hands out, and in what one handle knows of another.

use std::ops::ControlFlow;

use throughline::id::{Anchor, Digest, Seq};
use throughline::log::conformance::Tally;
use throughline::log::{
    Append, AppendError, Cursor, Entry, Expectation, Fold as _, Import, Log as _, LogError, MemoryLog, Mode, Recorded,
    Records as _,
};

use super::Wrong;
use super::helpers::{chain_at, every, expecting};

pub(super) fn all() -> Vec<Wrong> {
    [handles(), cursors()].into_iter().flatten().collect()
}

fn handles() -> Vec<Wrong> {
    vec![
        Wrong {
            read: |it, cursor, each| {
                if it.is_reader && it.opened == Seq(0) { Ok(()) } else { it.plain_read(cursor, each) }
            },
            ..Wrong::new("a_reader_sees_what_was_committed", "remembers that a log was empty when it was opened")
        },
        Wrong {
            anchor: |it| match it.is_reader {
                true => Ok(Anchor { seq: it.opened, chain: chain_at(it, it.opened.0) }),
                false => it.log.anchor(),
            },
            ..Wrong::new("an_anchor_is_of_now", "looks the end up when a reader is opened")
        },
        Wrong {
            append: |it, entries, append| {
                let result = it.log.append(entries, append);
                if let Err(AppendError::Illegal { index, .. }) = &result {
                    it.shared.number.set(*index as u64);
                }
                result
            },
            read: |it, cursor, each| {
                it.plain_read(cursor, each)?;
                if let (true, 1.., Some(mut last)) = (it.is_reader, it.shared.number.get(), every(&it.log).pop()) {
                    last.seq = last.seq.next();
                    let _ = each(last);
                }
                Ok(())
            },
            ..Wrong::new("a_reader_sees_no_refused_append", "lets readers see what is not committed")
        },
        Wrong {
            import: |it, text, import, progress| {
                if import.mode != Mode::Unverified {
                    return it.log.import(&mut text.as_bytes(), &import, progress);
                }
                // All of it has to be right first.
                let (trial, mut copy) = (MemoryLog::<Tally>::new(it.log.store()), Vec::new());
                it.log.export(&mut copy, &mut |_| {}).unwrap();
                trial.import(&mut &copy[..], &Import::default(), &mut |_| {}).unwrap();
                let imported = trial.import(&mut text.as_bytes(), &import, &mut |_| {})?;
                for (number, line) in text.lines().enumerate() {
                    progress(number as u64 + 1);
                    it.log.import(&mut line.as_bytes(), &import, &mut |_| {})?;
                }
                Ok(imported)
            },
            ..Wrong::new("a_reader_sees_no_half_import", "checks a text, then commits it line by line")
        },
        Wrong {
            append: |it, entries, append| {
                let admitted = |entry: &Entry| {
                    let Some((_, mut state)) = it.left.borrow().get(&entry.stream).cloned() else { return false };
                    entry.events.iter().all(|event| state.admit(event).is_ok() && state.apply(event).is_ok())
                };
                let unfenced = append.unfenced || entries.iter().all(admitted);
                it.log.append(entries, &Append { unfenced, ..append.clone() })
            },
            ..Wrong::new("a_writer_folds_what_others_wrote", "asks the fence of the state that its own append left")
        },
        Wrong {
            append: |it, entries, append| {
                let entries =
                    expecting(entries, |entry| match (&entry.expected, it.left.borrow().get(&entry.stream)) {
                        (Expectation::Version(expected), Some((left, _))) if expected == left => Some(Expectation::Any),
                        _ => None,
                    });
                it.log.append(&entries, append)
            },
            ..Wrong::new("a_writer_expects_what_others_wrote", "compares with the version that its own append left")
        },
        Wrong {
            read: |it, cursor, each| {
                let mut page = Vec::new();
                let start = cursor.next();
                it.plain_read(cursor, &mut |event| {
                    page.push(event);
                    ControlFlow::Continue(())
                })?;
                for event in page {
                    debug_assert!(event.seq >= start);
                    cursor.pass(event.seq, event.chain);
                    if each(event).is_break() {
                        break;
                    }
                }
                Ok(())
            },
            ..Wrong::new(
                "an_append_inside_a_read_is_refused",
                "reads into memory and lets go of the log before it hands out",
            )
        },
        Wrong {
            import: |it, text, import, progress| {
                for number in 1..=text.lines().count() {
                    progress(number as u64);
                }
                it.log.import(&mut text.as_bytes(), &import, &mut |_| {})
            },
            ..Wrong::new("an_append_inside_an_import_is_refused", "reads the text before it locks the log")
        },
        Wrong {
            read: |it, cursor, each| {
                it.reading.set(true);
                let result = loop {
                    let mut next = None;
                    let read = it.plain_read(cursor, &mut |event| {
                        next = Some(event);
                        ControlFlow::Break(())
                    });
                    match (read, next) {
                        (Ok(()), Some(event)) if each(event.clone()).is_continue() => {}
                        (read, _) => break read,
                    }
                };
                it.reading.set(false);
                result
            },
            ..Wrong::new("a_read_is_of_one_moment", "reads event by event, each in a transaction of its own")
        },
        Wrong {
            read: |it, cursor, each| {
                let outer = it.reading.replace(true);
                let result = it.plain_read(cursor, each);
                it.reading.set(outer);
                result
            },
            frontier: |it, stream| match it.reading.get() {
                true => Err(LogError::Busy("a read goes on".into())),
                false => it.log.frontier(stream),
            },
            ..Wrong::new("a_read_inside_a_read_is_answered", "has one statement for all reads")
        },
    ]
}

fn cursors() -> Vec<Wrong> {
    vec![
        Wrong {
            events: |it, from, each| {
                let from = if from > Seq(1) { from.next() } else { from };
                it.plain_read(&mut Cursor::at(from), each)
            },
            ..Wrong::new("a_read_begins_at_its_place", "begins after the place that is named")
        },
        Wrong {
            read: |it, cursor, each| {
                let head = it.log.anchor()?.seq;
                match cursor.next().0 > head.0 + 3 {
                    true => it.plain_read(&mut Cursor::at(head), each),
                    false => it.plain_read(cursor, each),
                }
            },
            ..Wrong::new("a_read_from_beyond_the_end_is_empty", "begins at the last event where there is none so far")
        },
        Wrong {
            read: |it, cursor, each| {
                let mut first = true;
                it.plain_read(cursor, &mut |event| {
                    let flow = each(event);
                    if std::mem::take(&mut first) { ControlFlow::Continue(()) } else { flow }
                })
            },
            ..Wrong::new("a_break_ends_a_read", "looks whether to go on from the second event on")
        },
        Wrong {
            events_of: |it, stream, from, each| {
                it.log.events_of(stream, from, &mut |event| {
                    let _ = each(event);
                    ControlFlow::Continue(())
                })
            },
            ..Wrong::new("a_break_ends_a_read_of_one_stream", "hands out a stream to its end")
        },
        Wrong {
            events_of: |it, stream, from, each| {
                let from = if from.0 > 1 { from.next() } else { from };
                it.log.events_of(stream, from, each)
            },
            ..Wrong::new("one_stream_begins_at_its_version", "begins after the version that is named")
        },
        Wrong {
            events_of: |it, stream, from, each| {
                let is_of = |event: &Recorded| event.stream.to_string().starts_with(&stream.to_string());
                let events = every(&it.log).into_iter().filter(|event| is_of(event) && event.version >= from);
                let _ = events.collect::<Vec<_>>().into_iter().try_for_each(each);
                Ok(())
            },
            ..Wrong::new("one_stream_is_no_other", "finds a stream by how its name begins")
        },
        Wrong {
            read: |it, cursor, each| {
                let mut stopped = None;
                it.plain_read(cursor, &mut |event| {
                    let seq = event.seq;
                    let flow = each(event);
                    stopped = flow.is_break().then_some(seq);
                    flow
                })?;
                if let (Some(Seq(seq)), false) = (stopped, it.is_reader) {
                    cursor.pass(Seq(seq - 1), chain_at(it, seq - 1));
                }
                Ok(())
            },
            ..Wrong::new("a_cursor_goes_on_where_it_stopped", "moves a writer's cursor only when it goes on")
        },
        Wrong {
            read: |it, cursor, each| {
                let skip = cursor.next() > Seq(1) && it.shared.flag.take();
                let (mut handed, mut stopped) = (0, false);
                it.plain_read(cursor, &mut |event| {
                    handed += 1;
                    if skip && handed == 1 {
                        return ControlFlow::Continue(());
                    }
                    let flow = each(event);
                    stopped = flow.is_break();
                    flow
                })?;
                it.shared.flag.set(handed > 0 && !stopped);
                Ok(())
            },
            events: |it, from, each| it.plain_read(&mut Cursor::at(from), each),
            ..Wrong::new("a_cursor_reaches_later_events", "moves a cursor past the end by one")
        },
        Wrong {
            read: |it, cursor, each| {
                let mut handed = 0;
                it.plain_read(cursor, &mut |event| {
                    handed += 1;
                    each(event)
                })?;
                if handed == 0 {
                    cursor.pass(Seq(0), Digest::GENESIS);
                }
                Ok(())
            },
            ..Wrong::new("a_follower_waits_at_the_end", "begins anew where there is nothing to go on from")
        },
        Wrong {
            read: |it, cursor, each| {
                let mut other = Cursor::at(cursor.next());
                it.plain_read(&mut other, &mut |event| {
                    cursor.pass(event.seq, event.chain);
                    each(event)
                })
            },
            ..Wrong::new("a_cursor_is_of_its_log", "takes a cursor for a number")
        },
    ]
}
