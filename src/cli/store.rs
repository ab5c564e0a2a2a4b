//! Which log, and how its errors become exit codes.

use std::path::{Path, PathBuf};

use crate::chain::fold::State;
use crate::cli::error::{Failure, exit};
use crate::log::{AppendError, Class, ExportError, ImportError, LogError, Mode, OpenError, Opening, SqliteLog};
use crate::world::{clock, environment};

/// The log that the flags and the surroundings name.
pub(super) fn path(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = set("THROUGHLINE_LOG") {
        return Ok(path.into());
    }
    if let Some(dir) = set("XDG_STATE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute()) {
        return Ok(dir.join("throughline/log.db"));
    }
    let home = environment::home_dir()
        .map_err(|error| Failure::of("no_home", exit::ERROR, &error).next("name the log with --log"))?;
    Ok(Path::new(&home).join(".local/state/throughline/log.db"))
}

/// A log, for reading.
pub(super) type Reader = crate::log::Reader<State>;

/// Opens for reading; nothing where there is no log.
pub(super) fn reader_if_there(path: &Path) -> Result<Option<Reader>, Failure> {
    match Reader::open(path) {
        Ok(reader) => Ok(Some(reader)),
        Err(OpenError::NotThere { .. }) => Ok(None),
        Err(error) => Err(of_open(path, &error)),
    }
}

/// Opens for reading what must be there.
pub(super) fn reader(path: &Path) -> Result<Reader, Failure> {
    Reader::open(path).map_err(|error| of_open(path, &error))
}

/// Opens for writing; creates it where it is not.
pub(super) fn writer(path: &Path, busy_ms: u64) -> Result<SqliteLog<State>, Failure> {
    SqliteLog::open(path, &Opening { busy_ms, ..Opening::default() }).map_err(|error| of_open(path, &error))
}

pub(super) fn now_ms() -> i64 {
    clock::now_ms()
}

fn of_class(class: Class, error: &(dyn std::error::Error + 'static)) -> Failure {
    let (word, code, next) = match class {
        Class::Corrupt => ("corrupt", exit::CORRUPT, "restore the log from a copy or an export"),
        Class::Busy => ("log_busy", exit::LOG_BUSY, "try again"),
        Class::NotThere => {
            ("no_log", exit::ERROR, "name it with --log, or begin one with `throughline bind`, `append` or `import`")
        }
        Class::ReadOnly => ("read_only", exit::ERROR, "make the log and its directory writable for this user"),
        Class::DiskFull => ("disk_full", exit::ERROR, "nothing was written; free some space and try again"),
        Class::Refused => ("refused", exit::ERROR, "read the log again and decide anew"),
        Class::Io => ("io", exit::ERROR, "see what the system says of the file, its directory and TMPDIR"),
    };
    Failure::of(word, code, error).or_next(next)
}

pub(super) fn of_open(path: &Path, error: &OpenError) -> Failure {
    let mut failure = if matches!(error, OpenError::NotALog { .. }) {
        Failure::of("corrupt", exit::CORRUPT, error).or_next("name another file with --log, or restore this one")
    } else {
        of_class(error.class(), error)
    };
    if !failure.message.contains(&*path.to_string_lossy()) {
        failure.message = format!("{}: {}", path.display(), failure.message);
    }
    failure
}

pub(super) fn of_log(error: &LogError) -> Failure {
    of_class(error.class(), error)
}

pub(super) fn of_append(error: &AppendError) -> Failure {
    of_class(error.class(), error)
}

pub(super) fn of_export(error: &ExportError) -> Failure {
    match error {
        ExportError::Write(source) if source.kind() == std::io::ErrorKind::BrokenPipe => {
            crate::cli::output::stdout_failure(std::io::ErrorKind::BrokenPipe.into())
        }
        ExportError::Write(_) => of_class(error.class(), error)
            .next("what came out is only a beginning; see the space and the rights where it goes, and export again"),
        ExportError::Log(_) => of_class(error.class(), error),
    }
}

/// A bad line is the input's fault: hand-written ones are mended, an export that does not hold is got anew.
pub(super) fn of_import(error: &ImportError, mode: Mode) -> Failure {
    let is_log = matches!(error, ImportError::Append(_) | ImportError::NotEmpty { .. } | ImportError::Read { .. });
    match mode {
        _ if is_log => of_class(error.class(), error),
        Mode::Unverified => Failure::of("line", exit::ERROR, error).or_next("nothing was imported; mend that line"),
        Mode::Verified | Mode::AsNew => {
            Failure::of("export", exit::CORRUPT, error).or_next("nothing was imported; get the export anew")
        }
    }
}
