//! Files whose content could change what a run does or how it is judged. Pure.

use super::{Policy, ecosystems, manifest, tests_named};

impl Policy {
    /// Returns whether another content of this file could change a verdict: whether it is protected, opened or not, a test, or a manifest.
    pub fn decides(&self, path: &str) -> bool {
        self.protection.closed_rule(path).is_some() || tests_named::is_named(path) || manifest::is_one(path)
    }

    /// Returns whether a path is protected as that of a task or a batch.
    pub fn defines_later_runs(&self, path: &str) -> bool {
        self.protection.closed_rule(path).is_some_and(|rule| ecosystems::is_of_tasks(&rule.why))
    }
}
