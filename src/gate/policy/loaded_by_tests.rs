//! Helper files of the base that only its checks load, and data that its tests name. A helper is
//! imported by tests, `conftest.py`, runner configurations or scripts of the gate. The product does
//! not import it, and its name, folder or text shows that it helps checks. A change of data is only
//! noted.

use super::BaseFiles;
use super::checks::loads_framework;
use super::imports::{imported, quoted};
use super::named::{inside, is_script, is_source, text};
use super::test_folders;
use super::tests_named::BaseTests;
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// Reason for noting a change of data.
pub(super) const DATA: &str = "tests of the base name it";
/// Words in the path of a file that helps checks.
#[rustfmt::skip]
const HELPS: &[&str] = &[
    "helper", "helpers", "fixture", "fixtures", "factory", "factories", "mock", "mocks", "fake", "fakes", "stub", "stubs", "support", "testing",
    "testutil", "testutils", "testhelper", "testhelpers", "conftest", "test", "tests", "e2e",
];
/// Folders of the product.
const PRODUCT: &[&str] = &["src", "lib"];
/// Manifests that name parts of the product.
const MANIFESTS: &[&str] = &["pyproject.toml", "setup.cfg", "setup.py", "package.json"];
/// The maximum number of files that are read.
const MOST: usize = 2000;
/// The longest quoted text that may be a path, in bytes.
const LONGEST_NAME: usize = 200;

/// Files that checks load.
#[derive(Debug, Default)]
pub(super) struct TestHelpers {
    /// Files that only checks load.
    pub(super) loaded: BTreeSet<String>,
    /// Data that tests name.
    pub(super) data: BTreeSet<String>,
}

impl TestHelpers {
    /// Finds the helpers that the tests of the base load, or that `seeds` or the files in
    /// `before_tests` load. Runners load the files in `before_tests` before the tests.
    pub(super) fn find(
        seeds: impl Iterator<Item = String>,
        before_tests: impl Iterator<Item = String>,
        base: &BaseFiles,
        tests: &BaseTests,
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

/// Returns whether a file helps checks, by its name or its folders.
pub(super) fn helps(path: &str) -> bool {
    path.split(['/', '_', '-', '.']).any(|word| HELPS.contains(&word.to_lowercase().as_str()))
}

/// Returns whether a source helps checks, by its text: it loads a test framework. A product that is
/// a test tool loads one as well. Sources in `src` or `lib`, and sources that a manifest names,
/// therefore do not count.
fn helps_by_text(
    path: &str,
    base: &BaseFiles,
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

/// Returns the joined texts of the manifests that name parts of the product, with `_` for `-`.
/// Leaves out the lines that name test folders.
fn manifests_of(base: &BaseFiles, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> String {
    let is_one = |path: &&String| MANIFESTS.contains(&name_of(path)) || path.ends_with(".gemspec");
    let texts: Vec<String> = base.0.iter().filter(is_one).take(MOST).filter_map(|path| text(path, read)).collect();
    let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.contains("testpaths"));
    lines.map(|line| line.replace('-', "_") + "\n").collect()
}

/// Returns the names by which a manifest may mean a source: its path, its module, and the packages
/// around the module.
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

/// Returns whether a text contains a name that is not part of a longer name.
fn holds(text: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name).any(|(start, _)| {
        !is_part(text[..start].chars().next_back()) && !is_part(text[start + name.len()..].chars().next())
    })
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns whether a file is in the same folder of scripts as the script that loads it.
fn is_beside(script: &str, path: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    is_script(path) && folder(script) == folder(path)
}

/// Returns the imports of all sources that are neither tests nor helpers.
fn by_product(
    base: &BaseFiles,
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

/// Returns the data files of the base that are not tests, by name.
fn data_by_name<'b>(base: &'b BaseFiles, tests: &BaseTests) -> BTreeMap<&'b str, Vec<&'b str>> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let is_data = |path: &&String| !is_source(path) && !tests.fit(path) && name_of(path).contains('.');
    for path in base.0.iter().filter(is_data) {
        names.entry(name_of(path)).or_default().push(path);
    }
    names
}

/// Returns the data files that a test names by their path, or by a name that only one file of the
/// base has.
fn named_data(path: &str, text: &str, base: &BaseFiles, names: &BTreeMap<&str, Vec<&str>>) -> Vec<String> {
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
