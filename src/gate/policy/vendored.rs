//! Third-party code in the workspace. The copies of the base must not change, and no new code may
//! take precedence over them.

use super::{BaseFiles, PathChange, PathChangeKind};
use std::collections::BTreeSet;

/// Reason for protecting vendored code.
pub(in crate::gate) const VENDORED: &str =
    "it is third-party code of the base: only a task that opens it may change it";
/// Reason for rejecting a new package that would be found first.
pub(super) const NEARER: &str = "it would be used instead of a dependency";
/// Reason for rejecting a link in the place of a package.
pub(super) const LINKED: &str = "a link replaces a package of the base";
/// Reason for rejecting a new list of vendored Go modules.
pub(in crate::gate) const REPLACES: &str = "it replaces dependencies with other code";
/// The folders that installers fill.
const INSTALLED: &[&str] = &["node_modules", "site-packages", "dist-packages"];
/// Folders in which Yarn and Bundler keep packages, below another folder.
const INSTALLED_BELOW: &[&str] = &[".yarn/cache", ".yarn/unplugged", "vendor/bundle"];
/// Manifests that mark a folder as a package.
const MANIFESTS: &[&str] =
    &["Cargo.toml", "package.json", "pyproject.toml", "setup.py", "setup.cfg", "go.mod", "composer.json", "pom.xml"];
/// Go's list of vendored modules.
const GO: &str = "vendor/modules.txt";

/// Returns the folders of the base with third-party code: folders that an installer fills, that
/// have Go's list of vendored modules, or that have Cargo's checksums.
pub(super) fn folders(base: &BaseFiles) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in &base.0 {
        let is_below = |folder: &str| {
            INSTALLED_BELOW
                .iter()
                .any(|end| folder.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
        };
        let is_installed = |folder: &&str| INSTALLED.contains(&super::name_of(folder)) || is_below(folder);
        let installed = super::folders_of(path).find(is_installed);
        let by_go = path.strip_suffix("/modules.txt").filter(|folder| super::name_of(folder) == "vendor");
        let by_cargo = path.strip_suffix("/.cargo-checksum.json");
        found.extend(installed.or(by_go).or(by_cargo).map(ToOwned::to_owned));
    }
    found
}

/// Returns the new lists that would make Go take all dependencies from a folder that the base does
/// not have.
pub(super) fn lists_of_go(base: &BaseFiles) -> impl Iterator<Item = String> {
    let modules = base.0.iter().filter_map(|path| path.strip_suffix("go.mod"));
    let own = modules.filter(|folder| folder.is_empty() || folder.ends_with('/')).map(|folder| format!("{folder}{GO}"));
    own.filter(|list| !base.has(list))
}

/// Returns whether a new path is in a `node_modules` folder from which code of the base would load
/// packages.
pub(super) fn is_nearer(change: &PathChange, folders: &BTreeSet<String>) -> bool {
    let PathChange { path, kind } = change;
    let whole = super::folders_of(path).chain([path.as_str()]);
    let mut places = whole.filter(|folder| super::name_of(folder) == "node_modules");
    let has_code = |place: &str| place.rsplit_once('/').is_none_or(|(folder, _)| folders.contains(folder));
    matches!(kind, PathChangeKind::Added) && places.any(has_code)
}

/// Returns the folders of the packages of a base, except the root.
pub(super) fn packages(base: &BaseFiles) -> BTreeSet<String> {
    let manifests = base.0.iter().filter(|path| MANIFESTS.contains(&super::name_of(path)));
    manifests.filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned())).collect()
}
