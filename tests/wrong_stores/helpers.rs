//! What several wrong stores need to know of the log below.

use std::ops::ControlFlow;

use throughline::event::{AgentEvent, Event};
use throughline::id::{Digest, Frontier, Seq, StreamName};
use throughline::log::conformance::Tally;
use throughline::log::{Append, AppendError, Appended, Cursor, Entry, Expectation, Fold as _, Recorded, Records};

use super::Handle;

/// Every event of the log below.
pub(super) fn every(records: &dyn Records<Tally>) -> Vec<Recorded> {
    let mut events = Vec::new();
    records
        .read(&mut Cursor::at(Seq(1)), &mut |event| {
            events.push(event);
            ControlFlow::Continue(())
        })
        .unwrap();
    events
}

/// The end of a stream as it was at a version.
pub(super) fn once(it: &Handle, stream: &StreamName, version: u64) -> Option<Frontier> {
    let event = every(&it.log).into_iter().find(|event| *event.stream == *stream && event.version.0 == version)?;
    Some(Frontier { stream: stream.clone(), version: event.version, chain: event.stream_chain })
}

/// The chain of the log at a place.
pub(super) fn chain_at(it: &Handle, seq: u64) -> Digest {
    every(&it.log).into_iter().find(|event| event.seq.0 == seq).map_or(Digest::GENESIS, |event| event.chain)
}

/// The event with other digests: as if these had been the id, the chain and the end of the stream before it.
pub(super) fn made_of(event: &Recorded, store: u128, chain: Digest, version: u64) -> Recorded {
    let store = throughline::id::StoreId(uuid::Uuid::from_u128(store));
    let log = throughline::id::Anchor { seq: Seq(event.seq.0 - 1), chain };
    let version = throughline::id::Version(version);
    let stream = Frontier { stream: (*event.stream).clone(), version, chain: Digest::GENESIS };
    Recorded::next(store, &log, &stream, event.at_ms, event.event.clone()).unwrap()
}

pub(super) fn epoch_of(event: &Event) -> Option<u64> {
    if let Event::Agent(AgentEvent::SegmentEnded(ended)) = event { Some(ended.epoch.0) } else { None }
}

/// The entries with other expectations.
pub(super) fn expecting(entries: &[Entry], of: impl Fn(&Entry) -> Option<Expectation>) -> Vec<Entry> {
    let changed = |entry: &Entry| Entry { expected: of(entry).unwrap_or(entry.expected.clone()), ..entry.clone() };
    entries.iter().map(changed).collect()
}

/// The entries without expectations.
pub(super) fn unconditional(entries: &[Entry]) -> Vec<Entry> {
    expecting(entries, |_| Some(Expectation::Any))
}

pub(super) fn unkeyed(append: &Append) -> Append {
    Append { key: None, ..append.clone() }
}

pub(super) fn events_in(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.events.len()).sum()
}

/// How many events a stream has.
pub(super) fn count(it: &Handle, stream: &StreamName) -> u64 {
    it.log.frontier(stream).unwrap().version.0
}

/// The first event that the present states do not take, as its refusal.
pub(super) fn refusal(it: &Handle, entries: &[Entry], fence: bool) -> Option<AppendError> {
    for Entry { stream, events, .. } in entries {
        let mut state = it.log.state(stream).unwrap().1;
        for (index, event) in events.iter().enumerate() {
            let admitted = if fence { state.admit(event) } else { Ok(()) };
            if let Err(source) = admitted.and_then(|()| state.apply(event)) {
                let (stream, kind, source) = (stream.clone(), event.kind(), Box::new(source));
                return Some(AppendError::Illegal { stream, index, kind, source });
            }
        }
    }
    None
}

/// Appends below, and gives the answer with whether it is that of an earlier request.
pub(super) fn repeated(it: &Handle, entries: &[Entry], append: &Append) -> Result<(Appended, bool), AppendError> {
    use throughline::log::Log as _;
    let before = it.log.anchor().unwrap().seq;
    let appended = it.log.append(entries, append)?;
    let again = appended.first.is_some_and(|first| first <= before);
    Ok((appended, again))
}
