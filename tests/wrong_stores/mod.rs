//! A wrong store for every rule: a right one with one bug, of the kind that a first version of a store has.
//!
//! [`Wrong`] is a table row: the rule that has to catch it, the bug in words, and the calls that go another way than those
//! of the log in memory below. A bug shows only in the circumstances that its rule is about, so that no other rule minds it.

#![expect(clippy::wildcard_enum_match_arm, reason = "a wrong store minds only what its bug is about")]
#![expect(clippy::type_complexity, reason = "the types are those of the calls that a row replaces")]

mod appending;
mod helpers;
mod importing;
mod keeping;
mod reading;
mod repeating;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::ops::ControlFlow;
use std::rc::Rc;

use throughline::id::{Anchor, Frontier, IdempotencyKey, Seq, StoreId, StreamName, Version};
use throughline::log::conformance::{Bench, Tally};
use throughline::log::{
    Append, AppendError, Appended, Cause, Cursor, Entry, ExportError, Import, ImportError, Imported, Log, LogError,
    MemoryLog, Recorded, Records, Verification,
};

/// Every wrong store.
pub(crate) fn all() -> Vec<Wrong> {
    [appending::all(), repeating::all(), keeping::all(), reading::all(), importing::all()]
        .into_iter()
        .flatten()
        .collect()
}

type Each<'e> = dyn FnMut(Recorded) -> ControlFlow<()> + 'e;

/// A store with one bug: what it does in place of the log below.
#[derive(Clone, Copy)]
pub(crate) struct Wrong {
    pub(crate) rule: &'static str,
    pub(crate) bug: &'static str,
    append: fn(&Handle, &[Entry], &Append) -> Result<Appended, AppendError>,
    import: fn(&Handle, &str, Import, &mut dyn FnMut(u64)) -> Result<Imported, ImportError>,
    /// What it makes of an event on the way out.
    recorded: fn(&Handle, &mut Recorded),
    read: fn(&Handle, &mut Cursor, &mut Each<'_>) -> Result<(), LogError>,
    events: fn(&Handle, Seq, &mut Each<'_>) -> Result<(), LogError>,
    events_of: fn(&Handle, &StreamName, Version, &mut Each<'_>) -> Result<(), LogError>,
    store: fn(&Handle) -> StoreId,
    anchor: fn(&Handle) -> Result<Anchor, LogError>,
    frontier: fn(&Handle, &StreamName) -> Result<Frontier, LogError>,
    state: fn(&Handle, &StreamName) -> Result<(Frontier, Tally), LogError>,
    streams: fn(&Handle) -> Result<Vec<Frontier>, LogError>,
    verify: fn(&Handle, Option<Anchor>) -> Result<Verification, LogError>,
    /// What it makes of an export.
    text: fn(&Handle, String) -> String,
    /// Takes a read that fails for the end of a text.
    reads_on: bool,
    /// Takes a write that fails for one that did not.
    writes_on: bool,
}

impl Wrong {
    /// Nothing wrong yet.
    fn new(rule: &'static str, bug: &'static str) -> Self {
        Self {
            rule,
            bug,
            append: |it, entries, append| it.log.append(entries, append),
            import: |it, text, import, progress| it.log.import(&mut text.as_bytes(), &import, progress),
            recorded: |_, _| {},
            read: |it, cursor, each| it.plain_read(cursor, each),
            events: |it, from, each| it.read(&mut Cursor::at(from), each),
            events_of: |it, stream, from, each| it.log.events_of(stream, from, &mut |event| each(it.seen(event))),
            store: |it| it.log.store(),
            anchor: |it| it.log.anchor(),
            frontier: |it, stream| it.log.frontier(stream),
            state: |it, stream| it.log.state(stream),
            streams: |it| it.log.streams(),
            verify: |it, anchor| it.log.verify(anchor, &mut |_| {}),
            text: |_, text| text,
            reads_on: false,
            writes_on: false,
        }
    }

    pub(crate) fn bench(self, store: StoreId) -> Box<dyn Bench> {
        let log = MemoryLog::new(store);
        Box::new(Kept { wrong: self, log, shared: Rc::new(Shared { made: Some(store), ..Shared::default() }) })
    }
}

/// One log of a wrong store.
struct Kept {
    wrong: Wrong,
    log: MemoryLog<Tally>,
    shared: Rc<Shared>,
}

/// What all handles of one log share, for whatever a bug needs to remember.
#[derive(Default)]
struct Shared {
    made: Option<StoreId>,
    number: Cell<u64>,
    /// How often it was opened by a first writer.
    opened: Cell<u64>,
    flag: Cell<bool>,
    /// How many writers have it open.
    writers: Cell<u64>,
    places: RefCell<BTreeSet<u64>>,
    streams: RefCell<BTreeSet<StreamName>>,
    texts: RefCell<BTreeMap<u64, String>>,
    /// The first request of each key.
    requests: RefCell<BTreeMap<IdempotencyKey, (Vec<Entry>, Append, Appended)>>,
    keys: RefCell<BTreeSet<IdempotencyKey>>,
}

/// A handle on a log of a wrong store.
struct Handle {
    wrong: Wrong,
    log: MemoryLog<Tally>,
    shared: Rc<Shared>,
    is_reader: bool,
    /// Where the log ended when it was opened.
    opened: Seq,
    /// The keys that were used when it was opened, and its own.
    keys: RefCell<BTreeSet<IdempotencyKey>>,
    /// The places of its own events.
    own: RefCell<Vec<u64>>,
    /// What its own appends left of each stream.
    left: RefCell<BTreeMap<StreamName, (Version, Tally)>>,
    imported: Cell<bool>,
    /// It is inside a read, and knows it.
    reading: Cell<bool>,
}

impl Kept {
    fn open(&self, is_reader: bool) -> Handle {
        if !is_reader {
            if self.shared.writers.get() == 0 {
                self.shared.opened.set(self.shared.opened.get() + 1);
            }
            self.shared.writers.set(self.shared.writers.get() + 1);
        }
        let keys = self.shared.keys.borrow().clone();
        Handle {
            wrong: self.wrong,
            log: self.log.clone(),
            shared: Rc::clone(&self.shared),
            is_reader,
            opened: self.log.anchor().unwrap().seq,
            keys: RefCell::new(keys),
            own: RefCell::default(),
            left: RefCell::default(),
            imported: Cell::new(false),
            reading: Cell::new(false),
        }
    }
}

impl Bench for Kept {
    fn writer(&self) -> Result<Box<dyn Log<Tally>>, Cause> {
        Ok(Box::new(self.open(false)))
    }

    fn reader(&self) -> Result<Box<dyn Records<Tally>>, Cause> {
        Ok(Box::new(self.open(true)))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.is_reader {
            self.shared.writers.set(self.shared.writers.get() - 1);
        }
    }
}

impl Handle {
    fn seen(&self, mut event: Recorded) -> Recorded {
        (self.wrong.recorded)(self, &mut event);
        event
    }

    fn plain_read(&self, cursor: &mut Cursor, each: &mut Each<'_>) -> Result<(), LogError> {
        self.log.read(cursor, &mut |event| each(self.seen(event)))
    }

    /// Keeps in mind what an append did.
    fn note(&self, entries: &[Entry], append: &Append, appended: &Appended) {
        if let Some(first) = appended.first {
            self.own.borrow_mut().extend(first.0..=appended.anchor.seq.0);
        }
        for Entry { stream, .. } in entries {
            // Inside a read that lets appends in, the log can be looked at as ever.
            let (frontier, state) = self.log.state(stream).unwrap();
            self.left.borrow_mut().insert(stream.clone(), (frontier.version, state));
        }
        if let Some(key) = &append.key {
            self.keys.borrow_mut().insert(key.clone());
            self.shared.keys.borrow_mut().insert(key.clone());
            let request = (entries.to_vec(), append.clone(), appended.clone());
            self.shared.requests.borrow_mut().entry(key.clone()).or_insert(request);
        }
    }
}

impl Log<Tally> for Handle {
    fn records(&self) -> &dyn Records<Tally> {
        self
    }

    fn append(&self, entries: &[Entry], append: &Append) -> Result<Appended, AppendError> {
        // Inside a read that says so, or inside an import.
        if self.reading.get() || self.log.anchor().is_err() {
            return Err(AppendError::InsideRead);
        }
        let appended = (self.wrong.append)(self, entries, append)?;
        self.note(entries, append, &appended);
        Ok(appended)
    }

    fn import(
        &self,
        from: &mut dyn BufRead,
        import: &Import,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, ImportError> {
        let mut text = String::new();
        if let Err(source) = from.read_to_string(&mut text)
            && !self.wrong.reads_on
        {
            return Err(ImportError::Read { line: text.lines().count() as u64 + 1, source });
        }
        let imported = (self.wrong.import)(self, &text, *import, progress)?;
        self.imported.set(true);
        Ok(imported)
    }
}

impl Records<Tally> for Handle {
    fn store(&self) -> StoreId {
        (self.wrong.store)(self)
    }

    fn anchor(&self) -> Result<Anchor, LogError> {
        (self.wrong.anchor)(self)
    }

    fn frontier(&self, stream: &StreamName) -> Result<Frontier, LogError> {
        (self.wrong.frontier)(self, stream)
    }

    fn state(&self, stream: &StreamName) -> Result<(Frontier, Tally), LogError> {
        (self.wrong.state)(self, stream)
    }

    fn streams(&self) -> Result<Vec<Frontier>, LogError> {
        (self.wrong.streams)(self)
    }

    fn read(&self, cursor: &mut Cursor, each: &mut Each<'_>) -> Result<(), LogError> {
        self.log.anchor()?;
        (self.wrong.read)(self, cursor, each)
    }

    fn events_of(&self, stream: &StreamName, from: Version, each: &mut Each<'_>) -> Result<(), LogError> {
        (self.wrong.events_of)(self, stream, from, each)
    }

    fn verify(&self, anchor: Option<Anchor>, _: &mut dyn FnMut(Seq)) -> Result<Verification, LogError> {
        (self.wrong.verify)(self, anchor)
    }

    fn export(&self, to: &mut dyn Write, progress: &mut dyn FnMut(Seq)) -> Result<Anchor, ExportError> {
        let mut text = Vec::new();
        let anchor = self.log.export(&mut text, progress)?;
        let text = (self.wrong.text)(self, String::from_utf8(text).unwrap());
        match to.write_all(text.as_bytes()) {
            Err(error) if !self.wrong.writes_on => Err(ExportError::Write(error)),
            Ok(()) | Err(_) => Ok(anchor),
        }
    }

    fn events(&self, from: Seq, each: &mut Each<'_>) -> Result<(), LogError> {
        (self.wrong.events)(self, from, each)
    }
}
