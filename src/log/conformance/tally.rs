//! What the events of the suite amount to: little enough to say in a sentence what a state has to be.

use crate::event::{AgentEvent, Event, FreshIntended, SegmentEnded};
use crate::id::{Epoch, StreamName};
use crate::log::Fold;

/// Counts a stream's events and knows the highest epoch among them.
///
/// One event is illegal, a `fresh_intended` for the pane `never`. The fence keeps out a `segment_ended` of an epoch below
/// the highest one. A hand-written `segment_ended` without an epoch is completed to the highest one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Tally {
    /// How many events.
    pub events: u64,
    /// The highest epoch.
    pub epoch: u64,
}

/// Why an event is not allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotLegal {
    /// The pane is called `never`.
    #[error("never means never")]
    Never,
    /// The epoch is below the highest one.
    #[error("the lease {found} is over, {highest} was seen")]
    Stale {
        /// The event's.
        found: u64,
        /// The highest one.
        highest: u64,
    },
}

fn epoch_of(event: &Event) -> Option<u64> {
    if let Event::Agent(AgentEvent::SegmentEnded(ended)) = event { Some(ended.epoch.0) } else { None }
}

impl Fold for Tally {
    const VERSION: u32 = 1;
    type Illegal = NotLegal;

    fn empty(_: &StreamName) -> Self {
        Self::default()
    }

    fn complete(&self, event: Event) -> Event {
        if let Event::Agent(AgentEvent::SegmentEnded(ended)) = &event
            && ended.epoch.0 == 0
        {
            return SegmentEnded { epoch: Epoch(self.epoch), ..ended.clone() }.into();
        }
        event
    }

    fn admit(&self, event: &Event) -> Result<(), NotLegal> {
        match epoch_of(event) {
            Some(found) if found < self.epoch => Err(NotLegal::Stale { found, highest: self.epoch }),
            Some(_) | None => Ok(()),
        }
    }

    fn apply(&mut self, event: &Event) -> Result<(), NotLegal> {
        if let Event::Agent(AgentEvent::FreshIntended(FreshIntended { pane: Some(pane) })) = event
            && pane.as_str() == "never"
        {
            return Err(NotLegal::Never);
        }
        self.events += 1;
        self.epoch = self.epoch.max(epoch_of(event).unwrap_or(0));
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        [self.events.to_le_bytes(), self.epoch.to_le_bytes()].concat()
    }

    fn decode(_: &StreamName, bytes: &[u8]) -> Option<Self> {
        let (events, epoch) = bytes.split_at_checked(8)?;
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        Some(Self { events: number(events)?, epoch: number(epoch)? })
    }
}
