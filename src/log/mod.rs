//! The log: what happened, in order, once, on SQLite.
//!
//! - [`Log`] appends: all or nothing over several streams, durable when it returns.
//! - [`Reader`] reads and changes nothing. [`Records`] is what both can be asked.
//! - Every event is stored as canonical bytes with a digest bound to store and stream, and two chains: one over the log
//!   ([`Anchor`](crate::id::Anchor)), one over each stream ([`Frontier`](crate::id::Frontier)). [`Records::verify`]
//!   refolds everything and names the first event that does not hold.
//! - [`Records::export`] writes it as text, [`Log::import`] takes it back.
//!
//! What the events mean is not known here: that is a [`Fold`], which a caller brings. Order is log order; the wall clock is
//! recorded for people and decides nothing. Nothing is ever deleted from a log.

mod append;
mod batch;
mod connect;
mod digest;
mod error;
mod export;
mod import;
mod memo;
mod open;
mod place;
mod read;
mod row;
mod schema;
mod verify;

pub use self::append::{Append, AppendError, Appended, BODY_BYTES_MAX, Entry, Expectation};
pub use self::error::{Class, Damage, LogError, Problem};
pub use self::export::ExportError;
pub use self::import::{Import, ImportError, Imported, LINE_BYTES_MAX, LineError, Mode};
pub use self::open::{Journal, Log, OpenError, Opening, Reader, WAL_BYTES_AT_APPEND, WAL_BYTES_AT_OPEN};
pub use self::read::Records;
pub use self::row::Recorded;
pub use self::verify::{Note, Verification};
use crate::event::Event;
use crate::id::StreamName;

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
