//! Wrong in what goes out as text and comes back.

use throughline::event::{AgentEvent, DecodeError, Event, SegmentEnded};
use throughline::id::Epoch;
use throughline::log::conformance::Tally;
use throughline::log::{
    Fold as _, Import, ImportError, Imported, LineError, Log as _, MemoryLog, Mode, Recorded, Records as _,
};

use super::helpers::every;
use super::{Handle, Wrong};

pub(super) fn all() -> Vec<Wrong> {
    [restored(), refused(), written()].into_iter().flatten().collect()
}

fn take(it: &Handle, text: &str, import: Import) -> Result<Imported, ImportError> {
    it.log.import(&mut text.as_bytes(), &import, &mut |_| {})
}

/// As hand-written lines: without a digest being looked at.
fn unverified(it: &Handle, text: &str, import: Import) -> Result<Imported, ImportError> {
    take(it, text, Import { mode: Mode::Unverified, ..import })
}

fn is_verified(import: Import) -> bool {
    import.mode != Mode::Unverified
}

/// The lines before one, or all but one.
fn without(text: &str, line: u64, rest: bool) -> String {
    let kept = |number: u64| number < line || (rest && number > line);
    (1_u64..).zip(text.lines()).filter(|(number, _)| kept(*number)).map(|(_, line)| format!("{line}\n")).collect()
}

fn place_of(line: &str) -> Option<u64> {
    serde_json::from_str::<serde_json::Value>(line).ok()?.get("seq")?.as_u64()
}

fn is_ascending(text: &str) -> bool {
    let places: Vec<u64> = text.lines().filter_map(place_of).collect();
    places.is_sorted()
}

fn restored() -> Vec<Wrong> {
    vec![
        Wrong {
            text: |_, text| text.replace('é', "\\u00e9"),
            ..Wrong::new("an_export_is_what_the_format_says", "exports in ASCII")
        },
        Wrong {
            text: |it, text| text.replacen(&it.log.store().to_string(), &it.shared.made.unwrap().to_string(), 1),
            ..Wrong::new("an_import_gives_back_its_text", "exports under the id that the log was made with")
        },
        Wrong {
            import: |it, text, import, _| {
                let imported = take(it, text, import)?;
                if import.mode == Mode::Verified {
                    it.shared.number.set(imported.events);
                }
                Ok(imported)
            },
            recorded: |it, event| {
                if event.seq.0 <= it.shared.number.get() {
                    event.at_ms = 7;
                }
            },
            ..Wrong::new("an_import_keeps_every_event", "gives restored events the time of the import")
        },
        Wrong {
            store: |it| if it.imported.get() { it.shared.made.unwrap() } else { it.log.store() },
            ..Wrong::new("an_import_keeps_the_id", "does not look its own id up again after an import")
        },
        Wrong {
            store: |it| if it.imported.get() { it.log.store() } else { it.shared.made.unwrap() },
            ..Wrong::new("every_handle_learns_the_id", "looks the id up when the log is opened, and at its own import")
        },
        Wrong {
            import: |it, text, import, _| {
                let mut imported = take(it, text, import)?;
                imported.events += u64::from(import.mode == Mode::Verified);
                Ok(imported)
            },
            ..Wrong::new("an_import_answers_what_came", "counts the header as an event")
        },
        Wrong {
            import: |it, text, import, _| match import.mode {
                Mode::AsNew => take(it, text, Import { mode: Mode::Verified, ..import }),
                Mode::Verified | Mode::Unverified => take(it, text, import),
            },
            ..Wrong::new("an_import_as_new_keeps_its_id", "takes the id of every export")
        },
        Wrong {
            import: |it, text, import, _| {
                let imported = take(it, text, import)?;
                if import.mode == Mode::AsNew {
                    it.shared.number.set(imported.events);
                }
                Ok(imported)
            },
            recorded: |it, event| {
                if event.seq.0 <= it.shared.number.get() {
                    event.at_ms = 7;
                }
            },
            ..Wrong::new("an_import_as_new_keeps_events", "gives copied events the time of the import")
        },
    ]
}

fn refused() -> Vec<Wrong> {
    vec![
        Wrong {
            reads_on: true,
            ..Wrong::new("a_text_that_cannot_be_read_is_refused", "takes a read that fails for the end of the text")
        },
        Wrong {
            writes_on: true,
            ..Wrong::new("an_export_that_cannot_be_written_says_so", "does not ask what became of a write")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::NotEmpty { .. }) => unverified(it, text, import),
                result => result,
            },
            ..Wrong::new("only_an_empty_log_is_restored", "appends an export to what is there")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::Line { source: LineError::Record, seq, .. }) if seq.0 > 1 => {
                    unverified(it, text, import)
                }
                result => result,
            },
            ..Wrong::new("an_edited_line_is_refused", "looks at the record of the first event alone")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::Line { source: LineError::Chain, .. }) => unverified(it, text, import),
                result => result,
            },
            ..Wrong::new("an_edited_chain_is_refused", "does not look at the chain, for it has every record")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::Line { source: LineError::Seq { expected, found }, .. })
                    if found > expected && is_ascending(text) =>
                {
                    unverified(it, text, import)
                }
                result => result,
            },
            ..Wrong::new("a_missing_line_is_refused", "asks of a place that it is higher than the one before")
        },
        Wrong {
            import: |it, text, import, _| {
                if is_ascending(text) || !is_verified(import) {
                    return take(it, text, import);
                }
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort_by_key(|line| place_of(line));
                take(it, &lines.join("\n"), import)
            },
            ..Wrong::new("a_moved_line_is_refused", "sorts the lines by their places")
        },
        Wrong {
            import: |it, text, import, _| {
                let mut lines: Vec<&str> = text.lines().collect();
                if is_verified(import) {
                    lines.dedup_by(|one, other| one == other && place_of(one).is_some());
                }
                take(it, &lines.join("\n"), import)
            },
            ..Wrong::new("a_repeated_line_is_refused", "skips a line that it has just read")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::CutOff { .. }) => unverified(it, text, import),
                result => result,
            },
            ..Wrong::new("a_cut_text_is_refused", "does not read what the header says of the end")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::Line { source: LineError::Record, seq, .. }) if seq.0 == 1 => {
                    unverified(it, text, import)
                }
                result => result,
            },
            ..Wrong::new("a_foreign_first_line_is_refused", "looks at records from the second event on")
        },
        Wrong {
            import: |it, text, import, _| {
                let result = take(it, text, import);
                if let (Err(ImportError::Line { line, .. }), true) = (&result, is_verified(import)) {
                    unverified(it, &without(text, *line, false), import)?;
                }
                result
            },
            ..Wrong::new("a_refused_import_stores_nothing", "commits the lines of an export as it reads them")
        },
        Wrong {
            import: |it, text, import, _| {
                take(it, text, import).map_err(|error| match error {
                    ImportError::Line { line, seq, source } => {
                        let read = text.lines().take(usize::try_from(line).unwrap());
                        let line = read.filter(|line| !line.trim().is_empty()).count() as u64;
                        ImportError::Line { line, seq, source }
                    }
                    other => other,
                })
            },
            ..Wrong::new("a_refused_line_is_named", "does not count blank lines")
        },
        Wrong {
            import: |it, text, import, _| {
                let blank = text.lines().position(|line| !line.is_empty() && line.trim().is_empty());
                match blank {
                    Some(_) => {
                        let source = serde_json::from_str::<serde_json::Value>(" ").unwrap_err();
                        Err(ImportError::NoHeader { line: 1, source: Some(source) })
                    }
                    None => take(it, text, import),
                }
            },
            ..Wrong::new("blank_lines_are_no_lines", "skips empty lines, not those of blanks")
        },
        Wrong {
            import: |it, text, import, _| {
                take(it, &text.replacen(r#""throughline":2,"more":[]"#, r#""throughline":1"#, 1), import)
            },
            ..Wrong::new("a_newer_format_is_named", "reads what it knows of a header, whatever its number")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::NotFromStart { .. }) => unverified(it, text, import),
                result => result,
            },
            ..Wrong::new("a_later_part_is_refused", "counts from wherever a text begins")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::NoHeader { .. }) => unverified(it, text, import),
                result => result,
            },
            ..Wrong::new("a_text_without_a_header_is_refused", "takes lines without a header for hand-written ones")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::Line { line, source: LineError::Illegal(_), .. }) if is_verified(import) => {
                    unverified(it, &without(text, line, true), import)
                }
                result => result,
            },
            ..Wrong::new("an_illegal_line_is_refused", "leaves out what the fold does not take")
        },
    ]
}

/// Imports hand-written lines, and keeps the texts of those that are not to be read as they are.
fn keeping(it: &Handle, text: &str, import: Import, is_kept: impl Fn(&str) -> bool) -> Result<Imported, ImportError> {
    let imported = take(it, text, import)?;
    if !is_verified(import) {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = imported.anchor.seq.0 - imported.events + 1;
        let kept = (first..).zip(lines).filter(|(_, line)| is_kept(line));
        it.shared.texts.borrow_mut().extend(kept.map(|(seq, line)| (seq, line.to_owned())));
    }
    Ok(imported)
}

fn kept_of(it: &Handle, event: &Recorded) -> Option<String> {
    it.shared.texts.borrow().get(&event.seq.0).cloned()
}

fn written() -> Vec<Wrong> {
    vec![
        Wrong {
            import: |it, text, import, _| match it.log.anchor().unwrap().seq.0 {
                events @ 1.. => Err(ImportError::NotEmpty { events }),
                0 => take(it, text, import),
            },
            ..Wrong::new("hand_written_lines_go_on", "imports into an empty log alone")
        },
        Wrong {
            import: |it, text, import, _| keeping(it, text, import, |line| !line.contains("epoch")),
            recorded: |it, event| {
                if let (Some(_), Event::Agent(AgentEvent::SegmentEnded(ended))) = (kept_of(it, event), &event.event) {
                    event.event = SegmentEnded { epoch: Epoch(0), ..ended.clone() }.into();
                }
            },
            ..Wrong::new("the_fold_completes_a_line", "takes a default for what a line leaves out")
        },
        Wrong {
            import: |it, text, import, _| {
                if is_verified(import) {
                    return take(it, text, import);
                }
                let trial = MemoryLog::<Tally>::new(it.log.store());
                trial.import(&mut text.as_bytes(), &import, &mut |_| {})?;
                let mut states = std::collections::BTreeMap::new();
                for event in every(&trial) {
                    let state: &mut Tally = states.entry(event.stream.clone()).or_default();
                    if let Err(source) = state.admit(&event.event) {
                        let source = LineError::Illegal(Box::new(source));
                        return Err(ImportError::Line { line: event.seq.0, seq: event.seq, source });
                    }
                    state.apply(&event.event).unwrap();
                }
                take(it, text, import)
            },
            ..Wrong::new("a_hand_written_line_knows_no_fence", "appends hand-written lines as a driver would")
        },
        Wrong {
            import: |it, text, import, _| keeping(it, text, import, |_| true),
            recorded: |it, event| {
                if let Some((_, body)) = kept_of(it, event).as_deref().and_then(|line| line.split_once("\"body\":")) {
                    event.body = body.trim_end_matches('}').as_bytes().to_vec();
                    event.body.push(b'}');
                }
            },
            ..Wrong::new("a_hand_written_body_becomes_canonical", "stores a body as it was written")
        },
        Wrong {
            import: |it, text, import, _| keeping(it, text, import, |line| !line.contains("at_ms")),
            recorded: |it, event| {
                if kept_of(it, event).is_some() {
                    event.at_ms = 0;
                }
            },
            ..Wrong::new("a_line_without_a_time_gets_one", "takes 0 for a time that a line leaves out")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::Line {
                    line,
                    source: LineError::Undecodable(DecodeError::UnknownKind { .. }),
                    ..
                }) => take(it, &without(text, line, true), import),
                result => result,
            },
            ..Wrong::new("an_unknown_kind_is_a_stop", "skips kinds that it does not know")
        },
        Wrong {
            import: |it, text, import, _| take(it, &text.replace("\"schema\":9", "\"schema\":1"), import),
            ..Wrong::new("a_newer_schema_is_a_stop", "reads the fields that it knows, whatever the schema")
        },
        Wrong {
            import: |it, text, import, _| {
                let plain = |line: &str| {
                    serde_json::from_str::<serde_json::Value>(line).map_or(line.to_owned(), |value| value.to_string())
                };
                match import.mode {
                    Mode::Unverified => take(it, &text.lines().map(plain).collect::<Vec<_>>().join("\n"), import),
                    Mode::Verified | Mode::AsNew => take(it, text, import),
                }
            },
            ..Wrong::new("a_key_twice_is_refused", "parses with a parser for which the last key wins")
        },
        Wrong {
            import: |it, text, import, _| match (text.rsplit_once('\n'), is_verified(import)) {
                (Some((whole, torn)), false) if !torn.is_empty() => take(it, whole, import),
                _ => take(it, text, import),
            },
            ..Wrong::new("a_torn_line_is_refused", "drops a last line without an end")
        },
        Wrong {
            import: |it, text, import, _| match take(it, text, import) {
                Err(ImportError::Line { line, source: LineError::Illegal(_), .. }) if !is_verified(import) => {
                    take(it, &without(text, line, true), import)
                }
                result => result,
            },
            ..Wrong::new("an_illegal_hand_written_line_is_refused", "skips a line that the fold does not take")
        },
        Wrong {
            import: |it, text, import, _| {
                let result = take(it, text, import);
                if let (Err(ImportError::Line { line, .. }), false) = (&result, is_verified(import)) {
                    let _ = take(it, &without(text, *line, false), import);
                }
                result
            },
            ..Wrong::new("one_bad_line_keeps_all_out", "commits hand-written lines as it reads them")
        },
    ]
}
