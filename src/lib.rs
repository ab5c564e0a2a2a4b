//! Throughline.
pub mod chain;
pub mod event;
pub mod id;
pub mod provider;
pub mod snapshot;
pub mod world;
