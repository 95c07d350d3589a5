//! Counts of tests from the output of common runners, line by line. Pure.

use super::blocks::{OpenSummaries, gradle_task};
use super::counts::{CountedTests, SummaryPlace};
use super::go::GoTests;
use super::names::TestNames;
use super::runners::{ctest, ctest_skipped, is_libtest_start, is_node_sum, kind, kind_of_start, skipped, summary};
use super::tap::TapReader;
use crate::lane::CanaryTerms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The counts of tests in the output of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::gate) struct PrintedCounts {
    /// Tests that ran and failed; `None` if no summary was printed.
    sum: Option<Sum>,
    /// Tests that ran by the summaries of CTest.
    #[serde(default)]
    of_ctest: u64,
    /// Tests that were skipped.
    skipped: u64,
    /// Tests of Rust's test programs only, without those that a failing test printed.
    own: Own,
    /// The number of Rust's test programs that printed a start, minus those that printed a result.
    open: i64,
    /// The names of tests that ran.
    names: TestNames,
    /// The output of Go and its test programs.
    go: GoTests,
    /// The kinds of tests of the runners that printed summaries.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    kinds: BTreeSet<CanaryTerms>,
    /// A runner of Node permits that there are no tests.
    #[serde(skip)]
    permits_none: bool,
    /// A Gradle task ran an unknown number of tests.
    is_uncounted: bool,
    /// The number of plans that no test follows. `has_plans` is true if a document had tests.
    empty_plans: u64,
    has_plans: bool,
    #[serde(skip)]
    tap: TapReader,
    #[serde(skip)]
    blocks: OpenSummaries,
}

/// Numbers of tests that ran and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    ran: u64,
    failed: u64,
}

/// Tests of Rust's test programs. A program that fails prints the output of its failing tests
/// before its own summary. That output may contain other summaries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Own {
    /// Tests of the programs that have ended.
    ended: u64,
    /// Tests of the last summary since the output of failing tests began.
    last: Option<u64>,
    /// The output of failing tests has begun.
    is_captured: bool,
    /// Another runner printed a summary, so the source of the summaries is unknown.
    is_mixed: bool,
    /// The number of failed tests in the last summary of the current program.
    failed: u64,
    /// The last summary of an earlier program has failed tests.
    has_failed: bool,
}

impl Own {
    fn read_line(&mut self, line: &str, summed: Option<CountedTests>) {
        if is_program_of_cargo(line) {
            self.ended = self.ended.saturating_add(self.last.take().unwrap_or(0));
            self.is_captured = false;
            self.has_failed |= std::mem::take(&mut self.failed) > 0;
        }
        if let Some(CountedTests { ran, failed, place, .. }) = summed {
            // Some summaries print the sum and the failures on separate lines. Go prints a line for
            // each test.
            let goes_on = match place {
                SummaryPlace::Usual => ran == 0 || line.contains("=== RUN"),
                SummaryPlace::First | SummaryPlace::Program => false,
                SummaryPlace::Next => true,
            };
            self.failed = if goes_on { self.failed.saturating_add(failed) } else { failed };
            self.has_failed |= place == SummaryPlace::Program && failed > 0;
        }
        self.is_captured |= line.starts_with("---- ") && line.ends_with(" ----");
        match summed.map(|counts| counts.ran) {
            Some(ran) if !line.starts_with("test result: ") => self.is_mixed |= ran > 0,
            Some(ran) if self.is_captured => self.last = Some(ran),
            Some(ran) => self.ended = self.ended.saturating_add(ran),
            None => {}
        }
    }
}

impl PrintedCounts {
    /// Returns the number of tests that Rust's test programs ran, without those that a failing test
    /// printed; `None` if unknown.
    pub(super) fn own(&self) -> Option<u64> {
        let own = &self.own;
        (self.sum.is_some() && !own.is_mixed).then(|| own.ended.saturating_add(own.last.unwrap_or(0)))
    }

    /// Returns the number of tests that ran; `None` if the output does not show it, as for Go
    /// packages. If CTest prints names, other summaries are output of its failing tests.
    pub(super) fn ran(&self) -> Option<u64> {
        let ran = |sum: Sum| if self.names.are_of_ctest() { self.of_ctest } else { sum.ran };
        self.sum.map(ran).filter(|ran| *ran > 0 || (self.packages().is_empty() && !self.is_uncounted))
    }

    /// Returns the number of skipped tests.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns whether a runner found no tests, and its options permit that.
    pub(super) fn permits_none(&self) -> bool {
        self.permits_none
    }

    /// Returns the number of failed tests.
    pub(super) fn failed(&self) -> u64 {
        self.sum.map_or(0, |sum| sum.failed)
    }

    /// Returns whether the last summary of a program has failed tests. The last summary is the
    /// program's own, because its tests print theirs before it.
    pub(super) fn ends_failed(&self) -> bool {
        self.own.has_failed || self.own.failed > 0
    }

    /// Returns whether more test programs than on the base began and never printed a result.
    pub(super) fn breaks_off(&self, base: &Self) -> bool {
        self.open > base.open || (base.has_plans && self.empty_plans > base.empty_plans)
    }

    /// Returns the kinds of tests that ran.
    pub(super) fn kinds(&self) -> BTreeSet<CanaryTerms> {
        let go = (!self.packages().is_empty()).then_some(CanaryTerms::GoTest);
        let gradle = self.is_uncounted.then_some(CanaryTerms::Junit);
        self.kinds.iter().cloned().chain(go).chain(gradle).collect()
    }

    /// Returns the names of the tests that ran.
    pub(super) fn names(&self) -> &TestNames {
        &self.names
    }

    /// Returns the Go packages whose tests ran.
    pub(super) fn packages(&self) -> &BTreeSet<String> {
        self.go.packages()
    }

    /// Returns the Go packages whose test program ended before its tests; see
    /// [`GoTests::cut_short`].
    pub(super) fn cut_short(&self, base: Option<&Self>) -> BTreeSet<&str> {
        self.go.cut_short(base.map(|base| &base.go))
    }

    /// Notes the command of a step in which Go names tests.
    pub(in crate::gate) fn note_command(&mut self, command: &str) {
        self.go.note_command(command);
    }

    /// Reads a line of output without escape codes.
    pub(in crate::gate) fn read_line(&mut self, line: &str) {
        self.names.read_line(line);
        let (indented, line) = (line.trim_end(), line.trim());
        let is_of_go = self.go.is_in_tests();
        self.go.read_line(line);
        let in_block = if is_of_go { None } else { self.blocks.read(line) };
        let summed = in_block.or_else(|| summary(line, is_of_go));
        if summed.is_some() {
            self.blocks.follow();
            self.kinds.extend(kind(line));
            self.of_ctest = self.of_ctest.saturating_add(ctest(line).map_or(0, |(ran, _)| ran));
        }
        if !is_of_go {
            self.kinds.extend(kind_of_start(line));
            self.take_tap(indented, summed.is_some());
            self.take_gradle(line);
        }
        if is_tox_success(line) {
            self.forgive();
        }
        if is_libtest_start(line) {
            self.open += 1;
        }
        if line.starts_with("test result: ") {
            self.open -= 1;
        }
        self.count(line, summed);
        if let Some((count, is_in_sum)) = skipped(line, is_of_go) {
            self.skipped = self.skipped.saturating_add(count);
            if let Some(sum) = self.sum.as_mut().filter(|_| is_in_sum) {
                sum.ran = sum.ran.saturating_sub(count);
            }
            self.of_ctest = self.of_ctest.saturating_sub(ctest_skipped(line).unwrap_or(0));
        }
    }

    /// Adds the counts that are final only at the end of the output.
    pub(in crate::gate) fn end(&mut self) {
        let robot = self.blocks.end();
        self.count("", robot);
        let documents = self.tap.end();
        self.count("", documents);
        (self.empty_plans, self.has_plans) = (self.tap.empty(), self.tap.has_tests());
        (self.tap, self.blocks) = (TapReader::default(), OpenSummaries::default());
    }

    /// Adds the counts of a line or a document.
    fn count(&mut self, line: &str, summed: Option<CountedTests>) {
        self.own.read_line(line, summed);
        self.permits_none |= line.ends_with("exiting with code 0");
        let Some(CountedTests { ran, failed, skipped, .. }) = summed else { return };
        let sum = self.sum.get_or_insert_default();
        sum.ran = sum.ran.saturating_add(ran);
        sum.failed = sum.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
    }

    /// Drops the failures when tox reports success. They are in environments whose outcome tox
    /// ignores.
    fn forgive(&mut self) {
        self.own.failed = 0;
        if let Some(sum) = self.sum.as_mut() {
            sum.failed = 0;
        }
    }

    /// Reads a line of a document of the Test Anything Protocol. Summaries of prove, Node and
    /// similar runners count instead of the documents.
    fn take_tap(&mut self, line: &str, is_summary: bool) {
        let is_of_tap = line.starts_with("Files=") || line.starts_with("# ");
        if is_summary || is_node_sum(line) {
            let documents = self.tap.take_ended(is_of_tap).filter(|_| !is_of_tap);
            self.count("", documents);
        }
        self.tap.read_line(line);
    }

    /// Reads a line about a Gradle task.
    fn take_gradle(&mut self, line: &str) {
        match gradle_task(line) {
            Some(true) => self.is_uncounted = true,
            Some(false) => self.count("", Some(CountedTests::default())),
            None => {}
        }
    }
}

/// Returns whether Cargo starts a test program with this line:
/// `Running unittests src/lib.rs (target/debug/deps/a-1f)`, ``Running `target/debug/deps/a-1f` ``
/// or `Doc-tests a`.
fn is_program_of_cargo(line: &str) -> bool {
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return !name.contains(' ');
    }
    let Some(program) = line.strip_prefix("Running ") else { return false };
    let is_file = |text: &str| text.split(' ').next().is_some_and(|word| word.contains('/'));
    program.starts_with("unittests ")
        || program.starts_with("target/")
        || (program.starts_with('`') && program.contains("/deps/"))
        || (program.ends_with(')') && program.contains(" (") && is_file(program))
}

/// Returns whether a line is `congratulations :) (3.31 seconds)` of tox.
fn is_tox_success(line: &str) -> bool {
    let time = line.strip_prefix("congratulations :)");
    time.is_some_and(|time| time.is_empty() || (time.starts_with(" (") && time.ends_with(" seconds)")))
}

#[cfg(test)]
mod real;
#[cfg(test)]
mod tests;
