//! The wall clock: recorded for people. Order is log order, so nothing is decided by it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC; negative on a machine whose clock stands before that.
#[must_use]
pub fn now_ms() -> i64 {
    let ms = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_after_this_was_written_and_does_not_run_backwards() {
        let first = now_ms();
        assert!(first > 1_700_000_000_000, "{first}");
        assert!(now_ms() >= first);
    }
}
