//! Bytes as a world with its schedule: whatever breaks where, preflight and spawn agree, and nothing is lost.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| throughline::sim::random::check_world(bytes));
