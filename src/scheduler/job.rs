//! Interface of a job of the scheduler.

use crate::schedule::Schedule;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::fmt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The origin of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// A built-in job of fledge.
    Builtin,
    /// A task of the project.
    Task,
}

impl JobKind {
    /// Returns the kind as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Task => "task",
        }
    }
}

/// A job that runs by a schedule.
pub trait ScheduledJob: fmt::Debug + Send + Sync {
    /// Returns the unique name of the job.
    fn name(&self) -> &str;

    /// Returns the schedule of the job.
    fn schedule(&self) -> &Schedule;

    /// Returns the origin of the job.
    fn kind(&self) -> JobKind;

    /// Returns how long after its due time the job may still begin. `None`: it begins whenever the
    /// scheduler notices, once, and missed due times are not recorded.
    fn tolerance(&self) -> Option<Duration> {
        None
    }

    /// Returns the longest random delay of a start, so that not all jobs start at once.
    fn jitter(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the monitor that receives check-ins of the job.
    fn monitor(&self) -> Option<&str> {
        None
    }

    /// Returns true if the next server continues an unfinished run under the same number.
    /// Otherwise, the run counts as interrupted.
    fn resumes(&self) -> bool {
        false
    }

    /// Runs the job once. The future may be dropped at every await point.
    fn run(&self, context: JobContext) -> BoxFuture<'_, Result<(), JobError>>;
}

/// The context of one run of a job.
#[derive(Debug, Clone)]
pub struct JobContext {
    /// The number of this run. It stays the same for further tries and after a restart of the
    /// server.
    pub no: i64,
    /// The due time; `None` for a run on request.
    pub due: Option<Timestamp>,
    /// True if no further try follows.
    pub is_last: bool,
    /// Cancelled when the server is about to end. The job should then end soon or return
    /// [`JobError::Resting`].
    pub stop: CancellationToken,
}

/// A run of a job that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It failed, but may succeed soon.
    #[error("{0}")]
    Retryable(String),
    /// It failed, and would fail again.
    #[error("{0}")]
    Final(String),
    /// It paused because the server ends. The next server continues it.
    #[error("the server is stopping")]
    Resting,
}

impl JobError {
    /// Returns a temporary failure with all causes of the error.
    pub fn retryable(error: &dyn std::error::Error) -> Self {
        Self::Retryable(error_line(error))
    }
}

/// Formats an error and its causes in one line.
pub(super) fn error_line(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
