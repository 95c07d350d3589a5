//! Evidence beside exit codes: which tests ran. A gate run must have run at least what the same lanes ran on the base, so that a check
//! which passes because it checks less does not pass. Pure.
//!
//! Where a step names a machine report, or Maven or Gradle wrote some, its tests are known by name. Else what the common runners print
//! is counted, and named where they print names; such text can be forged by the code under test, so it can only ever speak against a pass.

mod go;
mod names;
mod printed;
mod runners;
mod shortfall;

pub(super) use printed::Printed;
pub(super) use shortfall::{Gone, Shortfall};

use crate::lane_runner::JunitReport;
use crate::verdict::TestStatus;
use names::stable;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most tests that are named where some are missing.
const NAMED: usize = 10;

/// The reason of a failure where test runners found no test.
pub(super) const NO_TESTS: &str =
    "no test ran: the runners of tests found none; add a test, or take their steps out of the lane";

/// The reason against a step whose tests did not all come to their end.
const CUT_SHORT: &str = "a test program ended before its tests did";
/// The reason against a step that passed while its tests failed.
const CONTRADICTORY: &str = "its exit code says that all is well, and its tests say that some failed";

/// What the steps of a gate run showed, by lane and step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Evidence {
    steps: BTreeMap<String, Shown>,
}

/// What one step showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shown {
    /// The tests of its machine report that ran, each with how often; `None` where there is no report.
    named: Option<BTreeMap<String, u32>>,
    /// Whether the lane names no report, and the step's builds wrote some.
    is_found: bool,
    /// What was counted in its output.
    printed: Printed,
    /// Whether the step said that all is well.
    is_green: bool,
}

impl Shown {
    /// What a step's report says, where it has one, and what its output says. Where the lane names no
    /// report, `found` has those that were there.
    pub(super) fn new(
        report: Option<&JunitReport>,
        found: Option<&JunitReport>,
        printed: Printed,
        is_green: bool,
    ) -> Self {
        let named = report.or(found).map(|read| {
            let mut named = BTreeMap::new();
            for case in read.cases.iter().filter(|case| case.status != TestStatus::Skipped) {
                let name = format!("{} {}", case.suite, case.name);
                // What the lane itself names is compared as it is.
                let name = if report.is_some() { name.trim().to_owned() } else { stable(name.trim()) };
                *named.entry(name).or_default() += 1;
            }
            named
        });
        Self { named, is_found: report.is_none() && found.is_some(), printed, is_green }
    }

    /// How many tests ran, as far as that is known.
    fn ran(&self) -> Option<u64> {
        match &self.named {
            Some(named) if !self.is_found => Some(sum(named)),
            named => named.as_ref().map(sum).max(self.printed.ran()),
        }
    }

    /// How many of them are known by name.
    fn named(&self) -> u64 {
        self.named.as_ref().map_or(0, sum).max(self.printed.names().count()).min(self.ran().unwrap_or(0))
    }

    /// Why this is less than what the base showed, and what did not run. `lane` has the tests of the reports that any step of the lane wrote:
    /// builds that run at a time find each other's.
    fn falls_short_of(&self, base: &Self, lane: &BTreeMap<String, u32>) -> Option<(String, Gone)> {
        if self.printed.unfinished() > base.printed.unfinished() {
            return Some((CUT_SHORT.into(), Gone::Nothing));
        }
        let cut_short = self.printed.cut_short(Some(&base.printed));
        if !cut_short.is_empty() {
            return Some((format!("{CUT_SHORT}: {}", some(&cut_short)), Gone::Nothing));
        }
        // What tests of runners print is nothing against a step, so it is only counted beyond what was so on the base.
        let before = if base.is_green { base.printed.failed() } else { base.printed.failed().saturating_sub(1) };
        if self.is_green && self.printed.failed() > before {
            return Some((CONTRADICTORY.into(), Gone::Nothing));
        }
        // On a red base it is not known what a pass prints, and the last summary of a program is its own.
        if self.is_green && !base.is_green && self.printed.ends_failed() {
            return Some((CONTRADICTORY.into(), Gone::Nothing));
        }
        let has_run = self.ran().is_some_and(|ran| ran > 0);
        let gone = self.printed.names().missing(base.printed.names(), base.is_green, has_run);
        if !gone.is_empty() {
            return Some((format!("tests of the base did not run: {}", some(&gone)), Gone::Tests(owned(&gone))));
        }
        let untested: BTreeSet<&str> =
            base.printed.packages().difference(self.printed.packages()).map(String::as_str).collect();
        if !untested.is_empty() {
            let why = format!("packages of the base were not tested: {}", some(&untested));
            return Some((why, Gone::Packages(owned(&untested))));
        }
        if let Some(named) = &base.named {
            let none = BTreeMap::new();
            let now = if base.is_found { lane } else { self.named.as_ref().unwrap_or(&none) };
            let is_missing = |(name, count): &(&String, &u32)| now.get(*name).copied().unwrap_or(0) < **count;
            let missing: BTreeSet<&str> = named.iter().filter(is_missing).map(|(name, _)| name.as_str()).collect();
            if !missing.is_empty() {
                let why = format!("tests of the base did not run: {}", some(&missing));
                return Some((why, Gone::Tests(owned(&missing))));
            }
            if !base.is_found {
                return None;
            }
        }
        let (before, now) = (base.ran()?, self.ran().unwrap_or(0));
        // Runners print what a failing test printed, sums of other runners too, so the sum of a red step says little but for Rust's.
        let (before, now) = match (base.is_green, base.printed.own(), self.printed.own()) {
            (false, Some(before), Some(now)) => (before, now),
            // But where more are skipped, a test that failed there may be among them.
            (false, ..) if now > 0 => {
                let (skipped, there) = (self.printed.skipped(), base.printed.skipped());
                let why = || format!("more tests were skipped than on the base: {skipped}, there {there}");
                return (skipped > there).then(|| (why(), Gone::Count(skipped - there)));
            }
            _ => (before, now),
        };
        (now < before)
            .then(|| (format!("fewer tests ran than on the base: {now}, there {before}"), Gone::Count(before - now)))
    }
}

impl Evidence {
    /// Takes down what a step showed.
    pub(super) fn add(&mut self, lane: &str, step: &str, shown: Shown) {
        self.steps.insert(format!("{lane}/{step}"), shown);
    }

    /// How many tests ran in all; `None` where no step counts any, also where Go only says that it ran some.
    pub(super) fn ran(&self) -> Option<u64> {
        let ran = self.steps.values().filter_map(Shown::ran).reduce(|all, more| all.saturating_add(more));
        ran.filter(|ran| *ran > 0 || self.steps.values().all(|step| step.printed.packages().is_empty()))
    }

    /// How many of these are known by name, so that each of the base was looked for.
    pub(super) fn named(&self) -> u64 {
        self.steps.values().map(Shown::named).fold(0, u64::saturating_add)
    }

    /// Returns whether a test runner printed a summary and no step ran a test.
    pub(super) fn is_without_tests(&self) -> bool {
        self.ran() == Some(0)
    }

    /// Returns a step that passed although its tests say otherwise, with the reason for people. For gate runs without a base.
    pub(super) fn contradiction(&self) -> Option<String> {
        let why = |shown: &Shown| match (shown.printed.ends_failed(), shown.printed.cut_short(None)) {
            (true, _) => Some(CONTRADICTORY.to_owned()),
            (false, cut) => (!cut.is_empty()).then(|| format!("{CUT_SHORT}: {}", some(&cut))),
        };
        let mut green = self.steps.iter().filter(|(_, shown)| shown.is_green);
        green.find_map(|(step, shown)| Some(format!("{step}: {}", why(shown)?)))
    }

    /// Each step that showed less than on the base, and why.
    pub(super) fn shortfalls(&self, base: &Self) -> Vec<Shortfall> {
        let short = |(step, base): (&String, &Shown)| {
            let now = self.steps.get(step).cloned().unwrap_or_default();
            let told = now.falls_short_of(base, &self.found_beside(step));
            told.map(|(why, gone)| Shortfall { step: step.clone(), why, gone })
        };
        base.steps.iter().filter_map(short).collect()
    }

    /// The tests of the reports that the steps of this step's lane wrote without being asked.
    fn found_beside(&self, step: &str) -> BTreeMap<String, u32> {
        let lane_of = |step: &str| step.split_once('/').map_or_else(String::new, |(lane, _)| lane.to_owned());
        let mut all = BTreeMap::new();
        let beside = self.steps.iter().filter(|(other, shown)| shown.is_found && lane_of(other) == lane_of(step));
        for (name, count) in beside.flat_map(|(_, shown)| shown.named.iter().flatten()) {
            let most = all.entry(name.clone()).or_insert(0);
            *most = (*most).max(*count);
        }
        all
    }
}

fn sum(named: &BTreeMap<String, u32>) -> u64 {
    named.values().map(|count| u64::from(*count)).sum()
}

fn owned(names: &BTreeSet<&str>) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
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
        Shown::new(Some(&report), None, Printed::default(), true)
    }

    fn printed(text: &str) -> Shown {
        let mut printed = Printed::default();
        text.lines().for_each(|line| printed.take(line));
        Shown::new(None, None, printed, true)
    }

    fn shortfalls(base: Shown, now: Shown) -> Vec<String> {
        let [mut before, mut after] = [Evidence::default(), Evidence::default()];
        before.add("verify", "test", base);
        after.add("verify", "test", now);
        told(&after, &before)
    }

    fn told(now: &Evidence, base: &Evidence) -> Vec<String> {
        now.shortfalls(base).iter().map(ToString::to_string).collect()
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
        let values = report("<testcase name='[1] 0.5'/><testcase name='Sum@1b2c3d'/>");
        let others = report("<testcase name='[1] 0.7'/><testcase name='Sum@1b2c3e'/>");
        assert_eq!(
            shortfalls(values.clone(), others),
            ["verify/test: tests of the base did not run: Sum@1b2c3d, [1] 0.5"]
        );
        assert_eq!(shortfalls(values.clone(), values), [""; 0]);
    }

    #[test]
    fn reports_that_were_found_name_tests_and_count_beside_what_is_printed() {
        let found = |cases: &str, text: &str| {
            let report = JunitReport::parse(&format!("<testsuite>{cases}</testsuite>")).unwrap();
            let Shown { printed, .. } = printed(text);
            Shown::new(None, Some(&report), printed, true)
        };
        let (jest, less) = ("Tests: 3 passed, 3 total", "Tests: 1 passed, 1 total");
        let base = found("<testcase name='a'/><testcase name='[1] 0.5'/>", jest);
        assert_eq!((base.ran(), base.named()), (Some(3), 2));
        let other = "<testcase name='a'/><testcase name='[1] 0.7'/>";
        assert_eq!(shortfalls(base.clone(), found(other, jest)), [""; 0]);
        let fewer = ["verify/test: fewer tests ran than on the base: 2, there 3"];
        assert_eq!(shortfalls(base.clone(), found(other, less)), fewer);
        let gone = ["verify/test: tests of the base did not run: [1]"];
        assert_eq!(shortfalls(base.clone(), found("<testcase name='a'/><testcase name='b'/>", jest)), gone);
        let none = ["verify/test: tests of the base did not run: [1], a"];
        assert_eq!(shortfalls(base.clone(), printed(jest)), none);
        // A build that runs at the same time may have found the reports.
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
        let two = "running 3 tests\ntest result: FAILED. 1 passed; 2 failed;";
        assert_eq!(shortfalls(Shown { is_green: false, ..printed(two) }, printed(failed)), told);
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
    fn a_test_that_failed_on_the_base_is_not_skipped_now() {
        let red = Shown { is_green: false, ..printed("Ran 2 tests in 0.001s\nFAILED (failures=1)") };
        let told = ["verify/test: more tests were skipped than on the base: 1, there 0"];
        assert_eq!(shortfalls(red.clone(), printed("Ran 2 tests in 0.001s\nOK (skipped=1)")), told);
        let more = printed("Ran 3 tests in 0.001s\nOK (skipped=1)");
        assert_eq!(shortfalls(red, more), told, "also where a new one takes its place in the sum");
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
        assert_eq!(now.more_skipped(&base).unwrap(), "more tests were skipped than on the base: 1, there 0");
        assert_eq!(base.more_skipped(&now), None);
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
    fn a_test_program_that_ends_in_the_middle_is_told() {
        let base = printed("running 1 test\ntest result: ok. 1 passed; 0 failed;");
        let now = printed("running 1 test\ntest result: ok. 1 passed; 0 failed;\nrunning 4 tests");
        assert_eq!(shortfalls(base, now), ["verify/test: a test program ended before its tests did"]);
    }

    #[test]
    fn a_step_that_ran_on_the_base_and_is_not_there_showed_nothing() {
        let mut base = Evidence::default();
        base.add("verify", "test", printed("3 passed in 0.1s"));
        assert_eq!(told(&Evidence::default(), &base), ["verify/test: fewer tests ran than on the base: 0, there 3"]);
        assert_eq!((base.ran(), Evidence::default().ran()), (Some(3), None));
    }
}
