//! The summary lines of the common test runners. Pure.

use super::counts::{CountedTests, FAILING, sum, with_failed};
use super::{formats, go};
use crate::lane::CanaryTerms;

/// Parses a summary line into the numbers of tests that ran and failed. Returns `None` for other
/// lines.
type TestRunner = fn(&str) -> Option<(u64, u64)>;
/// The parsers, one for each family of runners.
const RUNNERS: [TestRunner; 21] = [
    none,
    libtest,
    nextest,
    pytest,
    unittest,
    node,
    |line| jest(line).map(|counts| (counts.ran, counts.failed)),
    mocha,
    go::summary,
    ctest,
    googletest,
    catch2,
    doctest,
    surefire,
    console,
    rspec,
    minitest,
    phpunit,
    exunit,
    ava,
    deno,
];
/// The parsers of runners for which fledge plants failing tests.
const KINDS: [(TestRunner, CanaryTerms); 13] = [
    (libtest, CanaryTerms::CargoTest),
    (nextest, CanaryTerms::CargoTest),
    (pytest, CanaryTerms::Pytest),
    (unittest, CanaryTerms::Pytest),
    (node, CanaryTerms::NodeTest),
    (|line| jest(line).map(|counts| (counts.ran, counts.failed)), CanaryTerms::Jest),
    (go::summary, CanaryTerms::GoTest),
    (surefire, CanaryTerms::Junit),
    (console, CanaryTerms::Junit),
    (ctest, CanaryTerms::CppTest),
    (googletest, CanaryTerms::CppTest),
    (catch2, CanaryTerms::CppTest),
    (doctest, CanaryTerms::CppTest),
];
/// Parses the number of skipped tests in a line. Returns `None` if the line has none.
type Skips = fn(&str) -> Option<u64>;
/// The parsers of skipped tests, one for each family of runners. The flag is true if the runner's
/// summary counts skipped tests among those that ran.
const SKIPS: [(Skips, bool); 15] = [
    // The code under test can turn a test into an expected failure, just as it can skip the test.
    (|line| sum(pytest_counts(line)?, ',', &EXCUSED), false),
    (unittest_skipped, true),
    (node_skipped, false),
    (|line| jest_counts(line).and_then(|(counts, separator)| sum(counts, separator, &["skipped"])), false),
    (|line| line.strip_suffix(" pending")?.parse().ok(), false),
    (go::skipped, true),
    (ctest_skipped, true),
    (googletest_skipped, true),
    (|line| surefire_counts(line).map(|[.., skipped]| skipped), true),
    (|line| rspec(line).and_then(|_| sum(line, ',', &["pending"])), true),
    (|line| minitest(line).and_then(|_| sum(line, ',', &["skips", "pendings", "omissions"])), true),
    (phpunit_skipped, true),
    (|line| console_count(line, "tests aborted"), true),
    (|line| console_count(line, "tests skipped"), false),
    (|line| exunit(line).and_then(|_| sum(line, ',', &["skipped"])), true),
];
/// The lines that runners print if they find no tests.
const NONE: [&str; 13] = [
    "Error: No tests found",
    "No specs found",
    "No suitable tests defined.",
    "No test files found, exiting with code 0",
    "No tests defined.",
    "No tests executed!",
    "No tests found, exiting with code 0",
    "No tests ran",
    "No tests were found!!!",
    "There are no tests to run",
    "[INFO] No tests to run.",
    "# tests 0",
    "ℹ tests 0",
];

/// Returns the tests that ran and failed by a summary line. Output of Go's tests (`is_of_go`) is
/// not parsed as a summary of another runner.
pub(super) fn summary(line: &str, is_of_go: bool) -> Option<CountedTests> {
    let counts = |(ran, failed)| CountedTests::new(ran, failed);
    if is_of_go {
        return go::summary(line).map(counts);
    }
    formats::read(line).or_else(|| RUNNERS.iter().find_map(|runner| runner(line)).map(counts))
}

/// Returns the kind of tests whose runner begins with this line, as JUnit 4 with
/// `JUnit version 4.13.2`.
pub(super) fn kind_of_start(line: &str) -> Option<CanaryTerms> {
    line.starts_with("JUnit version ").then_some(CanaryTerms::Junit)
}

/// Returns the kind of tests whose runner prints this summary line; `None` for other runners.
pub(super) fn kind(line: &str) -> Option<CanaryTerms> {
    KINDS.iter().find(|(runner, _)| runner(line).is_some()).map(|(_, kind)| kind.clone())
}

/// Returns the number of skipped tests in a line, and whether the runner's summary counts them
/// among those that ran.
pub(super) fn skipped(line: &str, is_of_go: bool) -> Option<(u64, bool)> {
    if is_of_go {
        return go::skipped(line).map(|count| (count, true));
    }
    SKIPS.iter().find_map(|(skips, is_in_sum)| skips(line).map(|count| (count, *is_in_sum)))
}

/// Returns whether a line is `running 3 tests` of Rust's test programs.
pub(super) fn is_libtest_start(line: &str) -> bool {
    let count =
        line.strip_prefix("running ").and_then(|rest| rest.strip_suffix(" tests").or(rest.strip_suffix(" test")));
    count.is_some_and(|count| count.parse::<u64>().is_ok())
}

/// Recognizes output without tests: a line of [`NONE`], `==== no tests ran in 0.01s ====` of
/// pytest, `? m/b [no test files]` and `ok m/c 0.1s [no tests to run]` of Go, and empty summaries
/// of Jest and Vitest.
fn none(line: &str) -> Option<(u64, u64)> {
    let is_pytest = pytest_counts(line) == Some("no tests ran");
    let is_go = (line.starts_with("?") && line.ends_with("\t[no test files]"))
        || (line.starts_with("ok") && line.ends_with("s [no tests to run]"));
    let is_jest = jest_counts(line).is_some_and(|(counts, _)| ["0 total", "no tests"].contains(&counts.trim()));
    (is_pytest || is_go || is_jest || NONE.contains(&line)).then_some((0, 0))
}

/// Parses
/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`.
fn libtest(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    with_failed(counts, ';', &["passed", "failed", "measured"], &[])
}

/// Parses `Summary [   0.012s] 5 tests run: 4 passed, 1 failed, 1 skipped`.
fn nextest(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.strip_prefix("Summary [")?.split_once("] ")?;
    let (count, rest) = rest.split_once(" tests run:").or(rest.split_once(" test run:"))?;
    Some((count.trim().parse().ok()?, sum(rest, ',', FAILING).unwrap_or(0)))
}

/// The tests of pytest that count as skipped. A test that is expected to fail may fail or pass, and
/// may do so by chance.
const EXCUSED: [&str; 3] = ["skipped", "xfailed", "xpassed"];

/// Parses `==== 2 failed, 3 passed, 1 skipped in 0.12s ====`, also without the bars.
fn pytest(line: &str) -> Option<(u64, u64)> {
    let ran = ["passed", "failed", "error", "errors"];
    with_failed(pytest_counts(line)?, ',', &ran, &[&EXCUSED[..], &["deselected"]].concat())
}

/// Returns the counts in pytest's last line, without the time.
fn pytest_counts(line: &str) -> Option<&str> {
    let (counts, time) = line.trim_matches('=').trim().rsplit_once(" in ")?;
    let seconds = time.split_whitespace().next()?.strip_suffix('s')?;
    seconds.parse::<f64>().ok().map(|_| counts)
}

/// Parses `Ran 3 tests in 0.001s` or `FAILED (failures=1)`.
fn unittest(line: &str) -> Option<(u64, u64)> {
    if let Some(counts) = line.strip_prefix("FAILED (") {
        let each = counts.trim_end_matches(')').split(',').filter_map(|part| part.split_once('='));
        let failed = each.filter(|(word, _)| ["failures", "errors", "unexpected successes"].contains(&word.trim()));
        return failed
            .filter_map(|(_, count)| count.parse().ok())
            .reduce(u64::saturating_add)
            .map(|failed| (0, failed));
    }
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    (rest.starts_with("tests in ") || rest.starts_with("test in ")).then(|| Some((count.parse().ok()?, 0)))?
}

/// Parses `OK (skipped=2)` or `FAILED (failures=1, skipped=2)`.
fn unittest_skipped(line: &str) -> Option<u64> {
    let counts = line.strip_prefix("OK (").or(line.strip_prefix("FAILED ("))?.strip_suffix(')')?;
    counts.split(',').find_map(|part| part.trim().strip_prefix("skipped=")?.parse().ok())
}

/// Parses `# pass 3` and `# fail 0` of Node's TAP reporter, or `ℹ pass 3` of the other reporter.
/// tape prints one more blank.
fn node(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("# ").or(line.strip_prefix("ℹ "))?;
    let (word, count) = rest.split_once(' ')?;
    let count = || count.trim_start().parse().ok();
    match word {
        "pass" => Some((count()?, 0)),
        "fail" => Some((count()?, count()?)),
        _ => None,
    }
}

/// Parses `# skipped 1` of Node's TAP reporter, `ℹ skipped 1` of the other reporter, or `# skip  1`
/// of tape and QUnit.
fn node_skipped(line: &str) -> Option<u64> {
    let (word, count) = line.strip_prefix("# ").or(line.strip_prefix("ℹ "))?.split_once(' ')?;
    ["skip", "skipped"].contains(&word).then(|| count.trim().parse().ok())?
}

/// Returns whether a line is `# tests 4` of Node's TAP reporter or `ℹ tests 4` of the other
/// reporter.
pub(super) fn is_node_sum(line: &str) -> bool {
    let rest = line.strip_prefix("# tests ").or_else(|| line.strip_prefix("ℹ tests "));
    rest.is_some_and(|count| count.parse::<u64>().is_ok())
}

/// Returns the name in `✔ adds (0.1ms)`, `✖ adds (0.1ms)`, `ok 1 - adds` or `not ok 1 - adds`. A
/// line with `✔` or `✖` needs the time, because many tools begin lines with these marks.
pub(super) fn node_name(line: &str) -> Option<&str> {
    let marked = line.strip_prefix("✔ ").or_else(|| line.strip_prefix("✖ "));
    let name = match marked {
        Some(name) => name.rsplit_once(" (").filter(|(_, time)| time.ends_with("s)"))?.0,
        None => {
            let rest = line.strip_prefix("not ").unwrap_or(line).strip_prefix("ok ")?;
            let (number, name) = rest.split_once(" - ")?;
            number.parse::<u64>().is_ok().then_some(name)?
        }
    };
    let is_left_out = name.contains("# SKIP") || name.contains("# TODO");
    (!is_left_out && !is_script(name.trim())).then(|| name.trim())
}

/// Returns whether the name of a test is that of a file. Node reports a file as a test if it has
/// none, or cannot be loaded.
fn is_script(name: &str) -> bool {
    const ENDINGS: [&str; 8] = [".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"];
    !name.contains(' ') && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Parses `Tests:       1 failed, 5 passed, 6 total` of Jest, ` Tests  1 failed | 5 passed (6)` of
/// Vitest, or `Tests:    1 failed, 2 passed (3 assertions)` of Pest.
pub(super) fn jest(line: &str) -> Option<CountedTests> {
    let (counts, separator) = jest_counts(line)?;
    let (ran, failed) = with_failed(counts, separator, &["failed", "passed"], &["skipped", "todo"])?;
    Some(CountedTests::new(ran, failed))
}

/// Returns the counts of a summary of Jest or Vitest, and their separator.
fn jest_counts(line: &str) -> Option<(&str, char)> {
    let rest = line.strip_prefix("Tests")?;
    let counts = rest.strip_prefix(':').unwrap_or(rest);
    let separator = if counts.contains('|') { '|' } else { ',' };
    Some((counts.split('(').next()?, separator))
}

/// Parses `5 passing (10ms)` and `1 failing`.
fn mocha(line: &str) -> Option<(u64, u64)> {
    let (count, rest) = line.split_once(' ')?;
    if rest == "failing" {
        let failed = count.parse().ok()?;
        return Some((failed, failed));
    }
    rest.strip_prefix("passing (")?.ends_with(')').then(|| Some((count.parse().ok()?, 0)))?
}

/// Parses `83% tests passed, 2 tests failed out of 12`.
pub(super) fn ctest(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.split_once("% tests passed, ")?;
    let (failed, all) = rest.split_once(" tests failed out of ").or(rest.split_once(" test failed out of "))?;
    Some((all.parse().ok()?, failed.parse().ok()?))
}

/// Parses `2 - adds (Skipped)` in the list below the summary.
pub(super) fn ctest_skipped(line: &str) -> Option<u64> {
    let (number, _) = line.strip_suffix(" (Skipped)")?.split_once(" - ")?;
    number.parse::<u64>().ok().map(|_| 1)
}

/// Parses `[==========] 12 tests from 3 test suites ran. (5 ms total)` and
/// `[  FAILED  ] 2 tests, listed below:`.
fn googletest(line: &str) -> Option<(u64, u64)> {
    let count = |rest: &str| rest.split(' ').next()?.parse::<u64>().ok();
    if let Some(rest) = line.strip_prefix("[==========] ") {
        return Some((count(rest).filter(|_| rest.contains(" ran."))?, 0));
    }
    let rest = line.strip_prefix("[  FAILED  ] ").filter(|rest| rest.ends_with(", listed below:"))?;
    Some((0, count(rest)?))
}

/// Parses `[  SKIPPED ] 2 tests, listed below:`.
fn googletest_skipped(line: &str) -> Option<u64> {
    let count = line.strip_prefix("[  SKIPPED ] ").filter(|rest| rest.ends_with(", listed below:"))?;
    count.split(' ').next()?.parse().ok()
}

/// Parses `All tests passed (5 assertions in 3 test cases)` or
/// `test cases: 3 | 2 passed | 1 failed | 1 failed as expected`.
fn catch2(line: &str) -> Option<(u64, u64)> {
    if let Some(counts) = line.strip_prefix("All tests passed (").and_then(|rest| rest.strip_suffix(')')) {
        let (_, cases) = counts.split_once(" in ")?;
        return Some((cases.split(' ').next()?.parse().ok()?, 0));
    }
    let parts = line.strip_prefix("test cases: ")?.split('|').skip(1);
    let counts: Vec<&str> = parts.filter(|part| !part.trim_end().ends_with("as expected")).collect();
    with_failed(&counts.join("|"), '|', &["passed", "failed"], &[])
}

/// Parses `[doctest] test cases: 4 | 3 passed | 1 failed | 2 skipped`.
fn doctest(line: &str) -> Option<(u64, u64)> {
    let counts = line.strip_prefix("[doctest] test cases:")?;
    with_failed(counts.split_once('|')?.1, '|', &["passed", "failed"], &[])
}

/// Parses `[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1` of Maven. Lines of single
/// classes, which have a time, do not count.
fn surefire(line: &str) -> Option<(u64, u64)> {
    let [ran, failures, errors, _] = surefire_counts(line)?;
    Some((ran, failures.saturating_add(errors)))
}

/// Returns the four counts of a summary of Maven: run, failures, errors and skipped.
fn surefire_counts(line: &str) -> Option<[u64; 4]> {
    let rest = ["[INFO] ", "[WARNING] ", "[ERROR] ", ""].iter().find_map(|mark| line.strip_prefix(mark))?;
    let counts = Some(rest).filter(|rest| !rest.contains("Time elapsed"))?;
    let named = |name: &str| {
        counts.split(", ").find_map(|part| part.strip_prefix(name)?.strip_prefix(": ")?.parse::<u64>().ok())
    };
    counts.starts_with("Tests run: ").then_some(())?;
    Some([named("Tests run")?, named("Failures")?, named("Errors")?, named("Skipped")?])
}

/// Parses `[         7 tests started         ]`, `[         0 tests failed          ]` and
/// `[         1 containers failed     ]` of JUnit's console launcher.
fn console(line: &str) -> Option<(u64, u64)> {
    let started = console_count(line, "tests started").map(|count| (count, 0));
    let failed = || console_count(line, "tests failed").map(|count| (0, count));
    let containers = || console_count(line, "containers failed").filter(|count| *count > 0).map(|count| (0, count));
    started.or_else(failed).or_else(containers)
}

/// Returns the number in `[ 8 tests started ]` of JUnit's console launcher.
fn console_count(line: &str, what: &str) -> Option<u64> {
    let (count, found) = line.strip_prefix("[ ")?.strip_suffix(" ]")?.trim().split_once(' ')?;
    (found == what).then(|| count.parse().ok())?
}

/// Parses `12 examples, 1 failure, 2 pending, 1 error occurred outside of examples` of RSpec,
/// Hspec, Crystal and specs2.
fn rspec(line: &str) -> Option<(u64, u64)> {
    let ran = sum(line, ',', &["example", "examples"])?;
    sum(line, ',', &["failure", "failures"])?;
    Some((ran, sum(line, ',', FAILING)?))
}

/// Parses `5 runs, 7 assertions, 0 failures, 1 errors, 0 skips`.
fn minitest(line: &str) -> Option<(u64, u64)> {
    let ran = sum(line, ',', &["runs", "tests"])?;
    sum(line, ',', &["assertions"])?;
    Some((ran, sum(line, ',', &["failures", "errors"])?))
}

/// Parses `OK (5 tests, 7 assertions)` or `Tests: 5, Assertions: 7, Failures: 1, Skipped: 1.`
fn phpunit(line: &str) -> Option<(u64, u64)> {
    if let Some(counts) = line.strip_prefix("OK (").and_then(|rest| rest.strip_suffix(')')) {
        sum(counts, ',', &["assertion", "assertions"])?;
        return Some((sum(counts, ',', &["test", "tests"])?, 0));
    }
    let counts = line.strip_prefix("Tests: ")?.strip_suffix('.')?;
    let named = |name: &str| counts.split(", ").find_map(|part| part.strip_prefix(name)?.parse::<u64>().ok());
    named("Assertions: ")?;
    let failed = named("Failures: ").unwrap_or(0).saturating_add(named("Errors: ").unwrap_or(0));
    Some((counts.split(',').next()?.parse().ok()?, failed))
}

/// Returns the number of skipped and incomplete tests of a summary of PHPUnit.
fn phpunit_skipped(line: &str) -> Option<u64> {
    phpunit(line)?;
    let counts = line.strip_prefix("Tests: ")?.strip_suffix('.')?;
    let named = |name: &str| counts.split(", ").find_map(|part| part.strip_prefix(name)?.parse::<u64>().ok());
    Some(named("Skipped: ").unwrap_or(0).saturating_add(named("Incomplete: ").unwrap_or(0)))
}

/// Parses `1 doctest, 5 tests, 1 failure, 1 invalid, 1 skipped` of ExUnit. bats prints the same
/// form for people.
fn exunit(line: &str) -> Option<(u64, u64)> {
    sum(line, ',', &["failure", "failures"])?;
    let failed = sum(line, ',', &["failure", "failures", "invalid"])?;
    Some((sum(line, ',', &["doctest", "doctests", "test", "tests", "property", "properties"])?, failed))
}

/// Parses `5 tests passed` and `2 tests failed` of AVA.
fn ava(line: &str) -> Option<(u64, u64)> {
    let (count, rest) = line.split_once(' ')?;
    match rest {
        "tests passed" | "test passed" => Some((count.parse().ok()?, 0)),
        "tests failed" | "test failed" => Some((count.parse().ok()?, count.parse().ok()?)),
        _ => None,
    }
}

/// Parses `ok | 5 passed (2 steps) | 1 failed (12ms)` of Deno, or ` 5 pass` and ` 1 fail` of Bun.
fn deno(line: &str) -> Option<(u64, u64)> {
    if let Some(counts) = line.strip_prefix("ok | ").or(line.strip_prefix("FAILED | ")) {
        return with_failed(counts, '|', &["passed", "failed"], &[]);
    }
    let (count, word) = line.split_once(' ')?;
    let count = count.parse::<u64>().ok()?;
    match word {
        "pass" => Some((count, 0)),
        "fail" => Some((count, count)),
        _ => None,
    }
}
