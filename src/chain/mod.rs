//! An agent's conversation: what the log knows of it, what the gate allows, what the next spawn will do.
//!
//! Pure: [`state`] (the fold), [`gate`] (the truth table), [`sweep`] (which leftovers count as absent), [`preflight()`] (the
//! eleven checks). Effectful: `observe` (the real disk and process table as a view) and `ledger` (the folds that a request
//! needs, read from a log).

mod asking;
pub mod bind;
mod choose;
pub mod fold;
pub mod gate;
pub mod illegal;
pub mod ledger;
pub mod observe;
pub mod preflight;
pub mod request;
pub mod state;
pub mod sweep;
pub mod verdict;

pub use self::preflight::preflight;
pub use self::request::{Ledger, Request};
pub use self::verdict::{Confidence, Receipt, Verdict};
