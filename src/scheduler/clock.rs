//! The time of day, which may be set: waiting goes by the monotonic clock, and what is due by this one.

use jiff::Timestamp;
use std::fmt;

/// Who knows what time it is.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The system's.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
