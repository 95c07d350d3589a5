//! Comparison of a gate run with the base: shortfalls, and notes on counts of tests. Pure.

use super::Evidence;
use std::collections::BTreeSet;
use std::fmt;

/// What a step showed less than on the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gate) struct Shortfall {
    /// Lane and step.
    pub(super) step: String,
    pub(super) why: String,
    /// What did not run.
    pub(in crate::gate) gone: Gone,
}

/// What of the base's tests did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gate) enum Gone {
    /// Tests, by name.
    Tests(BTreeSet<String>),
    /// Packages of Go.
    Packages(BTreeSet<String>),
    /// So many tests; which ones is not known.
    Count(u64),
    /// No test: what ran is contradictory.
    Nothing,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.why)
    }
}

impl Evidence {
    /// Returns a note for people where the number of tests differs from the base's, and the work, which adds `added` tests, does not explain it.
    pub(in crate::gate) fn strange_count(&self, base: &Self, added: u64) -> Option<String> {
        let (before, now) = (base.ran()?, self.ran()?);
        let failed = if base.steps.values().all(|shown| shown.is_green) { "" } else { ", where a step failed" };
        match now {
            _ if before == 0 => None,
            now if now < before => {
                Some(format!("fewer tests were counted than on the base{failed}: {now}, there {before}"))
            }
            now if now > before.saturating_add(added) => Some(format!(
                "more tests were counted than on the base{failed}: {now}, there {before}, and the work adds {added}"
            )),
            _ => None,
        }
    }

    /// Returns a note for people where more tests were skipped than on the base. They may be new ones, or tests of the base that the work skips.
    pub(in crate::gate) fn more_skipped(&self, base: &Self) -> Option<String> {
        let sum = |all: &Self| all.steps.values().map(|shown| shown.printed.skipped()).fold(0, u64::saturating_add);
        let (now, there) = (sum(self), sum(base));
        (now > there).then(|| format!("more tests were skipped than on the base: {now}, there {there}"))
    }
}
