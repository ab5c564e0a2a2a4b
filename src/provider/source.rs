//! Bytes that a rule may look into, wherever they lie: a file of any size through a door, a slice in a test.
//!
//! The scanners of this folder read through [`Source`], so that they stay pure: they never name a file system, and a file
//! of many gigabytes costs them one buffer. A source has a fixed length, taken when it was opened; bytes that are appended
//! later are not part of it, and bytes that are gone when they are read are an error, never "the end".

use std::io;

use crate::snapshot::Depth;

/// How many bytes [`contains`] reads at [`Depth::Windows`].
pub const CONTAINS_BYTES_MAX: u64 = 64 * MIB;

/// Why an answer is missing although nothing failed: the bound of a [`Depth::Windows`] was met first.
///
/// A view says it in [`Seen::Unreadable`](crate::snapshot::Seen::Unreadable), and rules know by it that a deeper look helps.
pub const NOT_EXAMINED: &str = "it was not examined to its end";

/// Why a setting is missing although its file was read: the agent cannot use that file either.
pub const NOT_SETTINGS: &str = "it is no settings file with such a value";

pub(crate) const KIB: u64 = 1024;
pub(crate) const MIB: u64 = 1024 * KIB;

/// Random access to a fixed number of bytes.
pub trait Source {
    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads at an offset into `buf`, as `pread` does: how many bytes were read, 0 only at the end.
    ///
    /// # Errors
    ///
    /// What the device says. Nothing is changed by a read that failed.
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let read = rest.len().min(buf.len());
        buf[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
}

/// Fills `buf` from an offset.
///
/// # Errors
///
/// What the source says, and [`io::ErrorKind::UnexpectedEof`] when it became shorter than its length.
pub fn read_full(source: &mut dyn Source, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
    while !buf.is_empty() {
        match source.read_at(offset, buf) {
            Ok(0) => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was read"));
            }
            Ok(read) => {
                offset += read as u64;
                buf = &mut buf[read..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether the bytes contain one of `patterns`, anywhere; nothing where the bound of the depth was met before one was seen.
///
/// # Errors
///
/// As [`read_full`].
///
/// ```
/// # use throughline::{provider::source::contains, snapshot::Depth};
/// let mut bytes: &[u8] = br#"{"type":"user"}"#;
/// assert_eq!(contains(&mut bytes, &[r#""type":"user""#], Depth::Windows)?, Some(true));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn contains(source: &mut dyn Source, patterns: &[&str], depth: Depth) -> io::Result<Option<bool>> {
    let bytes = source.len();
    let end = match depth {
        Depth::Whole => bytes,
        Depth::Windows => bytes.min(CONTAINS_BYTES_MAX),
    };
    let finders: Vec<_> = patterns.iter().map(|pattern| memchr::memmem::Finder::new(*pattern)).collect();
    let overlap = patterns.iter().map(|pattern| pattern.len().saturating_sub(1)).max().unwrap_or(0);
    let mut buf = Vec::new();
    let mut offset = 0;
    while offset < end {
        // The end of the last piece stays in front of the next, so that no pattern falls between them.
        let kept = buf.len().min(overlap);
        buf.drain(..buf.len() - kept);
        let piece = usize::try_from((end - offset).min(256 * KIB)).unwrap_or(0);
        buf.resize(kept + piece, 0);
        read_full(source, offset, &mut buf[kept..])?;
        offset += piece as u64;
        if finders.iter().any(|finder| finder.find(&buf).is_some()) {
            return Ok(Some(true));
        }
    }
    Ok((end == bytes).then_some(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_on_the_seam_of_two_pieces_is_found() -> io::Result<()> {
        for lead in (256 * 1024 - 9)..(256 * 1024 + 2) {
            let mut bytes = vec![b'x'; lead];
            bytes.extend_from_slice(b"\"type\"");
            assert_eq!(contains(&mut &bytes[..], &["a", "\"type\""], Depth::Windows)?, Some(true), "{lead}");
            assert_eq!(contains(&mut &bytes[..], &["\"typo\""], Depth::Whole)?, Some(false), "{lead}");
        }
        Ok(())
    }

    #[test]
    fn a_bound_that_was_met_is_not_a_no() -> io::Result<()> {
        struct Long;
        impl Source for Long {
            fn len(&self) -> u64 {
                CONTAINS_BYTES_MAX + 1
            }
            fn read_at(&mut self, _: u64, buf: &mut [u8]) -> io::Result<usize> {
                Ok(buf.len())
            }
        }
        assert_eq!(contains(&mut Long, &["y"], Depth::Windows)?, None);
        assert_eq!(contains(&mut Long, &["y"], Depth::Whole)?, Some(false));
        Ok(())
    }

    #[test]
    fn a_source_that_shrinks_is_an_error() {
        struct Short;
        impl Source for Short {
            fn len(&self) -> u64 {
                10
            }
            fn read_at(&mut self, _: u64, _: &mut [u8]) -> io::Result<usize> {
                Ok(0)
            }
        }
        let error = contains(&mut Short, &["y"], Depth::Whole).map_err(|error| error.kind());
        assert_eq!(error, Err(io::ErrorKind::UnexpectedEof));
    }
}
