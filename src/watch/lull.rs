//! When a burst of changes is over: after a while in which nothing was heard, and in any case after a longer one, since some
//! things never fall silent.

use std::time::Duration;

/// How long nothing may be heard.
const QUIET: Duration = Duration::from_millis(200);
/// How long is waited for that.
const PATIENCE: Duration = Duration::from_secs(2);

/// A burst under way; times are since any one start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lull {
    first: Duration,
    last: Duration,
}

impl Lull {
    /// Something was heard, and before it nothing that belongs to it.
    pub(super) fn from(now: Duration) -> Self {
        Self { first: now, last: now }
    }

    /// Something more was heard.
    pub(super) fn heard(&mut self, now: Duration) {
        self.last = now;
    }

    /// When it is over, unless more is heard before.
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
        let mut lull = Lull::from(ms(1000));
        assert_eq!(lull.over(), ms(1200));
        lull.heard(ms(1150));
        assert_eq!(lull.over(), ms(1350));
    }

    #[test]
    fn a_burst_without_end_is_cut_off() {
        let ms = Duration::from_millis;
        let mut lull = Lull::from(ms(1000));
        for now in (1000..2950).step_by(50) {
            lull.heard(ms(now));
        }
        assert_eq!(lull.over(), ms(3000));
    }
}
