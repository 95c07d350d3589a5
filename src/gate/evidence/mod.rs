//! Evidence beside exit codes: which tests ran. A gate run must have run at least what the same lanes ran on the base, so that a check
//! which passes because it checks less does not pass. Pure.
//!
//! Where a step names a machine report, its tests are known by name. Else what the common runners print is counted; such text can be
//! forged by the code under test, so it can only ever speak against a pass.

mod printed;
mod runners;

pub(super) use printed::Printed;

use crate::lane_runner::JunitReport;
use crate::verdict::TestStatus;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most tests that are named where some are missing.
const NAMED: usize = 10;

/// The reason of a failure where test runners found no test.
pub(super) const NO_TESTS: &str =
    "no test ran: the runners of tests found none; add a test, or take their steps out of the lane";

/// What the steps of a gate run showed, by lane and step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Evidence {
    steps: BTreeMap<String, Shown>,
}

/// What one step showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shown {
    /// The tests of its machine report that ran, each with how often; `None` where it names no report.
    named: Option<BTreeMap<String, u32>>,
    /// What was counted in its output.
    printed: Printed,
    /// Whether the step said that all is well.
    is_green: bool,
}

impl Shown {
    /// What a step's report says, where it has one, and what its output says.
    pub(super) fn new(report: Option<&JunitReport>, printed: Printed, is_green: bool) -> Self {
        let named = report.map(|report| {
            let mut named = BTreeMap::new();
            for case in report.cases.iter().filter(|case| case.status != TestStatus::Skipped) {
                *named.entry(format!("{} {}", case.suite, case.name).trim().to_owned()).or_default() += 1;
            }
            named
        });
        Self { named, printed, is_green }
    }

    /// How many tests ran, as far as that is known.
    fn ran(&self) -> Option<u64> {
        match &self.named {
            Some(named) => Some(named.values().map(|count| u64::from(*count)).sum()),
            None => self.printed.ran(),
        }
    }

    /// Why this is less than what the base showed.
    fn falls_short_of(&self, base: &Self) -> Option<String> {
        if self.printed.unfinished() > base.printed.unfinished() {
            return Some("a test program ended before its tests did".into());
        }
        // What tests of runners print is nothing against a step, so it is only counted beyond what was so on the base.
        let before = if base.is_green { base.printed.failed() } else { base.printed.failed().saturating_sub(1) };
        if self.is_green && self.printed.failed() > before {
            return Some("its exit code says that all is well, and its tests say that some failed".into());
        }
        let none = BTreeSet::new();
        let gone: BTreeSet<&str> = match (base.printed.names(), self.printed.names(), self.printed.is_crowded()) {
            (None, ..) | (_, None, true) => BTreeSet::new(),
            (Some(base), now, _) => base.difference(now.unwrap_or(&none)).map(String::as_str).collect(),
        };
        if !gone.is_empty() {
            return Some(format!("tests of the base did not run: {}", some(&gone)));
        }
        let untested: BTreeSet<&str> =
            base.printed.packages().difference(self.printed.packages()).map(String::as_str).collect();
        if !untested.is_empty() {
            return Some(format!("packages of the base were not tested: {}", some(&untested)));
        }
        if let (Some(base), Some(now)) = (&base.named, &self.named) {
            let is_missing = |(name, count): &(&String, &u32)| now.get(*name).copied().unwrap_or(0) < **count;
            let missing: BTreeSet<&str> = base.iter().filter(is_missing).map(|(name, _)| name.as_str()).collect();
            return (!missing.is_empty()).then(|| format!("tests of the base did not run: {}", some(&missing)));
        }
        let (before, now) = (base.ran()?, self.ran().unwrap_or(0));
        // Runners print what a failing test printed, sums of other runners too, so the sum of a red step says little but for Rust's.
        let (before, now) = match (base.is_green, base.printed.own(), self.printed.own()) {
            (false, Some(before), Some(now)) => (before, now),
            (false, ..) if now > 0 => return None,
            _ => (before, now),
        };
        (now < before).then(|| format!("fewer tests ran than on the base: {now}, there {before}"))
    }
}

impl Evidence {
    /// Takes down what a step showed.
    pub(super) fn add(&mut self, lane: &str, step: &str, shown: Shown) {
        self.steps.insert(format!("{lane}/{step}"), shown);
    }

    /// How many tests ran in all; `None` where no step counts any.
    pub(super) fn ran(&self) -> Option<u64> {
        self.steps.values().filter_map(Shown::ran).reduce(|all, more| all.saturating_add(more))
    }

    /// Returns whether a test runner printed a summary and no step ran a test.
    pub(super) fn is_without_tests(&self) -> bool {
        self.ran() == Some(0)
    }

    /// Each step that showed less than on the base, and why.
    pub(super) fn shortfalls(&self, base: &Self) -> Vec<String> {
        let short = |(step, base): (&String, &Shown)| {
            let now = self.steps.get(step).cloned().unwrap_or_default();
            now.falls_short_of(base).map(|why| format!("{step}: {why}"))
        };
        base.steps.iter().filter_map(short).collect()
    }
}

fn some(names: &BTreeSet<&str>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).copied().collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cases: &str) -> Shown {
        let report = JunitReport::parse(&format!("<testsuite>{cases}</testsuite>")).unwrap();
        Shown::new(Some(&report), Printed::default(), true)
    }

    fn printed(text: &str) -> Shown {
        let mut printed = Printed::default();
        text.lines().for_each(|line| printed.take(line));
        Shown::new(None, printed, true)
    }

    fn shortfalls(base: Shown, now: Shown) -> Vec<String> {
        let [mut before, mut after] = [Evidence::default(), Evidence::default()];
        before.add("verify", "test", base);
        after.add("verify", "test", now);
        after.shortfalls(&before)
    }

    #[test]
    fn a_test_of_the_base_that_did_not_run_is_missed_by_its_name_however_many_others_ran() {
        let base = report("<testcase classname='m' name='a'/><testcase classname='m' name='b'/>");
        let less = report("<testcase classname='m' name='a'/><testcase name='c'/><testcase name='d'/>");
        assert_eq!(shortfalls(base.clone(), less), ["verify/test: tests of the base did not run: m b"]);
        let skipped =
            report("<testcase classname='m' name='a'/><testcase classname='m' name='b'><skipped/></testcase>");
        assert_eq!(shortfalls(base.clone(), skipped), ["verify/test: tests of the base did not run: m b"]);
        let more = report("<testcase classname='m' name='b'/><testcase classname='m' name='a'/><testcase name='new'/>");
        assert_eq!(shortfalls(base, more), [""; 0]);
    }

    #[test]
    fn what_was_skipped_on_the_base_may_be_skipped_or_go() {
        let base = report("<testcase name='a'/><testcase name='b'><skipped/></testcase>");
        assert_eq!(shortfalls(base, report("<testcase name='a'/>")), [""; 0]);
    }

    #[test]
    fn a_parametrized_test_of_one_name_must_run_as_often() {
        let base = report("<testcase name='a'/><testcase name='a'/>");
        assert_eq!(shortfalls(base, report("<testcase name='a'/>")), ["verify/test: tests of the base did not run: a"]);
    }

    #[test]
    fn without_a_report_what_is_printed_is_counted_and_only_speaks_against() {
        let base = printed("running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored;");
        let one = printed("running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored;");
        assert_eq!(
            shortfalls(base.clone(), one.clone()),
            ["verify/test: fewer tests ran than on the base: 1, there 2"]
        );
        assert_eq!(
            shortfalls(base.clone(), printed("")),
            ["verify/test: fewer tests ran than on the base: 0, there 2"]
        );
        assert_eq!(shortfalls(one, base), [""; 0]);
        assert_eq!(shortfalls(printed(""), printed("")), [""; 0]);
    }

    #[test]
    fn a_step_that_is_green_though_its_tests_failed_is_told_and_what_was_printed_on_the_base_is_not() {
        let failed = "running 2 tests\ntest result: FAILED. 1 passed; 1 failed;";
        let red = Shown { is_green: false, ..printed(failed) };
        let told = ["verify/test: its exit code says that all is well, and its tests say that some failed"];
        assert_eq!(shortfalls(red.clone(), printed(failed)), told);
        assert_eq!(shortfalls(printed(""), printed(failed)), told);
        assert_eq!(shortfalls(printed(failed), printed(failed)), [""; 0]);
        assert_eq!(shortfalls(red, printed("running 2 tests\ntest result: ok. 2 passed; 0 failed;")), [""; 0]);
    }

    #[test]
    fn sums_of_a_step_that_failed_on_the_base_are_not_compared_but_for_none() {
        let captured = "running 1 test\ntest result: FAILED. 0 passed; 1 failed;\nSummary [ 0.01s] 3 tests run: 2 passed, 1 failed";
        let red = Shown { is_green: false, ..printed(captured) };
        assert_eq!(shortfalls(red.clone(), printed("Summary [ 0.01s] 3 tests run: 3 passed")), [""; 0]);
        assert_eq!(shortfalls(red, printed("")), ["verify/test: fewer tests ran than on the base: 0, there 4"]);
    }

    #[test]
    fn a_test_of_rust_that_failed_on_the_base_is_missed_whatever_it_printed() {
        let nested = "running 9 tests\ntest result: ok. 9 passed; 0 failed;";
        let base = format!(
            "Running unittests src/lib.rs\nrunning 2 tests\n---- a stdout ----\n{nested}\ntest result: FAILED. 1 passed; 1 failed;\n\
            Doc-tests a\nrunning 1 test\ntest result: ok. 1 passed; 0 failed;"
        );
        let red = Shown { is_green: false, ..printed(&base) };
        let now = |count: u64| printed(&format!("running {count} tests\ntest result: ok. {count} passed; 0 failed;"));
        assert_eq!(shortfalls(red.clone(), now(3)), [""; 0]);
        assert_eq!(shortfalls(red, now(2)), ["verify/test: fewer tests ran than on the base: 2, there 3"]);
    }

    #[test]
    fn a_test_of_node_that_is_not_named_any_more_is_missed_though_as_many_ran() {
        let base = printed("✔ adds (1ms)\nℹ tests 1\nℹ pass 1");
        let now = printed("✔ sum.test.js (1ms)\nℹ tests 1\nℹ pass 1");
        assert_eq!(shortfalls(base, now), ["verify/test: tests of the base did not run: adds"]);
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
        assert_eq!(
            Evidence::default().shortfalls(&base),
            ["verify/test: fewer tests ran than on the base: 0, there 3"]
        );
        assert_eq!((base.ran(), Evidence::default().ran()), (Some(3), None));
    }
}
