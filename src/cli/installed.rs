//! Which version of an agent is installed: the program's own answer, kept as long as the program stays what it is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::world::{environment, files};

/// How long a program may think about its version.
const MOST: Duration = Duration::from_secs(10);
/// No answer is longer.
const ANSWER_BYTES_MAX: u64 = 4_096;

/// A program of this name on the PATH.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let is_program = |file: &PathBuf| fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0);
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(is_program)
}

/// What a program answers to `--version`. It is asked once, and again when it was changed; a shell script each time, for it
/// may start another program tomorrow.
pub(super) fn version(program: &Path) -> io::Result<String> {
    let real = fs::canonicalize(program)?;
    let stamp = stamp(&real)?;
    let mut kept = Kept::read();
    if let Some(known) = kept.versions.get(&real).filter(|known| known.stamp == stamp) {
        return Ok(known.version.clone());
    }
    let version = ask(program)?;
    if !is_shell_script(&real) {
        kept.versions.insert(real, Known { stamp, version: version.clone() });
        kept.write();
    }
    Ok(version)
}

fn stamp(file: &Path) -> io::Result<String> {
    let meta = fs::metadata(file)?;
    let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
    Ok(format!("{}:{}:{}:{times:?}", meta.dev(), meta.ino(), meta.len()))
}

fn is_shell_script(file: &Path) -> bool {
    let mut first = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(80).read_to_end(&mut first));
    let line = first.split(|&byte| byte == b'\n').next().unwrap_or_default();
    read.is_ok() && line.starts_with(b"#!") && line.windows(2).any(|two| two == b"sh")
}

fn ask(program: &Path) -> io::Result<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    let began = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if began.elapsed() > MOST => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let Some(status) = status else {
        let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // It may have ended in this moment.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        child.wait()?;
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {} seconds", MOST.as_secs())));
    };
    let mut answer = String::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    }
    let version = answer.split_whitespace().next().unwrap_or_default();
    if !status.success() || !version.starts_with(|c: char| c.is_ascii_digit() || c == 'v') {
        return Err(io::Error::other(format!("it answered {:?} and ended with {status}", answer.trim())));
    }
    Ok(version.to_owned())
}

/// What was answered before.
#[derive(Serialize, Deserialize, Default)]
struct Kept {
    versions: BTreeMap<PathBuf, Known>,
}

#[derive(Serialize, Deserialize)]
struct Known {
    stamp: String,
    version: String,
}

impl Kept {
    fn path() -> Option<PathBuf> {
        let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache =
            of("XDG_CACHE_HOME").or_else(|| Some(PathBuf::from(environment::home_dir().ok()?).join(".cache")))?;
        Some(cache.join("throughline/versions.json"))
    }

    /// Nothing where it cannot be read: then the program is asked.
    fn read() -> Self {
        let bytes = Self::path().and_then(|path| files::read_small(&path, files::SMALL_BYTES_MAX).ok());
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// What cannot be kept is asked again.
    fn write(&self) {
        let kept = || -> Option<()> {
            let path = Self::path()?;
            let folder = path.parent()?;
            fs::create_dir_all(folder).ok()?;
            let mut file = tempfile::NamedTempFile::new_in(folder).ok()?;
            serde_json::to_writer(&mut file, self).ok()?;
            file.persist(&path).ok().map(drop)
        };
        let _ = kept();
    }
}
