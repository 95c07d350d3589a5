//! Shared by all unit tests: the one limit on waiting, and a step's result.

use crate::verdict::{StepReport, StepStatus};
use std::time::Duration;

/// The limit on each wait for an event. It only bounds a hang: no busy machine is that slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Returns the result of a step `test` of a lane `verify`, which has left no log.
pub(crate) fn step_report(command: &str, status: StepStatus, excerpt: &str) -> StepReport {
    StepReport {
        lane: "verify".into(),
        step: "test".into(),
        command: command.into(),
        status,
        tries: 1,
        exit_code: (status == StepStatus::Failed).then_some(1),
        signal: None,
        duration_ms: 0,
        log: None,
        excerpt: excerpt.into(),
        note: String::new(),
        tests: None,
    }
}
