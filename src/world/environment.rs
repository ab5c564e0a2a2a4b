//! What this process was given: variables, the home directory, the working directory.
//!
//! All of them may be bytes that are not UTF-8 or may be gone; both are typed errors, never replacement characters. Which
//! variable means what is the caller's business.

use std::io;
use std::path::{Path, PathBuf};

use super::files::{self, FileError};

/// Why something of the environment cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A variable's value is not UTF-8.
    #[error("the environment variable {name} is not valid UTF-8; set it to a path or text that is")]
    VariableNotUtf8 {
        /// The variable.
        name: String,
    },
    /// `HOME` is not set and the password database does not name a home directory.
    #[error("HOME is not set and {path} has no home directory for uid {uid}; set HOME")]
    NoHome {
        /// Our user.
        uid: u32,
        /// The password database.
        path: &'static str,
    },
    /// The password database could not be read.
    #[error("HOME is not set and the password database cannot be read; set HOME")]
    Passwords {
        /// Why.
        source: FileError,
    },
    /// The working directory was removed or cannot be reached.
    #[error("the working directory cannot be told; change to one that exists")]
    WorkingDirGone {
        /// What the system said.
        source: io::Error,
    },
    /// The working directory's path is not UTF-8.
    #[error("the working directory {path:?} is not valid UTF-8")]
    WorkingDirNotUtf8 {
        /// Its path.
        path: PathBuf,
    },
}

/// The value of a variable; nothing where it is not set. Set but empty is a value.
///
/// # Errors
///
/// [`EnvironmentError::VariableNotUtf8`].
pub fn var(name: &str) -> Result<Option<String>, EnvironmentError> {
    match std::env::var_os(name) {
        None => Ok(None),
        Some(value) => {
            value.into_string().map(Some).map_err(|_| EnvironmentError::VariableNotUtf8 { name: name.to_owned() })
        }
    }
}

/// The home directory: `HOME`, or, where that is unset or empty, what the password database names for our uid.
///
/// The agent CLIs were observed to do the same with an empty `HOME`.
///
/// # Errors
///
/// [`EnvironmentError`] when `HOME` is not UTF-8, or neither source names a directory.
pub fn home_dir() -> Result<String, EnvironmentError> {
    if let Some(home) = var("HOME")?.filter(|home| !home.is_empty()) {
        return Ok(home);
    }
    const PASSWORDS: &str = "/etc/passwd";
    let uid = rustix::process::getuid().as_raw();
    let bytes = files::read_small(Path::new(PASSWORDS), files::SMALL_BYTES_MAX)
        .map_err(|source| EnvironmentError::Passwords { source })?;
    home_of(uid, &bytes).ok_or(EnvironmentError::NoHome { uid, path: PASSWORDS })
}

/// The sixth field of the line whose third is `uid`.
fn home_of(uid: u32, passwords: &[u8]) -> Option<String> {
    let lines = passwords.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let home = lines
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2).is_some_and(|field| field.parse() == Ok(uid)))
        .and_then(|fields| fields.get(5).map(|home| (*home).to_owned()));
    home.filter(|home| !home.is_empty())
}

/// The working directory, physical, as the system tells it; `$PWD` is not asked.
///
/// # Errors
///
/// [`EnvironmentError::WorkingDirGone`] when it was removed, [`EnvironmentError::WorkingDirNotUtf8`].
pub fn current_dir() -> Result<String, EnvironmentError> {
    let path = std::env::current_dir().map_err(|source| EnvironmentError::WorkingDirGone { source })?;
    path.into_os_string().into_string().map_err(|path| EnvironmentError::WorkingDirNotUtf8 { path: path.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_a_uid_is_the_sixth_field_of_its_line() {
        let passwords = b"root:x:0:0:root:/root:/bin/sh\nbad\n\xff:x:7:7::/seven:\nann:x:1000:1000:Ann,,:/h/ann:/bin/zsh\nnone:x:9:9:::\n";
        for (uid, home) in [(0, Some("/root")), (1000, Some("/h/ann")), (7, None), (9, None), (2, None)] {
            assert_eq!(home_of(uid, passwords).as_deref(), home, "uid {uid}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_nothing() -> Result<(), EnvironmentError> {
        assert_eq!(var("THROUGHLINE_NO_SUCH_VARIABLE")?, None);
        assert!(var("PATH")?.is_some());
        Ok(())
    }
}
