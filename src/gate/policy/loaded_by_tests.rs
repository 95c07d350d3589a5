//! Files of the base that only its checks load: what tests, `conftest.py`, the configuration of runners and the scripts of a gate import, as far
//! as the product does not import it and its name, its place or its text says that it helps checks. And data of the base that its tests name,
//! whose change is noted.

use super::Base;
use super::checks::loads_framework;
use super::imports::{imported, quoted};
use super::named::{inside, is_script, is_source, text};
use super::test_folders;
use super::tests_named::Tests;
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// Why a change of data is noted.
pub(super) const DATA: &str = "tests of the base name it";
/// Words in the name or the folders of a file that helps checks.
#[rustfmt::skip]
const HELPS: &[&str] = &[
    "helper", "helpers", "fixture", "fixtures", "factory", "factories", "mock", "mocks", "fake", "fakes", "stub", "stubs", "support", "testing",
    "testutil", "testutils", "testhelper", "testhelpers", "conftest", "test", "tests", "e2e",
];
/// Folders of the product.
const PRODUCT: &[&str] = &["src", "lib"];
/// Manifests that name parts of the product.
const MANIFESTS: &[&str] = &["pyproject.toml", "setup.cfg", "setup.py", "package.json"];
/// The most files that are read.
const MOST: usize = 2000;
/// The longest text between quotes that is taken for a path.
const LONGEST_NAME: usize = 200;

/// What checks load.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// Files that only checks load.
    pub(super) loaded: BTreeSet<String>,
    /// Data that tests name.
    pub(super) data: BTreeSet<String>,
}

impl Helpers {
    /// Of the base's tests, these files, and those that runners load before the tests.
    pub(super) fn of(
        seeds: impl Iterator<Item = String>,
        before_tests: impl Iterator<Item = String>,
        base: &Base,
        tests: &Tests,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Self {
        let mut found = Self::default();
        let is_test = |path: &str| tests.fit(path) || name_of(path) == "conftest.py";
        let mut open: Vec<String> = seeds.collect();
        let mut before: BTreeSet<String> = before_tests.collect();
        open.extend(before.iter().cloned());
        let scripts: BTreeSet<String> = open.iter().cloned().collect();
        open.extend(base.0.iter().filter(|path| is_source(path) && is_test(path)).take(MOST).cloned());
        let mut seen: BTreeSet<String> = open.iter().cloned().collect();
        let names = data_by_name(base, tests);
        let (mut product, mut by_text, mut manifests) = (None, BTreeMap::new(), None);
        while let Some(path) = open.pop() {
            let Some(own) = text(&path, read) else { continue };
            if is_test(&path) {
                found.data.extend(named_data(&path, &own, base, &names));
            }
            let is_before = before.contains(&path) || name_of(&path) == "conftest.py";
            for loaded in imported(&path, &own, base) {
                if seen.contains(&loaded) || is_test(&loaded) {
                    continue;
                }
                let is_helper = helps(&loaded)
                    || is_beside(&path, &loaded)
                    || (is_before && test_folders::is_of_tests(folder_of(&loaded)))
                    || *by_text
                        .entry(loaded.clone())
                        .or_insert_with(|| helps_by_text(&loaded, base, &mut manifests, read));
                let product = match is_helper {
                    true => product
                        .get_or_insert_with(|| by_product(base, &|path| is_test(path) || scripts.contains(path), read)),
                    false => continue,
                };
                if !product.contains(&loaded) {
                    seen.insert(loaded.clone());
                    found.loaded.insert(loaded.clone());
                    before.extend(is_before.then(|| loaded.clone()));
                    open.push(loaded);
                }
            }
        }
        found
    }
}

/// Whether a file helps checks, by its name or its folders.
pub(super) fn helps(path: &str) -> bool {
    path.split(['/', '_', '-', '.']).any(|word| HELPS.contains(&word.to_lowercase().as_str()))
}

/// Whether a source helps checks, by its text: it loads a framework for tests. A product may do so as well, if it is a tool for tests: that lies in `src`
/// or `lib`, or a manifest names it.
fn helps_by_text(
    path: &str,
    base: &Base,
    manifests: &mut Option<String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    let is_in_product = folder_of(path).split('/').any(|folder| PRODUCT.contains(&folder));
    if is_in_product || !text(path, read).is_some_and(|text| loads_framework(&text)) {
        return false;
    }
    let manifests = manifests.get_or_insert_with(|| manifests_of(base, read));
    !names(path).iter().any(|name| holds(manifests, name))
}

/// The texts of the manifests that name parts of the product, in one spelling, without the folders of tests that they name.
fn manifests_of(base: &Base, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> String {
    let is_one = |path: &&String| MANIFESTS.contains(&name_of(path)) || path.ends_with(".gemspec");
    let texts: Vec<String> = base.0.iter().filter(is_one).take(MOST).filter_map(|path| text(path, read)).collect();
    let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.contains("testpaths"));
    lines.map(|line| line.replace('-', "_") + "\n").collect()
}

/// The names by which a manifest may mean a source: its path, and its module with those around it.
fn names(path: &str) -> Vec<String> {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let mut found = vec![path.replace('-', "_"), stem.replace('-', "_")];
    if path.ends_with(".py") {
        let module = stem.trim_end_matches("/__init__").replace('/', ".");
        found.extend(module.match_indices('.').map(|(end, _)| module[..end].to_owned()));
        found.push(module);
    }
    found
}

/// Whether a text holds a name that is not a part of a longer one.
fn holds(text: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name).any(|(start, _)| {
        !is_part(text[..start].chars().next_back()) && !is_part(text[start + name.len()..].chars().next())
    })
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Whether a file is beside a script that loads it, in a folder of scripts.
fn is_beside(script: &str, path: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    is_script(path) && folder(script) == folder(path)
}

/// What sources import that are neither tests nor helpers.
fn by_product(
    base: &Base,
    is_of_checks: &dyn Fn(&str) -> bool,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in base.0.iter().filter(|path| is_source(path) && !is_of_checks(path)).take(MOST) {
        if !helps(path) {
            found.extend(text(path, read).iter().flat_map(|text| imported(path, text, base)));
        }
    }
    found
}

/// Data of the base outside of its tests, by name.
fn data_by_name<'b>(base: &'b Base, tests: &Tests) -> BTreeMap<&'b str, Vec<&'b str>> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let is_data = |path: &&String| !is_source(path) && !tests.fit(path) && name_of(path).contains('.');
    for path in base.0.iter().filter(is_data) {
        names.entry(name_of(path)).or_default().push(path);
    }
    names
}

/// The data that a test names, by its path or by a name that is there once.
fn named_data(path: &str, text: &str, base: &Base, names: &BTreeMap<&str, Vec<&str>>) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = Vec::new();
    for name in text.lines().flat_map(quoted).filter(|name| name.len() <= LONGEST_NAME && name.contains('.')) {
        let Some(there) = names.get(name_of(name)) else { continue };
        let mut paths = [inside("", name), inside(folder, name)].into_iter().flatten();
        let by_path = paths.find(|path| base.has(path) && there.contains(&path.as_str()));
        let alone = || (there.len() == 1 && !name.contains('/')).then(|| there[0].to_owned());
        found.extend(by_path.or_else(alone));
    }
    found
}
