//! One-line summaries of further test runners, with their skipped tests. Pure.

use super::counts::{CountedTests, SummaryPlace, after, number, sum};

/// Parses a summary line of a runner. Returns `None` for other lines.
type SummaryFormat = fn(&str) -> Option<CountedTests>;

/// The formats, one for each family of runners.
const FORMATS: [SummaryFormat; 27] = [
    jasmine, karma, scenarios, cypress, ava, verdicts, busted, luaunit, clojure, dotnet, nunit, gradle, sbt, scalatest,
    testng, swift, dart, tasty, alcotest, hunit, eunit, zig, testthat, automake, meson, native, beside,
];

/// Returns the counts of a line.
pub(super) fn read(line: &str) -> Option<CountedTests> {
    FORMATS.iter().find_map(|format| format(line))
}

/// Parses `3 specs, 1 failure, 1 pending spec` of Jasmine.
fn jasmine(line: &str) -> Option<CountedTests> {
    let mut parts = line.split(", ").map_while(number);
    let (specs, failed) = match (parts.next()?, parts.next()?) {
        ((specs, "spec" | "specs"), (failed, "failure" | "failures")) => (specs, failed),
        _ => return None,
    };
    let pending = parts.find(|(_, word)| word.starts_with("pending")).map_or(0, |(pending, _)| pending);
    Some(CountedTests::new(specs.saturating_sub(pending), failed).with_skipped(pending))
}

/// Parses `TOTAL: 1 FAILED, 2 SUCCESS, 1 SKIPPED` of Karma.
fn karma(line: &str) -> Option<CountedTests> {
    let counts = line.strip_prefix("TOTAL: ")?;
    let passed = sum(counts, ',', &["SUCCESS"])?;
    let failed = sum(counts, ',', &["FAILED"]).unwrap_or(0);
    let skipped = sum(counts, ',', &["SKIPPED"]).unwrap_or(0);
    Some(CountedTests::new(passed.saturating_add(failed), failed).with_skipped(skipped))
}

/// Parses `3 scenarios (1 failed, 1 undefined, 1 passed)` of Cucumber, or
/// `2 scenarios passed, 1 failed, 0 skipped` of behave.
fn scenarios(line: &str) -> Option<CountedTests> {
    let (count, rest) = number(line)?;
    let rest = rest.strip_prefix("scenarios").or(rest.strip_prefix("scenario"))?;
    let counts = match (rest, rest.strip_prefix(" passed, ")) {
        ("", _) => return (count == 0).then(CountedTests::default),
        (_, Some(rest)) => format!("{count} passed, {rest}"),
        (_, None) => rest.strip_prefix(" (")?.strip_suffix(')')?.to_owned(),
    };
    let count = |words: &[&str]| sum(&counts, ',', words);
    let passed = count(&["passed", "flaky"]);
    let failed = count(&["failed", "error", "errors", "ambiguous"]);
    let skipped = count(&["skipped", "pending", "undefined", "untested"]);
    passed.or(failed).or(skipped)?;
    let failed = failed.unwrap_or(0);
    Some(CountedTests::new(passed.unwrap_or(0).saturating_add(failed), failed).with_skipped(skipped.unwrap_or(0)))
}

/// Parses `✖  1 of 2 failed (50%)` of Cypress, which follows Mocha's summaries of the files.
fn cypress(line: &str) -> Option<CountedTests> {
    let (failed, rest) = number(line.strip_prefix('✖')?.trim_start())?;
    number(rest.strip_prefix("of ")?)?.1.strip_prefix("failed (").map(|_| CountedTests::new(0, failed))
}

/// Parses `1 uncaught exception` or `2 unhandled rejections` of AVA, printed beside the counts of
/// tests.
fn ava(line: &str) -> Option<CountedTests> {
    let (count, rest) = number(line)?;
    ["uncaught exception", "uncaught exceptions", "unhandled rejection", "unhandled rejections"]
        .contains(&rest)
        .then(|| CountedTests::new(0, count))
}

/// Parses failures that are printed beside the counts of tests: `***Test Failed*** 1 failures.` of
/// Python's doctest, `# cancelled 1` of Node, `Errors  1 error` of Vitest, or
/// `Chrome 100 (Linux): Executed 3 of 3 (1 FAILED)` of Karma. Karma prints a sum only for more than
/// one browser.
fn beside(line: &str) -> Option<CountedTests> {
    let failed = |text: &str, words: &[&str]| sum(text, ',', words).filter(|failed| *failed > 0);
    let count = if let Some(rest) = line.strip_prefix("***Test Failed*** ") {
        failed(rest.strip_suffix('.').unwrap_or(rest), &["failure", "failures"])
    } else if let Some(rest) = line.strip_prefix("Errors  ") {
        failed(rest, &["error", "errors"])
    } else if let Some(rest) = line.strip_prefix("# cancelled ").or(line.strip_prefix("ℹ cancelled ")) {
        rest.parse().ok().filter(|cancelled| *cancelled > 0)
    } else {
        let (browser, rest) = line.split_once("Executed ")?;
        let (ran, rest) = number(rest)?;
        let (all, rest) = number(rest.strip_prefix("of ")?)?;
        let is_end = (browser.is_empty() || browser.ends_with("): ")) && ran == all;
        rest.strip_prefix('(').filter(|_| is_end)?.split_once(" FAILED)")?.0.parse().ok()
    };
    count.map(|count| CountedTests::new(0, count))
}

/// Parses `evaluation failed :( (3.31 seconds)` of tox, or `nox > * tests: failed` of Nox.
fn verdicts(line: &str) -> Option<CountedTests> {
    let is_nox = line.starts_with("nox > * ") && line.ends_with(": failed");
    (is_nox || line.starts_with("evaluation failed :(")).then(|| CountedTests::new(0, 1))
}

/// Parses `2 successes / 1 failure / 1 error / 1 pending : 0.001265 seconds` of busted.
fn busted(line: &str) -> Option<CountedTests> {
    let counts = line.split_once(" : ").filter(|(_, time)| time.ends_with(" seconds"))?.0;
    let passed = sum(counts, '/', &["success", "successes"])?;
    let failed = sum(counts, '/', &["failure", "failures", "error", "errors"])?;
    Some(
        CountedTests::new(passed.saturating_add(failed), failed)
            .with_skipped(sum(counts, '/', &["pending"]).unwrap_or(0)),
    )
}

/// Parses `Ran 3 tests in 0.000 seconds, 1 success, 1 failure, 1 error, 1 skipped` of LuaUnit.
fn luaunit(line: &str) -> Option<CountedTests> {
    let (ran, rest) = number(line.strip_prefix("Ran ")?)?;
    let (_, counts) = rest.strip_prefix("tests in ")?.split_once(" seconds, ")?;
    let failed = sum(counts, ',', &["failure", "failures", "error", "errors"]).unwrap_or(0);
    Some(CountedTests::new(ran, failed).with_skipped(sum(counts, ',', &["skipped"]).unwrap_or(0)))
}

/// Parses `Ran 2 tests containing 2 assertions.` or `1 failures, 0 errors.` of Clojure.
fn clojure(line: &str) -> Option<CountedTests> {
    if let Some(counts) = line.strip_prefix("Ran ") {
        let (ran, rest) = number(counts)?;
        return rest.strip_prefix("tests containing ").map(|_| CountedTests::new(ran, 0));
    }
    let (failures, rest) = number(line)?;
    let (errors, rest) = number(rest.strip_prefix("failures, ")?)?;
    (rest == "errors.").then(|| CountedTests::new(0, failures.saturating_add(errors)))
}

/// Parses `Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3, …`,
/// `Test summary: total: 3, failed: 1, succeeded: 2, skipped: 0` or
/// `No test is available in a.dll.` of `dotnet test`.
fn dotnet(line: &str) -> Option<CountedTests> {
    if line.starts_with("No test is available in ") || line.starts_with("No test matches the given testcase filter ") {
        return Some(CountedTests::default());
    }
    let (counts, words) = match line.strip_prefix("Test summary: total: ") {
        Some(_) => (line, ["succeeded", "failed", "skipped"]),
        None => {
            let counts = ["Failed!", "Passed!", "Skipped!"].iter().find_map(|verdict| line.strip_prefix(verdict))?;
            (counts.trim_start().strip_prefix("- ")?, ["Passed", "Failed", "Skipped"])
        }
    };
    let [passed, failed, skipped] = words.map(|word| after(counts, word));
    let counts = CountedTests::new(passed?.saturating_add(failed?), failed?).with_skipped(skipped.unwrap_or(0));
    Some(counts.at(SummaryPlace::Program))
}

/// Parses `Test Count: 18, Passed: 17, Failed: 1, Warnings: 0, Inconclusive: 0, Skipped: 0` of
/// NUnit's console.
fn nunit(line: &str) -> Option<CountedTests> {
    let (all, skipped) = (after(line, "Test Count")?, after(line, "Skipped")?);
    Some(CountedTests::new(all.saturating_sub(skipped), after(line, "Failed")?).with_skipped(skipped))
}

/// Parses `9 tests completed, 1 failed, 8 skipped` or
/// `> There were failing tests. See the report at: …` of Gradle. The first line does not count
/// failures, because Gradle also counts attempts that passed when repeated.
fn gradle(line: &str) -> Option<CountedTests> {
    if line.strip_prefix("> ").unwrap_or(line).starts_with("There were failing tests. See the report at: ") {
        return Some(CountedTests::new(0, 1).at(SummaryPlace::Program));
    }
    let (all, rest) = number(line)?;
    let counts = rest.strip_prefix("tests completed, ").or(rest.strip_prefix("test completed, "))?;
    let skipped = sum(counts, ',', &["skipped"]).unwrap_or(0);
    sum(counts, ',', &["failed"]).map(|_| CountedTests::new(all.saturating_sub(skipped), 0).with_skipped(skipped))
}

/// Parses `[error] Failed: Total 2, Failed 1, Errors 0, Passed 1, Ignored 1` or
/// `[info] No tests to run for Test / test` of sbt.
fn sbt(line: &str) -> Option<CountedTests> {
    let rest = line.strip_prefix("[info] ").or(line.strip_prefix("[error] "))?;
    if rest.starts_with("No tests to run for ") || rest == "No tests were executed." {
        return Some(CountedTests::default());
    }
    let counts = ["Passed: ", "Failed: ", "Error: "].iter().find_map(|verdict| rest.strip_prefix(verdict))?;
    let skipped = all_after(counts, &["Skipped", "Ignored", "Canceled", "Pending"]);
    let failed = after(counts, "Failed")?.saturating_add(after(counts, "Errors")?);
    Some(CountedTests::new(after(counts, "Total")?, failed).with_skipped(skipped).at(SummaryPlace::Program))
}

fn all_after(counts: &str, labels: &[&str]) -> u64 {
    labels.iter().filter_map(|label| after(counts, label)).fold(0, u64::saturating_add)
}

/// Parses `Tests: succeeded 1, failed 1, canceled 0, ignored 1, pending 0` of ScalaTest, for output
/// in which sbt does not sum up afterwards.
fn scalatest(line: &str) -> Option<CountedTests> {
    let counts = line.strip_prefix("Tests: ")?;
    let failed = after(counts, "failed")?;
    let skipped = all_after(counts, &["canceled", "ignored", "pending"]);
    Some(CountedTests::new(after(counts, "succeeded")?.saturating_add(failed), failed).with_skipped(skipped))
}

/// Parses `Total tests run: 3, Passes: 2, Failures: 1, Skips: 0` of TestNG.
fn testng(line: &str) -> Option<CountedTests> {
    let (all, skipped) = (after(line, "Total tests run")?, after(line, "Skips")?);
    Some(CountedTests::new(all.saturating_sub(skipped), after(line, "Failures")?).with_skipped(skipped))
}

/// Parses `✘ Test run with 3 tests in 1 suite failed after 0.001 seconds with 2 issues.` of Swift
/// Testing.
fn swift(line: &str) -> Option<CountedTests> {
    let line = line.trim_start_matches(|char: char| !char.is_ascii());
    let (ran, rest) = number(line.trim_start().strip_prefix("Test run with ")?)?;
    let rest = rest.strip_prefix("tests ").or(rest.strip_prefix("test "))?;
    let has_failed = rest.contains("failed after ");
    (has_failed || rest.contains("passed after ")).then(|| CountedTests::new(ran, u64::from(has_failed)))
}

/// Parses `00:01 +15 ~1 -2: Some tests failed.`, `00:01 +13: All tests passed!` or
/// `00:00 +0: No tests ran.` of Dart.
fn dart(line: &str) -> Option<CountedTests> {
    let (counts, verdict) = line.rsplit_once(": ")?;
    ["Some tests failed.", "All tests passed!", "All other tests passed!", "No tests ran."]
        .contains(&verdict)
        .then_some(())?;
    let count = |mark: char| counts.split(' ').find_map(|part| part.strip_prefix(mark)?.parse::<u64>().ok());
    let failed = count('-').unwrap_or(0);
    Some(CountedTests::new(count('+')?.saturating_add(failed), failed).with_skipped(count('~').unwrap_or(0)))
}

/// Parses `1 out of 3 tests failed (0.00s)` or `All 3 tests passed (0.00s)` of tasty, or
/// `0 of 1 test suites (0 of 1 test cases) passed.` of cabal.
fn tasty(line: &str) -> Option<CountedTests> {
    if let Some((all, rest)) = line.strip_prefix("All ").and_then(number) {
        return (rest == "tests passed" || rest.starts_with("tests passed (")).then(|| CountedTests::new(all, 0));
    }
    let (count, rest) = number(line)?;
    if let Some((all, rest)) = rest.strip_prefix("out of ").and_then(number) {
        return (rest == "tests failed" || rest.starts_with("tests failed (")).then(|| CountedTests::new(all, count));
    }
    let (all, rest) = number(rest.strip_prefix("of ")?)?;
    let is_cabal = rest.starts_with("test suites (") && rest.ends_with(" passed.");
    (is_cabal && count < all).then(|| CountedTests::new(0, all - count))
}

/// Parses `Test Successful in 0.001s. 3 tests run.` or `1 failure! in 0.001s. 3 tests run.` of
/// Alcotest.
fn alcotest(line: &str) -> Option<CountedTests> {
    let (start, rest) = line.split_once(" in ")?;
    let failed = match number(start) {
        Some((failed, "failure!" | "failures!" | "error!" | "errors!")) => failed,
        _ => (start == "Test Successful").then_some(0)?,
    };
    let (ran, rest) = number(rest.split_once("s. ")?.1)?;
    ["tests run.", "test run."].contains(&rest).then(|| CountedTests::new(ran, failed))
}

/// Parses `Cases: 3  Tried: 3  Errors: 0  Failures: 1` of HUnit. OUnit prints
/// `Ran: 3 tests in: 0.10 seconds.` before that line, and `FAILED: ` at its start.
fn hunit(line: &str) -> Option<CountedTests> {
    if let Some((ran, rest)) = line.strip_prefix("Ran: ").and_then(number) {
        return rest.starts_with("tests in: ").then(|| CountedTests::new(ran, 0));
    }
    let counts = line.strip_prefix("FAILED: ").unwrap_or(line);
    let mut words = counts.strip_prefix("Cases: ")?.split_whitespace();
    let mut value = |name: &str| {
        let word = words.find(|word| *word == name);
        word.and_then(|_| words.next())?.parse::<u64>().ok()
    };
    let (tried, errors, failures) = (value("Tried:")?, value("Errors:")?, value("Failures:")?);
    let failed = errors.saturating_add(failures);
    Some(CountedTests::new(if counts == line { tried } else { 0 }, failed))
}

/// Parses `Failed: 1.  Skipped: 0.  Passed: 2.` or `All 3 tests passed.` of EUnit. Zig also prints
/// the second form.
fn eunit(line: &str) -> Option<CountedTests> {
    if let Some((all, rest)) = line.strip_prefix("All ").and_then(number) {
        return (rest == "tests passed.").then(|| CountedTests::new(all, 0));
    }
    let (failed, passed) = (after(line, "Failed")?, after(line, "Passed")?);
    line.starts_with("Failed: ").then_some(())?;
    line.contains(".  Skipped: ").then_some(())?;
    let skipped = after(line, "Skipped").unwrap_or(0);
    Some(CountedTests::new(passed.saturating_add(failed), failed).with_skipped(skipped))
}

/// Parses `1 passed; 1 skipped; 1 failed.` of `zig test`, or
/// `Build Summary: 2/4 steps succeeded; 32/33 tests passed; 1 failed` of `zig build test`.
fn zig(line: &str) -> Option<CountedTests> {
    let counts = line.strip_suffix('.').unwrap_or(line);
    if let Some(counts) = counts.strip_prefix("Build Summary: ") {
        let (_, tests) = counts.split_once(" succeeded; ")?;
        let ran = tests.split("; ").find_map(|part| part.strip_suffix(" tests passed")?.split_once('/'))?;
        let (passed, all): (u64, u64) = (ran.0.parse().ok()?, ran.1.parse().ok()?);
        let skipped = sum(tests, ';', &["skipped"]).unwrap_or(0);
        return Some(
            CountedTests::new(all - skipped.min(all), (all - skipped.min(all)).saturating_sub(passed))
                .with_skipped(skipped),
        );
    }
    let is_whole = counts.len() < line.len() && counts.split(';').all(|part| part.split_whitespace().count() == 2);
    let (passed, failed) = (sum(counts, ';', &["passed"])?, sum(counts, ';', &["failed"])?);
    let skipped = sum(counts, ';', &["skipped"])?;
    is_whole.then(|| CountedTests::new(passed.saturating_add(failed), failed).with_skipped(skipped))
}

/// Parses `[ FAIL 1 | WARN 0 | SKIP 0 | PASS 3 ]` of testthat.
fn testthat(line: &str) -> Option<CountedTests> {
    let counts = line.strip_prefix("[ ")?.strip_suffix(" ]")?;
    let (failed, passed) = (after(counts, "FAIL")?, after(counts, "PASS")?);
    Some(CountedTests::new(passed.saturating_add(failed), failed).with_skipped(after(counts, "SKIP")?))
}

/// Parses `# PASS:  1`, `# SKIP:  1`, `# FAIL:  1`, `# XPASS: 0` or `# ERROR: 0` of Automake.
fn automake(line: &str) -> Option<CountedTests> {
    let (word, count) = line.strip_prefix("# ")?.split_once(':')?;
    let count = count.strip_prefix(' ')?.trim_start().parse().ok()?;
    match word {
        "PASS" | "XFAIL" => Some(CountedTests::new(count, 0)),
        "FAIL" | "XPASS" | "ERROR" => Some(CountedTests::new(count, count).at(SummaryPlace::Next)),
        "SKIP" => Some(CountedTests::default().with_skipped(count)),
        _ => None,
    }
}

/// Parses `Ok:                 2`, `Fail:               1`, `Unexpected Pass:    0` or
/// `Timeout:            0` of Meson.
fn meson(line: &str) -> Option<CountedTests> {
    let (word, rest) = line.split_once(':')?;
    // The numbers are in one column.
    let blanks = rest.len() - rest.trim_start().len();
    let count = rest.trim().parse().ok().filter(|_| word.len() + blanks == 19)?;
    match word {
        "Ok" | "Expected Fail" => Some(CountedTests::new(count, 0)),
        "Fail" | "Unexpected Pass" | "Timeout" => Some(CountedTests::new(count, count).at(SummaryPlace::Next)),
        "Skipped" => Some(CountedTests::default().with_skipped(count)),
        _ => None,
    }
}

/// Parses `50%: Checks: 2, Failures: 1, Errors: 0` of Check, `[==========] 3 test(s) run.` of
/// cmocka, `Totals: 2 passed, 1 failed, 0 skipped, 0 blacklisted, 3ms` of QtTest, or
/// `*** 1 failure is detected in the test module "a"` of Boost.Test.
fn native(line: &str) -> Option<CountedTests> {
    if let Some((_, counts)) = line.split_once("%: Checks: ") {
        let (failures, errors) = (after(counts, "Failures")?, after(counts, "Errors")?);
        return Some(CountedTests::new(counts.split(',').next()?.parse().ok()?, failures.saturating_add(errors)));
    }
    if let Some(counts) = line.strip_prefix("[==========] ") {
        let (ran, rest) = number(counts.strip_prefix("tests: ").unwrap_or(counts))?;
        return (rest == "test(s) run.").then(|| CountedTests::new(ran, 0));
    }
    if let Some(counts) = line.strip_prefix("Totals: ") {
        let (passed, failed) = (sum(counts, ',', &["passed"])?, sum(counts, ',', &["failed"])?);
        let skipped = sum(counts, ',', &["skipped"])?;
        return Some(CountedTests::new(passed.saturating_add(failed), failed).with_skipped(skipped));
    }
    let (failed, rest) = number(line.strip_prefix("*** ")?)?;
    let is_boost = rest.starts_with("failure") && rest.contains(" detected in the test module ");
    is_boost.then(|| CountedTests::new(0, failed))
}
