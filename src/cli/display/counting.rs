//! A count of tests while they run, from the lines that test runners print.

use crate::report::number;

/// The tests that a step has reported so far.
#[derive(Debug, Default)]
pub(super) struct TestCounter {
    passed: u64,
    failed: u64,
}

impl TestCounter {
    /// Counts the test in a line of output, if there is one.
    pub(super) fn read_line(&mut self, line: &str) {
        let line = line.trim();
        match outcome(line) {
            Some(true) => self.passed += tests_of_file(line).unwrap_or(1),
            Some(false) => self.failed += 1,
            None => {}
        }
    }

    /// Returns the line with the counts before it, if there are any.
    pub(super) fn before(&self, line: &str) -> String {
        let Self { passed, failed } = self;
        match (passed + failed, failed) {
            (0, _) => line.to_owned(),
            (all, 0) => format!("{} · {line}", number(all, "test")),
            (all, failed) => format!("{}, {failed} failed · {line}", number(all, "test")),
        }
    }
}

/// Returns whether the test in a line passed; `None` if the line is not about a single test.
fn outcome(line: &str) -> Option<bool> {
    let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let ends = |words: &[&str]| words.iter().any(|word| line.ends_with(word));
    // `ok` with a name is a package of Go, not a test.
    let is_tap =
        |word: &str| line.strip_prefix(word).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_named = line.starts_with("test ") && line.contains(" ... "); // libtest
    match () {
        () if is_named && ends(&[" ... ok"]) => Some(true),
        () if is_named && ends(&[" ... FAILED"]) => Some(false),
        () if begins(&["--- PASS: ", "PASS ["]) || ends(&[" PASSED"]) || is_tap("ok ") => Some(true), // go, nextest, pytest
        () if begins(&["--- FAIL: ", "FAIL ["]) || ends(&[" FAILED"]) || is_tap("not ok ") => Some(false),
        () if begins(&["✓ ", "✔ ", "√ "]) => Some(true),
        () if begins(&["✗ ", "✖ ", "× "]) => Some(false),
        () => line.contains(" PASSED [").then_some(true).or(line.contains(" FAILED [").then_some(false)),
    }
}

/// Returns the number of tests in a line of Vitest about a file: `✓ src/a.test.ts (3 tests) 5ms`.
fn tests_of_file(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(" (")?;
    let (number, rest) = rest.split_once(' ')?;
    (rest.starts_with("test)") || rest.starts_with("tests)")).then_some(number.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runner_names_its_tests_in_its_own_way() {
        let mut tests = TestCounter::default();
        assert_eq!(tests.before("compiling"), "compiling");
        let lines = [
            "running 2 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "--- PASS: TestSum (0.00s)",
            "tests/test_a.py::test_b PASSED [ 50%]",
            "not ok 3 - adds",
            "test result: FAILED. 1 passed; 1 failed",
            "  ✓ adds numbers",
            "ok 4 - sums",
            "ok  \texample.com/calc\t0.1s",
            " ✓ src/a.test.ts (3 tests) 5ms",
            " ✓ takes a (rare) test 1ms",
        ];
        lines.iter().for_each(|line| tests.read_line(line));
        assert_eq!(tests.before("x"), "11 tests, 2 failed · x");
    }
}
