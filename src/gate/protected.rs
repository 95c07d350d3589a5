//! The policy of a workspace, from its files on the disk. It depends on the files of the base, the
//! contents of scripts that lanes name, and the targets of links. [`Policy`] decides which paths
//! are protected.

use super::freeze::GateDefinition;
use super::policy::{Policy, exactly, is_a_test, rules_of_git};
use super::seal::NOT_LOOKED_INTO;
use crate::lane::Lane;
use crate::pattern::PatternError;
use crate::workspace::ProtectedRule;
use ignore::WalkBuilder;
use std::fs;
use std::path::Path;

/// The largest file that is searched for names of other files, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// Returns the policy of a workspace in its current state. Lists the files of the workspace if the
/// definition names none. Protects the targets of protected links too.
///
/// # Errors
/// The first invalid pattern.
pub(super) fn policy(lanes: &[Lane], from: &GateDefinition<'_>) -> Result<Policy, PatternError> {
    let GateDefinition { root, protect, allow_edit, git, .. } = *from;
    let paths = if from.paths.is_empty() { files(root) } else { from.paths.to_vec() };
    let policy = Policy::freeze(paths, lanes, protect, allow_edit, &mut |path| read(&root.join(path)))?;
    let Ok(real_root) = root.canonicalize() else { return Ok(policy) };
    let mut frozen = policy.frozen().clone();
    frozen.rules.splice(0..0, rules_of_git(git, &mut |path| read(&root.join(path))));
    let own = frozen.rules.iter().filter(|rule| !is_a_test(rule));
    let led = own.filter_map(|rule| {
        let path = led_to(&real_root, rule.pattern.strip_prefix('/')?)?;
        Some(ProtectedRule { pattern: exactly(&path), why: rule.why.clone() })
    });
    let led: Vec<ProtectedRule> = led.collect();
    frozen.rules.extend(led);
    Policy::thaw(frozen)
}

/// Returns the files that git would track, without ignored files and without git's own.
fn files(root: &Path) -> Vec<String> {
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).ignore(false).filter_entry(|entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        !(is_folder && entry.depth() > 0 && NOT_LOOKED_INTO.iter().any(|name| entry.file_name() == *name))
    });
    let entries = walk.build().flatten().filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
    entries.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_str()?.to_owned())).collect()
}

/// Returns the content of a file, or `None` if it does not exist. The content of a file that is too
/// large is empty.
fn read(path: &Path) -> Option<Vec<u8>> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(if meta.len() > LARGEST { Vec::new() } else { fs::read(path).unwrap_or_default() })
}

/// Returns the real path of a path that leads to another path in the workspace by links.
fn led_to(root: &Path, path: &str) -> Option<String> {
    let real = root.join(path).canonicalize().ok()?;
    let real = real.strip_prefix(root).ok()?.to_str()?;
    (real != path && !real.is_empty()).then(|| real.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TreeId;
    use crate::lane::parse;
    use crate::workspace::trees::GitPrograms;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn project(step: &str) -> (tempfile::TempDir, Vec<Lane>) {
        let dir = crate::test_support::temp_dir();
        for folder in ["lanes", "scripts", "sub", "tools"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for file in ["scripts/check.sh", "tools/check.sh"] {
            fs::write(dir.path().join(file), "exit 1").unwrap();
        }
        symlink("tools/check.sh", dir.path().join("check.sh")).unwrap();
        (dir, vec![parse("verify", "verify.yaml", &format!("steps: [{{ {step} }}]")).unwrap()])
    }

    fn frozen(lanes: &[Lane], root: &Path) -> Result<Policy, PatternError> {
        let base = TreeId::empty();
        let (names, globs) = (&[][..], &[][..]);
        let from = GateDefinition {
            root,
            origin: root,
            lanes: names,
            holdout: None,
            protect: globs,
            allow_edit: globs,
            path: "",
            base: &base,
            paths: globs,
            git: &GitPrograms { hooks: Some("ci/hooks".into()), ..GitPrograms::default() },
            repository: None,
        };
        policy(lanes, &from)
    }

    #[test]
    fn the_folder_of_git_hooks_is_protected_wherever_it_is() {
        let (dir, lanes) = project("run: 'true'");
        let policy = frozen(&lanes, dir.path()).unwrap();
        assert_eq!(
            policy.rule("ci/hooks/pre-commit").map(|rule| rule.why.as_str()),
            Some("the git configuration refers to it, and git obeys it outside of any sandbox")
        );
        assert!(policy.rule("ci/other").is_none());
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
            let policy = frozen(&lanes, dir.path()).unwrap();
            assert_eq!(policy.rule(path).map(|rule| rule.why.as_str()), Some("a step of the gate names it"), "{step}");
        }
    }

    #[test]
    fn a_module_that_a_step_runs_is_protected_where_it_is_a_check() {
        let dir = crate::test_support::temp_dir();
        fs::create_dir(dir.path().join("qa")).unwrap();
        for file in ["qa/verify.py", "qa/app.py"] {
            fs::write(dir.path().join(file), "print()\n").unwrap();
        }
        for (step, path, is_protected) in [
            ("python3 -m qa.verify", "qa/verify.py", true),
            ("cd qa && python3 -m verify", "qa/verify.py", true),
            ("python3 -m qa.app | grep x", "qa/app.py", false),
        ] {
            let lanes = vec![parse("verify", "verify.yaml", &format!("steps: [{{ run: '{step}' }}]")).unwrap()];
            assert_eq!(frozen(&lanes, dir.path()).unwrap().rule(path).is_some(), is_protected, "{step}");
        }
    }

    #[test]
    fn a_file_that_a_step_only_writes_is_not_what_it_is_judged_by() {
        let dir = crate::test_support::temp_dir();
        fs::write(dir.path().join("sum.txt"), "3").unwrap();
        for (step, is_protected) in [
            ("run: wc -l src.c > sum.txt", false),
            ("run: wc -l src.c 2>&1 >>sum.txt", false),
            ("run: wc -l src.c < sum.txt", true),
            ("run: wc -l src.c > sum.txt && cmp sum.txt x", true),
            ("run: echo '> sum.txt'", true),
        ] {
            let lanes = vec![parse("verify", "verify.yaml", &format!("steps: [{{ {step} }}]")).unwrap()];
            let policy = frozen(&lanes, dir.path()).unwrap();
            assert_eq!(policy.rule("sum.txt").is_some(), is_protected, "{step}");
        }
    }

    #[test]
    fn the_folder_that_a_linked_gate_leads_to_is_protected() {
        let dir = crate::test_support::temp_dir();
        fs::create_dir(dir.path().join("ci")).unwrap();
        symlink("ci", dir.path().join("lanes")).unwrap();
        let policy = frozen(&[], dir.path()).unwrap();
        assert!(policy.rule("ci/check.sh").is_some());
        assert!(policy.rule("src/lib.rs").is_none());
    }
}
