//! The files that a later run of the project reads before it judges anything. An agent that writes
//! them controls that run, so each run restores them at its end, even after a failure.

use super::Gate;
use super::kept::ThawError;
use super::seal::Seal;
use crate::lane_files::{CONFIGURATION, CONFIGURATION_FOLDERS};
use crate::process::sandbox::SandboxKind;
use crate::verdict::TamperFinding;
use std::fs;
use std::path::Path;

/// The result of restoring the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredConfiguration {
    /// The files that had been added, changed or removed, sorted.
    pub findings: Vec<TamperFinding>,
    /// The files that could not be put back or set aside, each with the reason.
    pub left: Vec<String>,
}

/// Restores the configuration of a workspace from its kept gate. Also restores the files that tell
/// git which programs to run, where the agent could write them. Keeps the replaced files below
/// `backup`. Paths that `allow_edit` opens stay unchanged.
///
/// # Errors
/// When the bytes are not those of a gate.
pub fn put_back(
    kept: &[u8],
    root: &Path,
    allow_edit: &[String],
    backup: &Path,
) -> Result<RestoredConfiguration, ThawError> {
    let Gate { seal, sandbox, .. } = Gate::thaw(kept, root, allow_edit)?;
    let places: Vec<&str> = CONFIGURATION.into_iter().chain(CONFIGURATION_FOLDERS).collect();
    let findings = seal.caused_in(sandbox.unwrap_or(SandboxKind::Off), seal.inspect_in(&places));
    let mut left = Vec::new();
    if !findings.is_empty() {
        left = seal.set_aside(&findings, backup);
        left.extend(seal.restore(&findings, backup));
    }
    tidy(&seal);
    Ok(RestoredConfiguration { findings, left })
}

/// Removes empty folders with the name of a configuration file that did not exist before, because
/// no run could read them as a file.
fn tidy(seal: &Seal) {
    for name in CONFIGURATION.iter().filter(|name| seal.protection.rule(name).is_some()) {
        if !seal.files.contains_key(Path::new(name)) {
            let _it_is_no_empty_folder = fs::remove_dir(seal.root.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{GateDefinition, freeze};
    use crate::id::TreeId;
    use crate::workspace::trees::GitPrograms;

    fn found(put_back: &RestoredConfiguration) -> Vec<String> {
        put_back.findings.iter().map(|finding| format!("{} {}", finding.change, finding.path)).collect()
    }

    #[test]
    fn what_later_runs_read_is_put_back_and_what_was_there_is_set_aside() {
        let (dir, backup) = (crate::test_support::temp_dir(), crate::test_support::temp_dir());
        let root = dir.path();
        let put = |path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        };
        put("fledge.yaml", "sandbox: required\n");
        put("lanes/verify.yaml", "steps: [{ run: 'true' }]\n");
        put("src/a.rs", "old");
        put(".git/HEAD", "ref: refs/heads/main");
        put(".git/config", "[core]");
        let (base, lanes) = (TreeId::empty(), ["verify".to_owned()]);
        let (protect, allow_edit): (&[String], &[String]) = (&[], &["lanes/open.yaml".into()]);
        let from = GateDefinition {
            root,
            origin: root,
            lanes: &lanes,
            holdout: None,
            protect,
            allow_edit,
            path: "/bin",
            base: &base,
            paths: &[],
            git: &GitPrograms::default(),
            repository: None,
        };
        let kept = freeze(from, None).unwrap().keep(SandboxKind::Off);
        let again = || put_back(&kept, root, allow_edit, backup.path()).unwrap();
        assert_eq!(again(), RestoredConfiguration::default());
        put("fledge.yaml", "sandbox: off\n");
        put("fledge.local.yaml", "hooks: { post_tools: [evil] }\n");
        put("lanes/verify.yaml", "steps: [{ run: 'exit 0' }]\n");
        put("lanes/open.yaml", "steps: [{ run: 'true' }]\n");
        put(".fledge/lanes/more.yaml", "steps: [{ run: 'true' }]\n");
        put("src/a.rs", "new");
        put(".git/config", "[core]\nfsmonitor = evil");
        put(".git/hooks/pre-commit", "evil");
        fs::create_dir(root.join("fledge.toml")).unwrap();
        let done = again();
        assert_eq!(
            found(&done),
            [
                "added .fledge/lanes/more.yaml",
                "changed .git/config",
                "added .git/hooks/pre-commit",
                "added fledge.local.yaml",
                "changed fledge.yaml",
                "changed lanes/verify.yaml"
            ]
        );
        assert_eq!(done.left, [""; 0]);
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        assert_eq!(text("fledge.yaml").as_deref(), Some("sandbox: required\n"));
        assert_eq!(text("lanes/verify.yaml").as_deref(), Some("steps: [{ run: 'true' }]\n"));
        assert_eq!((text("src/a.rs").as_deref(), text("lanes/open.yaml").is_some()), (Some("new"), true));
        assert!(!root.join("fledge.local.yaml").exists() && !root.join("fledge.toml").exists());
        let kept_aside = fs::read_to_string(backup.path().join("fledge.local.yaml")).unwrap();
        assert_eq!(kept_aside, "hooks: { post_tools: [evil] }\n");
        assert_eq!((text(".git/config").as_deref(), text(".git/hooks/pre-commit")), (Some("[core]"), None));
        assert_eq!(again(), RestoredConfiguration::default());
        // Behind bubblewrap no agent writes there, so the difference is the user's own.
        let kept = Gate::thaw(&kept, root, allow_edit).unwrap().keep(SandboxKind::Bubblewrap);
        put(".git/config", "[user]");
        assert_eq!(put_back(&kept, root, allow_edit, backup.path()).unwrap(), RestoredConfiguration::default());
        assert_eq!(text(".git/config").as_deref(), Some("[user]"));
    }

    #[test]
    fn a_link_or_a_folder_in_the_place_of_a_file_is_replaced_and_never_followed() {
        let (dir, backup) = (crate::test_support::temp_dir(), crate::test_support::temp_dir());
        let (root, outside) = (dir.path().join("w"), dir.path().join("outside"));
        fs::create_dir_all(root.join("lanes")).unwrap();
        fs::write(root.join("lanes/verify.yaml"), "steps: [{ run: 'true' }]\n").unwrap();
        fs::write(&outside, "stays").unwrap();
        let (base, lanes, none) = (TreeId::empty(), ["verify".to_owned()], &[][..]);
        let from = GateDefinition {
            root: &root,
            origin: &root,
            lanes: &lanes,
            holdout: None,
            protect: none,
            allow_edit: none,
            path: "/bin",
            base: &base,
            paths: &[],
            git: &GitPrograms::default(),
            repository: None,
        };
        let kept = freeze(from, None).unwrap().keep(SandboxKind::Off);
        std::os::unix::fs::symlink(&outside, root.join("fledge.yaml")).unwrap();
        fs::remove_file(root.join("lanes/verify.yaml")).unwrap();
        fs::create_dir(root.join("lanes/verify.yaml")).unwrap();
        fs::write(root.join("lanes/verify.yaml/x"), "x").unwrap();
        let done = put_back(&kept, &root, none, backup.path()).unwrap();
        assert_eq!(done.left, [""; 0]);
        assert_eq!(found(&done), ["added fledge.yaml", "removed lanes/verify.yaml", "added lanes/verify.yaml/x"]);
        assert!(root.join("fledge.yaml").symlink_metadata().is_err());
        assert_eq!(fs::read_to_string(root.join("lanes/verify.yaml")).unwrap(), "steps: [{ run: 'true' }]\n");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "stays");
    }
}
