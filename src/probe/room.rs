//! The folder in which a probe plays: everything that it makes is below it, and it is gone afterwards.
//!
//! A probe that is killed cannot tidy up; the next one does: it finds the folder by its name, sees by the lock that nobody
//! holds it, ends the processes that carry its name in their environment or work inside it, and removes it. (A process that
//! leaves its group, its environment and its directory behind is found by nobody.)

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How the names of all such folders begin.
const PREFIX: &str = "throughline-probe-";

/// The variable by which a process of a probe is known.
pub(super) const MARK: &str = "THROUGHLINE_PROBE";

/// A folder without a lock may be one whose probe has just begun.
const YOUNG: Duration = Duration::from_secs(60);

/// How long ended processes may take to be gone.
const GONE: Duration = Duration::from_secs(5);

/// The folder of one probe. Its processes are ended and it is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Room {
    path: PathBuf,
    /// Held as long as the probe lives, however it ends.
    _lock: fs::File,
}

impl Room {
    /// Makes one in the folder for temporary files, and removes what dead probes left there.
    pub(super) fn make() -> io::Result<Self> {
        // Without links: agents name their folders after the physical path.
        let above = fs::canonicalize(std::env::temp_dir())?;
        for left in leftovers(&above) {
            clear(&left);
        }
        let number = uuid::Uuid::new_v4().simple().to_string();
        let path = above.join(format!("{PREFIX}{}", &number[..8]));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = fs::File::create(path.join("lock"))?;
        lock.try_lock().map_err(io::Error::from)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder for one run.
    pub(super) fn case(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::DirBuilder::new().mode(0o755).create(&path)?;
        Ok(path)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        clear(&self.path);
    }
}

/// Folders whose probe is dead.
fn leftovers(above: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(above) else { return Vec::new() };
    let named = entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    named.map(|entry| entry.path()).filter(|path| is_left(path).unwrap_or(false)).collect()
}

fn is_left(path: &Path) -> io::Result<bool> {
    let meta = fs::symlink_metadata(path)?;
    // Also a superuser's probe leaves alone what others named so.
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    // What lies in a folder that anybody could have made may be a pipe, or lead elsewhere.
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
    match fs::OpenOptions::new().read(true).custom_flags(flags).open(path.join("lock")) {
        Ok(lock) => Ok(lock.metadata()?.is_file() && lock.try_lock().is_ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(meta.modified()?.elapsed().is_ok_and(|age| age > YOUNG))
        }
        Err(error) => Err(error),
    }
}

/// Ends the processes of a folder and removes it.
fn clear(path: &Path) {
    let began = Instant::now();
    while end_processes(path) > 0 && began.elapsed() < GONE {
        std::thread::sleep(Duration::from_millis(20));
    }
    // What cannot be removed now, the next probe finds.
    let _ = remove(path);
}

/// Ends every process that carries the folder's name in its environment, and gives how many there still were.
pub(super) fn end_processes(path: &Path) -> usize {
    let mut mark = format!("{MARK}=").into_bytes();
    mark.extend_from_slice(path.as_os_str().as_encoded_bytes());
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found = 0;
    for pid in pids.filter_map(Pid::from_raw) {
        // Taken before the look, so that no other process can get the pid in between.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let of = |what: &str| format!("/proc/{}/{what}", pid.as_raw_nonzero());
        let is_marked = fs::read(of("environ")).is_ok_and(|all| all.split(|&byte| byte == 0).any(|one| one == mark));
        // A process may write over its environment; what was started inside works inside.
        if is_marked || fs::read_link(of("cwd")).is_ok_and(|cwd| cwd.starts_with(path)) {
            found += 1;
            // It may have ended by itself meanwhile.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
    found
}

/// Removes a folder, also one with folders inside that may not be entered.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    if fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    open_up(path);
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn open_up(path: &Path) {
    // Best effort: the removal after it says what is left.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot set up its files has failed")]

    use super::*;

    #[test]
    fn a_folder_with_closed_folders_inside_is_removed() {
        let above = tempfile::tempdir().unwrap();
        let room = above.path().join("room");
        fs::create_dir_all(room.join("a/b")).unwrap();
        fs::write(room.join("a/b/c"), "x").unwrap();
        for closed in ["a/b", "a"] {
            fs::set_permissions(room.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove(&room).unwrap();
        assert!(!room.exists());
    }

    #[test]
    fn what_only_looks_like_a_probes_folder_is_left_alone() {
        let (above, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| above.path().join(format!("{PREFIX}{name}"));
        fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("link")).unwrap();
        for name in ["pipe", "linked", "young", "held", "dead"] {
            fs::create_dir(at(name)).unwrap();
        }
        let pipe = std::process::Command::new("mkfifo").arg(at("pipe").join("lock")).status().unwrap();
        assert!(pipe.success());
        fs::write(elsewhere.path().join("lock"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("lock"), at("linked").join("lock")).unwrap();
        let held = fs::File::create(at("held").join("lock")).unwrap();
        held.try_lock().unwrap();
        fs::File::create(at("dead").join("lock")).unwrap();
        assert_eq!(leftovers(above.path()), [at("dead")]);
    }

    #[test]
    fn only_the_processes_of_the_folder_are_ended() {
        let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let start = |path: &Path| {
            let mut command = std::process::Command::new("sleep");
            command.arg("60").env(MARK, path).spawn().unwrap()
        };
        let (mut one, mut two) = (start(mine.path()), start(other.path()));
        while end_processes(mine.path()) == 0 {}
        assert!(!one.wait().unwrap().success());
        assert!(two.try_wait().unwrap().is_none());
        two.kill().unwrap();
        two.wait().unwrap();
    }
}
