//! Bytes as an event: decoding never panics, and what decodes encodes to what decodes to itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| throughline::event::check_decode(bytes));
