//! Time since the start of a run: the only time that the pure modules know.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A point in the time of a run, in milliseconds since its start. It comes from a monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Elapsed(pub u64);

impl Elapsed {
    /// Returns the moment `duration` after this one, at most `u64::MAX` milliseconds.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Returns the time from the run's start to this moment.
    pub fn since_start(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// Returns the time from `earlier` to this moment, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_counted_is_the_latest_moment() {
        assert_eq!(Elapsed(500).plus(Duration::from_secs(2)), Elapsed(2500));
        assert_eq!(Elapsed(1).plus(Duration::MAX), Elapsed(u64::MAX));
    }

    #[test]
    fn no_time_passes_backwards() {
        assert_eq!(Elapsed(2500).since(Elapsed(500)), Duration::from_secs(2));
        assert_eq!(Elapsed(500).since(Elapsed(2500)), Duration::ZERO);
    }
}
