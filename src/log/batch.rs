//! Events on their way into a store, inside one write transaction: the rules that every store's appends and imports share.
//!
//! A batch reads the end of the log and of each stream once, folds every event before it is written, and knows the
//! digests it ends with. It writes through [`Rows`], which is all that a store has to be able to do. What it wrote becomes
//! true by the store's own commit and by nothing else.

use std::collections::HashMap;

use super::Fold;
use super::digest::{self, Claim, Content};
use super::error::{Damage, LogError, Problem};
use super::request::{Append, AppendError, Appended, Entry, Request, each_once};
use super::row::{Row, Tail};
use crate::event::{Encoded, Event};
use crate::id::{Anchor, Digest, IdempotencyKey, Seq, StoreId, StreamName};

/// How many streams a writer remembers; past that it starts anew.
const REMEMBERED: usize = 4_096;

/// A memo is written when this many events have come since the last one: what a reader folds at most beside it, and
/// what an append pays for rarely.
const MEMO_EVERY: u64 = 32;

/// What a store keeps, as one write transaction sees and changes it.
pub(super) trait Rows<F> {
    /// The last event.
    fn head(&self) -> Result<Anchor, LogError>;

    /// The number of a stream, if it has one, and its end.
    fn end_of(&self, stream: &str) -> Result<(Option<i64>, Tail), LogError>;

    /// A stream's state.
    fn load(&self, stream: &StreamName) -> Result<Loaded<F>, LogError>;

    /// Gives a stream a number.
    fn add_stream(&mut self, stream: &StreamName, text: &str) -> Result<i64, LogError>;

    /// Adds an event.
    fn add_event(&mut self, row: &Row<'_>, event: &Event) -> Result<(), LogError>;

    /// Keeps a stream's state, so that it need not be folded again. May do nothing.
    fn add_memo(&mut self, id: i64, stream: &str, tail: Tail, state: &F) -> Result<(), LogError>;

    /// The receipt of a key.
    fn receipt(&self, key: &IdempotencyKey) -> Result<Option<Receipt>, LogError>;

    /// Keeps the receipt of a key.
    fn add_receipt(&mut self, key: &IdempotencyKey, receipt: &Receipt) -> Result<(), LogError>;

    /// The chain at a place; nothing where there is no event.
    fn chain_at(&self, seq: u64) -> Result<Option<Digest>, LogError>;

    /// Where a stream ended when the log ended at `last`.
    fn tail_until(&self, stream: &StreamName, last: u64) -> Result<Tail, LogError>;

    /// Gives an empty log the id of the one that is imported into it.
    fn rename(&mut self, store: StoreId) -> Result<(), LogError>;
}

/// A stream as it was found.
pub(super) struct Loaded<F> {
    pub(super) tail: Tail,
    pub(super) state: F,
    /// The version of the memo that was used; 0 for none.
    pub(super) memo: u64,
}

/// What was done for an idempotency key.
#[derive(Clone, Debug)]
pub(super) struct Receipt {
    pub(super) request: Digest,
    /// One more than `last` where the request only checked.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) proof: Digest,
}

impl Receipt {
    fn of(key: &IdempotencyKey, request: Digest, appended: &Appended, store: StoreId) -> Self {
        let last = appended.anchor.seq.0;
        let first = appended.first.map_or(last + 1, |seq| seq.0);
        let proof = Claim { key: key.as_str(), request, first, last }.proof(owner(store, last), &appended.anchor.chain);
        Self { request, first, last, proof }
    }

    /// Whether it is a receipt of the history that has this chain at its last event.
    pub(super) fn holds(&self, store: StoreId, key: &str, chain: &Digest) -> bool {
        let claim = Claim { key, request: self.request, first: self.first, last: self.last };
        claim.proof(owner(store, self.last), chain) == self.proof
    }
}

/// The store that a receipt is bound to. One that rests on no event is bound to none: an import can still give the empty
/// log another id.
fn owner(store: StoreId, last: u64) -> StoreId {
    if last == 0 { StoreId(uuid::Uuid::nil()) } else { store }
}

/// What a writer remembers of the log as its last commit left it: true as long as the log still ends there.
pub(super) struct Tips<F> {
    head: Option<Anchor>,
    /// Counts how often somebody else was found to have written: ends of streams from before have to be looked up again.
    generation: u64,
    /// Counts the batches.
    batch: u64,
    index: HashMap<StreamName, usize>,
    tips: Vec<Tip<F>>,
}

/// The end of one stream, and its state once that was asked for.
struct Tip<F> {
    name: StreamName,
    text: String,
    id: Option<i64>,
    tail: Tail,
    state: Option<F>,
    memo: u64,
    /// As of which generation this is true; nothing where a batch that touched it was not committed.
    generation: Option<u64>,
    /// The last batch that asked for it.
    batch: u64,
}

impl<F> Default for Tips<F> {
    fn default() -> Self {
        Self { head: None, generation: 0, batch: 0, index: HashMap::new(), tips: Vec::new() }
    }
}

impl<F> std::fmt::Debug for Tips<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tips").field("streams", &self.tips.len()).finish_non_exhaustive()
    }
}

/// What a batch leaves once it is committed.
pub(super) struct End {
    head: Anchor,
    current: bool,
    touched: Vec<usize>,
}

impl<F> Tips<F> {
    /// Takes in what a committed batch left.
    pub(super) fn keep(&mut self, end: End) {
        if !end.current {
            self.generation += 1;
        }
        self.head = Some(end.head);
        for place in end.touched {
            self.tips[place].generation = Some(self.generation);
        }
        if self.tips.len() > REMEMBERED {
            (self.index, self.tips) = (HashMap::new(), Vec::new());
        }
    }
}

/// An event as it is to be stored.
pub(super) struct Incoming<'a> {
    pub(super) at_ms: i64,
    pub(super) kind: &'a str,
    pub(super) schema: u32,
    pub(super) body: &'a [u8],
    pub(super) event: &'a Event,
}

/// Where a batch keeps a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

/// See the file.
pub(super) struct Batch<'t, F, R> {
    rows: R,
    pub(super) store: StoreId,
    pub(super) head: Anchor,
    /// The head is what was remembered: nobody else wrote since.
    current: bool,
    tips: &'t mut Tips<F>,
    number: u64,
    /// The streams that were asked for, in that order.
    touched: Vec<usize>,
}

impl<'t, F: Fold, R: Rows<F>> Batch<'t, F, R> {
    /// Begins at the end of the log, inside the store's transaction.
    pub(super) fn new(rows: R, store: StoreId, tips: &'t mut Tips<F>) -> Result<Self, LogError> {
        let head = rows.head()?;
        let current = tips.head.as_ref() == Some(&head);
        tips.batch += 1;
        let number = tips.batch;
        Ok(Self { rows, store, head, current, tips, number, touched: Vec::new() })
    }

    /// Appends a request: the first result again where its key was used before.
    pub(super) fn append(&mut self, request: &Request<'_>, append: &Append) -> Result<Appended, AppendError> {
        if let Some((key, digest)) = request.key
            && let Some(appended) = self.repeated(key, digest, request.entries)?
        {
            return Ok(appended);
        }
        let appended = self.fill(request.entries, &request.encoded, append)?;
        if let Some((key, digest)) = request.key {
            self.rows.add_receipt(key, &Receipt::of(key, digest, &appended, self.store))?;
        }
        Ok(appended)
    }

    /// The result of the first request with this key, as it was then.
    fn repeated(
        &self,
        key: &IdempotencyKey,
        request: Digest,
        entries: &[Entry],
    ) -> Result<Option<Appended>, AppendError> {
        let Some(receipt) = self.rows.receipt(key)? else { return Ok(None) };
        let chain = if receipt.last == 0 { Some(Digest::GENESIS) } else { self.rows.chain_at(receipt.last)? };
        let Some(chain) = chain.filter(|chain| receipt.holds(self.store, key.as_str(), chain)) else {
            let damage = Damage::Receipt { key: key.to_string() };
            return Err(LogError::from(Problem::at(self.head.seq.0, damage)).into());
        };
        if receipt.request != request {
            return Err(AppendError::KeyReused { key: key.clone() });
        }
        let mut frontiers = Vec::new();
        for stream in each_once(entries) {
            frontiers.push(self.rows.tail_until(stream, receipt.last)?.of(stream));
        }
        let first = (receipt.first <= receipt.last).then_some(Seq(receipt.first));
        Ok(Some(Appended { first, anchor: Anchor { seq: Seq(receipt.last), chain }, frontiers }))
    }

    /// Checks every expectation, then folds and writes every event.
    fn fill(&mut self, entries: &[Entry], encoded: &[Vec<Encoded>], append: &Append) -> Result<Appended, AppendError> {
        let mut places = Vec::with_capacity(entries.len());
        for entry in entries {
            let place = self.place(&entry.stream)?;
            let tail = self.tips.tips[place.0].tail;
            places.push(place);
            if !entry.expected.holds(&tail) {
                let (stream, expected) = (entry.stream.clone(), entry.expected.clone());
                let actual = Box::new(tail.of(&entry.stream));
                return Err(AppendError::Conflict { stream, expected, actual });
            }
        }
        let first = entries.iter().any(|entry| !entry.events.is_empty()).then(|| self.next());
        for ((entry, encoded), place) in entries.iter().zip(encoded).zip(places) {
            if entry.events.is_empty() {
                continue;
            }
            let mut state = self.state(place)?;
            for (index, (event, bytes)) in entry.events.iter().zip(encoded).enumerate() {
                let kind = event.kind();
                let admitted = if append.unfenced { Ok(()) } else { state.admit(event) };
                admitted.and_then(|()| state.apply(event)).map_err(|source| {
                    let (stream, source) = (entry.stream.clone(), Box::new(source));
                    AppendError::Illegal { stream, index, kind, source }
                })?;
                let Encoded { schema, ref body, .. } = *bytes;
                self.write(place, &Incoming { at_ms: append.at_ms, kind, schema, body, event })?;
            }
            self.folded(place, state);
        }
        let tips = &self.tips.tips;
        let frontiers = self.touched.iter().map(|place| tips[*place].tail.of(&tips[*place].name)).collect();
        Ok(Appended { first, anchor: self.head, frontiers })
    }

    /// Where a stream is kept from now on; its end is looked up where it is not known.
    pub(super) fn place(&mut self, stream: &StreamName) -> Result<Place, LogError> {
        let place = match self.tips.index.get(stream) {
            Some(place) => *place,
            None => self.make_place(stream),
        };
        let tip = &mut self.tips.tips[place];
        if tip.batch == self.number {
            return Ok(Place(place));
        }
        if !(self.current && tip.generation == Some(self.tips.generation)) {
            let (id, tail) = self.rows.end_of(&tip.text)?;
            if tip.generation.is_none() || (tip.id, tip.tail) != (id, tail) {
                (tip.id, tip.tail, tip.state, tip.memo) = (id, tail, None, 0);
            }
        }
        tip.batch = self.number;
        // True again only when this batch is committed.
        tip.generation = None;
        self.touched.push(place);
        Ok(Place(place))
    }

    fn make_place(&mut self, stream: &StreamName) -> usize {
        let tips = &mut *self.tips;
        let place = tips.tips.len();
        let (name, text) = (stream.clone(), stream.to_string());
        let (tail, state) = (Tail::EMPTY, None);
        tips.tips.push(Tip { name, text, id: None, tail, state, memo: 0, generation: None, batch: 0 });
        tips.index.insert(stream.clone(), place);
        place
    }

    /// The state of a stream, to be given back by [`Batch::folded`].
    pub(super) fn state(&mut self, place: Place) -> Result<F, LogError> {
        let tip = &mut self.tips.tips[place.0];
        if let Some(state) = tip.state.take() {
            return Ok(state);
        }
        if tip.id.is_none() {
            return Ok(F::empty(&tip.name));
        }
        let loaded = self.rows.load(&tip.name)?;
        (tip.tail, tip.memo) = (loaded.tail, loaded.memo);
        Ok(loaded.state)
    }

    /// Gives a stream its new state.
    pub(super) fn folded(&mut self, place: Place, state: F) {
        self.tips.tips[place.0].state = Some(state);
    }

    /// Writes an event that its stream's fold has taken.
    pub(super) fn write(&mut self, place: Place, event: &Incoming<'_>) -> Result<(), LogError> {
        let tip = &mut self.tips.tips[place.0];
        let stream = match tip.id {
            Some(id) => id,
            None => *tip.id.insert(self.rows.add_stream(&tip.name, &tip.text)?),
        };
        let (seq, version) = (self.head.seq.next(), tip.tail.version + 1);
        let Incoming { at_ms, kind, schema, body, event } = *event;
        let record = Content { stream: &tip.text, version, at_ms, kind, schema, body }.record(self.store);
        let chain = digest::link(&self.head.chain, &record);
        let stream_chain = digest::stream_link(&tip.tail.chain, &record);
        let row = Row { seq: seq.0, stream, version, at_ms, kind, schema, body, record, chain, stream_chain };
        self.rows.add_event(&row, event)?;
        tip.tail = row.tail();
        self.head = Anchor { seq, chain };
        Ok(())
    }

    /// Gives the log the id of the one that is imported.
    pub(super) fn rename(&mut self, store: StoreId) -> Result<(), LogError> {
        self.rows.rename(store)?;
        self.store = store;
        Ok(())
    }

    /// Writes the memos that are due, and ends.
    pub(super) fn end(mut self) -> Result<End, LogError> {
        for place in &self.touched {
            let tip = &mut self.tips.tips[*place];
            if let (Some(id), Some(state)) = (tip.id, &tip.state)
                && tip.tail.version - tip.memo >= MEMO_EVERY
            {
                self.rows.add_memo(id, &tip.text, tip.tail, state)?;
                tip.memo = tip.tail.version;
            }
        }
        Ok(End { head: self.head, current: self.current, touched: self.touched })
    }

    /// The place that the next event gets.
    pub(super) fn next(&self) -> Seq {
        self.head.seq.next()
    }
}
