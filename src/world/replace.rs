//! Replacing a small file that others read and write too: as a whole or not at all, and never over a change of theirs.
//!
//! Whoever reads the file meanwhile sees the old bytes or the new ones. A link stays a link: what it leads to is replaced.
//! Mode and owner stay as they were; access lists and extended attributes do not. Programs that use this door take turns;
//! a change by any other is seen by comparing the bytes once more directly before the new ones take their place.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::world::files::{self, FileError};
use crate::world::write;

/// How often a folder that another one holds is tried again.
const POLL: Duration = Duration::from_millis(10);

/// Why a file was not replaced. It is as it was, but for [`ReplaceError::NotDurable`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// There is no such folder.
    #[error("there is no folder {path:?}; name one that is there")]
    NoFolder {
        /// Which.
        path: PathBuf,
    },
    /// The file is a link to nothing.
    #[error("{path:?} is a link to nothing; remove it or make what it leads to")]
    DanglingLink {
        /// The link.
        path: PathBuf,
    },
    /// The file has another name, under which it would stay what it was.
    #[error("{path:?} has another name (a hard link), which would keep the old file; make it a file of its own")]
    SeveralNames {
        /// The file.
        path: PathBuf,
    },
    /// The file is not this user's to write.
    #[error("{path:?} may not be written; make it writable for this user")]
    NotWritable {
        /// The file.
        path: PathBuf,
    },
    /// The file belongs to somebody else, and the new one cannot be given to them.
    #[error("{path:?} belongs to another user or group; do it as its owner")]
    Owner {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody changed the file after it was read.
    #[error("{path:?} was changed by somebody else meanwhile; try again")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another process replaces a file of the same folder and does not come to an end.
    #[error("another throughline changes files in {path:?} and does not come to an end; try again")]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// Something of the disk could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is replaced, but may be the old one again after a power cut.
    #[error("the change is made, but may be lost in a power cut; see what the system says of the disk")]
    NotDurable(#[source] FileError),
}

/// A file that is about to be replaced: what it was when it was read. Others that use this door wait until it is dropped.
#[derive(Debug)]
pub struct Replacing {
    /// As it was named.
    named: PathBuf,
    /// Where it really is.
    target: PathBuf,
    /// The folder it is in, locked.
    folder: File,
    old: Option<Old>,
}

#[derive(PartialEq, Eq, Debug)]
struct Old {
    bytes: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
}

impl Replacing {
    /// Reads the file at `path`, which may be absent; waits at most so long for others that replace files in its folder.
    ///
    /// # Errors
    ///
    /// [`ReplaceError`].
    pub fn begin(path: &Path, wait: Duration) -> Result<Self, ReplaceError> {
        let target = target_of(path)?;
        let folder = locked(folder_of(&target), wait)?;
        let old = read(&target)?;
        Ok(Self { named: path.to_owned(), target, folder, old })
    }

    /// What is in the file; nothing where there is none.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        self.old.as_ref().map(|old| old.bytes.as_slice())
    }

    /// Gives the file these bytes. A new file gets mode 0600.
    ///
    /// # Errors
    ///
    /// [`ReplaceError`].
    ///
    /// # Crash
    ///
    /// The file is the old one or the new one, whole. A file beside it, `.NAME.throughline-ID`, may be left; nobody reads it.
    pub fn replace(self, bytes: &[u8]) -> Result<(), ReplaceError> {
        self.is_unchanged()?;
        if self.old.is_some() && !files::may_write(&self.target)? {
            return Err(ReplaceError::NotWritable { path: self.target });
        }
        let temp = self.temp();
        write::new_file_with(&temp, |file| self.fill(file, bytes))??;
        let placed = self.is_unchanged().and_then(|()| self.place(&temp));
        if placed.is_err() {
            // It is this call's own; the reason for the failure is the better word than a failure to remove it.
            let _ = std::fs::remove_file(&temp);
        }
        placed?;
        self.sync()
    }

    /// Removes the file.
    ///
    /// # Errors
    ///
    /// [`ReplaceError`].
    pub fn remove(self) -> Result<(), ReplaceError> {
        self.is_unchanged()?;
        std::fs::remove_file(&self.target).map_err(|error| FileError::new("remove", &self.target, error))?;
        self.sync()
    }

    fn temp(&self) -> PathBuf {
        let name = self.target.file_name().unwrap_or_default().to_string_lossy();
        folder_of(&self.target).join(format!(".{name}.throughline-{}", uuid::Uuid::new_v4().simple()))
    }

    /// The new file is whole, and whose and how readable the old one was, before it has a name that anybody reads.
    fn fill(&self, file: &mut File, bytes: &[u8]) -> Result<(), ReplaceError> {
        let wrong = |error| FileError::new("write the new", &self.target, error);
        file.write_all(bytes).map_err(wrong)?;
        let Some(old) = &self.old else { return Ok(()) };
        let made = file.metadata().map_err(wrong)?;
        if (made.uid(), made.gid()) != old.owner {
            let (user, group) = old.owner;
            let path = || self.target.clone();
            fchown(&*file, Some(user), Some(group)).map_err(|source| ReplaceError::Owner { path: path(), source })?;
        }
        file.set_permissions(Permissions::from_mode(old.mode)).map_err(wrong)?;
        Ok(())
    }

    fn is_unchanged(&self) -> Result<(), ReplaceError> {
        if target_of(&self.named)? == self.target && read(&self.target)? == self.old {
            return Ok(());
        }
        Err(ReplaceError::Changed { path: self.target.clone() })
    }

    /// Gives the new file its name. Where there was none, one that appeared meanwhile is not replaced.
    fn place(&self, temp: &Path) -> Result<(), ReplaceError> {
        let wrong = |error: io::Error| FileError::new("replace", &self.target, error);
        if self.old.is_none() {
            match rename_to_nothing(temp, &self.target) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(ReplaceError::Changed { path: self.target.clone() });
                }
                Err(error) => return Err(wrong(error).into()),
            }
        }
        std::fs::rename(temp, &self.target).map_err(wrong)?;
        Ok(())
    }

    fn sync(&self) -> Result<(), ReplaceError> {
        let synced = self.folder.sync_all();
        synced.map_err(|error| ReplaceError::NotDurable(FileError::new("sync", folder_of(&self.target), error)))
    }
}

/// Renames only where nothing has the new name; false where the file system cannot say so in one step.
#[cfg(target_os = "linux")]
fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_to_nothing(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where the file really is, or would be.
fn target_of(path: &Path) -> Result<PathBuf, ReplaceError> {
    match files::real_path(path) {
        Ok(target) => return Ok(target),
        Err(error) if error.is_absent() => {}
        Err(error) => return Err(error.into()),
    }
    match files::stat(path, false) {
        Ok(_) => return Err(ReplaceError::DanglingLink { path: path.to_owned() }),
        Err(error) if error.is_absent() => {}
        Err(error) => return Err(error.into()),
    }
    let folder = folder_of(path);
    match files::real_path(folder) {
        Ok(real) => Ok(real.join(path.file_name().unwrap_or_default())),
        Err(error) if error.is_absent() => Err(ReplaceError::NoFolder { path: folder.to_owned() }),
        Err(error) => Err(error.into()),
    }
}

fn read(target: &Path) -> Result<Option<Old>, ReplaceError> {
    let wrong = |error| FileError::new("look at", target, error);
    let bytes = match files::read_small(target, files::SMALL_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.is_absent() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let meta = std::fs::metadata(target).map_err(wrong)?;
    if meta.nlink() > 1 {
        return Err(ReplaceError::SeveralNames { path: target.to_owned() });
    }
    Ok(Some(Old { bytes, mode: meta.mode() & 0o7777, owner: (meta.uid(), meta.gid()) }))
}

/// The folder, held against others that replace files in it; where there are no locks, without.
fn locked(folder: &Path, wait: Duration) -> Result<File, ReplaceError> {
    let flags = OFlags::DIRECTORY.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(folder);
    let file = match file.map_err(|error| FileError::new("open", folder, error)) {
        Err(error) if error.is_absent() => return Err(ReplaceError::NoFolder { path: folder.to_owned() }),
        other => other?,
    };
    let until = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => return Err(ReplaceError::Busy { path: folder.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot set up its files has failed")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const WAIT: Duration = Duration::from_millis(50);

    struct Room(tempfile::TempDir);

    impl Room {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn file(&self, mode: u32) -> PathBuf {
            let path = self.path("s.json");
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn the_new_file_is_as_readable_as_the_old_one_was_and_nothing_is_left() {
        for bits in [0o644, 0o600, 0o640, 0o666] {
            let room = Room::new();
            let path = room.file(bits);
            let replacing = Replacing::begin(&path, WAIT).unwrap();
            assert_eq!(replacing.bytes(), Some(&b"old"[..]));
            replacing.replace(b"new").unwrap();
            assert_eq!((fs::read(&path).unwrap().as_slice(), mode(&path)), (&b"new"[..], bits));
            assert_eq!(room.names(), ["s.json"]);
        }
        let room = Room::new();
        let path = room.path("s.json");
        Replacing::begin(&path, WAIT).unwrap().replace(b"new").unwrap();
        assert_eq!((mode(&path), room.names()), (0o600, vec!["s.json".into()]));
        Replacing::begin(&path, WAIT).unwrap().remove().unwrap();
        assert!(room.names().is_empty());
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let room = Room::new();
        let path = room.file(0o644);
        fs::create_dir(room.path("d")).unwrap();
        symlink(&path, room.path("d/middle")).unwrap();
        symlink("d/middle", room.path("link")).unwrap();
        Replacing::begin(&room.path("link"), WAIT).unwrap().replace(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(room.path("link")).unwrap().is_symlink());
        symlink("nowhere", room.path("dangling")).unwrap();
        let error = Replacing::begin(&room.path("dangling"), WAIT).unwrap_err();
        assert!(matches!(error, ReplaceError::DanglingLink { .. }), "{error}");
    }

    #[test]
    fn a_change_by_somebody_else_is_never_replaced() {
        type Change = fn(&Path);
        let changes: [(Option<u32>, Change); 5] = [
            (Some(0o644), |path| fs::write(path, "theirs").unwrap()),
            (Some(0o644), |path| fs::remove_file(path).unwrap()),
            (Some(0o644), |path| fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap()),
            (None, |path| fs::write(path, "theirs").unwrap()),
            (Some(0o644), |path| {
                fs::rename(path, path.with_extension("other")).unwrap();
                symlink(path.with_extension("other"), path).unwrap();
            }),
        ];
        for (number, (bits, change)) in changes.into_iter().enumerate() {
            for removes in [false, true] {
                let room = Room::new();
                let path = bits.map_or_else(|| room.path("s.json"), |bits| room.file(bits));
                let replacing = Replacing::begin(&path, WAIT).unwrap();
                change(&path);
                let before = (room.names(), fs::read(&path).ok());
                let error = if removes { replacing.remove() } else { replacing.replace(b"new") }.unwrap_err();
                assert!(matches!(error, ReplaceError::Changed { .. }), "{number}: {error}");
                assert_eq!((room.names(), fs::read(&path).ok()), before, "{number}");
            }
        }
    }

    #[test]
    fn a_name_that_appears_at_the_last_moment_is_not_replaced() {
        let room = Room::new();
        let path = room.path("s.json");
        let replacing = Replacing::begin(&path, WAIT).unwrap();
        fs::write(room.path("temp"), "new").unwrap();
        fs::write(&path, "theirs").unwrap();
        let error = replacing.place(&room.path("temp")).unwrap_err();
        assert!(matches!(error, ReplaceError::Changed { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn what_cannot_be_replaced_whole_is_refused() {
        let room = Room::new();
        let path = room.file(0o644);
        fs::hard_link(&path, room.path("second")).unwrap();
        let error = Replacing::begin(&path, WAIT).unwrap_err();
        assert!(matches!(error, ReplaceError::SeveralNames { .. }), "{error}");
        let error = Replacing::begin(&room.path("none/s.json"), WAIT).unwrap_err();
        assert!(matches!(error, ReplaceError::NoFolder { .. }), "{error}");
        let error = Replacing::begin(&room.path("second/s.json"), WAIT).unwrap_err();
        assert!(matches!(error, ReplaceError::NoFolder { .. }), "{error}");
        fs::create_dir(room.path("folder")).unwrap();
        let error = Replacing::begin(&room.path("folder"), WAIT).unwrap_err();
        assert!(matches!(error, ReplaceError::File(_)), "{error}");
    }

    #[test]
    fn one_waits_for_the_other_and_not_for_ever() {
        let room = Room::new();
        let path = room.file(0o644);
        let first = Replacing::begin(&path, WAIT).unwrap();
        let error = Replacing::begin(&path, WAIT).unwrap_err();
        assert!(matches!(error, ReplaceError::Busy { .. }), "{error}");
        let second = std::thread::spawn({
            let path = path.clone();
            move || Replacing::begin(&path, Duration::from_secs(20)).unwrap().bytes().map(<[u8]>::to_vec)
        });
        first.replace(b"new").unwrap();
        assert_eq!(second.join().unwrap(), Some(b"new".to_vec()));
    }
}
