//! What a gate run showed less than the base. Pure.

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
