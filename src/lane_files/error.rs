//! The error of a lane that cannot be read or cannot run.

use super::detection;
use crate::lane::LaneError;
use crate::store::StoreError;
use crate::verdict::Reason;
use crate::yaml::{listed, nearest};
use std::path::Path;

/// An error of reading a lane, or of a lane that cannot run here.
#[derive(Debug, thiserror::Error)]
pub enum LaneFilesError {
    /// A lane that does not exist.
    #[error("there is no lane `{lane}` in {places}{}{}", meant(lane, .known), detection::remarks(.remarks))]
    UnknownLane {
        /// The name of the lane.
        lane: String,
        /// The places where the lane was searched.
        places: String,
        /// The lanes that exist.
        known: Vec<String>,
        /// Possible explanations: files that are not read as lanes, tables that are not read, input
        /// that detection could not use.
        remarks: Vec<String>,
    },
    /// A lane that is invalid.
    #[error(transparent)]
    Invalid(#[from] LaneError),
    /// A file that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] StoreError),
    /// A step that cannot run.
    #[error("step `{step}` of lane `{lane}` cannot run: {why}")]
    CannotRun {
        /// The lane.
        lane: String,
        /// The step.
        step: String,
        /// The part that is missing.
        why: String,
    },
}

impl LaneFilesError {
    /// Returns the file and the line of the first problem, if the error is about the text of a
    /// lane.
    pub fn place(&self) -> Option<(&str, u32)> {
        match self {
            Self::Invalid(fault) => fault.place(),
            Self::UnknownLane { .. } | Self::Unreadable(_) | Self::CannotRun { .. } => None,
        }
    }

    /// Returns the reason with which a run ends that needs the lane.
    pub fn reason(&self) -> Reason {
        match self {
            Self::CannotRun { .. } => Reason::GateErrored,
            Self::UnknownLane { .. } | Self::Invalid(_) => Reason::BadInput,
            Self::Unreadable(_) => Reason::PlanFailed,
        }
    }
}

/// Returns the lane that was most likely meant, and the lanes that exist, as part of a message.
fn meant(lane: &str, known: &[String]) -> String {
    if known.is_empty() {
        return ": no lanes are defined; `fledge init` writes one".into();
    }
    let names = || known.iter().map(String::as_str);
    let stem = Path::new(lane).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(); // if it is a path
    let near = names().find(|name| *name == stem).or_else(|| nearest(lane, names()));
    let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    format!("{near}; known: {}", listed(names()))
}
