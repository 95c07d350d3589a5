//! The wish to stop, and who has it.

use crate::verdict::StopCause;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long each part of the end of a run may go on after the user asked for a stop.
const IN_HASTE: Duration = Duration::from_millis(250);
/// The longest that the end of a run may take to keep the agent's last state where no user waits: a candidate
/// that was beaten, or a run that ended by itself.
pub(super) const IN_PEACE: Duration = Duration::from_secs(20);

/// A cancellation token that remembers who cancelled it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    rest: CancellationToken,
    cause: Arc<AtomicU8>,
    /// The token of the whole that this is a part of.
    whole: Option<CancellationToken>,
}

impl Stop {
    /// A stop that follows the token of a library user.
    pub fn of(token: CancellationToken) -> Self {
        Self { token, ..Self::default() }
    }

    /// A stop for a part of the work: it follows this one and has its cause, and the part can be cancelled by itself.
    #[must_use]
    pub fn part(&self) -> Self {
        Self {
            token: self.token.child_token(),
            rest: self.rest.child_token(),
            cause: Arc::clone(&self.cause),
            whole: Some(self.token.clone()),
        }
    }

    /// A stop that another token brings about, with the cause of this one where it has any.
    pub(super) fn by(&self, token: CancellationToken) -> Self {
        Self { token, cause: Arc::clone(&self.cause), ..Self::default() }
    }

    /// Asks for a rest: the run is left where nothing is under way that a resume could not do again, and goes on with a resume. It is
    /// not over then.
    pub fn ask_for_rest(&self) {
        self.rest.cancel();
    }

    /// What is cancelled when a rest is asked for.
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

    /// Waits until a stop is asked for and the end of the run must hurry: `IN_HASTE` later, or, where only this
    /// part was stopped, after `IN_PEACE` or when the whole is stopped, too.
    pub(super) async fn haste(&self) {
        self.token.cancelled().await;
        if let Some(whole) = &self.whole {
            let _in_peace = tokio::time::timeout(IN_PEACE, whole.cancelled()).await;
        }
        tokio::time::sleep(IN_HASTE).await;
    }

    /// The token itself.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Who asked.
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
        let whole = Stop::default();
        let (first, second) = (whole.part(), whole.part());
        first.token().cancel();
        assert_eq!((first.cause(), whole.token().is_cancelled()), (StopCause::Token, false));
        whole.ask(StopCause::Terminate);
        assert_eq!((second.token().is_cancelled(), second.cause()), (true, StopCause::Terminate));
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_is_stopped_alone_has_time_to_keep_what_it_has_until_the_whole_is_stopped() {
        let whole = Stop::default();
        let part = whole.part();
        part.token().cancel();
        assert!(tokio::time::timeout(IN_PEACE, part.haste()).await.is_err());
        assert!(tokio::time::timeout(IN_PEACE + IN_HASTE * 2, part.haste()).await.is_ok());
        whole.ask(StopCause::Interrupt);
        assert!(tokio::time::timeout(IN_HASTE * 2, part.haste()).await.is_ok());
    }

    #[test]
    fn the_first_cause_counts() {
        let stop = Stop::default();
        assert!(!stop.token().is_cancelled());
        stop.ask(StopCause::Terminate);
        stop.ask(StopCause::Interrupt);
        assert_eq!((stop.token().is_cancelled(), stop.cause()), (true, StopCause::Terminate));
    }
}
