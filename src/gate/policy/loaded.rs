//! Files that test runners load beside the tests: plugins, and files that a command or a
//! configuration of the base names. They decide verdicts as tests do.

use super::BaseFiles;
use super::ecosystems::TESTS;
use super::imports;
use super::named::{self, inside};
use super::shadows::is_pytest_file;
use crate::lane::Lane;
use std::collections::BTreeSet;

/// Reason for protecting a file that a runner loads.
pub(super) const LOADED: &str = "the test runner loads it";
/// Reason for rejecting a new test that loads plugins.
pub(super) const LOADS: &str = "it loads plugins into the test runner";
/// The file that provides fixtures for the tests in its folder.
pub(super) const CONFTEST: &str = "conftest.py";
/// Signs that a `conftest.py` does more than provide fixtures: hooks, plugins, changes of modules,
/// or fixtures that no test asks for.
const MORE_THAN_FIXTURES: &[&str] = &[
    "pytest_",
    "_pytest",
    "hook",
    "autouse",
    "setattr",
    "import_module",
    "importlib",
    "builtins",
    "globals(",
    "exec(",
    "eval(",
    "__",
    "atexit",
    "_exit",
    "sys.",
    "import sys",
    "from sys",
    "*",
    "unittest",
    "monkeypatch",
    "gc.",
    "ctypes",
];
/// The variable with which a Python module names plugins.
const PLUGINS: &str = "pytest_plugins";
/// Options before a file or module that the runner loads.
const OPTIONS: &[&str] =
    &["--require", "--import", "--loader", "--experimental-loader", "--setup", "--setupFiles", "--plugin"];
/// Configuration files of runners. Every file of the base that they name is loaded.
const CONFIGURE: &[&str] = &[
    "jest.config.",
    "jest.preset.",
    ".mocharc",
    "vitest.config.",
    "vitest.workspace.",
    "ava.config.",
    ".taprc",
    ".nycrc",
];
/// Configuration files of which only the names after [`OPTIONS`] are loaded.
const OPTIONAL: &[&str] = &["pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "package.json"];
/// Keys of runner configurations before what is loaded, in YAML and in `package.json`.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "require", "import", "loader", "file", "before", "after", "plugin", "setupFiles", "setupFilesAfterEnv", "globalSetup", "globalTeardown", "testEnvironment",
    "runner", "testRunner", "testSequencer", "resolver", "snapshotSerializers", "reporters", "transform", "preset",
];
/// The tables of `package.json` that configure runners.
const TABLES: &[&str] = &["jest", "mocha", "ava", "tap", "nyc", "c8", "vitest", "jasmine"];
/// Endings that a name may leave out.
const ENDINGS: &[&str] = &["", ".py", "/__init__.py", ".js", ".cjs", ".mjs", ".ts", ".mts", "/index.js"];
/// The maximum number of configuration files that are read.
const MOST: usize = 2000;

/// Returns the files of the base that runners load.
pub(super) fn by_runners(
    lanes: &[Lane],
    base: &BaseFiles,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for step in lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup)) {
        let dir = step.dir.as_deref().and_then(|dir| inside("", dir)).unwrap_or_default();
        found.extend(behind_options(&step.run, false).into_iter().flat_map(|name| files(base, &dir, name)));
    }
    let may_say = |path: &&String| {
        let name = super::name_of(path);
        let configures = CONFIGURE.iter().any(|start| name.starts_with(start));
        configures || OPTIONAL.contains(&name) || name == CONFTEST || is_pytest_file(name)
    };
    for path in base.0.iter().filter(may_say).take(MOST) {
        let Some(bytes) = read(path).filter(|bytes| bytes.len() <= named::LONGEST) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        let (name, folder) = (super::name_of(path), path.rsplit_once('/').map_or("", |(folder, _)| folder));
        let aliased: BTreeSet<&str> = aliases(&text).into_iter().flat_map(quoted).collect();
        let in_tables = if name == "package.json" { in_tables(&text) } else { Vec::new() };
        found.extend(in_tables.iter().flat_map(|name| files(base, folder, name)));
        let names: Vec<&str> = match () {
            () if path.ends_with(".py") => plugins(&text),
            () if [".yml", ".yaml", ".taprc"].iter().any(|ending| name.ends_with(ending)) => behind_keys(&text),
            () if OPTIONAL.contains(&name) => behind_options(&text, name != "package.json"),
            () => text
                .lines()
                .filter(|line| !loads_product(line))
                .flat_map(quoted)
                .filter(|name| !aliased.contains(name))
                .collect(),
        };
        found.extend(names.into_iter().flat_map(|name| files(base, folder, name)));
    }
    found
}

/// Returns the files of the base that configure Node's runners. They are code, and what they load
/// is loaded before the tests.
pub(super) fn configurations(base: &BaseFiles) -> impl Iterator<Item = String> {
    let configures = |path: &&String| CONFIGURE.iter().any(|start| super::name_of(path).starts_with(start));
    base.0.iter().filter(configures).cloned()
}

/// Returns whether pytest loads a file because of its name.
pub(super) fn is_loaded_by_pytest(path: &str) -> bool {
    let name = super::name_of(path);
    name == CONFTEST || is_pytest_file(name)
}

/// Returns the reason for rejecting a new test file, by its text: it loads plugins, or it is a
/// `conftest.py` that does more than provide fixtures.
pub(super) fn steers(path: &str, text: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(text);
    match super::name_of(path) {
        CONFTEST => MORE_THAN_FIXTURES.iter().any(|sign| text.contains(sign)).then_some(TESTS),
        name => (is_pytest_file(name) && text.contains(PLUGINS)).then_some(LOADS),
    }
}

/// Returns the names after [`OPTIONS`]. `-p` counts only for pytest, and `-r` only before `./`,
/// since other programs use them for other purposes.
fn behind_options(text: &str, is_of_pytest: bool) -> Vec<&str> {
    let mut found = Vec::new();
    for command in text.split(['\n', ';', '|', '&']) {
        let splits = |c: char| c.is_whitespace() || "()<>\"'`=,[]".contains(c);
        let words: Vec<&str> = command.split(splits).filter(|word| !word.is_empty()).collect();
        let is_of_pytest =
            is_of_pytest || words.iter().any(|word| matches!(super::name_of(word), "pytest" | "py.test"));
        let loads = |option: &str, name: &str| match option {
            "-p" => is_of_pytest,
            "-r" => name.starts_with("./"),
            option => OPTIONS.contains(&option),
        };
        let of_pytest = words.iter().filter_map(|word| word.strip_prefix("-p").filter(|_| is_of_pytest));
        found.extend(of_pytest.filter(|name| !name.is_empty()));
        found.extend(words.windows(2).filter(|pair| loads(pair[0], pair[1])).map(|pair| pair[1]));
    }
    found
}

/// Returns the values of [`KEYS`] in YAML, in the line of the key or as a list below it.
fn behind_keys(text: &str) -> Vec<&str> {
    let (mut found, mut loads) = (Vec::new(), false);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let keyed = line.split_once(':').filter(|_| !line.starts_with('-'));
        loads = keyed.map_or(loads, |(key, _)| KEYS.contains(&key.trim_matches(['"', '\''])));
        let value = keyed.map_or(line.trim_start_matches('-'), |(_, value)| value);
        found.extend(value.split([' ', ',', '[', ']', '"', '\'']).filter(|name| loads && !name.is_empty()));
    }
    found
}

/// Returns the values of [`KEYS`] in the [`TABLES`] of a `package.json`.
fn in_tables(text: &str) -> Vec<String> {
    let manifest: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let values = TABLES
        .iter()
        .filter_map(|table| manifest.get(table))
        .flat_map(|table| KEYS.iter().map(move |key| table.get(key)));
    let texts: Vec<String> = values.flatten().map(ToString::to_string).collect();
    texts.iter().flat_map(|text| quoted(text)).map(ToOwned::to_owned).collect()
}

/// Returns the modules that a Python file names as plugins.
fn plugins(text: &str) -> Vec<&str> {
    let message = text.split(PLUGINS).skip(1).filter_map(|rest| rest.trim_start().strip_prefix(['=', ':', '+']));
    let ends = |rest: &str| rest.find([']', ')']).or_else(|| rest.find('\n')).unwrap_or(rest.len());
    message.flat_map(|rest| quoted(&rest[..ends(rest)])).collect()
}

/// Returns whether a line of a configuration imports a file of the product. The tests import the
/// product anyway, so the line does not steer them.
fn loads_product(line: &str) -> bool {
    let imports = line.trim_start().starts_with("import ") || line.contains("require(");
    imports && quoted(line).any(|name| ["./src/", "./lib/"].iter().any(|folder| name.starts_with(folder)))
}

/// Returns the tables after `alias:` in a configuration. They lead to the product.
fn aliases(text: &str) -> Vec<&str> {
    let tables = text.match_indices("alias").filter_map(|(start, word)| {
        let rest = text[start + word.len()..].trim_start().strip_prefix(':')?.trim_start();
        let mut depth = 0_usize;
        let end = rest.char_indices().find_map(|(at, c)| {
            match c {
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            (depth == 0).then_some(at)
        })?;
        Some(&rest[..end])
    });
    tables.collect()
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(imports::quoted)
}

/// Returns the files of the base that a name may mean, as a path or a Python module. The name is
/// relative to a folder, the root or `src`.
fn files(base: &BaseFiles, folder: &str, name: &str) -> Vec<String> {
    let plain = ["<rootDir>/", "$PWD/", "${PWD}/"].iter().find_map(|start| name.strip_prefix(start)).unwrap_or(name);
    let dotted = plain.replace('.', "/");
    let mut found = Vec::new();
    for start in ["", "src", folder] {
        for path in [plain, &dotted] {
            let ends = ENDINGS.iter().filter_map(|ending| inside(start, &format!("{path}{ending}")));
            found.extend(ends.filter(|path| base.has(path)));
        }
    }
    found
}
