//! Evidence beside exit codes: which tests ran. A gate run must have run at least what the same lanes ran on the base, so that a check
//! which passes because it checks less does not pass. Pure.
//!
//! Where a step names a machine report, or Maven or Gradle wrote some, its tests are known by name. Else what the common runners print
//! is counted, and named where they print names; such text can be forged by the code under test, so it can only ever speak against a pass.

mod blocks;
mod counts;
mod formats;
mod go;
mod names;
mod printed;
mod runners;
mod shortfall;
mod tap;

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
        if self.printed.breaks_off(&base.printed) {
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
mod tests;
