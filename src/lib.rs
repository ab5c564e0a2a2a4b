//! Throughline.
pub mod event;
pub mod id;
pub mod snapshot;
pub mod world;
