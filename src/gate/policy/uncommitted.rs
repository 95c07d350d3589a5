//! Files whose content could change what a run does or how it is judged. Pure.

use super::{Policy, ecosystems, manifest, tests_named};

impl Policy {
    /// Returns whether the content of a file could change a verdict. This holds for protected
    /// files, even if the task opens them, for tests and for manifests.
    pub fn decides(&self, path: &str) -> bool {
        self.protection.closed_rule(path).is_some() || tests_named::is_named(path) || manifest::is_one(path)
    }

    /// Returns whether a rule protects a path as a task or a batch.
    pub fn defines_later_runs(&self, path: &str) -> bool {
        self.protection.closed_rule(path).is_some_and(|rule| ecosystems::is_of_tasks(&rule.why))
    }
}
