//! The complaints of a lane, each with its place. A step's complaints are its failing tests with a
//! place, or else the places that its output names. Pure.

use super::{LaneResult, failing, how, test_name};
use crate::verdict::{StepReport, StepStatus};
use regex::Regex;
use std::sync::OnceLock;

/// The maximum number of complaints per step.
const OF_STEP: usize = 50;
/// The maximum number of complaints per lane.
const OF_LANE: usize = 1000;
/// The maximum length of a message, in characters.
const MESSAGE: usize = 1000;

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaneComplaint<'a> {
    /// The step that complains.
    pub(crate) step: &'a StepReport,
    /// The problem.
    pub(crate) message: String,
    /// The file as the tool names it, relative to the project. If the tool names no file, the file
    /// of the lane.
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: u32,
    /// The column, from 1, if it is known.
    pub(crate) column: Option<u32>,
    /// True if the complaint made the lane fail.
    pub(crate) is_error: bool,
}

/// Returns all complaints of a lane, in the order of its steps.
pub(crate) fn complaints<'a>(result: &LaneResult<'a>) -> Vec<LaneComplaint<'a>> {
    let is_told = |step: &&StepReport| {
        step.status.is_failure() || matches!(step.status, StepStatus::AllowedFailure | StepStatus::Flaky)
    };
    result.steps.iter().filter(is_told).flat_map(of_step).take(OF_LANE).collect()
}

/// Returns the first place that a step names: a file in the project, and the line.
pub(super) fn place_of(step: &StepReport) -> Option<(String, u32)> {
    let first = of_step(step).into_iter().next()?;
    (first.file != lane_file(step)).then_some((first.file, first.line))
}

fn lane_file(step: &StepReport) -> String {
    format!("lanes/{}.yaml", step.lane)
}

fn of_step(step: &StepReport) -> Vec<LaneComplaint<'_>> {
    let is_error = step.status.is_failure();
    let of = |file: String, line, column, message: String| LaneComplaint {
        step,
        message: bounded(&message),
        file,
        line,
        column,
        is_error,
    };
    let (tests, _) = failing(step);
    let tests: Vec<LaneComplaint<'_>> = tests
        .iter()
        .filter_map(|test| {
            let file = test.file.as_deref().and_then(inside)?;
            let message = format!("{}: {}", test_name(test), test.message);
            Some(of(file, test.line.unwrap_or(1), None, message))
        })
        .collect();
    if !tests.is_empty() {
        return tests;
    }
    let mut places: Vec<LaneComplaint<'_>> = Vec::new();
    let mut newest = ""; // the newest line with a message, for tools that print the place below the message
    for text in step.excerpt.lines() {
        if let Some(found) = patterns().iter().find_map(|pattern| pattern.captures(text)) {
            let number =
                |name| found.name(name).and_then(|part| part.as_str().parse().ok()).filter(|number| *number > 0);
            let message = found.name("message").map(|part| part.as_str().trim()).filter(|message| !message.is_empty());
            let file = found.name("file").and_then(|part| inside(part.as_str()));
            if let (Some(file), Some(line)) = (file, number("line")) {
                let one = of(file, line, number("column"), message.unwrap_or(newest).to_owned());
                let is_new = places.iter().all(|known| (&known.file, known.line) != (&one.file, one.line));
                if is_new && places.len() < OF_STEP {
                    places.push(one);
                }
            }
        } else if !text.trim().is_empty() {
            newest = text.trim();
        }
    }
    if places.is_empty() {
        let message = format!("{}\n{}", how(step), step.excerpt);
        places.push(of(lane_file(step), 1, None, message));
    }
    places
}

/// Patterns for the forms in which tools name a place. The place is before the message (gcc,
/// eslint, ruff, go vet), in brackets (tsc), below the message (rustc), or in a trace (Python).
fn patterns() -> &'static [Regex] {
    static PATTERNS: OnceLock<Vec<Regex>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let all = [
            r#"^\s*-->\s(?<file>[^\s:][^:]*):(?<line>\d+):(?<column>\d+)\s*$"#,
            r#"^\s*File "(?<file>[^"]+)", line (?<line>\d+)"#,
            r#"^\s*(?<file>[^\s():]+\.\w+)\((?<line>\d+),(?<column>\d+)\): (?<message>.+)$"#,
            r#"^\s*(?<file>[^\s:]+\.\w+):(?<line>\d+):(?<column>\d+)(?:: | - | )(?<message>.+)$"#,
            r#"^\s*(?<file>[^\s:]+\.\w+):(?<line>\d+): (?<message>.+)$"#,
        ];
        all.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
    })
}

/// Returns the path if it is in the project. Other paths mean nothing to a reader.
fn inside(path: &str) -> Option<String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let leads_out =
        path.is_empty() || path.starts_with(['/', '~', '<']) || path.split(['/', '\\']).any(|part| part == "..");
    (!leads_out && !path.contains(['\\', ':'])).then(|| path.to_owned())
}

fn bounded(message: &str) -> String {
    let message = message.trim();
    let message = if message.is_empty() { "it failed" } else { message };
    match message.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{} …", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lane::tests::{failed, step, test, with_tests};

    fn places(excerpt: &str) -> Vec<(String, u32, Option<u32>, String)> {
        let steps = [StepReport { excerpt: excerpt.into(), ..step("a", StepStatus::Failed) }];
        let all = complaints(&failed(&steps, &[]));
        all.into_iter().map(|one| (one.file, one.line, one.column, one.message)).collect()
    }

    #[test]
    fn the_places_that_tools_name_are_found_with_what_is_wrong_there() {
        let cases = [
            (
                "error[E0308]: mismatched types\n  --> src/a.rs:3:9\n   |\n3 | x",
                ("src/a.rs", 3, Some(9), "error[E0308]: mismatched types"),
            ),
            ("src/a.c:12:5: error: 'x' undeclared", ("src/a.c", 12, Some(5), "error: 'x' undeclared")),
            ("./main.go:7:2: undefined: y", ("main.go", 7, Some(2), "undefined: y")),
            ("src/b.ts(4,10): error TS2322: no", ("src/b.ts", 4, Some(10), "error TS2322: no")),
            ("src/b.ts:4:10 - error TS2322: no", ("src/b.ts", 4, Some(10), "error TS2322: no")),
            ("Traceback\n  File \"pkg/c.py\", line 8, in f", ("pkg/c.py", 8, None, "Traceback")),
            ("tests/test_d.py:5: AssertionError", ("tests/test_d.py", 5, None, "AssertionError")),
        ];
        for (excerpt, (file, line, column, message)) in cases {
            assert_eq!(places(excerpt), [(file.to_owned(), line, column, message.to_owned())], "{excerpt}");
        }
    }

    #[test]
    fn a_place_outside_of_the_project_is_none_and_the_lane_stands_for_it() {
        for excerpt in ["/usr/lib/x.py:3: boom", "../x.c:1:1: error: y", "12:30:05 nothing", "http://a.b:80: no"] {
            let all = places(excerpt);
            assert_eq!((all.len(), all[0].0.as_str(), all[0].1), (1, "lanes/verify.yaml", 1), "{excerpt}");
            assert!(all[0].3.contains(excerpt), "{all:?}");
        }
    }

    #[test]
    fn failing_tests_come_before_what_the_output_says_and_nothing_is_said_twice() {
        let with_excerpt = |excerpt: &str, step: StepReport| StepReport { excerpt: excerpt.into(), ..step };
        let steps = [
            with_excerpt("a.c:1:1: error: x", with_tests("unit", vec![test("leap", Some(("tests/a.rs", 12)))], 1)),
            with_excerpt("a.c:1:1: error: x\na.c:1:2: error: y", step("cc", StepStatus::Failed)),
            step("ok", StepStatus::Passed),
        ];
        let found = complaints(&failed(&steps, &[]));
        let found_at: Vec<(&str, &str, u32)> =
            found.iter().map(|one| (one.step.step.as_str(), one.file.as_str(), one.line)).collect();
        assert_eq!(found_at, [("unit", "tests/a.rs", 12), ("cc", "a.c", 1)]);
        assert!(found[0].message.starts_with("dates leap: leap: expected 1,"), "{}", found[0].message);
    }
}
