//! The facts that detection uses: file names, the texts of some files, and programs.

use super::style;
use std::collections::{BTreeMap, BTreeSet};

/// The facts about a project. Paths are relative to its root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFacts {
    /// The entries of the [`FOLDERS`].
    pub paths: BTreeSet<String>,
    /// The texts of files in `paths` for which [`is_read`] is true.
    pub texts: BTreeMap<String, String>,
    /// The unreadable files in `paths`, with the reason.
    pub unreadable: BTreeMap<String, String>,
    /// The installed `PROGRAMS`, and as `./path` the executable files for which `is_started` is
    /// true.
    pub programs: BTreeSet<String>,
    /// The programs that have pytest: the first line of `pytest` names them, or pytest is among
    /// their packages.
    pub pytest_by: BTreeSet<String>,
    /// The virtual environments with the project itself as an editable install: `.venv`, `.tox/py`.
    pub editable: BTreeSet<String>,
    /// Subfolders with a [marker](MARKERS), each with its own facts. These have no further
    /// subfolders.
    pub below: BTreeMap<String, ProjectFacts>,
}

/// Files that identify the kind of a project.
#[rustfmt::skip]
pub const MARKERS: [&str; 19] = [
    "Cargo.toml", "package.json", "go.mod", "pyproject.toml", "setup.py", "requirements.txt", "Pipfile", "Gemfile", "Package.swift",
    "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "pom.xml", "Makefile", "justfile", "Justfile",
    "CMakeLists.txt", "meson.build",
];

/// Folders whose subfolders are also searched for markers.
pub const GATHERING: [&str; 7] = ["apps", "crates", "libs", "modules", "packages", "projects", "services"];

/// Folders with foreign content, or without projects.
#[rustfmt::skip]
const FOREIGN: [&str; 16] = [
    "build", "deps", "dist", "docs", "example", "examples", "fixtures", "node_modules", "out", "target", "test", "testdata", "tests",
    "third_party", "vendor", "venv",
];

/// Returns true if a folder of this name is searched for markers.
pub fn is_looked_into(name: &str) -> bool {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) && name.len() <= 30;
    is_plain && !name.starts_with(['.', '-']) && !FOREIGN.contains(&name)
}

/// The folders whose entries are facts; the first is the root itself.
#[rustfmt::skip]
pub const FOLDERS: [&str; 16] = [
    "", ".git/info", ".github/workflows", "tests", "test", "Tests", "spec", "src", "bin", "script", "scripts", "node_modules/.bin", ".venv", ".venv/bin", "venv", "venv/bin",
];

/// The folders in which tox and nox keep virtual environments. The programs in these environments
/// are also facts.
pub const ENVIRONMENTS: [&str; 2] = [".tox", ".nox"];

/// Returns the programs to look up in the search path, including those that a CI may run.
pub fn programs() -> std::collections::BTreeSet<&'static str> {
    PROGRAMS.into_iter().chain(super::ci::programs()).collect()
}

#[rustfmt::skip]
pub(super) const PROGRAMS: [&str; 35] = [
    "bats", "black", "bun", "bundle", "cargo", "cargo-clippy", "cargo-fmt", "cargo-nextest", "cc", "clang", "flake8", "gcc", "go", "gofmt", "golangci-lint",
    "gradle", "just", "make", "mvn", "mypy", "node", "npm", "pdm", "pipenv", "pnpm", "poetry", "pyright", "pytest",
    "python", "python3", "ruff", "swift", "swiftlint", "uv", "yarn",
];

/// Files whose texts are facts, besides Python test files and scripts.
#[rustfmt::skip]
const READ: [&str; 39] = [
    ".git/info/exclude",
    "pom.xml", "pytest.ini", ".venv/pyvenv.cfg", "venv/pyvenv.cfg", "hatch.toml",
    ".gitignore", ".gitlab-ci.yml", ".justfile", ".pre-commit-config.yaml", ".pre-commit-config.yml", "CMakeLists.txt", "Taskfile.yaml", "Taskfile.yml",
    "meson.build", "noxfile.py", "taskfile.yaml", "taskfile.yml", ".mypy.ini", "Cargo.toml", "GNUmakefile", "Gemfile", "Justfile", "Makefile", "Pipfile", "Rakefile",
    "justfile", "makefile", "mypy.ini", "package.json", "pyproject.toml", "requirements-dev.txt", "requirements.txt",
    "requirements_dev.txt", "setup.cfg", "setup.py", "tox.ini", "ruff.toml", ".ruff.toml",
];

/// Returns true if the text of this file is a fact.
pub fn is_read(path: &str) -> bool {
    READ.contains(&path)
        || is_style(path)
        || is_workflow(path)
        || is_action(path)
        || is_python_test(path)
        || is_script(path)
}

fn is_style(path: &str) -> bool {
    style::FILES.contains(&path) || path == style::EDITORS
}

fn is_workflow(path: &str) -> bool {
    path.starts_with(".github/workflows/") && [".yml", ".yaml"].iter().any(|end| path.ends_with(end))
}

/// The folder of a project's actions. Each action has a folder with one of these files.
pub const ACTIONS: (&str, [&str; 2]) = (".github/actions", ["action.yml", "action.yaml"]);

fn is_action(path: &str) -> bool {
    path.starts_with(ACTIONS.0) && ACTIONS.1.iter().any(|name| path.ends_with(name))
}

/// Returns true if it matters that this file is executable, as the program `./path`.
pub fn is_started(path: &str) -> bool {
    ["gradlew", "mvnw", "bin/rails"].contains(&path) || is_script(path)
}

/// Returns true if the name of a file matches the test files of unittest.
pub(super) fn is_python_test(path: &str) -> bool {
    let folders = ["", "tests", "test"];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    folders.contains(&folder) && name.starts_with("test") && name.ends_with(".py")
}

fn is_script(path: &str) -> bool {
    super::recipes::SCRIPTS.iter().any(|(_, paths)| paths.contains(&path))
}

impl ProjectFacts {
    pub(super) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Returns the first of these files that exists.
    pub(super) fn first(&self, paths: &[&'static str]) -> Option<&'static str> {
        paths.iter().copied().find(|path| self.has(path))
    }

    /// Returns true if a file has one of these endings.
    pub(super) fn has_ending(&self, endings: &[&str]) -> bool {
        self.paths.iter().any(|path| endings.iter().any(|ending| path.ends_with(ending)))
    }

    /// Returns true if a name in the root has this prefix. `eslint.config.` has many endings.
    pub(super) fn has_prefix(&self, start: &str) -> bool {
        self.paths.range(start.to_owned()..).next().is_some_and(|path| path.starts_with(start))
    }

    /// Returns the text of a file; empty if none exists.
    pub(super) fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }

    pub(super) fn has_program(&self, name: &str) -> bool {
        self.programs.contains(name)
    }
}

/// Returns true if an INI or TOML text has this table, or one below it.
pub(super) fn has_table(text: &str, table: &str) -> bool {
    let headers = text.lines().map(str::trim).filter(|line| line.starts_with('['));
    let mut names = headers.filter_map(|line| line.trim_start_matches('[').strip_prefix(table));
    names.any(|rest| rest.starts_with([']', '.']))
}

/// Returns true if a text names this package as a whole word (`pytest-cov` is not `pytest`).
/// Comments with `#` and names of tables do not count.
pub(super) fn names(text: &str, package: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut lines = lines.filter(|line| !line.starts_with('[') || line.contains(['"', '\'']));
    lines.any(|line| line.split(|c| !is_part(c)).any(|word| word.eq_ignore_ascii_case(package)))
}
