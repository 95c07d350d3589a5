//! Comparison of a gate run with the base: shortfalls, and notes on counts of tests. Pure.

use super::reported::ReportedTests;
use super::{Evidence, some};
use crate::lane::{CanaryTerms, Lane, Step};
use std::collections::BTreeSet;
use std::fmt;

/// A step with less evidence than on the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gate) struct Shortfall {
    /// The lane and the step, as `LANE/STEP`.
    pub(super) step: String,
    pub(super) why: String,
    /// The tests that did not run.
    pub(in crate::gate) gone: MissingTests,
}

/// The tests of the base that did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gate) enum MissingTests {
    /// Tests, by name.
    Tests(BTreeSet<String>),
    /// Packages of Go.
    Packages(BTreeSet<String>),
    /// A number of tests whose names are unknown.
    Count(u64),
    /// Functions of a test runner that were replaced, and hooks that were added, each as
    /// `NAME in FILE`.
    Changed(BTreeSet<String>),
    /// No tests: the evidence is contradictory or cut short.
    Nothing,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.why)
    }
}

/// Options with which runners pass without a test.
const PERMITS_NONE: [&str; 4] = ["--passWithNoTests", "--pass-with-no-tests", "--permit-no-files", "--no-tests=ignore"];

impl Evidence {
    /// Returns a message for each step of a lane that passed although its test runner found no
    /// test, unless its command permits that. Cargo prints a summary for each of its targets, also
    /// for those without tests.
    pub(in crate::gate) fn empty_steps(&self, lane: &Lane) -> Vec<String> {
        let is_empty = |step: &&Step| {
            let Some(shown) = self.steps.get(&format!("{}/{}", lane.name, step.name)) else { return false };
            let is_cargo = shown.printed.kinds().contains(&CanaryTerms::CargoTest);
            let has_none = shown.ran() == Some(0) && shown.printed.packages().is_empty() && !is_cargo;
            let is_meant = shown.printed.permits_none() || shown.printed.skipped() > 0;
            shown.is_green && has_none && !is_meant && !PERMITS_NONE.iter().any(|flag| step.run.contains(flag))
        };
        let message = |step: &Step| {
            format!("{}/{}: its test runner found no test; add one, or remove the step", lane.name, step.name)
        };
        lane.steps.iter().filter(is_empty).map(message).collect()
    }

    /// Returns a note for people if the number of tests differs from the base's and the work does
    /// not explain it. The work adds `added` tests.
    pub(in crate::gate) fn strange_count(&self, base: &Self, added: u64) -> Option<String> {
        let (before, now) = (base.ran()?, self.ran()?);
        let failed = if base.steps.values().all(|shown| shown.is_green) { "" } else { ", where a step failed" };
        match now {
            _ if before == 0 => None,
            now if now < before => {
                Some(format!("fewer tests were counted than on the base{failed}: {now} instead of {before}"))
            }
            now if now > before.saturating_add(added) => Some(format!(
                "more tests were counted than on the base{failed}: {now} instead of {before}; the work adds {added}"
            )),
            _ => None,
        }
    }

    /// Returns a note for people about tests that passed only after a try that failed, and did not
    /// do so on the base.
    pub(in crate::gate) fn tried_again(&self, base: &Self) -> Option<String> {
        let none = ReportedTests::default();
        let names: BTreeSet<&str> = self
            .steps
            .iter()
            .flat_map(|(step, shown)| {
                let before = base.steps.get(step).and_then(|shown| shown.reported.as_ref()).unwrap_or(&none);
                shown.reported.iter().flat_map(move |now| now.tried_again(before))
            })
            .collect();
        (!names.is_empty()).then(|| format!("tests passed only when they were tried again: {}", some(&names)))
    }

    /// Returns a note for people if more tests were skipped than on the base. They may be new
    /// tests, or tests of the base that the work skips.
    pub(in crate::gate) fn more_skipped(&self, base: &Self) -> Option<String> {
        let sum = |all: &Self| all.steps.values().map(|shown| shown.printed.skipped()).fold(0, u64::saturating_add);
        let (now, there) = (sum(self), sum(base));
        (now > there).then(|| format!("more tests were skipped than on the base: {now} instead of {there}"))
    }
}
