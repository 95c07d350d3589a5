//! Tests with excerpts of runner output, of passing and of failing tests.

use super::*;

fn read(text: &str) -> PrintedCounts {
    let mut printed = PrintedCounts::default();
    text.lines().for_each(|line| printed.read_line(line));
    printed.end();
    printed
}

/// The output; the numbers of tests that ran, failed and were skipped; and whether the output
/// ends as failed.
type Case = (&'static str, u64, u64, u64, bool);

fn hold(cases: &[Case]) {
    for (text, ran, failed, skipped, fails) in cases {
        let printed = read(text);
        let read = (printed.ran(), printed.failed(), printed.skipped(), printed.ends_failed());
        assert_eq!(read, (Some(*ran), *failed, *skipped, *fails), "{text}");
    }
}

#[test]
fn summaries_of_perl_shell_and_lua() {
    hold(&[
        // prove
        (
            "t/a.t .. \nDubious, test returned 1 (wstat 256, 0x100)\nFailed 1/4 subtests \n\t(less 1 skipped subtest: 2 okay)\nt/b.t .. ok\n\
             t/s.t .. skipped: no net\n\nTest Summary Report\n-------------------\nt/a.t (Wstat: 256 (exited 1) Tests: 4 Failed: 1)\n  Failed test:  2\n\
             Files=3, Tests=5,  0 wallclock secs ( 0.01 usr  0.00 sys +  0.10 cusr  0.02 csys =  0.13 CPU)\nResult: FAIL",
            5,
            1,
            0,
            true,
        ),
        (
            "t/b.t .. ok\nAll tests successful.\nFiles=1, Tests=2,  0 wallclock secs ( 0.02 usr  0.00 sys +  0.02 cusr  0.01 csys =  0.05 CPU)\nResult: PASS",
            2,
            0,
            0,
            false,
        ),
        // `prove -v` also prints the documents, with subtests.
        (
            "sub.t .. \n# Subtest: inner\n    not ok 1 - x\n    1..1\nnot ok 1 - inner # TODO later\nok 2 - b\n1..2\nok\nAll tests successful.\n\
             Files=1, Tests=2,  0 wallclock secs ( 0.01 usr)\nResult: PASS",
            2,
            0,
            0,
            false,
        ),
        // Perl programs without prove. The second program ran a failing prove and passes.
        (
            "1..2\nok 1 - adds\nnot ok 2 - halves\n#   Failed test 'halves'\n# Looks like you failed 1 test of 2.",
            2,
            1,
            0,
            true,
        ),
        ("Files=1, Tests=1,  0 wallclock secs\nResult: FAIL\nok 1 - sees failures\n1..1", 2, 1, 0, false),
        ("1..2\nok 1 - prints\n1 failed in 0.01s\nok 2 - adds", 3, 1, 0, false),
        ("1..3\nok 1 - a", 1, 2, 0, true),
        // bats
        ("1..3\nok 1 adds\nnot ok 2 halves\n# (in test file a.bats, line 2)\nok 3 net # skip no net", 2, 1, 1, true),
        (" ✓ adds\n ✗ halves\n - net (skipped: no net)\n\n3 tests, 1 failure, 1 skipped", 2, 1, 1, true),
        ("1..1\nok 1 adds", 1, 0, 0, false),
        ("\n1 test, 0 failures", 1, 0, 0, false),
        // Busted and LuaUnit
        ("+-.*+\n2 successes / 1 failure / 1 error / 1 pending : 0.001265 seconds", 4, 2, 1, true),
        ("+\n1 success / 0 failures / 0 errors / 0 pending : 0.002269 seconds", 1, 0, 0, false),
        ("Ran 3 tests in 0.000 seconds, 1 success, 1 failure, 1 error, 1 skipped", 3, 2, 1, true),
        ("Ran 1 tests in 0.000 seconds, 1 success, 0 failures\nOK", 1, 0, 0, false),
    ]);
}

#[test]
fn summaries_of_javascript() {
    hold(&[
        ("F*.\n\n3 specs, 1 failure, 1 pending spec\nFinished in 0.011 seconds", 2, 1, 1, true),
        (".\n\n\n1 spec, 0 failures\nFinished in 0.004 seconds", 1, 0, 0, false),
        (
            "TAP version 13\n# adds\nok 1 should be strictly equal\nnot ok 2 one is two\n\n1..2\n# tests 2\n# pass  1\n# fail  1",
            2,
            1,
            0,
            true,
        ),
        ("TAP version 13\n# adds\nok 1 should be strictly equal\n\n1..1\n# tests 1\n# pass  1\n\n# ok", 1, 0, 0, false),
        ("ok 1 s adds\nnot ok 2 s halves\nok 3 s later # SKIP -\n# tests 2\n# pass 1\n# fail 1\n1..3", 2, 1, 0, true),
        (
            "ok 1 adds\nnot ok 2 halves\nok 3 later # SKIP\nnot ok 4 todo # TODO\n1..4\n# pass 1\n# skip 1\n# todo 1\n# fail 1",
            2,
            1,
            1,
            true,
        ),
        ("1 test failed\n1 known failure\n1 test skipped\n1 uncaught exception", 1, 2, 0, true),
        ("TOTAL: 1 FAILED, 2 SUCCESS", 3, 1, 0, true),
        ("TOTAL: 3 SUCCESS", 3, 0, 0, false),
        (
            "Running 5 tests using 1 worker\n  1) a.spec.js:2:22 › halves\n  1 failed\n    a.spec.js:2:22 › halves\n  1 flaky\n    a.spec.js:2:89 › flaky\n  1 skipped\n  2 passed (8.3s)",
            4,
            1,
            1,
            true,
        ),
        ("\nRunning 1 test using 1 worker\n·\n  1 passed (1.5s)", 1, 0, 0, false),
        ("Running 3 tests using 2 workers\n  1 flaky\n  2 passed (3.3s)", 3, 0, 0, false),
        (
            "  2 passing (1s)\n  1 failing\n  1 passing (1s)\n    ✖  1 of 2 failed (50%)        00:03        3        2        1",
            4,
            2,
            0,
            true,
        ),
        ("  Total:     2\n  Passed:    1\n  Skipped:   1\n  Duration:  1.18ms", 2, 1, 1, true),
        ("FAILED | 1 passed (1 step) | 1 failed (1 step) | 1 ignored (88ms)\n\nerror: Test failed", 2, 1, 0, true),
        ("ok | 1 passed (1 step) | 0 failed (93ms)", 1, 0, 0, false),
        ("Test Suites: 1 failed, 1 passed, 2 total\nTests:       2 passed, 2 total", 2, 1, 0, true),
        ("1 failed in 0.01s\nTest Suites: 2 passed, 2 total\nTests:       2 passed, 2 total", 3, 1, 0, false),
        (" Test Files  1 failed | 1 passed (2)\n      Tests  1 failed | 1 passed (2)", 2, 2, 0, true),
        ("3 scenarios (1 failed, 1 undefined, 1 passed)\n3 steps (1 failed, 1 undefined, 1 passed)", 2, 1, 1, true),
        ("1 scenario (1 passed)\n1 step (1 passed)", 1, 0, 0, false),
    ]);
}

#[test]
fn summaries_of_python_ruby_php_r_and_julia() {
    hold(&[
        (
            "0 features passed, 1 failed, 0 skipped\n1 scenario passed, 1 failed, 1 skipped\n1 step passed, 1 failed, 1 skipped",
            2,
            1,
            1,
            true,
        ),
        (
            "1 feature passed, 0 failed, 0 skipped\n1 scenario passed, 0 failed, 2 skipped\n1 step passed, 0 failed, 2 skipped",
            1,
            0,
            2,
            false,
        ),
        // Robot Framework sums up each suite and then all suites. A second run follows.
        (
            "A                       | FAIL |\n2 tests, 1 passed, 1 failed\n====\nAll                     | FAIL |\n3 tests, 1 passed, 1 failed, 1 skipped\n====\n\
             Output:  /tmp/output.xml\nB                       | PASS |\n1 test, 1 passed, 0 failed\n====",
            3,
            1,
            1,
            false,
        ),
        ("Ran 5 tests in 0.000s\n\nFAILED (skipped=1, expected failures=1, unexpected successes=1)", 4, 1, 1, true),
        (
            "  b: FAIL code 1 (0.11=setup[0.09]+cmd[0.02] seconds)\n2 passed in 0.1s\n  evaluation failed :( (3.31 seconds)",
            2,
            1,
            0,
            true,
        ),
        ("2 passed in 0.1s\nnox > * good: success\nnox > * bad: failed", 2, 1, 0, true),
        (
            "2 passed in 0.1s\n  a: OK (0.10=setup[0.07]+cmd[0.03] seconds)\n  congratulations :) (0.22 seconds)",
            2,
            0,
            0,
            false,
        ),
        ("4 examples, 1 failure, 2 pending", 2, 1, 2, true),
        ("2 examples, 0 failures, 1 error occurred outside of examples", 2, 1, 0, true),
        ("4 tests, 2 assertions, 1 failures, 0 errors, 1 pendings, 1 omissions, 0 notifications", 2, 1, 2, true),
        (
            "ERRORS!\nTests: 6, Assertions: 2, Errors: 1, Failures: 1, Skipped: 1, Incomplete: 1, Risky: 1.",
            4,
            2,
            2,
            true,
        ),
        ("  Tests:    1 failed, 2 passed (3 assertions)\n  Duration: 0.09s", 3, 1, 0, true),
        ("[ FAIL 1 | WARN 0 | SKIP 2 | PASS 3 ]", 4, 1, 2, true),
        ("[ FAIL 0 | WARN 1 | SKIP 0 | PASS 3 ]", 3, 0, 0, false),
        (
            "Test Summary: | Pass  Fail  Total  Time\nFoo Tests     |    3     1      4  0.0s\n  Animals     |    2            2  0.0s\n  Arrays      |    1     1      2  0.0s",
            4,
            1,
            0,
            true,
        ),
        ("Test Summary: | Pass  Broken  Total  Time\nsums          |    3       1      4  0.1s", 3, 0, 1, false),
    ]);
}

#[test]
fn summaries_of_net() {
    hold(&[
        (
            "Failed!  - Failed:     2, Passed:    13, Skipped:     1, Total:    16, Duration: 40 ms - A.Tests.dll (net9.0)",
            15,
            2,
            1,
            true,
        ),
        (
            "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 4 ms - A.Tests.dll (net9.0)",
            3,
            0,
            0,
            false,
        ),
        // One of two test assemblies failed.
        (
            "Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3, Duration: 4 ms - A.dll (net9.0)\n\
             Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 4 ms - B.dll (net9.0)",
            6,
            1,
            0,
            true,
        ),
        ("Test summary: total: 17, failed: 1, succeeded: 16, skipped: 0, duration: 1.0s", 17, 1, 0, true),
        ("Test Run Failed.\nTotal tests: 3\n     Passed: 2\n     Failed: 1\n Total time: 1.2 Seconds", 3, 1, 0, true),
        (
            "Test run summary: Failed! - bin/A.dll (net9.0|x64)\n  total: 3\n  failed: 1\n  succeeded: 1\n  skipped: 1",
            2,
            1,
            1,
            true,
        ),
        (
            "  Overall result: Failed\n  Test Count: 18, Passed: 17, Failed: 1, Warnings: 0, Inconclusive: 0, Skipped: 0",
            18,
            1,
            0,
            true,
        ),
    ]);
}

#[test]
fn summaries_of_the_jvm() {
    hold(&[
        (
            "2 tests completed, 1 failed\nThere were failing tests. See the report at: file:///a/index.html\n> Task :b:test\n3 passed in 0.1s",
            5,
            1,
            0,
            true,
        ),
        (
            "> Task :test FAILED\n\n9 tests completed, 1 failed, 8 skipped\n\n* What went wrong:\nExecution failed for task ':test'.\n\
             > There were failing tests. See the report at: file:///a/index.html",
            1,
            1,
            8,
            true,
        ),
        ("2 tests completed, 1 failed\n\nBUILD SUCCESSFUL in 1s", 2, 0, 0, false),
        (
            "[info] Tests: succeeded 1, failed 1, canceled 1, ignored 1, pending 1\n[info] *** 1 TEST FAILED ***\n\
             [error] Failed: Total 2, Failed 1, Errors 0, Passed 1, Ignored 1, Canceled 1, Pending 1",
            2,
            1,
            3,
            true,
        ),
        ("[info] All tests passed.\n[info] Passed: Total 3, Failed 0, Errors 0, Passed 3", 3, 0, 0, false),
        ("Tests: succeeded 2, failed 1, canceled 0, ignored 0, pending 0\n*** 1 TEST FAILED ***", 3, 1, 0, true),
        ("Total tests run: 3, Passes: 1, Failures: 1, Skips: 1", 2, 1, 1, true),
        ("\nRan 2 tests containing 2 assertions.\n1 failures, 0 errors.", 2, 1, 0, true),
        ("\nRan 2 tests containing 2 assertions.\n0 failures, 0 errors.", 2, 0, 0, false),
    ]);
}

#[test]
fn summaries_of_c() {
    hold(&[
        (
            "Ok:                 2   \nExpected Fail:      1   \nFail:               1   \nUnexpected Pass:    0   \nSkipped:            1   \nTimeout:            0   ",
            4,
            1,
            1,
            true,
        ),
        (
            "Ok:                 12  \nExpected Fail:      0   \nFail:               0   \nTimeout:            0   ",
            12,
            0,
            0,
            false,
        ),
        ("# TOTAL: 3\n# PASS:  1\n# SKIP:  1\n# XFAIL: 0\n# FAIL:  1\n# XPASS: 0\n# ERROR: 0", 2, 1, 1, true),
        ("# TOTAL: 2\n# PASS:  1\n# SKIP:  0\n# XFAIL: 1\n# FAIL:  0\n# XPASS: 0\n# ERROR: 0", 2, 0, 0, false),
        ("50%: Checks: 2, Failures: 1, Errors: 0\nck.c:3:F:t:b:0: Assertion '0' failed", 2, 1, 0, true),
        (
            "[==========] 3 test(s) run.\n[  PASSED  ] 1 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n[  FAILED  ] 1 test(s), listed below:",
            2,
            1,
            1,
            true,
        ),
        (
            "Run Summary:    Type  Total    Ran Passed Failed Inactive\n              suites      1      1    n/a      0        0\n               tests      2      2      1      1        0",
            2,
            1,
            0,
            true,
        ),
        ("Totals: 2 passed, 1 failed, 1 skipped, 0 blacklisted, 3ms", 3, 1, 1, true),
        ("3 passed in 0.1s\n*** 1 failure is detected in the test module \"a\"", 3, 1, 0, true),
    ]);
}

#[test]
fn summaries_of_swift_dart_and_functional_languages() {
    hold(&[
        (
            "Test Suite 'SumTests' failed at 2024-05-01 10:00:00.004.\n\t Executed 3 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.004 (0.004) seconds\n\
             Test Suite 'All tests' failed at 2024-05-01 10:00:00.004.\n\t Executed 3 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.004 (0.005) seconds",
            2,
            1,
            1,
            true,
        ),
        (
            "Test Suite 'All tests' passed at 2024-05-01 10:00:00.004.\n\t Executed 2 tests, with 0 failures (0 unexpected) in 0.04 (0.05) seconds",
            2,
            0,
            0,
            false,
        ),
        ("✘ Test run with 3 tests in 1 suite failed after 0.001 seconds with 2 issues.", 3, 1, 0, true),
        ("✔ Test run with 3 tests in 1 suite passed after 0.001 seconds with 1 known issue.", 3, 0, 0, false),
        ("00:00 +15 -1: boundary of scalars\n00:01 +15 ~2 -1: Some tests failed.", 16, 1, 2, true),
        ("00:01 +13: All tests passed!", 13, 0, 0, false),
        ("1 out of 3 tests failed (0.00s)", 3, 1, 0, true),
        ("All 3 tests passed (0.00s)\n1 of 1 test suites (1 of 1 test cases) passed.", 3, 0, 0, false),
        ("3 examples, 1 failure\n0 of 1 test suites (0 of 1 test cases) passed.", 3, 2, 0, true),
        ("Cases: 3  Tried: 3  Errors: 0  Failures: 1", 3, 1, 0, true),
        (
            "Ran: 3 tests in: 0.11 seconds.\nFAILED: Cases: 3 Tried: 3 Errors: 0 Failures: 1 Skip:0 Todo:0 Timeouts:0.",
            3,
            1,
            0,
            true,
        ),
        ("1 failure! in 0.001s. 4 tests run.", 4, 1, 0, true),
        ("Test Successful in 0.001s. 3 tests run.", 3, 0, 0, false),
        ("  Failed: 1.  Skipped: 0.  Passed: 2.", 3, 1, 0, true),
        ("  All 3 tests passed.", 3, 0, 0, false),
        ("4 tests, 1 failure, 1 invalid, 1 skipped", 3, 2, 1, true),
        ("2/3 a.test.halves...FAIL (TestUnexpectedResult)\n1 passed; 1 skipped; 1 failed.", 2, 1, 1, true),
        ("Build Summary: 2/4 steps succeeded; 1 failed; 32/33 tests passed; 1 failed", 33, 1, 0, true),
        ("TEST RUN FAILED\n\nDuration: 123 ms\nPassed:   2\nFailed:   1", 3, 1, 0, true),
        ("TEST RUN PASSED\n\nDuration: 123 ms\nPassed:   3\nFailed:   0", 3, 0, 0, false),
    ]);
}

#[test]
fn runners_that_find_no_test_count_none() {
    for text in [
        "Files=0, Tests=0,  0 wallclock secs ( 0.01 usr +  0.00 sys =  0.01 CPU)\nResult: NOTESTS",
        "1..0",
        "1..0 # SKIP no net",
        "0 tests, 0 failures",
        "Started\n\n\nNo specs found\nFinished in 0.002 seconds\nIncomplete: No specs found",
        "0 scenarios\n0 steps",
        "No test is available in /a/A.dll. Make sure that test discoverer & executors are registered",
        "No test matches the given testcase filter `Name=x` in /a/A.dll",
        "> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE",
        "[info] No tests to run for Test / test",
        "Test Suite 'All tests' passed at 2024\n\t Executed 0 tests, with 0 failures (0 unexpected) in 0.0 (0.0) seconds",
        "ok | 0 passed | 0 failed | 1 filtered out (11ms)",
        "00:00 +0: No tests ran.",
        "No suitable tests defined.",
        "# TOTAL: 0\n# PASS:  0\n# FAIL:  0",
        "0 examples, 0 failures",
        "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips",
        "Running 3 tests using 2 workers",
    ] {
        let printed = read(text);
        assert_eq!((printed.ran(), printed.failed()), (Some(0), 0), "{text}");
    }
    let some = read("> Task :a:test NO-SOURCE\n> Task :b:test UP-TO-DATE");
    assert_eq!(some.ran(), None, "how many tests the other module has is not known");
}

#[test]
fn a_plan_without_tests_breaks_off_where_the_base_had_tests() {
    let [whole, empty] = ["1..2\nok 1\nnot ok 2", "1..2"].map(read);
    assert!(empty.breaks_off(&whole) && !whole.breaks_off(&whole));
    assert!(!empty.breaks_off(&read("3 passed in 0.1s")), "a range that a program prints");
}
