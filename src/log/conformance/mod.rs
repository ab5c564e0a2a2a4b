//! The rules that every store keeps, as a suite that any store can be held to.
//!
//! A store is a [`Log`](super::Log) and its [`Records`](super::Records). What the two traits promise in words, the [`Rule`]s
//! here try out: each is one sentence and one check, made of calls to the traits alone. Whoever writes a store says how to
//! make an empty log and how to open it once more (a [`Bench`]), and asks [`broken`] for what does not hold. The events mean
//! what [`Tally`] says.
//!
//! A rule looks only at what its sentence is about, so that a store with one bug breaks one rule. What a crash leaves, how
//! long a writer waits for another and what damage on a medium looks like are not rules of every store, and not here.
//!
//! ```
//! use throughline::id::StoreId;
//! use throughline::log::conformance::{self, Bench, Tally};
//! use throughline::log::{Cause, Log, MemoryLog, Records};
//!
//! struct InMemory(MemoryLog<Tally>);
//!
//! impl Bench for InMemory {
//!     fn writer(&self) -> Result<Box<dyn Log<Tally>>, Cause> {
//!         Ok(Box::new(self.0.clone()))
//!     }
//!     fn reader(&self) -> Result<Box<dyn Records<Tally>>, Cause> {
//!         Ok(Box::new(self.0.clone()))
//!     }
//! }
//!
//! let make = |store: StoreId| -> Result<Box<dyn Bench>, Cause> { Ok(Box::new(InMemory(MemoryLog::new(store)))) };
//! for (rule, breach) in conformance::broken(&make) {
//!     println!("{}: {} {breach}", rule.name, rule.says);
//! }
//! # assert!(conformance::broken(&make).is_empty());
//! ```

mod answers;
mod breach;
mod digests;
mod exchange;
mod expectations;
mod handles;
mod keys;
mod legality;
mod order;
mod reading;
mod say;
mod streams;
mod tally;
mod verifying;
mod written;

pub use self::breach::{Bench, Breach, Make, Rule};
pub use self::tally::{NotLegal, Tally};

/// Every rule, subject by subject.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let subjects = [
        order::RULES,
        answers::RULES,
        expectations::RULES,
        legality::RULES,
        keys::RULES,
        digests::RULES,
        streams::RULES,
        handles::RULES,
        reading::RULES,
        exchange::RULES,
        written::RULES,
        verifying::RULES,
    ];
    subjects.into_iter().flatten()
}

/// Tries every rule on a store, and gives those that do not hold, each with what was found.
pub fn broken(make: &Make<'_>) -> Vec<(&'static Rule, Breach)> {
    rules().filter_map(|rule| Some((rule, rule.check(make).err()?))).collect()
}
