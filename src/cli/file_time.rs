//! Times of files, in the unit of the store and the reports.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the milliseconds from 1970 to this time; 0 for an earlier time.
pub(super) fn unix_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_time_is_counted_in_milliseconds_from_1970_and_an_earlier_one_is_zero() {
        let second = Duration::from_millis(1_500);
        assert_eq!([unix_ms(UNIX_EPOCH + second), unix_ms(UNIX_EPOCH), unix_ms(UNIX_EPOCH - second)], [1_500, 0, 0]);
    }
}
