//! Which of the sources that a step runs is a check, and which is the work itself.

use super::Base;
use super::imports::imported;
use super::named::{LONGEST, is_script, is_shell, is_source, text, words};
use super::tests_named::{Tests, is_named};
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// Words in the name of a source by which it is a check.
const CHECKS: [&str; 4] = ["validate", "lint", "spec", "ci"];
/// Parts of such words.
const PARTS: [&str; 4] = ["test", "check", "verify", "e2e"];
/// What the sources of checks load: frameworks for tests, as they stand behind `import`, `require`, `use` and the like.
#[rustfmt::skip]
const FRAMEWORKS: &[&str] = &[
    "unittest", "pytest", "nose", "hypothesis", "node:test", "vitest", "jest", "@jest/globals", "mocha", "chai", "ava", "tap", "uvu", "assert", "node:assert",
    "node:assert/strict", "assert/strict", "minitest/autorun", "minitest", "rspec", "test/unit", "test-unit", "phpunit", "PHPUnit\\Framework\\TestCase", "Test::More",
    "Test2::V0", "testing",
];
/// Those that the product may load as well, to assert what it needs.
const PLAIN_ASSERTS: &[&str] = &["assert", "node:assert", "node:assert/strict", "assert/strict"];
/// The program that starts a server for the tests: its first argument.
const STARTS_SERVER: &str = "start-server-and-test ";
/// The most sources that are searched for who imports a file.
const MOST_SOURCES: usize = 2000;

/// Whether a source that a step runs is a check: a shell script, a test by its name or folder, or a file that loads a test framework and
/// that no other source of the base imports.
pub(super) fn is_check(path: &str, base: &Base, tests: &Tests, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> bool {
    let stem = stem(path);
    // Programs of a package are in `bin`, too.
    let is_product = path.split('/').rev().nth(1) == Some("bin") && !is_shell(path);
    if is_called_check(path) || tests.fit(path) || (is_script(path) && !is_product) {
        return true;
    }
    let Some(bytes) = read(path).filter(|bytes| bytes.len() <= LONGEST) else { return true };
    let text = String::from_utf8_lossy(&bytes);
    let starts_shell = text.starts_with("#!") && text.lines().next().is_some_and(|line| line.ends_with("sh"));
    starts_shell
        || (imports(&text).any(|name| FRAMEWORKS.contains(&name)) && !is_imported(path, stem, base, tests, read))
}

/// Whether a source that a script or the continuous integration runs is a check: a test, or a file that no other source of the base
/// imports and whose name has a word of checks or that loads a test framework.
pub(super) fn is_run_as_check(
    path: &str,
    base: &Base,
    tests: &Tests,
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

/// Whether a source that a script runs for its tests is a check by what it does: it asserts something outside of all functions, loads sources outside of
/// its folder, and no other source imports it.
pub(super) fn tries_others(
    path: &str,
    base: &Base,
    tests: &Tests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    text(path, read).is_some_and(|text| {
        text.lines().any(|line| line.starts_with("assert"))
            && loads_others(path, &text, base)
            && !is_imported(path, stem(path), base, tests, read)
    })
}

/// Returns true if a source lies in a folder and imports sources from outside of this folder.
fn loads_others(path: &str, text: &str, base: &Base) -> bool {
    let Some((folder, _)) = path.rsplit_once('/') else { return false };
    let is_other = |other: &String| is_source(other) && !other.starts_with(&format!("{folder}/"));
    imported(path, text, base).iter().any(is_other)
}

/// The lines of a script that it runs for tests: all of a check, else the rules of targets whose names ask for a check.
pub(super) fn lines_of_tests(script: &str, text: &str) -> String {
    let (is_check, mut is_asked) = (is_called_check(script), false);
    let is_of_tests = |line: &&str| {
        let targets = line.split_once(':').map(|(targets, _)| targets).filter(|_| !line.starts_with([' ', '\t']));
        is_asked = targets.map_or(is_asked, |targets| targets.split_whitespace().any(is_asked_to_check));
        is_check || is_asked
    };
    text.lines().filter(is_of_tests).collect::<Vec<_>>().join("\n")
}

/// Whether a source that `package.json` starts for a script of tests runs the tests: it lies in a folder, it loads a test framework or sources
/// outside of that folder, neither another source nor another part of the manifest names it, and it is not started as the server that tests ask.
pub(super) fn is_runner(
    path: &str,
    manifest: &str,
    base: &Base,
    tests: &Tests,
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

/// The first argument of a command in a manifest, without quotes.
fn first(arguments: &str) -> &str {
    let plain = arguments.trim_start();
    let inner = plain.trim_start_matches(['\\', '"', '\'']);
    let end = if inner.len() < plain.len() { inner.find(['\\', '"', '\'']) } else { inner.find([' ', '"']) };
    &inner[..end.unwrap_or(inner.len())]
}

/// Whether a source loads a framework for tests, other than plain assertions.
pub(super) fn loads_framework(text: &str) -> bool {
    imports(text).any(|name| FRAMEWORKS.contains(&name) && !PLAIN_ASSERTS.contains(&name))
}

/// Whether a source has the name of a check.
pub(super) fn is_called_check(path: &str) -> bool {
    let stem = stem(path).to_ascii_lowercase();
    PARTS.iter().any(|part| stem.contains(part)) || stem.split(['_', '-']).any(|word| CHECKS.contains(&word))
}

fn stem(path: &str) -> &str {
    name_of(path).split('.').next().unwrap_or_default()
}

/// Whether a word of a command asks a program to check something.
pub(super) fn is_asked_to_check(word: &str) -> bool {
    let word = word.trim_start_matches('-').to_ascii_lowercase();
    PARTS.iter().any(|part| word.starts_with(part)) || CHECKS.contains(&word.as_str())
}

/// The sources that import a file, by each name that they import it by.
pub(super) type Importers = BTreeMap<String, BTreeSet<String>>;

/// Returns true if a source of the base that is no test imports a file, by the stem of its name.
fn is_imported(
    path: &str,
    stem: &str,
    base: &Base,
    tests: &Tests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    let mut importers = base.1.get_or_init(|| importers(base, read)).get(stem).into_iter().flatten();
    importers.any(|other| other != path && !tests.fit(other))
}

/// Reads the imports of all sources whose names are not those of tests, [`MOST_SOURCES`] at most.
fn importers(base: &Base, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Importers {
    let mut found = Importers::new();
    for path in base.0.iter().filter(|path| is_source(path) && !is_named(path)).take(MOST_SOURCES) {
        let text = text(path, read).unwrap_or_default();
        for part in imports(&text).flat_map(|name| name.rsplit(['/', '.', ':'])).filter(|part| !part.is_empty()) {
            found.entry(part.to_owned()).or_default().insert(path.clone());
        }
    }
    found
}

/// What lines of a source import, for the languages of scripts.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let splits = |c: char| c.is_whitespace() || "\"'`(),;{}".contains(c);
    let is_import = |line: &&str| {
        let begins =
            ["import ", "from ", "require", "use ", "load ", "source "].iter().any(|word| line.starts_with(word));
        begins || line.contains("require(") || line.contains("import(") || line.contains(" from ")
    };
    text.lines().map(str::trim_start).filter(is_import).flat_map(move |line| line.split(splits))
}
