//! The command `throughline`.
fn main() {}
