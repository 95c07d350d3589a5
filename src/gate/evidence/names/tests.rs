//! Tests with output as the common runners print it.

use super::*;

fn names(text: &str) -> TestNames {
    let mut names = TestNames::default();
    text.lines().for_each(|line| names.read_line(line));
    names
}

fn known(text: &str) -> Vec<String> {
    names(text).compared().flat_map(|(_, names)| names.iter().cloned().collect::<Vec<_>>()).collect()
}

fn missing(base: &str, now: &str) -> Vec<String> {
    names(now).missing(&names(base), true, true).into_iter().map(str::to_owned).collect()
}

#[test]
fn tests_of_node_are_known_by_their_names() {
    let text = "✔ adds (0.12ms)
  ✖ halves (an odd) (1.5ms)
ok 1 - trims
not ok 2 - folds
ok 3 - later # SKIP
ok then
✔ Generated client in 993ms
✔ built";
    assert_eq!(known(text), [""; 0], "no runner has summed up");
    assert_eq!(known(&format!("{text}\nℹ tests 4")), ["adds", "folds", "halves (an odd)", "trims"]);
}

#[test]
fn a_test_of_node_that_is_not_named_any_more_is_missed_though_as_many_ran() {
    assert_eq!(missing("✔ adds (1ms)\nℹ tests 1", "✔ sum.test.js (1ms)\nℹ tests 1"), ["adds"]);
}

#[test]
fn tests_of_bats_are_known_by_their_names_and_assertions_of_other_programs_are_not() {
    assert_eq!(known("1..3\nok 1 adds\nnot ok 2 halves\nok 3 net # skip no net"), ["adds", "halves"]);
    assert_eq!(missing("1..1\nok 1 adds", "1..1\nok 1 adds nothing"), ["adds"]);
    assert_eq!(known("TAP version 13\nok 1 should be equal\n1..1"), [""; 0]);
    assert_eq!(known("1..2\nok 1 - adds\nok 2 took 3 ms"), [""; 0]);
}

#[test]
fn tests_of_go_are_known_by_their_names_and_how_often_they_ran() {
    let text = "=== RUN   TestAdds
--- PASS: TestAdds (0.00s)
=== RUN   TestHalves
=== RUN   TestHalves/odd
    --- FAIL: TestHalves/odd (0.00s)
--- FAIL: TestHalves (0.00s)
=== RUN   TestLater
--- SKIP: TestLater (0.00s)
FAIL
FAIL\tm/calc\t0.1s
=== RUN   TestAdds
--- PASS: TestAdds (0.00s)
PASS
ok  \tm\t0.1s";
    assert_eq!(known(text), ["TestAdds", "TestAdds (2)", "TestHalves"]);
    assert_eq!(missing(text, "--- PASS: TestAdds (0.00s)\nPASS\nok  \tm\t0.1s"), ["TestAdds (2)", "TestHalves"]);
}

const CTEST: &str = "Test project /b
      Start  1: Calc.Adds
 1/11 Test  #1: Calc.Adds ........................   Passed    0.00 sec
      Start  2: Calc.Fails
 2/11 Test  #2: Calc.Fails .......................***Failed    0.00 sec
[ RUN      ] Calc.Inner
[       OK ] Calc.Inner (0 ms)
[==========] 1 test from 1 test suite ran. (0 ms total)

 3/11 Test  #3: Calc.Skips .......................***Skipped   0.00 sec
 4/11 Test  #4: Calc.Off .........................***Not Run (Disabled)   0.00 sec
 5/11 Test  #5: slow and long ....................***Timeout   1.50 sec
11/11 Test #11: crash ............................***Exception: SegFault  0.10 sec
56% tests passed, 4 tests failed out of 9";

#[test]
fn tests_of_ctest_are_known_by_their_names_and_what_failing_ones_print_is_not() {
    assert_eq!(known(CTEST), ["Calc.Adds", "Calc.Fails", "crash", "slow and long"]);
    let one = " 1/1 Test #1: Calc.Adds ....   Passed    0.00 sec\n100% tests passed, 0 tests failed out of 1";
    assert_eq!(missing(CTEST, one), ["Calc.Fails", "crash", "slow and long"]);
    assert_eq!(known("see 1/2 Test #1: a ... Passed\n100% tests passed, 0 tests failed out of 1"), [""; 0]);
}

#[test]
fn tests_of_googletest_are_known_by_their_names() {
    let text = "[ RUN      ] Calc.Adds
[       OK ] Calc.Adds (0 ms)
[ RUN      ] Calc.Fails
t.cpp:3: Failure
[  FAILED  ] Calc.Fails (0 ms)
[  SKIPPED ] Calc.Skips (0 ms)
[ DISABLED ] Calc.DISABLED_Off
printed[       OK ] All/P.Even/0 (0 ms)
[  FAILED  ] All/P.Even/1, where GetParam() = 3 (0 ms)
[==========] 5 tests from 2 test suites ran. (0 ms total)
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Calc.Fails";
    let all = ["All/P.Even/0", "All/P.Even/1", "Calc.Adds", "Calc.Fails"];
    assert_eq!(known(text), all);
    // The code under test ended the program before the summary.
    assert_eq!(missing(text, "[ RUN      ] Calc.Adds\n[       OK ] Calc.Adds (0 ms)"), all);
}

#[test]
fn tests_of_catch2_and_doctest_are_known_where_they_print_times() {
    let catch = "0.000 s: small\n0.000 s: adds numbers\n===\nAll tests passed (3 assertions in 2 test cases)";
    assert_eq!(known(catch), ["adds numbers", "small"]);
    let doctest = "0.000024 s: adds numbers\n2 s: no\n[doctest] test cases: 3 | 2 passed | 1 failed | 0 skipped";
    assert_eq!(known(doctest), ["adds numbers"]);
    assert_eq!(known("0.1 s: built"), [""; 0]);
}

#[test]
fn tests_of_the_console_launcher_are_known_by_their_place_in_its_tree() {
    let tree = "╷
├─ JUnit Jupiter ✔
│  └─ CalcTest ✔
│     ├─ adds big numbers ✔
│     ├─ off() ↷ void p.CalcTest.off() is @Disabled
│     ├─ halves() ✘ expected: <1> but was: <2>
│     ├─ each(double) ✔
│     │  ├─ [1] 0.7311 ✔
│     │  └─ [2] 0.2 ✔
│     └─ Inner ✔
│        └─ deep() ✔
├─ JUnit Vintage ✔
└─ JUnit Platform Suite ✔

[         5 tests started         ]";
    let all = [
        "CalcTest > Inner > deep()",
        "CalcTest > adds big numbers",
        "CalcTest > each(double) > [1]",
        "CalcTest > each(double) > [2]",
        "CalcTest > halves()",
    ];
    assert_eq!(known(tree), all);
    let ascii = tree
        .replace("├─ ", "+-- ")
        .replace("└─ ", "'-- ")
        .replace("│ ", "| ")
        .replace('✔', "[OK]")
        .replace('✘', "[X]")
        .replace('↷', "[S]");
    assert_eq!(known(&ascii), all);
    assert_eq!(missing(tree, "[         1 tests started         ]"), all);
}

#[test]
fn tests_of_the_console_launcher_are_known_in_its_other_forms() {
    let feed = "JUnit Jupiter > CalcTest > adds() :: STARTED\nJUnit Jupiter > CalcTest > adds() :: SUCCESSFUL
JUnit Jupiter > CalcTest > off() :: SKIPPED\n[         1 tests started         ]";
    assert_eq!(known(feed), ["CalcTest > adds()"]);
    let flat = "Started:     adds() ([engine:junit-jupiter]/[class:p.CalcTest]/[method:adds()])
Finished:    adds() ([engine:junit-jupiter]/[class:p.CalcTest]/[method:adds()])
Finished:    CalcTest ([engine:junit-jupiter]/[class:p.CalcTest])
Finished:    each(double) ([engine:junit-jupiter]/[class:p.CalcTest]/[test-template:each(double)])
Finished:    JUnit Jupiter ([engine:junit-jupiter])\n[         1 tests started         ]";
    assert_eq!(known(flat), ["[class:p.CalcTest]/[method:adds()]"]);
}

#[test]
fn what_a_failing_test_of_the_base_printed_of_another_runner_is_not_missed() {
    let base = names("[       OK ] Calc.Inner (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)");
    assert!(TestNames::default().missing(&base, false, true).is_empty());
    assert_eq!(TestNames::default().missing(&base, false, false).len(), 1);
    assert_eq!(TestNames::default().missing(&base, true, true).len(), 1);
}

#[test]
fn names_have_nothing_that_differs_from_run_to_run() {
    for (name, without) in [
        ("adds()", "adds()"),
        ("[1] 0.7311, x", "[1]"),
        ("each(int)[12](3, 4)", "each(int)[12]"),
        ("test_a[1-2]", "test_a[1-2]"),
        ("holds java.lang.Object@1b2c3d4e well", "holds java.lang.Object@ well"),
        ("mail a@be.ch", "mail a@be.ch"),
        ("0.7311840412 and 12.5 are numbers, 5.00012e-7 is, too", " and 12.5 are numbers,  is, too"),
        ("1795996650473 should be a number", " should be a number"),
        ("not \"2026-11-29T23:57:30.476Z\" é.2", "not \"\" é.2"),
        ("at 2026-11-29 or 23:57:30", "at  or "),
        ("0x7f10a2b4, 0x10, 01a2151e-3e67-7781-8e51-7511e8f32d6b", ", 0x10, "),
        ("All/P.Even/16-byte object <90-F3 12>", "All/P.Even/16"),
    ] {
        assert_eq!(stable(name), without);
    }
}

#[test]
fn of_too_many_names_none_is_compared() {
    let many: String = (0..=MOST_NAMES).map(|number| format!("ok 1 - {number}\n")).collect();
    let crowded = names(&format!("{many}# tests 1"));
    assert_eq!(crowded.count(), 0);
    assert!(crowded.missing(&names("ok 1 - a\n# tests 1"), true, true).is_empty());
}
