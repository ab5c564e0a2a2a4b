//! What goes on beside a run: another writer of the session's file, or another process of the agent in the same session.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::agent::Running;
use super::world::Meanwhile;

/// How often a writer writes.
const BEAT: Duration = Duration::from_millis(10);

/// It ends when dropped.
pub(super) enum Beside {
    /// A writer.
    Writer {
        /// Told to end.
        ends: Arc<AtomicBool>,
        /// Its thread.
        thread: Option<JoinHandle<()>>,
    },
    /// Another process, which has sent its prompt and waits.
    Driver(Running),
}

impl Beside {
    /// Starts it; `drive` starts the other process.
    pub(super) fn begin(
        meanwhile: Meanwhile,
        file: PathBuf,
        drive: impl FnOnce() -> io::Result<Running>,
    ) -> io::Result<Self> {
        match meanwhile {
            Meanwhile::Driver => Ok(Self::Driver(drive()?)),
            Meanwhile::Appends => Ok(Self::writer(move |ends| {
                while !ends.load(Ordering::Relaxed) {
                    append(&file, b"{\"type\":\"mode\",\"mode\":\"normal\"}\n");
                    std::thread::sleep(BEAT);
                }
            })),
            Meanwhile::HalfLine => {
                append(&file, b"{\"type\":\"mo");
                Ok(Self::writer(move |ends| {
                    while !ends.load(Ordering::Relaxed) {
                        std::thread::sleep(BEAT);
                    }
                    append(&file, b"de\",\"mode\":\"normal\"}\n");
                }))
            }
        }
    }

    fn writer(work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let of = Arc::clone(&ends);
        Self::Writer { ends, thread: Some(std::thread::spawn(move || work(&of))) }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        match self {
            Self::Writer { ends, thread } => {
                ends.store(true, Ordering::Relaxed);
                if let Some(thread) = thread.take() {
                    // It only appends to a file; there is nothing to report.
                    let _ = thread.join();
                }
            }
            Self::Driver(_) => {}
        }
    }
}

fn append(path: &Path, bytes: &[u8]) {
    // The run shows what came of it.
    let _ = fs::OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(bytes));
}
