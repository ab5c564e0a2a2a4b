//! The shim that stands between SQLite and the kernel (`tests/fault/shim.c`), and what it recorded as a value.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiled shim; gone when dropped.
pub(crate) struct Shim {
    dir: tempfile::TempDir,
}

impl Shim {
    pub(crate) fn build() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fault/shim.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o"])
            .arg(dir.path().join("shim.so"))
            .arg(source)
            .args(["-ldl", "-lpthread"])
            .status()
            .unwrap();
        assert!(built.success(), "the shim was not compiled");
        Self { dir }
    }

    /// Puts the shim under a command, for what it does below `root`.
    pub(crate) fn under(&self, command: &mut Command, root: &Path) {
        command.env("LD_PRELOAD", self.dir.path().join("shim.so")).env("FAULT_ROOT", root);
    }
}

/// One operation on the files below the folder that was watched; paths are relative to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    MakeFolder(PathBuf),
    Create(PathBuf),
    Write {
        path: PathBuf,
        at: usize,
        data: Vec<u8>,
    },
    Cut {
        path: PathBuf,
        bytes: usize,
    },
    Sync(PathBuf),
    Remove(PathBuf),
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    /// It failed: it counts as an operation and changed nothing.
    Failed(PathBuf),
    /// Not an operation: what the process said after those before it.
    Said(String),
}

impl Op {
    pub(crate) fn is_operation(&self) -> bool {
        !matches!(self, Self::Said(_))
    }
}

/// Everything that was recorded.
pub(crate) fn trace(file: &Path, root: &Path) -> Vec<Op> {
    let bytes = std::fs::read(file).unwrap();
    let mut rest: &[u8] = &bytes;
    let mut ops = Vec::new();
    while !rest.is_empty() {
        let kind = take(&mut rest, 1)[0];
        let length = number(take(&mut rest, 4));
        let path = PathBuf::from(String::from_utf8(take(&mut rest, length).to_vec()).unwrap());
        let at = number(take(&mut rest, 8));
        let length = number(take(&mut rest, 4));
        let data = take(&mut rest, length).to_vec();
        if kind == b'a' {
            let lines = String::from_utf8(data).unwrap();
            ops.extend(lines.lines().map(|line| Op::Said(line.to_owned())));
            continue;
        }
        let path = path.strip_prefix(root).unwrap().to_owned();
        ops.push(match kind {
            b'm' => Op::MakeFolder(path),
            b'c' => Op::Create(path),
            b'w' => Op::Write { path, at, data },
            b't' => Op::Cut { path, bytes: at },
            b's' => Op::Sync(path),
            b'u' => Op::Remove(path),
            b'r' => {
                let to = PathBuf::from(String::from_utf8(data).unwrap());
                Op::Rename { from: path, to: to.strip_prefix(root).unwrap().to_owned() }
            }
            b'x' => Op::Failed(path),
            other => panic!("a record of kind {other}"),
        });
    }
    ops
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, left) = rest.split_at(count);
    *rest = left;
    taken
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte))
}
