//! Any error at the front door: its words, a hint, and the exit code.

use super::paint::{self, Tone};
use crate::verdict::{Reason, StopCause};

/// A verb that could not be done.
#[derive(Debug)]
pub(super) struct Failure {
    reason: Reason,
    error: anyhow::Error,
    hint: Option<&'static str>,
    /// Who asked for a stop, where that is what it was.
    stopped_by: Option<StopCause>,
}

impl Failure {
    /// The input is wrong; nothing was run.
    pub(super) fn input(error: impl Into<anyhow::Error>) -> Self {
        Self::because(Reason::BadInput, error)
    }

    /// fledge could not read or write what is its own.
    pub(super) fn own(error: impl Into<anyhow::Error>) -> Self {
        Self::because(Reason::IoError, error)
    }

    /// With the code of another reason.
    pub(super) fn because(reason: Reason, error: impl Into<anyhow::Error>) -> Self {
        Self { reason, error: error.into(), hint: None, stopped_by: None }
    }

    /// Somebody asked for a stop.
    pub(super) fn stopped(by: StopCause, error: impl Into<anyhow::Error>) -> Self {
        Self { stopped_by: Some(by), ..Self::because(Reason::Cancelled, error) }
    }

    /// The same, since somebody asked for a stop.
    pub(super) fn stopped_by(self, by: StopCause) -> Self {
        Self { reason: Reason::Cancelled, stopped_by: Some(by), ..self }
    }

    /// With what to do about it.
    pub(super) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// It and its causes, in one line.
    pub(super) fn message(&self) -> String {
        format!("{:#}", self.error)
    }

    /// What it was, for whoever has another way.
    pub(super) fn cause<E: std::error::Error + Send + Sync + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// The exit code.
    pub(super) fn code(&self) -> u8 {
        self.reason.exit_code(self.stopped_by)
    }

    /// Why it was, in the words of the table.
    pub(super) fn reason(&self) -> Reason {
        self.reason
    }

    /// Says it on standard error, and gives the exit code.
    pub(super) fn show(&self) -> u8 {
        let mut causes = self.error.chain();
        let message = causes.next().map(ToString::to_string).unwrap_or_default();
        paint::line(&[(Tone::Bad, "error: "), (Tone::Plain, &message)]);
        for cause in causes {
            paint::line(&[(Tone::Faint, "  because: "), (Tone::Plain, &cause.to_string())]);
        }
        if let Some(hint) = self.hint {
            paint::line(&[(Tone::Faint, "  hint: "), (Tone::Plain, hint)]);
        }
        self.code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_failure_has_the_code_of_its_reason() {
        let failures = [
            Failure::input(anyhow!("no such task")).hint("write one"),
            Failure::own(anyhow!("disk full")),
            Failure::because(Reason::GateErrored, anyhow!("no such program").context("the gate cannot run")),
        ];
        assert_eq!(failures.map(|failure| failure.show()), [2, 8, 5]);
        assert_eq!(Failure::stopped(StopCause::Terminate, anyhow!("stopped")).show(), 143);
    }
}
