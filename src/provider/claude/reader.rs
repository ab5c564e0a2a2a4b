//! One buffer over a source of any size: bytes, lines, and where a value may begin.
//!
//! What was read can be read again from its offset, so a value that comes to nothing loses one line and no more. The grammar
//! of values is in `json`; here are the bounds that keep hostile bytes from costing more than a fixed multiple of reading
//! them once.

mod json;

use std::io;

use crate::provider::source::{KIB, MIB, Source, read_full};

/// How far a value may reach beyond the end of its first line.
const SPAN_BYTES_MAX: u64 = 16 * MIB;
/// How much may be read in vain, all in all, by values that reach over lines and then fail.
const VAIN_BYTES_MAX: u64 = 64 * MIB;
const BUFFER_BYTES: u64 = 256 * KIB;

/// Why there is no value.
#[derive(Debug)]
pub(super) enum Fail {
    /// The bytes are not the start of a value.
    Syntax,
    /// They are, but they end before it does.
    Ends,
    /// They could not be read.
    Io(io::Error),
}

impl From<io::Error> for Fail {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a source from an offset to an end.
pub(super) struct Reader<'s> {
    source: &'s mut dyn Source,
    buf: Vec<u8>,
    base: u64,
    at: usize,
    end: u64,
    newline: Option<u64>,
    vain: u64,
}

impl<'s> Reader<'s> {
    /// Reads all of a source.
    pub(super) fn new(source: &'s mut dyn Source) -> Self {
        let end = source.len();
        Self { source, buf: Vec::new(), base: 0, at: 0, end, newline: None, vain: 0 }
    }

    /// Goes to an offset, and reads up to `end` from there.
    pub(super) fn range(&mut self, offset: u64, end: u64) {
        self.end = end;
        // The buffer never holds what may not be looked at.
        let held = usize::try_from(end.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.buf.truncate(held);
        self.seek(offset);
    }

    /// Where it stands.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Where it ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Whether it stands at the end.
    pub(super) fn at_end(&self) -> bool {
        self.offset() >= self.end
    }

    /// Goes to an offset.
    pub(super) fn seek(&mut self, offset: u64) {
        match usize::try_from(offset.wrapping_sub(self.base)) {
            Ok(at) if offset >= self.base && at <= self.buf.len() => self.at = at,
            Ok(_) | Err(_) => {
                self.buf.clear();
                self.base = offset;
                self.at = 0;
            }
        }
    }

    /// The `count` bytes before the source's end.
    pub(super) fn last(&mut self, count: u64) -> io::Result<Vec<u8>> {
        let len = self.source.len();
        let from = len - count.min(len);
        let start = from.checked_sub(self.base).and_then(|start| usize::try_from(start).ok());
        if let Some(start) = start
            && self.base + self.buf.len() as u64 == len
            && start <= self.buf.len()
        {
            return Ok(self.buf[start..].to_vec());
        }
        let mut tail = vec![0; usize::try_from(len - from).unwrap_or(0)];
        read_full(self.source, from, &mut tail)?;
        Ok(tail)
    }

    /// The bytes from here on that are in the buffer; empty only at the end.
    #[inline]
    fn rest(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.buf.len() {
            self.refill()?;
        }
        Ok(&self.buf[self.at..])
    }

    #[cold]
    fn refill(&mut self) -> io::Result<()> {
        self.base = self.offset();
        self.at = 0;
        let piece = self.end.saturating_sub(self.base).min(BUFFER_BYTES);
        self.buf.resize(usize::try_from(piece).unwrap_or(0), 0);
        read_full(self.source, self.base, &mut self.buf).inspect_err(|_| self.buf.clear())
    }

    #[inline]
    fn peek(&mut self) -> io::Result<Option<u8>> {
        match self.buf.get(self.at) {
            Some(&byte) => Ok(Some(byte)),
            None => Ok(self.rest()?.first().copied()),
        }
    }

    #[inline]
    fn next(&mut self) -> Result<u8, Fail> {
        let byte = self.peek()?.ok_or(Fail::Ends)?;
        self.at += 1;
        Ok(byte)
    }

    /// Goes past these bytes, if they come next.
    pub(super) fn skip(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.rest()?.starts_with(bytes) {
            self.at += bytes.len();
        }
        Ok(())
    }

    /// Goes past the next `byte`, or to the end where there is none. Whether there was one.
    pub(super) fn skip_past(&mut self, byte: u8) -> io::Result<bool> {
        loop {
            let rest = self.rest()?;
            let len = rest.len();
            match memchr::memchr(byte, rest) {
                Some(found) => {
                    self.at += found + 1;
                    return Ok(true);
                }
                None if len == 0 => return Ok(false),
                None => self.at += len,
            }
        }
    }

    /// Goes past the end of this line. The first NUL on the way, and whether the line has an end.
    pub(super) fn skip_line(&mut self) -> io::Result<(Option<u64>, bool)> {
        loop {
            let rest = self.rest()?;
            let len = rest.len();
            match memchr::memchr2(0, b'\n', rest) {
                Some(found) if rest[found] == 0 => {
                    self.at += found;
                    let nul = self.offset();
                    return Ok((Some(nul), self.skip_past(b'\n')?));
                }
                Some(found) => {
                    self.at += found + 1;
                    return Ok((None, true));
                }
                None if len == 0 => return Ok((None, false)),
                None => self.at += len,
            }
        }
    }

    /// Goes past blank lines to the first byte of a value. Whether there is one; from then on, a value is being read.
    pub(super) fn open(&mut self) -> io::Result<bool> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek()? {
            self.at += 1;
        }
        self.newline = None;
        Ok(!self.at_end())
    }

    /// Whether the value that was read last goes over several lines.
    pub(super) fn is_spread(&self) -> bool {
        self.newline.is_some()
    }

    /// Gives up the value that was being read: only its first line is lost. The first NUL in that line, and whether the
    /// line has an end.
    pub(super) fn give_up(&mut self) -> io::Result<(Option<u64>, bool)> {
        match self.newline {
            Some(newline) => {
                self.vain += self.offset() - newline;
                self.seek(newline + 1);
                Ok((None, true))
            }
            None => self.skip_line(),
        }
    }

    /// Goes past what may follow a value on its line.
    ///
    /// # Errors
    ///
    /// [`Fail::Syntax`] where something else follows.
    pub(super) fn close(&mut self) -> Result<(), Fail> {
        loop {
            match self.peek()? {
                None => return Ok(()),
                Some(b'\n') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(_) => return Err(Fail::Syntax),
            }
        }
    }

    /// Goes past blanks inside a value, and says what follows. A newline is a blank, within bounds: what reads a value over
    /// lines in vain reads those lines again, and hostile bytes must not make that quadratic.
    fn token(&mut self) -> Result<u8, Fail> {
        loop {
            match self.peek()?.ok_or(Fail::Ends)? {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    let here = self.offset();
                    let newline = *self.newline.get_or_insert(here);
                    if here - newline > SPAN_BYTES_MAX || self.vain > VAIN_BYTES_MAX {
                        return Err(Fail::Syntax);
                    }
                    self.at += 1;
                }
                byte => return Ok(byte),
            }
        }
    }
}
