//! Decisions, laws, and the command as a process.


#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(unreachable_pub, reason = "helpers of a test crate")]

mod cli;
mod laws;
mod laws_quick;
mod preflight;
mod support;
