//! The lenient scanner: what a transcript holds, read as Claude Code reads it.
//!
//! Observed on 2.1.332: a byte order mark is dropped; lines are values; blank lines do not matter, `\r\n` neither; a line
//! that does not parse (cut, garbage, NULs) is lost and nothing else; bytes that are not UTF-8 are replaced, so inside a text
//! they harm nobody; a value may go on over lines (pretty-printed JSON is accepted), but where that comes to nothing only
//! its first line is lost. Only objects are records: an array of records is none.
//!
//! At [`Depth::Windows`] a file of up to [`WHOLE_BYTES_MAX`] is read whole. Of a larger one, a window at its end is read,
//! which grows until a turn is in it, and a window at its start. Counts are then those of the windows, `examined` says how
//! much that was, and what decides stays certain: one turn seen is a history that is not empty. At [`Depth::Whole`] all of
//! it is streamed. Either way memory is one buffer, and some forty bytes a record for the walk.

use std::io;

use crate::id::Digest;
use crate::provider::claude::history::{Entry, History, Key, Role, Walk};
use crate::provider::claude::reader::{Fail, Reader};
use crate::provider::source::{KIB, MIB, Source};
use crate::snapshot::{Depth, Transcript};

/// Up to this size a file is read whole at any depth.
pub const WHOLE_BYTES_MAX: u64 = 8 * MIB;
/// The window at the start of a larger file.
pub const HEAD_BYTES: u64 = 256 * KIB;
/// The windows at its end, one after another until a turn is in one: the last holds any record of 128 MiB.
pub const TAIL_BYTES: [u64; 5] = [MIB, 4 * MIB, 16 * MIB, 64 * MIB, 129 * MIB];
/// How many bytes at the end the digest is over.
pub const DIGEST_BYTES: u64 = 64 * KIB;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a transcript holds.
///
/// # Errors
///
/// What the source says; nothing is concluded from a file that could not be read.
///
/// ```
/// # use throughline::{provider::claude::scan, snapshot::Depth};
/// let mut bytes: &[u8] = br#"{"type":"user","message":{"content":"hello"},"uuid":"1"}"#;
/// let held = scan(&mut bytes, Depth::Windows)?;
/// assert_eq!((held.turns, held.reached, held.is_whole()), (1, 1, true));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn scan(source: &mut dyn Source, depth: Depth) -> io::Result<Transcript> {
    scan_within(source, depth, &BOUNDS)
}

/// How much is read at [`Depth::Windows`].
struct Bounds {
    whole: u64,
    head: u64,
    tail: [u64; 5],
}

const BOUNDS: Bounds = Bounds { whole: WHOLE_BYTES_MAX, head: HEAD_BYTES, tail: TAIL_BYTES };

fn scan_within(source: &mut dyn Source, depth: Depth, bounds: &Bounds) -> io::Result<Transcript> {
    let len = source.len();
    let mut reader = Reader::new(source);
    let mut tally = match depth {
        Depth::Windows if len > bounds.whole => windows(&mut reader, len, bounds)?,
        Depth::Windows | Depth::Whole => whole(&mut reader, len)?,
    };
    let mut walk = std::mem::take(&mut tally.history).walk();
    if tally.leaf_unseen {
        // Some turn is the last one, and nothing more is known of it.
        walk = Walk { reached: walk.reached.min(1), straight: walk.straight.min(1), ..Walk::default() };
    }
    Ok(Transcript {
        bytes: len,
        tail: Digest::plain(&reader.last(DIGEST_BYTES)?),
        reached: walk.reached,
        compacted: walk.compacted,
        cyclic: walk.cyclic,
        bridged: walk.bridged,
        unanswered: walk.unanswered,
        misled: walk.misled,
        untimed_tip: walk.untimed,
        straight: walk.straight,
        circle: walk.circle,
        disordered: tally.last_time < tally.newest_time,
        ..tally.held
    })
}

fn whole(reader: &mut Reader<'_>, len: u64) -> io::Result<Tally> {
    let mut tally = Tally::default();
    reader.range(0, len);
    reader.skip(BYTE_ORDER_MARK)?;
    tally.read(reader, len)?;
    tally.held.examined = len;
    Ok(tally)
}

fn windows(reader: &mut Reader<'_>, len: u64, bounds: &Bounds) -> io::Result<Tally> {
    let mut head = Tally::default();
    reader.range(0, bounds.head);
    reader.skip(BYTE_ORDER_MARK)?;
    let head_end = head.read(reader, len)?;
    head.history.gap();
    let mut last = None;
    for size in bounds.tail {
        let Some(from) = len.checked_sub(size).filter(|&from| from > head_end) else {
            return whole(reader, len);
        };
        let mut tally = head.clone();
        // From the byte before, so that a window that begins with a line loses none.
        reader.range(from - 1, len);
        let any = reader.skip_past(b'\n')?;
        let start = reader.offset();
        tally.mid_value = any;
        tally.read(reader, len)?;
        tally.held.examined = head_end + (len - start);
        if tally.held.turns > head.held.turns {
            return Ok(tally);
        }
        tally.leaf_unseen = true;
        last = Some(tally);
    }
    Ok(last.unwrap_or(head))
}

/// The types that matter.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    User,
    Assistant,
    Attachment,
    System,
    LastPrompt,
    #[default]
    Other,
}

impl Kind {
    fn of(text: &[u8]) -> Self {
        match text {
            b"user" => Self::User,
            b"assistant" => Self::Assistant,
            b"attachment" => Self::Attachment,
            b"system" => Self::System,
            b"last-prompt" => Self::LastPrompt,
            _ => Self::Other,
        }
    }
}

/// One record, as far as it matters.
#[derive(Default)]
struct Record {
    kind: Kind,
    boundary: bool,
    uuid: Option<Key>,
    parent: Option<Key>,
    leaf: Option<Key>,
    time: Option<i64>,
    odd_time: bool,
    cwd: Option<String>,
    sidechain: bool,
    message: bool,
    /// Where bytes follow on the record's own line: the CLI takes the record and drops the rest of the line.
    rest: Option<u64>,
}

impl Record {
    fn entry(&self, role: Role) -> Entry {
        Entry { uuid: self.uuid, parent: self.parent, role, side: self.sidechain, at_ms: self.time }
    }

    /// Reads the value that begins here; nothing where it is no object.
    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Fail> {
        if reader.ahead()? != b'{' {
            reader.value()?;
            reader.close()?;
            return Ok(None);
        }
        let mut record = Self::default();
        let mut text = Vec::new();
        // As in JavaScript, the last of several equal keys counts.
        reader.object(|reader, key| {
            match key {
                b"type" => {
                    record.kind = if reader.text(&mut text)? { Kind::of(&text) } else { Kind::Other };
                }
                b"subtype" => record.boundary = reader.text(&mut text)? && text == b"compact_boundary",
                b"uuid" => record.uuid = reader.text(&mut text)?.then(|| Key::of(&text)),
                b"parentUuid" => {
                    record.parent = (reader.text(&mut text)? && !text.is_empty()).then(|| Key::of(&text));
                }
                b"leafUuid" => record.leaf = reader.text(&mut text)?.then(|| Key::of(&text)),
                b"timestamp" => {
                    record.odd_time = !reader.text(&mut text)?;
                    record.time = if record.odd_time { None } else { time(&text) };
                }
                b"cwd" => record.cwd = reader.text(&mut text)?.then(|| String::from_utf8_lossy(&text).into_owned()),
                b"isSidechain" => record.sidechain = truthy(reader)?,
                b"message" => record.message = message(reader)?,
                _ => reader.value()?,
            }
            Ok(())
        })?;
        let end = reader.offset();
        match reader.close() {
            Err(Fail::Syntax) => record.rest = Some(end),
            closed => closed?,
        }
        Ok(Some(record))
    }
}

/// The milliseconds since 1970 of a time as the CLI writes it: `2026-11-30T20:00:01.000Z`.
fn time(text: &[u8]) -> Option<i64> {
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        Some(digits.iter().fold(0, |number: i64, digit| number * 10 + i64::from(digit - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let fits = text.get(4) == Some(&b'-')
        && text.get(7) == Some(&b'-')
        && (1..=12).contains(&month)
        && (1..=31).contains(&day);
    // Days from a year that begins in March, so that the leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = number(11, 13).unwrap_or(0) * 3_600 + number(14, 16).unwrap_or(0) * 60 + number(17, 19).unwrap_or(0);
    fits.then(|| (days * 86_400 + seconds) * 1_000 + number(20, 23).unwrap_or(0))
}

/// Reads a value for whether JavaScript takes it for true.
fn truthy(reader: &mut Reader<'_>) -> Result<bool, Fail> {
    let first = reader.ahead()?;
    if first == b'"' {
        let mut text = Vec::new();
        return Ok(!reader.text(&mut text)? || !text.is_empty());
    }
    reader.value()?;
    Ok(!matches!(first, b'f' | b'n' | b'0'))
}

/// Reads a value for whether it is a message: an object whose `content` is a text or a list (observed on 2.1.332; a message
/// of any other shape is passed over as if there were none).
fn message(reader: &mut Reader<'_>) -> Result<bool, Fail> {
    if reader.ahead()? != b'{' {
        reader.value()?;
        return Ok(false);
    }
    let mut is = false;
    reader.object(|reader, key| {
        if key == b"content" {
            is = matches!(reader.ahead()?, b'"' | b'[');
        }
        reader.value()
    })?;
    Ok(is)
}

/// What was counted so far.
#[derive(Clone, Default)]
struct Tally {
    held: Transcript,
    history: History,
    /// The window may begin inside a value that goes over lines: what does not parse before its first record is not judged.
    mid_value: bool,
    /// No window at the end shows a turn.
    leaf_unseen: bool,
    /// The time of the last main record, and the latest of all.
    last_time: Option<i64>,
    newest_time: Option<i64>,
}

impl Tally {
    /// Reads records up to the reader's end, of a source of `len` bytes. Where the last one that is whole ends.
    fn read(&mut self, reader: &mut Reader<'_>, len: u64) -> io::Result<u64> {
        let mut done = reader.offset();
        while reader.open()? {
            let start = reader.offset();
            match Record::read(reader) {
                Ok(Some(record)) => {
                    self.mid_value = false;
                    let (rest, turns) = (record.rest, self.held.turns);
                    let (spread, main) = (reader.is_spread(), self.held.main());
                    self.count(record);
                    self.held.spread += if spread { self.held.main() - main } else { 0 };
                    if let Some(rest) = rest {
                        self.held.glued += self.held.turns - turns;
                        let (nul, ended) = reader.skip_line()?;
                        self.lose(rest, nul, !ended && reader.end() >= len);
                    }
                }
                Ok(None) => self.lose(start, None, false),
                Err(Fail::Io(error)) => return Err(error),
                // What the window cut off is not judged.
                Err(Fail::Ends) if reader.end() < len => return Ok(done),
                Err(Fail::Syntax | Fail::Ends) => {
                    let (nul, ended) = reader.give_up()?;
                    if !ended && reader.end() < len {
                        return Ok(done);
                    }
                    self.lose(start, nul, !ended);
                }
            }
            done = reader.offset();
        }
        Ok(done)
    }

    fn lose(&mut self, start: u64, nul: Option<u64>, torn: bool) {
        if self.mid_value && !torn {
            return;
        }
        let held = &mut self.held;
        held.unparsable += 1;
        held.unparsable_at.get_or_insert(start);
        if held.nul_at.is_none() {
            held.nul_at = nul;
        }
        if torn {
            held.torn_tail = true;
            held.torn_at = Some(start);
        }
    }

    fn count(&mut self, record: Record) {
        let held = &mut self.held;
        if let Some(cwd) = record.cwd.clone() {
            held.cwd.get_or_insert_with(|| cwd.clone());
            held.cwd_last = Some(cwd);
        }
        if record.sidechain {
            held.sidechain += 1;
            let role = match record.kind {
                Kind::User if record.message => Role::User,
                Kind::Assistant if record.message => Role::Assistant,
                Kind::User | Kind::Assistant | Kind::Attachment | Kind::System | Kind::LastPrompt | Kind::Other => {
                    Role::Link
                }
            };
            if record.uuid.is_some() {
                self.history.push(&record.entry(role));
            }
            return;
        }
        let role = match record.kind {
            Kind::User | Kind::Assistant if !record.message => {
                held.messageless += 1;
                Role::Link
            }
            Kind::User => {
                held.turns += 1;
                Role::User
            }
            Kind::Assistant => {
                held.turns += 1;
                Role::Assistant
            }
            Kind::Attachment => {
                held.attachments += 1;
                Role::Beside
            }
            Kind::System => {
                held.systems += 1;
                if record.boundary { Role::Boundary } else { Role::Beside }
            }
            Kind::LastPrompt => {
                held.others += 1;
                record.leaf.into_iter().for_each(|leaf| self.history.name(leaf));
                return;
            }
            Kind::Other => {
                held.others += 1;
                // Metadata; but a record with an id (a progress record) may stand between two turns.
                if record.uuid.is_none() {
                    return;
                }
                Role::Link
            }
        };
        if role != Role::Link {
            held.untimed += u64::from(record.time.is_none());
            held.odd_times |= record.odd_time;
            self.last_time = record.time;
            self.newest_time = self.newest_time.max(record.time);
        }
        self.history.push(&record.entry(role));
    }
}

/// Holds for any bytes; what the fuzz target `record_tail` and the tests search for exceptions of: the scan ends, counts no
/// more than there is, and what it says of whole files does not depend on how much it may read.
///
/// # Panics
///
/// When it does not hold.
#[doc(hidden)]
pub fn check_scan(mut bytes: &[u8]) {
    let windows = scan(&mut bytes, Depth::Windows).ok();
    let whole = scan(&mut bytes, Depth::Whole).ok();
    assert_eq!(windows, whole, "both depths read files of this size whole");
    let held = whole.unwrap_or_default();
    let records = held.turns + held.messageless + held.attachments + held.systems + held.sidechain + held.others;
    assert!(held.is_whole() && held.bytes == bytes.len() as u64, "every byte is accounted for: {held:?}");
    assert!(
        held.reached <= held.turns + held.sidechain && held.turns <= records,
        "no turn is reached that is not there: {held:?}"
    );
    assert!(records + held.unparsable <= bytes.len() as u64, "each record and each bad line has a byte: {held:?}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: Bounds = Bounds { whole: 200, head: 150, tail: [100, 200, 400, 800, 1200] };

    fn near_transcripts() -> impl Strategy<Value = Vec<u8>> {
        let turn = r#"{"type":"user","message":{"content":[1,"x\n"]},"uuid":"1","parentUuid":"1","cwd":"/w"}"#;
        let pretty = "{\n \"type\": \"user\",\n \"message\": {\n  \"content\": \"a\"\n }\n}";
        let piece = prop_oneof![
            2 => Just(turn.as_bytes().to_vec()),
            1 => Just(pretty.as_bytes().to_vec()),
            2 => (0..300usize).prop_map(|n| format!(r#"{{"type":"mode","note":"{}"}}"#, "x".repeat(n)).into_bytes()),
            1 => Just(b"not json".to_vec()),
            1 => Just(vec![0; 20]),
            1 => Just(Vec::new()),
        ];
        proptest::collection::vec(piece, 0..30).prop_map(|lines| lines.join(&b'\n'))
    }

    fn small(bytes: &[u8]) -> Transcript {
        scan_within(&mut &bytes[..], Depth::Windows, &SMALL).unwrap_or_default()
    }

    fn padded(kind: &str, bytes: usize) -> String {
        let front = format!(r#"{{"type":"{kind}","message":{{"content":""}},"note":""#);
        format!("{front}{}\"}}\n", "x".repeat(bytes - front.len() - 3))
    }

    #[test]
    fn times_are_read_as_the_cli_writes_them() {
        for (text, at_ms) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("2026-11-30T20:00:01.234Z", Some(1_796_068_801_234)),
            ("2024-02-29T23:59:59.999Z", Some(1_709_251_199_999)),
            ("2000-03-01T00:00:00.000Z", Some(951_868_800_000)),
            ("2026-11-30", Some(1_795_996_800_000)),
            ("some time", None),
            ("2026-13-30T20:00:01.234Z", None),
            ("", None),
        ] {
            assert_eq!(time(text.as_bytes()), at_ms, "{text}");
        }
    }

    #[test]
    fn a_window_that_begins_with_a_line_loses_none() {
        let held = small((padded("mode", 60).repeat(20) + &padded("user", 100)).as_bytes());
        assert_eq!((held.turns, held.examined), (1, 120 + 100));
        let held = small((padded("mode", 60).repeat(20) + &padded("user", 101)).as_bytes());
        assert_eq!((held.turns, held.examined), (1, 120 + 161));
    }

    #[test]
    fn of_a_leaf_that_was_not_seen_only_its_being_is_said() {
        let head = padded("user", 60) + &padded("user", 60);
        let held = small((head.clone() + &padded("mode", 2000)).as_bytes());
        assert_eq!((held.turns, held.reached, held.unanswered, held.is_whole()), (2, 1, false, false));
        let held = small((head + &padded("mode", 1000)).as_bytes());
        assert_eq!((held.turns, held.reached, held.unanswered, held.is_whole()), (2, 1, true, true));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn windows_never_say_more_than_the_whole(bytes in near_transcripts()) {
            let whole = scan_within(&mut &bytes[..], Depth::Whole, &SMALL)?;
            let part = scan_within(&mut &bytes[..], Depth::Windows, &SMALL)?;
            prop_assert_eq!((part.bytes, part.tail, part.torn_tail), (whole.bytes, whole.tail, whole.torn_tail));
            prop_assert!(part.turns <= whole.turns && part.unparsable <= whole.unparsable, "{part:?} {whole:?}");
            prop_assert_eq!(part.reached > 0, part.turns > 0);
            prop_assert!(part.examined <= part.bytes);
            if part.is_whole() {
                prop_assert_eq!(&part, &whole);
            }
            // The last turn is either seen or known to be unseen.
            if part.turns == 0 && bytes.len() <= 1200 {
                prop_assert_eq!(whole.turns, 0);
            }
        }
    }
}
