//! What is asked of an append, what it answers, and why it can say no: values, whatever the store.
//!
//! All or nothing, over several streams, on the condition that the log is where the caller thinks it is: `seq` is dense
//! over the log and `version` over each stream, whoever else writes. What a caller needs to have seen, it states as an
//! [`Expectation`]; what the rules say, the [`Fold`](super::Fold) says. A request with an [`IdempotencyKey`] can be sent
//! again after an error that left its result open.

use std::collections::BTreeMap;

use super::error::{Cause, Class, LogError};
use super::row::Tail;
use crate::event::canonical::CanonicalError;
use crate::event::{Encoded, Event};
use crate::id::{Anchor, Digest, Frontier, IdempotencyKey, Seq, StreamName, Version};

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
    pub(super) fn holds(&self, tail: &Tail) -> bool {
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
    /// same streams the same events in the same order; expectations, entries that only check and time are not compared,
    /// for a caller that tries again has read the log again.
    pub key: Option<IdempotencyKey>,
    /// Do not ask [`Fold::admit`](super::Fold::admit): for what is known by other means than a lease.
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
        source: CanonicalError,
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
    /// all of them or none. Nothing more is written through this handle; open the log again, which makes certain what is
    /// there, and read it, or send the same request with the same key.
    #[error(
        "it is not known whether the events are in the log; open it again and read it, or repeat the request with its key"
    )]
    UnknownCommit(#[source] Cause),
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

/// A request as a store takes it: every event's bytes, and the digest that makes a repeated key the same request.
pub(super) struct Request<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) encoded: Vec<Vec<Encoded>>,
    pub(super) key: Option<(&'a IdempotencyKey, Digest)>,
}

impl<'a> Request<'a> {
    /// Encodes every event; nothing of a store is asked.
    pub(super) fn new(entries: &'a [Entry], append: &'a Append) -> Result<Self, AppendError> {
        let encoded = encode(entries)?;
        let key = append.key.as_ref().map(|key| (key, digest_of(entries, &encoded)));
        Ok(Self { entries, encoded, key })
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

/// The streams of a request in the order of their first entries.
pub(super) fn each_once(entries: &[Entry]) -> Vec<&StreamName> {
    let mut seen = BTreeMap::new();
    entries.iter().map(|entry| &entry.stream).filter(|stream| seen.insert(*stream, ()).is_none()).collect()
}

/// What makes two requests the same one: the events and where they go, in order. Entries that only check are part of it
/// only where there is nothing else.
fn digest_of(entries: &[Entry], encoded: &[Vec<Encoded>]) -> Digest {
    let only_checks = encoded.iter().all(Vec::is_empty);
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for (entry, encoded) in entries.iter().zip(encoded) {
        if only_checks {
            parts.push(entry.stream.to_string().into_bytes());
        }
        for event in encoded {
            let (stream, schema) = (entry.stream.to_string().into_bytes(), event.schema.to_le_bytes().to_vec());
            parts.extend([stream, event.kind.as_bytes().to_vec(), schema, event.body.clone()]);
        }
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Digest::of("throughline/request/2", &parts)
}
