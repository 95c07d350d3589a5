//! Dependencies that the work adds and that were not installed for the checks. The output of a step
//! often does not show that cause, so one line names it, with the remedy. Pure.

use super::names::has_name;
use crate::verdict::{StepReport, StepStatus};

/// A dependency that the base did not have: its name, and the manifest that names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AddedDependency {
    pub(super) name: String,
    pub(super) manifest: String,
}

/// Signs, in lower case, that a tool cannot find or fetch something.
#[rustfmt::skip]
const SIGNS: &[&str] = &[
    "no module named", "could not find a version", "cannot find module", "cannot find package", "enotcached", "enotfound", "eai_again",
    "can't find crate", "unresolved import", "no matching package", "failed to get", "failed to download", "failed to load source", "unable to update",
    "no required module", "missing go.sum", "module lookup disabled", "offline", "dial tcp", "could not resolve", "name resolution", "network is unreachable",
];

/// Returns the line about the added dependencies that a failing step misses.
pub(super) fn line(steps: &[StepReport], added: &[AddedDependency]) -> Option<String> {
    let failing = steps.iter().filter(|step| matches!(step.status, StepStatus::Failed | StepStatus::TimedOut));
    let message: Vec<String> = failing.map(|step| step.excerpt.to_lowercase()).collect();
    let is_missed = |added: &&AddedDependency| {
        let name = added.name.to_lowercase();
        let spellings = [name.replace('-', "_"), name];
        let misses = |line: &str| spellings.iter().any(|name| has_name(line, name));
        let signs = |text: &str| SIGNS.iter().any(|sign| text.contains(sign));
        message.iter().any(|text| signs(text) && text.lines().any(misses))
    };
    let missed: Vec<String> =
        added.iter().filter(is_missed).map(|added| format!("`{}` (new in {})", added.name, added.manifest)).collect();
    (!missed.is_empty()).then(|| {
        format!(
            "not installed for the checks: {}; do without, or say at the end what must be installed before the next run",
            missed.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::step_report;

    #[test]
    fn a_new_dependency_that_a_step_misses_is_told_in_a_line_with_what_to_do() {
        let added = |name: &str, manifest: &str| AddedDependency { name: name.into(), manifest: manifest.into() };
        let news =
            [added("rich", "pyproject.toml"), added("left-pad", "web/package.json"), added("serde", "Cargo.toml")];
        let reported = |excerpt: &str| line(&[step_report("pytest", StepStatus::Failed, excerpt)], &news);
        let rich = "not installed for the checks: `rich` (new in pyproject.toml); do without, or say at the end what must be installed before the next run";
        assert_eq!(reported("E   ModuleNotFoundError: No module named 'rich'").as_deref(), Some(rich));
        assert!(
            reported("Error: Cannot find module 'left-pad'").unwrap().contains("`left-pad` (new in web/package.json)")
        );
        assert!(
            reported("error: no matching package named `serde` found").unwrap().contains("`serde` (new in Cargo.toml)")
        );
        for other in ["No module named 'enriched'", "rich is not equal to poor", "Cannot find module './own.js'", ""] {
            assert_eq!(reported(other), None, "{other}");
        }
        assert_eq!(line(&[step_report("pytest", StepStatus::Passed, "No module named 'rich'")], &news), None);
    }
}
