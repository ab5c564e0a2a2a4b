//! A disk as POSIX promises it and no better: what a power cut after some operations may leave of them.
//!
//! Bytes of a file are durable once the file was synced, a name once its folder was. Of everything else any part may have
//! reached the disk: not every disk writes in the order in which it was asked, and a sector is the most it writes at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::log_fault::Op;
use crate::log_support::Dice;

const SECTOR: usize = 512;

/// What is left: folders (without bytes) and files by their paths.
pub(crate) type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A change of one file that was not synced yet.
#[derive(Clone)]
enum Change {
    Write { at: usize, data: Vec<u8> },
    Cut(usize),
}

#[derive(Clone, Default)]
struct Node {
    folder: bool,
    durable: Vec<u8>,
    pending: Vec<Change>,
    /// The length with every change.
    bytes: usize,
}

/// What becomes of one change that was not synced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Kept,
    /// The first half of its sectors.
    Half,
    /// Each sector on its own, by these dice.
    Sectors(u64),
    /// The file has its new length, but not the bytes.
    Zeros,
}

/// A disk after some operations.
#[derive(Default)]
pub(crate) struct Disk {
    nodes: Vec<Node>,
    /// Names that survive.
    durable: BTreeMap<PathBuf, usize>,
    /// Names as a process sees them.
    seen: BTreeMap<PathBuf, usize>,
    /// Changes of names that were not synced, in order.
    unnamed: Vec<(PathBuf, Option<usize>)>,
    /// The node and the place of the last write that made its file longer.
    extended: Option<(usize, usize)>,
}

impl Disk {
    pub(crate) fn apply(&mut self, op: &Op) {
        match op {
            Op::MakeFolder(path) => self.name(path, Node { folder: true, ..Node::default() }),
            Op::Create(path) => self.name(path, Node::default()),
            Op::Write { path, at, data } => {
                let id = self.seen[path];
                let node = &mut self.nodes[id];
                if at + data.len() > node.bytes {
                    node.bytes = at + data.len();
                    self.extended = Some((id, node.pending.len()));
                }
                node.pending.push(Change::Write { at: *at, data: data.clone() });
            }
            Op::Cut { path, bytes } => {
                let node = &mut self.nodes[self.seen[path]];
                node.bytes = *bytes;
                node.pending.push(Change::Cut(*bytes));
            }
            Op::Sync(path) => self.sync(path),
            Op::Remove(path) => {
                self.seen.remove(path);
                self.unnamed.push((path.clone(), None));
            }
            Op::Rename { from, to } => {
                let id = self.seen.remove(from).unwrap();
                self.seen.insert(to.clone(), id);
                self.unnamed.extend([(to.clone(), Some(id)), (from.clone(), None)]);
            }
            Op::Failed(_) | Op::Said(_) => {}
        }
    }

    fn name(&mut self, path: &Path, node: Node) {
        let id = self.nodes.len();
        self.nodes.push(node);
        self.seen.insert(path.to_owned(), id);
        self.unnamed.push((path.to_owned(), Some(id)));
    }

    fn sync(&mut self, path: &Path) {
        let id = self.seen.get(path).copied();
        // The watched folder itself was there before.
        if path == Path::new("") || id.is_some_and(|id| self.nodes[id].folder) {
            let (now, later): (Vec<_>, Vec<_>) =
                self.unnamed.drain(..).partition(|(name, _)| name.parent() == Some(path));
            self.unnamed = later;
            now.into_iter().for_each(|(name, id)| rename(&mut self.durable, name, id));
        } else if let Some(id) = id {
            let node = &mut self.nodes[id];
            for change in std::mem::take(&mut node.pending) {
                change.apply(&mut node.durable, Fate::Kept);
            }
            self.extended = self.extended.filter(|(extended, _)| *extended != id);
        }
    }

    /// Something would be lost if the power were cut now.
    pub(crate) fn owes(&self) -> bool {
        !self.unnamed.is_empty() || self.nodes.iter().any(|node| !node.pending.is_empty())
    }

    /// What may be left: nothing of what was not synced, all of it, each write alone, a torn last write, zeros where the
    /// last extension was, and `seeds` subsets by the dice.
    pub(crate) fn images(&self, seeds: u64, dice: &mut Dice) -> Vec<Image> {
        let pending: Vec<(usize, usize)> = (self.nodes.iter().enumerate())
            .flat_map(|(id, node)| (0..node.pending.len()).map(move |place| (id, place)))
            .collect();
        let (all, none) = (|_: usize| true, |_: usize| false);
        let mut images = Vec::new();
        for names in [all, none] {
            images.push(self.image(names, |_| Fate::Lost));
            images.push(self.image(names, |_| Fate::Kept));
        }
        for alone in &pending {
            images.push(self.image(all, |change| if change == *alone { Fate::Kept } else { Fate::Lost }));
        }
        if let Some(last) = pending.last() {
            images.push(self.image(all, |change| if change == *last { Fate::Half } else { Fate::Kept }));
        }
        if let Some(extended) = self.extended {
            images.push(self.image(all, |change| if change == extended { Fate::Zeros } else { Fate::Kept }));
        }
        if self.owes() {
            for _ in 0..seeds {
                let kept: Vec<bool> = self.unnamed.iter().map(|_| dice.below(4) > 0).collect();
                let fates: BTreeMap<_, _> = pending.iter().map(|change| (*change, fate(dice))).collect();
                images.push(self.image(|name| kept[name], |change| fates[&change]));
            }
        }
        images
    }

    /// Only what was synced.
    pub(crate) fn synced(&self) -> Image {
        self.image(|_| false, |_| Fate::Lost)
    }

    fn image(&self, is_named: impl Fn(usize) -> bool, fate: impl Fn((usize, usize)) -> Fate) -> Image {
        let mut names = self.durable.clone();
        for (place, (name, id)) in self.unnamed.iter().enumerate() {
            if is_named(place) {
                rename(&mut names, name.clone(), *id);
            }
        }
        let mut image = Image::new();
        for (name, id) in names {
            let above = name.parent().filter(|above| *above != Path::new(""));
            if above.is_some_and(|above| !image.contains_key(above)) {
                continue;
            }
            let node = &self.nodes[id];
            let mut bytes = node.durable.clone();
            for (place, change) in node.pending.iter().enumerate() {
                change.apply(&mut bytes, fate((id, place)));
            }
            image.insert(name, (!node.folder).then_some(bytes));
        }
        image
    }
}

fn rename(names: &mut BTreeMap<PathBuf, usize>, name: PathBuf, id: Option<usize>) {
    match id {
        Some(id) => names.insert(name, id),
        None => names.remove(&name),
    };
}

fn fate(dice: &mut Dice) -> Fate {
    match dice.below(8) {
        0..=2 => Fate::Lost,
        3..=5 => Fate::Kept,
        6 => Fate::Half,
        _ => Fate::Sectors(dice.below(u64::MAX)),
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>, fate: Fate) {
        match self {
            Self::Cut(length) if fate != Fate::Lost => bytes.resize(*length, 0),
            Self::Write { at, data } if fate != Fate::Lost => write(bytes, *at, data, fate),
            Self::Cut(_) | Self::Write { .. } => {}
        }
    }
}

fn write(bytes: &mut Vec<u8>, at: usize, data: &[u8], fate: Fate) {
    let end = at + data.len();
    let half = (at + data.len() / 2).next_multiple_of(SECTOR);
    let mut dice = Dice(if let Fate::Sectors(seed) = fate { seed } else { 0 });
    let mut from = at;
    while from < end {
        let to = ((from / SECTOR + 1) * SECTOR).min(end);
        let is_kept = match fate {
            Fate::Lost => false,
            Fate::Kept | Fate::Zeros => true,
            Fate::Half => to <= half && half < end,
            Fate::Sectors(_) => dice.below(2) == 0,
        };
        if is_kept {
            if bytes.len() < to {
                bytes.resize(to, 0);
            }
            if fate == Fate::Zeros {
                bytes[from..to].fill(0);
            } else {
                bytes[from..to].copy_from_slice(&data[from - at..to - at]);
            }
        }
        from = to;
    }
}

/// Puts an image into a folder.
pub(crate) fn restore(image: &Image, folder: &Path) {
    for (name, bytes) in image {
        let path = folder.join(name);
        match bytes {
            None => std::fs::create_dir(&path).unwrap(),
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
        }
    }
}
