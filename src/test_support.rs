//! Shared by all unit tests: the one limit on waiting, samples, and a step's result.

use crate::verdict::{StepReport, StepStatus};
use std::time::Duration;

/// The limit on each wait for an event. It only bounds a hang: no busy machine is that slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Draws one in three of the cases of a long test: by `FLEDGE_TEST_SEED`, else by chance. `FLEDGE_TEST_ALL=1` takes all.
#[expect(clippy::disallowed_methods, reason = "how much a test tries is set from outside")]
pub(crate) fn drawn<T>(cases: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let is_whole = std::env::var("FLEDGE_TEST_ALL").is_ok_and(|all| all == "1");
    let given = std::env::var("FLEDGE_TEST_SEED").ok().and_then(|seed| seed.parse::<usize>().ok());
    let seed = given.unwrap_or_else(|| std::process::id() as usize);
    let (first, step) = if is_whole { (0, 1) } else { (seed % 3, 3) };
    cases.skip(first).step_by(step)
}

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
