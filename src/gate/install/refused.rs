//! Detection of manifest entries that fledge refuses: folders, addresses, options and hooks. They
//! make an installer run code that the agent wrote. Pure.

use super::differ::is_requirements;
use crate::gate::names::name_of;
use crate::gate::policy::Policy;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of `pnpm-workspace.yaml` that only name packages. Other keys name hooks that pnpm runs, or
/// replace packages.
const OF_PNPM: [&str; 3] = ["packages", "catalog", "catalogs"];
/// Tables of Dart's manifests that name packages. Every entry of the first table replaces a
/// package.
const OF_DART: [&str; 3] = ["dependency_overrides", "dependencies", "dev_dependencies"];

/// Returns a line (``PATH: `ENTRY` ``) for each refused entry that the base's file does not have.
/// `was` and `is` are the file in the base and in the work. `requirements` holds the file's new
/// Python requirements, by table.
pub(super) fn refused(
    path: &str,
    was: Option<&[u8]>,
    is: Option<&[u8]>,
    requirements: &BTreeMap<String, Vec<String>>,
) -> Vec<String> {
    let Some(is) = is else { return Vec::new() };
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let not_plain = requirements.values().flatten().filter(|text| !text.starts_with('#') && !is_plain(text)).cloned();
    let mut found: BTreeSet<String> = not_plain.collect();
    match name_of(path) {
        _ if is_requirements(path) => {
            let (had, has) = (text(was), text(Some(is)));
            let had: BTreeSet<&str> = had.lines().map(str::trim).collect();
            let new = has.lines().map(str::trim).filter(|line| !had.contains(line));
            found.extend(new.filter(|line| !is_plain_line(line)).map(ToOwned::to_owned));
        }
        "pnpm-workspace.yaml" => {
            let rest = |bytes: Option<&[u8]>| {
                let mut keys: BTreeMap<String, Value> = serde_yaml::from_str(&text(bytes)).unwrap_or_default();
                keys.retain(|key, _| !OF_PNPM.contains(&key.as_str()));
                keys
            };
            let had = rest(was);
            let new = rest(Some(is)).into_iter().filter(|(key, value)| had.get(key) != Some(value));
            found.extend(new.map(|(key, _)| key));
        }
        "pubspec.yaml" | "pubspec_overrides.yaml" => {
            let (had, has) = (places_of_dart(was), places_of_dart(Some(is)));
            found.extend(has.difference(&had).cloned());
        }
        "pyproject.toml" => {
            let (had, has) = (folders_of_poetry(path, was), folders_of_poetry(path, Some(is)));
            found.extend(has.difference(&had).cloned());
        }
        _ => {}
    }
    found.into_iter().map(|what| format!("{path}: `{what}`")).collect()
}

/// Returns the dependencies of Poetry that are folders, archives or repositories. Poetry runs code
/// in them to build them.
fn folders_of_poetry(path: &str, bytes: Option<&[u8]>) -> BTreeSet<String> {
    let tables = bytes.map(|bytes| Policy::dependencies(path, bytes)).unwrap_or_default();
    let tables = tables.iter().filter(|(at, _)| at.starts_with("tool.poetry"));
    let entries = tables.filter_map(|(_, table)| table.as_object()).flatten();
    let is_built = |value: &Value| ["path", "file", "url", "git"].iter().any(|key| value.get(key).is_some());
    entries.filter(|(_, value)| is_built(value)).map(|(name, value)| format!("{name} = {value}")).collect()
}

/// Returns the dependencies of Dart that replace others, or that come from a folder, a repository
/// or another registry.
fn places_of_dart(bytes: Option<&[u8]>) -> BTreeSet<String> {
    let manifest: Value = serde_yaml::from_slice(bytes.unwrap_or_default()).unwrap_or_default();
    let mut found = BTreeSet::new();
    for (place, table) in OF_DART.iter().enumerate() {
        let entries = manifest.get(table).and_then(Value::as_object).into_iter().flatten();
        let is_apart = |value: &Value| ["path", "git", "hosted"].iter().any(|key| value.get(key).is_some());
        let apart = entries.filter(|(_, value)| place == 0 || is_apart(value));
        found.extend(apart.map(|(name, value)| format!("{table}: {name}: {value}")));
    }
    found
}

/// Returns whether a line of a requirements list names a package of the registry or another list,
/// or installs nothing.
fn is_plain_line(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or(line).trim_end_matches('\\').trim();
    let is_hash = |text: &str| text.split_whitespace().all(|word| word.starts_with("--hash="));
    let other = ["-r ", "-c ", "--requirement ", "--constraint "].iter().find_map(|start| line.strip_prefix(start));
    match other {
        Some(other) => is_requirements(other.trim()) || name_of(other.trim()).starts_with("constraints"),
        None if line.is_empty() || line.starts_with('#') || is_hash(line) => true,
        None => {
            let (requirement, hashes) = line.split_once(" --hash=").map_or((line, ""), |(it, _)| (it, "--hash="));
            is_plain(requirement) && is_hash(hashes)
        }
    }
}

/// Returns whether a requirement (PEP 508) names a package of the registry: `NAME[EXTRAS] VERSIONS;
/// MARKER`.
pub(super) fn is_plain(requirement: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let end = requirement.find(|c| !is_name(c)).unwrap_or(requirement.len());
    let (name, rest) = requirement.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(rest, |(_, rest)| rest.trim_start());
    let (versions, _marker) = rest.split_once(';').unwrap_or((rest, ""));
    let is_version = |c: char| c.is_ascii_alphanumeric() || "<>=!~.,*+-() ".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && (versions.trim().is_empty() || versions.starts_with(['<', '>', '=', '!', '~', '(']))
        && versions.chars().all(is_version)
        && !versions.contains(" -")
        && !has_archive_name(name)
}

/// Returns whether pip treats a name as that of a file.
fn has_archive_name(name: &str) -> bool {
    [".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_plain_where_it_is_a_name_with_versions() {
        for plain in
            ["rich", "rich>=13", "rich[all] >= 13, <15 ; python_version < '3.9'", "zope.interface==5.*", "x (>=1)"]
        {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "http://localhost/x-1.0.tar.gz",
            "x @ file:///x",
            "--find-links=http://x",
            "-e .",
            "./pkg",
            "pkg/x",
            "",
            "x --no-binary=x",
            ">=1",
            "x==1 --y",
            "evil-1.0.tar.gz",
            "x @ git+https://x",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn new_folders_urls_options_and_hooks_are_refused_in_requirements() {
        let none = BTreeMap::new();
        let reported =
            |path: &str, was: &str, is: &str| refused(path, Some(was.as_bytes()), Some(is.as_bytes()), &none).len();
        for (path, was, is, count) in [
            (
                "requirements.txt",
                "-e .\n",
                "-e .\nrich==1 \\\n    --hash=sha256:ab --hash=sha256:cd\n# why\n-r requirements/base.txt\nsix\n",
                0,
            ),
            ("requirements-dev.txt", "", "./pkg\n-e ./pkg\n--index-url http://x\n-r data.cfg\n", 4),
            ("pnpm-workspace.yaml", "packages: [a]\n", "packages: [a, b]\ncatalog: {x: ^1}\n", 0),
            ("pnpm-workspace.yaml", "", "pnpmfile: ./hooks.rs\noverrides: {a: b}\nconfigDependencies: {}\n", 3),
            (
                "pubspec.yaml",
                "dependency_overrides: {a: ^1}\n",
                "dependencies: {b: ^1, f: {sdk: flutter}}\ndependency_overrides: {a: ^1}\n",
                0,
            ),
            ("pubspec.yaml", "", "dev_dependencies: {test: {path: ../t}}\ndependency_overrides: {test: 1.0.0}\n", 2),
            ("pubspec_overrides.yaml", "", "dependency_overrides: {test: {git: x}}\n", 1),
            ("pyproject.toml", "", "[tool.poetry.dependencies]\na = '^1'\nb = {path = 'pkg'}\n", 1),
        ] {
            assert_eq!(reported(path, was, is), count, "{path}: {is}");
        }
        let texts =
            BTreeMap::from([("project.dependencies".to_owned(), vec!["x @ http://y".to_owned(), "z".to_owned()])]);
        assert_eq!(refused("pyproject.toml", None, Some(b""), &texts), ["pyproject.toml: `x @ http://y`"]);
    }
}
