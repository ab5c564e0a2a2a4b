//! Making files and folders: nothing here replaces or removes what is there.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::world::files::FileError;

/// Makes a folder and those above it; one that is there is left as it is. Mode 0700.
///
/// # Errors
///
/// [`FileError`]; some of the folders above it may have been made.
pub fn create_dir(path: &Path) -> Result<(), FileError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| FileError::new("create the folder", path, error))
}

/// Makes a folder that must not hold anything yet.
///
/// # Errors
///
/// [`FileError`] where something else is there or the folder is not empty; nothing was changed then.
pub fn empty_dir(path: &Path) -> Result<(), FileError> {
    create_dir(path)?;
    let mut names = std::fs::read_dir(path).map_err(|error| FileError::new("list", path, error))?;
    if names.next().is_some() {
        let error = std::io::Error::from(std::io::ErrorKind::DirectoryNotEmpty);
        return Err(FileError::new("use as an empty folder", path, error));
    }
    Ok(())
}

/// Makes a new file of mode 0600 and has `fill` write it; durable when it returns well.
///
/// # Errors
///
/// [`FileError`] where the file exists (it is left as it is) or cannot be made; what `fill` says, where that fails. The
/// new file is then removed again.
///
/// # Crash
///
/// A part of the new file may be there; nothing that was there before is touched.
pub fn new_file_with<T, E>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<Result<T, E>, FileError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = made.map_err(|error| FileError::new("create", path, error))?;
    let filled = fill(&mut file);
    let synced = if filled.is_ok() { file.sync_all() } else { Ok(()) };
    if filled.is_err() || synced.is_err() {
        // The file is this call's own; what made it fail is the better word than a failure to remove it.
        let _ = std::fs::remove_file(path);
    }
    synced.map_err(|error| FileError::new("write", path, error))?;
    Ok(filled)
}

/// Makes a new file of mode 0600 with these bytes.
///
/// # Errors
///
/// [`FileError`] where the file exists or cannot be written; nothing of it is left then.
pub fn new_file(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    new_file_with(path, |file| file.write_all(bytes))?.map_err(|error| FileError::new("write", path, error))
}
