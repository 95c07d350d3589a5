//! Tests counted from what the common runners print, line by line. Pure.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most names that are kept; of more, none is.
const MOST_NAMES: usize = 20_000;

/// What was counted in the output of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::gate) struct Printed {
    /// Tests that ran, and how many of them failed; `None` where no summary was seen.
    sum: Option<Sum>,
    /// Test programs that said that they begin, less those that said how they ended.
    open: i64,
    /// Tests that ran by their names, of runners whose files of tests count as tests, whatever is in them.
    names: BTreeSet<String>,
    /// Whether such a runner has summed up: without that, what looks like a name is none.
    has_named: bool,
}

/// Tests that ran, and how many of them failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    ran: u64,
    failed: u64,
}

impl Printed {
    /// How many tests ran; `None` where the output does not say.
    pub(super) fn ran(&self) -> Option<u64> {
        self.sum.map(|sum| sum.ran)
    }

    /// How many of them failed.
    pub(super) fn failed(&self) -> u64 {
        self.sum.map_or(0, |sum| sum.failed)
    }

    /// How many test programs began and never said how they ended.
    pub(super) fn unfinished(&self) -> i64 {
        self.open
    }

    /// The tests that ran, where they are named; `None` where they are not, or there are too many.
    pub(super) fn names(&self) -> Option<&BTreeSet<String>> {
        (self.has_named && !self.is_crowded()).then_some(&self.names)
    }

    /// Whether there are too many names to be kept.
    pub(super) fn is_crowded(&self) -> bool {
        self.names.len() > MOST_NAMES
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
        self.has_named |= is_node_sum(line);
        // One more than are kept tells that there are more.
        if let Some(name) = node_name(line).filter(|_| self.names.len() <= MOST_NAMES) {
            self.names.insert(name.to_owned());
        }
        if let Some((ran, failed)) = RUNNERS.iter().find_map(|runner| runner(line)) {
            let sum = self.sum.get_or_insert_default();
            sum.ran = sum.ran.saturating_add(ran);
            sum.failed = sum.failed.saturating_add(failed);
        }
    }
}

/// What ran and what failed by a line, if it is a summary.
type Runner = fn(&str) -> Option<(u64, u64)>;
/// Each knows the line with which one family of runners sums up, and gives how many tests ran by it and how many of them failed.
const RUNNERS: [Runner; 8] = [libtest, nextest, pytest, unittest, node, jest, mocha, go];
/// The words before which runners put the number of what failed.
const FAILING: &[&str] = &["failed", "error", "errors", "failing"];

/// `running 3 tests`, of Rust's test programs.
fn is_libtest_start(line: &str) -> bool {
    let count =
        line.strip_prefix("running ").and_then(|rest| rest.strip_suffix(" tests").or(rest.strip_suffix(" test")));
    count.is_some_and(|count| count.parse::<u64>().is_ok())
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`
fn libtest(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    with_failed(counts, ';', &["passed", "failed", "measured"])
}

/// `Summary [   0.012s] 5 tests run: 4 passed, 1 failed, 1 skipped`
fn nextest(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.strip_prefix("Summary [")?.split_once("] ")?;
    let (count, rest) = rest.split_once(" tests run:").or(rest.split_once(" test run:"))?;
    Some((count.trim().parse().ok()?, sum(rest, ',', FAILING).unwrap_or(0)))
}

/// `==== 2 failed, 3 passed, 1 skipped in 0.12s ====`, also without the bars
fn pytest(line: &str) -> Option<(u64, u64)> {
    let plain = line.trim_matches('=').trim();
    let (counts, time) = plain.rsplit_once(" in ")?;
    let seconds = time.split_whitespace().next()?.strip_suffix('s')?;
    seconds.parse::<f64>().ok()?;
    with_failed(counts, ',', &["passed", "failed", "error", "errors", "xpassed", "xfailed"])
}

/// `Ran 3 tests in 0.001s`
fn unittest(line: &str) -> Option<(u64, u64)> {
    if let Some(counts) = line.strip_prefix("FAILED (") {
        let each = counts.trim_end_matches(')').split(',').filter_map(|part| part.split_once('='));
        let failed = each.filter(|(word, _)| ["failures", "errors"].contains(&word.trim()));
        return failed
            .filter_map(|(_, count)| count.parse().ok())
            .reduce(u64::saturating_add)
            .map(|failed| (0, failed));
    }
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    (rest.starts_with("tests in ") || rest.starts_with("test in ")).then(|| Some((count.parse().ok()?, 0)))?
}

/// `# pass 3` and `# fail 0` of the TAP reporter, `ℹ pass 3` of the other
fn node(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("# ").or(line.strip_prefix("ℹ "))?;
    let (word, count) = rest.split_once(' ')?;
    let count = || count.parse().ok();
    match word {
        "pass" => Some((count()?, 0)),
        "fail" => Some((count()?, count()?)),
        _ => None,
    }
}

/// `# tests 4` of the TAP reporter, `ℹ tests 4` of the other
fn is_node_sum(line: &str) -> bool {
    let rest = line.strip_prefix("# tests ").or_else(|| line.strip_prefix("ℹ tests "));
    rest.is_some_and(|count| count.parse::<u64>().is_ok())
}

/// `✔ adds (0.1ms)`, `✖ adds (0.1ms)`, `ok 1 - adds`, `not ok 1 - adds`. Many tools begin a line with such a mark, without a time.
fn node_name(line: &str) -> Option<&str> {
    let marked = line.strip_prefix("✔ ").or_else(|| line.strip_prefix("✖ "));
    let name = match marked {
        Some(name) => name.rsplit_once(" (").filter(|(_, time)| time.ends_with("s)"))?.0,
        None => {
            let rest = line.strip_prefix("not ").unwrap_or(line).strip_prefix("ok ")?;
            let (number, name) = rest.split_once(" - ")?;
            number.parse::<u64>().is_ok().then_some(name)?
        }
    };
    (!name.contains("# SKIP") && !name.contains("# TODO")).then(|| name.trim())
}

/// `Tests:       1 failed, 5 passed, 6 total`, of Jest; Vitest has ` Tests  1 failed | 5 passed (6)`
fn jest(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("Tests")?;
    let counts = rest.strip_prefix(':').unwrap_or(rest);
    let separator = if counts.contains('|') || counts.contains('(') { '|' } else { ',' };
    with_failed(counts.split('(').next()?, separator, &["failed", "passed"])
}

/// `5 passing (10ms)` and `1 failing`
fn mocha(line: &str) -> Option<(u64, u64)> {
    let (count, rest) = line.split_once(' ')?;
    if rest == "failing" {
        let failed = count.parse().ok()?;
        return Some((failed, failed));
    }
    rest.strip_prefix("passing (")?.ends_with(')').then(|| Some((count.parse().ok()?, 0)))?
}

/// `ok   m/calc 0.002s` and `FAIL m/calc 0.003s`: of tests that pass Go says nothing, so each package counts as one
fn go(line: &str) -> Option<(u64, u64)> {
    let mut parts = line.split('\t').map(str::trim);
    let (word, _package, time) = (parts.next()?, parts.next()?, parts.next()?);
    let has_run = time == "(cached)" || time.strip_suffix('s').is_some_and(|time| time.parse::<f64>().is_ok());
    match word {
        "ok" if has_run => Some((1, 0)),
        "FAIL" if has_run => Some((1, 1)),
        _ => None,
    }
}

/// The sum of the counts before these words, and of those that failed.
fn with_failed(counts: &str, separator: char, words: &[&str]) -> Option<(u64, u64)> {
    Some((sum(counts, separator, words)?, sum(counts, separator, FAILING).unwrap_or(0)))
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
        for (text, ran, failed) in [
            ("test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 5 filtered out; finished in 0.00s", 4, 1),
            ("     Summary [   0.012s] 5 tests run: 4 passed, 1 failed, 1 skipped", 5, 1),
            ("=================== 2 failed, 3 passed, 1 skipped in 0.12s ===================", 5, 2),
            ("1 passed in 0.01s", 1, 0),
            ("12 passed, 1 warning in 61.00s (0:01:01)", 12, 0),
            ("Ran 7 tests in 0.001s\nFAILED (failures=1, errors=2, skipped=3)", 7, 3),
            ("# tests 4\n# pass 3\n# fail 1\n# skipped 2", 4, 1),
            ("ℹ tests 3\nℹ pass 3\nℹ fail 0", 3, 0),
            ("Tests:       1 failed, 2 skipped, 5 passed, 8 total", 6, 1),
            (" Tests  1 failed | 5 passed (6)", 6, 1),
            ("  5 passing (10ms)\n  1 failing", 6, 1),
            ("ok  \tm/calc\t0.002s\nok  \tm\t(cached)\n?   \tm/b\t[no test files]\nFAIL\tm/c\t0.1s\nFAIL", 3, 1),
            ("test result: ok. 1 passed; 0 failed;\ntest result: ok. 2 passed; 0 failed;", 3, 0),
        ] {
            let mut printed = Printed::default();
            text.lines().for_each(|line| printed.take(line));
            assert_eq!((printed.ran(), printed.failed()), (Some(ran), failed), "{text}");
        }
    }

    #[test]
    fn tests_of_node_are_known_by_their_names() {
        let mut printed = Printed::default();
        for line in [
            "✔ adds (0.12ms)",
            "  ✖ halves (an odd) (1.5ms)",
            "ok 1 - trims",
            "not ok 2 - folds",
            "ok 3 - later # SKIP",
            "ok then",
            "✔ Generated client in 993ms",
            "✔ built",
        ] {
            printed.take(line);
        }
        assert_eq!(printed.names(), None, "no runner has summed up");
        printed.take("ℹ tests 4");
        let names: Vec<&str> = printed.names().into_iter().flatten().map(String::as_str).collect();
        assert_eq!(names, ["adds", "folds", "halves (an odd)", "trims"]);
        (0..=MOST_NAMES).for_each(|number| printed.take(&format!("ok 1 - {number}")));
        assert_eq!(printed.names(), None, "there are too many to be kept");
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
