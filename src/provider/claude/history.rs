//! The walk: which turns of a transcript Claude Code sends when it resumes it.
//!
//! Observed on 2.1.332. The history is the chain from the **last leaf**, the last main `user` or `assistant` record with a
//! message in file order, along `parentUuid`:
//!
//! - no parent (`null` or none) ends it: a second tree in the file is not sent;
//! - a parent that no record of the file has is **bridged**: the nearest preceding main record takes its place;
//! - a parent that only comes *later* in the file ends it (this is also how a cycle ends: every turn of it was met by then);
//! - a compaction boundary ends it: what came before is in the summary;
//! - of two branches from one parent, the last written wins, because the walk only goes up.
//!
//! Parents therefore always point back, and a record costs eight bytes and an entry of the table of ids.

use std::collections::HashMap;

/// The identity of a record, whatever its `uuid` looks like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key(u128);

impl Key {
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
    /// Another record that others may follow.
    Other,
}

#[derive(Clone, Copy)]
struct Node {
    /// An earlier node; none is [`ROOT`].
    parent: u32,
    role: Role,
    bridge: bool,
}

const ROOT: u32 = u32::MAX;

/// The records of a transcript, in file order.
#[derive(Clone, Default)]
pub(super) struct History {
    nodes: Vec<Node>,
    index: HashMap<Key, u32>,
    /// Nodes whose parent was not there when they were read.
    open: Vec<(u32, Key)>,
    leaf: Option<u32>,
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
    /// It ended at a record that it had met.
    pub(super) cyclic: bool,
    /// The leaf is a `user` record: the last turn has no reply.
    pub(super) unanswered: bool,
}

impl History {
    /// Adds the next main record.
    pub(super) fn push(&mut self, uuid: Option<Key>, parent: Option<Key>, role: Role) {
        // A file with four thousand million records is beyond what the CLI can load.
        let Ok(here) = u32::try_from(self.nodes.len()) else { return };
        let before = here.checked_sub(1).unwrap_or(ROOT);
        let (parent, bridge) = match parent {
            None => (ROOT, false),
            Some(key) => match self.index.get(&key) {
                Some(&found) => (found, false),
                None => {
                    self.open.push((here, key));
                    (before, true)
                }
            },
        };
        self.nodes.push(Node { parent, role, bridge });
        if let Some(key) = uuid {
            self.index.insert(key, here);
        }
        if matches!(role, Role::User | Role::Assistant) {
            self.leaf = Some(here);
        }
    }

    /// From here on, records before may be missing.
    pub(super) fn gap(&mut self) {
        self.gap = u32::try_from(self.nodes.len()).ok();
    }

    /// Walks from the last leaf.
    pub(super) fn walk(mut self) -> Walk {
        let mut walk = Walk::default();
        let Some(leaf) = self.leaf else { return walk };
        let mut met = vec![false; self.nodes.len()];
        let mut later: HashMap<u32, u32> = HashMap::new();
        for (child, key) in std::mem::take(&mut self.open) {
            if let Some(&parent) = self.index.get(&key) {
                later.insert(child, parent);
            }
        }
        let mut here = leaf;
        while let Some(&node) = self.nodes.get(here as usize) {
            met[here as usize] = true;
            match node.role {
                Role::User | Role::Assistant => walk.reached += 1,
                Role::Boundary => {
                    walk.compacted = true;
                    break;
                }
                Role::Other => {}
            }
            if let Some(&parent) = later.get(&here) {
                walk.cyclic = met.get(parent as usize).copied().unwrap_or(false);
                break;
            }
            if node.bridge {
                if self.gap.is_some_and(|gap| here >= gap) {
                    break;
                }
                walk.bridged += 1;
            }
            here = node.parent;
        }
        walk.unanswered = self.nodes.get(leaf as usize).is_some_and(|node| node.role == Role::User);
        walk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records as `uuid<parent`; lower case is a turn of the user, upper case one of the assistant, digits are attachments,
    /// `!` is a boundary. No parent: none.
    fn walk(records: &str) -> Walk {
        let mut history = History::default();
        for record in records.split_whitespace() {
            if record == "..." {
                history.gap();
                continue;
            }
            let (uuid, parent) = record.split_once('<').map_or((record, None), |(uuid, parent)| (uuid, Some(parent)));
            let role = match uuid.chars().next() {
                Some('!') => Role::Boundary,
                Some('0'..='9') => Role::Other,
                Some('A'..='Z') => Role::Assistant,
                _ => Role::User,
            };
            history.push(
                (uuid != "_").then(|| Key::of(uuid.as_bytes())),
                parent.map(|parent| Key::of(parent.as_bytes())),
                role,
            );
        }
        history.walk()
    }

    #[test]
    fn what_is_sent_is_the_chain_of_the_last_leaf() {
        for (records, reached) in [
            ("", 0),
            ("1 2<1", 0),
            ("a 1<a B<1 c<B D<c", 4),
            ("a B c D", 1),           // no links at all
            ("a B<a c D<c", 2),       // two roots
            ("a B<a c<gone D<c", 4),  // bridged
            ("a B<a c<a D<c", 3),     // two branches: the last one
            ("a B<a c<B D<c 1<D", 4), // a tail without turns is no leaf
            ("D<c c<B B<a a", 1),     // reversed
            ("a<D B<a c<B D<c", 4),   // cycle
            ("a<a", 1),               // its own parent
            ("a B<a ! c<! D<c", 2),   // compacted
            ("a B<a !<B c<! D<c", 2), // whatever the boundary follows
            ("a B<a !", 2),           // a boundary nobody followed yet
            ("a _<a B<a", 2),         // without an id
            ("a ... B<A c<B", 2),     // what lies in the gap is not bridged
            ("a B<a a<B C<a", 4),     // an id used twice: two records, the later one is followed
        ] {
            assert_eq!(walk(records).reached, reached, "{records}");
        }
    }

    #[test]
    fn what_was_met_on_the_way_is_said() {
        assert_eq!(walk("a B<a ! c<! D<c"), Walk { reached: 2, compacted: true, ..Walk::default() });
        assert_eq!(walk("a<D B<a c<B D<c"), Walk { reached: 4, cyclic: true, ..Walk::default() });
        assert_eq!(walk("a B<x c<B"), Walk { reached: 3, bridged: 1, unanswered: true, ..Walk::default() });
        assert_eq!(walk("B<x D<y"), Walk { reached: 2, bridged: 2, ..Walk::default() });
        assert_eq!(walk("D<c c<B B<a a"), Walk { reached: 1, unanswered: true, ..Walk::default() });
    }
}
