//! Detection of changed dependencies in manifests and lock files. Pure.

use crate::gate::names::name_of;
use crate::gate::policy::Policy;
use std::collections::BTreeSet;

/// Names of lock files.
#[rustfmt::skip]
const LOCKS: [&str; 24] = [
    "Cargo.lock", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock", "go.sum",
    "go.work.sum", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "requirements.txt", "Gemfile.lock", "composer.lock",
    "gradle.lockfile", "packages.lock.json", "mix.lock", "pubspec.lock", "Package.resolved",
    "conda-lock.yml",
];
/// Names of manifests that are not compared by section.
#[rustfmt::skip]
const MANIFESTS: [&str; 24] = [
    "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "libs.versions.toml", "Gemfile", "composer.json", "Pipfile",
    "tox.ini", "noxfile.py", "go.work", "mix.exs", "pubspec.yaml", "pubspec_overrides.yaml", "requirements.in", "bunfig.toml",
    "setup.py", "environment.yml", "environment.yaml", "build.sbt", "Package.swift", "Directory.Packages.props", "packages.config",
];
/// Endings of manifests that are not compared by section.
const MANIFEST_ENDINGS: [&str; 4] = [".gemspec", ".csproj", ".fsproj", ".vbproj"];
/// Names of manifests that are programs, or that name plugins, which run.
#[rustfmt::skip]
const PROGRAMS: [&str; 10] = [
    "pom.xml", "Gemfile", "mix.exs", "noxfile.py", "tox.ini", "libs.versions.toml", "setup.py", "build.sbt", "Package.swift", "Directory.Packages.props",
];
/// Endings of sources that a package manager looks for and never runs, each with the start of its
/// manifests' names. cargo needs the targets of a crate, and `go mod vendor` needs the packages in
/// use.
const SOURCES: [(&str, &str); 2] = [(".rs", "Cargo."), (".go", "go.")];

/// Returns whether a path names a lock file.
pub(in crate::gate) fn is_lock(path: &str) -> bool {
    let name = name_of(path);
    LOCKS.contains(&name) || is_requirements(path)
}

/// Returns whether a path names a requirements list of pip.
pub(super) fn is_requirements(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_named = name.contains("requirements") || name_of(folder) == "requirements";
    is_named && name.ends_with(".txt") && !name.starts_with("constraints")
}

/// Returns whether a manifest is a program that an installer runs.
pub(super) fn is_program(path: &str) -> bool {
    let name = name_of(path);
    PROGRAMS.contains(&name) || name.ends_with(".gradle") || name.ends_with(".gradle.kts") || has_ending(name)
}

/// Returns whether a path names a file with dependencies.
pub(super) fn names_dependencies(path: &str) -> bool {
    let name = name_of(path);
    is_lock(path) || Policy::is_manifest(path) || MANIFESTS.contains(&name) || has_ending(name)
}

fn has_ending(name: &str) -> bool {
    MANIFEST_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns whether a package manager needs the source file at a path without running it, if these
/// manifests changed.
pub(super) fn is_source(path: &str, manifests: &BTreeSet<String>) -> bool {
    let is_wanted = |start: &str| manifests.iter().any(|manifest| name_of(manifest).starts_with(start));
    SOURCES.iter().any(|(ending, manifest)| path.ends_with(ending) && is_wanted(manifest))
}

/// Returns whether a file names other dependencies than before. Every change counts in a lock file
/// and in a manifest that is not compared by section. An unreadable manifest names no dependencies.
pub(super) fn differs(path: &str, was: Option<&[u8]>, is: Option<&[u8]>) -> bool {
    if !Policy::is_manifest(path) {
        return was != is;
    }
    let tables = |bytes: Option<&[u8]>| bytes.map(|bytes| Policy::dependencies(path, bytes)).unwrap_or_default();
    tables(was) != tables(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_are_known_by_their_names_at_any_depth() {
        for path in ["Cargo.lock", "web/package-lock.json", "go.sum", "requirements-dev.txt"] {
            assert!(is_lock(path), "{path}");
        }
        for path in ["Cargo.toml", "src/lock.rs", "requirements.md", "Cargo.lock.bak"] {
            assert!(!is_lock(path), "{path}");
        }
    }

    #[test]
    fn manifests_that_are_programs_never_run_with_network_unasked() {
        for path in ["setup.py", "a.gemspec", "src/App.csproj", "build.sbt", "pom.xml", "app/build.gradle.kts"] {
            assert!(names_dependencies(path) && is_program(path), "{path}");
        }
        for path in ["environment.yml", "packages.config", "conda-lock.yml"] {
            assert!(names_dependencies(path) && !is_program(path), "{path}");
        }
        assert!(!names_dependencies("csproj.md"));
    }

    #[test]
    fn only_what_names_dependencies_makes_a_difference() {
        let differ = |path: &str, was: &str, is: &str| differs(path, Some(was.as_bytes()), Some(is.as_bytes()));
        let cases = [
            ("Cargo.toml", "[package]\nversion = \"1\"", "[package]\nversion = \"2\"", false),
            ("Cargo.toml", "[dependencies]\na = \"1\"", "[dependencies]\na = \"2\"", true),
            ("a/Cargo.toml", "", "[target.'cfg(unix)'.dev-dependencies]\na = \"1\"", true),
            ("package.json", "{\"version\": \"1\"}", "{\"version\": \"2\", \"dependencies\": {}}", false),
            ("package.json", "{}", "{\"devDependencies\": {\"a\": \"1\"}}", true),
            ("package.json", "{\"dependencies\": {\"a\": \"1\"}}", "{}", true),
            ("pyproject.toml", "[tool.ruff]\na = 1", "[tool.ruff]\na = 2", false),
            ("pyproject.toml", "[project]\ndependencies = []", "[project]\ndependencies = [\"a\"]", true),
            ("pyproject.toml", "", "[dependency-groups]\ntest = [\"a\"]", true),
            ("setup.cfg", "[metadata]\nname = a", "[metadata]\nname = b", false),
            ("setup.cfg", "", "[options]\ninstall_requires =\n  a", true),
            ("setup.cfg", "", "[options.extras_require]\ntest = a", true),
            ("go.mod", "module a\ngo 1.20", "module a\ngo 1.21", false),
            ("go.mod", "module a", "module a\nrequire b v1.0.0", true),
            ("pom.xml", "<a/>", "<b/>", true),
            ("src/App.csproj", "<a/>", "<b/>", true),
            ("setup.py", "setup()", "setup(install_requires=['a'])", true),
            ("yarn.lock", "a", "b", true),
            ("package.json", "{}", "{", false),
        ];
        for (path, was, is, wanted) in cases {
            assert_eq!(differ(path, was, is), wanted, "{path}: {was:?} {is:?}");
        }
        assert!(differs("web/package.json", None, Some(b"{\"dependencies\": {\"a\": \"1\"}}")));
    }
}
