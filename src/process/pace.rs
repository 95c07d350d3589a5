//! The pace at which output is taken: as it arrives, or later if its listener is behind. A delay
//! stops only the program that writes the output, as any full pipe does. The program's timeout and
//! stops still apply.

use super::Stopwatch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// The longest wait in all for a listener that is behind, until it has caught up.
const CREDIT: Duration = Duration::from_secs(1);

/// A switch that a listener shuts while it is behind. The default is never shut.
#[derive(Debug, Clone, Default)]
pub struct Backpressure {
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    is_shut: AtomicBool,
    /// Microseconds waited since the listener last caught up.
    waited: AtomicU64,
    opened: Notify,
}

impl Backpressure {
    /// Reports that the listener is behind.
    pub fn shut(&self) {
        self.gate.is_shut.store(true, Ordering::SeqCst);
    }

    /// Reports that the listener is no longer behind.
    pub fn open(&self) {
        if self.gate.is_shut.swap(false, Ordering::SeqCst) {
            self.gate.opened.notify_waiters();
        }
    }

    /// Reports that the listener has taken all output, and opens the pace.
    pub fn caught_up(&self) {
        self.gate.waited.store(0, Ordering::Relaxed);
        self.open();
    }

    /// Returns whether the listener is behind.
    pub fn is_shut(&self) -> bool {
        self.gate.is_shut.load(Ordering::SeqCst)
    }

    /// Waits until output may be taken. The waits last at most one second in all, until the
    /// listener has caught up.
    pub(super) async fn ready(&self) {
        loop {
            let opened = self.gate.opened.notified(); // before the check, so that no call of `open` is missed
            let left = CREDIT.saturating_sub(Duration::from_micros(self.gate.waited.load(Ordering::Relaxed)));
            if left.is_zero() || !self.is_shut() {
                return;
            }
            let clock = Stopwatch::start();
            let _either = tokio::time::timeout(left, opened).await;
            let waited = u64::try_from(clock.read().as_micros()).unwrap_or(u64::MAX);
            self.gate.waited.fetch_add(waited, Ordering::Relaxed);
        }
    }
}

/// Two are equal if they share one switch.
impl PartialEq for Backpressure {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.gate, &other.gate)
    }
}

impl Eq for Backpressure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_who_is_behind_is_waited_for_until_it_is_not() {
        let pace = Backpressure::default();
        pace.ready().await;
        pace.shut();
        tokio::join!(pace.ready(), async { pace.open() });
        assert!(Duration::from_micros(pace.gate.waited.load(Ordering::Relaxed)) < CREDIT);
    }

    #[tokio::test]
    async fn one_who_is_stuck_is_waited_for_once_until_it_has_caught_up() {
        let pace = Backpressure::default();
        let waited = async || {
            let clock = Stopwatch::start();
            pace.ready().await;
            clock.read() >= CREDIT
        };
        pace.shut();
        assert_eq!((waited().await, waited().await), (true, false));
        pace.open();
        pace.shut();
        assert!(!waited().await, "it has heard something, and not everything");
        pace.caught_up();
        pace.shut();
        assert!(waited().await);
    }
}
