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
use crate::provider::claude::history::{History, Key, Role};
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
/// let mut bytes: &[u8] = br#"{"type":"user","message":{},"uuid":"1"}"#;
/// let held = scan(&mut bytes, Depth::Windows)?;
/// assert_eq!((held.turns, held.reached, held.is_whole()), (1, 1, true));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn scan(source: &mut dyn Source, depth: Depth) -> io::Result<Transcript> {
    let len = source.len();
    let mut reader = Reader::new(source);
    let mut tally = match depth {
        Depth::Windows if len > WHOLE_BYTES_MAX => windows(&mut reader, len)?,
        Depth::Windows | Depth::Whole => whole(&mut reader, len)?,
    };
    let walk = std::mem::take(&mut tally.history).walk();
    Ok(Transcript {
        bytes: len,
        tail: Digest::plain(&reader.last(DIGEST_BYTES)?),
        reached: walk.reached,
        compacted: walk.compacted,
        cyclic: walk.cyclic,
        bridged: walk.bridged,
        unanswered: walk.unanswered,
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

fn windows(reader: &mut Reader<'_>, len: u64) -> io::Result<Tally> {
    let mut head = Tally::default();
    reader.range(0, HEAD_BYTES);
    reader.skip(BYTE_ORDER_MARK)?;
    let head_end = head.read(reader, len)?;
    head.history.gap();
    let mut last = None;
    for size in TAIL_BYTES {
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
        last = Some(tally);
    }
    Ok(last.unwrap_or(head))
}

/// One record, as far as it matters.
#[derive(Default)]
struct Record {
    kind: Option<String>,
    subtype: Option<String>,
    uuid: Option<Key>,
    parent: Option<Key>,
    cwd: Option<String>,
    sidechain: bool,
    message: bool,
}

impl Record {
    /// Reads the value that begins here; nothing where it is no object.
    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Fail> {
        if reader.ahead()? != b'{' {
            reader.value()?;
            reader.close()?;
            return Ok(None);
        }
        let mut record = Self::default();
        // As in JavaScript, the last of several equal keys counts.
        reader.object(|reader, key| {
            match key {
                b"type" => record.kind = reader.text()?,
                b"subtype" => record.subtype = reader.text()?,
                b"uuid" => record.uuid = reader.text()?.as_deref().map(Key::of),
                b"parentUuid" => {
                    record.parent = reader.text()?.filter(|uuid| !uuid.is_empty()).as_deref().map(Key::of);
                }
                b"cwd" => record.cwd = reader.text()?,
                b"isSidechain" => {
                    record.sidechain = reader.ahead()? == b't';
                    reader.value()?;
                }
                b"message" => {
                    record.message = reader.ahead()? != b'n';
                    reader.value()?;
                }
                _ => reader.value()?,
            }
            Ok(())
        })?;
        reader.close()?;
        Ok(Some(record))
    }
}

/// What was counted so far.
#[derive(Clone, Default)]
struct Tally {
    held: Transcript,
    history: History,
    /// The window may begin inside a value that goes over lines: what does not parse before its first record is not judged.
    mid_value: bool,
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
                    self.count(record);
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
        if let Some(cwd) = record.cwd {
            held.cwd.get_or_insert_with(|| cwd.clone());
            held.cwd_last = Some(cwd);
        }
        if record.sidechain {
            held.sidechain += 1;
            return;
        }
        let role = match record.kind.as_deref() {
            Some(kind @ ("user" | "assistant")) if record.message => {
                held.turns += 1;
                if kind == "user" { Role::User } else { Role::Assistant }
            }
            Some("user" | "assistant") => {
                held.messageless += 1;
                Role::Other
            }
            Some("attachment") => {
                held.attachments += 1;
                Role::Other
            }
            Some("system") => {
                held.systems += 1;
                if record.subtype.as_deref() == Some("compact_boundary") { Role::Boundary } else { Role::Other }
            }
            _ => {
                held.others += 1;
                // Metadata; but a record with an id (a progress record) may stand between two turns.
                if record.uuid.is_none() {
                    return;
                }
                Role::Other
            }
        };
        self.history.push(record.uuid, record.parent, role);
    }
}
