//! Where a log lies: the few things that are asked of the file system beside SQLite.
//!
//! The only file of `log/` that names `std::fs`, so that these calls can move behind a door of `world/`. It creates the
//! log's file and folder with their modes (SQLite gives `-wal` and `-shm` the mode of the log), makes a creation durable,
//! and says what kind of file system this is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The file that says that a commit's result is not known.
const DOUBT: &str = "-unknown";

/// What tells two states of one file apart without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) bytes: u64,
    modified: (i64, i64),
    pub(super) regular: bool,
    pub(super) folder: bool,
    /// How many names it has.
    pub(super) names: u64,
}

/// The state of a file, or nothing where there is none.
pub(super) fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            regular: meta.is_file(),
            folder: meta.is_dir(),
            names: meta.nlink(),
        })),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The path without links, so that `-wal` and `-shm` are looked for where SQLite has them.
pub(super) fn real(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// A file beside the log, as SQLite names it.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A file, whatever it is called.
type FileId = (u64, u64);

fn id_of(path: &Path) -> io::Result<Option<FileId>> {
    Ok(stamp(path)?.map(|found| (found.device, found.inode)))
}

/// Every log that this process has open through SQLite, how often and with which WAL.
///
/// A process loses **all** its POSIX locks on a file when it closes any descriptor of it. SQLite keeps count of its own;
/// a descriptor beside it would take the locks of a connection away, and another program could then remove the WAL that
/// this process still writes. So nothing else is opened on a file that stands here.
static OPEN: Mutex<BTreeMap<FileId, Open>> = Mutex::new(BTreeMap::new());

#[derive(Default, Debug)]
struct Open {
    times: usize,
    /// The WAL and the shared memory, known once they were seen. As long as they are open nobody removes them but who puts
    /// another log in this one's place. All connections of a process share what SQLite knows of them: one opened later
    /// would read the old WAL's index.
    beside: [Option<FileId>; 2],
}

impl Open {
    /// Whether what lies beside the log is what is open.
    fn has(&mut self, beside: [Option<FileId>; 2]) -> bool {
        for (known, found) in self.beside.iter_mut().zip(beside) {
            *known = known.or(found);
        }
        self.beside == beside
    }
}

/// What lies beside a log now.
fn ids_beside(log: &Path) -> io::Result<[Option<FileId>; 2]> {
    Ok([id_of(&beside(log, "-wal"))?, id_of(&beside(log, "-shm"))?])
}

fn open_files() -> MutexGuard<'static, BTreeMap<FileId, Open>> {
    // The map is whole whenever the lock is free: each change of it is one call.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process has the file open through SQLite. Taken before the connection, given back after it.
#[derive(Debug)]
pub(super) struct Held(FileId);

impl Held {
    /// Nothing where this process still has handles whose WAL was taken from the log.
    pub(super) fn of(path: &Path) -> io::Result<Option<Self>> {
        let meta = fs::metadata(path)?;
        let file = (meta.dev(), meta.ino());
        let beside = ids_beside(path)?;
        let mut files = open_files();
        let open = files.entry(file).or_default();
        if !open.has(beside) {
            return Ok(None);
        }
        open.times += 1;
        Ok(Some(Self(file)))
    }

    /// Whether the file still lies there, and its WAL and shared memory beside it.
    pub(super) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let (file, beside) = (id_of(path)?, ids_beside(path)?);
        Ok(file == Some(self.0) && open_files().get_mut(&self.0).is_some_and(|open| open.has(beside)))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut open = open_files();
        match open.get_mut(&self.0) {
            Some(file) if file.times > 1 => file.times -= 1,
            Some(_) | None => drop(open.remove(&self.0)),
        }
    }
}

/// The first bytes of a file, at most the 100 of a database's header; nothing where this process has it open already.
pub(super) fn header(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let open = open_files();
    let meta = fs::metadata(path)?;
    if open.contains_key(&(meta.dev(), meta.ino())) {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(100);
    fs::File::open(path)?.take(100).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Creates an empty file, mode 0600, and what is missing of its folders, mode 0700; durable when it returns.
///
/// Another process that does the same at the same moment does no harm: neither empties the other's file.
pub(super) fn create(path: &Path) -> io::Result<()> {
    let folder = folder_of(path);
    let mut missing = Vec::new();
    let mut above = folder;
    while !above.as_os_str().is_empty() && stamp(above)?.is_none() {
        missing.push(above);
        above = above.parent().unwrap_or(Path::new(""));
    }
    for folder in missing.into_iter().rev() {
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    // Not only of those made here: whoever made one may have died, or have met an error, before its name was durable.
    let folder = fs::canonicalize(folder)?;
    let device = fs::metadata(&folder)?.dev();
    for above in folder.ancestors().skip(1) {
        if fs::metadata(above)?.dev() != device {
            break;
        }
        match fs::File::open(above) {
            // Nobody who may not read a folder made one in it and died.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            opened => opened?.sync_all()?,
        }
    }
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file.sync_all()?,
        // Somebody was faster, perhaps a thread of this process: its file is not touched.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    sync_folder_of(path)
}

/// Whether a rollback journal lies beside a log: SQLite takes back what its writer did not finish.
pub(super) fn has_journal(path: &Path) -> io::Result<bool> {
    let mut begins = Vec::with_capacity(JOURNAL.len());
    match fs::File::open(beside(path, "-journal")) {
        Ok(file) => file.take(JOURNAL.len() as u64).read_to_end(&mut begins)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(begins == JOURNAL)
}

/// The first bytes of a rollback journal.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Makes what can be read of a log durable: the WAL, and the names beside it.
///
/// SQLite reads what another process wrote and died before it synced: that is gone after a power cut, and must not be
/// acknowledged before.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    match fs::File::open(beside(path, "-wal")) {
        // SQLite takes no lock on the WAL: closing this takes none away.
        Ok(wal) => wal.sync_all()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    sync_folder_of(path)
}

/// Opens a lock file beside a log, and makes it where it is missing: of the log's mode and owner, as SQLite makes its own
/// files, so that whoever can write the log can lock it. It stays empty.
pub(super) fn lock_file(log: &Path, suffix: &str) -> io::Result<fs::File> {
    let path = beside(log, suffix);
    let open = |make: bool, mode| fs::OpenOptions::new().read(true).write(true).create_new(make).mode(mode).open(&path);
    match open(false, 0) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let of = fs::metadata(log)?;
    match open(true, of.mode() & 0o666) {
        Ok(file) => {
            // The umask may have taken bits away. Only the superuser can give a file away, and only there it matters.
            let _ = file.set_permissions(fs::Permissions::from_mode(of.mode() & 0o666));
            let _ = std::os::unix::fs::fchown(&file, Some(of.uid()), Some(of.gid()));
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(false, 0),
        Err(error) => Err(error),
    }
}

/// Says beside a log that the result of a commit is not known, for whoever opens it next. Not made durable: after a power
/// cut the disk alone knows the result, and is right.
pub(super) fn doubt(log: &Path) -> io::Result<()> {
    lock_file(log, DOUBT).map(drop)
}

/// Whether the result of a commit is not known.
pub(super) fn is_doubted(log: &Path) -> io::Result<bool> {
    Ok(stamp(&beside(log, DOUBT))?.is_some())
}

/// The result is known now.
pub(super) fn settled(log: &Path) -> io::Result<()> {
    match fs::remove_file(beside(log, DOUBT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes the names in the folder of `path` durable.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    fs::File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// File systems on which several machines can write one file, or on which shared memory and locks may not be what
/// SQLite's WAL needs: FUSE stands for whatever is behind it.
const NETWORK: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x6573_5546, "FUSE"),
    (0x5346_414F, "AFS"),
    (0x00C3_6400, "CEPH"),
    (0x0102_1997, "9P"),
    (0x7375_7245, "CODA"),
    (0x564C, "NCP"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "LUSTRE"),
];

/// The name of the network file system that `path` lies on, if it is one.
#[cfg(target_os = "linux")]
pub(super) fn network(path: &Path) -> io::Result<Option<&'static str>> {
    let found = rustix::fs::statfs(path)?;
    // The kernel's magic numbers have 32 bits; the field's width and sign differ by machine.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the upper half carries nothing")]
    let magic = found.f_type as u32;
    Ok(NETWORK.iter().find(|(number, _)| *number == magic).map(|(_, name)| *name))
}

/// Elsewhere nothing is known to be a network file system.
#[cfg(not(target_os = "linux"))]
pub(super) fn network(_path: &Path) -> io::Result<Option<&'static str>> {
    let _ = NETWORK;
    Ok(None)
}

/// Nobody waits longer than 24 days: it is what SQLite can be told.
pub(super) const LONGEST_MS: u64 = i32::MAX.unsigned_abs() as u64;

/// A wait with an end.
pub(super) struct Patience(Instant);

impl Patience {
    pub(super) fn of(ms: u64) -> Self {
        Self(Instant::now() + Duration::from_millis(ms.min(LONGEST_MS)))
    }

    /// What is left of it.
    pub(super) fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Waits a moment; false once the time is up.
    pub(super) fn wait(&self) -> bool {
        let left = Instant::now() < self.0;
        if left {
            std::thread::sleep(Duration::from_millis(5));
        }
        left
    }
}

/// Longer than the step of the clock that stamps files: a change that a stamp does not show is over by then.
const STEP: Duration = Duration::from_millis(20);

/// A private copy of a log with its WAL and its rollback journal, taken from a folder in which not even `-shm` can be made.
/// Removed when dropped.
#[derive(Debug)]
pub(super) struct PrivateCopy {
    folder: PathBuf,
    /// What was copied, and in which state it was.
    of: [(PathBuf, Option<Stamp>); 3],
}

impl PrivateCopy {
    /// Copies the files until two readings in a row are equal: only then are they of one moment. Nothing when they never
    /// were.
    pub(super) fn of(log: &Path) -> io::Result<Option<Self>> {
        let folder = std::env::temp_dir().join(format!("throughline-{}", uuid::Uuid::new_v4().simple()));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let mut copy = Self { folder, of: ["", "-wal", "-journal"].map(|suffix| (beside(log, suffix), None)) };
        for _ in 0..5 {
            let mut taken = Vec::new();
            let to = copy.log();
            for ((from, stamp_then), suffix) in copy.of.iter_mut().zip(["", "-wal", "-journal"]) {
                *stamp_then = stamp(from)?;
                taken.push(pour(from, Some(&beside(&to, suffix)))?);
            }
            std::thread::sleep(STEP);
            let mut again = Vec::new();
            for (from, _) in &copy.of {
                again.push(pour(from, None)?);
            }
            if taken == again && !copy.is_old()? {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// Whether what was copied has changed.
    pub(super) fn is_old(&self) -> io::Result<bool> {
        for (path, then) in &self.of {
            if stamp(path)? != *then {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The copied log.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log.db")
    }

    /// Removes the copy's names; who has its files open keeps them.
    pub(super) fn lose_names(&self) {
        // What stays behind is private and in the folder for temporary files: nobody is helped by an error here.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        self.lose_names();
    }
}

/// Pours a file into another, if one is named, and gives its digest; where there is none, there is none afterwards.
fn pour(from: &Path, to: Option<&Path>) -> io::Result<Option<blake3::Hash>> {
    let mut file = match fs::File::open(from) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match to.map(fs::remove_file) {
                Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            };
        }
        Err(error) => return Err(error),
    };
    let mut to: Box<dyn io::Write> = match to {
        Some(to) => Box::new(fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?),
        None => Box::new(io::sink()),
    };
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = file.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            to.flush()?;
            return Ok(Some(hasher.finalize()));
        };
        hasher.update(bytes);
        to.write_all(bytes)?;
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot set up its files has failed")]

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_missing_folders_are_made_and_nobody_else_may_enter() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let log = root.path().join("a/b/log.db");
        create(&log).unwrap();
        assert_eq!([mode(&log), mode(&root.path().join("a/b")), mode(&root.path().join("a"))], [0o600, 0o700, 0o700]);
        assert_eq!(mode(root.path()), 0o755);
    }

    #[test]
    fn creating_again_keeps_what_is_there() {
        let root = tempfile::tempdir().unwrap();
        let log = root.path().join("log.db");
        fs::write(&log, b"here").unwrap();
        create(&log).unwrap();
        assert_eq!(fs::read(&log).unwrap(), b"here");
    }

    #[test]
    fn a_private_copy_is_equal_and_gone_when_dropped() {
        let root = tempfile::tempdir().unwrap();
        let log = root.path().join("log.db");
        fs::write(&log, b"pages").unwrap();
        fs::write(beside(&log, "-wal"), b"frames").unwrap();
        let copy = PrivateCopy::of(&log).unwrap().unwrap();
        let place = copy.log();
        assert_eq!(fs::read(&place).unwrap(), b"pages");
        assert_eq!(fs::read(beside(&place, "-wal")).unwrap(), b"frames");
        drop(copy);
        assert!(stamp(&place).unwrap().is_none());
    }
}
