//! The doors to the machine: files, processes, the clock, the environment.
//!
//! Only here are `std::fs`, `std::env`, clocks and the process table named, apart from a short list of exceptions with
//! reasons (the log's own folder, the command's arguments and files); `tests/tidy.rs` checks it. A door does one
//! thing and says what happened; it decides nothing. What differs by system (the process table, links, access) stays in
//! here too, so that another system is an addition.
//!
//! | door | to |
//! |---|---|
//! | [`doors`] | what a protocol can do: the trait that the real machine and a simulated one implement |
//! | [`real`] | the same doors, of this machine |
//! | [`files`] | what lies at a path, names in directories, bytes of regular files |
//! | [`worktrees`] | git's own files that say which worktrees a repository has |
//! | [`process`] | who runs, since when; who we are |
//! | [`clock`] | the wall clock, for people: no decision reads it |
//! | [`mod@write`] | new files and folders; it never replaces what is there |
//! | [`replace`] | a small file that others write too, replaced as a whole |
//! | [`stdin`] | what this process is told, within a time and a size |
//! | [`stdout`] | whether anybody still reads what this process writes |
//! | [`environment`] | variables, the home directory, the working directory |
//!
//! Doors that only look are plain functions over the real machine, since decisions never see them: they see the *answers*
//! ([`crate::snapshot`]).

mod act;
pub mod clock;
pub mod doors;
pub mod environment;
pub mod files;
mod launch;
pub mod process;
pub mod real;
pub mod replace;
pub mod stdin;
pub mod stdout;
pub mod worktrees;
pub mod write;
