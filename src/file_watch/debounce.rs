//! Debouncing of changes. A burst ends after a quiet time, or after a longer maximum time, because
//! some files change without a pause.

use std::time::Duration;

/// A burst ends after this time without a notification.
const QUIET: Duration = Duration::from_millis(200);
/// A burst ends after this time in any case.
const PATIENCE: Duration = Duration::from_secs(2);

/// A burst of notifications. All times are relative to the same arbitrary start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Debouncer {
    first: Duration,
    last: Duration,
}

impl Debouncer {
    /// Starts a burst with its first notification.
    pub(super) fn from(now: Duration) -> Self {
        Self { first: now, last: now }
    }

    /// Adds a notification.
    pub(super) fn heard(&mut self, now: Duration) {
        self.last = now;
    }

    /// Returns the time at which the burst ends, unless more notifications arrive.
    pub(super) fn over(&self) -> Duration {
        (self.last + QUIET).min(self.first + PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_over_when_nothing_was_heard_for_a_while() {
        let ms = Duration::from_millis;
        let mut lull = Debouncer::from(ms(1000));
        assert_eq!(lull.over(), ms(1200));
        lull.heard(ms(1150));
        assert_eq!(lull.over(), ms(1350));
    }

    #[test]
    fn a_burst_without_end_is_cut_off() {
        let ms = Duration::from_millis;
        let mut lull = Debouncer::from(ms(1000));
        for now in (1000..2950).step_by(50) {
            lull.heard(ms(now));
        }
        assert_eq!(lull.over(), ms(3000));
    }
}
