//! Test folders of the base, and helpers in them that only their tests load. The names of these
//! helpers do not show that they help tests. Pure.

use super::BaseFiles;
use super::imports::imported;
use super::named::{is_source as is_any_source, text};
use super::{folders_of, manifest};
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of sources that are read.
const MOST: usize = 2000;
/// Words in the name of a test that do not belong to the name of the tested source.
const PARTS: &[&str] = &["test", "tests", "spec", "it", "e2e", "cy", "check", "unit"];

/// Names of test folders.
const OF_TESTS: &[&str] = &["test", "tests", "spec", "specs", "__tests__", "e2e", "cypress", "xt"];
/// Names of test folders at the root alone. Folders of the product may have these names at other
/// places.
const OF_TESTS_AT_ROOT: &[&str] = &["unit", "integration", "functional", "acceptance", "testing", "t", "qa"];
/// Extensions of files that are not code.
const NO_CODE: &[&str] = &[".md", ".css", ".scss", ".sass", ".html"];

/// A folder that may contain tests.
struct Folder<'b> {
    path: &'b str,
    tests: Vec<&'b String>,
    /// The sources that are not tests by their names.
    others: BTreeSet<&'b String>,
}

/// The files that each source imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Finds sources of the base that only the tests of their folder load. `is_test` returns whether a
/// path is a test, and `helps` whether its name shows that it helps tests. `read` returns the
/// content of a file of the base.
///
/// Only a folder with the name of a test folder, or a folder in one, has helpers. Elsewhere,
/// sources that only tests load are the product beside their tests. A folder has no helpers if one
/// of its sources that are not tests
///
/// - has the name of a source that a test of the folder tests,
/// - is loaded from outside of the folder, or by no test, or
/// - is loaded by a test that loads no product source outside of the folder.
pub(super) fn helpers(
    base: &BaseFiles,
    is_test: &dyn Fn(&str) -> bool,
    helps: &dyn Fn(&str) -> bool,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let mut folders = folders(base, is_test, helps);
    folders.retain(|folder| is_of_tests(folder.path) && !folder.others.is_empty() && !folder.has_namesakes());
    if folders.is_empty() {
        return BTreeSet::new();
    }
    let sources: Vec<&String> = base.0.iter().filter(|path| is_source(path)).collect();
    if sources.len() > MOST {
        return BTreeSet::new();
    }
    let imports: Imports = sources
        .into_iter()
        .map(|path| (path.clone(), text(path, read).map_or_else(BTreeSet::new, |text| imported(path, &text, base))))
        .collect();
    let of_tests = folders.iter().filter(|folder| folder.is_of_tests(&imports, is_test));
    of_tests.flat_map(|folder| folder.others.iter().map(|path| (*path).clone())).collect()
}

/// Returns the outermost folders with tests. Leaves out the folders of packages and folders below
/// product sources.
fn folders<'b>(base: &'b BaseFiles, is_test: &dyn Fn(&str) -> bool, helps: &dyn Fn(&str) -> bool) -> Vec<Folder<'b>> {
    let folder_of = |path: &'b str| path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let manifests = base.0.iter().filter(|path| manifest::is_one(path));
    let packages: BTreeSet<&str> = manifests.map(|path| folder_of(path)).chain([""]).collect();
    let (mut with_tests, mut with_others) = (BTreeSet::new(), BTreeSet::new());
    for path in base.0.iter().filter(|path| is_source(path)) {
        match is_test(path) {
            true => with_tests.insert(folder_of(path)),
            false => !helps(path) && with_others.insert(folder_of(path)),
        };
    }
    let is_taken =
        |above: &str| !packages.contains(above) && (with_tests.contains(above) || with_others.contains(above));
    let is_outermost = |folder: &&&str| !packages.contains(**folder) && !folders_of(folder).any(is_taken);
    let outermost: Vec<&str> = with_tests.iter().filter(is_outermost).copied().collect();
    let folder = |path: &'b str| {
        let below = format!("{path}/");
        let sources =
            base.0.range(below.clone()..).take_while(|path| path.starts_with(&below)).filter(|path| is_source(path));
        let (tests, others): (Vec<&String>, Vec<&String>) = sources.partition(|path| is_test(path));
        Folder { path, tests, others: others.into_iter().filter(|path| !helps(path)).collect() }
    };
    outermost.into_iter().map(folder).collect()
}

/// Returns whether a folder has the name of a test folder or is in one.
pub(super) fn is_of_tests(folder: &str) -> bool {
    let is_named = |name: &str| OF_TESTS.contains(&name) || name.ends_with("_tests") || name.ends_with("-tests");
    folder.split('/').any(is_named) || folder.split('/').next().is_some_and(|name| OF_TESTS_AT_ROOT.contains(&name))
}

impl Folder<'_> {
    fn has(&self, path: &str) -> bool {
        path.strip_prefix(self.path).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns whether one of the other sources has the name of a source that a test of the folder
    /// tests. Product sources beside their tests do.
    fn has_namesakes(&self) -> bool {
        let tested: BTreeSet<String> = self.tests.iter().map(|path| tested(path)).collect();
        let is_of = |tested: &String, name: &str| {
            tested.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        self.others.iter().map(|path| tested_name(path)).any(|name| tested.iter().any(|tested| is_of(tested, &name)))
    }

    /// Returns whether all other sources of the folder only serve its tests, and these test code
    /// outside of the folder.
    fn is_of_tests(&self, imports: &Imports, is_test: &dyn Fn(&str) -> bool) -> bool {
        let is_loaded_elsewhere = imports
            .iter()
            .filter(|(path, _)| !self.has(path) && !is_test(path))
            .any(|(_, loaded)| loaded.iter().any(|path| self.others.contains(path)));
        let of = |path: &String| imports.get(path).into_iter().flatten();
        let (mut reached, mut open): (BTreeSet<&String>, Vec<&String>) = (BTreeSet::new(), self.tests.clone());
        while let Some(path) = open.pop() {
            open.extend(of(path).filter(|path| self.others.contains(path) && reached.insert(*path)));
        }
        let tests_others = |test: &&String| {
            let loads_helper = of(test).any(|path| self.others.contains(path));
            !loads_helper || of(test).any(|path| is_source(path) && !self.has(path) && !is_test(path))
        };
        !is_loaded_elsewhere && reached.len() == self.others.len() && self.tests.iter().all(tests_others)
    }
}

/// Returns the name of the source that a test is named after.
fn tested(path: &str) -> String {
    let name = tested_name(path);
    let words = name.split(['.', '_', '-']).filter(|word| !PARTS.contains(word));
    words.collect::<Vec<_>>().join("_")
}

/// Returns the normalized name of a source, without its extension.
fn tested_name(path: &str) -> String {
    let name = name_of(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase().replace(['.', '-'], "_")
}

fn is_source(path: &str) -> bool {
    is_any_source(path) && !NO_CODE.iter().any(|ending| path.ends_with(ending))
}
