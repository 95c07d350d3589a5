//! Tests that fail only beside planted ones. Code may look for planted tests, and silence the
//! others where it finds none. Then tests of the base fail in the room with planted tests, where
//! the code shows what it really does.

use super::canary::PlantedTest;
use super::logs::{has_line, says};
use crate::lane::ReportedState;
use crate::lane_runner::LaneOutcome;
use crate::verdict::StepReport;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

/// The maximum number of tests that are named.
const MOST: usize = 1000;

/// Returns the failed tests of a lane that are not planted, by the names that runners report to
/// fledge, or print in Rust and Go. Blocks.
///
/// A test that is made to fail prints a word. If it failed without the word, while others printed
/// theirs, it failed by itself.
pub(super) fn failed_tests(outcome: &LaneOutcome, plants: &[PlantedTest]) -> BTreeSet<String> {
    let mut failed = BTreeSet::new();
    for test in outcome.runner_reports.iter().flatten().flat_map(|report| &report.tests) {
        match test.state {
            ReportedState::Failed => failed.insert(test.name.clone()),
            ReportedState::Passed => failed.remove(&test.name),
            _ => false,
        };
    }
    failed.extend(printed_failures(&outcome.steps));
    if failed.is_empty() {
        return failed;
    }
    let logs: Vec<&Path> = outcome.steps.iter().filter_map(|step| step.log.as_deref().map(Path::new)).collect();
    let is_printed = |plant: &PlantedTest| !plant.mark.is_empty() && logs.iter().any(|log| says(log, &plant.mark));
    let (printed, silent): (Vec<&PlantedTest>, Vec<&PlantedTest>) = plants.iter().partition(|plant| is_printed(plant));
    let others = silent.into_iter().filter(|plant| printed.is_empty() || !plant.is_altered());
    let planted: Vec<&PlantedTest> = printed.iter().copied().chain(others).collect();
    let is_planted = |name: &String| planted.iter().any(|plant| plant.is_named(name));
    failed.into_iter().filter(|name| !is_planted(name)).take(MOST).collect()
}

/// Returns the failed tests that libtest and Go name in the output of these steps. Blocks.
pub(super) fn printed_failures(steps: &[StepReport]) -> BTreeSet<String> {
    let printed = RefCell::new(BTreeSet::new());
    for log in steps.iter().filter_map(|step| step.log.as_deref()) {
        has_line(Path::new(log), |line| {
            let mut printed = printed.borrow_mut();
            printed.extend(printed_failure(line.trim()).map(str::to_owned));
            printed.len() >= MOST
        });
    }
    printed.into_inner()
}

/// Returns the failed test in a line of libtest or Go: `test a::b ... FAILED`,
/// `--- FAIL: TestA (0.00s)`.
fn printed_failure(line: &str) -> Option<&str> {
    let of_rust = || line.strip_prefix("test ")?.strip_suffix(" ... FAILED");
    let of_go = || Some(line.strip_prefix("--- FAIL: ")?.split_once(" (")?.0);
    of_rust().or_else(of_go)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_printed_by_libtest_and_go() {
        for (line, name) in [
            ("test tests::adds ... FAILED", Some("tests::adds")),
            ("test src/lib.rs - f (line 3) ... FAILED", Some("src/lib.rs - f (line 3)")),
            ("--- FAIL: TestAdd (0.00s)", Some("TestAdd")),
            ("test tests::adds ... ok", None),
            ("--- PASS: TestAdd (0.00s)", None),
            ("FAILED tests/test_a.py::test_b", None),
        ] {
            assert_eq!(printed_failure(line), name, "{line}");
        }
    }
}
