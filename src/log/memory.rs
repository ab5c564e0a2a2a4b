//! A log in memory: the same rules as on a disk, and nothing that outlives the process.
//!
//! For tests, and for whoever simulates many writers: clones are handles on one log.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use super::batch::{Batch, Loaded, Receipt, Rows, Tips};
use super::cursor::Cursor;
use super::error::{Damage, LogError, Problem, not_the_beginning};
use super::export::{self, ExportError};
use super::import::{self, Import, ImportError, Imported};
use super::request::{Append, AppendError, Appended, Entry, Request};
use super::row::{Recorded, Row, Tail};
use super::verification::Verification;
use super::{Fold, Log, Records};
use crate::event::Event;
use crate::id::{Anchor, Digest, Frontier, IdempotencyKey, Seq, StoreId, StreamName, Version};

/// A log in memory. A clone is another handle on the same log.
///
/// ```
/// use throughline::chain::fold::State;
/// use throughline::event::FreshIntended;
/// use throughline::log::{Append, Entry, Expectation, Log as _, MemoryLog, Records as _};
///
/// let log = MemoryLog::<State>::default();
/// let other = log.clone();
/// let events = vec![FreshIntended { pane: None }.into()];
/// let entry = Entry { stream: "agent/marks".parse()?, expected: Expectation::Any, events };
/// let appended = log.append(&[entry], &Append::at(0))?;
/// assert_eq!(other.anchor()?, appended.anchor);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryLog<F> {
    /// The id as of the last commit; `kept` has the one that an import is about to give it.
    store: Rc<Cell<StoreId>>,
    kept: Rc<RefCell<Kept>>,
    tips: Rc<RefCell<Tips<F>>>,
}

impl<F> Clone for MemoryLog<F> {
    fn clone(&self) -> Self {
        Self { store: Rc::clone(&self.store), kept: Rc::clone(&self.kept), tips: Rc::clone(&self.tips) }
    }
}

impl<F> Default for MemoryLog<F> {
    fn default() -> Self {
        Self::new(StoreId(uuid::Uuid::new_v4()))
    }
}

impl<F> MemoryLog<F> {
    /// An empty log of this id.
    #[must_use]
    pub fn new(store: StoreId) -> Self {
        let kept =
            Kept { store, events: Vec::new(), streams: Vec::new(), names: BTreeMap::new(), receipts: BTreeMap::new() };
        Self { store: Rc::new(Cell::new(store)), kept: Rc::new(RefCell::new(kept)), tips: Rc::new(RefCell::default()) }
    }

    /// What is committed. Inside an import nobody can tell that from what is not.
    fn kept(&self) -> Result<Ref<'_, Kept>, LogError> {
        self.kept.try_borrow().map_err(|_| LogError::Busy("an import into this log goes on".into()))
    }
}

#[derive(Debug)]
struct Kept {
    store: StoreId,
    /// In log order: the event of place 1 first.
    events: Vec<Recorded>,
    streams: Vec<Stream>,
    names: BTreeMap<Arc<StreamName>, usize>,
    receipts: BTreeMap<IdempotencyKey, Receipt>,
}

#[derive(Debug)]
struct Stream {
    name: Arc<StreamName>,
    /// The places of its events: version 1 first.
    places: Vec<usize>,
}

impl Kept {
    fn head(&self) -> Anchor {
        match self.events.last() {
            Some(event) => Anchor { seq: event.seq, chain: event.chain },
            None => Anchor { seq: Seq(0), chain: Digest::GENESIS },
        }
    }

    fn number(&self, stream: &StreamName) -> Option<usize> {
        self.names.get(stream).copied()
    }

    /// Whether this is the log that a cursor read before.
    fn continues(&self, cursor: &Cursor) -> Result<(), LogError> {
        let (Some(chain), head) = (cursor.chain, self.head()) else { return Ok(()) };
        let anchor = Anchor { seq: Seq(cursor.next - 1), chain };
        let before = usize::try_from(anchor.seq.0).unwrap_or(usize::MAX).checked_sub(1);
        match before.map(|place| self.events.get(place)) {
            Some(None) => {
                let damage = Damage::CutOff { known: anchor.to_string(), last: head.seq };
                Err(Problem::at(head.seq.next().0, damage).into())
            }
            Some(Some(event)) if event.chain != chain => {
                Err(Problem::at(anchor.seq.0, Damage::OtherHistory { anchor }).into())
            }
            Some(Some(_)) | None => Ok(()),
        }
    }

    /// The events of a stream, in order.
    fn of(&self, stream: &StreamName) -> impl DoubleEndedIterator<Item = &Recorded> {
        let places = self.number(stream).map_or(&[][..], |number| &self.streams[number].places);
        places.iter().map(|place| &self.events[*place])
    }

    fn tail(&self, stream: &StreamName) -> Tail {
        self.of(stream).next_back().map_or(Tail::EMPTY, tail_of)
    }

    fn row<'r>(&self, event: &'r Recorded) -> Row<'r> {
        Row {
            seq: event.seq.0,
            stream: self.number(&event.stream).and_then(|number| i64::try_from(number).ok()).unwrap_or(-1),
            version: event.version.0,
            at_ms: event.at_ms,
            kind: event.kind,
            schema: event.schema,
            body: &event.body,
            record: event.record,
            chain: event.chain,
            stream_chain: event.stream_chain,
        }
    }
}

fn tail_of(event: &Recorded) -> Tail {
    Tail { version: event.version.0, chain: event.stream_chain }
}

impl<F: Fold> Records<F> for MemoryLog<F> {
    fn store(&self) -> StoreId {
        self.store.get()
    }

    fn anchor(&self) -> Result<Anchor, LogError> {
        Ok(self.kept()?.head())
    }

    fn frontier(&self, stream: &StreamName) -> Result<Frontier, LogError> {
        Ok(self.kept()?.tail(stream).of(stream))
    }

    fn state(&self, stream: &StreamName) -> Result<(Frontier, F), LogError> {
        let kept = self.kept()?;
        let mut state = F::empty(stream);
        for event in kept.of(stream) {
            event.fold_into(&mut state)?;
        }
        Ok((kept.tail(stream).of(stream), state))
    }

    fn streams(&self) -> Result<Vec<Frontier>, LogError> {
        let kept = self.kept()?;
        Ok(kept.names.keys().map(|name| kept.tail(name).of(name)).collect())
    }

    fn read(&self, cursor: &mut Cursor, each: &mut dyn FnMut(Recorded) -> ControlFlow<()>) -> Result<(), LogError> {
        let kept = self.kept()?;
        let place = usize::try_from(cursor.next().0 - 1).unwrap_or(usize::MAX);
        kept.continues(cursor)?;
        for event in kept.events.iter().skip(place) {
            cursor.pass(event.seq, event.chain);
            if each(event.clone()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn events_of(
        &self,
        stream: &StreamName,
        from: Version,
        each: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let kept = self.kept()?;
        let mut events = kept.of(stream).filter(|event| event.version >= from).cloned();
        // It ends at the end or where `each` wants it to.
        let _: ControlFlow<()> = events.try_for_each(each);
        Ok(())
    }

    fn verify(&self, anchor: Option<Anchor>, progress: &mut dyn FnMut(Seq)) -> Result<Verification, LogError> {
        let kept = self.kept()?;
        let mut end = Anchor { seq: Seq(0), chain: Digest::GENESIS };
        let mut states: BTreeMap<&StreamName, (Tail, F)> = BTreeMap::new();
        let mut problems: Vec<Problem> = anchor.and_then(not_the_beginning).into_iter().collect();
        for event in &kept.events {
            let (tail, state) = states.entry(&event.stream).or_insert_with(|| (Tail::EMPTY, F::empty(&event.stream)));
            let fault = kept.row(event).fault(kept.store, &event.stream.to_string(), &end.chain, tail);
            let applied = if fault.is_some() {
                Err(Problem::at(event.seq.0, Damage::Edited).of(&event.stream).into())
            } else {
                event.fold_into(state)
            };
            if let Err(LogError::Damaged(problem)) = applied {
                problems.push(*problem);
                break;
            }
            *tail = tail_of(event);
            end = Anchor { seq: event.seq, chain: event.chain };
            if let Some(anchor) = anchor.filter(|anchor| anchor.seq == end.seq && *anchor != end) {
                problems.push(Problem::at(end.seq.0, Damage::OtherHistory { anchor }));
                break;
            }
        }
        progress(end.seq);
        if let Some(known) = anchor.filter(|known| known.seq > end.seq && problems.is_empty()) {
            let damage = Damage::CutOff { known: known.to_string(), last: end.seq };
            problems.push(Problem::at(end.seq.next().0, damage));
        }
        Ok(Verification { problems, ..Verification::sound(kept.store, end, states.len() as u64) })
    }

    fn export(&self, to: &mut dyn Write, progress: &mut dyn FnMut(Seq)) -> Result<Anchor, ExportError> {
        let kept = self.kept()?;
        let anchor = kept.head();
        export::header(to, kept.store, &anchor).map_err(ExportError::Write)?;
        for event in &kept.events {
            progress(event.seq);
            export::line(to, &kept.row(event), &event.stream).map_err(ExportError::Write)?;
        }
        to.flush().map(|()| anchor).map_err(ExportError::Write)
    }
}

impl<F: Fold> Log<F> for MemoryLog<F> {
    fn records(&self) -> &dyn Records<F> {
        self
    }

    fn append(&self, entries: &[Entry], append: &Append) -> Result<Appended, AppendError> {
        let request = Request::new(entries, append)?;
        self.write_in(|batch| batch.append(&request, append))
    }

    fn import(
        &self,
        from: &mut dyn BufRead,
        import: &Import,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, ImportError> {
        self.write_in(|batch| import::import(batch, from, import, progress))
    }
}

impl<F: Fold> MemoryLog<F> {
    fn write_in<T, E: From<AppendError> + From<LogError>>(
        &self,
        write: impl FnOnce(&mut Batch<'_, F, Draft<'_>>) -> Result<T, E>,
    ) -> Result<T, E> {
        // One of them is borrowed inside a callback of a read or an import.
        let (Ok(mut tips), Ok(mut kept)) = (self.tips.try_borrow_mut(), self.kept.try_borrow_mut()) else {
            return Err(AppendError::InsideRead.into());
        };
        let (store, events, streams) = (kept.store, kept.events.len(), kept.streams.len());
        let draft = Draft(&mut kept);
        let mut batch = Batch::new(draft, store, &mut tips)?;
        let written = write(&mut batch).and_then(|value| Ok((value, batch.end()?)));
        match written {
            Ok((value, end)) => {
                self.store.set(kept.store);
                tips.keep(end);
                Ok(value)
            }
            Err(error) => {
                kept.undo(store, events, streams);
                Err(error)
            }
        }
    }
}

/// The log with what a batch has added so far; taken back where the batch fails. The receipt is the last thing that a batch
/// adds, so there is none to take back.
struct Draft<'k>(&'k mut Kept);

impl Kept {
    /// Takes back what was added.
    fn undo(&mut self, store: StoreId, events: usize, streams: usize) {
        self.store = store;
        self.events.truncate(events);
        for stream in self.streams.drain(streams..) {
            self.names.remove(&stream.name);
        }
        for stream in &mut self.streams {
            let kept = stream.places.partition_point(|place| *place < events);
            stream.places.truncate(kept);
        }
    }
}

impl<F: Fold> Rows<F> for Draft<'_> {
    fn head(&self) -> Result<Anchor, LogError> {
        Ok(self.0.head())
    }

    fn end_of(&self, stream: &str) -> Result<(Option<i64>, Tail), LogError> {
        let Ok(stream) = stream.parse::<StreamName>() else { return Ok((None, Tail::EMPTY)) };
        let number = self.0.number(&stream).and_then(|number| i64::try_from(number).ok());
        Ok((number, self.0.tail(&stream)))
    }

    fn load(&self, stream: &StreamName) -> Result<Loaded<F>, LogError> {
        let mut state = F::empty(stream);
        for event in self.0.of(stream) {
            event.fold_into(&mut state)?;
        }
        Ok(Loaded { tail: self.0.tail(stream), state, memo: 0 })
    }

    fn add_stream(&mut self, stream: &StreamName, _: &str) -> Result<i64, LogError> {
        let (name, number) = (Arc::new(stream.clone()), self.0.streams.len());
        self.0.streams.push(Stream { name: Arc::clone(&name), places: Vec::new() });
        self.0.names.insert(name, number);
        Ok(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn add_event(&mut self, row: &Row<'_>, event: &Event) -> Result<(), LogError> {
        let number = usize::try_from(row.stream).unwrap_or(usize::MAX);
        let Some(stream) = self.0.streams.get_mut(number) else {
            return Err(Problem::at(row.seq, Damage::NoStream { id: row.stream }).into());
        };
        stream.places.push(self.0.events.len());
        self.0.events.push(Recorded::with(row, &stream.name, event.clone()));
        Ok(())
    }

    fn add_memo(&mut self, _: i64, _: &str, _: Tail, _: &F) -> Result<(), LogError> {
        Ok(())
    }

    fn receipt(&self, key: &IdempotencyKey) -> Result<Option<Receipt>, LogError> {
        Ok(self.0.receipts.get(key).cloned())
    }

    fn add_receipt(&mut self, key: &IdempotencyKey, receipt: &Receipt) -> Result<(), LogError> {
        self.0.receipts.insert(key.clone(), receipt.clone());
        Ok(())
    }

    fn chain_at(&self, seq: u64) -> Result<Option<Digest>, LogError> {
        let place = usize::try_from(seq).unwrap_or(usize::MAX).wrapping_sub(1);
        Ok(self.0.events.get(place).map(|event| event.chain))
    }

    fn tail_until(&self, stream: &StreamName, last: u64) -> Result<Tail, LogError> {
        Ok(self.0.of(stream).rev().find(|event| event.seq.0 <= last).map_or(Tail::EMPTY, tail_of))
    }

    fn rename(&mut self, store: StoreId) -> Result<(), LogError> {
        self.0.store = store;
        Ok(())
    }
}
