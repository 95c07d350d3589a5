//! How it is with a job, as it is shown.

use super::job::Kind;
use jiff::Timestamp;

/// How it is with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It waits.
    Idle,
    /// It runs.
    Running,
    /// It cannot be run as it is written.
    Disabled,
}

impl JobState {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Disabled => "disabled",
        }
    }
}

/// A job, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub kind: Kind,
    /// Its schedule, and the zone of that; nothing where it cannot be read.
    pub schedule: Option<(String, String)>,
    /// When it is due next.
    pub next: Option<Timestamp>,
    /// How it is with it.
    pub state: JobState,
    /// The monitor that hears of it.
    pub monitor: Option<String>,
    /// Why it is disabled.
    pub fault: Option<String>,
}
