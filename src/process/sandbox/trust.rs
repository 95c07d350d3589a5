//! The trust of mise in the configuration of a project, for a copy of the project at another path.

use crate::process::Variables;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that names folders in which mise trusts all configuration.
const TRUSTED: &str = "MISE_TRUSTED_CONFIG_PATHS";

/// Returns variables with which mise trusts in a copy of a project what it trusts in the project.
/// mise records trust by path, and refuses other configuration that sets variables.
#[must_use]
pub fn trusted_in_copy(env: &Variables, project: &Path, copy: &Path) -> Variables {
    let moved = |below: &Path| if below.as_os_str().is_empty() { copy.to_owned() } else { copy.join(below) };
    let named: Vec<PathBuf> = env.get(TRUSTED).into_iter().flat_map(std::env::split_paths).collect();
    let whole = named.iter().any(|folder| project.starts_with(folder)).then(|| copy.to_owned());
    let parts = named.iter().filter_map(|path| path.strip_prefix(project).ok().map(moved));
    let linked = linked(env).into_iter().filter_map(|path| path.strip_prefix(project).ok().map(moved));
    let mut all: Vec<PathBuf> = whole.into_iter().chain(parts).chain(linked).collect();
    all.sort();
    all.dedup();
    if all.is_empty() {
        return env.clone();
    }
    all.extend(named.iter().cloned());
    let all = all.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(":");
    env.with([(&TRUSTED.to_owned(), &all)])
}

/// Returns the folders and files that `mise trust` has recorded as links.
fn linked(env: &Variables) -> Vec<PathBuf> {
    let absolute = |name: &str| env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("MISE_STATE_DIR")
        .or_else(|| Some(absolute("XDG_STATE_HOME")?.join("mise")))
        .or_else(|| Some(absolute("HOME")?.join(".local/state/mise")));
    let links = state.and_then(|state| fs::read_dir(state.join("trusted-configs")).ok());
    links.into_iter().flatten().flatten().filter_map(|link| link.path().canonicalize().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_trusted_where_the_project_is_and_no_more() {
        let folder = crate::test_support::temp_dir();
        let root = folder.path().canonicalize().unwrap();
        let [state, project] = ["home/.local/state/mise/trusted-configs", "work/project"].map(|path| root.join(path));
        fs::create_dir_all(&state).unwrap();
        for (name, below) in [("a", "project/sub"), ("b", "other"), ("c", "")] {
            fs::create_dir_all(root.join("work").join(below)).unwrap();
            std::os::unix::fs::symlink(root.join("work").join(below), state.join(name)).unwrap();
        }
        let at = |path: &str| root.join(path).to_str().unwrap().to_owned();
        let trusted = |named: Option<String>| {
            let named = named.map(|named| (TRUSTED.to_owned(), named));
            let env = Variables::new([("HOME".to_owned(), at("home"))].into_iter().chain(named));
            trusted_in_copy(&env, &project, Path::new("/copy")).get(TRUSTED).map(str::to_owned)
        };
        assert_eq!(trusted(None).as_deref(), Some("/copy/sub"), "a link trusts no folder below");
        assert_eq!(trusted(Some(at("work"))), Some(format!("/copy:/copy/sub:{}", at("work"))));
        fs::remove_file(state.join("a")).unwrap();
        assert_eq!(trusted(None), None);
        assert_eq!(trusted(Some(at("other"))), Some(at("other")));
    }
}
