//! Summaries of several lines, in which the counts of a line depend on earlier lines. Pure.

use super::counts::{CountedTests, SummaryPlace, number, sum};
use super::runners;

/// A summary that begins with a header line.
struct SummaryBlock {
    /// Returns the number in a header line, or 0 if the header has no number; `None` for other
    /// lines.
    header: fn(&str) -> Option<u64>,
    /// Returns the counts of the header, given its number.
    counts: fn(u64) -> Option<CountedTests>,
    /// Returns the counts of a later line, given the number of the header.
    line: fn(&str, u64) -> Option<CountedTests>,
    /// The maximum number of lines after the header that may belong to the summary.
    reach: usize,
}

const BLOCKS: [SummaryBlock; 9] = [
    // Playwright prints the header before the tests.
    SummaryBlock {
        header: playwright_header,
        counts: |_| Some(CountedTests::default()),
        line: playwright,
        reach: usize::MAX,
    },
    // `Files=3, Tests=5,  0 wallclock secs (…)` and `Result: FAIL` of prove.
    SummaryBlock {
        header: |line| line.strip_prefix("Files=")?.split_once(", Tests=")?.1.split_once(", ")?.0.trim().parse().ok(),
        counts: |ran| Some(CountedTests::new(ran, 0)),
        line: |line, _| (line == "Result: FAIL").then(|| CountedTests::new(0, 1)),
        reach: 1,
    },
    // `Test Suites: 1 failed, 2 total` of Jest or `Test Files  1 failed (1)` of Vitest, then the
    // line of tests.
    SummaryBlock {
        header: suites,
        counts: |failed| Some(CountedTests::new(0, failed)),
        line: |line, _| runners::jest(line),
        reach: 2,
    },
    // Lists of `dotnet test`: `Total tests: 3` with `Passed: 2`, or `Test run summary: Failed!`
    // with `succeeded: 2`.
    SummaryBlock {
        header: |line| line.strip_prefix("Total tests: ")?.parse().ok(),
        counts: |_| None,
        line: labelled,
        reach: 4,
    },
    SummaryBlock {
        header: |line| line.strip_prefix("Test run summary: ").map(|_| 0),
        counts: |_| None,
        line: labelled,
        reach: 5,
    },
    // `Passed:   2` and `Failed:   1` of elm-test.
    SummaryBlock {
        header: |line| line.strip_prefix("TEST RUN ").map(|_| 0),
        counts: |_| None,
        line: labelled,
        reach: 8,
    },
    // `Total:     2` and `Passed:    1` of uvu, which does not count failures. Its numbers begin in
    // one column.
    SummaryBlock {
        header: |line| line.strip_prefix("Total:     ")?.parse().ok(),
        counts: |_| None,
        line: |line, total| match line.split_at_checked("Skipped:   ".len())? {
            ("Passed:    ", count) => Some(CountedTests::new(total, total.saturating_sub(count.parse().ok()?))),
            ("Skipped:   ", count) => Some(CountedTests::default().with_skipped(count.parse().ok()?)),
            _ => None,
        },
        reach: 2,
    },
    // The table of CUnit: total, ran, passed, failed.
    SummaryBlock {
        header: |line| line.strip_prefix("Run Summary: ").map(|_| 0),
        counts: |_| None,
        line: cunit,
        reach: 2,
    },
    // XCTest sums up each suite, and all suites at the end. Only the last summary counts.
    SummaryBlock { header: xctest_header, counts: |_| None, line: xctest, reach: 1 },
];

/// A summary whose header has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenSummary {
    /// The index of the summary in [`BLOCKS`].
    block: usize,
    /// The number in the header.
    number: u64,
    /// The number of lines that may still follow.
    left: usize,
    /// The position of the next line that has counts.
    place: SummaryPlace,
}

/// The summaries that later lines may continue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OpenSummaries {
    open: Option<OpenSummary>,
    /// The columns of a Julia table whose first row comes next.
    columns: Option<Vec<String>>,
    /// The last sum of Robot Framework, which sums up each suite and then all suites.
    robot: Option<CountedTests>,
}

impl OpenSummaries {
    /// Reads a line and returns its counts.
    pub(super) fn read(&mut self, line: &str) -> Option<CountedTests> {
        if let Some(columns) = self.columns.take() {
            return julia(&columns, line);
        }
        if let Some((_, columns)) = line.split_once('|').filter(|_| line.starts_with("Test Summary:")) {
            self.columns = Some(columns.split_whitespace().map(ToOwned::to_owned).collect());
            return None;
        }
        if let Some(counts) = robot(line) {
            self.robot = Some(counts);
            return None;
        }
        if line.starts_with("Output:  ") && self.robot.is_some() {
            return self.end();
        }
        let found = BLOCKS.iter().enumerate().find_map(|(at, block)| Some((at, (block.header)(line)?)));
        if let Some((block, number)) = found {
            let counts = (BLOCKS[block].counts)(number);
            let place = if counts.is_some() { SummaryPlace::Next } else { SummaryPlace::First };
            self.open = Some(OpenSummary { block, number, left: BLOCKS[block].reach, place });
            return counts.map(|counts| counts.at(SummaryPlace::First));
        }
        let mut open = self.open.take().filter(|open| open.left > 0)?;
        let counts = (BLOCKS[open.block].line)(line, open.number).map(|counts| counts.at(open.place));
        open.left -= 1;
        if counts.is_some() {
            open.place = SummaryPlace::Next;
        }
        self.open = Some(open);
        counts
    }

    /// Notes that another runner printed a summary. An earlier line that looked like a sum of Robot
    /// Framework then does not count.
    pub(super) fn follow(&mut self) {
        self.robot = None;
    }

    /// Returns the counts that are valid only if nothing follows.
    pub(super) fn end(&mut self) -> Option<CountedTests> {
        self.robot.take()
    }
}

/// Parses `Running 3 tests using 2 workers`.
fn playwright_header(line: &str) -> Option<u64> {
    let (count, rest) = number(line.strip_prefix("Running ")?)?;
    let rest = rest.strip_prefix("tests using ").or(rest.strip_prefix("test using "))?;
    number(rest)?.1.starts_with("worker").then_some(count)
}

/// Parses `1 failed`, `1 flaky`, `1 skipped` or `2 passed (8.3s)`.
fn playwright(line: &str, _: u64) -> Option<CountedTests> {
    let (count, rest) = number(line)?;
    match rest {
        "failed" | "interrupted" => Some(CountedTests::new(count, count)),
        "flaky" => Some(CountedTests::new(count, 0)),
        "skipped" | "did not run" => Some(CountedTests::default().with_skipped(count)),
        _ => rest.strip_prefix("passed (").map(|_| CountedTests::new(count, 0)),
    }
}

/// Returns the number of failed files in the header of Jest or Vitest.
fn suites(line: &str) -> Option<u64> {
    let counts = line.strip_prefix("Test Suites: ").or(line.strip_prefix("Test Files  "))?;
    let separator = if counts.contains('|') { '|' } else { ',' };
    Some(sum(counts, separator, &["failed"]).unwrap_or(0))
}

/// Parses `Passed: 2`, `succeeded: 2`, `failed: 1` or `Skipped: 1`.
fn labelled(line: &str, _: u64) -> Option<CountedTests> {
    let (label, count) = line.split_once(':')?;
    let count = count.trim().parse().ok()?;
    match label.to_ascii_lowercase().as_str() {
        "passed" | "succeeded" => Some(CountedTests::new(count, 0)),
        "failed" => Some(CountedTests::new(count, count)),
        "skipped" => Some(CountedTests::default().with_skipped(count)),
        _ => None,
    }
}

/// Parses the row `tests      2      2      1      1        0` of CUnit's table.
fn cunit(line: &str, _: u64) -> Option<CountedTests> {
    let mut cells = line.strip_prefix("tests ")?.split_whitespace().map(|cell| cell.parse::<u64>().ok());
    let (_total, ran, _passed, failed) = (cells.next()??, cells.next()??, cells.next()??, cells.next()??);
    Some(CountedTests::new(ran, failed))
}

/// Recognizes `Test Suite 'All tests' passed at 2024-05-01 10:00:00.004.`
fn xctest_header(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("Test Suite 'All tests' ").or(line.strip_prefix("Test Suite 'Selected tests' "))?;
    ["passed at ", "failed at "].iter().any(|outcome| rest.starts_with(outcome)).then_some(0)
}

/// Parses
/// `Executed 3 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.004 (0.005) seconds`.
fn xctest(line: &str, _: u64) -> Option<CountedTests> {
    let (ran, rest) = number(line.strip_prefix("Executed ")?)?;
    let (_, rest) = rest.split_once(", with ")?;
    let counts = rest.replace(" and ", ", ");
    let skipped = sum(&counts, ',', &["test", "tests"]).unwrap_or(0);
    let failed = sum(&counts, ',', &["failure", "failures"])?;
    Some(CountedTests::new(ran.saturating_sub(skipped), failed).with_skipped(skipped))
}

/// Parses the first row of a Julia table, which has every column:
/// `sums          |    2     1      3  0.1s`.
fn julia(columns: &[String], line: &str) -> Option<CountedTests> {
    let (_, cells) = line.rsplit_once('|')?;
    let cells: Vec<&str> = cells.split_whitespace().collect();
    let cell = |name: &str| columns.iter().zip(&cells).find(|(column, _)| *column == name)?.1.parse::<u64>().ok();
    let [passed, failed, errors, broken] = ["Pass", "Fail", "Error", "Broken"].map(|name| cell(name).unwrap_or(0));
    let failed = failed.saturating_add(errors);
    Some(CountedTests::new(passed.saturating_add(failed), failed).with_skipped(broken))
}

/// Parses `3 tests, 1 passed, 1 failed, 1 skipped`.
fn robot(line: &str) -> Option<CountedTests> {
    let (_, rest) = number(line)?;
    let counts = rest.strip_prefix("tests, ").or(rest.strip_prefix("test, "))?;
    let (passed, failed) = (sum(counts, ',', &["passed"])?, sum(counts, ',', &["failed"])?);
    let skipped = sum(counts, ',', &["skipped"]).unwrap_or(0);
    Some(CountedTests::new(passed.saturating_add(failed), failed).with_skipped(skipped))
}

/// Returns whether a Gradle task that runs tests had any: true for `> Task :test`, false for
/// `> Task :app:test NO-SOURCE`. `None` for other lines.
pub(super) fn gradle_task(line: &str) -> Option<bool> {
    let (path, outcome) = line.strip_prefix("> Task :")?.split_once(' ').unwrap_or((&line["> Task :".len()..], ""));
    let name = path.rsplit(':').next()?;
    let is_test = (name.starts_with("test") && name != "testClasses") || name.ends_with("Test");
    (is_test && outcome != "SKIPPED").then_some(outcome != "NO-SOURCE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_gradle_that_run_tests_are_told_from_others() {
        for (line, has_tests) in [
            ("> Task :test", Some(true)),
            ("> Task :app:testDebugUnitTest UP-TO-DATE", Some(true)),
            ("> Task :test NO-SOURCE", Some(false)),
            ("> Task :app:integrationTest NO-SOURCE", Some(false)),
            ("> Task :test SKIPPED", None),
            ("> Task :compileTestJava NO-SOURCE", None),
            ("> Task :testClasses UP-TO-DATE", None),
            ("> Task :processTestResources NO-SOURCE", None),
        ] {
            assert_eq!(gradle_task(line), has_tests, "{line}");
        }
    }
}
