//! Throughline.
pub mod event;
pub mod id;
pub mod log;
pub mod snapshot;
