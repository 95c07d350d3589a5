//! Decides which sources that a step runs are checks, and which are the work itself.

use super::BaseFiles;
use super::cmake;
use super::imports::imported;
use super::named::{LONGEST, is_program_of_package, is_script, is_source, text, words};
use super::test_folders::is_of_tests;
use super::tests_named::{BaseTests, is_named};
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// Words that mark a source as a check, if its name contains one as a whole word.
const CHECKS: [&str; 4] = ["validate", "lint", "spec", "ci"];
/// Parts of words that mark a check.
const PARTS: [&str; 4] = ["test", "check", "verify", "e2e"];
/// Test frameworks, as sources name them after `import`, `require`, `use` and the like.
#[rustfmt::skip]
const FRAMEWORKS: &[&str] = &[
    "unittest", "pytest", "nose", "hypothesis", "node:test", "vitest", "jest", "@jest/globals", "mocha", "chai", "ava", "tap", "uvu", "assert", "node:assert",
    "node:assert/strict", "assert/strict", "minitest/autorun", "minitest", "rspec", "test/unit", "test-unit", "phpunit", "PHPUnit\\Framework\\TestCase", "Test::More",
    "Test2::V0", "testing",
];
/// Frameworks that the product may load as well, to assert its own conditions.
const PLAIN_ASSERTS: &[&str] = &["assert", "node:assert", "node:assert/strict", "assert/strict"];
/// The program that starts a server for the tests. The server is its first argument.
const STARTS_SERVER: &str = "start-server-and-test ";
/// The maximum number of sources whose imports are read.
const MOST_SOURCES: usize = 2000;

/// Returns whether a source that a step runs is a check: a script, a test, or a source with the
/// name of a check. A source that loads a test framework, or that is in a folder of tests and
/// asserts something about other sources, is a check if no other source of the base imports it. A
/// source that is too long or cannot be read counts as a check.
pub(super) fn is_check(
    path: &str,
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    let stem = stem(path);
    if is_called_check(path) || tests.fit(path) || (is_script(path) && !is_program_of_package(path)) {
        return true;
    }
    let Some(bytes) = read(path).filter(|bytes| bytes.len() <= LONGEST) else { return true };
    let text = String::from_utf8_lossy(&bytes);
    let starts_shell = text.starts_with("#!") && text.lines().next().is_some_and(|line| line.ends_with("sh"));
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    starts_shell
        || (imports(&text).any(|name| FRAMEWORKS.contains(&name)) && !is_imported(path, stem, base, tests, read))
        || (is_of_tests(folder) && tries_others(path, base, tests, read))
}

/// Returns whether a source that a script or the CI runs is a check. Tests are checks. A source
/// that has the name of a check or loads a test framework is a check if no other source of the base
/// imports it.
pub(super) fn is_run_as_check(
    path: &str,
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    let stem = stem(path);
    let has_word = || {
        let name = stem.to_ascii_lowercase();
        name.split(['_', '-']).any(|word| CHECKS.contains(&word) || PARTS.contains(&word.trim_end_matches('s')))
    };
    let loads = text(path, read).is_some_and(|text| loads_framework(&text));
    tests.fit(path) || ((has_word() || loads) && !is_imported(path, stem, base, tests, read))
}

/// Returns whether a source that a script runs for its tests behaves like a check: it asserts
/// something outside of all functions, it loads sources outside of its folder, and no other source
/// imports it.
pub(super) fn tries_others(
    path: &str,
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    text(path, read).is_some_and(|text| {
        text.lines().any(|line| line.starts_with("assert"))
            && loads_others(path, &text, base)
            && !is_imported(path, stem(path), base, tests, read)
    })
}

/// Returns whether a source in a folder imports sources from outside of this folder.
fn loads_others(path: &str, text: &str, base: &BaseFiles) -> bool {
    let Some((folder, _)) = path.rsplit_once('/') else { return false };
    let is_other = |other: &String| is_source(other) && !other.starts_with(&format!("{folder}/"));
    imported(path, text, base).iter().any(is_other)
}

/// Returns the lines that a script runs for tests: all lines of a check or of the tests of CMake,
/// otherwise the rules of targets whose names ask for a check.
pub(super) fn lines_of_tests(script: &str, text: &str) -> String {
    let (is_check, mut is_asked) = (is_called_check(script) || name_of(script) == cmake::LISTS, false);
    let is_of_tests = |line: &&str| {
        let targets = line.split_once(':').map(|(targets, _)| targets).filter(|_| !line.starts_with([' ', '\t']));
        is_asked = targets.map_or(is_asked, |targets| targets.split_whitespace().any(is_asked_to_check));
        is_check || is_asked
    };
    text.lines().filter(is_of_tests).collect::<Vec<_>>().join("\n")
}

/// Returns whether a source runs the tests for a test script of `package.json`. All of these
/// conditions hold:
///
/// - The source is in a folder and loads a test framework or sources outside of that folder.
/// - No other source imports it, and the manifest names it only once.
/// - The manifest does not start it as the server that the tests use.
pub(super) fn is_runner(
    path: &str,
    manifest: &str,
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    let Some((folder, text)) = path.rsplit_once('/').map(|(folder, _)| folder).zip(text(path, read)) else {
        return false;
    };
    let without_ending = path.rsplit_once('.').map_or(path, |(plain, _)| plain);
    let is_plain = |word: &&str| {
        let word = word.trim_matches('\\').trim_start_matches("./").trim_end_matches('/');
        word == without_ending || (stem(path) == "index" && word == folder)
    };
    let named = manifest.matches(path).count() + words(manifest).iter().filter(|word| is_plain(word)).count();
    let is_named_once = named < 2 && !manifest.split(STARTS_SERVER).skip(1).any(|rest| first(rest).contains(path));
    let tries = imports(&text).any(|name| FRAMEWORKS.contains(&name)) || loads_others(path, &text, base);
    is_named_once && tries && !is_imported(path, stem(path), base, tests, read)
}

/// Returns the first argument of a command in a manifest, without quotes.
fn first(arguments: &str) -> &str {
    let plain = arguments.trim_start();
    let inner = plain.trim_start_matches(['\\', '"', '\'']);
    let end = if inner.len() < plain.len() { inner.find(['\\', '"', '\'']) } else { inner.find([' ', '"']) };
    &inner[..end.unwrap_or(inner.len())]
}

/// Returns whether a source loads a test framework other than plain assertions.
pub(super) fn loads_framework(text: &str) -> bool {
    imports(text).any(|name| FRAMEWORKS.contains(&name) && !PLAIN_ASSERTS.contains(&name))
}

/// Returns whether a source has the name of a check.
pub(super) fn is_called_check(path: &str) -> bool {
    let stem = stem(path).to_ascii_lowercase();
    PARTS.iter().any(|part| stem.contains(part)) || stem.split(['_', '-']).any(|word| CHECKS.contains(&word))
}

fn stem(path: &str) -> &str {
    name_of(path).split('.').next().unwrap_or_default()
}

/// Returns whether a word of a command asks a program to check something.
pub(super) fn is_asked_to_check(word: &str) -> bool {
    let word = word.trim_start_matches('-').to_ascii_lowercase();
    PARTS.iter().any(|part| word.starts_with(part)) || CHECKS.contains(&word.as_str())
}

/// Sources by the names that they import.
pub(super) type Importers = BTreeMap<String, BTreeSet<String>>;

/// Returns whether a source of the base that is not a test imports a file. Imports are compared
/// with the stem of the file's name.
fn is_imported(
    path: &str,
    stem: &str,
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    let mut importers = base.1.get_or_init(|| importers(base, read)).get(stem).into_iter().flatten();
    importers.any(|other| other != path && !tests.fit(other))
}

/// Reads the imports of at most [`MOST_SOURCES`] sources whose names are not those of tests.
fn importers(base: &BaseFiles, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Importers {
    let mut found = Importers::new();
    for path in base.0.iter().filter(|path| is_source(path) && !is_named(path)).take(MOST_SOURCES) {
        let text = text(path, read).unwrap_or_default();
        for part in imports(&text).flat_map(|name| name.rsplit(['/', '.', ':'])).filter(|part| !part.is_empty()) {
            found.entry(part.to_owned()).or_default().insert(path.clone());
        }
    }
    found
}

/// Returns the words in the import lines of a source in a scripting language.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let splits = |c: char| c.is_whitespace() || "\"'`(),;{}".contains(c);
    let is_import = |line: &&str| {
        let begins =
            ["import ", "from ", "require", "use ", "load ", "source "].iter().any(|word| line.starts_with(word));
        begins || line.contains("require(") || line.contains("import(") || line.contains(" from ")
    };
    text.lines().map(str::trim_start).filter(is_import).flat_map(move |line| line.split(splits))
}
