//! Tests counted from what the common runners print, line by line. Pure.

use serde::{Deserialize, Serialize};

/// What was counted in the output of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::gate) struct Printed {
    /// Tests that ran, passed or not; `None` where no summary was seen.
    ran: Option<u64>,
    /// Test programs that said that they begin, less those that said how they ended.
    open: i64,
}

impl Printed {
    /// How many tests ran; `None` where the output does not say.
    pub(super) fn ran(&self) -> Option<u64> {
        self.ran
    }

    /// How many test programs began and never said how they ended.
    pub(super) fn unfinished(&self) -> i64 {
        self.open
    }

    /// Takes a line of output, without escape codes.
    pub(in crate::gate) fn take(&mut self, line: &str) {
        let line = line.trim();
        if is_libtest_start(line) {
            self.open += 1;
        }
        if line.starts_with("test result: ") {
            self.open -= 1;
        }
        let ran = RUNNERS.iter().find_map(|runner| runner(line));
        if let Some(ran) = ran {
            self.ran = Some(self.ran.unwrap_or(0).saturating_add(ran));
        }
    }
}

/// Each knows the line with which one family of runners sums up, and gives how many tests ran by it.
const RUNNERS: [fn(&str) -> Option<u64>; 7] = [libtest, nextest, pytest, unittest, node, jest, mocha];

/// `running 3 tests`, of Rust's test programs.
fn is_libtest_start(line: &str) -> bool {
    let count =
        line.strip_prefix("running ").and_then(|rest| rest.strip_suffix(" tests").or(rest.strip_suffix(" test")));
    count.is_some_and(|count| count.parse::<u64>().is_ok())
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`
fn libtest(line: &str) -> Option<u64> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    sum(counts, ';', &["passed", "failed", "measured"])
}

/// `Summary [   0.012s] 5 tests run: 4 passed, 1 failed, 1 skipped`
fn nextest(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("Summary [")?.split_once("] ")?;
    rest.split_once(" tests run:").or(rest.split_once(" test run:"))?.0.trim().parse().ok()
}

/// `==== 2 failed, 3 passed, 1 skipped in 0.12s ====`, also without the bars
fn pytest(line: &str) -> Option<u64> {
    let plain = line.trim_matches('=').trim();
    let (counts, time) = plain.rsplit_once(" in ")?;
    let seconds = time.split_whitespace().next()?.strip_suffix('s')?;
    seconds.parse::<f64>().ok()?;
    sum(counts, ',', &["passed", "failed", "error", "errors", "xpassed", "xfailed"])
}

/// `Ran 3 tests in 0.001s`
fn unittest(line: &str) -> Option<u64> {
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    (rest.starts_with("tests in ") || rest.starts_with("test in ")).then(|| count.parse().ok())?
}

/// `# pass 3` and `# fail 0` of the TAP reporter, `ℹ pass 3` of the other
fn node(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("# ").or(line.strip_prefix("ℹ "))?;
    let (word, count) = rest.split_once(' ')?;
    ["pass", "fail"].contains(&word).then(|| count.parse().ok())?
}

/// `Tests:       1 failed, 5 passed, 6 total`, of Jest; Vitest has ` Tests  1 failed | 5 passed (6)`
fn jest(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("Tests")?;
    let counts = rest.strip_prefix(':').unwrap_or(rest);
    let separator = if counts.contains('|') || counts.contains('(') { '|' } else { ',' };
    sum(counts.split('(').next()?, separator, &["failed", "passed"])
}

/// `5 passing (10ms)` and `1 failing`
fn mocha(line: &str) -> Option<u64> {
    let (count, rest) = line.split_once(' ')?;
    let is_sum = rest == "failing" || rest.strip_prefix("passing (").is_some_and(|time| time.ends_with(')'));
    is_sum.then(|| count.parse().ok())?
}

/// The sum of the counts before these words; `None` where not one stands there.
fn sum(counts: &str, separator: char, words: &[&str]) -> Option<u64> {
    let count = |part: &str| {
        let mut parts = part.split_whitespace();
        let (count, word) = (parts.next()?.parse::<u64>().ok()?, parts.next()?);
        words.contains(&word).then_some(count)
    };
    counts.split(separator).filter_map(count).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summaries_of_the_common_runners_are_counted() {
        for (text, ran) in [
            ("test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 5 filtered out; finished in 0.00s", 4),
            ("     Summary [   0.012s] 5 tests run: 4 passed, 1 failed, 1 skipped", 5),
            ("=================== 2 failed, 3 passed, 1 skipped in 0.12s ===================", 5),
            ("1 passed in 0.01s", 1),
            ("12 passed, 1 warning in 61.00s (0:01:01)", 12),
            ("Ran 7 tests in 0.001s", 7),
            ("# tests 4\n# pass 3\n# fail 1\n# skipped 2", 4),
            ("ℹ tests 3\nℹ pass 3\nℹ fail 0", 3),
            ("Tests:       1 failed, 2 skipped, 5 passed, 8 total", 6),
            (" Tests  1 failed | 5 passed (6)", 6),
            ("  5 passing (10ms)\n  1 failing", 6),
            ("test result: ok. 1 passed; 0 failed;\ntest result: ok. 2 passed; 0 failed;", 3),
        ] {
            let mut printed = Printed::default();
            text.lines().for_each(|line| printed.take(line));
            assert_eq!(printed.ran(), Some(ran), "{text}");
        }
    }

    #[test]
    fn other_lines_count_nothing() {
        let mut printed = Printed::default();
        for line in [
            "no tests ran in 0.01s",
            "I passed in math",
            "built in 3s",
            "# pass",
            "Tests are fun",
            "5 passing cars",
            "",
        ] {
            printed.take(line);
        }
        assert_eq!((printed.ran(), printed.unfinished()), (None, 0));
    }
}
