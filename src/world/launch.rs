//! Starting a process that does nothing until it is let go, and hearing what it says.
//!
//! The process is a shell that waits for one line on a pipe and then becomes the program: same process, same start time. If
//! whoever launched it is gone before that, the pipe ends and it exits without having done anything. So there is no moment in
//! which a program runs that no log knows of.
//!
//! Its stdin, its terminal and its other streams are ours. A stream is only read on its way where that makes no difference
//! to the program: where ours is no terminal.

use std::io::{self, IsTerminal as _, Read, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::io::FdFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};

use super::act::failed as failed_to;
use super::doors::{Command, DoorError, DoorKind, Heard, Launched};
use super::process::{self, Entry};

/// How long to wait for what the process says before it counts as quiet.
const QUIET: Duration = Duration::from_millis(250);

/// How long to wait for the rest of a stream once the process is gone: something that it left behind may hold it open.
const DRAIN: Duration = Duration::from_millis(500);

/// What is kept of one line; a longer one is passed on whole and heard cut.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Waits for the line `go` on the pipe, lets the pipe go, becomes the program.
const HELD: &str = r#"read -r go <"$1" && [ "$go" = go ] || exit 125; eval "$2"; shift 2; exec "$@""#;

/// A launched process.
#[derive(Debug)]
pub(super) struct Running {
    pid: u32,
    /// Closed once it is let go.
    gate: Option<OwnedFd>,
    heard: Receiver<Heard>,
}

/// The program as the shell would find it, looked up beforehand so that a missing one is an error here and not an exit code.
fn program(command: &Command) -> Result<PathBuf, DoorError> {
    let name = command.argv.first().map(String::as_str).unwrap_or_default();
    let absent = |why: &str| DoorError::new("start", name, DoorKind::Absent, why);
    let is_program = |path: &Path| {
        let may_run = rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
        may_run && std::fs::metadata(path).is_ok_and(|meta| meta.is_file())
    };
    if name.is_empty() {
        return Err(absent("no program was named"));
    }
    if name.contains('/') {
        let path = Path::new(&command.cwd).join(name);
        return if is_program(&path) { Ok(path) } else { Err(absent("there is no such program")) };
    }
    let own = std::env::var_os("PATH").unwrap_or_default();
    let dirs = match command.env.get("PATH") {
        Some(set) => set.clone().unwrap_or_default().into(),
        None => own,
    };
    let found = std::env::split_paths(&dirs).map(|dir| Path::new(&command.cwd).join(dir).join(name));
    found.into_iter().find(|path| is_program(path)).ok_or_else(|| absent("it is not on the PATH"))
}

impl Running {
    pub(super) fn launch(command: &Command) -> Result<(Self, Launched), DoorError> {
        let name = command.argv.first().cloned().unwrap_or_default();
        let program = program(command)?;
        let failed = |error: io::Error| failed_to("start", &name, &error);
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
        rustix::io::fcntl_setfd(&reader, FdFlags::empty()).map_err(|errno| failed(errno.into()))?;
        let number = reader.as_raw_fd();
        // A shell takes only numbers of one digit here; a higher one stays open, the idle end of a pipe.
        let closing = if number < 10 { format!("exec {number}<&-") } else { ":".to_owned() };
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", HELD, "throughline-held", &format!("/dev/fd/{number}"), &closing]).arg(&program);
        shell.args(&command.argv[1..]).current_dir(&command.cwd);
        for (variable, value) in &command.env {
            match value {
                Some(value) => shell.env(variable, value),
                None => shell.env_remove(variable),
            };
        }
        let tees_stdout = command.tells && !io::stdout().is_terminal();
        let tees_stderr = !io::stderr().is_terminal();
        let piped = |tees| if tees { Stdio::piped() } else { Stdio::inherit() };
        shell.stdout(piped(tees_stdout)).stderr(piped(tees_stderr));
        let child = shell.spawn().map_err(failed)?;
        drop(reader);
        let pid = child.id();
        let started = match process::entry(pid) {
            Ok(Entry::Running { started } | Entry::Ended { started }) => started,
            Ok(Entry::Gone | Entry::Hidden) | Err(_) => 0,
        };
        let heard = listen(child);
        Ok((Self { pid, gate: Some(writer), heard }, Launched { pid, started }))
    }

    pub(super) fn release(&mut self) -> Result<(), DoorError> {
        let Some(gate) = self.gate.take() else { return Ok(()) };
        let written = rustix::io::write(&gate, b"go\n");
        written.map(drop).map_err(|errno| failed_to("let go", &format!("process {}", self.pid), &errno.into()))
    }

    pub(super) fn hear(&self) -> Heard {
        match self.heard.recv_timeout(QUIET) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => Heard::Quiet,
            // The thread that waits for it always says how it ended.
            Err(RecvTimeoutError::Disconnected) => Heard::Ended(1),
        }
    }

    /// Passes a signal on.
    pub(super) fn signal(&self, number: i32) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(number)) {
            // It may be gone already.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Threads that read the streams and wait for the end.
fn listen(mut child: Child) -> Receiver<Heard> {
    let (sender, receiver) = channel();
    let (done, drained) = channel();
    let mut streams = 0;
    if let Some(stream) = child.stdout.take() {
        streams += 1;
        tee(stream, io::stdout(), Heard::Stdout, sender.clone(), done.clone());
    }
    if let Some(stream) = child.stderr.take() {
        streams += 1;
        tee(stream, io::stderr(), Heard::Stderr, sender.clone(), done.clone());
    }
    std::thread::spawn(move || {
        let code = child.wait().map_or(1, code_of);
        for _ in 0..streams {
            if drained.recv_timeout(DRAIN).is_err() {
                break;
            }
        }
        // Nobody may listen any more.
        let _ = sender.send(Heard::Ended(code));
    });
    receiver
}

fn code_of(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Passes a stream on as it comes, and hands out its lines.
fn tee(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    heard: fn(Vec<u8>) -> Heard,
    sender: Sender<Heard>,
    done: Sender<()>,
) {
    std::thread::spawn(move || {
        let mut chunk = vec![0; 64 * 1024];
        let mut line = Vec::new();
        while let Ok(count) = from.read(&mut chunk) {
            if count == 0 {
                break;
            }
            // Whoever reads us is gone: so the program learns it too, by its own pipe.
            if to.write_all(&chunk[..count]).and_then(|()| to.flush()).is_err() {
                break;
            }
            for part in chunk[..count].split_inclusive(|&byte| byte == b'\n') {
                let room = LINE_BYTES_MAX.saturating_sub(line.len());
                line.extend_from_slice(&part[..part.len().min(room)]);
                if part.ends_with(b"\n") {
                    let whole = std::mem::take(&mut line);
                    let _ = sender.send(heard(whole.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(whole)));
                }
            }
        }
        if !line.is_empty() {
            let _ = sender.send(heard(line));
        }
        let _ = done.send(());
    });
}
