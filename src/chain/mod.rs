//! An agent's conversation: what the log knows of it, what the gate allows, what the next spawn will do.
//!
//! Pure: [`state`] (the fold), [`gate`] (the truth table), [`sweep`] (which leftovers count as absent), [`driver`] (who drives
//! now), [`reconcile`] (what a dead driver left unsaid), [`preflight()`] (the eleven checks), [`track`] (what a process says of
//! its session), [`names`] and [`place`].
//!
//! Effectful: [`observe`] (the real disk and process table as a view), [`ledger`] (the folds that a request needs, read from a
//! log), and over an [`actor`]: [`lease`], [`relocate`], [`leftovers`], [`segment`], [`spawn`],
//! [`upkeep`].

pub mod actor;
mod asking;
pub mod bind;
mod choose;
pub mod driver;
pub mod fold;
pub mod gate;
pub mod illegal;
pub mod lease;
pub mod ledger;
pub mod leftovers;
pub mod names;
pub mod observe;
pub mod place;
pub mod preflight;
pub mod reconcile;
pub mod relocate;
pub mod request;
pub mod segment;
pub mod spawn;
pub mod state;
pub mod sweep;
pub mod track;
pub mod upkeep;
pub mod verdict;

pub use self::preflight::preflight;
pub use self::request::{Ledger, Request};
pub use self::verdict::{Confidence, Expected, Receipt, Verdict};
