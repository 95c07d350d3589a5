//! Code of others that lies in the workspace: what the base has of it stays as it is, and nothing may be put before it.

use super::{Base, Change, ChangeKind};
use std::collections::BTreeSet;

/// Why what is there stays.
pub(in crate::gate) const VENDORED: &str =
    "it is code of others that the base has: only a task that opens it may change it";
/// Why nothing may come before it.
pub(super) const NEARER: &str = "it would stand in for a dependency";
/// Why no link may.
pub(super) const LINKED: &str = "a link stands in the place of a package of the base";
/// Why no folder of Go's may.
pub(in crate::gate) const REPLACES: &str = "it puts other code in the place of dependencies";
/// The folders that installers fill.
const INSTALLED: &[&str] = &["node_modules", "site-packages", "dist-packages"];
/// What a package has.
const MANIFESTS: &[&str] =
    &["Cargo.toml", "package.json", "pyproject.toml", "setup.py", "setup.cfg", "go.mod", "composer.json", "pom.xml"];
/// Go's list of what is vendored.
const GO: &str = "vendor/modules.txt";

/// The folders of the base that hold code of others: filled by an installer, or with its list or check sums beside them.
pub(super) fn folders(base: &Base) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in &base.0 {
        let installed = super::folders_of(path).find(|folder| INSTALLED.contains(&super::name_of(folder)));
        let by_go = path.strip_suffix("/modules.txt").filter(|folder| super::name_of(folder) == "vendor");
        let by_cargo = path.strip_suffix("/.cargo-checksum.json");
        found.extend(installed.or(by_go).or(by_cargo).map(ToOwned::to_owned));
    }
    found
}

/// Lists by which Go takes a folder that the base has not for all dependencies.
pub(super) fn lists_of_go(base: &Base) -> impl Iterator<Item = String> {
    let modules = base.0.iter().filter_map(|path| path.strip_suffix("go.mod"));
    let own = modules.filter(|folder| folder.is_empty() || folder.ends_with('/')).map(|folder| format!("{folder}{GO}"));
    own.filter(|list| !base.has(list))
}

/// Whether a new path is in a folder of installed packages from which code of the base would take what it asks for.
pub(super) fn is_nearer(change: &Change, folders: &BTreeSet<String>) -> bool {
    let Change { path, kind } = change;
    let whole = super::folders_of(path).chain([path.as_str()]);
    let mut places = whole.filter(|folder| super::name_of(folder) == "node_modules");
    let has_code = |place: &str| place.rsplit_once('/').is_none_or(|(folder, _)| folders.contains(folder));
    matches!(kind, ChangeKind::Added) && places.any(has_code)
}

/// The packages of a base, by their folders.
pub(super) fn packages(base: &Base) -> BTreeSet<String> {
    let manifests = base.0.iter().filter(|path| MANIFESTS.contains(&super::name_of(path)));
    manifests.filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned())).collect()
}
