//! A lane's result as Markdown: outcome, counts, a table of steps, and the failures. Pure.
//! Untrusted text is in code spans and fences that it cannot close.

use super::{LaneResult, StepCounts, failing, how, test_name, test_place};
use crate::report::seconds;
use crate::verdict::{StepReport, StepStatus};

/// The maximum number of failed steps that are explained. With their excerpts, they must stay well
/// below the 1 MiB limit of a job summary.
const EXPLAINED: usize = 20;
/// The maximum number of rows in the table of steps, for the same reason.
const ROWS: usize = 500;
/// The maximum number of further failed steps that are listed by name.
const NAMED: usize = 50;
/// The maximum number of characters shown of a command.
const COMMAND: usize = 2000;

/// Builds the whole page.
pub(crate) fn page(result: &LaneResult<'_>) -> String {
    let mark = if result.passed { "✓" } else { "✗" };
    let mut text = format!("## {mark} lane {} {}\n\n", code(result.lane), result.word);
    if result.complaint().is_some() && !result.why.is_empty() {
        let lines: Vec<String> = result.why.lines().map(code).collect();
        text.push_str(&format!("{}\n\n", lines.join("\\\n")));
    }
    if result.steps.is_empty() {
        return text + "no steps were run\n";
    }
    text.push_str(&format!("{} in {}\n\n", StepCounts::count(result.steps).words(), seconds(result.duration_ms)));
    text.push_str("| | step | result | time | tries |\n|---|---|---|---:|---:|\n");
    let is_wanted = |step: &&StepReport| result.steps.len() <= ROWS || step.status != StepStatus::Passed;
    let rows: Vec<&StepReport> = result.steps.iter().filter(is_wanted).take(ROWS).collect();
    for step in &rows {
        let time = if step.tries == 0 { String::new() } else { seconds(step.duration_ms) };
        let how = cell(&how(step));
        text.push_str(&format!("| {} | {} | {how} | {time} | {} |\n", mark_of(step), cell(&step.step), step.tries));
    }
    if rows.len() < result.steps.len() {
        text.push_str(&format!("\nand {} more steps\n", result.steps.len() - rows.len()));
    }
    let causes = result.steps.iter().filter(|step| step.status.is_failure());
    let allowed = result.steps.iter().filter(|step| step.status == StepStatus::AllowedFailure);
    let failed: Vec<&StepReport> = causes.chain(allowed).collect();
    let (explained, others) = failed.split_at(failed.len().min(EXPLAINED));
    explained.iter().for_each(|step| explain(step, &mut text));
    if !others.is_empty() {
        let names: Vec<String> = others.iter().take(NAMED).map(|step| code(&step.step)).collect();
        let dots = if others.len() > NAMED { ", …" } else { "" };
        text.push_str(&format!("\nand {} more failed: {}{dots}\n", others.len(), names.join(", ")));
    }
    text
}

fn mark_of(step: &StepReport) -> &'static str {
    match step.status {
        StepStatus::Passed => "✓",
        StepStatus::Flaky | StepStatus::AllowedFailure => "!",
        StepStatus::Failed | StepStatus::TimedOut | StepStatus::Errored => "✗",
        StepStatus::Cancelled | StepStatus::Skipped | StepStatus::NotRun => "-",
    }
}

fn explain(step: &StepReport, text: &mut String) {
    text.push_str(&format!("\n### {} {}: {}\n\n", mark_of(step), code(&step.step), code(&how(step))));
    let command: String = step.command.chars().take(COMMAND).collect();
    let dots = if command.len() < step.command.len() { " …" } else { "" };
    text.push_str(&format!("Command: {}{dots}\n", code(&command)));
    let (tests, more) = failing(step);
    if !tests.is_empty() {
        text.push('\n');
    }
    for test in tests {
        let place = test_place(test).map(|place| format!(" at {}", code(&place))).unwrap_or_default();
        let first = test.message.lines().next().unwrap_or_default();
        let message = if first.is_empty() { String::new() } else { format!(": {}", code(first)) };
        text.push_str(&format!("- {}{place}{message}\n", code(&test_name(test))));
    }
    if more > 0 {
        text.push_str(&format!("- and {more} more\n"));
    }
    if !step.excerpt.is_empty() {
        let fence = "`".repeat(longest_run(&step.excerpt).max(2) + 1);
        text.push_str(&format!("\n{fence}text\n{}\n{fence}\n", step.excerpt));
    }
    if let Some(log) = &step.log {
        text.push_str(&format!("\nLog: {}\n", code(log)));
    }
}

/// Puts text into a code span on one line. Nothing in the text acts as Markdown.
pub(crate) fn code(text: &str) -> String {
    let text: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let fence = "`".repeat(longest_run(&text) + 1);
    let room = if text.starts_with('`') || text.ends_with('`') || text.trim().is_empty() { " " } else { "" };
    format!("{fence}{room}{text}{room}{fence}")
}

/// Puts text into a code span in a table cell. Even in a code span, an unescaped bar ends a cell.
pub(crate) fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lane::tests::{all_kinds, failed, step};

    #[test]
    fn a_page_has_the_outcome_a_table_and_what_failed() {
        let steps = all_kinds();
        insta::assert_snapshot!(page(&failed(&steps, &[])), @r#"
        ## ✗ lane `verify` failed

        1 failed, 1 timed out, 1 could not run, 1 passed, 1 flaky, 1 allowed failure, 1 not run, 1 cancelled in 4.3s

        | | step | result | time | tries |
        |---|---|---|---:|---:|
        | ✓ | `fmt` | `passed` | 1.2s | 1 |
        | ! | `net` | `flaky, try 2` | 1.2s | 2 |
        | ! | `links` | `allowed failure, exit 1` | 1.2s | 1 |
        | ✗ | ``t\|e`st <b>`` | `exit 1` | 1.2s | 1 |
        | ✗ | `slow` | `timed out (ran out of its time of 1s)` | 1.2s | 1 |
        | ✗ | `tool` | `could not run (no such program)` | 1.2s | 1 |
        | - | `lint` | `cancelled` | 1.2s | 1 |
        | - | `docs` | `not run (another step failed before)` |  | 0 |

        ### ✗ ``t|e`st <b>``: `exit 1`

        Command: ``run t|e`st <b>``

        - `dates leap` at `a,b:c.rs:12`: `leap: expected 1,`

        `````text
        ::error::mine
        ````
        <b>]]> | %0A ##[error]x `a` ￾
        `````

        Log: ``/state/t|e`st <b>.log``

        ### ✗ `slow`: `timed out (ran out of its time of 1s)`

        Command: `run slow`

        Log: `/state/slow.log`

        ### ✗ `tool`: `could not run (no such program)`

        Command: `run tool`

        ### ! `links`: `allowed failure, exit 1`

        Command: `run links`

        ```text
        error: it is broken
        assertion failed
        ```

        Log: `/state/links.log`
        "#);
    }

    #[test]
    fn a_lane_that_passed_has_nothing_to_explain() {
        let steps = [step("fmt", StepStatus::Passed)];
        let result = LaneResult { word: "passed", passed: true, ..failed(&steps, &[]) };
        insta::assert_snapshot!(page(&result), @r#"
        ## ✓ lane `verify` passed

        1 passed in 4.3s

        | | step | result | time | tries |
        |---|---|---|---:|---:|
        | ✓ | `fmt` | `passed` | 1.2s | 1 |
        "#);
    }

    #[test]
    fn of_many_steps_a_page_has_those_that_did_not_pass_and_explains_twenty() {
        let passed = (0..5000).map(|n| step(&format!("p{n}"), StepStatus::Passed));
        let failed_ones = (0..1000).map(|n| StepReport {
            excerpt: "x".repeat(4096),
            command: "y".repeat(1 << 20),
            ..step(&format!("f{n}"), StepStatus::Failed)
        });
        let steps: Vec<StepReport> = passed.chain(failed_ones).collect();
        let page = page(&failed(&steps, &[]));
        assert!(page.len() < 300 * 1024, "{}", page.len());
        assert_eq!((page.matches("\n| ").count(), page.matches("\n### ✗").count()), (501, 20));
        assert!(page.contains("| ✗ | `f499` |") && page.contains("\nand 5500 more steps\n"), "{page:.2000}");
        assert!(page.contains("\nand 980 more failed: `f20`, `f21`, ") && page.ends_with("`f69`, …\n"), "{page:.2000}");
    }

    #[test]
    fn code_is_closed_by_nothing_in_it() {
        let cases = [("a", "`a`"), ("a`b", "``a`b``"), ("`a``", "``` `a`` ```"), ("a\nb", "`a b`"), ("", "`  `")];
        for (text, span) in cases {
            assert_eq!(code(text), span);
        }
    }
}
