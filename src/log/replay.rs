//! Typed, verified events one by one: up to the end as it was, or on and on as others append.
//!
//! Both read in pages, each in a read of its own that continues the digests of the one before it: memory does not grow with
//! the log (but for one entry a stream), nothing holds a WAL back between two events, and a consumer that stops for an hour
//! stops nobody.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

use super::cursor::Cursor;
use super::error::LogError;
use super::row::Recorded;
use super::{Fold, Records};
use crate::id::Seq;

/// How many events one read takes, and how many bytes of bodies.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1024 * 1024;

/// How often a log is looked at for new events.
const POLL: Duration = Duration::from_millis(20);

/// The events of a log from a place on, up to its end at the moment when the replay began. Ends after the first error.
///
/// ```
/// # use throughline::chain::fold::State;
/// # use throughline::event::FreshIntended;
/// # use throughline::id::Seq;
/// # use throughline::log::{Append, Entry, Expectation, Log as _, MemoryLog, Replay};
/// let log = MemoryLog::<State>::default();
/// let entry = |stream: &str| -> Result<Entry, throughline::id::IdError> {
///     let events = vec![FreshIntended { pane: None }.into()];
///     Ok(Entry { stream: stream.parse()?, expected: Expectation::Any, events })
/// };
/// log.append(&[entry("agent/a")?, entry("agent/b")?], &Append::at(0))?;
/// let mut streams = Vec::new();
/// for event in Replay::of(&log, Seq(1))? {
///     streams.push(event?.stream.to_string());
/// }
/// assert_eq!(streams, ["agent/a", "agent/b"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replay<'l, F> {
    pages: Pages<'l, F>,
    last: Seq,
}

impl<'l, F: Fold> Replay<'l, F> {
    /// From an event on; the first one is 1.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the log cannot be read.
    pub fn of(records: &'l dyn Records<F>, from: Seq) -> Result<Self, LogError> {
        Ok(Self { pages: Pages::new(records, from), last: records.anchor()?.seq })
    }
}

impl<F: Fold> Iterator for Replay<'_, F> {
    type Item = Result<Recorded, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.pages.next(self.last);
        if matches!(next, Some(Err(_))) {
            self.last = Seq(0);
        }
        next
    }
}

/// The events of a log from a place on, then those that anybody appends to it, in log order, each once.
///
/// As an iterator it waits for the next event and never ends. After an error it can be asked again: it stands where it was.
///
/// ```
/// # use std::time::Duration;
/// # use throughline::chain::fold::State;
/// # use throughline::event::FreshIntended;
/// # use throughline::id::Seq;
/// # use throughline::log::{Append, Entry, Expectation, Follow, Log as _, MemoryLog};
/// let log = MemoryLog::<State>::default();
/// let mut follow = Follow::of(&log, Seq(1));
/// assert!(follow.next_within(Duration::ZERO)?.is_none());
/// let events = vec![FreshIntended { pane: None }.into()];
/// log.append(&[Entry { stream: "agent/a".parse()?, expected: Expectation::Any, events }], &Append::at(0))?;
/// assert_eq!(follow.next_within(Duration::ZERO)?.map(|event| event.seq), Some(Seq(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Follow<'l, F> {
    pages: Pages<'l, F>,
}

impl<'l, F: Fold> Follow<'l, F> {
    /// From an event on, which may not be there yet; the first one is 1.
    #[must_use]
    pub fn of(records: &'l dyn Records<F>, from: Seq) -> Self {
        Self { pages: Pages::new(records, from) }
    }

    /// The next event; nothing where none came for so long.
    ///
    /// # Errors
    ///
    /// [`LogError`] as of [`Records::read`]; also where the log was replaced by another one, or by an older copy of itself.
    pub fn next_within(&mut self, wait: Duration) -> Result<Option<Recorded>, LogError> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(next) = self.pages.next(Seq(u64::MAX)) {
                return next.map(Some);
            }
            if waited >= wait {
                return Ok(None);
            }
            let pause = POLL.min(wait - waited);
            std::thread::sleep(pause);
            waited += pause;
        }
    }
}

impl<F: Fold> Iterator for Follow<'_, F> {
    type Item = Result<Recorded, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(next) = self.next_within(Duration::from_secs(60)).transpose() {
                return Some(next);
            }
        }
    }
}

/// Events that were read and not handed out yet, and where to read on.
struct Pages<'l, F> {
    records: &'l dyn Records<F>,
    cursor: Cursor,
    page: VecDeque<Recorded>,
    /// What ended the last page, once its events are handed out.
    failed: Option<LogError>,
}

impl<'l, F: Fold> Pages<'l, F> {
    fn new(records: &'l dyn Records<F>, from: Seq) -> Self {
        Self { records, cursor: Cursor::at(from), page: VecDeque::new(), failed: None }
    }

    /// The next event up to `last`; nothing at the end.
    fn next(&mut self, last: Seq) -> Option<Result<Recorded, LogError>> {
        if self.page.is_empty() && self.failed.is_none() && self.cursor.next() <= last {
            let (page, mut bytes) = (&mut self.page, 0);
            let read = self.records.read(&mut self.cursor, &mut |event| {
                bytes += event.body.len();
                let is_last = event.seq >= last;
                page.push_back(event);
                if is_last || page.len() >= PAGE || bytes >= PAGE_BYTES {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            self.failed = read.err();
        }
        match self.page.pop_front() {
            Some(event) => Some(Ok(event)),
            None => self.failed.take().map(Err),
        }
    }
}
