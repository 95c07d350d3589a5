//! Dependencies that the work adds and that no room has: nothing is fetched there. What a step says of that is often far from the cause,
//! so it is said in one line, with what is to be done. Pure.

use crate::verdict::{StepReport, StepStatus};

/// A dependency that the base did not have: its name, and the manifest that names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Added {
    pub(super) name: String,
    pub(super) manifest: String,
}

/// What tools say, in small letters, of what they cannot find or fetch.
#[rustfmt::skip]
const SIGNS: &[&str] = &[
    "no module named", "could not find a version", "cannot find module", "cannot find package", "enotcached", "enotfound", "eai_again",
    "can't find crate", "unresolved import", "no matching package", "failed to get", "failed to download", "failed to load source", "unable to update",
    "no required module", "missing go.sum", "module lookup disabled", "offline", "dial tcp", "could not resolve", "name resolution", "network is unreachable",
];

/// The line on those that a failing step misses; nothing where none does.
pub(super) fn line(steps: &[StepReport], added: &[Added]) -> Option<String> {
    let failing = steps.iter().filter(|step| matches!(step.status, StepStatus::Failed | StepStatus::TimedOut));
    let said: Vec<String> = failing.map(|step| step.excerpt.to_lowercase()).collect();
    let is_missed = |added: &&Added| {
        let name = added.name.to_lowercase();
        let spellings = [name.replace('-', "_"), name];
        let misses = |line: &str| spellings.iter().any(|name| has_word(line, name));
        let signs = |text: &str| SIGNS.iter().any(|sign| text.contains(sign));
        said.iter().any(|text| signs(text) && text.lines().any(misses))
    };
    let missed: Vec<String> =
        added.iter().filter(is_missed).map(|added| format!("`{}` (new in {})", added.name, added.manifest)).collect();
    (!missed.is_empty()).then(|| {
        format!(
            "not in the room of the checks, which fetches nothing: {}; do without, or somebody adds it to the project and installs it before the run",
            missed.join(", ")
        )
    })
}

/// Whether a name stands in a line by itself.
fn has_word(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let alone = |start: usize| {
        let (before, after) = (&line[..start], &line[start + name.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    };
    !name.is_empty() && line.match_indices(name).any(|(start, _)| alone(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(status: StepStatus, excerpt: &str) -> StepReport {
        StepReport {
            lane: "verify".into(),
            step: "test".into(),
            command: "pytest".into(),
            status,
            tries: 1,
            exit_code: None,
            signal: None,
            duration_ms: 0,
            log: None,
            excerpt: excerpt.into(),
            note: String::new(),
            tests: None,
        }
    }

    #[test]
    fn a_new_dependency_that_a_step_misses_is_told_in_a_line_with_what_to_do() {
        let added = |name: &str, manifest: &str| Added { name: name.into(), manifest: manifest.into() };
        let news =
            [added("rich", "pyproject.toml"), added("left-pad", "web/package.json"), added("serde", "Cargo.toml")];
        let told = |excerpt: &str| line(&[step(StepStatus::Failed, excerpt)], &news);
        let rich = "not in the room of the checks, which fetches nothing: `rich` (new in pyproject.toml); do without, or somebody adds it to the project and installs it before the run";
        assert_eq!(told("E   ModuleNotFoundError: No module named 'rich'").as_deref(), Some(rich));
        assert!(told("Error: Cannot find module 'left-pad'").unwrap().contains("`left-pad` (new in web/package.json)"));
        assert!(
            told("error: no matching package named `serde` found").unwrap().contains("`serde` (new in Cargo.toml)")
        );
        for other in ["No module named 'enriched'", "rich is not equal to poor", "Cannot find module './own.js'", ""] {
            assert_eq!(told(other), None, "{other}");
        }
        assert_eq!(line(&[step(StepStatus::Passed, "No module named 'rich'")], &news), None);
    }
}
