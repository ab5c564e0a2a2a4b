//! Throughline.
pub mod event;
pub mod id;
pub mod snapshot;
