//! Files and directories: what lies at a path, names, bytes. This door only looks; nothing here changes a disk.
//!
//! Every error says verb, path and cause, and keeps the system's own error as its source, so that the caller can tell
//! *absent* from *unreadable* ([`FileError::is_absent`]). A FIFO, a socket or a device is never opened: that could block
//! for ever, wake somebody who waits at the other end, or set a machine in motion.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::snapshot::NodeKind;

/// What a "small" file may have: settings, markers, registry entries.
pub const SMALL_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A look at the disk that failed: what was tried, where, and what the system said.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {path:?}")]
#[non_exhaustive]
pub struct FileError {
    /// What was tried, for example `list`.
    pub verb: &'static str,
    /// Where.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl FileError {
    pub(super) fn new(verb: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self { verb, path: path.to_owned(), source: source.into() }
    }

    /// Whether this means that nothing is there: no such name, a file where a directory would have to be, or links that
    /// lead in a circle (for every program that follows them that is the same as a link to nothing).
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.errno().is_some_and(|errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
    }

    /// Whether permission was refused.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.errno().is_some_and(|errno| matches!(errno, Errno::ACCESS | Errno::PERM))
    }

    fn errno(&self) -> Option<Errno> {
        Errno::from_io_error(&self.source)
    }
}

/// What lies at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Its kind.
    pub kind: NodeKind,
    /// Its size in bytes; 0 for what is not a regular file.
    pub bytes: u64,
    /// The device it is on.
    pub device: u64,
    /// Its number there. With `device` it says whether two paths are one thing.
    pub inode: u64,
    /// When its content last changed, in nanoseconds since 1970.
    pub modified_ns: i128,
}

impl Stat {
    /// Whether both are the same thing on the disk, whatever the paths were.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    fn of(meta: &std::fs::Metadata) -> Self {
        let kind = kind_of(FileType::from_raw_mode(meta.mode()));
        Self {
            kind,
            bytes: if kind == NodeKind::File { meta.size() } else { 0 },
            device: meta.dev(),
            inode: meta.ino(),
            modified_ns: nanoseconds(meta.mtime(), meta.mtime_nsec()),
        }
    }
}

fn nanoseconds(seconds: i64, part: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(part)
}

fn kind_of(file_type: FileType) -> NodeKind {
    match file_type {
        FileType::RegularFile => NodeKind::File,
        FileType::Directory => NodeKind::Dir,
        FileType::Symlink => NodeKind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            NodeKind::Special
        }
    }
}

/// What lies at `path`; `follow` says whether a link is followed.
///
/// # Errors
///
/// [`FileError`], also when nothing is there.
pub fn stat(path: &Path, follow: bool) -> Result<Stat, FileError> {
    let meta = if follow { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) };
    meta.map(|meta| Stat::of(&meta)).map_err(|source| FileError::new("look at", path, source))
}

/// The physical path: links, `.` and `..` resolved.
///
/// # Errors
///
/// [`FileError`], also when nothing is there.
pub fn real_path(path: &Path) -> Result<PathBuf, FileError> {
    std::fs::canonicalize(path).map_err(|source| FileError::new("resolve", path, source))
}

/// Whether this process may write to what lies at `path`, links followed; for a directory: may create names in it.
///
/// It is what access(2) says: a full disk or a quota is not seen.
///
/// # Errors
///
/// [`FileError`] when it cannot be told, also when nothing is there.
pub fn may_write(path: &Path) -> Result<bool, FileError> {
    let wanted = match stat(path, true)?.kind {
        NodeKind::Dir => Access::WRITE_OK | Access::EXEC_OK,
        NodeKind::File | NodeKind::Link | NodeKind::Special => Access::WRITE_OK,
    };
    match rustix::fs::access(path, wanted) {
        Ok(()) => Ok(true),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::TXTBSY) => Ok(false),
        Err(errno) => Err(FileError::new("ask for access to", path, errno)),
    }
}

/// A name in a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    /// The name.
    pub name: String,
    /// Its kind, links not followed, where the file system tells it with the name. [`Dir::stat`] always tells.
    pub kind: Option<NodeKind>,
}

/// The names in a directory, in the disk's order, without `.` and `..`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Those that are UTF-8.
    pub names: Vec<Name>,
    /// How many fitted but are not UTF-8: no id and no name of this crate is among them.
    pub not_utf8: usize,
}

/// An open directory: many names are looked at without resolving its path again.
#[derive(Debug)]
pub struct Dir {
    fd: std::os::fd::OwnedFd,
    path: PathBuf,
}

impl Dir {
    /// Opens the directory at `path`, links followed.
    ///
    /// # Errors
    ///
    /// [`FileError`]: nothing is there, it is no directory, or it may not be listed.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| FileError::new("open", path, errno))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// The names that begin with `prefix` and end with `suffix`; both may share bytes (`a.b` with `a.` and `.b`).
    ///
    /// # Errors
    ///
    /// [`FileError`] when the listing breaks off: half a listing is never returned.
    pub fn names(&self, prefix: &str, suffix: &str) -> Result<Listing, FileError> {
        let wrong = |errno: Errno| FileError::new("list", &self.path, errno);
        let mut listing = Listing::default();
        // A second descriptor of the same open directory: opening it again would ask for more permission than listing does.
        let fd = self.fd.try_clone().map_err(|source| FileError::new("list", &self.path, source))?;
        let mut entries = rustix::fs::Dir::new(fd).map_err(wrong)?;
        entries.rewind();
        for entry in entries {
            let entry = entry.map_err(wrong)?;
            let name = entry.file_name().to_bytes();
            let fits = name.starts_with(prefix.as_bytes()) && name.ends_with(suffix.as_bytes());
            if !fits || name == b"." || name == b".." {
                continue;
            }
            let file_type = entry.file_type();
            let kind = (file_type != FileType::Unknown).then(|| kind_of(file_type));
            match std::str::from_utf8(name) {
                Ok(name) => listing.names.push(Name { name: name.to_owned(), kind }),
                Err(_) => listing.not_utf8 += 1,
            }
        }
        Ok(listing)
    }

    /// What lies at `name` below this directory, a link at its end not followed.
    ///
    /// # Errors
    ///
    /// [`FileError`], also when nothing is there.
    pub fn stat(&self, name: &Path) -> Result<Stat, FileError> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
                let bytes = if kind == NodeKind::File { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
                let modified_ns = nanoseconds(stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0));
                Ok(Stat { kind, bytes, device: stat.st_dev, inode: stat.st_ino, modified_ns })
            }
            Err(errno) => Err(FileError::new("look at", &self.path.join(name), errno)),
        }
    }
}

/// A regular file, open for reading at any offset.
#[derive(Debug)]
pub struct RegularFile {
    file: File,
    path: PathBuf,
    stat: Stat,
}

impl RegularFile {
    /// Opens the regular file at `path`, links followed. Never blocks.
    ///
    /// The kind is asked before opening (what is not regular is not touched) and again of what was opened (the name may
    /// have changed hands in between; `O_NONBLOCK` keeps that from hanging).
    ///
    /// # Errors
    ///
    /// [`FileError`]: nothing is there, it may not be read, or it is no regular file.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let refuse_others = |stat: Stat| match stat.kind {
            NodeKind::File => Ok(stat),
            NodeKind::Dir => Err(FileError::new("read", path, Errno::ISDIR)),
            NodeKind::Link | NodeKind::Special => {
                Err(FileError::new("read", path, io::Error::other("it is a FIFO, a socket or a device")))
            }
        };
        refuse_others(stat(path, true)?)?;
        let wrong = |source| FileError::new("open", path, source);
        let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(wrong)?;
        let stat = refuse_others(Stat::of(&file.metadata().map_err(wrong)?))?;
        Ok(Self { file, path: path.to_owned(), stat })
    }

    /// What it was when it was opened.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Where it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads up to `buf.len()` bytes at `offset`; less only at the end of the file, 0 beyond it.
    ///
    /// # Errors
    ///
    /// [`FileError`] with what the system said.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, FileError> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.file.read_at(&mut buf[filled..], offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(FileError::new("read", &self.path, source)),
            }
        }
        Ok(filled)
    }
}

/// All bytes of the regular file at `path`, if it has at most `bytes_max`.
///
/// # Errors
///
/// [`FileError`] as [`RegularFile::open`], and when the file is larger: then nothing of it was kept.
pub fn read_small(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let file = RegularFile::open(path)?;
    let too_large = || FileError::new("read", path, io::Error::other(format!("it is larger than {bytes_max} bytes")));
    if file.stat.bytes > bytes_max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // One byte more than was announced: a file that grows meanwhile is read on, one in /proc announces nothing.
    let mut wanted = file.stat.bytes.saturating_add(1);
    loop {
        let from = bytes.len();
        let room = usize::try_from(wanted.min(bytes_max + 1 - from as u64)).unwrap_or(0);
        bytes.resize(from + room, 0);
        let count = file.read_at(from as u64, &mut bytes[from..])?;
        bytes.truncate(from + count);
        if bytes.len() as u64 > bytes_max {
            return Err(too_large());
        }
        if count < room {
            return Ok(bytes);
        }
        wanted = 64 * 1024;
    }
}
