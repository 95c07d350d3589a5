//! Tests of evidence that counts against a gate run.

use super::*;

fn report(cases: &str) -> StepEvidence {
    let report = JunitReport::parse(&format!("<testsuite>{cases}</testsuite>")).unwrap();
    StepEvidence::new(Some(&report), None, PrintedCounts::default(), true)
}

fn printed(text: &str) -> StepEvidence {
    let mut printed = PrintedCounts::default();
    text.lines().for_each(|line| printed.read_line(line));
    StepEvidence::new(None, None, printed, true)
}

fn shortfalls(base: StepEvidence, now: StepEvidence) -> Vec<String> {
    let [mut before, mut after] = [Evidence::default(), Evidence::default()];
    before.add("verify", "test", base);
    after.add("verify", "test", now);
    told(&after, &before)
}

fn told(now: &Evidence, base: &Evidence) -> Vec<String> {
    now.shortfalls(base).iter().map(ToString::to_string).collect()
}

#[test]
fn a_test_of_the_base_that_did_not_run_is_named_even_if_more_tests_ran() {
    let base = report("<testcase classname='m' name='a'/><testcase classname='m' name='b'/>");
    let less = report("<testcase classname='m' name='a'/><testcase name='c'/><testcase name='d'/>");
    assert_eq!(shortfalls(base.clone(), less), ["verify/test: tests of the base did not run: m b"]);
    let skipped = report("<testcase classname='m' name='a'/><testcase classname='m' name='b'><skipped/></testcase>");
    assert_eq!(shortfalls(base.clone(), skipped), ["verify/test: tests of the base did not run: m b"]);
    let more = report("<testcase classname='m' name='b'/><testcase classname='m' name='a'/><testcase name='new'/>");
    assert_eq!(shortfalls(base, more), [""; 0]);
    let values = report("<testcase name='[1] 0.5'/><testcase name='Sum@1b2c3d'/>");
    let others = report("<testcase name='[1] 0.7'/><testcase name='Sum@1b2c3e'/>");
    assert_eq!(shortfalls(values.clone(), others), ["verify/test: tests of the base did not run: Sum@1b2c3d, [1] 0.5"]);
    assert_eq!(shortfalls(values.clone(), values), [""; 0]);
}

#[test]
fn reports_that_were_found_name_tests_and_count_beside_what_is_printed() {
    let found = |cases: &str, text: &str| {
        let report = JunitReport::parse(&format!("<testsuite>{cases}</testsuite>")).unwrap();
        let StepEvidence { printed, .. } = printed(text);
        StepEvidence::new(None, Some(&report), printed, true)
    };
    let (jest, less) = ("Tests: 3 passed, 3 total", "Tests: 1 passed, 1 total");
    let base = found("<testcase name='a'/><testcase name='[1] 0.5'/>", jest);
    assert_eq!((base.ran(), base.named()), (Some(3), 2));
    let other = "<testcase name='a'/><testcase name='[1] 0.7'/>";
    assert_eq!(shortfalls(base.clone(), found(other, jest)), [""; 0]);
    let fewer = ["verify/test: fewer tests ran than on the base: 2 of 3"];
    assert_eq!(shortfalls(base.clone(), found(other, less)), fewer);
    let gone = ["verify/test: tests of the base did not run: [1]"];
    assert_eq!(shortfalls(base.clone(), found("<testcase name='a'/><testcase name='b'/>", jest)), gone);
    let none = ["verify/test: tests of the base did not run: [1], a"];
    assert_eq!(shortfalls(base.clone(), printed(jest)), none);
    // A parallel build may have found the reports.
    let [mut before, mut after] = [Evidence::default(), Evidence::default()];
    before.add("verify", "test", base.clone());
    after.add("verify", "test", printed(jest));
    after.add("verify", "lint", base);
    assert_eq!(after.shortfalls(&before), []);
}

#[test]
fn a_test_of_one_name_must_run_as_often_but_for_what_was_skipped_on_the_base() {
    let skipped = report("<testcase name='a'/><testcase name='b'><skipped/></testcase>");
    assert_eq!(shortfalls(skipped, report("<testcase name='a'/>")), [""; 0]);
    let base = report("<testcase name='a'/><testcase name='a'/>");
    assert_eq!(shortfalls(base, report("<testcase name='a'/>")), ["verify/test: tests of the base did not run: a"]);
}

#[test]
fn without_a_report_what_is_printed_is_counted_and_only_speaks_against() {
    let base = printed("running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored;");
    let one = printed("running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored;");
    assert_eq!(shortfalls(base.clone(), one.clone()), ["verify/test: fewer tests ran than on the base: 1 of 2"]);
    assert_eq!(shortfalls(base.clone(), printed("")), ["verify/test: fewer tests ran than on the base: 0 of 2"]);
    assert_eq!(shortfalls(one, base), [""; 0]);
    assert_eq!(shortfalls(printed(""), printed("")), [""; 0]);
}

#[test]
fn a_green_step_with_failed_tests_is_reported_whatever_the_base_printed() {
    let failed = "running 2 tests\ntest result: FAILED. 1 passed; 1 failed;";
    let red = StepEvidence { is_green: false, ..printed(failed) };
    let told = ["verify/test: the step passed although its test output reports failures"];
    assert_eq!(shortfalls(red.clone(), printed(failed)), told);
    let two = "running 3 tests\ntest result: FAILED. 1 passed; 2 failed;";
    assert_eq!(shortfalls(StepEvidence { is_green: false, ..printed(two) }, printed(failed)), told);
    assert_eq!(shortfalls(printed(""), printed(failed)), told);
    assert_eq!(shortfalls(printed(failed), printed(failed)), told);
    let inner = "running 2 tests\ntest result: FAILED. 1 passed; 1 failed;\ntest result: ok. 2 passed; 0 failed;";
    assert_eq!(shortfalls(printed(inner), printed(inner)), [""; 0]);
    assert_eq!(shortfalls(red, printed("running 2 tests\ntest result: ok. 2 passed; 0 failed;")), [""; 0]);
}

#[test]
fn sums_of_a_step_that_failed_on_the_base_are_not_compared_but_for_none() {
    let captured =
        "running 1 test\ntest result: FAILED. 0 passed; 1 failed;\nSummary [ 0.01s] 3 tests run: 2 passed, 1 failed";
    let red = StepEvidence { is_green: false, ..printed(captured) };
    assert_eq!(shortfalls(red.clone(), printed("Summary [ 0.01s] 3 tests run: 3 passed")), [""; 0]);
    assert_eq!(shortfalls(red, printed("")), ["verify/test: fewer tests ran than on the base: 0 of 4"]);
}

#[test]
fn a_test_that_failed_on_the_base_is_not_skipped_now() {
    let red = StepEvidence { is_green: false, ..printed("Ran 2 tests in 0.001s\nFAILED (failures=1)") };
    let told = ["verify/test: more tests were skipped than on the base: 1 instead of 0"];
    assert_eq!(shortfalls(red.clone(), printed("Ran 2 tests in 0.001s\nOK (skipped=1)")), told);
    let more = printed("Ran 3 tests in 0.001s\nOK (skipped=1)");
    assert_eq!(shortfalls(red, more), told, "also where a new one takes its place in the sum");
}

#[test]
fn a_test_that_is_expected_to_fail_may_pass_on_the_base_and_fail_now() {
    let [green, red] = ["9 passed, 1 xpassed in 0.09s", "1 failed, 8 passed, 1 xpassed in 0.09s"].map(printed);
    let red = StepEvidence { is_green: false, ..red };
    for (base, now) in [(green, "9 passed, 1 xfailed in 0.09s"), (red, "9 passed, 1 xfailed in 0.09s")] {
        assert_eq!(shortfalls(base.clone(), printed(now)), [""; 0]);
        assert_eq!(shortfalls(base, printed("8 passed, 2 xfailed in 0.09s")).len(), 1);
    }
}

#[test]
fn tests_that_junit_aborts_did_not_run() {
    let ended = |aborted: u32| {
        printed(&format!("[         8 tests started         ]\n[         {aborted} tests aborted         ]"))
    };
    let told = ["verify/test: fewer tests ran than on the base: 0 of 8"];
    assert_eq!(shortfalls(ended(0), ended(8)), told);
    assert_eq!(shortfalls(ended(0), ended(0)), [""; 0]);
}

#[test]
fn more_skipped_tests_than_on_a_base_that_passed_are_told() {
    let evidence = |text| {
        let mut evidence = Evidence::default();
        evidence.add("verify", "test", printed(text));
        evidence
    };
    let [base, now] = ["2 passed in 0.1s", "2 passed, 1 skipped in 0.1s"].map(evidence);
    assert_eq!(told(&now, &base), [""; 0]);
    assert_eq!(now.more_skipped(&base).unwrap(), "more tests were skipped than on the base: 1 instead of 0");
    assert_eq!(base.more_skipped(&now), None);
}

#[test]
fn a_test_of_rust_that_failed_on_the_base_is_missed_whatever_it_printed() {
    let nested = "running 9 tests\ntest result: ok. 9 passed; 0 failed;";
    let base = format!(
        "Running unittests src/lib.rs\nrunning 2 tests\n---- a stdout ----\n{nested}\ntest result: FAILED. 1 passed; 1 failed;\n\
        Doc-tests a\nrunning 1 test\ntest result: ok. 1 passed; 0 failed;"
    );
    let red = StepEvidence { is_green: false, ..printed(&base) };
    let now = |count: u64| printed(&format!("running {count} tests\ntest result: ok. {count} passed; 0 failed;"));
    assert_eq!(shortfalls(red.clone(), now(3)), [""; 0]);
    assert_eq!(shortfalls(red, now(2)), ["verify/test: fewer tests ran than on the base: 2 of 3"]);
}

#[test]
fn steps_without_tests_beside_steps_with_tests_are_no_run_of_nothing() {
    let is_without = |texts: [&str; 2]| {
        let mut evidence = Evidence::default();
        texts.iter().zip(["a", "b"]).for_each(|(text, step)| evidence.add("verify", step, printed(text)));
        evidence.is_without_tests()
    };
    let (none, go) = ("no tests ran in 0.01s", "?   \tm\t[no test files]");
    assert!(is_without([none, go]));
    assert!(!is_without([none, "2 passed in 0.1s"]));
    assert!(!is_without([none, "ok  \tm\t0.002s"]));
    assert!(!is_without(["", "?   \tm\t[no test files]\nok  \tm/b\t(cached)"]));
}

#[test]
fn failing_tests_that_go_named_on_a_red_base_need_no_name_when_they_pass() {
    let red = printed("--- FAIL: TestA (0.00s)\n    a_test.go:9: 3\nFAIL\nFAIL\tm\t0.1s\nFAIL");
    let red = StepEvidence { is_green: false, ..red };
    assert_eq!(shortfalls(red.clone(), printed("ok  \tm\t0.002s")), [""; 0]);
    assert_eq!(shortfalls(red.clone(), printed("ok  \tm\t0.002s [no tests to run]")).len(), 1);
    assert_eq!(shortfalls(red, printed("")).len(), 1);
}

#[test]
fn tests_in_the_output_of_failing_tests_of_ctest_are_not_counted() {
    let red = "1/1 Test #1: sums ...***Failed    0.00 sec\n[==========] Running 4 tests from 1 test suite.\n\
        [==========] 4 tests from 1 test suite ran. (0 ms total)\n[  FAILED  ] 1 test, listed below:\n\
        0% tests passed, 1 tests failed out of 1";
    let green = "1/1 Test #1: sums ...   Passed    0.00 sec\n100% tests passed, 0 tests failed out of 1";
    let evidence = |text: &str| {
        let mut evidence = Evidence::default();
        evidence.add("verify", "test", printed(text));
        evidence
    };
    let (base, now) = (evidence(red), evidence(green));
    assert_eq!((base.ran(), now.ran(), now.strange_count(&base, 0)), (Some(1), Some(1), None));
}

#[test]
fn a_test_program_that_ends_in_the_middle_is_told() {
    let base = printed("running 1 test\ntest result: ok. 1 passed; 0 failed;");
    let now = printed("running 1 test\ntest result: ok. 1 passed; 0 failed;\nrunning 4 tests");
    assert_eq!(shortfalls(base, now), ["verify/test: a test program ended before its tests did"]);
}

#[test]
fn a_step_that_ran_on_the_base_and_is_not_there_showed_nothing() {
    let mut base = Evidence::default();
    base.add("verify", "test", printed("3 passed in 0.1s"));
    assert_eq!(told(&Evidence::default(), &base), ["verify/test: fewer tests ran than on the base: 0 of 3"]);
    assert_eq!((base.ran(), Evidence::default().ran()), (Some(3), None));
}

#[test]
fn a_step_that_passes_with_failing_tests_contradicts_itself_without_a_base() {
    let contradiction = |text: &str, is_green| {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        printed.end();
        let mut evidence = Evidence::default();
        evidence.add("verify", "test", StepEvidence { is_green, ..StepEvidence::new(None, None, printed, true) });
        evidence.contradiction()
    };
    let told = "verify/test: the step passed although its test output reports failures";
    let failed = "1..2\nok 1 - adds\nnot ok 2 - halves";
    assert_eq!(contradiction(failed, true).unwrap(), told);
    assert_eq!(contradiction(failed, false), None);
    assert_eq!(contradiction("1..2\nok 1 - adds\nnot ok 2 - halves # TODO later", true), None);
    assert_eq!(contradiction("1 failed in 0.01s\n1..1\nok 1 - sees failures", true), None);
}

#[test]
fn a_step_whose_pipe_hides_the_same_failure_on_the_base_is_no_pass() {
    let failed = "1..2\nok 1 - adds\nnot ok 2 - halves";
    let shown = |text: &str| {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        printed.end();
        StepEvidence::new(None, None, printed, true)
    };
    let told = "verify/test: the step passed although its test output reports failures";
    assert_eq!(shortfalls(shown(failed), shown(failed)), [told]);
    assert_eq!(shortfalls(shown(failed), shown("1..2\nok 1 - adds\nok 2 - halves")), [""; 0]);
    let of_a_runner = "1 failed in 0.01s\n1..1\nok 1 - sees failures";
    assert_eq!(shortfalls(shown(of_a_runner), shown(of_a_runner)), [""; 0]);
}

#[test]
fn a_program_that_ends_after_its_plan_is_cut_short() {
    let shown = |text: &str, is_green| {
        let mut printed = PrintedCounts::default();
        text.lines().for_each(|line| printed.read_line(line));
        printed.end();
        StepEvidence::new(None, None, printed, is_green)
    };
    let base = shown("1..2\nok 1\nnot ok 2", false);
    assert_eq!(
        shortfalls(base.clone(), shown("1..2", true)),
        ["verify/test: a test program ended before its tests did"]
    );
    assert_eq!(shortfalls(base, shown("1..2\nok 1\nok 2", true)), [""; 0]);
}
