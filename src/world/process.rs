//! The process table: who runs and since when, and who we are in it.
//!
//! A pid alone names nobody: it is reused, and it means something else in another pid namespace, after a reboot, on another
//! machine. So what is told here is a pid's *start time* beside it, and a [`Holder`] carries host, boot and namespace.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::files::{self, FileError};
use crate::event::Holder;

/// What the process table says of a pid in our namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// It runs.
    Running {
        /// Its start time in clock ticks since boot.
        started: u64,
    },
    /// It has ended; only its exit code waits for its parent.
    Ended {
        /// Its start time in clock ticks since boot.
        started: u64,
    },
    /// There is no such process.
    Gone,
    /// It exists, but we may not see more of it, or there is no process table here.
    Hidden,
}

/// Why this process cannot say who it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnError {
    /// Something of the process table could not be read.
    #[error("this machine's process table cannot be read; throughline needs /proc")]
    Table {
        /// What.
        source: FileError,
    },
    /// The process table does not show this process.
    #[error(
        "the process table does not show this process (pid {pid}); throughline needs /proc of its own pid namespace"
    )]
    Unlisted {
        /// Our pid.
        pid: u32,
    },
}

/// The number of this process.
#[must_use]
pub fn own_id() -> u32 {
    std::process::id()
}

/// The id of this boot: no process outlives it.
///
/// # Errors
///
/// [`FileError`] where there is no `/proc`.
pub fn boot_id() -> Result<String, FileError> {
    let bytes = files::read_small(Path::new("/proc/sys/kernel/random/boot_id"), files::SMALL_BYTES_MAX)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The machine's name.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The number of our pid namespace.
///
/// # Errors
///
/// [`FileError`] where there is no `/proc`.
pub fn pid_namespace() -> Result<u64, FileError> {
    files::stat(Path::new("/proc/self/ns/pid"), true).map(|stat| stat.inode)
}

/// What the process table says of `pid`.
///
/// `/proc` may hide other users' processes; so a pid that it does not show counts as gone only when the kernel, asked
/// whether a signal could be sent, does not know it either.
///
/// # Errors
///
/// [`FileError`] when an entry that is there cannot be read.
pub fn entry(pid: u32) -> Result<Entry, FileError> {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(Entry::Gone);
    };
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    match files::read_small(&path, files::SMALL_BYTES_MAX) {
        Ok(line) => Ok(parse(&line).unwrap_or(Entry::Hidden)),
        // ESRCH: it ended between opening and reading.
        Err(error) if error.is_absent() || error.is_denied() || is_no_such_process(&error) => {
            Ok(match test_kill_process(number) {
                Err(Errno::SRCH) => Entry::Gone,
                Ok(()) | Err(_) => Entry::Hidden,
            })
        }
        Err(error) => Err(error),
    }
}

fn is_no_such_process(error: &FileError) -> bool {
    Errno::from_io_error(&error.source) == Some(Errno::SRCH)
}

/// State is field 3, the start time field 22; field 2, the program's name in brackets, may hold blanks and brackets.
fn parse(line: &[u8]) -> Option<Entry> {
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(line.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    Some(match state {
        "Z" | "X" | "x" => Entry::Ended { started },
        _ => Entry::Running { started },
    })
}

/// Who this process is, as a lease names its holder.
///
/// # Errors
///
/// [`OwnError`] where the process table cannot be read.
pub fn own() -> Result<Holder, OwnError> {
    let table = |source| OwnError::Table { source };
    let pid = std::process::id();
    let (Entry::Running { started } | Entry::Ended { started }) = entry(pid).map_err(table)? else {
        return Err(OwnError::Unlisted { pid });
    };
    let boot = boot_id().map_err(table)?;
    let pid_ns = pid_namespace().map_err(table)?;
    Ok(Holder { host: host_name(), boot, pid, started, pid_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = |name: &str, state: &str| {
            format!(
                "7 ({name}) {state} 1 7 7 0 -1 4194560 97 0 0 0 0 0 0 0 20 0 1 0 4242 5783552 377 18446744073709551615"
            )
        };
        for name in ["sleep", "a) Z 1 (b", ") )", ""] {
            assert_eq!(parse(line(name, "S").as_bytes()), Some(Entry::Running { started: 4242 }), "{name}");
        }
        assert_eq!(parse(line("x", "Z").as_bytes()), Some(Entry::Ended { started: 4242 }));
        for bad in ["", "7 (x", "7 (x)", "7 (x) S 1 2 3", "7 (x) S 1 7 7 0 -1 4 9 0 0 0 0 0 0 0 20 0 1 0 soon 5"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn we_are_in_the_process_table_under_our_own_pid() -> Result<(), OwnError> {
        let own = own()?;
        assert_eq!(own.pid, std::process::id());
        assert_eq!(entry(own.pid).ok(), Some(Entry::Running { started: own.started }));
        assert!(!own.boot.is_empty() && own.pid_ns != 0, "{own:?}");
        Ok(())
    }

    #[test]
    fn no_process_has_pid_zero_or_one_beyond_the_kernels_numbers() {
        for pid in [0, u32::MAX, i32::MAX.cast_unsigned()] {
            assert_eq!(entry(pid).ok(), Some(Entry::Gone), "{pid}");
        }
    }
}
