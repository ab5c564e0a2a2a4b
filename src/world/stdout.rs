//! The door to the other end of stdout. What is written there is the command's business.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether whoever read this process's stdout has gone: a write would fail. A file and a living terminal never go.
///
/// Whoever waits for long asks this now and then, since without a write nothing else says so. Where it cannot be told, the
/// answer is no: the next write will tell.
#[must_use]
pub fn has_no_reader() -> bool {
    let stdout = io::stdout();
    let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let answered = poll(&mut ends, Some(&at_once)).is_ok_and(|count| count > 0);
    answered && ends[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
}
