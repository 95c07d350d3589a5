//! State of a job for display.

use super::job::JobKind;
use jiff::Timestamp;

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// The job waits.
    Idle,
    /// The job runs.
    Running,
    /// The task cannot be run as written.
    Disabled,
}

impl JobState {
    /// Returns the state as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Disabled => "disabled",
        }
    }
}

/// A job for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownJob {
    /// Its name.
    pub name: String,
    /// The origin of the job.
    pub kind: JobKind,
    /// The schedule and its time zone; `None` if the task cannot be read.
    pub schedule: Option<(String, String)>,
    /// The next due time.
    pub next: Option<Timestamp>,
    /// The state of the job.
    pub state: JobState,
    /// The monitor that receives its check-ins.
    pub monitor: Option<String>,
    /// The reason why it is disabled.
    pub fault: Option<String>,
}
