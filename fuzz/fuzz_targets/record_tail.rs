//! Bytes as a transcript: the scan never panics, and windows and whole agree where windows see everything.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| throughline::provider::claude::check_scan(bytes));
