//! Evidence beside exit codes: the tests that ran. A gate run must run at least the tests that the
//! same lanes ran on the base. Otherwise a check could pass because it checks less. Pure.
//!
//! Tests are known by name if a step names a machine report, if Maven or Gradle wrote reports, or
//! if a runner reported its tests to fledge. fledge also counts tests in the output of common
//! runners, and reads names where runners print them. The code under test can forge output, so
//! output only ever counts against a pass.

mod blocks;
mod counts;
mod failed;
mod formats;
mod go;
mod names;
mod printed;
mod reported;
mod runners;
mod shortfall;
mod tap;

pub(super) use printed::PrintedCounts;
pub(super) use shortfall::{MissingTests, Shortfall};

use crate::lane::CanaryTerms;
use crate::lane_runner::{JunitReport, RunnerReport};
use crate::verdict::TestStatus;
use names::stable;
use reported::ReportedTests;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of missing tests or packages that a message names.
const NAMED: usize = 10;

/// The reason of a failure if test runners found no tests.
pub(super) const NO_TESTS: &str =
    "no test ran: the test runners found none; add a test, or remove their steps from the lane";

/// The reason against a step whose test program ended before its tests.
pub(super) const CUT_SHORT: &str = "a test program ended before its tests did";
/// The reason against a step that passed although its tests failed.
const CONTRADICTORY: &str = "the step passed although its test output reports failures";

/// The evidence of a gate run, by lane and step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Evidence {
    steps: BTreeMap<String, StepEvidence>,
}

/// The evidence of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepEvidence {
    /// The tests of the step's machine report that ran, and how often each ran; `None` without a
    /// report.
    named: Option<BTreeMap<String, u32>>,
    /// The lane names no report, and the step's builds wrote some.
    is_found: bool,
    /// The tests that runners reported to fledge; `None` without reporters.
    reported: Option<ReportedTests>,
    /// The counts from the step's output.
    printed: PrintedCounts,
    /// The step passed.
    is_green: bool,
}

impl StepEvidence {
    /// Combines the step's report, if the lane names one, with the counts from the step's output.
    /// If the lane names no report, `found` holds the reports that builds wrote.
    pub(super) fn new(
        report: Option<&JunitReport>,
        found: Option<&JunitReport>,
        printed: PrintedCounts,
        is_green: bool,
    ) -> Self {
        let named = report.or(found).map(|read| {
            let mut named = BTreeMap::new();
            for case in read.cases.iter().filter(|case| case.status != TestStatus::Skipped) {
                let name = format!("{} {}", case.suite, case.name);
                // Names in a report that the lane names are compared unchanged.
                let name = if report.is_some() { name.trim().to_owned() } else { stable(name.trim()) };
                *named.entry(name).or_default() += 1;
            }
            named
        });
        Self { named, is_found: report.is_none() && found.is_some(), reported: None, printed, is_green }
    }

    /// Adds the tests that runners reported to fledge.
    pub(super) fn with_reported(self, report: Option<&RunnerReport>) -> Self {
        Self { reported: report.and_then(ReportedTests::new), ..self }
    }

    /// Returns the number of tests that ran, if known.
    fn ran(&self) -> Option<u64> {
        match &self.named {
            Some(named) if !self.is_found => Some(sum(named)),
            named => named.as_ref().map(sum).max(self.printed.ran()).or_else(|| self.ran_by_report()),
        }
    }

    /// Returns the number of tests that runners reported as run; `None` if they reported none.
    fn ran_by_report(&self) -> Option<u64> {
        self.reported.as_ref().and_then(ReportedTests::ran)
    }

    /// Returns the number of tests that ran and are known by name.
    fn named(&self) -> u64 {
        let named = self.named.as_ref().map_or(0, sum).max(self.ran_by_report().unwrap_or(0));
        named.max(self.printed.names().count()).min(self.ran().unwrap_or(0))
    }

    /// Returns the reason why this evidence falls short of the base's, and the tests that did not
    /// run. Returns `None` if it does not. `lane` holds the tests of the reports that any step of
    /// the lane wrote, because parallel builds find each other's reports.
    fn falls_short_of(&self, base: &Self, lane: &BTreeMap<String, u32>) -> Option<(String, MissingTests)> {
        if self.printed.breaks_off(&base.printed) {
            return Some((CUT_SHORT.into(), MissingTests::Nothing));
        }
        let cut_short = self.printed.cut_short(Some(&base.printed));
        if !cut_short.is_empty() {
            return Some((format!("{CUT_SHORT}: {}", some(&cut_short)), MissingTests::Nothing));
        }
        // Tests of test runners print summaries with failures, so only failures beyond those of the
        // base count.
        let before = if base.is_green { base.printed.failed() } else { base.printed.failed().saturating_sub(1) };
        if self.is_green && self.printed.failed() > before {
            return Some((CONTRADICTORY.into(), MissingTests::Nothing));
        }
        // The last summary of a program is the program's own, so its failures count, also where the
        // base passed with failures: a pipe such as `go test ./... | cat` hides the exit code.
        if self.is_green && self.printed.ends_failed() {
            return Some((CONTRADICTORY.into(), MissingTests::Nothing));
        }
        if let (Some(now), Some(before)) = (&self.reported, &base.reported)
            && let Some(short) = now.falls_short_of(before, self.is_green, base.is_green)
        {
            return Some(short);
        }
        // Without `-v`, Go names failing tests only, so its packages show that tests ran.
        let has_run = self.ran().is_some_and(|ran| ran > 0) || !self.printed.packages().is_empty();
        let gone = self.printed.names().missing(base.printed.names(), base.is_green, has_run);
        if !gone.is_empty() {
            return Some((
                format!("tests of the base did not run: {}", some(&gone)),
                MissingTests::Tests(owned(&gone)),
            ));
        }
        let untested: BTreeSet<&str> =
            base.printed.packages().difference(self.printed.packages()).map(String::as_str).collect();
        if !untested.is_empty() {
            let why = format!("packages of the base were not tested: {}", some(&untested));
            return Some((why, MissingTests::Packages(owned(&untested))));
        }
        if let Some(named) = &base.named {
            let none = BTreeMap::new();
            let now = if base.is_found { lane } else { self.named.as_ref().unwrap_or(&none) };
            let is_missing = |(name, count): &(&String, &u32)| now.get(*name).copied().unwrap_or(0) < **count;
            let missing: BTreeSet<&str> = named.iter().filter(is_missing).map(|(name, _)| name.as_str()).collect();
            if !missing.is_empty() {
                let why = format!("tests of the base did not run: {}", some(&missing));
                return Some((why, MissingTests::Tests(owned(&missing))));
            }
            if !base.is_found {
                return None;
            }
        }
        let (before, now) = (base.ran()?, self.ran().unwrap_or(0));
        // Runners print the output of failing tests, which may include sums of other runners. So
        // the sum of a failed step is unreliable, except for Rust's test programs.
        let (before, now) = match (base.is_green, base.printed.own(), self.printed.own()) {
            (false, Some(before), Some(now)) => (before, now),
            // If more tests are skipped, a test that failed on the base may be among them.
            (false, ..) if now > 0 => {
                let (skipped, there) = (self.printed.skipped(), base.printed.skipped());
                let why = || format!("more tests were skipped than on the base: {skipped} instead of {there}");
                return (skipped > there).then(|| (why(), MissingTests::Count(skipped - there)));
            }
            _ => (before, now),
        };
        (now < before).then(|| {
            (format!("fewer tests ran than on the base: {now} of {before}"), MissingTests::Count(before - now))
        })
    }
}

impl Evidence {
    /// Adds the evidence of a step.
    pub(super) fn add(&mut self, lane: &str, step: &str, shown: StepEvidence) {
        self.steps.insert(format!("{lane}/{step}"), shown);
    }

    /// Returns the number of tests that ran in all steps. `None` if no step counts tests, or if Go
    /// only reports packages without counts.
    pub(super) fn ran(&self) -> Option<u64> {
        let ran = self.steps.values().filter_map(StepEvidence::ran).reduce(|all, more| all.saturating_add(more));
        ran.filter(|ran| *ran > 0 || self.steps.values().all(|step| step.printed.packages().is_empty()))
    }

    /// Returns whether a step ran tests, as far as fledge reads its runner.
    pub(super) fn has_tests(&self, lane: &str, step: &str) -> bool {
        let shown = self.steps.get(&format!("{lane}/{step}"));
        shown.is_some_and(|shown| shown.ran().is_some() || !shown.printed.packages().is_empty())
    }

    /// Returns the failed tests that runners reported to fledge.
    pub(super) fn failed_tests(&self) -> impl Iterator<Item = &String> {
        self.steps.values().filter_map(|shown| shown.reported.as_ref()).flat_map(ReportedTests::failed)
    }

    /// Returns whether a test ran, by its name; `None` if no runner reported names to fledge.
    pub(super) fn has_run(&self, name: &str) -> Option<bool> {
        let mut reported = self.steps.values().filter_map(|shown| shown.reported.as_ref()).peekable();
        let is_known = reported.peek().is_some_and(|first| first.ran().is_some());
        is_known.then(|| reported.any(|reported| reported.has_run(name)))
    }

    /// Returns the kinds of tests that a step ran, as far as its output shows them.
    pub(super) fn kinds(&self, lane: &str, step: &str) -> BTreeSet<CanaryTerms> {
        self.steps.get(&format!("{lane}/{step}")).map_or_else(BTreeSet::new, |shown| shown.printed.kinds())
    }

    /// Returns the files that ended without a report of a test, and did not pass like that on the
    /// base.
    pub(super) fn bare_files(&self, base: Option<&Self>) -> BTreeSet<&str> {
        let of_base = |step: &str| base.and_then(|base| base.steps.get(step)?.reported.as_ref());
        let reported = self.steps.iter().filter_map(|(step, shown)| Some((step, shown.reported.as_ref()?)));
        reported.flat_map(|(step, reported)| reported.bare_files(of_base(step))).collect()
    }

    /// Returns the number of tests that are known by name. fledge looks for each named test of the
    /// base.
    pub(super) fn named(&self) -> u64 {
        self.steps.values().map(StepEvidence::named).fold(0, u64::saturating_add)
    }

    /// Returns whether a test runner printed a summary and no step ran a test.
    pub(super) fn is_without_tests(&self) -> bool {
        self.ran() == Some(0)
    }

    /// Returns a message about a step that passed although its tests failed or were cut short. It
    /// is for gate runs without a base.
    pub(super) fn contradiction(&self) -> Option<String> {
        let why = |shown: &StepEvidence| match (shown.printed.ends_failed(), shown.printed.cut_short(None)) {
            (true, _) => Some(CONTRADICTORY.to_owned()),
            (false, cut) if cut.is_empty() => shown.reported.as_ref()?.contradicts_a_pass().map(str::to_owned),
            (false, cut) => Some(format!("{CUT_SHORT}: {}", some(&cut))),
        };
        let mut green = self.steps.iter().filter(|(_, shown)| shown.is_green);
        green.find_map(|(step, shown)| Some(format!("{step}: {}", why(shown)?)))
    }

    /// Returns each step with less evidence than on the base, and the reason.
    pub(super) fn shortfalls(&self, base: &Self) -> Vec<Shortfall> {
        let short = |(step, base): (&String, &StepEvidence)| {
            let now = self.steps.get(step).cloned().unwrap_or_default();
            let reported = now.falls_short_of(base, &self.found_beside(step));
            reported.map(|(why, gone)| Shortfall { step: step.clone(), why, gone })
        };
        base.steps.iter().filter_map(short).collect()
    }

    /// Returns the tests of the reports that the lane does not name and that its steps wrote, with
    /// the highest count of each. The lane is that of `step`.
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
mod tests;
