//! The distribution of a run's time: the parts that its states belong to, and stretches of them.

use crate::run::{Run, StateName};
use serde::Serialize;

/// An activity that a run spends time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// The model.
    Model,
    /// Tools, sub-agents and hooks.
    Tools,
    /// The gate.
    Gate,
    /// Pauses before another try, and answers of people.
    Waiting,
    /// Planning and reporting.
    Other,
}

impl TimePart {
    /// All parts, in display order.
    pub const ALL: [Self; 5] = [Self::Model, Self::Tools, Self::Gate, Self::Waiting, Self::Other];

    /// Returns the part that the run spends its time on in its current state.
    pub(super) fn from_run(run: &Run) -> Self {
        match (run.state(), run.label()) {
            (StateName::Executing, "CallingModel" | "Compacting") => Self::Model,
            (StateName::Executing, "BackingOff" | "Confirming") => Self::Waiting,
            (StateName::Executing, _) => Self::Tools,
            (StateName::Verifying, _) => Self::Gate,
            (StateName::Idle | StateName::Planning | StateName::Reporting, _) => Self::Other,
        }
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tools => "tools",
            Self::Gate => "gate",
            Self::Waiting => "waiting",
            Self::Other => "other",
        }
    }
}

/// A period spent on one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TimeSpan {
    /// The part.
    pub part: TimePart,
    /// The duration, in milliseconds.
    pub ms: u64,
}
