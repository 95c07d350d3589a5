//! Notes: changes that the rules allow but that people should look at. Also whether the content of
//! a file could change what a run does or how it is judged. Pure.

use super::named::SOURCED;
use super::{PathChange, PathChangeKind, Policy, TreeSide, ci, ecosystems, loaded_by_tests, manifest};
use super::{tests_named, unused, unused_parts};
use crate::gate::locks;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the files whose change is noted, each with the reason: files that only the CI names,
/// files that tests name, and libraries that checks read.
pub(super) fn noted(
    of_ci: BTreeSet<String>,
    of_tests: impl Iterator<Item = String>,
    named: &BTreeMap<String, &'static str>,
) -> BTreeMap<String, String> {
    let of_ci = of_ci.into_iter().map(|path| (path, ci::NAMED));
    let of_tests = of_tests.map(|path| (path, loaded_by_tests::DATA));
    let sourced = named.iter().filter(|(_, why)| **why == SOURCED).map(|(path, why)| (path.clone(), *why));
    of_ci.chain(of_tests).chain(sourced).map(|(path, why)| (path, why.to_owned())).collect()
}

impl Policy {
    /// Returns a line for each change that `allow_edit` permits, and for each change that cannot be
    /// judged by path or section.
    pub fn notes(&self, changes: &[PathChange]) -> Vec<String> {
        let mut notes = Vec::new();
        for PathChange { path, kind } in changes {
            let is_judged = manifest::is_one(path) || locks::reads(path);
            let is_protected = self.protection.closed_rule(path).is_some() || is_judged;
            if self.opened.fit(path) && is_protected {
                notes.push(format!("allow_edit: {path} {}", kind.word()));
            } else if self.rule(path).is_none() {
                let why = ecosystems::reported(path).or_else(|| self.frozen.noted.get(path).map(String::as_str));
                notes.extend(why.map(|why| format!("{path} {}: {why}", kind.word())));
            }
        }
        notes
    }

    /// Returns a line for each change that concerns only unused parts: the configuration of a tool
    /// that no command of the base names, or an unused target or environment.
    pub fn unused_notes(
        &self,
        changes: &[PathChange],
        mut contents: impl FnMut(&str, TreeSide) -> Option<Vec<u8>>,
    ) -> Vec<String> {
        let (unused, mut notes) = (&self.frozen.unused, Vec::new());
        for change @ PathChange { path, kind } in changes.iter().filter(|change| !self.opened.fit(&change.path)) {
            let parts = self.changed_parts(change, &mut contents).filter(|parts| !parts.is_empty());
            notes.extend(
                parts.map(|parts| format!("{path} {}: {}, {}", kind.word(), parts.join(", "), unused_parts::WHY)),
            );
            let of_file = unused::of_file(unused, path).filter(|_| self.rule(path).is_none());
            notes.extend(of_file.map(|tool| format!("{path} {}: it configures {tool}, {}", kind.word(), unused::WHY)));
            if manifest::is_one(path) && *kind != PathChangeKind::ModeChanged {
                let told = self.in_manifest(path, *kind, &mut contents);
                let of_section = |told: &String| {
                    let tool = unused::of_section(unused, told)?;
                    Some(format!("{path}: {}: it configures {tool}, {}", told.split_once(": ")?.0, unused::WHY))
                };
                notes.extend(told.iter().filter_map(of_section));
            }
        }
        notes
    }

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
