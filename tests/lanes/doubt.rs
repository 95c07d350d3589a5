//! Lanes that could pass wrongly, and lanes that could be refused wrongly.

use crate::support::{Ended, Fledge};

/// Runs `fledge lanes run verify` with this lane.
fn lane(yaml: &str) -> Fledge {
    Fledge::new().args(&["lanes", "run", "verify"]).lane("verify", yaml)
}

#[track_caller]
fn must_say(ended: &Ended, code: i32, text: &str) {
    ended.must_exit(code);
    assert!(ended.stderr.contains(text), "{}", ended.story());
}

#[test]
fn a_test_report_whose_tests_were_all_skipped_is_no_pass() {
    let report = "<testsuite tests='2' skipped='2'><testcase name='a'><skipped/></testcase><testcase name='b'><skipped/></testcase></testsuite>";
    let run = lane("steps: [{ name: t, run: cp r.txt r.xml, junit: r.xml }]").file("r.txt", report).run();
    must_say(&run, 1, "all tests of its test report were skipped");
}

#[test]
fn failures_that_a_test_report_counts_in_thousands_count() {
    let report = "<testsuite tests='2000' failures='1,000'><testcase name='a'/></testsuite>";
    let steps = "steps: [{ name: t, run: cp r.txt r.xml, junit: r.xml }]";
    let run = lane(steps).file("r.txt", report).run();
    must_say(&run, 1, "1000 failing tests");
    let run = lane(steps).file("r.txt", report.replace("1,000", "many")).run();
    must_say(&run, 1, "`failures` is no number: `many`");
}

#[test]
fn where_all_is_committed_a_step_for_changes_is_run() {
    let steps = "steps: [{ name: fmt, run: 'true' }, { name: test, run: exit 1, changed: ['src/**'] }]";
    let commit = "git init -q . && git add -A && git -c user.name=t -c user.email=t@localhost commit -qm x";
    let fledge = lane(steps).file("src/a", "broken");
    let status = std::process::Command::new("sh").args(["-c", commit]).current_dir(fledge.workspace()).status();
    assert!(status.unwrap().success());
    let run = fledge.run();
    must_say(&run, 1, "lane verify failed");
    let run = run.again(&["lanes", "run", "verify"]).file("docs", "new").run();
    must_say(&run, 0, "1 passed, 1 skipped");
}

#[test]
fn a_condition_sees_the_variables_that_steps_have() {
    let steps = "steps: [{ name: a, run: 'true' }, { name: b, run: 'test -n $DEPLOY_TOKEN', when: DEPLOY_TOKEN }]";
    let run = lane(steps).env("DEPLOY_TOKEN", "t-1").run();
    must_say(&run, 0, "2 passed");
    must_say(&run.again(&["lanes", "run", "verify", "--clean"]).run(), 0, "1 passed, 1 skipped");
}

#[test]
fn what_is_not_to_run_needs_no_program() {
    let steps = "steps: [{ name: py, run: no-such-tool }, { name: ok, run: 'true' }]";
    let run = lane(steps).run();
    must_say(&run, 5, "there is no program `no-such-tool`");
    let run = lane(steps).arg("--only=ok").run();
    must_say(&run, 0, "lane verify passed");
    lane(steps).arg("--dry-run").run().must_exit(0);
}

#[test]
fn a_program_that_may_be_missing_or_is_brought_by_an_earlier_step_is_not_asked_for() {
    for steps in [
        "steps: [{ name: a, run: no-such-tool --check || true }]",
        "env: { PATH: 'bin:/usr/bin:/bin' }\nsteps: [{ name: a, run: 'echo exit 0 > bin/mytool; chmod +x bin/mytool' }, { name: b, run: mytool }]",
    ] {
        let run = lane(steps).file("bin/x", "").run();
        must_say(&run, 0, "lane verify passed");
    }
}

#[test]
fn a_command_of_which_only_the_last_line_counts_is_warned_of() {
    let yaml = "steps:\n  - name: a\n    run: |\n      cd nowhere\n      false\n      echo done\n";
    let check = lane(yaml).args(&["lanes", "validate", "--strict"]).run();
    must_say(&check, 2, "step `a` of lane `verify` has several lines, but only a failure of the last line counts");
    let check = lane(&yaml.replace("cd nowhere", "set -e")).args(&["lanes", "validate", "--strict"]).run();
    must_say(&check, 0, "valid");
}
