//! The walk: which turns of a transcript Claude Code sends when it resumes it.
//!
//! Observed on 2.1.332. The history is the chain from a **tip** along `parentUuid`. The tip:
//!
//! - *the last record* is the last main record of the file whose chain holds a turn. Turns, attachments and system records
//!   are main records; metadata, progress and records without a message are none, though a chain may run through them;
//! - `last-prompt`, the CLI's own metadata, names a leaf. Where the file has that record, and the last record does not
//!   descend from it, it is the tip. (So of two branches the named one is sent, not the last written.) A record of a subagent
//!   that is named so makes the CLI refuse the session;
//! - else the tip is found by going down from the last record to its last main child that is no older, and on.
//!
//! The chain:
//!
//! - no parent (`null` or none) ends it: a second tree in the file is not sent;
//! - a parent that no record of the file has is **bridged**, and so is one that was met already: the nearest preceding main
//!   record takes its place, if it is at most five seconds older. Where more time went by, as between most turns, the chain
//!   ends there: what came before a lost record is lost with it;
//! - a subagent's record in it is sent with the others;
//! - a compaction boundary ends it: what came before is in the summary;
//! - of two records with one id, and of all without one, the last stands for both.

use std::collections::HashMap;

/// The identity of a record, whatever its `uuid` looks like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key(u128);

impl Key {
    /// That of all records without one.
    const MISSING: Self = Self(u128::MAX);

    /// The key of a `uuid`: its own bits where it is written as one, else a digest.
    pub(super) fn of(uuid: &[u8]) -> Self {
        let canonical = uuid.len() == 36 && !uuid.iter().any(u8::is_ascii_uppercase);
        if let Some(uuid) = canonical.then(|| uuid::Uuid::try_parse_ascii(uuid).ok()).flatten() {
            return Self(uuid.as_u128());
        }
        let mut half = [0; 16];
        half.copy_from_slice(&blake3::hash(uuid).as_bytes()[..16]);
        Self(u128::from_le_bytes(half))
    }
}

/// What a record is to the walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A `user` record with a message.
    User,
    /// An `assistant` record with one.
    Assistant,
    /// A compaction boundary.
    Boundary,
    /// An attachment or a system record.
    Beside,
    /// Another record that others may follow: never a tip.
    Link,
}

/// A record of the tree.
pub(super) struct Entry {
    /// Its `uuid`.
    pub(super) uuid: Option<Key>,
    /// Its `parentUuid`.
    pub(super) parent: Option<Key>,
    /// What it is to the walk.
    pub(super) role: Role,
    /// A subagent's.
    pub(super) side: bool,
    /// Its time in milliseconds since 1970, if it has one.
    pub(super) at_ms: Option<i64>,
}

#[derive(Clone, Copy)]
struct Node {
    /// Another node; none is [`NONE`].
    parent: u32,
    role: Role,
    bridge: bool,
    side: bool,
    at_ms: Option<i64>,
    /// A later record has its id.
    replaced: bool,
}

const NONE: u32 = u32::MAX;

/// A parent that is not there is bridged to a record that is at most so much older.
const BRIDGE_MS_MAX: i64 = 5_000;

/// The records of a transcript, in file order.
#[derive(Clone, Default)]
pub(super) struct History {
    nodes: Vec<Node>,
    index: HashMap<Key, u32>,
    /// Nodes whose parent was not there when they were read.
    open: Vec<(u32, Key)>,
    /// Nodes whose id a later one has, with that one.
    replaced: Vec<(u32, u32)>,
    /// The leaf that the CLI's own metadata names last.
    named: Option<Key>,
    /// Where records are missing because they were not examined.
    gap: Option<u32>,
}

/// What the walk came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Walk {
    /// Turns that it met.
    pub(super) reached: u64,
    /// Parents on it that no record of the file has.
    pub(super) bridged: u64,
    /// It ended at a compaction.
    pub(super) compacted: bool,
    /// A parent on it was met already.
    pub(super) cyclic: bool,
    /// Its last turn is the user's.
    pub(super) unanswered: bool,
    /// The named leaf is a subagent's.
    pub(super) misled: bool,
    /// The tip has no time.
    pub(super) untimed: bool,
    /// Turns on the straight way: from the last main record of the file, with no leaf named and nothing bridged. Older
    /// versions go so; a circle on it makes them hang.
    pub(super) straight: u64,
    /// There is a circle on it.
    pub(super) circle: bool,
}

impl History {
    /// Adds the next record of the tree.
    pub(super) fn push(&mut self, entry: &Entry) {
        let &Entry { uuid, parent, role, side, at_ms } = entry;
        // A file with four thousand million records is beyond what the CLI can load.
        let Ok(here) = u32::try_from(self.nodes.len()) else { return };
        let (parent, bridge) = match parent {
            None => (NONE, false),
            Some(key) => match self.index.get(&key) {
                Some(&found) => (found, false),
                None => {
                    self.open.push((here, key));
                    (NONE, true)
                }
            },
        };
        self.nodes.push(Node { parent, role, bridge, side, at_ms, replaced: false });
        // All without an id have the same one to the CLI: none.
        if let Some(replaced) = self.index.insert(uuid.unwrap_or(Key::MISSING), here) {
            self.replaced.push((replaced, here));
        }
    }

    /// The CLI's own metadata names a leaf.
    pub(super) fn name(&mut self, leaf: Key) {
        self.named = Some(leaf);
    }

    /// From here on, records before may be missing.
    pub(super) fn gap(&mut self) {
        self.gap = u32::try_from(self.nodes.len()).ok();
    }

    /// Walks from the tip.
    pub(super) fn walk(mut self) -> Walk {
        self.link();
        let (straight, circle) = self.straight();
        let walk = Walk { straight, circle, ..Walk::default() };
        let last = self.last();
        let named = self.named.and_then(|key| self.index.get(&key).copied());
        let tip = match (named, last) {
            (Some(named), last) if last.is_none_or(|last| self.chain(last).all(|node| node != named)) => named,
            (_, Some(last)) => self.deepest(last),
            (_, None) => {
                let main = self.back().find_map(|here| self.node(here).filter(|node| node.is_main()));
                return Walk { untimed: main.is_some_and(|node| node.at_ms.is_none()), ..walk };
            }
        };
        if self.node(tip).is_some_and(|node| node.side) {
            return Walk { misled: true, ..walk };
        }
        let mut chain = self.chain(tip);
        let (mut reached, mut unanswered) = (0, None);
        for node in chain.by_ref().filter_map(|here| self.node(here)).filter(|node| node.is_turn()) {
            reached += 1;
            unanswered.get_or_insert(node.role == Role::User);
        }
        let Chain { bridged, compacted, cyclic, .. } = chain;
        let untimed = self.node(tip).is_some_and(|node| node.at_ms.is_none());
        Walk { reached, bridged, compacted, cyclic, unanswered: unanswered.unwrap_or(false), untimed, ..walk }
    }

    /// Parents that came after their children, and parents whose id a later record has.
    fn link(&mut self) {
        let mut now: HashMap<u32, u32> = HashMap::new();
        for (old, new) in std::mem::take(&mut self.replaced).into_iter().rev() {
            let last = now.get(&new).copied().unwrap_or(new);
            now.insert(old, last);
        }
        for (child, key) in std::mem::take(&mut self.open) {
            if let (Some(&parent), Some(node)) = (self.index.get(&key), self.nodes.get_mut(child as usize)) {
                (node.parent, node.bridge) = (parent, false);
            }
        }
        if now.is_empty() {
            return;
        }
        for (here, node) in self.nodes.iter_mut().enumerate() {
            node.replaced = u32::try_from(here).is_ok_and(|here| now.contains_key(&here));
            node.parent = now.get(&node.parent).copied().unwrap_or(node.parent);
        }
    }

    fn node(&self, here: u32) -> Option<&Node> {
        self.nodes.get(here as usize)
    }

    /// All nodes, the last one first.
    fn back(&self) -> impl Iterator<Item = u32> {
        (0..self.nodes.len()).rev().filter_map(|here| u32::try_from(here).ok())
    }

    /// The last main record whose chain holds a turn.
    fn last(&self) -> Option<u32> {
        let (mut turnless, mut before) = (vec![false; self.nodes.len()], Before::default());
        self.back().filter(|&here| self.node(here).is_some_and(Node::is_main)).find(|&from| {
            let mut here = from;
            while let Some(node) = self.node(here) {
                if node.is_turn() {
                    return true;
                }
                if std::mem::replace(&mut turnless[here as usize], true) || node.role == Role::Boundary {
                    break;
                }
                here = if node.bridge { self.bridge(here, &turnless, &mut before) } else { node.parent };
            }
            false
        })
    }

    /// The turns on the straight way, and whether there is a circle on it.
    fn straight(&self) -> (u64, bool) {
        let (mut met, mut turns) = (vec![false; self.nodes.len()], 0);
        let mut next = self.back().find(|&here| self.node(here).is_some_and(Node::is_main));
        while let Some((here, node)) = next.and_then(|here| Some((here, self.node(here)?))) {
            if std::mem::replace(&mut met[here as usize], true) {
                return (turns, true);
            }
            turns += u64::from(node.is_turn());
            // A chain through what is no message was only found later.
            next = (!matches!(node.role, Role::Boundary | Role::Link)).then_some(node.parent);
        }
        (turns, false)
    }

    /// The record before a node that takes the place of its parent: the nearest one that is not marked, if it is near enough
    /// in time.
    fn bridge(&self, here: u32, marked: &[bool], before: &mut Before) -> u32 {
        let fits = |at: u32| self.node(at).is_some_and(Node::is_linked) && !marked[at as usize];
        let at_ms = |node: u32| self.node(node).and_then(|node| node.at_ms);
        let is_near = |to: u32| matches!((at_ms(to), at_ms(here)), (Some(then), Some(now)) if now.saturating_sub(then) <= BRIDGE_MS_MAX);
        before.nearest(here, fits).filter(|&to| is_near(to)).unwrap_or(NONE)
    }

    /// From a node up, itself first.
    fn chain(&self, from: u32) -> Chain<'_> {
        let (met, before) = (vec![false; self.nodes.len()], Before::default());
        Chain { history: self, next: from, met, before, bridged: 0, compacted: false, cyclic: false }
    }

    /// The last main child of the last main child of … a node; none is older than its parent.
    fn deepest(&self, from: u32) -> u32 {
        if self.nodes.iter().all(|node| node.parent != from) {
            return from;
        }
        let at_ms = |node: u32| self.node(node).and_then(|node| node.at_ms);
        let mut children: HashMap<u32, u32> = HashMap::new();
        for child in self.back() {
            if let Some(node) = self.node(child).filter(|node| node.is_main() && node.parent != NONE)
                && at_ms(node.parent).is_some_and(|then| node.at_ms.is_some_and(|now| now >= then))
            {
                children.entry(node.parent).or_insert(child);
            }
        }
        let (mut here, mut met) = (from, vec![false; self.nodes.len()]);
        loop {
            met[here as usize] = true;
            match children.get(&here) {
                Some(&child) if !met[child as usize] => here = child,
                Some(_) | None => return here,
            }
        }
    }
}

impl Node {
    fn is_turn(&self) -> bool {
        matches!(self.role, Role::User | Role::Assistant)
    }

    /// Whether a chain may be bridged to it.
    fn is_linked(&self) -> bool {
        !self.side && !self.replaced
    }

    /// Whether it may be a tip.
    fn is_main(&self) -> bool {
        self.is_linked() && self.role != Role::Link
    }
}

/// The way from a node up.
struct Chain<'h> {
    history: &'h History,
    next: u32,
    met: Vec<bool>,
    before: Before,
    bridged: u64,
    compacted: bool,
    cyclic: bool,
}

/// The nearest node before another that fits, where one that does not fit never will: what was passed over once is not
/// looked at again, or hostile records would make a walk quadratic.
#[derive(Default)]
struct Before {
    /// By node, itself or one further down that may fit; empty until it is needed.
    down: Vec<u32>,
}

impl Before {
    fn nearest(&mut self, here: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let first = self.down.len();
        self.down.extend((first..here as usize).filter_map(|at| u32::try_from(at).ok()));
        let from = here.checked_sub(1)?;
        let mut at = from;
        while at != NONE {
            let down = self.down.get_mut(at as usize)?;
            if *down != at {
                at = *down;
            } else if fits(at) {
                break;
            } else {
                *down = at.checked_sub(1).unwrap_or(NONE);
            }
        }
        let mut passed = from;
        while passed != at && passed != NONE {
            passed = std::mem::replace(self.down.get_mut(passed as usize)?, at);
        }
        (at != NONE).then_some(at)
    }
}

impl Iterator for Chain<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let here = self.next;
        let node = *self.history.node(here)?;
        self.met[here as usize] = true;
        self.next = node.parent;
        if node.role == Role::Boundary {
            self.compacted = true;
            self.next = NONE;
        } else if self.met.get(node.parent as usize).copied().unwrap_or(false) {
            self.cyclic = true;
            self.next = self.history.bridge(here, &self.met, &mut self.before);
        } else if node.bridge && self.history.gap.is_none_or(|gap| here < gap) {
            self.bridged += 1;
            self.next = self.history.bridge(here, &self.met, &mut self.before);
        }
        Some(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records as `uuid<parent`; lower case is a turn of the user, upper case one of the assistant, digits are attachments,
    /// `!` is a boundary, `?` a record that is no tip; `(x)` is a subagent's. No parent: none. `=x` names a leaf. They come
    /// a second after one another; `+9` lets so many pass, `-9` goes back, and `@` is a record without a time.
    fn walk(records: &str) -> Walk {
        let mut history = History::default();
        let mut now_ms = 0;
        for record in records.split_whitespace() {
            if record == "..." {
                history.gap();
                continue;
            }
            if let Some(leaf) = record.strip_prefix('=') {
                history.name(Key::of(leaf.as_bytes()));
                continue;
            }
            if let Ok(seconds) = record.parse::<i64>()
                && record.starts_with(['+', '-'])
            {
                now_ms += seconds * 1_000;
                continue;
            }
            now_ms += 1_000;
            let at_ms = (!record.ends_with('@')).then_some(now_ms);
            let side = record.starts_with('(');
            let record = record.trim_matches(['(', ')', '@']);
            let (uuid, parent) = record.split_once('<').map_or((record, None), |(uuid, parent)| (uuid, Some(parent)));
            let role = match uuid.chars().next() {
                Some('!') => Role::Boundary,
                Some('?') => Role::Link,
                Some('0'..='9') => Role::Beside,
                Some('A'..='Z') => Role::Assistant,
                _ => Role::User,
            };
            let key = |text: &str| Key::of(text.as_bytes());
            let uuid = (uuid != "_").then(|| key(uuid));
            history.push(&Entry { uuid, parent: parent.map(key), role, side, at_ms });
        }
        history.walk()
    }

    #[test]
    fn what_is_sent_is_the_chain_of_the_tip() {
        for (records, reached) in [
            ("", 0),
            ("1 2<1", 0),
            ("a 1<a B<1 c<B D<c", 4),
            ("a B c D", 1),                   // no links at all
            ("a B<a c D<c", 2),               // two roots
            ("a B<a c<gone D<c", 4),          // bridged
            ("a B<a (x) c<gone D<c", 4),      // bridged over a subagent's record
            ("a B<a c<a D<c", 3),             // two branches: the last one
            ("a B<a c<B D<c 1<D", 4),         // a tail without turns leads up
            ("a B<a c<B D<c 1<B", 2),         // an attachment makes a branch too
            ("a B<a c<B D<c 1", 4),           // but not where no turn is above it
            ("a B<a c<B D<c ?<B", 4),         // metadata makes none
            ("D<c c<B B<a a", 1),             // reversed, and so are the times
            ("+9 D<c -2 c<B -2 B<a -2 a", 4), // only the lines are
            ("c<B D<c a B<a", 2),             // the first turn written last
            ("+9 c<B D<c -9 a B<a", 4),       // and it is older
            ("B<a c a", 1),                   // two trees: the one that was written to last
            ("+9 B<a c -9 a", 2),             //
            ("a B<a +4 c<gone D<c", 4),       // five seconds later: bridged
            ("a B<a +5 c<gone D<c", 2),       // six
            ("a B<a c<gone@ D<c", 2),         // no time
            ("a B<a +5 c<D D<c", 2),          // a circle
            ("a<D B<a c<B D<c", 4),           // cycle
            ("a<a", 1),                       // its own parent
            ("a B<a c<c D<c", 4),             // a cycle is bridged
            ("a B<a c<D D<c", 4),             //
            ("a B<a ! c<! D<c", 2),           // compacted
            ("a B<a !<B c<! D<c", 2),         // whatever the boundary follows
            ("a B<a !", 2),                   // a boundary nobody followed yet
            ("_ _<a c<B D<c", 3),             // those without an id are one: the last
            ("_ _ _ _", 1),                   //
            ("a ... B<A c<B", 2),             // what lies in the gap is not bridged
            ("a B<a a<B C<a", 3),             // an id used twice: the later record stands for both
            ("a B<a c<B D<c a B<a c<B D<c", 4),
            ("(a) (B<a) c<B D<c", 4),            // a subagent's records in the chain
            ("a B<a (c<B) (D<c)", 2),            // but not as its tip
            ("a B<a c<B D<c e<B F<e =D", 4),     // the named leaf
            ("a B<a c<B D<c =B", 4),             // is gone beyond where the last record descends from it
            ("+9 D<c -2 c<B -2 B<a -2 a =B", 2), // and only there
            ("a B<a c<B D<c =x", 4),             // not in the file
            ("a B<a c<B D<c (x<B) =x", 0),       // a subagent's: refused
            ("a B<a c<B D<c =D e F<e", 4),       // an unlinked turn after it is not sent
            ("a B<a c<B D<c e<B F<e =F =D", 4),
            ("a B<a c<B D<c g<D h<D =D", 5), // down to the last child
        ] {
            assert_eq!(walk(records).reached, reached, "{records}");
        }
        assert!(walk("a B<a (x<B) =x").misled && !walk("a B<a (x<B) =B").misled);
    }

    #[test]
    fn hostile_records_do_not_make_it_quadratic() {
        // A middle that was met, and above it records that lead over it again and again: 10^10 steps, one by one.
        let count = 100_000_u32;
        let mut history = History::default();
        let key = |number: u32| Some(Key(u128::from(number)));
        let mut push = |number: u32, parent: u32| {
            let (uuid, parent) = (key(number), key(parent));
            history.push(&Entry { uuid, parent, role: Role::User, side: false, at_ms: Some(0) });
        };
        for low in 0..count {
            push(low, 3 * count - low - 1);
        }
        for middle in count..2 * count {
            push(middle, middle + 1);
        }
        for high in 2 * count..3 * count {
            push(high, 2 * count);
        }
        history.name(Key(u128::from(count)));
        assert!(history.walk().reached > u64::from(count));
    }

    #[test]
    fn what_was_met_on_the_way_is_said() {
        let said = |records| Walk { straight: 0, circle: false, ..walk(records) };
        assert_eq!(said("a B<a ! c<! D<c"), Walk { reached: 2, compacted: true, ..Walk::default() });
        assert_eq!(said("a<D B<a c<B D<c"), Walk { reached: 4, cyclic: true, ..Walk::default() });
        assert_eq!(said("a B<x c<B"), Walk { reached: 3, bridged: 1, unanswered: true, ..Walk::default() });
        assert_eq!(said("B<x D<y"), Walk { reached: 2, bridged: 2, ..Walk::default() });
        assert_eq!(said("a B<a@"), Walk { reached: 2, untimed: true, ..Walk::default() });
    }

    #[test]
    fn the_straight_way_is_that_of_older_versions() {
        for (records, straight, circle) in [
            ("a B<a c<B D<c", 4, false),
            ("a B<a c<gone D<c", 2, false),
            ("a B<a c<B D<c 1", 0, false),
            ("a B<a c<B D<c 1<B", 2, false),
            ("a B<a c<B D<c =B", 4, false),
            ("D<c c<B B<a a", 1, false),
            ("a<D B<a c<B D<c", 4, true),
            ("a<a", 1, true),
        ] {
            let walk = walk(records);
            assert_eq!((walk.straight, walk.circle), (straight, circle), "{records}");
        }
    }
}
