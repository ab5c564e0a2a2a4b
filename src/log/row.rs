//! One event as it is stored, as bytes and as what they say, and whether it holds where it stands.

use std::sync::Arc;

use super::Fold;
use super::digest::{self, Content};
use super::error::{Damage, LogError, Problem};
use crate::event::Event;
use crate::event::canonical::CanonicalError;
use crate::id::{Anchor, Digest, Frontier, Seq, StoreId, StreamName, Version};

/// An event as it is stored; texts and bytes are borrowed from the store.
pub(super) struct Row<'r> {
    pub(super) seq: u64,
    /// The number that the store gives the stream.
    pub(super) stream: i64,
    pub(super) version: u64,
    pub(super) at_ms: i64,
    pub(super) kind: &'r str,
    pub(super) schema: u32,
    pub(super) body: &'r [u8],
    pub(super) record: Digest,
    pub(super) chain: Digest,
    pub(super) stream_chain: Digest,
}

impl Row<'_> {
    /// What the record's digest should be.
    pub(super) fn digest(&self, store: StoreId, stream: &str) -> Digest {
        let Self { version, at_ms, kind, schema, body, .. } = *self;
        Content { stream, version, at_ms, kind, schema, body }.record(store)
    }

    /// Whether the row is what was written at its place, given the chain before it and the end of its stream.
    pub(super) fn fault(&self, store: StoreId, stream: &str, before: &Digest, tail: &Tail) -> Option<Fault> {
        if let Some(fault) = self.fault_in_log(store, stream, before, tail.version) {
            Some(fault)
        } else if digest::stream_link(&tail.chain, &self.record) != self.stream_chain {
            Some(Fault::StreamChain)
        } else {
            None
        }
    }

    /// As [`Row::fault`], by the log's chain alone: it has every record, so a stream's own chain adds nothing here.
    pub(super) fn fault_in_log(&self, store: StoreId, stream: &str, before: &Digest, version: u64) -> Option<Fault> {
        if self.digest(store, stream) != self.record {
            Some(Fault::Record)
        } else if digest::link(before, &self.record) != self.chain {
            Some(Fault::Chain)
        } else if self.version != version + 1 {
            Some(Fault::Version)
        } else {
            None
        }
    }

    /// The typed event.
    pub(super) fn event(&self, stream: &StreamName) -> Result<Event, Problem> {
        Event::decode(stream, self.kind, self.schema, self.body)
            .map_err(|error| Problem::at(self.seq, Damage::Undecodable(error)).of(stream))
    }

    pub(super) fn tail(&self) -> Tail {
        Tail { version: self.version, chain: self.stream_chain }
    }
}

/// What about a row does not hold. `verify` finds out why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The row's content and its record digest differ.
    Record,
    /// The row's chain does not continue the one before it.
    Chain,
    /// The row is not the next one of its stream.
    Version,
    /// The row's stream chain does not continue the one before it.
    StreamChain,
}

/// The end of a stream: how many events, and the digest over them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tail {
    pub(super) version: u64,
    pub(super) chain: Digest,
}

impl Tail {
    pub(super) const EMPTY: Self = Self { version: 0, chain: Digest::GENESIS };

    pub(super) fn of(self, stream: &StreamName) -> Frontier {
        Frontier { stream: stream.clone(), version: Version(self.version), chain: self.chain }
    }
}

/// A stream's name, parsed and as text.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: Arc<StreamName>,
    pub(super) text: String,
}

impl Named {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self { name: Arc::new(text.parse().ok()?), text: text.to_owned() })
    }

    pub(super) fn of(name: &StreamName) -> Self {
        Self { name: Arc::new(name.clone()), text: name.to_string() }
    }
}

/// One event as it is stored, checked, with what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// Its place in the log.
    pub seq: Seq,
    /// Its stream; shared with the other events of one read.
    pub stream: Arc<StreamName>,
    /// Its place in the stream.
    pub version: Version,
    /// When the writer's wall clock said it was, in milliseconds since 1970. Decides nothing.
    pub at_ms: i64,
    /// The kind.
    pub kind: &'static str,
    /// The schema as stored; `event` is lifted to the present one.
    pub schema: u32,
    /// The bytes as stored.
    pub body: Vec<u8>,
    /// What they say.
    pub event: Event,
    /// The digest over the stored bytes, bound to store and stream.
    pub record: Digest,
    /// The digest over the log up to and with this event.
    pub chain: Digest,
    /// The digest over the stream up to and with this event, as stored: `verify` and reads of one stream check it.
    pub stream_chain: Digest,
}

impl Recorded {
    /// The event as it stands when it is the next one of a log that ends at `log`, in a stream that ends at `stream`: what
    /// a store of one's own keeps. Sources of the digests: BLAKE3 with keys derived from `throughline record 1` and the
    /// store id, `throughline chain 1` and `throughline stream chain 1`; see [`crate::log`].
    ///
    /// ```
    /// # use throughline::event::FreshIntended;
    /// # use throughline::id::{Anchor, Digest, Frontier, Seq, StoreId, Version};
    /// # use throughline::log::Recorded;
    /// let store = StoreId(uuid::Uuid::from_u128(1));
    /// let log = Anchor { seq: Seq(0), chain: Digest::GENESIS };
    /// let stream = Frontier { stream: "agent/a".parse()?, version: Version(0), chain: Digest::GENESIS };
    /// let first = Recorded::next(store, &log, &stream, 0, FreshIntended { pane: None }.into())?;
    /// assert_eq!((first.seq, first.version), (Seq(1), Version(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CanonicalError`] for an event without canonical bytes.
    pub fn next(
        store: StoreId,
        log: &Anchor,
        stream: &Frontier,
        at_ms: i64,
        event: Event,
    ) -> Result<Self, CanonicalError> {
        let encoded = event.encode()?;
        let (seq, version) = (log.seq.next(), Version(stream.version.0 + 1));
        let (kind, schema, body) = (encoded.kind, encoded.schema, encoded.body);
        let text = stream.stream.to_string();
        let record = Content { stream: &text, version: version.0, at_ms, kind, schema, body: &body }.record(store);
        Ok(Self {
            seq,
            stream: Arc::new(stream.stream.clone()),
            version,
            at_ms,
            kind,
            schema,
            body,
            event,
            record,
            chain: digest::link(&log.chain, &record),
            stream_chain: digest::stream_link(&stream.chain, &record),
        })
    }

    /// Takes the event into the state of its stream, as it was after the events before it.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] names the event where the fold refuses it; the state is not used again then.
    pub fn fold_into<F: Fold>(&self, state: &mut F) -> Result<(), LogError> {
        let illegal = |source| Problem::at(self.seq.0, Damage::Illegal(Box::new(source))).of(&self.stream);
        state.apply(&self.event).map_err(|source| illegal(source).into())
    }

    pub(super) fn of(row: &Row<'_>, stream: &Arc<StreamName>) -> Result<Self, Problem> {
        Ok(Self::with(row, stream, row.event(stream)?))
    }

    /// With an event that the row's bytes say.
    pub(super) fn with(row: &Row<'_>, stream: &Arc<StreamName>, event: Event) -> Self {
        Self {
            seq: Seq(row.seq),
            stream: Arc::clone(stream),
            kind: event.kind(),
            version: Version(row.version),
            at_ms: row.at_ms,
            schema: row.schema,
            body: row.body.to_owned(),
            event,
            record: row.record,
            chain: row.chain,
            stream_chain: row.stream_chain,
        }
    }
}
