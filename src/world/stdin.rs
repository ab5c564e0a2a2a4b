//! The door to what this process is told on its stdin: all of it, within a time and a size.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Why what stands on stdin is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdinError {
    /// It did not come to an end.
    #[error("stdin did not end within {wait_ms} ms; give it an end")]
    Late {
        /// How long was waited.
        wait_ms: u128,
    },
    /// It is longer than it may be.
    #[error("stdin is longer than {bytes_max} bytes; give it less")]
    TooLong {
        /// How long it may be.
        bytes_max: usize,
    },
    /// It could not be read.
    #[error("stdin could not be read; see what it is")]
    Read(#[source] io::Error),
}

/// All of stdin. What is too long is read to its end all the same, so that nobody who writes it meets a closed pipe.
///
/// # Errors
///
/// [`StdinError`]. When the time is up, what was read by then is lost.
pub fn read_to_end(bytes_max: usize, wait: Duration) -> Result<Vec<u8>, StdinError> {
    let stdin = io::stdin();
    let until = Instant::now() + wait;
    let (mut bytes, mut is_too_long) = (Vec::new(), false);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(StdinError::Late { wait_ms: wait.as_millis() });
        }
        let left = Timespec::try_from(left).map_err(|error| StdinError::Read(io::Error::other(error)))?;
        let mut ends = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ends, Some(&left)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(StdinError::Read(errno.into())),
        }
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(0) if is_too_long => return Err(StdinError::TooLong { bytes_max }),
            Ok(0) => return Ok(bytes),
            Ok(count) => {
                is_too_long |= count > bytes_max - bytes.len();
                if !is_too_long {
                    bytes.extend_from_slice(&buffer[..count]);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(StdinError::Read(errno.into())),
        }
    }
}
