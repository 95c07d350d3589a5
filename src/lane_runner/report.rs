//! The report of a step for a verdict. Pure.

use super::{Tried, explain};
use crate::duration::{milliseconds, show_duration};
use crate::lane::{Lane, Step};
use crate::process::ProcessEnd;
use crate::verdict::{StepReport, StepStatus, TestCounts};

/// The maximum size of an excerpt that explains no failure, in bytes.
const BRIEF: usize = 1024;

/// Builds the report of a step that was not started.
pub(crate) fn not_run(lane: &Lane, step: &Step) -> StepReport {
    StepReport {
        lane: lane.name.clone(),
        step: step.name.clone(),
        command: step.run.clone(),
        status: StepStatus::NotRun,
        tries: 0,
        exit_code: None,
        signal: None,
        duration_ms: 0,
        log: None,
        excerpt: String::new(),
        note: String::new(),
        tests: None,
    }
}

/// Notes that a planned further try of a step does not take place; returns its report.
pub(super) fn given_up(report: &mut StepReport) -> StepReport {
    report.note = also(&report.note, "not tried again, since it was stopped before");
    report.clone()
}

/// Builds the report of a step after a try. `before` is its report so far. `stopped` is the status
/// of a step that an order to stop has ended.
pub(super) fn ended(lane: &Lane, number: usize, tried: &Tried, before: &StepReport, stopped: StepStatus) -> StepReport {
    let step = &lane.steps[number];
    let Tried { tries, ended, log, tests, found, unrun, .. } = tried;
    let unrun = unrun.clone();
    let (status, mut note) = match &ended.end {
        ProcessEnd::Exited(0) => (StepStatus::Passed, String::new()),
        ProcessEnd::Exited(137) => {
            (StepStatus::Failed, "137 is what a shell ends with after signal 9; was memory short?".into())
        }
        ProcessEnd::Exited(_) => unrun.unwrap_or((StepStatus::Failed, String::new())),
        ProcessEnd::Signalled(9) => (StepStatus::Failed, "killed by signal 9, not by fledge; was memory short?".into()),
        ProcessEnd::Signalled(signal) => (StepStatus::Failed, format!("ended by signal {signal}")),
        ProcessEnd::Exceeded(how) => (StepStatus::Failed, format!("ended by fledge: {how} (`limits`)")),
        ProcessEnd::TimedOut => {
            let limit = step.timeout.map(show_duration).unwrap_or_default();
            (StepStatus::TimedOut, format!("ran out of its time of {limit}"))
        }
        ProcessEnd::Stopped if stopped == StepStatus::TimedOut => {
            (stopped, format!("the lane ran out of its time of {}", show_duration(lane.timeout)))
        }
        ProcessEnd::Stopped => (stopped, String::new()),
        ProcessEnd::NotStarted(why) => unrun.unwrap_or_else(|| (StepStatus::Errored, why.clone())),
    };
    if ended.leaked {
        note = also(&note, "left processes behind, which were killed");
    }
    if ended.output.total > 0 && !ended.is_logged {
        note = also(&note, "its log could not be written to the end");
    }
    let (status, tests) = match tests {
        // A report that the lane names is evidence: without its confirmation, the step does not
        // pass.
        Some(Ok(report)) => {
            let against = if status == StepStatus::Passed { speaks_against(&report.counts) } else { None };
            if let Some(why) = &against {
                note = also(&note, why);
            }
            (if against.is_some() { StepStatus::Failed } else { status }, Some(Box::new(report.summary())))
        }
        Some(Err(why)) => {
            note = also(&note, why);
            (if status == StepStatus::Passed { StepStatus::Failed } else { status }, None)
        }
        // A found report only names the failed tests. The exit code decides the status of the step.
        None => (status, found.as_ref().map(|report| Box::new(report.summary()))),
    };
    StepReport {
        status,
        tries: *tries,
        exit_code: if let ProcessEnd::Exited(code) = ended.end { Some(code) } else { None },
        signal: if let ProcessEnd::Signalled(signal) = ended.end { Some(signal) } else { None },
        duration_ms: before.duration_ms.saturating_add(milliseconds(ended.duration)),
        log: ended.has_log().then(|| log.to_string_lossy().into_owned()),
        excerpt: match explain::is_explained(status) {
            true => explain::from_ends(&ended.output),
            false => ended.output.text(BRIEF).trim_end().to_owned(),
        },
        note,
        tests,
        ..not_run(lane, step)
    }
}

/// Returns the reason if a test report contradicts a pass.
fn speaks_against(counts: &TestCounts) -> Option<String> {
    match counts.failures.saturating_add(counts.errors) {
        0 if counts.tests == 0 => Some("its test report has no tests in it".into()),
        0 if counts.tests == counts.skipped => {
            Some("it exited with 0, but all tests of its test report were skipped".into())
        }
        0 => None,
        1 => Some("it exited with 0, but its test report has a failing test".into()),
        more => Some(format!("it exited with 0, but its test report has {more} failing tests")),
    }
}

fn also(note: &str, more: &str) -> String {
    [note, more].join(if note.is_empty() { "" } else { "; " })
}
