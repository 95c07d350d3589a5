//! A lane's result for GitHub's runner, which reads commands from the lines of a log
//! (<https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>). Pure.
//!
//! Untrusted text is made inert line by line and not with `::stop-commands::`. That command stops
//! the runner, but not the log viewer, which interprets every line that begins with `##[endgroup]`.
//! Also, if fledge is killed before it enables commands again, all later commands of the job stay
//! disabled.

use super::complaints::place_of;
use super::{LaneResult, failing, how, test_name};
use crate::report::seconds;
use crate::verdict::{StepReport, StepStatus, TestCase};
use std::path::Path;

/// The maximum number of annotations of one kind. The platform shows no more per step of a job.
const ANNOTATIONS: usize = 10;

/// Returns the command that opens the foldable group of a step, or of a try that another try
/// follows.
pub(crate) fn group(report: &StepReport, is_tried_again: bool) -> String {
    let again = if is_tried_again { format!(", try {}; it is tried again", report.tries) } else { String::new() };
    let title = format!("{}/{} ({}{again}, {})", report.lane, report.step, how(report), seconds(report.duration_ms));
    format!("::group::{}", data(&title))
}

/// Returns an error without a file.
pub(crate) fn error(title: &str, message: &str) -> String {
    format!("::error title={}::{}", property(title), data(message))
}

/// The command that closes a group.
pub(crate) const ENDGROUP: &str = "::endgroup::";

/// Returns the annotations of a lane. Each failed step is an error. If one of its failing tests has
/// a file, each failing test is an error instead. A lane that did not pass although no step failed
/// is an error too. Flaky steps and allowed failures are warnings, and earlier failures are a
/// notice.
///
/// If there are too many, each step gets one before any step gets a second one, and steps with
/// failing tests come first. `below` is the path of the project in the runner's checkout. The
/// platform resolves files against the checkout.
pub(crate) fn annotations(result: &LaneResult<'_>, below: &Path) -> Vec<String> {
    let is_bad: Wanted = |step| step.status.is_failure();
    let is_odd: Wanted = |step| matches!(step.status, StepStatus::Flaky | StepStatus::AllowedFailure);
    let first = |kind, is_wanted| first(kind, result.steps, is_wanted, below);
    let before = (!result.before.is_empty())
        .then(|| format!("::notice title={}::{}", property(result.lane), data(result.before)));
    let own = of_lane(result, below).into_iter().chain(before).collect();
    [own, first("error", is_bad), first("warning", is_odd)].concat()
}

/// Returns the error for a lane that has not passed although no step failed.
fn of_lane(result: &LaneResult<'_>, below: &Path) -> Option<String> {
    let complaint = result.complaint()?;
    let place =
        result.at.map(|(file, line)| format!(",file={},line={line}", property(&below.join(file).to_string_lossy())));
    let (lane, place) = (property(result.lane), place.unwrap_or_default());
    Some(format!("::error title={lane}{place}::{}", data(&complaint)))
}

type Wanted = fn(&StepReport) -> bool;

fn first(kind: &str, steps: &[StepReport], is_wanted: Wanted, below: &Path) -> Vec<String> {
    let mut steps: Vec<&StepReport> = steps.iter().filter(|step| is_wanted(step)).collect();
    steps.sort_by_key(|step| step.tests.is_none());
    steps.truncate(ANNOTATIONS);
    let mut turns: Vec<_> =
        steps.iter().flat_map(|step| complaints(kind, step, below).into_iter().enumerate()).collect();
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().take(ANNOTATIONS).map(|(_, complaint)| complaint).collect()
}

/// Returns the text without anything that the runner takes for a command: `##[` anywhere in a line,
/// and `::` at its start.
pub(crate) fn inert(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace("##[", "## [");
        let start = line.len() - line.trim_start().len();
        if line[start..].starts_with("::") { format!("{} {}", &line[..=start], &line[start + 1..]) } else { line }
    };
    // For the runner, a carriage return also ends a line.
    text.split_inclusive(['\n', '\r']).map(line).collect()
}

fn complaints(kind: &str, step: &StepReport, below: &Path) -> Vec<String> {
    let of_test = |test: &TestCase| {
        let file = test.file.as_ref().map(|file| property(&below.join(file).to_string_lossy()));
        let line = test.line.filter(|_| file.is_some()).map(|line| format!(",line={line}")).unwrap_or_default();
        let file = file.map(|file| format!(",file={file}")).unwrap_or_default();
        let title = property(&format!("{}/{}: {}", step.lane, step.step, test_name(test)));
        let message = if test.message.is_empty() { "the test failed" } else { test.message.as_str() };
        format!("::{kind} title={title}{file}{line}::{}", data(message))
    };
    let tests = failing(step).0;
    if tests.iter().any(|test| test.file.is_some()) {
        return tests.iter().map(of_test).collect();
    }
    let title = property(&format!("{}/{}", step.lane, step.step));
    let message = format!("{}\n{}", how(step), step.excerpt);
    let place = place_of(step)
        .map(|(file, line)| format!(",file={},line={line}", property(&below.join(file).to_string_lossy())));
    vec![format!("::{kind} title={title}{}::{}", place.unwrap_or_default(), data(message.trim_end()))]
}

/// Escapes text for the message of a command. The log viewer shows the lines of the message
/// separately.
fn data(text: &str) -> String {
    inert(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes text for the value of a command's property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lane::tests::{all_kinds, failed, step, test, with_tests};

    #[test]
    fn nothing_foreign_is_a_command() {
        let text = "::error::a\n  ::debug::b\r\t::c\nx ::d:: y\n##[group]e\nf ####[add-mask]g";
        let inert = inert(text);
        assert_eq!(inert, ": :error::a\n  : :debug::b\r\t: :c\nx ::d:: y\n## [group]e\nf #### [add-mask]g");
        assert_eq!(super::inert(&inert), inert);
    }

    #[test]
    fn failures_are_errors_where_they_stand_and_odd_passes_are_warnings() {
        let steps = all_kinds();
        insta::assert_snapshot!(annotations(&failed(&steps, &[]), Path::new("")).join("\n"), @r#"
        ::error title=verify/t|e`st <b>%3A dates leap,file=a%2Cb%3Ac.rs,line=12::leap: expected 1,%0Afound 2: 50%25
        ::error title=verify/slow::timed out (ran out of its time of 1s)
        ::error title=verify/tool::could not run (no such program)
        ::warning title=verify/net::flaky, try 2
        ::warning title=verify/links::allowed failure, exit 1%0Aerror: it is broken%0Aassertion failed
        "#);
    }

    #[test]
    fn annotations_use_paths_of_the_checkout_and_tests_without_a_path_are_listed_too() {
        let tests = vec![test("a", Some(("src/a.js", 3))), test("b", None), test("c", Some(("/abs/c.js", 1)))];
        let steps = [with_tests("web", tests, 3)];
        let reported = annotations(&failed(&steps, &[]), Path::new("sub/dir"));
        let starts: Vec<&str> = reported.iter().filter_map(|line| line.split(": expected").next()).collect();
        assert_eq!(
            starts,
            [
                "::error title=verify/web%3A dates a,file=sub/dir/src/a.js,line=3::a",
                "::error title=verify/web%3A dates b::b",
                "::error title=verify/web%3A dates c,file=/abs/c.js,line=1::c",
            ]
        );
    }

    #[test]
    fn a_step_without_tests_is_told_where_its_output_names_a_place() {
        let excerpt = "error[E0308]: mismatched types\n  --> src/lib.rs:7:5\n".to_owned();
        let steps = [StepReport { excerpt, ..step("build", StepStatus::Failed) }];
        let reported = annotations(&failed(&steps, &[]), Path::new("sub"));
        assert!(
            reported[0].starts_with("::error title=verify/build,file=sub/src/lib.rs,line=7::exit 1%0Aerror"),
            "{reported:?}"
        );
    }

    #[test]
    fn a_group_has_the_result_in_its_title() {
        let report = StepReport { step: "a%\n::b".into(), ..step("", StepStatus::Passed) };
        assert_eq!(group(&report, false), "::group::verify/a%25%0A: :b (passed, 1.2s)");
        let report = step("a", StepStatus::Failed);
        assert_eq!(group(&report, true), "::group::verify/a (exit 1, try 1; it is tried again, 1.2s)");
    }

    #[test]
    fn there_are_ten_annotations_of_a_kind_at_most() {
        let tests = |range: std::ops::Range<u32>| range.map(|n| test("t", Some(("a.rs", n)))).collect();
        let of = |steps: &[StepReport]| {
            let of_step = |line: &String| line.split_once("/").map(|(_, rest)| rest[..1].to_owned());
            annotations(&failed(steps, &[]), Path::new("")).iter().filter_map(of_step).collect::<String>()
        };
        let (a, b) = (with_tests("a", tests(0..7), 7), with_tests("b", tests(0..7), 7));
        let [c, d] = [step("c", StepStatus::Failed), step("d", StepStatus::Flaky)];
        assert_eq!(of(&[c.clone(), a.clone(), d, b]), "abcabababad");
        assert_eq!(of(&[vec![c; 20], vec![a]].concat()), "accccccccc");
    }
}
