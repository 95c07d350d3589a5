//! What a job is.

use crate::schedule::Schedule;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::fmt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Where a job comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is fledge's own.
    Builtin,
    /// It is a task of the project.
    Task,
}

impl Kind {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Task => "task",
        }
    }
}

/// Something that is done again and again.
pub trait Job: fmt::Debug + Send + Sync {
    /// The name that it goes by: no other one has it.
    fn name(&self) -> &str;

    /// When it is due.
    fn schedule(&self) -> &Schedule;

    /// Where it comes from.
    fn kind(&self) -> Kind;

    /// How long after it was due it is still begun; `None`: whenever that is noticed, once, and nothing is said of what was left out.
    fn tolerance(&self) -> Option<Duration> {
        None
    }

    /// How long its beginning may be put off, so that not all begin at once.
    fn jitter(&self) -> Duration {
        Duration::ZERO
    }

    /// The monitor that hears of it.
    fn monitor(&self) -> Option<&str> {
        None
    }

    /// Whether a run of it that a server has left goes on with the next one, under the same number. If not, it was interrupted.
    fn resumes(&self) -> bool {
        false
    }

    /// Does it once. It may be dropped at every point where it waits.
    fn run(&self, context: Context) -> BoxFuture<'_, Result<(), JobError>>;
}

/// For what a job is run.
#[derive(Debug, Clone)]
pub struct Context {
    /// The number of this run: the same when it is tried again, and when it goes on.
    pub no: i64,
    /// When it was due; `None` where somebody asked for it.
    pub due: Option<Timestamp>,
    /// Whether it is not tried again, whatever becomes of it.
    pub is_last: bool,
    /// Cancelled when the server is to end: what can end soon does, and what can rest rests.
    pub stop: CancellationToken,
}

/// A job that was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It failed; it may go well another time, soon.
    #[error("{0}")]
    Retryable(String),
    /// It failed, and would again.
    #[error("{0}")]
    Final(String),
    /// It rests, since the server ends: the next one goes on with it.
    #[error("the server ends")]
    Resting,
}

impl JobError {
    /// A failure that may pass, with all its causes.
    pub fn retryable(error: &dyn std::error::Error) -> Self {
        Self::Retryable(told(error))
    }
}

/// An error and its causes, in one line.
pub(super) fn told(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
