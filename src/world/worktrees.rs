//! Which git worktrees belong to the repository around a directory: what `git worktree list` prints, read from git's files.
//!
//! Git is never started: it may be missing, be a wrapper, run hooks or write to the repository. Its layout (gitrepository-
//! layout(5)) is read instead: `.git` is a directory or a file `gitdir: PATH`, a linked worktree's directory names the
//! common one in `commondir`, and `worktrees/*/gitdir` below that names each linked worktree. As git does, the search
//! walks up from the physical directory, stops at the border of its file system, passes over a `.git` that is no repository, and
//! keeps worktrees whose directory is gone. Variables (`GIT_DIR`, ...), `safe.directory` and `core.worktree` are not asked.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::files::{self, Dir, FileError, Stat};
use crate::snapshot::NodeKind;

/// More linked worktrees than this are not followed.
pub const LINKED_MAX: usize = 4096;

/// Why the worktrees cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorktreeError {
    /// One of git's files or directories could not be read.
    #[error("git's own files cannot be read")]
    File {
        /// Which.
        source: FileError,
    },
    /// There are more than [`LINKED_MAX`].
    #[error("the repository {path:?} has more than {LINKED_MAX} worktrees")]
    TooMany {
        /// The repository.
        path: PathBuf,
    },
}

impl From<FileError> for WorktreeError {
    fn from(source: FileError) -> Self {
        Self::File { source }
    }
}

/// The worktree roots of the repository around `dir`: the main one first, then the linked ones by path. Nothing outside a
/// repository, and where git itself would stop with an error (a `.git` file that leads nowhere).
///
/// A bare repository's main root is the repository itself, as git prints it.
///
/// # Errors
///
/// [`WorktreeError`] when something that is there could not be read, or there is too much of it.
pub fn worktrees(dir: &Path) -> Result<Option<Vec<PathBuf>>, WorktreeError> {
    let Some(common) = common_dir(dir)? else { return Ok(None) };
    let main = match (common.file_name(), common.parent()) {
        (Some(name), Some(parent)) if name == ".git" => parent.to_owned(),
        _ => common.clone(),
    };
    let mut roots = linked(&common)?;
    roots.sort();
    roots.insert(0, main);
    Ok(Some(roots))
}

/// The physical directory that all worktrees of the repository share.
fn common_dir(dir: &Path) -> Result<Option<PathBuf>, WorktreeError> {
    let Some(start) = absent(files::real_path(dir))? else { return Ok(None) };
    let Some(here) = absent(files::stat(&start, true))? else { return Ok(None) };
    for level in start.ancestors() {
        match absent(files::stat(level, true))? {
            Some(stat) if stat.device == here.device => {}
            Some(_) | None => return Ok(None),
        }
        let dot_git = level.join(".git");
        match absent(files::stat(&dot_git, true))?.map(|stat| stat.kind) {
            Some(NodeKind::File) => return gitfile(&dot_git),
            Some(NodeKind::Dir) => {
                if let Some(common) = repository(&dot_git)? {
                    return Ok(Some(common));
                }
            }
            Some(NodeKind::Link | NodeKind::Special) | None => {}
        }
        if let Some(common) = repository(level)? {
            return Ok(Some(common));
        }
    }
    Ok(None)
}

/// Where a `.git` file leads. Git stops there, whether it leads to a repository or not.
fn gitfile(path: &Path) -> Result<Option<PathBuf>, WorktreeError> {
    let Some(text) = absent(files::read_small(path, files::SMALL_BYTES_MAX))? else { return Ok(None) };
    let (Some(target), Some(parent)) = (text.strip_prefix(b"gitdir: "), path.parent()) else { return Ok(None) };
    repository(&parent.join(path_of(target)))
}

/// The common directory of a git directory; nothing where it is none (git asks for the same three names).
fn repository(git_dir: &Path) -> Result<Option<PathBuf>, WorktreeError> {
    if absent(files::stat(&git_dir.join("HEAD"), false))?.is_none() {
        return Ok(None);
    }
    let common = match absent(files::read_small(&git_dir.join("commondir"), files::SMALL_BYTES_MAX))? {
        Some(text) => git_dir.join(path_of(&text)),
        None => git_dir.to_owned(),
    };
    for name in ["objects", "refs"] {
        let is_dir = |stat: Stat| stat.kind == NodeKind::Dir;
        if !absent(files::stat(&common.join(name), true))?.is_some_and(is_dir) {
            return Ok(None);
        }
    }
    Ok(absent(files::real_path(&common))?)
}

/// The roots of the linked worktrees, in no order. An entry without a usable `gitdir` is passed over, as git does.
fn linked(common: &Path) -> Result<Vec<PathBuf>, WorktreeError> {
    let dir = common.join("worktrees");
    let Some(open) = absent(Dir::open(&dir))? else { return Ok(Vec::new()) };
    let names = open.names("", "")?.names;
    if names.len() > LINKED_MAX {
        return Err(WorktreeError::TooMany { path: common.to_owned() });
    }
    let mut roots = Vec::new();
    for entry in names {
        let own = dir.join(&entry.name);
        let Some(text) = absent(files::read_small(&own.join("gitdir"), files::SMALL_BYTES_MAX))? else { continue };
        let text = text.trim_ascii_end();
        let root = path_of(text.strip_suffix(b"/.git").unwrap_or(text));
        if !root.as_os_str().is_empty() {
            roots.push(if root.is_absolute() { root } else { resolved(&own.join(root))? });
        }
    }
    Ok(roots)
}

/// The physical path as far as it exists; what is gone is resolved by its text alone.
fn resolved(path: &Path) -> Result<PathBuf, FileError> {
    if let Some(real) = absent(files::real_path(path))? {
        return Ok(real);
    }
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(part),
        }
    }
    Ok(whole)
}

fn path_of(text: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.trim_ascii_end()))
}

/// Nothing there is an answer; what could not be read stays an error.
fn absent<T>(seen: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match seen {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}
