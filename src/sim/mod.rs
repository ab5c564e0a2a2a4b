//! The protocols on a machine that can break: every order, every death, every failed door, every power cut.
//!
//! The same code that drives real agents runs over a simulated disk, process table and log ([`stage`], [`mod@doors`]); a
//! pretend CLI ([`agent`]) that shares nothing with our rules plays the agent; [`explore`] tries what can happen in the
//! stated [`scopes`], one [`run`] after another, [`random`] what lies beyond them, and [`check`] says after each end what must
//! hold; each [`canary`] must be found.

pub mod actors;
pub mod agent;
pub mod ask;
pub mod canary;
pub mod check;
pub mod disk;
pub mod doors;
pub mod explore;
pub mod random;
pub mod run;
pub mod scopes;
pub mod setting;
pub mod stage;
mod view;
