//! The number of tests that failed, for a message without their names. Pure.

use super::Evidence;
use crate::verdict::StepReport;

impl Evidence {
    /// Returns the number of failed tests of these steps: of their reports, or of their output.
    pub(in crate::gate) fn failed(&self, steps: &[StepReport]) -> u64 {
        let failed = |step: &StepReport| {
            let reported = step.tests.as_ref().map_or(0, |tests| tests.counts.failures + tests.counts.errors);
            let shown = self.steps.get(&format!("{}/{}", step.lane, step.step));
            reported.max(shown.map_or(0, |shown| shown.printed.failed()))
        };
        steps.iter().map(failed).fold(0, u64::saturating_add)
    }
}
