//! The time limits of a turn, measured on a monotonic clock.
#![expect(clippy::disallowed_methods, reason = "the clocks of a turn are read here")]

use crate::{chat::ModelError, provider::TurnTimeouts};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, timeout_at};

/// The upper limit of all time limits: a deadline cannot be arbitrarily late.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The three time limits of a turn. The limit for the first byte applies until the first progress;
/// then the limit between events applies.
pub(super) struct TurnWatch {
    clocks: TurnTimeouts,
    turn_ends: Instant,
    wait_ends: Instant,
    answered: bool,
}

impl TurnWatch {
    /// Starts the limits of the turn and of the first byte.
    pub(super) fn start(clocks: TurnTimeouts) -> Self {
        let after = |clock: Duration| Instant::now() + clock.min(LONGEST);
        Self { clocks, turn_ends: after(clocks.turn), wait_ends: after(clocks.first_byte), answered: false }
    }

    /// Records progress of the answer.
    pub(super) fn progress(&mut self) {
        self.answered = true;
        self.wait_ends = Instant::now() + self.clocks.idle.min(LONGEST);
    }

    /// Waits for a future until a time limit expires.
    pub(super) async fn wait<T>(&self, what: impl Future<Output = T>) -> Result<T, ModelError> {
        timeout_at(self.ends(), what).await.map_err(|_| self.late())
    }

    /// Returns an error if a time limit has expired.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        if Instant::now() < self.ends() { Ok(()) } else { Err(self.late()) }
    }

    fn ends(&self) -> Instant {
        self.turn_ends.min(self.wait_ends)
    }

    fn late(&self) -> ModelError {
        let TurnTimeouts { first_byte, idle, turn } = self.clocks;
        let (what, setting) = if self.turn_ends <= self.wait_ends {
            (format!("the turn took longer than {turn:?}"), "turn")
        } else if self.answered {
            (format!("the stream sent nothing new for {idle:?}"), "idle")
        } else {
            (format!("no answer within {first_byte:?}"), "first_byte")
        };
        ModelError::network(format!("{what} (a slow model needs more in `timeouts.{setting}`)"))
    }
}
