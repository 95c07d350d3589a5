//! A lane's result as a JUnit report: a suite with one test per step. Pure.

use super::{LaneResult, failing, how, test_name, test_place};
use crate::report::junit::{self, JunitCase, JunitElement};
use crate::verdict::{StepReport, StepStatus};

/// Builds the whole document.
pub(crate) fn document(result: &LaneResult<'_>) -> String {
    let cases = result.steps.iter().map(|step| case(step, result.retried));
    let cases: Vec<JunitCase> = cases.chain(unexplained(result)).collect();
    junit::document(result.lane, result.duration_ms, &cases)
}

/// Returns a failing test for a lane that has not passed although no step failed. The lane ran
/// nothing, was stopped or never began.
fn unexplained(result: &LaneResult<'_>) -> Option<JunitCase> {
    let error = JunitElement { element: "error", message: Some(result.complaint()?), ..JunitElement::default() };
    Some(JunitCase {
        class: result.lane.into(),
        name: result.lane.into(),
        duration_ms: result.duration_ms,
        elements: vec![error],
    })
}

fn case(step: &StepReport, retried: &[StepReport]) -> JunitCase {
    let kind = if outcome(step).is_none() { "flakyFailure" } else { "rerunFailure" };
    let earlier = retried.iter().filter(|tried| tried.step == step.step).map(|tried| element(kind, tried));
    JunitCase {
        class: step.lane.clone(),
        name: step.step.clone(),
        duration_ms: step.duration_ms,
        elements: outcome(step).map(|outcome| element(outcome, step)).into_iter().chain(earlier).collect(),
    }
}

/// Returns the element for a step's outcome; `None` if the step passed. An allowed failure counts
/// as skipped: it must not fail a build, and must not look like a success.
fn outcome(step: &StepReport) -> Option<&'static str> {
    match step.status {
        StepStatus::Passed | StepStatus::Flaky => None,
        StepStatus::Failed | StepStatus::TimedOut => Some("failure"),
        StepStatus::Errored => Some("error"),
        StepStatus::AllowedFailure | StepStatus::Cancelled | StepStatus::Skipped | StepStatus::NotRun => {
            Some("skipped")
        }
    }
}

fn element(element: &'static str, step: &StepReport) -> JunitElement {
    JunitElement { element, message: Some(how(step)), kind: Some(step.status.as_str()), text: explanation(step) }
}

/// Lists the failing tests by name, then the excerpt.
fn explanation(step: &StepReport) -> String {
    let (tests, more) = failing(step);
    let mut text = String::new();
    for test in tests {
        let place = test_place(test).map(|place| format!(" ({place})")).unwrap_or_default();
        text.push_str(&format!("{}{place}: {}\n", test_name(test), test.message));
    }
    if more > 0 {
        text.push_str(&format!("and {more} more failing tests\n"));
    }
    text + &step.excerpt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane_runner::JunitReport;
    use crate::report::junit::valid;
    use crate::report::lane::tests::{all_kinds, failed, step};
    use crate::verdict::{TestCase, TestCounts, TestStatus};
    use proptest::prelude::*;

    #[test]
    fn a_document_has_a_test_for_each_step() {
        let steps = all_kinds();
        let retried = [StepReport { step: "net".into(), ..step("net", StepStatus::Failed) }];
        insta::assert_snapshot!(document(&failed(&steps, &retried)), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="verify" tests="8" failures="2" errors="1" skipped="3" time="4.321">
          <testsuite name="verify" tests="8" failures="2" errors="1" skipped="3" time="4.321">
            <testcase classname="verify" name="fmt" time="1.200"/>
            <testcase classname="verify" name="net" time="1.200">
              <flakyFailure message="exit 1" type="failed">error: it is broken
        assertion failed</flakyFailure>
            </testcase>
            <testcase classname="verify" name="links" time="1.200">
              <skipped message="allowed failure, exit 1" type="allowed_failure">error: it is broken
        assertion failed</skipped>
            </testcase>
            <testcase classname="verify" name="t|e`st &lt;b&gt;" time="1.200">
              <failure message="exit 1" type="failed">dates leap (a,b:c.rs:12): leap: expected 1,
        found 2: 50%
        ::error::mine
        ````
        &lt;b&gt;]]&gt; | %0A ##[error]x `a` </failure>
            </testcase>
            <testcase classname="verify" name="slow" time="1.200">
              <failure message="timed out (ran out of its time of 1s)" type="timed_out"/>
            </testcase>
            <testcase classname="verify" name="tool" time="1.200">
              <error message="could not run (no such program)" type="errored"/>
            </testcase>
            <testcase classname="verify" name="lint" time="1.200">
              <skipped message="cancelled" type="cancelled"/>
            </testcase>
            <testcase classname="verify" name="docs" time="0.000">
              <skipped message="not run (another step failed before)" type="not_run"/>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn our_own_reader_reads_the_same_back() {
        let steps = all_kinds();
        let read = JunitReport::parse(&document(&failed(&steps, &[]))).unwrap();
        assert_eq!(read.counts, TestCounts { tests: 8, failures: 2, errors: 1, skipped: 3 });
        let case = |step: &StepReport| {
            let (status, text) = match outcome(step) {
                None => (TestStatus::Passed, String::new()),
                Some(outcome) => {
                    let status = match outcome {
                        "failure" => TestStatus::Failed,
                        "error" => TestStatus::Errored,
                        _ => TestStatus::Skipped,
                    };
                    (status, format!("{}\n{}", how(step), valid(&explanation(step))).trim_end().to_owned())
                }
            };
            TestCase {
                suite: "verify".into(),
                name: step.step.clone(),
                file: None,
                line: None,
                duration_ms: Some(step.duration_ms),
                status,
                message: text,
            }
        };
        assert_eq!(read.cases, steps.iter().map(case).collect::<Vec<_>>());
    }

    #[test]
    fn a_lane_that_did_not_pass_has_a_test_that_did_not_either() {
        let steps = [step("docs", StepStatus::Cancelled)];
        let read = |steps, passed| {
            let result = LaneResult { word: "was cancelled", passed, ..failed(steps, &[]) };
            JunitReport::parse(&document(&result)).unwrap()
        };
        let stopped = read(&steps, false);
        assert_eq!(stopped.counts, TestCounts { tests: 2, failures: 0, errors: 1, skipped: 1 });
        assert_eq!(
            (stopped.cases[1].name.as_str(), stopped.cases[1].message.as_str()),
            ("verify", "the lane was cancelled")
        );
        assert_eq!(read(&[], false).counts, TestCounts { tests: 1, failures: 0, errors: 1, skipped: 0 });
        assert_eq!(read(&steps, true).counts, TestCounts { tests: 1, failures: 0, errors: 0, skipped: 1 });
    }

    proptest! {
        #[test]
        fn any_text_gives_a_document_that_can_be_read(text in any::<String>(), note in any::<String>()) {
            let steps = [StepReport { excerpt: text.clone(), note, ..step(&text, StepStatus::Failed) }];
            let read = JunitReport::parse(&document(&failed(&steps, &steps)));
            prop_assert_eq!(read.map(|read| read.counts.failures), Ok(1));
        }
    }
}
