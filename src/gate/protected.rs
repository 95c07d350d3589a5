//! What an agent may not change: which rules there are, and which files of the workspace they and the lanes' commands name.

use crate::lane::Lane;
use crate::workspace::pattern::PatternError;
use crate::workspace::{ProtectedRule, Protection};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// What defines the gate in every project. Patterns match paths that do not exist yet, too.
const BUILT_IN: [(&str, &str); 13] = [
    ("/lanes", "it defines the gate"),
    ("/specs", "it says what the code must do"),
    ("/fledge.yaml", "it configures the gate"),
    ("/fledge.local.yaml", "it configures the gate"),
    ("/fledge.toml", "it defines the gate"),
    ("/.fledge", "it configures the gate"),
    ("/.github", "it defines the continuous integration"),
    ("/.gitlab-ci.yml", "it defines the continuous integration"),
    ("/.gitlab", "it defines the continuous integration"),
    ("/.circleci", "it defines the continuous integration"),
    ("/.ci", "it defines the continuous integration"),
    ("/Jenkinsfile", "it defines the continuous integration"),
    ("/azure-pipelines.yml", "it defines the continuous integration"),
];

/// Why a file that a command names is protected.
const NAMED: &str = "a step of the gate names it";

/// The built-in rules, files that the lanes' commands name, and what the project and the task add; `allow_edit` opens paths
/// again. Where a protected path is a link, what it leads to is protected as well.
///
/// # Errors
/// The first pattern that is none.
pub(super) fn protection(
    lanes: &[Lane],
    root: &Path,
    protect: &[String],
    allow_edit: &[String],
) -> Result<Protection, PatternError> {
    let rule = |pattern: String, why: &str| ProtectedRule { pattern, why: why.into() };
    let exactly = |path: &str, why: &str| rule(format!("/{}", globset::escape(path)), why);
    let mut rules = Vec::new();
    for (pattern, why) in BUILT_IN {
        rules.push(rule(pattern.into(), why));
        rules.extend(led_to(root, pattern.trim_start_matches('/')).map(|path| exactly(&path, why)));
    }
    for path in scripts(lanes, root) {
        rules.push(exactly(&path, NAMED));
        rules.extend(led_to(root, &path).map(|path| exactly(&path, NAMED)));
    }
    rules.extend(protect.iter().map(|pattern| rule(pattern.clone(), "the task or the project says so")));
    Protection::new(rules, allow_edit)
}

/// Where a path really is, when links lead from it to another place in the workspace.
fn led_to(root: &Path, path: &str) -> Option<String> {
    let (root, real) = (root.canonicalize().ok()?, root.join(path).canonicalize().ok()?);
    let real = real.strip_prefix(&root).ok()?.to_str()?;
    (real != path && !real.is_empty()).then(|| real.to_owned())
}

/// Words of the lanes' commands that name a file of the workspace, seen from the root, from the step's folder, and from every
/// folder that the command names.
pub(super) fn scripts(lanes: &[Lane], root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for step in lanes.iter().flat_map(|lane| &lane.steps) {
        let splits = |c: char| c.is_whitespace() || ";|&()<>\"'`=".contains(c);
        let words: Vec<&str> = step.run.split(splits).filter(|word| !word.is_empty()).collect();
        let mut folders = vec![PathBuf::new()];
        folders.extend(step.dir.as_ref().map(PathBuf::from));
        for word in &words {
            for start in folders.clone() {
                let folder = inside(&start.join(word)).filter(|folder| root.join(folder).is_dir());
                folders.extend(folder.filter(|folder| !folders.contains(folder)));
            }
        }
        let places = folders.iter().flat_map(|folder| words.iter().filter_map(|word| inside(&folder.join(word))));
        let files = places.filter(|place| root.join(place).is_file());
        found.extend(files.filter_map(|file| file.to_str().map(ToOwned::to_owned)));
    }
    found
}

/// A relative path without `.` and `..`, when it does not lead outside.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::parse;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn project(step: &str) -> (tempfile::TempDir, Vec<Lane>) {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["lanes", "scripts", "sub", "tools"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for file in ["scripts/check.sh", "tools/check.sh"] {
            fs::write(dir.path().join(file), "exit 1").unwrap();
        }
        symlink("tools/check.sh", dir.path().join("check.sh")).unwrap();
        (dir, vec![parse("verify", "verify.yaml", &format!("steps: [{{ {step} }}]")).unwrap()])
    }

    #[test]
    fn a_script_is_protected_however_the_command_names_it() {
        for (step, path) in [
            ("run: sh scripts/check.sh", "scripts/check.sh"),
            ("run: ./scripts/../scripts/check.sh -v", "scripts/check.sh"),
            ("run: 'cd scripts && ./check.sh'", "scripts/check.sh"),
            ("run: ../scripts/check.sh, dir: sub", "scripts/check.sh"),
            ("run: 'cd sub; cd ../scripts; sh check.sh'", "scripts/check.sh"),
            ("run: ./check.sh", "tools/check.sh"),
        ] {
            let (dir, lanes) = project(step);
            let protection = protection(&lanes, dir.path(), &[], &[]).unwrap();
            assert_eq!(protection.rule(path).map(|rule| rule.why.as_str()), Some(NAMED), "{step}");
        }
    }

    #[test]
    fn the_folder_that_a_linked_gate_leads_to_is_protected() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ci")).unwrap();
        symlink("ci", dir.path().join("lanes")).unwrap();
        let protection = protection(&[], dir.path(), &[], &[]).unwrap();
        assert!(protection.rule("ci/check.sh").is_some());
        assert!(protection.rule("src/lib.rs").is_none());
    }
}
