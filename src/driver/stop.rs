//! Requests to stop or rest, and their cause.

use crate::verdict::StopCause;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that each part of the end of a run has after the user asked for a stop.
const IN_HASTE: Duration = Duration::from_millis(250);
/// The time that the end of a run has to keep the agent's final files while no user waits: for a
/// beaten candidate, or a run that ended by itself.
pub(super) const IN_PEACE: Duration = Duration::from_secs(20);

/// A cancellation token that remembers who cancelled it.
#[derive(Debug, Clone, Default)]
pub struct StopToken {
    token: CancellationToken,
    rest: CancellationToken,
    cause: Arc<AtomicU8>,
    /// The token of the whole, if this is a part of it.
    whole: Option<CancellationToken>,
}

impl StopToken {
    /// Creates a stop that follows the token of a library user.
    pub fn from_token(token: CancellationToken) -> Self {
        Self { token, ..Self::default() }
    }

    /// Creates a stop for a part of the work. It follows this stop and has its cause, and can be
    /// cancelled alone.
    #[must_use]
    pub fn part(&self) -> Self {
        Self {
            token: self.token.child_token(),
            rest: self.rest.child_token(),
            cause: Arc::clone(&self.cause),
            whole: Some(self.token.clone()),
        }
    }

    /// Creates a stop that another token triggers, with the cause of this one.
    pub(super) fn by(&self, token: CancellationToken) -> Self {
        Self { token, cause: Arc::clone(&self.cause), ..Self::default() }
    }

    /// Asks for a rest. The run is left when all work under way is work that a resume can repeat.
    /// It has not ended then, and a resume continues it.
    pub fn ask_for_rest(&self) {
        self.rest.cancel();
    }

    /// Returns the token that a request to rest cancels.
    pub(super) fn rest(&self) -> &CancellationToken {
        &self.rest
    }

    /// Asks for a stop. The first cause counts.
    pub fn ask(&self, cause: StopCause) {
        let number = match cause {
            StopCause::Token => 0,
            StopCause::Interrupt => 1,
            StopCause::Terminate => 2,
        };
        let _first = self.cause.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
        self.token.cancel();
    }

    /// Waits until a stop is requested and the end of the run must hurry. That is `IN_HASTE` after
    /// the stop. If only this part was stopped, `IN_PEACE` passes first, unless the whole is
    /// stopped earlier.
    pub(super) async fn haste(&self) {
        self.token.cancelled().await;
        if let Some(whole) = &self.whole {
            let _in_peace = tokio::time::timeout(IN_PEACE, whole.cancelled()).await;
        }
        tokio::time::sleep(IN_HASTE).await;
    }

    /// Returns the token.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Returns who asked for the stop.
    pub fn cause(&self) -> StopCause {
        match self.cause.load(Ordering::SeqCst) {
            1 => StopCause::Interrupt,
            2 => StopCause::Terminate,
            _ => StopCause::Token,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stops_by_itself_or_with_the_whole() {
        let whole = StopToken::default();
        let (first, second) = (whole.part(), whole.part());
        first.token().cancel();
        assert_eq!((first.cause(), whole.token().is_cancelled()), (StopCause::Token, false));
        whole.ask(StopCause::Terminate);
        assert_eq!((second.token().is_cancelled(), second.cause()), (true, StopCause::Terminate));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_part_of_a_run_has_grace_until_the_run_is_stopped() {
        let whole = StopToken::default();
        let part = whole.part();
        part.token().cancel();
        assert!(tokio::time::timeout(IN_PEACE, part.haste()).await.is_err());
        assert!(tokio::time::timeout(IN_PEACE + IN_HASTE * 2, part.haste()).await.is_ok());
        whole.ask(StopCause::Interrupt);
        assert!(tokio::time::timeout(IN_HASTE * 2, part.haste()).await.is_ok());
    }

    #[test]
    fn the_first_cause_counts() {
        let stop = StopToken::default();
        assert!(!stop.token().is_cancelled());
        stop.ask(StopCause::Terminate);
        stop.ask(StopCause::Interrupt);
        assert_eq!((stop.token().is_cancelled(), stop.cause()), (true, StopCause::Terminate));
    }
}
