//! What detection is told about a project, and what it wants to be told: names of files, a few of their texts, programs.

use super::style;
use std::collections::{BTreeMap, BTreeSet};

/// A project as far as detection looks at it. Paths are relative to its root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What lies in the [`FOLDERS`].
    pub paths: BTreeSet<String>,
    /// The texts of those of them that [`is_read`].
    pub texts: BTreeMap<String, String>,
    /// Those of them that could not be read, and why.
    pub unreadable: BTreeMap<String, String>,
    /// The `PROGRAMS` that there are, and as `./path` the files that `is_started` and may be.
    pub programs: BTreeSet<String>,
    /// Those of them that have pytest: the first line of `pytest` names them, or it is among their packages.
    pub pytest_by: BTreeSet<String>,
    /// The virtual environments that have the project itself as an editable install: `.venv`, `.tox/py`.
    pub editable: BTreeSet<String>,
    /// Folders further down that [`say what they are`](MARKERS), each with its own facts; these have no such folders.
    pub below: BTreeMap<String, Facts>,
}

/// Files by which a folder says of itself what it is.
#[rustfmt::skip]
pub const MARKERS: [&str; 19] = [
    "Cargo.toml", "package.json", "go.mod", "pyproject.toml", "setup.py", "requirements.txt", "Pipfile", "Gemfile", "Package.swift",
    "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "pom.xml", "Makefile", "justfile", "Justfile",
    "CMakeLists.txt", "meson.build",
];

/// Folders whose folders may say so too.
pub const GATHERING: [&str; 7] = ["apps", "crates", "libs", "modules", "packages", "projects", "services"];

/// Folders that hold what is not the project's own, or is no project.
#[rustfmt::skip]
const FOREIGN: [&str; 16] = [
    "build", "deps", "dist", "docs", "example", "examples", "fixtures", "node_modules", "out", "target", "test", "testdata", "tests",
    "third_party", "vendor", "venv",
];

/// Whether a folder of this name may be one that says what it is.
pub fn is_looked_into(name: &str) -> bool {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) && name.len() <= 30;
    is_plain && !name.starts_with(['.', '-']) && !FOREIGN.contains(&name)
}

/// The folders whose entries are facts; the first is the root itself.
#[rustfmt::skip]
pub const FOLDERS: [&str; 16] = [
    "", ".git/info", ".github/workflows", "tests", "test", "Tests", "spec", "src", "bin", "script", "scripts", "node_modules/.bin", ".venv", ".venv/bin", "venv", "venv/bin",
];

/// The folders in which tox and nox keep virtual environments. The programs of these are facts, too.
pub const ENVIRONMENTS: [&str; 2] = [".tox", ".nox"];

/// The programs that are looked for in the search path, beside those that a CI may run.
pub fn programs() -> std::collections::BTreeSet<&'static str> {
    PROGRAMS.into_iter().chain(super::ci::programs()).collect()
}

#[rustfmt::skip]
pub(super) const PROGRAMS: [&str; 35] = [
    "bats", "black", "bun", "bundle", "cargo", "cargo-clippy", "cargo-fmt", "cargo-nextest", "cc", "clang", "flake8", "gcc", "go", "gofmt", "golangci-lint",
    "gradle", "just", "make", "mvn", "mypy", "node", "npm", "pdm", "pipenv", "pnpm", "poetry", "pyright", "pytest",
    "python", "python3", "ruff", "swift", "swiftlint", "uv", "yarn",
];

/// Files whose texts are facts, besides test files of Python and scripts.
#[rustfmt::skip]
const READ: [&str; 39] = [
    ".git/info/exclude",
    "pom.xml", "pytest.ini", ".venv/pyvenv.cfg", "venv/pyvenv.cfg", "hatch.toml",
    ".gitignore", ".gitlab-ci.yml", ".justfile", ".pre-commit-config.yaml", ".pre-commit-config.yml", "CMakeLists.txt", "Taskfile.yaml", "Taskfile.yml",
    "meson.build", "noxfile.py", "taskfile.yaml", "taskfile.yml", ".mypy.ini", "Cargo.toml", "GNUmakefile", "Gemfile", "Justfile", "Makefile", "Pipfile", "Rakefile",
    "justfile", "makefile", "mypy.ini", "package.json", "pyproject.toml", "requirements-dev.txt", "requirements.txt",
    "requirements_dev.txt", "setup.cfg", "setup.py", "tox.ini", "ruff.toml", ".ruff.toml",
];

/// Whether the text of this file is a fact.
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

/// The folder of the actions of a project, each in a folder with one of these files.
pub const ACTIONS: (&str, [&str; 2]) = (".github/actions", ["action.yml", "action.yaml"]);

fn is_action(path: &str) -> bool {
    path.starts_with(ACTIONS.0) && ACTIONS.1.iter().any(|name| path.ends_with(name))
}

/// Whether it is a fact that this file may be started, as the program `./path`.
pub fn is_started(path: &str) -> bool {
    ["gradlew", "mvnw", "bin/rails"].contains(&path) || is_script(path)
}

/// Whether unittest would take this for a file of tests by its name.
pub(super) fn is_python_test(path: &str) -> bool {
    let folders = ["", "tests", "test"];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    folders.contains(&folder) && name.starts_with("test") && name.ends_with(".py")
}

fn is_script(path: &str) -> bool {
    super::recipes::SCRIPTS.iter().any(|(_, paths)| paths.contains(&path))
}

impl Facts {
    pub(super) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The first of these files that is there.
    pub(super) fn first(&self, paths: &[&'static str]) -> Option<&'static str> {
        paths.iter().copied().find(|path| self.has(path))
    }

    /// Returns whether a file has one of these endings.
    pub(super) fn has_ending(&self, endings: &[&str]) -> bool {
        self.paths.iter().any(|path| endings.iter().any(|ending| path.ends_with(ending)))
    }

    /// Whether something in the root begins so: `eslint.config.` has many endings.
    pub(super) fn has_prefix(&self, start: &str) -> bool {
        self.paths.range(start.to_owned()..).next().is_some_and(|path| path.starts_with(start))
    }

    /// The text of a file; empty where there is none.
    pub(super) fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }

    pub(super) fn has_program(&self, name: &str) -> bool {
        self.programs.contains(name)
    }
}

/// Whether an INI or TOML text has this table, or one below it.
pub(super) fn has_table(text: &str, table: &str) -> bool {
    let headers = text.lines().map(str::trim).filter(|line| line.starts_with('['));
    let mut names = headers.filter_map(|line| line.trim_start_matches('[').strip_prefix(table));
    names.any(|rest| rest.starts_with([']', '.']))
}

/// Whether a text names this package, as a word of its own (`pytest-cov` is not `pytest`), outside of `#` comments and of the
/// names of tables.
pub(super) fn names(text: &str, package: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut lines = lines.filter(|line| !line.starts_with('[') || line.contains(['"', '\'']));
    lines.any(|line| line.split(|c| !is_part(c)).any(|word| word.eq_ignore_ascii_case(package)))
}
