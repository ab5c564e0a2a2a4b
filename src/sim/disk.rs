//! A disk that can lose power: what programs see, and what would still be there.
//!
//! *Live* is what every process sees at once; *durable* is what a power cut leaves for certain: the content of a file as it
//! was at its last sync, the names of a folder as they were at its last sync. What lies between, a power cut may keep or not:
//! each name by itself, each file's content as none, half, all, or zeros of the right length. A process that dies loses
//! nothing of it.
//!
//! There are no inodes, times or owners in anything that is told: equal disks are equal values.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// What lies at a path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// A folder.
    Dir,
    /// A file; two names of one number are one file.
    File(usize),
}

/// A file's content.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Content {
    live: Rc<Vec<u8>>,
    durable: Rc<Vec<u8>>,
    /// Days since it was last changed.
    age_days: i64,
}

/// Why the disk did not do something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Something has that name.
    Exists,
    /// Nothing has it, or a folder above it is missing.
    Absent,
    /// It is not that kind of thing.
    WrongKind,
}

/// The disk.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    names: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    files: Vec<Content>,
}

/// What a power cut does to what was not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// One bit for each name that differs, in their order: kept as it was last seen, or as it was last synced.
    pub names: u32,
    /// What becomes of contents that were not synced.
    pub contents: Torn,
}

/// What becomes of content that was not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Torn {
    /// As it was last synced.
    None,
    /// The first half of what was written.
    Half,
    /// All of it.
    All,
    /// The right length, without content.
    Zeros,
}

impl Torn {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::None, Self::Half, Self::All, Self::Zeros];
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

impl Disk {
    /// What lies there.
    #[must_use]
    pub fn node(&self, path: &str) -> Option<&Node> {
        if path.is_empty() || path == "/" {
            return Some(&Node::Dir);
        }
        self.names.get(path.strip_suffix("/.").unwrap_or(path))
    }

    /// A file's bytes.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<Rc<Vec<u8>>> {
        match self.node(path)? {
            Node::File(number) => Some(Rc::clone(&self.files[*number].live)),
            Node::Dir => None,
        }
    }

    /// The names in a folder, in order.
    #[must_use]
    pub fn list(&self, dir: &str) -> Vec<(&str, &Node)> {
        let prefix = format!("{}/", dir.trim_end_matches('/'));
        let below = self.names.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        below
            .filter_map(|(path, node)| Some((path.strip_prefix(&prefix)?, node)))
            .filter(|(name, _)| !name.contains('/'))
            .collect()
    }

    /// Every path of a file, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter(|(_, node)| **node != Node::Dir).map(|(path, _)| path.as_str())
    }

    /// How many days ago a file was changed.
    #[must_use]
    pub fn age_days(&self, path: &str) -> Option<i64> {
        match self.node(path)? {
            Node::File(number) => Some(self.files[*number].age_days),
            Node::Dir => Some(0),
        }
    }

    /// Makes a folder, those above it too; durable at once, as [`Doors::make_dir`](crate::world::doors::Doors::make_dir) is.
    ///
    /// # Errors
    ///
    /// [`Refusal::Exists`] where a file is in the way.
    pub fn make_dir(&mut self, dir: &str) -> Result<(), Refusal> {
        let mut path = String::new();
        for part in dir.split('/').filter(|part| !part.is_empty()) {
            path = format!("{path}/{part}");
            match self.names.entry(path.clone()).or_insert(Node::Dir) {
                Node::Dir => drop(self.durable.insert(path.clone(), Node::Dir)),
                Node::File(_) => return Err(Refusal::Exists),
            }
        }
        Ok(())
    }

    /// Makes an empty file.
    ///
    /// # Errors
    ///
    /// [`Refusal`]
    pub fn create(&mut self, path: &str) -> Result<(), Refusal> {
        self.is_free(path)?;
        let empty = Rc::new(Vec::new());
        self.files.push(Content { live: Rc::clone(&empty), durable: empty, age_days: 0 });
        self.names.insert(path.to_owned(), Node::File(self.files.len() - 1));
        Ok(())
    }

    fn is_free(&self, path: &str) -> Result<(), Refusal> {
        match (self.node(path), self.node(parent(path))) {
            (Some(_), _) => Err(Refusal::Exists),
            (None, Some(Node::Dir)) => Ok(()),
            (None, Some(Node::File(_)) | None) => Err(Refusal::Absent),
        }
    }

    fn file(&mut self, path: &str) -> Result<&mut Content, Refusal> {
        match self.node(path) {
            Some(Node::File(number)) => {
                let number = *number;
                Ok(&mut self.files[number])
            }
            Some(Node::Dir) => Err(Refusal::WrongKind),
            None => Err(Refusal::Absent),
        }
    }

    /// Appends to a file.
    ///
    /// # Errors
    ///
    /// [`Refusal`]
    pub fn append(&mut self, path: &str, bytes: &[u8]) -> Result<(), Refusal> {
        let content = self.file(path)?;
        Rc::make_mut(&mut content.live).extend_from_slice(bytes);
        content.age_days = 0;
        Ok(())
    }

    /// Makes a file's content durable.
    ///
    /// # Errors
    ///
    /// [`Refusal`]
    pub fn sync(&mut self, path: &str) -> Result<(), Refusal> {
        let content = self.file(path)?;
        content.durable = Rc::clone(&content.live);
        Ok(())
    }

    /// Makes a folder's names durable.
    ///
    /// # Errors
    ///
    /// [`Refusal::Absent`] where there is no such folder.
    pub fn sync_dir(&mut self, dir: &str) -> Result<(), Refusal> {
        if self.node(dir) != Some(&Node::Dir) {
            return Err(Refusal::Absent);
        }
        let is_in = |path: &str| parent(path) == dir.trim_end_matches('/');
        self.durable.retain(|path, _| !is_in(path));
        let here = self.names.iter().filter(|(path, _)| is_in(path));
        self.durable.extend(here.map(|(path, node)| (path.clone(), node.clone())));
        Ok(())
    }

    /// Gives a file a second name.
    ///
    /// # Errors
    ///
    /// [`Refusal`]
    pub fn link(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        let node = self.node(from).cloned().ok_or(Refusal::Absent)?;
        self.is_free(to)?;
        self.names.insert(to.to_owned(), node);
        Ok(())
    }

    /// Renames a file.
    ///
    /// # Errors
    ///
    /// [`Refusal`]
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        self.link(from, to)?;
        self.names.remove(from);
        Ok(())
    }

    /// Removes a file's name.
    ///
    /// # Errors
    ///
    /// [`Refusal`]
    pub fn remove(&mut self, path: &str) -> Result<(), Refusal> {
        self.file(path)?;
        self.names.remove(path);
        Ok(())
    }

    /// Says how old a file is.
    ///
    /// # Errors
    ///
    /// [`Refusal`]
    pub fn set_age(&mut self, path: &str, days: i64) -> Result<(), Refusal> {
        self.file(path)?.age_days = days;
        Ok(())
    }

    /// A file with this content, durable: for worlds that are set up.
    ///
    /// # Errors
    ///
    /// [`Refusal`]
    pub fn put(&mut self, path: &str, bytes: &[u8]) -> Result<(), Refusal> {
        self.make_dir(parent(path))?;
        self.create(path)?;
        self.append(path, bytes)?;
        self.sync(path)?;
        self.sync_dir(parent(path))
    }

    /// The names that a power cut may keep or not.
    fn unsynced(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.names.keys().chain(self.durable.keys()).collect();
        all.into_iter().filter(|path| self.names.get(*path) != self.durable.get(*path)).cloned().collect()
    }

    /// Every way in which the power can be cut now. At most 2^`names_max` subsets of names are told apart.
    #[must_use]
    pub fn cuts(&self, names_max: u32) -> Vec<Cut> {
        let names = u32::try_from(self.unsynced().len()).unwrap_or(u32::MAX).min(names_max);
        let is_torn = self.files.iter().any(|content| content.live != content.durable);
        let contents = if is_torn { &Torn::ALL[..] } else { &[Torn::All] };
        (0..1_u32 << names).flat_map(|names| contents.iter().map(move |&contents| Cut { names, contents })).collect()
    }

    /// Cuts the power.
    pub fn cut(&mut self, cut: Cut) {
        for (at, path) in self.unsynced().into_iter().enumerate() {
            let is_kept = u32::try_from(at).ok().and_then(|at| cut.names.checked_shr(at)).unwrap_or(0) & 1 == 1;
            if !is_kept {
                match self.durable.get(&path) {
                    Some(node) => self.names.insert(path, node.clone()),
                    None => self.names.remove(&path),
                };
            }
        }
        for content in &mut self.files {
            if content.live != content.durable {
                content.live = torn(content, cut.contents);
            }
            content.durable = Rc::clone(&content.live);
        }
        self.durable = self.names.clone();
    }
}

fn torn(content: &Content, how: Torn) -> Rc<Vec<u8>> {
    let kept = content.durable.len();
    match how {
        Torn::None => Rc::clone(&content.durable),
        Torn::All => Rc::clone(&content.live),
        Torn::Half => Rc::new(content.live[..kept.max(content.live.len() / 2).min(content.live.len())].to_vec()),
        Torn::Zeros => {
            let mut bytes = content.durable.as_ref().clone();
            bytes.resize(content.live.len(), 0);
            Rc::new(bytes)
        }
    }
}

/// Two disks are one if every path leads to the same, live and durable, whatever number a file has.
impl Hash for Disk {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for names in [&self.names, &self.durable] {
            names.len().hash(state);
            for (path, node) in names {
                path.hash(state);
                if let Node::File(file) = node {
                    let next = numbers.len();
                    numbers.entry(*file).or_insert(next).hash(state);
                }
            }
        }
        let mut files: Vec<(usize, usize)> = numbers.into_iter().map(|(file, number)| (number, file)).collect();
        files.sort_unstable();
        for (_, file) in files {
            self.files[file].hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot set its disk up should stop")]

    use super::*;
    use std::hash::DefaultHasher;

    fn disk() -> Disk {
        let mut disk = Disk::default();
        disk.put("/d/a", b"one").unwrap();
        disk
    }

    fn text(disk: &Disk, path: &str) -> Option<String> {
        disk.read(path).map(|bytes| String::from_utf8(bytes.as_ref().clone()).unwrap())
    }

    #[test]
    fn a_power_cut_keeps_what_was_synced_and_anything_of_the_rest() {
        let mut disk = disk();
        disk.append("/d/a", b"two").unwrap();
        disk.create("/d/b").unwrap();
        disk.append("/d/b", b"new!").unwrap();
        let seen: BTreeSet<(Option<String>, Option<String>)> = disk
            .cuts(8)
            .into_iter()
            .map(|cut| {
                let mut after = disk.clone();
                after.cut(cut);
                (text(&after, "/d/a"), text(&after, "/d/b"))
            })
            .collect();
        let a = ["one", "onetwo", "one\0\0\0"];
        for a in a {
            assert!(seen.iter().any(|(found, _)| found.as_deref() == Some(a)), "{a:?}");
        }
        for b in [None, Some(""), Some("ne"), Some("new!"), Some("\0\0\0\0")] {
            assert!(seen.iter().any(|(_, found)| found.as_deref() == b), "{b:?}");
        }
        disk.sync("/d/b").unwrap();
        disk.sync_dir("/d").unwrap();
        disk.sync("/d/a").unwrap();
        assert_eq!(disk.cuts(8).len(), 1, "nothing is open any more");
    }

    #[test]
    fn an_unsynced_removal_may_come_back_and_a_rename_may_be_either() {
        let mut disk = disk();
        disk.rename("/d/a", "/d/b").unwrap();
        let seen: BTreeSet<(bool, bool)> = disk
            .cuts(8)
            .into_iter()
            .map(|cut| {
                let mut after = disk.clone();
                after.cut(cut);
                (after.node("/d/a").is_some(), after.node("/d/b").is_some())
            })
            .collect();
        assert_eq!(seen.len(), 4, "{seen:?}");
    }

    #[test]
    fn nothing_is_replaced() {
        let mut disk = disk();
        disk.put("/d/b", b"b").unwrap();
        assert_eq!(disk.create("/d/a"), Err(Refusal::Exists));
        assert_eq!(disk.link("/d/a", "/d/b"), Err(Refusal::Exists));
        assert_eq!(disk.rename("/d/a", "/d/b"), Err(Refusal::Exists));
        assert_eq!(disk.create("/none/x"), Err(Refusal::Absent));
        assert_eq!(disk.make_dir("/d/a/x"), Err(Refusal::Exists));
        assert_eq!(disk.remove("/d"), Err(Refusal::WrongKind));
    }

    #[test]
    fn equal_disks_have_equal_hashes_however_they_came_about() {
        let hash = |disk: &Disk| {
            let mut hasher = DefaultHasher::new();
            disk.hash(&mut hasher);
            hasher.finish()
        };
        let (mut first, mut second) = (Disk::default(), Disk::default());
        first.put("/d/a", b"a").unwrap();
        first.put("/d/b", b"b").unwrap();
        second.put("/d/b", b"b").unwrap();
        second.put("/d/a", b"a").unwrap();
        assert_eq!(hash(&first), hash(&second));
        first.link("/d/a", "/d/c").unwrap();
        second.create("/d/c").unwrap();
        second.append("/d/c", b"a").unwrap();
        assert_ne!(hash(&first), hash(&second), "a second name is not a second file");
    }
}
