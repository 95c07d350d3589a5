//! Tests counted from what the common runners print, line by line. Pure.

use super::blocks::{Blocks, gradle_task};
use super::counts::{Counts, Place};
use super::go::GoTests;
use super::names::Names;
use super::runners::{is_libtest_start, is_node_sum, skipped, summary};
use super::tap::Tap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What was counted in the output of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::gate) struct Printed {
    /// Tests that ran, and how many of them failed; `None` where no summary was seen.
    sum: Option<Sum>,
    /// Tests that were skipped.
    #[serde(default)]
    skipped: u64,
    /// The tests of Rust's test programs alone, without those that a failing test printed.
    own: Own,
    /// Test programs that said that they begin, less those that said how they ended.
    open: i64,
    /// Tests that ran by their names.
    names: Names,
    /// The output of Go and its test programs.
    #[serde(default)]
    go: GoTests,
    /// Tasks of Gradle ran tests, whose number is not known.
    #[serde(default)]
    is_uncounted: bool,
    /// Plans of tests that none follows, and whether a plan had tests.
    #[serde(default)]
    empty_plans: u64,
    #[serde(default)]
    has_plans: bool,
    #[serde(skip)]
    tap: Tap,
    #[serde(skip)]
    blocks: Blocks,
}

/// Tests that ran, and how many of them failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    ran: u64,
    failed: u64,
}

/// Tests of Rust's test programs. A program that fails prints the output of its failing tests
/// before its own summary, and such output may have summaries, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Own {
    /// Tests of the programs that have ended.
    ended: u64,
    /// The last summary since the output of failing tests began.
    last: Option<u64>,
    /// The output of failing tests has begun.
    is_captured: bool,
    /// A summary of another runner was seen, so whose the summaries are is not known.
    is_mixed: bool,
    /// The number of failed tests in the last summary of the program.
    #[serde(default)]
    failed: u64,
    /// The last summary of an earlier program has failed tests.
    #[serde(default)]
    has_failed: bool,
}

impl Own {
    fn take(&mut self, line: &str, summed: Option<Counts>) {
        if is_program_of_cargo(line) {
            self.ended = self.ended.saturating_add(self.last.take().unwrap_or(0));
            self.is_captured = false;
            self.has_failed |= std::mem::take(&mut self.failed) > 0;
        }
        if let Some(Counts { ran, failed, place, .. }) = summed {
            // Some summaries have a line for the sum and one for the failures; Go has lines for each test.
            let goes_on = match place {
                Place::Usual => ran == 0 || line.contains("=== RUN"),
                Place::First | Place::Program => false,
                Place::Next => true,
            };
            self.failed = if goes_on { self.failed.saturating_add(failed) } else { failed };
            self.has_failed |= place == Place::Program && failed > 0;
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

impl Printed {
    /// Returns how many tests Rust's test programs ran, without those that a failing test printed;
    /// `None` where that is not known.
    pub(super) fn own(&self) -> Option<u64> {
        let own = &self.own;
        (self.sum.is_some() && !own.is_mixed).then(|| own.ended.saturating_add(own.last.unwrap_or(0)))
    }

    /// How many tests ran; `None` where the output does not say, as of packages of Go.
    pub(super) fn ran(&self) -> Option<u64> {
        self.sum.map(|sum| sum.ran).filter(|ran| *ran > 0 || (self.packages().is_empty() && !self.is_uncounted))
    }

    /// Returns the number of skipped tests.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many of them failed.
    pub(super) fn failed(&self) -> u64 {
        self.sum.map_or(0, |sum| sum.failed)
    }

    /// Whether the last summary of a program says that tests failed: its own, since those of tests come before it.
    pub(super) fn ends_failed(&self) -> bool {
        self.own.has_failed || self.own.failed > 0
    }

    /// Returns whether more test programs than on the base began and never said how they ended.
    pub(super) fn breaks_off(&self, base: &Self) -> bool {
        self.open > base.open || (base.has_plans && self.empty_plans > base.empty_plans)
    }

    /// The tests that ran by their names.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// Packages of Go whose tests ran.
    pub(super) fn packages(&self) -> &BTreeSet<String> {
        self.go.packages()
    }

    /// Returns the packages of Go whose test program ended before its tests did, although it did not on the base.
    pub(super) fn cut_short(&self, base: Option<&Self>) -> BTreeSet<&str> {
        self.go.cut_short(base.map(|base| &base.go))
    }

    /// Notes the command of a step in which Go names tests.
    pub(in crate::gate) fn note_command(&mut self, command: &str) {
        self.go.note_command(command);
    }

    /// Takes a line of output, without escape codes.
    pub(in crate::gate) fn take(&mut self, line: &str) {
        self.names.take(line);
        let (indented, line) = (line.trim_end(), line.trim());
        let is_of_go = self.go.is_in_tests();
        self.go.take(line);
        let in_block = if is_of_go { None } else { self.blocks.read(line) };
        let summed = in_block.or_else(|| summary(line, is_of_go));
        if summed.is_some() {
            self.blocks.follow();
        }
        if !is_of_go {
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
        }
    }

    /// Takes the end of the output.
    pub(in crate::gate) fn end(&mut self) {
        let robot = self.blocks.end();
        self.count("", robot);
        let documents = self.tap.end();
        self.count("", documents);
        (self.empty_plans, self.has_plans) = (self.tap.empty(), self.tap.has_tests());
        (self.tap, self.blocks) = (Tap::default(), Blocks::default());
    }

    /// Counts what a line or a document sums up.
    fn count(&mut self, line: &str, summed: Option<Counts>) {
        self.own.take(line, summed);
        let Some(Counts { ran, failed, skipped, .. }) = summed else { return };
        let sum = self.sum.get_or_insert_default();
        sum.ran = sum.ran.saturating_add(ran);
        sum.failed = sum.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
    }

    /// Takes the word of tox that all is well: what failed is in environments whose outcome it ignores.
    fn forgive(&mut self) {
        self.own.failed = 0;
        if let Some(sum) = self.sum.as_mut() {
            sum.failed = 0;
        }
    }

    /// Takes a line of a document of the Test Anything Protocol. What prove, Node and the like sum up counts instead of the documents.
    fn take_tap(&mut self, line: &str, is_summary: bool) {
        let is_of_tap = line.starts_with("Files=") || line.starts_with("# ");
        if is_summary || is_node_sum(line) {
            let documents = self.tap.take_ended(is_of_tap).filter(|_| !is_of_tap);
            self.count("", documents);
        }
        self.tap.take(line);
    }

    /// Takes a line about a task of Gradle.
    fn take_gradle(&mut self, line: &str) {
        match gradle_task(line) {
            Some(true) => self.is_uncounted = true,
            Some(false) => self.count("", Some(Counts::default())),
            None => {}
        }
    }
}

/// Returns whether a line is one with which Cargo starts a test program: `Running unittests src/lib.rs (target/debug/deps/a-1f)`,
/// ``Running `target/debug/deps/a-1f` ``, `Doc-tests a`.
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

/// `congratulations :) (3.31 seconds)` of tox
fn is_tox_success(line: &str) -> bool {
    let time = line.strip_prefix("congratulations :)");
    time.is_some_and(|time| time.is_empty() || (time.starts_with(" (") && time.ends_with(" seconds)")))
}

#[cfg(test)]
mod real;
#[cfg(test)]
mod tests;
