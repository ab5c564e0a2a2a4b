//! How far a reading of the log has come.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::row::{Named, Row, Tail};
use crate::id::{Digest, Seq};

/// A place between two events of one log: what comes next, and the digest over what came before.
///
/// [`Records::read`](super::Records::read) moves it. What it reads after a pause is checked against what it read before it,
/// so a cursor that is used on another log, or after the log was replaced, finds damage instead of reading on. Memory: one
/// entry for each stream met.
///
/// ```
/// use throughline::id::Seq;
/// use throughline::log::Cursor;
///
/// assert_eq!(Cursor::at(Seq(0)).next(), Seq(1));
/// ```
#[derive(Debug)]
pub struct Cursor {
    pub(super) next: u64,
    /// The chain before it; nothing where that was not looked up yet.
    pub(super) chain: Option<Digest>,
    /// Begun at the first event: a stream that was not met yet is empty.
    pub(super) whole: bool,
    pub(super) met: Numbered<Met>,
}

/// A stream that a cursor has met: its name, and its end as far as the cursor has come.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) named: Arc<Named>,
    pub(super) tail: Tail,
}

impl Cursor {
    /// Before an event; the first one is 1.
    #[must_use]
    pub fn at(from: Seq) -> Self {
        let next = from.0.max(1);
        Self { next, chain: (next == 1).then_some(Digest::GENESIS), whole: next == 1, met: Numbered::default() }
    }

    /// The place of the event that is read next.
    #[must_use]
    pub fn next(&self) -> Seq {
        Seq(self.next)
    }

    /// Moves behind an event that is handed out. For stores of one's own.
    pub fn pass(&mut self, seq: Seq, chain: Digest) {
        (self.next, self.chain) = (seq.0 + 1, Some(chain));
    }

    /// Goes back before a row that it went past.
    pub(super) fn stand_at(&mut self, row: &Row<'_>, before: Digest) {
        (self.next, self.chain) = (row.seq, Some(before));
        if let Some(met) = self.met.get_mut(row.stream) {
            // Only the version is compared on the way.
            met.tail.version = row.version - 1;
        }
    }

    /// Goes past a row whose stream was moved on.
    pub(super) fn pass_row(&mut self, row: &Row<'_>) {
        self.pass(Seq(row.seq), row.chain);
    }
}

/// Values by the number of a stream. Numbers are dense from 1 in a log that nobody edited: those are a step away, any
/// other number is kept too.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    near: Vec<Option<T>>,
    far: BTreeMap<i64, T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { near: Vec::new(), far: BTreeMap::new() }
    }
}

impl<T> Numbered<T> {
    pub(super) fn get(&self, number: i64) -> Option<&T> {
        match usize::try_from(number).ok().and_then(|index| self.near.get(index)) {
            Some(Some(value)) => Some(value),
            Some(None) | None if self.far.is_empty() => None,
            Some(None) | None => self.far.get(&number),
        }
    }

    pub(super) fn get_mut(&mut self, number: i64) -> Option<&mut T> {
        match usize::try_from(number).ok().and_then(|index| self.near.get_mut(index)) {
            Some(Some(value)) => Some(value),
            Some(None) | None if self.far.is_empty() => None,
            Some(None) | None => self.far.get_mut(&number),
        }
    }

    /// Puts a value where none is yet.
    pub(super) fn put(&mut self, number: i64, value: T) {
        match usize::try_from(number) {
            // Room for twice as many as there are: a number out of line costs no more than the others do.
            Ok(index) if index < 1_024 + 2 * self.near.len() => {
                if index >= self.near.len() {
                    self.near.resize_with(index + 1, || None);
                }
                self.near[index] = Some(value);
            }
            Ok(_) | Err(_) => drop(self.far.insert(number, value)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.near.iter().flatten().count() + self.far.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_kept() {
        let mut numbered = Numbered::default();
        for number in [1, 2, i64::MAX, -3, 3, 900_000, 0, 4] {
            assert_eq!(numbered.get(number), None);
            numbered.put(number, number);
            assert_eq!((numbered.get(number), numbered.far.len() < 4), (Some(&number), true));
            assert_eq!(numbered.get_mut(number), Some(&mut number.clone()));
        }
        assert_eq!(numbered.len(), 8);
    }
}
