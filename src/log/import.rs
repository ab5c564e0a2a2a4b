//! A text becomes a log: all of it, or nothing.
//!
//! Three ways in. [`Mode::Verified`] restores: the log has to be empty, gets the id of the exported one, and every digest
//! is recomputed and compared. [`Mode::AsNew`] copies: the same checks, but the events go into this log under its own id.
//! [`Mode::Unverified`] takes hand-written lines with only `stream`, `kind` and `body` (and `at_ms`), into any log: fields
//! with a default may be left out, the fold completes what only it knows, leases are not asked. It is an ordinary append
//! otherwise: what the fold refuses is refused. Given an export, it ignores the header and every place and digest.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};

use serde::Deserialize;

use super::Fold;
use super::batch::{Batch, Incoming, Rows};
use super::digest::{self, Content};
use super::error::{Class, LogError};
use super::export::FORMAT;
use super::request::{AppendError, BODY_BYTES_MAX};
use crate::event::canonical::{self, CanonicalError, Strict};
use crate::event::{DecodeError, Event};
use crate::id::{Anchor, Digest, Seq, StoreId, StreamName};

/// The longest line that an import takes.
pub const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What is done with the lines; see the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// An export becomes the log it was of.
    #[default]
    Verified,
    /// An export becomes the beginning of another log.
    AsNew,
    /// Hand-written lines become events.
    Unverified,
}

/// How to import.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Import {
    /// What is done with the lines.
    pub mode: Mode,
    /// The time of lines that name none, in milliseconds since 1970.
    pub at_ms: i64,
}

/// What an import did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// How many events came.
    pub events: u64,
    /// The log after it.
    pub anchor: Anchor,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// Longer than [`LINE_BYTES_MAX`], or with a body longer than [`BODY_BYTES_MAX`].
    #[error("it is too long")]
    TooLong,
    /// Not JSON with the fields of an event, or of a header.
    #[error("it does not parse")]
    Json(#[source] serde_json::Error),
    /// The body has no canonical bytes.
    #[error("its body cannot be stored")]
    Body(#[source] CanonicalError),
    /// Events are missing or stand in another order.
    #[error("it is event {found}, but {expected} comes next: lines are missing or reordered")]
    Seq {
        /// The place that comes next.
        expected: u64,
        /// The place it names.
        found: u64,
    },
    /// Events of the stream are missing or stand in another order.
    #[error("it is version {found} of {stream}, but {expected} comes next: lines are missing or reordered")]
    Version {
        /// Its stream.
        stream: StreamName,
        /// The version that comes next.
        expected: u64,
        /// The version it names.
        found: u64,
    },
    /// Its record digest is not that of what it says, or it was exported from another log.
    #[error("it was edited, or comes from another log: its record digest does not fit")]
    Record,
    /// Its chain does not continue the line before.
    #[error("it does not continue the line before it: its chain digest does not fit")]
    Chain,
    /// This version cannot read it.
    #[error("its event cannot be read by this version")]
    Undecodable(#[source] DecodeError),
    /// The rules do not allow it after what comes before it.
    #[error("its event is not legal after those before it")]
    Illegal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why nothing was imported. The log is what it was, but for [`AppendError::UnknownCommit`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A verified import is the beginning of a log.
    #[error("the log already has {events} events; import into a new one")]
    NotEmpty {
        /// How many.
        events: u64,
    },
    /// The first line is not the header of an export.
    #[error("line {line} is not the header of an export; hand-written lines need an unverified import")]
    NoHeader {
        /// The line, from 1; 0 where there is no line at all.
        line: u64,
        /// Why it is none.
        source: Option<serde_json::Error>,
    },
    /// An export of a newer format.
    #[error("the export has format {found}, this version reads {FORMAT}; use a newer throughline")]
    Newer {
        /// Its format.
        found: u64,
    },
    /// The export begins in the middle of a log.
    #[error("the export begins at event {from_seq}; only a whole one can be imported")]
    NotFromStart {
        /// Its first event.
        from_seq: u64,
    },
    /// A line cannot become an event.
    #[error("line {line} cannot be imported")]
    Line {
        /// The line, from 1.
        line: u64,
        /// The event it is, or would be.
        seq: Seq,
        /// What is wrong with it.
        source: LineError,
    },
    /// The text ends early, or ends with other events than it began to say.
    #[error("the export says that it ends at {expected}, but it ends at {found}: it was cut off or put together")]
    CutOff {
        /// The anchor in its header.
        expected: Anchor,
        /// The anchor of what is there.
        found: Anchor,
    },
    /// The text could not be read.
    #[error("line {line} could not be read")]
    Read {
        /// The line, from 1.
        line: u64,
        /// Why.
        source: std::io::Error,
    },
    /// The events could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl ImportError {
    /// What kind of error it is.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::NotEmpty { .. } => Class::Refused,
            Self::NoHeader { .. }
            | Self::Newer { .. }
            | Self::NotFromStart { .. }
            | Self::Line { .. }
            | Self::CutOff { .. } => Class::Corrupt,
            Self::Read { .. } => Class::Io,
            Self::Append(error) => error.class(),
        }
    }
}

impl From<LogError> for ImportError {
    fn from(error: LogError) -> Self {
        Self::Append(error.into())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    throughline: u64,
    store: StoreId,
    from_seq: u64,
    prev_chain: Digest,
    #[serde(default)]
    events: Option<u64>,
    #[serde(default)]
    anchor: Option<Anchor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exported {
    seq: u64,
    stream: StreamName,
    version: u64,
    at_ms: i64,
    kind: String,
    schema: u32,
    body: Strict,
    record: Digest,
    chain: Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    stream: StreamName,
    kind: String,
    body: Strict,
    #[serde(default)]
    at_ms: Option<i64>,
    #[serde(default)]
    schema: Option<u32>,
    #[serde(default, rename = "seq")]
    _seq: Option<u64>,
    #[serde(default, rename = "version")]
    _version: Option<u64>,
    #[serde(default, rename = "record")]
    _record: Option<Digest>,
    #[serde(default, rename = "chain")]
    _chain: Option<Digest>,
}

/// Reads every line into a batch.
pub(super) fn import<F: Fold, R: Rows<F>>(
    batch: &mut Batch<'_, F, R>,
    from: &mut dyn BufRead,
    import: &Import,
    progress: &mut dyn FnMut(u64),
) -> Result<Imported, ImportError> {
    let mut lines = Lines { from, number: 0, progress };
    let begin = batch.head.seq.0;
    match import.mode {
        Mode::Verified | Mode::AsNew if begin > 0 => return Err(ImportError::NotEmpty { events: begin }),
        Mode::Verified | Mode::AsNew => {
            let header = lines.header()?;
            if import.mode == Mode::Verified && header.store != batch.store {
                batch.rename(header.store)?;
            }
            exported(batch, &mut lines, &header)?;
        }
        Mode::Unverified => written(batch, &mut lines, import.at_ms)?,
    }
    Ok(Imported { events: batch.head.seq.0 - begin, anchor: batch.head })
}

/// Every line of an export after its header.
fn exported<F: Fold, R: Rows<F>>(
    batch: &mut Batch<'_, F, R>,
    lines: &mut Lines<'_>,
    header: &Header,
) -> Result<(), ImportError> {
    let mut source = Source { store: header.store, chain: header.prev_chain, versions: HashMap::new() };
    while let Some(line) = lines.next()? {
        let seq = batch.next();
        let at = |source| ImportError::Line { line: lines.number, seq, source };
        let line: Exported = serde_json::from_slice(&line).map_err(LineError::Json).map_err(at)?;
        let body = body(&line.body).map_err(at)?;
        source.check(&line, &body, seq).map_err(at)?;
        let event = Event::decode(&line.stream, &line.kind, line.schema, &body);
        let event = event.map_err(LineError::Undecodable).map_err(at)?;
        let place = batch.place(&line.stream)?;
        let mut state = batch.state(place)?;
        state.apply(&event).map_err(|source| at(LineError::Illegal(Box::new(source))))?;
        let Exported { at_ms, ref kind, schema, .. } = line;
        batch.write(place, &Incoming { at_ms, kind, schema, body: &body, event: &event })?;
        batch.folded(place, state);
    }
    let found = Anchor { seq: batch.head.seq, chain: source.chain };
    let counted = header.events.map(|events| Anchor { seq: Seq(events), chain: found.chain });
    match [header.anchor, counted].into_iter().flatten().find(|expected| *expected != found) {
        Some(expected) => Err(ImportError::CutOff { expected, found }),
        None => Ok(()),
    }
}

/// The log that an export is of, as far as its lines have told.
struct Source {
    store: StoreId,
    chain: Digest,
    versions: HashMap<StreamName, u64>,
}

impl Source {
    fn check(&mut self, line: &Exported, body: &[u8], seq: Seq) -> Result<(), LineError> {
        if line.seq != seq.0 {
            return Err(LineError::Seq { expected: seq.0, found: line.seq });
        }
        let Exported { at_ms, version, schema, .. } = *line;
        let text = line.stream.to_string();
        let content = Content { stream: &text, version, at_ms, kind: &line.kind, schema, body };
        if content.record(self.store) != line.record {
            return Err(LineError::Record);
        }
        self.chain = digest::link(&self.chain, &line.record);
        if self.chain != line.chain {
            return Err(LineError::Chain);
        }
        let last = self.versions.entry(line.stream.clone()).or_insert(0);
        *last += 1;
        if *last != line.version {
            return Err(LineError::Version { stream: line.stream.clone(), expected: *last, found: line.version });
        }
        Ok(())
    }
}

/// Every hand-written line.
fn written<F: Fold, R: Rows<F>>(
    batch: &mut Batch<'_, F, R>,
    lines: &mut Lines<'_>,
    at_ms: i64,
) -> Result<(), ImportError> {
    let mut first = true;
    while let Some(line) = lines.next()? {
        if std::mem::take(&mut first) && serde_json::from_slice::<Header>(&line).is_ok() {
            continue;
        }
        let seq = batch.next();
        let at = |source| ImportError::Line { line: lines.number, seq, source };
        let line: Written = serde_json::from_slice(&line).map_err(LineError::Json).map_err(at)?;
        let given = body(&line.body).map_err(at)?;
        let schema = line.schema.unwrap_or_else(|| crate::event::schema_of(&line.kind, crate::event::LIFTS));
        let event = Event::decode(&line.stream, &line.kind, schema, &given);
        let event = event.map_err(LineError::Undecodable).map_err(at)?;
        let place = batch.place(&line.stream)?;
        let mut state = batch.state(place)?;
        let event = state.complete(event);
        state.apply(&event).map_err(|source| at(LineError::Illegal(Box::new(source))))?;
        let encoded = event.encode().map_err(LineError::Body).map_err(at)?;
        let (at_ms, body) = (line.at_ms.unwrap_or(at_ms), &encoded.body[..]);
        batch.write(place, &Incoming { at_ms, kind: encoded.kind, schema: encoded.schema, body, event: &event })?;
        batch.folded(place, state);
    }
    Ok(())
}

fn body(value: &Strict) -> Result<Vec<u8>, LineError> {
    let bytes = canonical::write(&value.0).map_err(LineError::Body)?;
    if bytes.len() > BODY_BYTES_MAX { Err(LineError::TooLong) } else { Ok(bytes) }
}

/// Lines with their numbers.
struct Lines<'a> {
    from: &'a mut dyn BufRead,
    number: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Lines<'_> {
    /// The next line that is not blank.
    fn next(&mut self) -> Result<Option<Vec<u8>>, ImportError> {
        loop {
            let mut line = Vec::new();
            let number = self.number + 1;
            let read = (&mut *self.from).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
            read.map_err(|source| ImportError::Read { line: number, source })?;
            if line.is_empty() {
                return Ok(None);
            }
            self.number = number;
            (self.progress)(number);
            if line.len() as u64 > LINE_BYTES_MAX {
                return Err(ImportError::Line { line: number, seq: Seq(0), source: LineError::TooLong });
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    fn header(&mut self) -> Result<Header, ImportError> {
        let Some(line) = self.next()? else { return Err(ImportError::NoHeader { line: 0, source: None }) };
        let number = self.number;
        // The number is read first: a newer header may have other fields.
        let format = canonical::parse(&line).ok().and_then(|value| value.get("throughline")?.as_u64());
        if let Some(found) = format.filter(|&found| found != FORMAT) {
            return Err(ImportError::Newer { found });
        }
        let header: Header = serde_json::from_slice(&line)
            .map_err(|source| ImportError::NoHeader { line: number, source: Some(source) })?;
        match header {
            Header { throughline: FORMAT, from_seq: 1, prev_chain: Digest::GENESIS, .. } => Ok(header),
            Header { from_seq, .. } => Err(ImportError::NotFromStart { from_seq }),
        }
    }
}
