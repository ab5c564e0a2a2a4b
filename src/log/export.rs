//! A log as text: one line that says which log, then one event a line.
//!
//! ```text
//! {"throughline":1,"store":"…","from_seq":1,"prev_chain":"…","events":2,"anchor":"2:…"}
//! {"seq":1,"stream":"agent/a","version":1,"at_ms":0,"kind":"fresh_intended","schema":1,"body":{},"record":"…","chain":"…"}
//! ```
//!
//! The body stands there as the stored bytes, so that the digests can be recomputed. `events` and `anchor` are what makes a
//! text that was cut off recognisable.

use std::io::Write;

use super::error::{Class, LogError};
use super::row::Row;
use crate::id::{Anchor, Digest, StoreId, StreamName};

/// The number of this text format.
pub(super) const FORMAT: u64 = 1;

/// Why an export is not whole. The log is untouched; what was written so far is not an export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The log could not be read, or does not hold.
    #[error("the export stopped")]
    Log(#[from] LogError),
    /// The text could not be written.
    #[error("the export could not be written")]
    Write(#[source] std::io::Error),
}

impl ExportError {
    /// What kind of error it is.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Log(error) => error.class(),
            Self::Write(error) if error.kind() == std::io::ErrorKind::StorageFull => Class::DiskFull,
            Self::Write(_) => Class::Io,
        }
    }
}

/// The first line of an export that begins at the first event.
pub(super) fn header(to: &mut dyn Write, store: StoreId, anchor: &Anchor) -> std::io::Result<()> {
    let (genesis, events) = (Digest::GENESIS, anchor.seq);
    writeln!(
        to,
        r#"{{"throughline":{FORMAT},"store":"{store}","from_seq":1,"prev_chain":"{genesis}","events":{events},"anchor":"{anchor}"}}"#
    )
}

/// One event.
pub(super) fn line(to: &mut dyn Write, row: &Row<'_>, stream: &StreamName) -> std::io::Result<()> {
    let Row { seq, version, at_ms, schema, .. } = *row;
    let kind = serde_json::to_string(row.kind)?;
    write!(
        to,
        r#"{{"seq":{seq},"stream":"{stream}","version":{version},"at_ms":{at_ms},"kind":{kind},"schema":{schema},"body":"#
    )?;
    to.write_all(row.body)?;
    writeln!(to, r#","record":"{}","chain":"{}"}}"#, row.record, row.chain)
}
