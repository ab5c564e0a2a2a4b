//! A walk through a log in pages, either way: memory is bounded by a page, nothing is held while a page is printed, and an
//! agent that has few of the events is read by its own streams alone.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use crate::chain::fold::State;
use crate::id::{AgentId, Seq, StreamName, Version};
use crate::log::{Cursor, LogError, Recorded, Records};

/// How many events one read takes.
pub(super) const PAGE: u64 = 1_024;

/// An event that is read by its stream costs up to so many times one that is read by the log.
const STREAM_COST: u64 = 3;

/// Which events are asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Of this agent; else of all.
    pub(super) agent: Option<AgentId>,
    /// Of these kinds; none: of all.
    pub(super) kinds: Vec<String>,
}

impl Wanted {
    pub(super) fn is_everything(&self) -> bool {
        self.agent.is_none() && self.kinds.is_empty()
    }

    pub(super) fn takes(&self, event: &Recorded) -> bool {
        self.agent.as_ref().is_none_or(|uid| event.stream.agent() == uid)
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| event.kind == kind))
    }
}

/// A part of the log, both ends in it; empty where it ends before it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) from: Seq,
    pub(super) until: Seq,
}

impl Part {
    fn len(self) -> u64 {
        (self.until.0 + 1).saturating_sub(self.from.0)
    }
}

/// Which way a walk goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Forward,
    Backward,
}

/// The wanted events of a part of a log, one by one. Ends after the first error; what lies before a damaged event on the
/// way is handed out before the error is.
pub(super) struct Walk<'a> {
    records: &'a dyn Records<State>,
    wanted: &'a Wanted,
    way: Way,
    lanes: Vec<Lane>,
    page: u64,
}

impl<'a> Walk<'a> {
    /// `page` says how many events one read takes: fewer, where fewer will be asked for.
    pub(super) fn new(
        records: &'a dyn Records<State>,
        wanted: &'a Wanted,
        part: Part,
        way: Way,
        page: u64,
    ) -> Result<Self, LogError> {
        let streams = wanted.agent.as_ref().map(|uid| lanes_of(records, uid, part));
        let lanes = match streams {
            Some(Ok(lanes)) if lanes.iter().map(Lane::len).sum::<u64>() <= part.len() / STREAM_COST => lanes,
            // Damage is reported where the log has it.
            None | Some(Ok(_) | Err(LogError::Damaged(_))) => vec![Lane::new(None, part.from.0, part.until.0)],
            Some(Err(error)) => return Err(error),
        };
        Ok(Self { records, wanted, way, lanes, page: page.clamp(1, PAGE) })
    }

    /// The next event on the way, wanted or not.
    fn step(&mut self) -> Option<Result<Recorded, LogError>> {
        for lane in &mut self.lanes {
            lane.fill(self.records, self.way, self.page);
            if lane.page.is_empty()
                && let Some(error) = lane.failed.take()
            {
                self.lanes.clear();
                return Some(Err(error));
            }
        }
        let next = |lane: &&mut Lane| match self.way {
            Way::Forward => lane.page.front().map(|event| event.seq.0),
            // The highest place is the lowest number here.
            Way::Backward => lane.page.front().map(|event| u64::MAX - event.seq.0),
        };
        let lane = self.lanes.iter_mut().filter(|lane| !lane.page.is_empty()).min_by_key(next)?;
        lane.page.pop_front().map(Ok)
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Recorded, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step()? {
                Ok(event) if !self.wanted.takes(&event) => {}
                other => return Some(other),
            }
        }
    }
}

/// Places in a row that are read in ranges: the log by seq, or a stream by version.
struct Lane {
    stream: Option<StreamName>,
    /// What was not read yet; nothing where the first is behind the last.
    first: u64,
    last: u64,
    cursor: Cursor,
    /// What was read and not handed out yet, in the order of the walk.
    page: VecDeque<Recorded>,
    /// What comes after the page.
    failed: Option<LogError>,
}

impl Lane {
    fn new(stream: Option<StreamName>, first: u64, last: u64) -> Self {
        let first = first.max(1);
        Self { stream, first, last, cursor: Cursor::at(Seq(first)), page: VecDeque::new(), failed: None }
    }

    fn len(&self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }

    fn fill(&mut self, records: &dyn Records<State>, way: Way, page: u64) {
        if !self.page.is_empty() || self.failed.is_some() || self.len() == 0 {
            return;
        }
        let count = self.len().min(page);
        match way {
            Way::Forward => {
                let last = self.first + count - 1;
                self.failed = self.read(records, self.first, last).err();
                self.first = last + 1;
            }
            Way::Backward => {
                let first = self.last + 1 - count;
                self.failed = self.read_behind_damage(records, first);
                self.page.make_contiguous().reverse();
                self.last = first - 1;
            }
        }
    }

    /// Reads from `first` to the last place that was not read. Where an event does not hold, only what comes after it
    /// is kept: a walk backwards comes to that first.
    fn read_behind_damage(&mut self, records: &dyn Records<State>, mut first: u64) -> Option<LogError> {
        let mut damage = None;
        while first <= self.last {
            match self.read(records, first, self.last) {
                Ok(()) => return damage,
                Err(error) => {
                    let is_damage = matches!(error, LogError::Damaged(_));
                    first += self.page.len() as u64 + 1;
                    self.page.clear();
                    damage = Some(error);
                    if !is_damage {
                        break;
                    }
                }
            }
        }
        damage
    }

    /// Reads a range, both ends in it. On an error the page holds what came before it.
    fn read(&mut self, records: &dyn Records<State>, first: u64, last: u64) -> Result<(), LogError> {
        let (page, by_version) = (&mut self.page, self.stream.is_some());
        let mut each = |event: Recorded| {
            let place = if by_version { event.version.0 } else { event.seq.0 };
            page.push_back(event);
            if place >= last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let Some(stream) = &self.stream else {
            if self.cursor.next() != Seq(first) {
                self.cursor = Cursor::at(Seq(first));
            }
            return records.read(&mut self.cursor, &mut each);
        };
        records.events_of(stream, Version(first), &mut each)
    }
}

/// The streams of an agent, as far as they lie in a part of the log.
fn lanes_of(records: &dyn Records<State>, uid: &AgentId, part: Part) -> Result<Vec<Lane>, LogError> {
    let mut lanes = Vec::new();
    for stream in [StreamName::Agent(uid.clone()), StreamName::Audit(uid.clone()), StreamName::Hook(uid.clone())] {
        let last = versions_until(records, &stream, part.until)?;
        let before = match part.from.0 {
            0 | 1 => 0,
            from => versions_until(records, &stream, Seq(from - 1))?,
        };
        lanes.push(Lane::new(Some(stream), before + 1, last));
    }
    Ok(lanes)
}

/// How many events of a stream lie at or before a place.
fn versions_until(records: &dyn Records<State>, stream: &StreamName, until: Seq) -> Result<u64, LogError> {
    let (mut low, mut high) = (0, records.frontier(stream)?.version.0);
    let mut middle = high;
    // Mostly it is all of them, so that is asked first.
    while low < high {
        match seq_of(records, stream, middle)? {
            Some(seq) if seq <= until => low = middle,
            Some(_) | None => high = middle - 1,
        }
        middle = low + (high - low).div_ceil(2);
    }
    Ok(low)
}

fn seq_of(records: &dyn Records<State>, stream: &StreamName, version: u64) -> Result<Option<Seq>, LogError> {
    let mut found = None;
    records.events_of(stream, Version(version), &mut |event| {
        found = Some(event.seq);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot build its log should stop")]

    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::event::{AgentDeclared, Event, FreshIntended, HookAnnounced};
    use crate::id::{ProviderName, SessionId};
    use crate::log::{Append, Entry, Expectation, Log as _, MemoryLog};

    fn event(family: &str, fresh: bool) -> Event {
        match (family, fresh) {
            ("hook", _) => {
                let session = SessionId::parse("s").unwrap();
                HookAnnounced { hook: "Stop".into(), session, cause: None, transcript: None, cwd: None }.into()
            }
            (_, true) => FreshIntended { pane: None }.into(),
            (_, false) => AgentDeclared { provider: ProviderName::parse("claude").unwrap(), forked_from: None }.into(),
        }
    }

    /// Agent `a` has most of the events, `b` a few, `c` none.
    fn log_of(events: &[(u8, bool, bool)]) -> MemoryLog<State> {
        let log = MemoryLog::default();
        for (agent, hook, fresh) in events {
            let family = if *hook { "hook" } else { "agent" };
            let uid = if *agent < 8 { "a" } else { "b" };
            let stream = format!("{family}/{uid}").parse().unwrap();
            let entry = Entry { stream, expected: Expectation::Any, events: vec![event(family, *fresh)] };
            log.append(&[entry], &Append::at(0)).unwrap();
        }
        log
    }

    fn walked(log: &MemoryLog<State>, wanted: &Wanted, part: Part, way: Way, page: u64) -> (Vec<Recorded>, bool) {
        let walk = Walk::new(log, wanted, part, way, page).unwrap();
        let by_streams = walk.lanes.iter().all(|lane| lane.stream.is_some());
        (walk.map(Result::unwrap).collect(), by_streams)
    }

    #[test]
    fn a_walk_hands_out_what_is_wanted_once_and_backwards_it_is_the_reverse() {
        let (by_streams, by_log) = (Cell::new(0), Cell::new(0));
        let events = prop::collection::vec((0..9_u8, any::<bool>(), any::<bool>()), 0..40);
        let kinds = ["fresh_intended", "hook_announced"].map(String::from);
        let kinds = prop::sample::subsequence(kinds.to_vec(), 0..=2);
        let agent = prop::sample::select(vec![None, Some("a"), Some("b"), Some("c")]);
        let inputs = (events, agent, kinds, 1..45_u64, 0..=40_u64, 1..6_u64);
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let law = runner.run(&inputs, |(events, agent, kinds, from, until, page)| {
            let log = log_of(&events);
            let wanted = Wanted { agent: agent.map(|uid| AgentId::parse(uid).unwrap()), kinds };
            let part = Part { from: Seq(from), until: Seq(until.min(events.len() as u64)) };
            let mut expected = Vec::new();
            log.events(Seq(1), &mut |event| {
                if wanted.takes(&event) && event.seq >= part.from && event.seq <= part.until {
                    expected.push(event);
                }
                ControlFlow::Continue(())
            })
            .unwrap();
            let (forward, streams) = walked(&log, &wanted, part, Way::Forward, page);
            prop_assert_eq!(&forward, &expected);
            let (mut backward, _) = walked(&log, &wanted, part, Way::Backward, page);
            backward.reverse();
            prop_assert_eq!(&backward, &expected);
            if !expected.is_empty() {
                let reached = if streams { &by_streams } else { &by_log };
                reached.set(reached.get() + 1);
            }
            Ok(())
        });
        law.unwrap();
        assert!(by_streams.get() > 5 && by_log.get() > 5, "{by_streams:?} {by_log:?}");
    }
}
