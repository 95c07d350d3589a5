//! Wall clock of the scheduler, which can be adjusted. Due times go by this clock; waiting goes by
//! the monotonic clock.

use jiff::Timestamp;
use std::fmt;

/// A source of the current time.
pub trait WallClock: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
