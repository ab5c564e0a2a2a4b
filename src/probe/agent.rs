//! One run of the agent: started in its world, waited for within bounds, ended with everything that it started.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group};

use super::room::MARK;

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// How large a file a run may write: more than any case needs, less than a disk.
const FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// How much of what a run says is looked at.
const SAID_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// With this code.
    Exit(i32),
    /// By this signal, not ours.
    Signal(i32),
    /// It was ended because its time was up.
    TimedOut,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) took: Duration,
}

/// How to start the agent.
pub(super) struct Start<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: Vec<String>,
    pub(super) cwd: &'a str,
    /// The whole environment beside `PATH`.
    pub(super) environment: BTreeMap<String, String>,
    /// The probe's folder, by which the process is known.
    pub(super) room: &'a Path,
    /// Where its output is kept.
    pub(super) output: PathBuf,
}

/// A process of the agent, and all that it starts; ended when dropped.
pub(super) struct Running {
    child: Child,
    began: Instant,
    output: PathBuf,
}

impl Start<'_> {
    /// Starts it in a process group of its own.
    pub(super) fn spawn(&self) -> io::Result<Running> {
        fs::create_dir_all(&self.output)?;
        let file = |name: &str| fs::File::create(self.output.join(name));
        let mut command = Command::new(self.program);
        command.args(&self.arguments).current_dir(self.cwd).env_clear().envs(&self.environment);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env(MARK, self.room).stdin(Stdio::null()).process_group(0);
        command.stdout(file("stdout")?).stderr(file("stderr")?);
        let child = command.spawn()?;
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let most = Rlimit { current: Some(FILE_BYTES_MAX), maximum: Some(FILE_BYTES_MAX) };
            // It may have ended already.
            let _ = rustix::process::prlimit(Some(pid), Resource::Fsize, most);
        }
        Ok(Running { child, began: Instant::now(), output: self.output.clone() })
    }
}

impl Running {
    /// Waits for its end, at most so long, and less where `stop` is set.
    pub(super) fn wait(mut self, most: Duration, stop: &AtomicBool) -> io::Result<Ran> {
        let end = loop {
            if let Some(status) = self.child.try_wait()? {
                break end_of(status);
            }
            if self.began.elapsed() > most || stop.load(Ordering::Relaxed) {
                break End::TimedOut;
            }
            std::thread::sleep(LOOK);
        };
        let took = self.began.elapsed();
        self.end();
        let text = |name: &str| end_of_text(&self.output.join(name));
        Ok(Ran { end, stdout: text("stdout")?, stderr: text("stderr")?, took })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn end(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // Whoever is left in it; nobody is the usual case.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The end of what a run said: its result is its last line.
fn end_of_text(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let bytes = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(bytes.saturating_sub(SAID_BYTES_MAX)))?;
    let mut said = Vec::new();
    file.take(SAID_BYTES_MAX).read_to_end(&mut said)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exit(code),
        (None, signal) => End::Signal(signal.unwrap_or(0)),
    }
}
