//! Appending: all or nothing, over several streams, on the condition that the log is where the caller thinks it is.
//!
//! Everything is allocated and checked inside one `BEGIN IMMEDIATE`: `seq` is dense over the log and `version` over each
//! stream, whoever else writes. What a caller needs to have seen, it states as an [`Expectation`]; what the rules say, the
//! [`Fold`] says. A request with an [`IdempotencyKey`] can be sent again after an error that left its result open.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _};

use super::batch::{Batch, End, Incoming, stored};
use super::digest::Claim;
use super::error::{Class, Damage, LogError, Problem};
use super::open::{Log, WAL_BYTES_AT_APPEND};
use super::row::{self, Tail, cell, digest_in, integer};
use super::{Fold, memo, read};
use crate::event::{Encoded, Event, canonical};
use crate::id::{Anchor, Digest, Frontier, IdempotencyKey, Seq, StoreId, StreamName, Version};

/// The longest body of one event. A line of an export is at most twice as long.
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a stream has to be like before an append. All expectations speak of the moment before the append, whatever
/// other entries of the same append add to the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// Anything.
    Any,
    /// It has exactly this many events.
    Version(Version),
    /// It has exactly this history.
    Frontier {
        /// How many events.
        version: Version,
        /// The digest over them.
        chain: Digest,
    },
}

impl From<&Frontier> for Expectation {
    fn from(frontier: &Frontier) -> Self {
        Self::Frontier { version: frontier.version, chain: frontier.chain }
    }
}

impl Expectation {
    fn holds(&self, tail: &Tail) -> bool {
        match self {
            Self::Any => true,
            Self::Version(version) => version.0 == tail.version,
            Self::Frontier { version, chain } => version.0 == tail.version && *chain == tail.chain,
        }
    }
}

/// What one stream gets. Without events it is only a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Which stream.
    pub stream: StreamName,
    /// What it has to be like.
    pub expected: Expectation,
    /// What happened, in order.
    pub events: Vec<Event>,
}

/// How to append.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Append {
    /// The writer's wall clock, in milliseconds since 1970. Recorded for people; decides nothing.
    pub at_ms: i64,
    /// Makes the request repeatable: the same key returns the first result. Two requests are the same if they give the
    /// same streams the same events; expectations and time are not compared, for a caller that tries again has read the
    /// log again.
    pub key: Option<IdempotencyKey>,
    /// Do not ask [`Fold::admit`]: for what is known by other means than a lease.
    pub unfenced: bool,
}

impl Append {
    /// At a time, fenced, without a key.
    #[must_use]
    pub fn at(at_ms: i64) -> Self {
        Self { at_ms, key: None, unfenced: false }
    }
}

/// What an append did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Appended {
    /// The place of its first event; nothing where it only checked. The others follow it without a gap.
    pub first: Option<Seq>,
    /// The log after it.
    pub anchor: Anchor,
    /// Each stream of the request after it, in the order of their first entries.
    pub frontiers: Vec<Frontier>,
}

/// Why an append did not happen. **Nothing of it is in the log**, but for [`AppendError::UnknownCommit`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// A stream is not what the caller expected.
    #[error("the stream {stream} is at version {} and not as expected; read it again and decide anew", actual.version)]
    Conflict {
        /// Which.
        stream: StreamName,
        /// What was expected.
        expected: Expectation,
        /// What it is.
        actual: Box<Frontier>,
    },
    /// The rules do not allow an event after what comes before it.
    #[error("event {} for {stream} ({kind}) is not legal there", index + 1)]
    Illegal {
        /// Which stream.
        stream: StreamName,
        /// Which event of the entry, from 0.
        index: usize,
        /// Its kind.
        kind: &'static str,
        /// The fold's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The event belongs to another family of streams.
    #[error("a {kind} event does not belong into the stream {stream}")]
    WrongFamily {
        /// Which stream.
        stream: StreamName,
        /// The event's kind.
        kind: &'static str,
    },
    /// The event has no canonical bytes.
    #[error("a {kind} event cannot be stored")]
    NotCanonical {
        /// The event's kind.
        kind: &'static str,
        /// Why.
        source: canonical::CanonicalError,
    },
    /// The event is longer than one may be.
    #[error("a {kind} event of {bytes} bytes is too long; {BODY_BYTES_MAX} are allowed")]
    TooLong {
        /// The event's kind.
        kind: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The key stands for another request.
    #[error("the idempotency key {key} was used for another request; use a new key")]
    KeyReused {
        /// The key.
        key: IdempotencyKey,
    },
    /// It was tried inside a callback that reads the same log.
    #[error("an append inside a read of the same log is not possible; end the read first")]
    InsideRead,
    /// The device failed while the result was being made durable: the events may be in the log, now or after a restart,
    /// all of them or none. Read again before trying again, or send the same request with the same key.
    #[error("it is not known whether the events are in the log; read it again, or repeat the request with its key")]
    UnknownCommit(#[source] rusqlite::Error),
    /// The log could not be read or written.
    #[error("nothing was appended")]
    Log(#[from] LogError),
}

impl AppendError {
    /// What kind of error it is.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Conflict { .. }
            | Self::Illegal { .. }
            | Self::WrongFamily { .. }
            | Self::NotCanonical { .. }
            | Self::TooLong { .. }
            | Self::KeyReused { .. }
            | Self::InsideRead => Class::Refused,
            Self::UnknownCommit(_) => Class::Io,
            Self::Log(error) => error.class(),
        }
    }
}

impl From<rusqlite::Error> for AppendError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Log(error.into())
    }
}

impl Log {
    /// Appends events to one or more streams: all of them, or nothing.
    ///
    /// Waits for other writers as long as [`Opening::busy_ms`](super::Opening::busy_ms) says.
    ///
    /// # Errors
    ///
    /// [`AppendError`]; nothing of the request is in the log, but for [`AppendError::UnknownCommit`].
    ///
    /// # Crash
    ///
    /// Once this returned, the events survive a power cut. One inside leaves all of them or none; a request with a key
    /// tells which when it is repeated.
    pub fn append<F: Fold>(&self, entries: &[Entry], append: &Append) -> Result<Appended, AppendError> {
        let encoded = encode(entries)?;
        let request = append.key.as_ref().map(|key| (key, digest_of(entries, &encoded)));
        let appended = self.write_in::<F, _, AppendError>(|conn, store| {
            if let Some((key, request)) = request
                && let Some(appended) = repeated(conn, store, key, request, entries)?
            {
                return Ok((appended, None));
            }
            let mut batch = Batch::<F>::new(conn, store, &self.cache)?;
            let appended = fill(&mut batch, entries, &encoded, append)?;
            if let Some((key, request)) = request {
                receipt(conn, store, key, request, &appended)?;
            }
            Ok((appended, Some(batch.end()?)))
        })?;
        // Looked at now and then: whenever the log passes another 256 events.
        if appended.first.is_some_and(|first| (first.0 - 1) / 256 != appended.anchor.seq.0 / 256) {
            self.checkpoint_above(WAL_BYTES_AT_APPEND);
        }
        Ok(appended)
    }

    /// Runs `write` in one write transaction and commits it; the end that it gives back is remembered then.
    pub(super) fn write_in<F: Fold, T, E: From<AppendError>>(
        &self,
        write: impl FnOnce(&Connection, StoreId) -> Result<(T, Option<End<F>>), E>,
    ) -> Result<T, E> {
        let conn = self.conn();
        if !conn.is_autocommit() {
            return Err(AppendError::InsideRead.into());
        }
        let mut change = Change::begin(&conn).map_err(AppendError::from)?;
        let store = self.store_now(&conn).map_err(AppendError::from)?;
        let (value, end) = write(&conn, store)?;
        match change.commit() {
            Ok(()) => {
                if let Some(end) = end {
                    self.cache.keep(end);
                }
                Ok(value)
            }
            Err(error) => {
                self.cache.clear();
                Err(error.into())
            }
        }
    }
}

/// A write transaction; rolled back unless it was committed.
struct Change<'c> {
    conn: &'c Connection,
}

impl<'c> Change<'c> {
    fn begin(conn: &'c Connection) -> Result<Self, LogError> {
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { conn })
    }

    /// A commit that says "busy" or "full" did not happen; any other error leaves it open.
    fn commit(&mut self) -> Result<(), AppendError> {
        let result = self.conn.prepare_cached("COMMIT").and_then(|mut statement| statement.execute([]));
        let Err(error) = result else { return Ok(()) };
        match error.sqlite_error().map(|failure| failure.extended_code & 0xff) {
            Some(5 | 6 | 13) => Err(AppendError::Log(error.into())),
            _ => Err(AppendError::UnknownCommit(error)),
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if !self.conn.is_autocommit() {
            // An error here means that SQLite rolled back by itself.
            let _ = self.conn.prepare_cached("ROLLBACK").and_then(|mut statement| statement.execute([]));
        }
    }
}

/// Every event's bytes, and whether each belongs where it is to go.
fn encode(entries: &[Entry]) -> Result<Vec<Vec<Encoded>>, AppendError> {
    let encode = |entry: &Entry| {
        let one = |event: &Event| {
            let kind = event.kind();
            if event.family() != entry.stream.family() {
                return Err(AppendError::WrongFamily { stream: entry.stream.clone(), kind });
            }
            let encoded = event.encode().map_err(|source| AppendError::NotCanonical { kind, source })?;
            match encoded.body.len() {
                bytes if bytes > BODY_BYTES_MAX => Err(AppendError::TooLong { kind, bytes }),
                _ => Ok(encoded),
            }
        };
        entry.events.iter().map(one).collect()
    };
    entries.iter().map(encode).collect()
}

/// Checks every expectation, then folds and writes every event.
fn fill<F: Fold>(
    batch: &mut Batch<'_, F>,
    entries: &[Entry],
    encoded: &[Vec<Encoded>],
    append: &Append,
) -> Result<Appended, AppendError> {
    let mut places = Vec::with_capacity(entries.len());
    for entry in entries {
        let place = batch.place(&entry.stream)?;
        let tail = batch.tip(place).tail;
        places.push(place);
        if !entry.expected.holds(&tail) {
            let actual = Box::new(read::frontier(&entry.stream, tail));
            return Err(AppendError::Conflict {
                stream: entry.stream.clone(),
                expected: entry.expected.clone(),
                actual,
            });
        }
    }
    let first = entries.iter().any(|entry| !entry.events.is_empty()).then(|| batch.next());
    for ((entry, encoded), place) in entries.iter().zip(encoded).zip(places) {
        if entry.events.is_empty() {
            continue;
        }
        let mut state = batch.folded(place)?;
        for (index, (event, bytes)) in entry.events.iter().zip(encoded).enumerate() {
            let kind = event.kind();
            let admitted = if append.unfenced { Ok(()) } else { state.admit(event) };
            admitted.and_then(|()| state.apply(event)).map_err(|source| {
                let (stream, source) = (entry.stream.clone(), Box::new(source));
                AppendError::Illegal { stream, index, kind, source }
            })?;
            let incoming = Incoming { at_ms: append.at_ms, kind, schema: bytes.schema, body: &bytes.body };
            batch.write(place, &incoming)?;
        }
        batch.tip(place).state = Some(state);
    }
    let frontiers: Vec<Frontier> = batch.ends().map(|(stream, tail)| read::frontier(stream, tail)).collect();
    Ok(Appended { first, anchor: batch.head, frontiers })
}

/// The streams of a request in the order of their first entries.
fn each_once(entries: &[Entry]) -> Vec<&StreamName> {
    let mut seen = BTreeMap::new();
    entries.iter().map(|entry| &entry.stream).filter(|stream| seen.insert(*stream, ()).is_none()).collect()
}

/// What makes two requests the same one.
fn digest_of(entries: &[Entry], encoded: &[Vec<Encoded>]) -> Digest {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for (entry, encoded) in entries.iter().zip(encoded) {
        parts.push(entry.stream.to_string().into_bytes());
        parts.push(encoded.len().to_le_bytes().to_vec());
        for event in encoded {
            parts.extend([event.kind.as_bytes().to_vec(), event.schema.to_le_bytes().to_vec(), event.body.clone()]);
        }
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Digest::of("throughline/request/1", &parts)
}

/// The result of the first request with this key, as it was then.
fn repeated(
    conn: &Connection,
    store: StoreId,
    key: &IdempotencyKey,
    request: Digest,
    entries: &[Entry],
) -> Result<Option<Appended>, AppendError> {
    let mut statement =
        conn.prepare_cached("SELECT request, first_seq, last_seq, proof FROM receipts WHERE key = ?1")?;
    let read = |row: &rusqlite::Row<'_>| Ok(Receipt::read(row, 0));
    let Some(receipt) = statement.query_row([key.as_str()], read).optional()? else { return Ok(None) };
    let head = read::head(conn)?;
    let damaged = || Problem::at(head.seq.0, Damage::Receipt { key: key.to_string() });
    let receipt = receipt.ok_or_else(|| LogError::from(damaged()))?;
    let chain = receipt.chain(conn, store, key.as_str())?.ok_or_else(|| LogError::from(damaged()))?;
    if receipt.request != request {
        return Err(AppendError::KeyReused { key: key.clone() });
    }
    let mut frontiers = Vec::new();
    for stream in each_once(entries) {
        frontiers.push(read::frontier(stream, tail_until(conn, stream, receipt.last)?));
    }
    let first = (receipt.first <= receipt.last).then_some(Seq(receipt.first));
    Ok(Some(Appended { first, anchor: Anchor { seq: Seq(receipt.last), chain }, frontiers }))
}

/// A row of `receipts`, but for its key.
pub(super) struct Receipt {
    request: Digest,
    /// One more than `last` where the request only checked.
    first: u64,
    pub(super) last: u64,
    proof: Digest,
}

impl Receipt {
    /// Reads request, first, last and proof from column `from` on.
    pub(super) fn read(row: &rusqlite::Row<'_>, from: usize) -> Option<Self> {
        let number = |index| integer(cell(row, index)).and_then(|number| u64::try_from(number).ok());
        Some(Self {
            request: digest_in(cell(row, from))?,
            first: number(from + 1)?,
            last: number(from + 2)?,
            proof: digest_in(cell(row, from + 3))?,
        })
    }

    /// The chain at its last event, if it is a receipt of this history.
    pub(super) fn chain(&self, conn: &Connection, store: StoreId, key: &str) -> Result<Option<Digest>, LogError> {
        let chain = if self.last == 0 { Some(Digest::GENESIS) } else { row::chain_at(conn, self.last)? };
        let claim = Claim { key, request: self.request, first: self.first, last: self.last };
        Ok(chain.filter(|chain| claim.proof(store, chain) == self.proof))
    }
}

fn receipt(
    conn: &Connection,
    store: StoreId,
    key: &IdempotencyKey,
    request: Digest,
    appended: &Appended,
) -> Result<(), LogError> {
    let last = appended.anchor.seq.0;
    let first = appended.first.map_or(last + 1, |seq| seq.0);
    let proof = Claim { key: key.as_str(), request, first, last }.proof(store, &appended.anchor.chain);
    let sql = "INSERT INTO receipts (key, request, first_seq, last_seq, proof) VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = (key.as_str(), &request.0[..], stored(first), stored(last), &proof.0[..]);
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Where a stream ended when the log ended at `last`.
fn tail_until(conn: &Connection, stream: &StreamName, last: u64) -> Result<Tail, LogError> {
    let Some(id) = memo::stream_id(conn, &stream.to_string())? else { return Ok(Tail::EMPTY) };
    let sql = "SELECT version, stream_chain FROM events WHERE stream = ?1 AND seq <= ?2 ORDER BY version DESC LIMIT 1";
    let mut statement = conn.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok(row::place(cell(row, 0)).zip(digest_in(cell(row, 1))));
    let found = statement.query_row((id, stored(last)), read).optional()?;
    match found {
        None => Ok(Tail::EMPTY),
        Some(Some((version, chain))) => Ok(Tail { version, chain }),
        Some(None) => Err(Problem::at(last, Damage::Unreadable { column: "stream_chain" }).into()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set up its log has failed")]

    use super::*;
    use crate::event::FreshIntended;
    use crate::log::Opening;

    #[derive(Clone)]
    struct Nothing;

    impl Fold for Nothing {
        const VERSION: u32 = 1;
        type Illegal = std::convert::Infallible;
        fn empty(_: &StreamName) -> Self {
            Self
        }
        fn admit(&self, _: &Event) -> Result<(), Self::Illegal> {
            Ok(())
        }
        fn apply(&mut self, _: &Event) -> Result<(), Self::Illegal> {
            Ok(())
        }
        fn encode(&self) -> Vec<u8> {
            Vec::new()
        }
        fn decode(_: &StreamName, _: &[u8]) -> Option<Self> {
            Some(Self)
        }
    }

    fn some(count: usize) -> Vec<Entry> {
        let events = vec![FreshIntended { pane: None }.into(); count];
        vec![Entry { stream: "agent/a".parse().unwrap(), expected: Expectation::Any, events }]
    }

    #[test]
    fn a_full_disk_is_said_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(&dir.path().join("log.db"), &Opening::default()).unwrap();
        let before = log.append::<Nothing>(&some(20), &Append::at(1)).unwrap().anchor;
        // A limit of this connection: SQLite answers as if the disk were full.
        let limit = |pages: u32| {
            log.conn().query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        };
        limit(1);
        let result = log.append::<Nothing>(&some(3_000), &Append::at(1));
        let Err(AppendError::Log(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.class(), Class::DiskFull);
        assert_eq!(log.anchor().unwrap(), before);
        limit(1_000_000);
        assert_eq!(log.append::<Nothing>(&some(3_000), &Append::at(1)).unwrap().first, Some(Seq(21)));
        assert!(log.verify::<Nothing>(Some(before), &mut |_| {}).unwrap().is_sound());
    }
}
