//! Durations of steps in earlier runs of a lane.

use super::LaneOutcome;
use crate::lane::Lane;
use crate::store::Durations;
use crate::verdict::StepStatus;
use std::path::Path;
use std::time::Duration;

/// Returns the earlier durations of a lane's steps, for [`super::LaneRoom::expected`]. `project` is
/// the folder with fledge's data about the project. Unreadable durations count as unknown.
pub fn recall(lane: &Lane, project: &Path) -> Vec<Duration> {
    if !has_choice(lane) {
        return Vec::new();
    }
    let known = Durations::read(project, &lane.name).unwrap_or_else(|error| {
        tracing::debug!(%error, cause = error.cause(), "how long steps take is not known");
        Durations::default()
    });
    lane.steps.iter().map(|step| known.of(&step.name, &step.run)).collect()
}

/// Records the durations of steps that passed at their first try. A write error only loses the
/// durations.
pub fn remember(lane: &Lane, outcome: &LaneOutcome, project: &Path) {
    let passed = outcome.steps.iter().filter(|step| step.status == StepStatus::Passed);
    let took = passed.map(|step| (&*step.lane, &*step.step, &*step.command, Duration::from_millis(step.duration_ms)));
    if has_choice(lane)
        && let Err(error) = Durations::add(project, took)
    {
        tracing::debug!(%error, cause = error.cause(), "cannot remember how long steps took");
    }
}

/// Returns true if two steps can be ready at the same time. Durations matter only then.
fn has_choice(lane: &Lane) -> bool {
    let waits = |(number, earlier): (usize, &crate::lane::Step)| {
        number == 0 || earlier.after.binary_search(&(number - 1)).is_ok()
    };
    !lane.steps.iter().enumerate().all(waits)
}
