//! Where the time of a run goes: the parts that its states belong to, and stretches of them.

use crate::run::{Run, StateName};
use serde::Serialize;

/// What a run spends its time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The model.
    Model,
    /// Tools, sub-agents and hooks.
    Tools,
    /// The gate.
    Gate,
    /// Pauses before another try, and people.
    Waiting,
    /// Planning and reporting.
    Other,
}

impl Part {
    /// Every part, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Model, Self::Tools, Self::Gate, Self::Waiting, Self::Other];

    /// What a run with this label is busy with.
    pub(super) fn of(run: &Run) -> Self {
        match (run.state(), run.label()) {
            (StateName::Executing, "CallingModel" | "Compacting") => Self::Model,
            (StateName::Executing, "BackingOff" | "Confirming") => Self::Waiting,
            (StateName::Executing, _) => Self::Tools,
            (StateName::Verifying, _) => Self::Gate,
            (StateName::Idle | StateName::Planning | StateName::Reporting, _) => Self::Other,
        }
    }

    /// Its name.
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

/// A time that was spent on one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stretch {
    /// On what.
    pub part: Part,
    /// How long, in milliseconds.
    pub ms: u64,
}
