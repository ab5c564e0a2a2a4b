//! The log: what happened, in order, once.
//!
//! - [`Log`] is the door that everything else writes through: appends are all or nothing over several streams. [`Records`]
//!   is what can be read. A type parameter says what the events of a stream amount to: a [`Fold`].
//! - [`SqliteLog`] keeps it on a disk, durable when an append returns, for many processes at once; [`Reader`] reads the
//!   same file and changes nothing. [`MemoryLog`] keeps it in memory by the same rules.
//! - [`Replay`] and [`Follow`] read typed, verified events one by one with constant memory.
//! - With the feature `conformance`, the module of that name holds the rules that every store keeps, as a suite for one of
//!   your own. What such a store hands out is made with [`Recorded::next`], [`Cursor::pass`], [`Problem::new`] and
//!   [`Verification::sound`].
//!
//! Every event is stored as canonical bytes with a digest bound to store and stream, and two chains: one over the log
//! ([`Anchor`]), one over each stream ([`Frontier`]). [`Records::verify`] refolds everything and names the first event
//! that does not hold. [`Records::export`] writes it as text, [`Log::import`] takes it back.
//!
//! What the events mean is not known here. Order is log order; the wall clock is recorded for people and decides nothing.
//! Nothing is ever deleted from a log.

mod batch;
#[cfg(feature = "conformance")]
pub mod conformance;
mod cursor;
mod digest;
mod error;
mod export;
mod import;
mod memory;
mod replay;
mod request;
mod row;
mod sqlite;
mod verification;

use std::io::{BufRead, Write};
use std::ops::ControlFlow;

pub use self::cursor::Cursor;
pub use self::error::{Cause, Class, Damage, LogError, Problem};
pub use self::export::ExportError;
pub use self::import::{Import, ImportError, Imported, LINE_BYTES_MAX, LineError, Mode};
pub use self::memory::MemoryLog;
pub use self::replay::{Follow, Replay};
pub use self::request::{Append, AppendError, Appended, BODY_BYTES_MAX, Entry, Expectation};
pub use self::row::Recorded;
pub use self::sqlite::{
    Journal, OpenError, Opening, Reader, SqliteLog, SqliteRecords, WAL_BYTES_AT_APPEND, WAL_BYTES_AT_OPEN,
};
pub use self::verification::{Note, Verification};
use crate::event::Event;
use crate::id::{Anchor, Frontier, Seq, StoreId, StreamName, Version};

/// What a stream's events amount to.
///
/// One type folds every stream of a log. The log asks it before each append, so that no illegal event is ever stored, and
/// keeps its state as a memo.
pub trait Fold: Clone + 'static {
    /// The number of these rules and of [`Fold::encode`]'s bytes: a memo of another number is not used.
    const VERSION: u32;

    /// Why an event is not allowed.
    type Illegal: std::error::Error + Send + Sync + 'static;

    /// The state of a stream without events.
    fn empty(stream: &StreamName) -> Self;

    /// Fills in what a hand-written event leaves out and only the fold knows. Asked by an unverified import alone.
    #[must_use]
    fn complete(&self, event: Event) -> Event {
        event
    }

    /// The fence: whether the writer of this event may still write. Asked at an append, not at replay and not of an
    /// unverified import.
    ///
    /// # Errors
    ///
    /// [`Fold::Illegal`] for an event of a lease that is over.
    fn admit(&self, event: &Event) -> Result<(), Self::Illegal>;

    /// Takes an event in.
    ///
    /// # Errors
    ///
    /// [`Fold::Illegal`] for an event that cannot follow this state; the state is not used again then.
    fn apply(&mut self, event: &Event) -> Result<(), Self::Illegal>;

    /// The state as bytes, for the memo. Equal states give equal bytes.
    fn encode(&self) -> Vec<u8>;

    /// The state that bytes say; nothing where they are none of this version's.
    fn decode(stream: &StreamName, bytes: &[u8]) -> Option<Self>;
}

/// What can be read from a log. Nothing here writes an event or a memo.
///
/// Every call sees one moment of the log, whatever others append meanwhile, and never one that is older than what was
/// committed when it began. What is handed out was checked as far as it was read: a whole history only by
/// [`Records::verify`].
pub trait Records<F: Fold> {
    /// Which log this is: every digest in it is bound to this id.
    fn store(&self) -> StoreId;

    /// The state of the whole log: its last event's place, and the digest over everything up to it.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the log cannot be read.
    fn anchor(&self) -> Result<Anchor, LogError>;

    /// The last event of a stream, and the digest over all of them; version 0 where there is none.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the log cannot be read.
    fn frontier(&self, stream: &StreamName) -> Result<Frontier, LogError>;

    /// What a stream's events amount to, and the frontier that this rests on.
    ///
    /// Events that a memo does not cover are checked: each one's record, and both chains against the event before it.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] names the first event that does not hold, that this version cannot read, or that the fold
    /// refuses; nothing is skipped.
    fn state(&self, stream: &StreamName) -> Result<(Frontier, F), LogError>;

    /// Every stream's frontier, in the order of their names.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the log cannot be read, or a stream's name is not one.
    fn streams(&self) -> Result<Vec<Frontier>, LogError>;

    /// Hands out the events at and after `cursor`, in log order, each checked, until `each` breaks or the log ends, and
    /// moves the cursor behind the last one.
    ///
    /// Constant memory but for one entry in the cursor for each stream met. What comes before the place at which a cursor
    /// began is taken on the word of its chain.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] names the first event that does not hold or cannot be read by this version; those before it
    /// were handed out, and the cursor stands at it. [`LogError::Changed`] only where the log lies on a medium without
    /// locks and was written meanwhile.
    fn read(&self, cursor: &mut Cursor, each: &mut dyn FnMut(Recorded) -> ControlFlow<()>) -> Result<(), LogError>;

    /// As [`Records::read`], one stream only and from a version on.
    ///
    /// # Errors
    ///
    /// As [`Records::read`].
    fn events_of(
        &self,
        stream: &StreamName,
        from: Version,
        each: &mut dyn FnMut(Recorded) -> ControlFlow<()>,
    ) -> Result<(), LogError>;

    /// Refolds the whole log and looks at every row of it, in one read.
    ///
    /// With an anchor it also says whether this is the history that the anchor was taken of, or one that was cut off.
    /// Memory: one state for each stream. `progress` is told the place that has been reached, now and then.
    ///
    /// # Errors
    ///
    /// What is wrong with the log is in [`Verification::problems`]; a [`LogError`] is only what kept it from being read,
    /// [`LogError::Corrupt`] when that is the store's own structures.
    fn verify(&self, anchor: Option<Anchor>, progress: &mut dyn FnMut(Seq)) -> Result<Verification, LogError>;

    /// Writes the whole log as NDJSON, and gives the anchor of what it wrote. One moment of the log, constant memory.
    ///
    /// Events are checked as they are read, but not decoded: what this version cannot read, it can still export.
    /// `progress` is told the place of each event that was written.
    ///
    /// # Errors
    ///
    /// [`ExportError`]; what was written by then is a beginning that [`Log::import`] refuses.
    fn export(&self, to: &mut dyn Write, progress: &mut dyn FnMut(Seq)) -> Result<Anchor, ExportError>;

    /// [`Records::read`] from a place on.
    ///
    /// # Errors
    ///
    /// As [`Records::read`].
    fn events(&self, from: Seq, each: &mut dyn FnMut(Recorded) -> ControlFlow<()>) -> Result<(), LogError> {
        self.read(&mut Cursor::at(from), each)
    }
}

/// A log that can be appended to: the one door through which anything is written.
pub trait Log<F: Fold> {
    /// What can be read, by this writer: at least everything that it appended.
    fn records(&self) -> &dyn Records<F>;

    /// Appends events to one or more streams: all of them, or nothing.
    ///
    /// # Errors
    ///
    /// [`AppendError`]; nothing of the request is in the log, but for [`AppendError::UnknownCommit`].
    ///
    /// # Crash
    ///
    /// Once this returned, the events survive whatever the store survives: with [`SqliteLog`], a power cut. One inside
    /// leaves all of them or none; a request with a key tells which when it is repeated.
    fn append(&self, entries: &[Entry], append: &Append) -> Result<Appended, AppendError>;

    /// Imports a text in one transaction: all of it, or nothing. Blank lines are skipped. `progress` is told each line.
    ///
    /// Others cannot write until it returns: give it a file, or what is in memory, rather than a pipe that may stop.
    ///
    /// # Errors
    ///
    /// [`ImportError`] names the first line that cannot be taken and why. Nothing was stored, but for
    /// [`AppendError::UnknownCommit`].
    ///
    /// # Crash
    ///
    /// As with [`Log::append`]: all of it or nothing.
    fn import(
        &self,
        from: &mut dyn BufRead,
        import: &Import,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, ImportError>;
}
