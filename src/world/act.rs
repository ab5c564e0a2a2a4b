//! Changing files, one step at a time, as [`Doors`](crate::world::doors::Doors) promises it: nothing here replaces anything,
//! follows a link at the end of a path, or cleans up after itself.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use crate::event::{FileFacts, TAIL_BYTES};
use crate::id::Digest;
use crate::world::doors::{DoorError, DoorKind};

/// What is read and written at a time.
const CHUNK_BYTES: usize = 1024 * 1024;

/// What a small file may have.
const SMALL_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What the system's error is to a protocol.
pub(super) fn failed(verb: &'static str, path: &str, error: &io::Error) -> DoorError {
    let errno = Errno::from_io_error(error);
    let kind = match errno {
        Some(Errno::EXIST) => DoorKind::Exists,
        Some(Errno::NOENT | Errno::NOTDIR) => DoorKind::Absent,
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => DoorKind::Full,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => DoorKind::Denied,
        _ => DoorKind::Failed,
    };
    DoorError::new(verb, path, kind, error.to_string())
}

/// A file system that cannot do it says so in one of several ways.
fn unless_unsupported(error: DoorError, errno: Errno, ways: &[Errno]) -> DoorError {
    if ways.contains(&errno) { DoorError { kind: DoorKind::Unsupported, ..error } } else { error }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| Path::new("/"))
}

/// [`Doors::make_dir`](crate::world::doors::Doors::make_dir)
pub(super) fn make_dir(dir: &str) -> Result<(), DoorError> {
    make_one(Path::new(dir)).map_err(|error| failed("create the folder", dir, &error))
}

fn make_one(dir: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => sync(parent(dir)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && std::fs::metadata(dir)?.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && dir.parent().is_some() => {
            make_one(parent(dir))?;
            match std::fs::DirBuilder::new().mode(0o700).create(dir) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                Ok(()) | Err(_) => sync(parent(dir)),
            }
        }
        Err(error) => Err(error),
    }
}

fn sync(dir: &Path) -> io::Result<()> {
    match File::open(dir)?.sync_all() {
        // Some file systems have no such thing; their names are durable by themselves, or never.
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::INVAL | Errno::NOTSUP)) => Ok(()),
        synced => synced,
    }
}

/// [`Doors::sync_dir`](crate::world::doors::Doors::sync_dir)
pub(super) fn sync_dir(dir: &str) -> Result<(), DoorError> {
    sync(Path::new(dir)).map_err(|error| failed("make durable", dir, &error))
}

/// [`Doors::sync_file`](crate::world::doors::Doors::sync_file)
pub(super) fn sync_file(path: &str) -> Result<(), DoorError> {
    let wrong = |error: &io::Error| failed("make durable", path, error);
    // A link is followed: it is where the provider itself wrote.
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| wrong(&error))?;
    // Its folder may be as new as the file.
    let dir = parent(Path::new(path));
    sync(dir).and_then(|()| sync(parent(dir))).map_err(|error| wrong(&error))
}

fn open_regular(verb: &'static str, path: &str) -> Result<File, DoorError> {
    let flags = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK).bits();
    let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path);
    let file = opened.map_err(|error| failed(verb, path, &error))?;
    let meta = file.metadata().map_err(|error| failed(verb, path, &error))?;
    if meta.is_file() { Ok(file) } else { Err(DoorError::new(verb, path, DoorKind::Failed, "it is no regular file")) }
}

fn create_new(verb: &'static str, path: &str) -> Result<File, DoorError> {
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|error| failed(verb, path, &error))
}

/// Size and digests of what passes.
struct Facts {
    bytes: u64,
    whole: blake3::Hasher,
    /// The last bytes, at least as many as the tail has where there are so many.
    last: Vec<u8>,
}

impl Facts {
    fn new() -> Self {
        Self { bytes: 0, whole: blake3::Hasher::new(), last: Vec::new() }
    }

    fn take(&mut self, chunk: &[u8]) {
        const TAIL: usize = TAIL_BYTES as usize;
        self.bytes += chunk.len() as u64;
        self.whole.update(chunk);
        let kept = &chunk[chunk.len().saturating_sub(TAIL)..];
        let surplus = (self.last.len() + kept.len()).saturating_sub(TAIL);
        self.last.drain(..surplus.min(self.last.len()));
        self.last.extend_from_slice(kept);
    }

    fn end(self) -> FileFacts {
        let whole = Some(Digest(*self.whole.finalize().as_bytes()));
        FileFacts { bytes: self.bytes, tail: Digest::plain(&self.last), whole }
    }
}

/// [`Doors::facts`](crate::world::doors::Doors::facts)
pub(super) fn facts(path: &str) -> Result<FileFacts, DoorError> {
    let mut file = open_regular("read", path)?;
    let mut facts = Facts::new();
    each_chunk(&mut file, u64::MAX, |chunk| {
        facts.take(chunk);
        Ok(())
    })
    .map_err(|error| failed("read", path, &error))?;
    Ok(facts.end())
}

/// Reads at most so many bytes; gives how many there were.
fn each_chunk(file: &mut File, bytes: u64, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        match file.read(&mut chunk[..wanted]) {
            Ok(0) => break,
            Ok(count) => {
                each(&chunk[..count])?;
                left -= count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes - left)
}

/// [`Doors::copy_new`](crate::world::doors::Doors::copy_new)
pub(super) fn copy_new(from: &str, to: &str, bytes: u64) -> Result<FileFacts, DoorError> {
    // Links are followed to the source: it is where the provider itself would read.
    let mut source = File::open(from).map_err(|error| failed("read", from, &error))?;
    let mut copy = create_new("create", to)?;
    let mut facts = Facts::new();
    let wrong = |error: &io::Error| failed("copy to", to, error);
    let shared = rustix::fs::ioctl_ficlone(&copy, &source).is_ok();
    let read = if shared {
        // The blocks are shared with the source: only what is beyond the prefix is cut off, and the digest is of what is there.
        copy.set_len(bytes).map_err(|error| wrong(&error))?;
        each_chunk(&mut copy, bytes, |chunk| {
            facts.take(chunk);
            Ok(())
        })
    } else {
        each_chunk(&mut source, bytes, |chunk| {
            facts.take(chunk);
            copy.write_all(chunk)
        })
    };
    if read.map_err(|error| wrong(&error))? < bytes {
        return Err(DoorError::new("copy", from, DoorKind::Failed, "it became shorter while it was copied"));
    }
    copy.sync_all().map_err(|error| wrong(&error))?;
    Ok(facts.end())
}

/// [`Doors::write_new`](crate::world::doors::Doors::write_new)
pub(super) fn write_new(path: &str, bytes: &[u8]) -> Result<(), DoorError> {
    let mut file = create_new("create", path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| failed("write", path, &error))
}

/// [`Doors::read_small`](crate::world::doors::Doors::read_small)
pub(super) fn read_small(path: &str) -> Result<Vec<u8>, DoorError> {
    let file = open_regular("read", path)?;
    let mut bytes = Vec::new();
    let read = file.take(SMALL_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed("read", path, &error))?;
    if bytes.len() as u64 > SMALL_BYTES_MAX {
        return Err(DoorError::new("read", path, DoorKind::Failed, "it is too large"));
    }
    Ok(bytes)
}

/// [`Doors::link_new`](crate::world::doors::Doors::link_new)
pub(super) fn link_new(from: &str, to: &str) -> Result<(), DoorError> {
    rustix::fs::link(from, to).map_err(|errno| {
        let ways = [Errno::PERM, Errno::OPNOTSUPP, Errno::MLINK, Errno::XDEV, Errno::NOSYS];
        unless_unsupported(failed("link to", to, &errno.into()), errno, &ways)
    })
}

/// [`Doors::rename_new`](crate::world::doors::Doors::rename_new)
pub(super) fn rename_new(from: &str, to: &str) -> Result<(), DoorError> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Two names for a moment, but never none, and nothing is replaced.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            link_new(from, to)?;
            remove(from)
        }
        Err(errno) => Err(failed("rename to", to, &errno.into())),
    }
}

/// [`Doors::remove`](crate::world::doors::Doors::remove)
pub(super) fn remove(path: &str) -> Result<(), DoorError> {
    std::fs::remove_file(path).map_err(|error| failed("remove", path, &error))
}

/// [`Doors::touch`](crate::world::doors::Doors::touch)
pub(super) fn touch(path: &str) -> Result<i64, DoorError> {
    let wrong = |error: &io::Error| failed("touch", path, error);
    let file = open_regular("touch", path)?;
    let meta = file.metadata().map_err(|error| wrong(&error))?;
    file.set_modified(SystemTime::now()).map_err(|error| wrong(&error))?;
    Ok(meta.mtime().saturating_mul(1000).saturating_add(meta.mtime_nsec() / 1_000_000))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot make its files should stop")]

    use super::*;

    fn room() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn at(room: &tempfile::TempDir, name: &str) -> String {
        room.path().join(name).to_str().unwrap().to_owned()
    }

    fn kind<T: std::fmt::Debug>(result: Result<T, DoorError>) -> DoorKind {
        result.unwrap_err().kind
    }

    #[test]
    fn facts_are_the_same_however_the_chunks_fall() {
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        for size in [1, 7, 4096, 65_536, 100_000, bytes.len()] {
            let mut facts = Facts::new();
            bytes.chunks(size).for_each(|chunk| facts.take(chunk));
            let found = facts.end();
            assert_eq!(found.bytes, bytes.len() as u64);
            assert_eq!(found.whole, Some(Digest::plain(&bytes)), "chunks of {size}");
            assert_eq!(found.tail, Digest::plain(&bytes[bytes.len() - 65_536..]), "chunks of {size}");
        }
    }

    #[test]
    fn a_copy_is_the_prefix_that_was_asked_for_and_the_source_is_untouched() {
        let room = room();
        let (from, to) = (at(&room, "a"), at(&room, "b"));
        std::fs::write(&from, "one\ntwo\nthr").unwrap();
        let copied = copy_new(&from, &to, 8).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"one\ntwo\n");
        assert_eq!(std::fs::read(&from).unwrap(), b"one\ntwo\nthr");
        assert_eq!(copied, facts(&to).unwrap());
        assert_eq!(kind(copy_new(&from, &to, 8)), DoorKind::Exists);
        assert_eq!(kind(copy_new(&from, &at(&room, "c"), 12)), DoorKind::Failed, "it has only 11 bytes");
        assert_eq!(kind(copy_new(&at(&room, "none"), &at(&room, "d"), 1)), DoorKind::Absent);
    }

    #[test]
    fn nothing_is_ever_replaced() {
        let room = room();
        let (a, b) = (at(&room, "a"), at(&room, "b"));
        write_new(&a, b"a").unwrap();
        write_new(&b, b"b").unwrap();
        assert_eq!(kind(write_new(&a, b"x")), DoorKind::Exists);
        assert_eq!(kind(link_new(&a, &b)), DoorKind::Exists);
        assert_eq!(kind(rename_new(&a, &b)), DoorKind::Exists);
        // A link that leads nowhere has the name too.
        let dangling = at(&room, "l");
        std::os::unix::fs::symlink(at(&room, "nowhere"), &dangling).unwrap();
        assert_eq!(kind(link_new(&a, &dangling)), DoorKind::Exists);
        assert_eq!(kind(rename_new(&a, &dangling)), DoorKind::Exists);
        assert_eq!(kind(copy_new(&a, &dangling, 1)), DoorKind::Exists);
        assert_eq!((std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap()), (b"a".to_vec(), b"b".to_vec()));
        rename_new(&a, &at(&room, "c")).unwrap();
        assert_eq!(kind(remove(&a)), DoorKind::Absent);
    }

    #[test]
    fn links_are_not_followed_to_what_is_looked_at() {
        let room = room();
        let (a, link) = (at(&room, "a"), at(&room, "l"));
        write_new(&a, b"a").unwrap();
        std::os::unix::fs::symlink(&a, &link).unwrap();
        assert_eq!(kind(facts(&link)), DoorKind::Failed);
        assert_eq!(kind(read_small(&link)), DoorKind::Failed);
        assert_eq!(kind(facts(room.path().to_str().unwrap())), DoorKind::Failed);
    }

    #[test]
    fn folders_are_made_with_those_above_them_and_a_file_in_the_way_is_an_error() {
        let room = room();
        let deep = at(&room, "a/b/c");
        make_dir(&deep).unwrap();
        make_dir(&deep).unwrap();
        sync_dir(&deep).unwrap();
        write_new(&at(&room, "f"), b"").unwrap();
        assert_eq!(kind(make_dir(&at(&room, "f/x"))), DoorKind::Absent);
        assert_eq!(kind(make_dir(&at(&room, "f"))), DoorKind::Exists);
    }

    #[test]
    fn touching_gives_the_time_before() {
        let room = room();
        let a = at(&room, "a");
        write_new(&a, b"a").unwrap();
        let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        File::open(&a).unwrap().set_modified(old).unwrap();
        assert_eq!(touch(&a).unwrap(), 1_000_000_000);
        assert!(std::fs::metadata(&a).unwrap().modified().unwrap() > old);
    }
}
