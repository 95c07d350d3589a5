//! The tests that test runners reported to fledge, compared with those of the base. Pure.

use super::names::stable;
use super::{CONTRADICTORY, CUT_SHORT, MissingTests, owned, some};
use crate::lane_runner::{ReportedState, RunnerReport};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of tests of a step. The tests of a step with more are not compared.
const MOST: usize = 100_000;

/// The tests that runners reported during a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReportedTests {
    /// The tests that ran, and how often each ran.
    ran: BTreeMap<String, u32>,
    /// The tests that failed, and did not pass later.
    failed: BTreeSet<String>,
    /// The tests that passed after a try that failed.
    tried_again: BTreeSet<String>,
    /// The tests that were skipped or expected to fail.
    left_out: BTreeSet<String>,
    /// The number of test runs that did not end by themselves.
    broken: u64,
    /// The functions of runners that were replaced, and the hooks that were added, as
    /// `NAME in FILE`.
    changed: BTreeSet<String>,
}

impl ReportedTests {
    /// Collects the tests of a report. `None` if they are too many.
    pub(super) fn new(report: &RunnerReport) -> Option<Self> {
        if report.tests.len() > MOST {
            return None;
        }
        let mut all = Self { broken: report.broken, changed: report.changed.clone(), ..Self::default() };
        for test in &report.tests {
            match test.state {
                ReportedState::Passed if all.failed.remove(&test.name) => all.tried_again.insert(test.name.clone()),
                ReportedState::Passed => false,
                ReportedState::Retried => all.tried_again.insert(test.name.clone()),
                ReportedState::Failed => all.failed.insert(test.name.clone()),
                ReportedState::Skipped | ReportedState::ExpectedToFail => all.left_out.insert(test.name.clone()),
            };
            if matches!(test.state, ReportedState::Passed | ReportedState::Failed) {
                *all.ran.entry(test.name.clone()).or_default() += 1;
            }
        }
        all.tried_again.retain(|name| !all.failed.contains(name));
        Some(all)
    }

    /// Returns the tests that passed only after a try that failed, and did not do so on the base.
    pub(super) fn tried_again<'t>(&'t self, base: &Self) -> BTreeSet<&'t str> {
        let is_new = |name: &&String| !base.tried_again.contains(*name);
        self.tried_again.iter().filter(is_new).map(String::as_str).collect()
    }

    /// Returns the number of tests that ran; `None` if no runner reported any.
    pub(super) fn ran(&self) -> Option<u64> {
        (!self.ran.is_empty()).then(|| super::sum(&self.ran))
    }

    /// Returns the reason against a step that passed, if its own report contradicts that.
    pub(super) fn contradicts_a_pass(&self) -> Option<&'static str> {
        match (self.broken, self.failed.is_empty()) {
            (1.., _) => Some(CUT_SHORT),
            (0, false) => Some(CONTRADICTORY),
            (0, true) => None,
        }
    }

    /// Returns the reason why these tests fall short of the base's, and the tests that did not run.
    /// Returns `None` if they do not. The step passed if `is_green`.
    pub(super) fn falls_short_of(
        &self,
        base: &Self,
        is_green: bool,
        was_green: bool,
    ) -> Option<(String, MissingTests)> {
        // A step that failed on the base and passes now must end a run that did not end there: code
        // that the tests load may have failed, and may end the process now.
        let broken = if is_green && !was_green { base.broken.saturating_sub(1) } else { base.broken };
        if self.broken > broken {
            return Some((CUT_SHORT.into(), MissingTests::Nothing));
        }
        // A step may ignore failures. Of a step that failed on the base, at least one counted.
        let ignores =
            if was_green { self.failed.is_subset(&base.failed) } else { self.failed.len() < base.failed.len() };
        if is_green && !self.failed.is_empty() && !ignores {
            return Some((CONTRADICTORY.into(), MissingTests::Nothing));
        }
        let changed: BTreeSet<&str> = self.changed.difference(&base.changed).map(String::as_str).collect();
        if !changed.is_empty() {
            let why = format!("the test runner was changed while it ran: {}", some(&changed));
            return Some((why, MissingTests::Changed(owned(&changed))));
        }
        let is_new = |name: &&String| base.ran.contains_key(*name) && !base.left_out.contains(*name);
        let left_out: BTreeSet<&str> = self.left_out.iter().filter(is_new).map(String::as_str).collect();
        if !left_out.is_empty() {
            let why = format!("tests of the base were skipped or expected to fail: {}", some(&left_out));
            return Some((why, MissingTests::Tests(owned(&left_out))));
        }
        let missing = self.missing(base);
        let why = || format!("tests of the base did not run: {}", some(&missing));
        (!missing.is_empty()).then(|| (why(), MissingTests::Tests(owned(&missing))))
    }

    /// Returns the tests of the base that did not run. Values in names may differ from run to run,
    /// so the tests of one function are counted, and named only if some are missing.
    fn missing<'b>(&self, base: &'b Self) -> BTreeSet<&'b str> {
        let (before, now) = (base.by_function(), self.by_function());
        let is_less = |name: &str| {
            let function = function_of(name);
            now.get(&function).copied().unwrap_or(0) < before.get(&function).copied().unwrap_or(0)
        };
        let mut missing: BTreeSet<&str> = BTreeSet::new();
        for (name, times) in &base.ran {
            let has_run = self.ran.get(name).is_some_and(|now| now >= times);
            let is_loaded_now = || file_of(name).is_some_and(|file| self.has_tests_of(file));
            if !has_run && is_less(name) && !is_loaded_now() {
                missing.insert(name);
            }
        }
        missing
    }

    /// Returns the files that ended without a report of a test, and did not pass like that on the
    /// base. Node reports a file itself as a test if the file has no tests, cannot be loaded, or
    /// ends the process.
    pub(super) fn bare_files(&self, base: Option<&Self>) -> BTreeSet<&str> {
        let was_bare = |name: &str| base.is_some_and(|it| it.ran.contains_key(name) && !it.failed.contains(name));
        let names = self.ran.keys().filter(|name| !was_bare(name));
        names.filter_map(|name| file_of(name)).filter(|file| !self.has_tests_of(file)).collect()
    }

    /// Returns the tests that failed, and did not pass later.
    pub(super) fn failed(&self) -> &BTreeSet<String> {
        &self.failed
    }

    /// Returns whether a test of this name ran.
    pub(super) fn has_run(&self, name: &str) -> bool {
        self.ran.contains_key(name)
    }

    /// Returns whether tests of a file are reported, besides the file itself.
    fn has_tests_of(&self, file: &str) -> bool {
        let names = self.ran.keys().chain(&self.left_out);
        names
            .filter(|name| file_of(name).is_none())
            .any(|name| name.split_once(" > ").is_some_and(|(of, _)| of == file))
    }

    /// Returns how often the tests of each function ran.
    fn by_function(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (name, times) in &self.ran {
            *all.entry(function_of(name)).or_default() += u64::from(*times);
        }
        all
    }
}

/// Returns the file of a test that is a file: `a.test.js > a.test.js`.
fn file_of(name: &str) -> Option<&str> {
    name.split_once(" > ").filter(|(file, test)| file == test).map(|(file, _)| file)
}

/// Returns the name of a test without its parameters and values that differ from run to run.
fn function_of(name: &str) -> String {
    stable(name.split('[').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::ReportedTest;
    use ReportedState::{ExpectedToFail, Failed, Passed, Retried, Skipped};

    fn report(tests: &[(&str, ReportedState)]) -> ReportedTests {
        let tests = tests.iter().map(|(name, state)| ReportedTest { name: (*name).into(), state: *state });
        ReportedTests::new(&RunnerReport { tests: tests.collect(), ..RunnerReport::default() }).unwrap()
    }

    fn told(base: &ReportedTests, now: &ReportedTests) -> String {
        now.falls_short_of(base, true, true).map_or_else(String::new, |(why, _)| why)
    }

    #[test]
    fn a_test_of_the_base_that_was_left_out_is_named() {
        let base = report(&[("a", Passed), ("b", Failed), ("c", Skipped)]);
        let skipped = "tests of the base were skipped or expected to fail: b";
        assert_eq!(told(&base, &report(&[("a", Passed), ("b", Skipped), ("new", Passed)])), skipped);
        assert_eq!(told(&base, &report(&[("a", Passed), ("b", ExpectedToFail)])), skipped);
        assert_eq!(told(&base, &report(&[("a", Passed)])), "tests of the base did not run: b");
        assert_eq!(told(&base, &report(&[])), "tests of the base did not run: a, b");
        for honest in
            [&[("b", Passed), ("a", Passed)][..], &[("a", Passed), ("b", Passed), ("c", Passed), ("d", Skipped)]]
        {
            assert_eq!(told(&base, &report(honest)), "");
        }
    }

    #[test]
    fn a_file_that_could_not_be_loaded_on_the_base_is_no_test_of_it() {
        let (unloaded, file) = (report(&[("a.js > a.js", Failed), ("b.js > b", Passed)]), "a.js > a.js");
        let loaded = report(&[("a.js > adds", Passed), ("b.js > b", Passed)]);
        assert_eq!(told(&unloaded, &loaded), "");
        assert_eq!(told(&unloaded, &report(&[("b.js > b", Passed)])), format!("tests of the base did not run: {file}"));
        let ended = report(&[(file, Passed), ("b.js > b", Passed)]);
        assert_eq!(ended.bare_files(Some(&unloaded)), BTreeSet::from(["a.js"]));
        assert_eq!((ended.bare_files(Some(&ended)), loaded.bare_files(None)), (BTreeSet::new(), BTreeSet::new()));
    }

    #[test]
    fn values_in_names_may_differ_and_their_number_may_not_fall() {
        let base =
            report(&[("t[0x7f01]", Passed), ("t[12:04:05]", Passed), ("u@1b2c3d", Passed), ("0.81472 is", Passed)]);
        let other =
            report(&[("t[0x7f02]", Passed), ("t[12:04:09]", Passed), ("u@1b2c3e", Passed), ("0.132345 is", Passed)]);
        assert_eq!(told(&base, &other), "");
        let fewer = report(&[("t[0x7f01]", Passed), ("u@1b2c3e", Passed), ("0.5 is", Passed), ("0.99999 is", Passed)]);
        assert_eq!(told(&base, &fewer), "tests of the base did not run: t[12:04:05]");
    }

    #[test]
    fn failures_behind_a_pass_count_unless_the_base_ignores_them() {
        let [passed, failed] = [Passed, Failed].map(|state| report(&[("a", state)]));
        assert_eq!(told(&passed, &failed), CONTRADICTORY);
        assert_eq!(told(&failed, &failed), "");
        assert_eq!(failed.falls_short_of(&failed, true, false).unwrap().0, CONTRADICTORY);
        assert_eq!(told(&passed, &report(&[("a", Failed), ("a", Passed)])), "", "it was tried again");
        assert_eq!((passed.contradicts_a_pass(), failed.contradicts_a_pass()), (None, Some(CONTRADICTORY)));
    }

    #[test]
    fn a_test_that_passed_after_a_failed_try_is_known() {
        let base = report(&[("a", Passed), ("b", Retried), ("b", Passed), ("c", Passed)]);
        let now = report(&[("a", Retried), ("a", Passed), ("b", Retried), ("b", Passed), ("c", Failed), ("c", Passed)]);
        assert_eq!(now.tried_again(&base), BTreeSet::from(["a", "c"]));
        assert_eq!(told(&base, &now), "");
        assert_eq!(report(&[("a", Retried), ("a", Failed)]).tried_again(&base), BTreeSet::new());
    }

    #[test]
    fn a_run_without_its_end_and_a_changed_runner_are_no_pass() {
        let whole = report(&[("a", Passed)]);
        let broken = ReportedTests { broken: 1, ..whole.clone() };
        assert_eq!((told(&whole, &broken).as_str(), told(&broken, &broken).as_str()), (CUT_SHORT, ""));
        let after_failure = broken.falls_short_of(&broken, true, false);
        assert_eq!(after_failure.map(|(why, _)| why).as_deref(), Some(CUT_SHORT), "the base could not load its tests");
        let changed = ReportedTests { changed: ["runtest in calc.py".to_owned()].into(), ..whole.clone() };
        assert_eq!(told(&whole, &changed), "the test runner was changed while it ran: runtest in calc.py");
        assert_eq!(told(&changed, &changed), "");
    }
}
