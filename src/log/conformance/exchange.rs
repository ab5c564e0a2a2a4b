//! Out as text and back: what an export says, and what an import of one takes and refuses.

use std::io::{BufReader, Cursor, Read, Write};

use super::breach::{Breach, Make, Rule, refused, rule, same};
use super::digests::{DIGESTS, KNOWN, known};
use super::say::{Desk, SOURCE, STORE, all, alone, blank, entry, export, lines, never, source, text};
use crate::id::Digest;
use crate::log::{
    Append, ExportError, Import, ImportError, Imported, LineError, Log as _, MemoryLog, Mode, Recorded, Records as _,
};

pub(super) const RULES: &[Rule] = &[
    rule!(an_export_is_what_the_format_says, "The export of a known log is a known text, byte by byte."),
    rule!(an_import_gives_back_its_text, "The export of a verified import is the text that was imported."),
    rule!(an_import_keeps_every_event, "A verified import keeps every event with its time, place and digests."),
    rule!(an_import_keeps_the_id, "After a verified import the log has the id of the exported one."),
    rule!(every_handle_learns_the_id, "Whoever had the empty log open knows the imported id from the next answer on."),
    rule!(an_import_answers_what_came, "An import answers how many events came, and the anchor after them."),
    rule!(an_import_as_new_keeps_its_id, "An import as a new log keeps that log's own id."),
    rule!(an_import_as_new_keeps_events, "An import as a new log keeps every event with its time."),
    rule!(only_an_empty_log_is_restored, "A log with events takes no verified import and none as a new log."),
    rule!(an_edited_line_is_refused, "A line whose content is not what its record says is refused."),
    rule!(an_edited_chain_is_refused, "A line whose chain does not continue the line before is refused."),
    rule!(a_missing_line_is_refused, "A text in which a line is missing is refused at the next one."),
    rule!(a_moved_line_is_refused, "A text whose lines were reordered is refused at the first of them."),
    rule!(a_repeated_line_is_refused, "A text in which a line stands twice is refused at the second one."),
    rule!(a_cut_text_is_refused, "A text that ends before its header says is refused."),
    rule!(a_foreign_first_line_is_refused, "A text whose header names another log than its events is refused at once."),
    rule!(a_refused_import_stores_nothing, "After a refused import the log is empty, and takes the right text."),
    rule!(a_refused_line_is_named, "A refused import names the line, blank ones counted, and the event."),
    rule!(blank_lines_are_no_lines, "Lines of blanks are skipped."),
    rule!(a_newer_format_is_named, "A text of a newer format is refused by its number."),
    rule!(a_later_part_is_refused, "A text that begins in the middle of a log is refused."),
    rule!(a_text_without_a_header_is_refused, "A verified import of lines without a header is refused."),
    rule!(a_text_that_cannot_be_read_is_refused, "An import whose text fails to be read stores nothing of it."),
    rule!(an_export_that_cannot_be_written_says_so, "An export whose text cannot be written is no success."),
    rule!(an_illegal_line_is_refused, "An event that the fold refuses is refused, though every digest fits."),
];

fn an_export_is_what_the_format_says(make: &Make<'_>) -> Result<(), Breach> {
    let desk = known(make)?;
    let zeros = "0".repeat(64);
    let [.., [_, last, _]] = DIGESTS;
    let header = format!(
        r#"{{"throughline":1,"store":"{KNOWN}","from_seq":1,"prev_chain":"{zeros}","events":5,"anchor":"5:{last}"}}"#
    );
    let of = |number: usize, rest: &str| {
        let [record, chain, _] = DIGESTS[number - 1];
        format!(r#"{{"seq":{number},{rest},"record":"{record}","chain":"{chain}"}}"#)
    };
    let expected = [
        header,
        of(1, r#""stream":"agent/a","version":1,"at_ms":1,"kind":"fresh_intended","schema":1,"body":{"pane":"p"}"#),
        of(
            2,
            r#""stream":"hook/a","version":1,"at_ms":2,"kind":"hook_announced","schema":1,"body":{"hook":"Stop","session":"s"}"#,
        ),
        of(
            3,
            r#""stream":"agent/a","version":2,"at_ms":1700000000000,"kind":"segment_ended","schema":1,"body":{"epoch":7,"reason":"exited","segment":"s"}"#,
        ),
        of(4, r#""stream":"agent/b","version":1,"at_ms":4,"kind":"fresh_intended","schema":1,"body":{"pane":"é\""}"#),
        of(
            5,
            r#""stream":"hook/a","version":2,"at_ms":5,"kind":"hook_announced","schema":1,"body":{"hook":"Stop","session":"t"}"#,
        ),
    ];
    let found: Vec<String> = export(desk.records())?.lines().map(str::to_owned).collect();
    same("the text", &found, &expected.to_vec())
}

/// A log that took the source's export.
fn restored(make: &Make<'_>) -> Result<(Desk, Imported), Breach> {
    let desk = Desk::new(make)?;
    let imported = desk.import(&export(&source()?)?, Mode::Verified)?;
    Ok((desk, imported))
}

fn an_import_gives_back_its_text(make: &Make<'_>) -> Result<(), Breach> {
    same("the text", &export(restored(make)?.0.records())?, &export(&source()?)?)
}

fn an_import_keeps_every_event(make: &Make<'_>) -> Result<(), Breach> {
    same("the events", &all(restored(make)?.0.records())?, &all(&source()?)?)
}

fn an_import_keeps_the_id(make: &Make<'_>) -> Result<(), Breach> {
    same("the id", &restored(make)?.0.records().store(), &SOURCE)
}

fn every_handle_learns_the_id(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let (writer, reader) = (desk.bench.writer()?, desk.bench.reader()?);
    same("the id", &reader.store(), &STORE)?;
    desk.import(&export(&source()?)?, Mode::Verified)?;
    for (whose, records) in [("another writer", writer.records()), ("a reader", &*reader)] {
        records.anchor()?;
        same(&format!("the id that {whose} knows"), &records.store(), &SOURCE)?;
    }
    Ok(())
}

fn an_import_answers_what_came(make: &Make<'_>) -> Result<(), Breach> {
    let imported = restored(make)?.1;
    same("the answer", &imported, &Imported { events: 4, anchor: source()?.anchor()? })
}

fn an_import_as_new_keeps_its_id(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.import(&export(&source()?)?, Mode::AsNew)?;
    same("the id", &desk.records().store(), &STORE)?;
    // The same events, appended there.
    let own = MemoryLog::new(STORE);
    for event in all(&source()?)? {
        own.append(&[entry(&event.stream.to_string(), vec![event.event])], &Append::at(event.at_ms))?;
    }
    let records = |records| Ok::<_, Breach>(all(records)?.iter().map(|event| event.record).collect::<Vec<_>>());
    same("the records", &records(desk.records())?, &records(&own)?)
}

fn an_import_as_new_keeps_events(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.import(&export(&source()?)?, Mode::AsNew)?;
    let events = |records| {
        let events = all(records)?.into_iter().map(|event| (event.stream, event.version, event.at_ms, event.event));
        Ok::<_, Breach>(events.collect::<Vec<_>>())
    };
    same("the events", &events(desk.records())?, &events(&source()?)?)
}

fn only_an_empty_log_is_restored(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/z", vec![blank()])?;
    for mode in [Mode::Verified, Mode::AsNew] {
        let result = desk.import(&export(&source()?)?, mode);
        refused!("an import into a log with an event", result, ImportError::NotEmpty { events: 1 })?;
    }
    Ok(())
}

/// What comes of the source's lines after an edit, in both ways that check.
fn edited(
    make: &Make<'_>,
    edit: impl Fn(&mut Vec<String>),
    is: impl Fn(Result<Imported, ImportError>) -> Result<(), Breach>,
) -> Result<(), Breach> {
    let mut lines = lines()?;
    edit(&mut lines);
    for mode in [Mode::Verified, Mode::AsNew] {
        is(Desk::new(make)?.import(&text(&lines), mode))?;
    }
    Ok(())
}

fn an_edited_line_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    for (from, to) in [("\"at_ms\":13", "\"at_ms\":31"), ("exited", "killed"), ("agent/a", "agent/c")] {
        edited(
            make,
            |lines| lines[3] = lines[3].replace(from, to),
            |result| refused!("an edited line", result, ImportError::Line { source: LineError::Record, .. }),
        )?;
    }
    Ok(())
}

fn an_edited_chain_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| {
            // The last digit of the chain.
            let at = lines[3].len() - 3;
            let digit = if lines[3].as_bytes()[at] == b'0' { "1" } else { "0" };
            lines[3].replace_range(at..=at, digit);
        },
        |result| refused!("an edited chain", result, ImportError::Line { source: LineError::Chain, .. }),
    )
}

fn a_missing_line_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| drop(lines.remove(2)),
        |result| {
            refused!(
                "a text without its second event",
                result,
                ImportError::Line { source: LineError::Seq { expected: 2, found: 3 }, .. }
            )
        },
    )
}

fn a_moved_line_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| lines.swap(2, 3),
        |result| {
            refused!(
                "a text whose second and third event were swapped",
                result,
                ImportError::Line { source: LineError::Seq { expected: 2, found: 3 }, .. }
            )
        },
    )
}

fn a_repeated_line_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| lines.insert(3, lines[2].clone()),
        |result| {
            refused!(
                "a text that has its second event twice",
                result,
                ImportError::Line { source: LineError::Seq { expected: 3, found: 2 }, .. }
            )
        },
    )
}

fn a_cut_text_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| lines.truncate(4),
        |result| refused!("a text without its last event", result, ImportError::CutOff { .. }),
    )
}

fn a_foreign_first_line_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| lines[0] = lines[0].replace(&SOURCE.to_string(), &STORE.to_string()),
        |result| refused!("another log's events", result, ImportError::Line { source: LineError::Record, .. }),
    )
}

fn a_refused_import_stores_nothing(make: &Make<'_>) -> Result<(), Breach> {
    let (right, mut wrong) = (lines()?, lines()?);
    wrong[3] = "[]".into();
    for mode in [Mode::Verified, Mode::AsNew] {
        let desk = Desk::new(make)?;
        if let Ok(imported) = desk.import(&text(&wrong), mode) {
            return Err(Breach::new("a line that is no event", "a refusal", &imported));
        }
        same("how many events there are", &all(desk.records())?.len(), &0)?;
        same("the id", &desk.records().store(), &STORE)?;
        desk.import(&text(&right), mode)?;
    }
    Ok(())
}

fn a_refused_line_is_named(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| {
            lines[3] = "[]".into();
            lines.insert(1, String::new());
        },
        |result| match result {
            Err(ImportError::Line { line, seq, .. }) => same("line and event", &(line, seq.0), &(5, 3)),
            found => Err(Breach::new("an edited line", "a refusal of a line", &found)),
        },
    )
}

fn blank_lines_are_no_lines(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| {
            lines.insert(0, " \t".into());
            lines.insert(3, "  \r".into());
            lines.push(" ".into());
        },
        |result| Ok(result.map(drop)?),
    )
}

fn a_newer_format_is_named(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| lines[0] = lines[0].replace("\"throughline\":1", "\"throughline\":2,\"more\":[]"),
        |result| refused!("a text of format 2", result, ImportError::Newer { found: 2 }),
    )
}

fn a_later_part_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| {
            lines[0] = lines[0].replace("\"from_seq\":1", "\"from_seq\":2");
            lines.remove(1);
        },
        |result| refused!("a text from the second event on", result, ImportError::NotFromStart { from_seq: 2 }),
    )
}

fn a_text_without_a_header_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    edited(
        make,
        |lines| drop(lines.remove(0)),
        |result| refused!("a text without a header", result, ImportError::NoHeader { .. }),
    )
}

/// A text whose device fails at its end.
struct Failing(Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(std::io::Error::other("the device failed")),
            bytes => Ok(bytes),
        }
    }
}

fn a_text_that_cannot_be_read_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let mut from = BufReader::new(Failing(Cursor::new(text(&lines()?).into_bytes())));
    let result = desk.log.import(&mut from, &Import { mode: Mode::Unverified, at_ms: 1 }, &mut |_| {});
    refused!("a text whose device failed", result, ImportError::Read { line: 6, .. })?;
    same("how many events there are", &all(desk.records())?.len(), &0)
}

/// A device with room for so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn an_export_that_cannot_be_written_says_so(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    for room in [0, 300] {
        let result = desk.records().export(&mut Full(room), &mut |_| {});
        refused!("an export to a full device", result, ExportError::Write(_))?;
    }
    desk.put("agent/a", vec![blank()])?;
    Ok(())
}

fn an_illegal_line_is_refused(make: &Make<'_>) -> Result<(), Breach> {
    let event = alone("agent/a", never())?;
    let zeros = Digest::GENESIS;
    let Recorded { seq, stream, version, at_ms, kind, schema, record, chain, .. } = &event;
    let body = String::from_utf8_lossy(&event.body);
    let text = format!(
        r#"{{"throughline":1,"store":"{SOURCE}","from_seq":1,"prev_chain":"{zeros}"}}
{{"seq":{seq},"stream":"{stream}","version":{version},"at_ms":{at_ms},"kind":"{kind}","schema":{schema},"body":{body},"record":"{record}","chain":"{chain}"}}
"#
    );
    for mode in [Mode::Verified, Mode::AsNew] {
        let result = Desk::new(make)?.import(&text, mode);
        refused!("an illegal event", result, ImportError::Line { source: LineError::Illegal(_), .. })?;
    }
    Ok(())
}
