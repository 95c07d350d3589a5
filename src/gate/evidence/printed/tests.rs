//! Tests with summaries as the runners print them.

use super::*;

#[test]
fn the_summaries_of_the_common_runners_are_counted() {
    for (text, ran, failed) in [
        ("test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 5 filtered out; finished in 0.00s", 4, 1),
        ("     Summary [   0.012s] 5 tests run: 4 passed, 1 failed, 1 skipped", 5, 1),
        ("=================== 2 failed, 3 passed, 1 skipped in 0.12s ===================", 5, 2),
        ("1 passed in 0.01s", 1, 0),
        ("12 passed, 1 warning in 61.00s (0:01:01)", 12, 0),
        ("Ran 7 tests in 0.001s\nFAILED (failures=1, errors=2, skipped=3)", 4, 3),
        ("# tests 4\n# pass 3\n# fail 1\n# skipped 2", 4, 1),
        ("ℹ tests 3\nℹ pass 3\nℹ fail 0", 3, 0),
        ("Tests:       1 failed, 2 skipped, 5 passed, 8 total", 6, 1),
        (" Tests  1 failed | 5 passed (6)", 6, 1),
        ("  5 passing (10ms)\n  1 failing", 6, 1),
        (
            "=== RUN   TestA\n=== RUN   TestA/sub\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)",
            2,
            1,
        ),
        ("100% tests passed, 0 tests failed out of 12", 12, 0),
        ("83% tests passed, 2 tests failed out of 12", 12, 2),
        (
            "[==========] 12 tests from 3 test suites ran. (5 ms total)\n[  PASSED  ] 10 tests.\n[  FAILED  ] 2 tests, listed below:",
            12,
            2,
        ),
        ("All tests passed (5 assertions in 3 test cases)", 3, 0),
        ("test cases: 3 | 2 passed | 1 failed", 3, 1),
        ("test cases:  3 |  2 passed | 1 failed as expected", 2, 0),
        ("1 failed, 2 passed in 0.10s\n  a: OK (1.00 seconds)\n  congratulations :) (3.31 seconds)", 3, 0),
        ("[doctest] test cases: 4 | 3 passed | 1 failed | 2 skipped", 4, 1),
        (
            "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.1 s -- in a.B\n[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1",
            4,
            0,
        ),
        ("[ERROR] Tests run: 5, Failures: 1, Errors: 2, Skipped: 0", 5, 3),
        (
            "[         8 tests found           ]\n[         7 tests started         ]\n[         2 tests failed          ]",
            7,
            2,
        ),
        ("12 examples, 1 failure, 2 pending", 10, 1),
        ("5 runs, 7 assertions, 0 failures, 1 errors, 2 skips", 3, 1),
        ("OK (5 tests, 7 assertions)", 5, 0),
        ("Tests: 5, Assertions: 7, Failures: 1.", 5, 1),
        ("Finished in 0.1 seconds\n1 doctest, 5 tests, 1 failure", 6, 1),
        ("5 tests passed", 5, 0),
        ("2 tests failed", 2, 2),
        ("  Total:     5\n  Passed:    5\n  Skipped:   0", 5, 0),
        ("ok | 5 passed | 1 failed (12ms)", 6, 1),
        ("FAILED | 0 passed | 1 failed (12ms)", 1, 1),
        (" 5 pass\n 1 fail\n 20 expect() calls\nRan 6 tests across 1 files. [20.00ms]", 6, 1),
        ("test result: ok. 1 passed; 0 failed;\ntest result: ok. 2 passed; 0 failed;", 3, 0),
    ] {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        assert_eq!((printed.ran(), printed.failed()), (Some(ran), failed), "{text}");
    }
}

#[test]
fn what_failed_beside_the_tests_is_counted() {
    for (text, failed) in [
        ("***Test Failed*** 1 failures.", 1),
        ("ℹ pass 3\nℹ fail 0\nℹ cancelled 1", 1),
        ("# pass 3\n# fail 0\n# cancelled 0", 0),
        (" Test Files  1 passed (1)\n      Tests  3 passed (3)\n     Errors  1 error", 1),
        ("Chrome 100.0 (Linux): Executed 3 of 3 (1 FAILED) (0.01 secs / 0.001 secs)", 1),
        ("Chrome 100.0 (Linux): Executed 3 of 3 SUCCESS (0.01 secs / 0.001 secs)", 0),
        ("[         7 tests started         ]\n[         1 containers failed     ]", 1),
    ] {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        assert_eq!((printed.failed(), printed.ends_failed()), (failed, failed > 0), "{text}");
    }
}

#[test]
fn what_only_looks_like_failed_tests_is_nothing_beside_the_summary_of_a_runner() {
    for (text, ran) in [
        ("3 tests, 2 passed, 1 failed\n  5 passing (10ms)", Some(5)),
        ("not ok 1 - x\n3 passed in 0.01s", Some(3)),
        ("not ok 1 - x\ntest result: ok. 3 passed; 0 failed;", Some(3)),
        ("not ok 1 - x\nℹ tests 3\nℹ pass 3\nℹ fail 0", Some(3)),
        ("ok 1\nnot ok 2\nok 3", None),
        ("Total:    12\nPassed:   10\nSkipped:   2", None),
    ] {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        printed.end();
        assert_eq!((printed.ran(), printed.failed(), printed.ends_failed()), (ran, 0, false), "{text}");
    }
}

#[test]
fn skipped_tests_are_counted_apart_from_those_that_ran() {
    for (text, ran, skipped) in [
        ("3 passed, 2 skipped, 1 deselected, 1 xfailed, 1 xpassed in 0.12s", 3, 4),
        ("Ran 7 tests in 0.001s\n\nOK (skipped=2, expected failures=1)\nRan 2 tests in 0.001s\n\nOK", 7, 2),
        ("# tests 4\n# pass 3\n# fail 0\n# skipped 1", 3, 1),
        ("Tests:       2 skipped, 5 passed, 7 total", 5, 2),
        (" Tests  5 passed | 2 skipped (7)", 5, 2),
        ("  5 passing (10ms)\n  2 pending", 5, 2),
        (
            "=== RUN   TestA\n=== RUN   TestA/sub\n--- PASS: TestA (0.00s)\n    --- SKIP: TestA/sub (0.00s)\n=== RUN   TestB\n--- SKIP: TestB (0.00s)",
            1,
            1,
        ),
        (
            "100% tests passed, 0 tests failed out of 3\n\nThe following tests did not run:\n\t  2 - b (Skipped)\n\t  4 - c (Disabled)",
            2,
            1,
        ),
        (
            "[==========] 3 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n[  SKIPPED ] 2 tests, listed below:\n[  SKIPPED ] A.B",
            1,
            2,
        ),
        ("[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1", 4, 1),
        ("12 examples, 0 failures, 2 pending", 10, 2),
        ("5 runs, 7 assertions, 0 failures, 0 errors, 2 skips", 3, 2),
        ("Tests: 5, Assertions: 7, Skipped: 2, Incomplete: 1.", 2, 3),
        ("5 tests, 0 failures, 2 skipped", 3, 2),
    ] {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        assert_eq!((printed.ran(), printed.skipped()), (Some(ran), skipped), "{text}");
    }
}

#[test]
fn the_last_summary_of_a_program_says_whether_tests_failed() {
    for (text, fails) in [
        ("test result: FAILED. 1 passed; 1 failed;\n   Doc-tests a\ntest result: ok. 0 passed; 0 failed;", true),
        ("1 failed in 0.01s\n1 passed in 0.02s", false),
        ("1 failed, 3 passed in 0.10s\nRunning the failed tests again\n1 passed in 0.02s", false),
        (
            "test result: FAILED. 1 passed; 1 failed;\nRunning tests/it.rs (target/debug/deps/it-1f)\ntest result: ok. 1 passed; 0 failed;",
            true,
        ),
        (
            "test result: FAILED. 1 passed; 1 failed;\nRunning `/a/target/debug/deps/it-1f`\ntest result: ok. 1 passed; 0 failed;",
            true,
        ),
        ("1 failed, 2 passed in 0.10s\n  congratulations :)", false),
        ("1 passed in 0.02s\n1 failed, 1 passed in 0.01s", true),
        ("Ran 7 tests in 0.001s\nFAILED (failures=1)", true),
        ("Ran 1 test in 0.001s\nFAILED (failures=1)\nRan 2 tests in 0.001s\nOK", false),
        ("# tests 4\n# pass 3\n# fail 1\n# skipped 0", true),
        ("  5 passing (10ms)\n  1 failing", true),
        ("=== RUN   TestA\n--- FAIL: TestA (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)", true),
        ("100% tests passed, 0 tests failed out of 12", false),
    ] {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        assert_eq!(printed.ends_failed(), fails, "{text}");
    }
}

#[test]
fn a_runner_that_finds_no_tests_counts_none() {
    for text in [
        "no tests ran in 0.01s",
        "============ no tests ran in 0.01s ============",
        "?   \tm\t[no test files]\n?   \tm/b\t[no test files]",
        "ok  \tm\t0.002s [no tests to run]",
        "Test project /b\nNo tests were found!!!",
        "No test files found, exiting with code 0",
        "No tests found, exiting with code 0",
        "[INFO] No tests to run.",
        "No tests executed!",
        "No tests defined.",
        "No tests ran",
        "There are no tests to run",
        "# tests 0\n# suites 0",
        "Tests:       0 total",
        " Tests  no tests",
        "2 skipped in 0.01s",
        "==== 1 skipped, 3 deselected, 1 warning in 0.02s ====",
        "Ran 2 tests in 0.000s\n\nOK (skipped=2)",
        "=== RUN   TestA\n--- SKIP: TestA (0.00s)\nPASS",
        "Tests:       2 skipped, 2 total",
        " Tests  1 skipped | 1 todo (2)",
    ] {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        assert_eq!((printed.ran(), printed.failed()), (Some(0), 0), "{text}");
        printed.read_line("3 passed in 0.01s");
        assert_eq!(printed.ran(), Some(3), "{text}");
    }
}

#[test]
fn packages_of_go_are_no_tests() {
    let mut printed = PrintedCounts::default();
    let text = "ok  \tm/calc\t0.002s\nok  \tm\t(cached)\n?   \tm/b\t[no test files]\nFAIL\tm/c\t0.1s\nFAIL";
    text.lines().for_each(|line| printed.read_line(line));
    assert_eq!((printed.ran(), printed.failed()), (None, 1));
    assert_eq!(printed.packages().iter().map(String::as_str).collect::<Vec<_>>(), ["m", "m/c", "m/calc"]);
}

#[test]
fn what_tests_of_go_print_is_no_summary_of_another_runner() {
    let mut printed = PrintedCounts::default();
    let text = "=== RUN   TestA\n2 tests failed\n1 failing\n1 passed in 0.1s\n--- PASS: TestA (0.00s)\nPASS\nok  \tm\t0.1s\n1 passed in 0.1s";
    text.lines().for_each(|line| printed.read_line(line));
    assert_eq!((printed.ran(), printed.failed(), printed.ends_failed()), (Some(2), 0, false));
}

#[test]
fn other_lines_count_nothing() {
    let mut printed = PrintedCounts::default();
    for line in [
        "no tests ran in the office",
        "I passed in math",
        "built in 3s",
        "# pass",
        "Tests are fun",
        "5 passing cars",
        "5 tests passed the review",
        "Total: 5 EUR",
        "OK (5 tests)",
        "3 examples, see below",
        "All tests passed",
        "Tests: see below",
        "7 runs today, 2 errors",
        "1 failing test fixed",
        "2 failed",
        "1 failed, of 3 tries",
        "Result: FAIL",
        "not ok 2 - see above",
        "  not ok 1 - in a log",
        "1..3",
        "Failed: 1",
        "Failed!  - see above",
        "Fail: 1",
        "Ok: 3",
        "Passed:    3",
        "Total:    12",
        "Passed:   10",
        "Skipped:   2",
        "3 specs to write, 1 failure mode",
        "3 scenarios (see below)",
        "3 tests, 1 passed the review",
        "All 3 tests passed the review",
        "1 of 3 failed",
        "TOTAL: 3 EUR",
        "Executed 3 tests, with care",
        "> Task :compileTestJava NO-SOURCE",
        "Test run with 3 tests planned",
        "1 passed; 1 failed",
        "[ FAIL ] disk",
        "evaluation failed",
        "# FAIL",
        "Some tests failed.",
        "",
    ] {
        printed.read_line(line);
    }
    printed.end();
    assert_eq!((printed.ran(), printed.failed(), printed.breaks_off(&PrintedCounts::default())), (None, 0, false));
}

#[test]
fn runners_show_the_kind_of_their_tests() {
    for (text, kind) in [
        ("test result: ok. 3 passed; 0 failed; 0 ignored", Some(CanaryTerms::CargoTest)),
        ("==== 3 passed in 0.1s ====", Some(CanaryTerms::Pytest)),
        ("Ran 3 tests in 0.1s", Some(CanaryTerms::Pytest)),
        ("ok  \tm/a\t0.1s", Some(CanaryTerms::GoTest)),
        ("ℹ pass 3", Some(CanaryTerms::NodeTest)),
        ("Tests:       5 passed, 5 total", Some(CanaryTerms::Jest)),
        ("JUnit version 4.13.2\n..\nOK (2 tests)", Some(CanaryTerms::Junit)),
        ("[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1", Some(CanaryTerms::Junit)),
        ("[==========] 12 tests from 3 test suites ran. (5 ms total)", Some(CanaryTerms::CppTest)),
        ("12 examples, 1 failure", None),
        ("done", None),
    ] {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        assert_eq!(printed.kinds().into_iter().collect::<Vec<_>>(), kind.into_iter().collect::<Vec<_>>(), "{text}");
    }
}
