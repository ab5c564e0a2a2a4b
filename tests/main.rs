//! Decisions, laws, and the command as a process.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should stop")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names the arm that it is about")]
#![expect(unreachable_pub, reason = "helpers of a test crate")]

mod cli;
mod cli_busy;
mod cli_follow;
mod cli_history;
mod cli_hook;
mod cli_spawn;
mod fuzz_corpus;
mod holes;
mod laws;
mod laws_quick;
mod preflight;
#[cfg(feature = "probe")]
mod probe;
mod refusals;
#[cfg(feature = "sim")]
mod sim;
mod stage;
mod support;
