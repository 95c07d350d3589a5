//! The clocks of a turn: monotonic, and the only ones that the providers have.
#![expect(clippy::disallowed_methods, reason = "the clocks of a turn are read here")]

use crate::{chat::ModelError, provider::Clocks};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, timeout_at};

/// Clocks that are set further are set to this: an instant cannot be arbitrarily late.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The three clocks of a turn. Until the first progress the first byte is awaited, and from then on the next event.
pub(super) struct Watch {
    clocks: Clocks,
    turn_ends: Instant,
    wait_ends: Instant,
    answered: bool,
}

impl Watch {
    /// Starts them, waiting for the first byte.
    pub(super) fn start(clocks: Clocks) -> Self {
        let after = |clock: Duration| Instant::now() + clock.min(LONGEST);
        Self { clocks, turn_ends: after(clocks.turn), wait_ends: after(clocks.first_byte), answered: false }
    }

    /// Something came that brings the answer on.
    pub(super) fn progress(&mut self) {
        self.answered = true;
        self.wait_ends = Instant::now() + self.clocks.idle.min(LONGEST);
    }

    /// Waits for something, until a clock runs out.
    pub(super) async fn wait<T>(&self, what: impl Future<Output = T>) -> Result<T, ModelError> {
        timeout_at(self.ends(), what).await.map_err(|_| self.late())
    }

    /// Whether no clock has run out.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        if Instant::now() < self.ends() { Ok(()) } else { Err(self.late()) }
    }

    fn ends(&self) -> Instant {
        self.turn_ends.min(self.wait_ends)
    }

    fn late(&self) -> ModelError {
        let Clocks { first_byte, idle, turn } = self.clocks;
        if self.turn_ends <= self.wait_ends {
            ModelError::network(format!("the turn took longer than {turn:?}"))
        } else if self.answered {
            ModelError::network(format!("the stream brought nothing new for {idle:?}"))
        } else {
            ModelError::network(format!("no answer within {first_byte:?}"))
        }
    }
}
