//! The tests of a base: files with names of tests, files that runners or commands select, and files
//! in folders that contain only tests.

use super::BaseFiles;
use super::ecosystems::TEST_FILES;
use super::imports::modules_for_tests;
use super::named::{inside, is_source, text};
use super::{cmake, exactly, folders_of, loaded_by_tests, manifest, test_folders, tests_selected};
use crate::gate::names::{joined, name_of};
use crate::gate::signs;
use crate::lane::Lane;
use crate::pattern::{PatternError, Patterns};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The maximum number of files that are read.
const MOST: usize = 2000;

/// Extensions of files that are only tests.
const PROGRAMS: [&str; 2] = [".t", ".bats"];

/// The tests of a base.
#[derive(Debug, Default)]
pub(super) struct BaseTests {
    /// Tests that no pattern of the table names. The patterns of the table are compiled once for
    /// the process.
    others: Option<Patterns>,
}

impl BaseTests {
    /// Finds the tests of a base. `read` returns the content of a file of the base.
    ///
    /// # Errors
    /// Returns the first path that is not a valid pattern.
    pub(super) fn find(
        lanes: &[Lane],
        base: &BaseFiles,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Result<Self, PatternError> {
        let mut more: BTreeSet<String> = cmake::tests(base, read);
        more.extend(of_unittest(base, read));
        more.extend(of_rust(base, read));
        more.extend(tests_selected::find(lanes, base, &Self::default(), read));
        let helpers = test_folders::helpers(base, &|path| is_named(path) || more.contains(path), &helps_in_place, read);
        more.extend(helpers);
        let is_test = |path: &str| is_named(path) || more.contains(path);
        let mut folders = whole_folders(base, &is_test);
        let product: Vec<String> =
            folders.iter().filter(|folder| is_product(folder, base, &is_test, read)).cloned().collect();
        folders.retain(|folder| {
            !product.iter().any(|package| package == folder || folders_of(package).any(|above| above == folder))
        });
        let exact: Vec<String> = more.iter().chain(&folders).map(|path| exactly(path)).collect();
        Ok(Self { others: Some(Patterns::trees(exact.iter().map(String::as_str))?) })
    }

    /// Returns whether a path is that of a test.
    pub(super) fn fit(&self, path: &str) -> bool {
        is_named(path) || self.others.as_ref().is_some_and(|others| others.fit(path))
    }

    /// Returns the tests of a base, without manifests. `CMakeLists.txt` counts as a test here:
    /// among tests, it only lists tests.
    pub(super) fn of_base<'b>(&'b self, base: &'b BaseFiles) -> impl Iterator<Item = &'b String> {
        let is_plain = |path: &str| !manifest::is_one(path) || name_of(path) == "CMakeLists.txt";
        base.0.iter().filter(move |path| self.fit(path) && is_plain(path))
    }
}

/// Returns whether a path is that of a test by its name.
pub(super) fn is_named(path: &str) -> bool {
    static NAMES: LazyLock<Option<Patterns>> =
        LazyLock::new(|| Patterns::trees(TEST_FILES.iter().flat_map(|(_, globs)| *globs).copied()).ok());
    NAMES.as_ref().is_some_and(|names| names.fit(path))
}

/// Returns files that unittest finds by `test*.py` and that have tests. Only some of them have
/// names of the table.
fn of_unittest<'b>(
    base: &'b BaseFiles,
    read: &'b mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> impl Iterator<Item = String> + 'b {
    let may_be = |path: &&String| name_of(path).starts_with("test") && path.ends_with(".py") && !is_named(path);
    let is_one = move |path: &&String| text(path, read).is_some_and(|text| signs::has(&text, signs::OF_PYTHON));
    base.0.iter().filter(may_be).take(MOST).filter(is_one).cloned()
}

/// Returns the Rust sources that another source declares as modules only for its tests, and the
/// test targets of manifests.
fn of_rust(base: &BaseFiles, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in base.0.iter().filter(|path| path.ends_with(".rs")).take(MOST) {
        found.extend(text(path, read).iter().flat_map(|text| modules_for_tests(path, text, base)));
    }
    for path in base.0.iter().filter(|path| name_of(path) == "Cargo.toml").take(MOST) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let targets = read(path).map_or_else(Vec::new, |bytes| manifest::test_targets(path, &bytes));
        found.extend(targets.iter().filter_map(|target| inside(folder, target)).filter(|path| base.has(path)));
    }
    found
}

/// Returns the folders that contain tests, no manifest, and only sources that are tests or help
/// tests. Other files in these folders are test data.
fn whole_folders(base: &BaseFiles, is_test: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
    let (mut with_tests, mut with_others) = (BTreeSet::new(), BTreeSet::new());
    let is_program = |path: &str| is_source(path) || PROGRAMS.iter().any(|ending| path.ends_with(ending));
    for path in &base.0 {
        let folders = || folders_of(path).map(ToOwned::to_owned);
        match () {
            () if is_program(path) && is_test(path) => with_tests.extend(folders()),
            () if (is_source(path) && !helps_in_place(path)) || manifest::is_one(path) => with_others.extend(folders()),
            () => {}
        }
    }
    with_tests.difference(&with_others).cloned().collect()
}

/// Returns whether a folder is a package of Python that its own tests import: a package of the
/// product, with tests beside its code.
fn is_product(
    folder: &str,
    base: &BaseFiles,
    is_test: &dyn Fn(&str) -> bool,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> bool {
    let package = joined(folder, "__init__.py");
    if !base.has(&package) || is_test(&package) {
        return false;
    }
    let defines = |line: &str| ["def ", "class ", "async def "].iter().any(|start| line.starts_with(start));
    if !text(&package, read).is_some_and(|text| text.lines().any(defines)) {
        return false;
    }
    let (start, name) = (format!("{folder}/"), name_of(folder));
    let inside = base.0.range(start.clone()..).take_while(|path| path.starts_with(&start));
    let mut tests = inside.filter(|path| path.ends_with(".py") && is_test(path));
    let from = [format!("from {name} import"), format!("import {name}"), "from . import".to_owned()];
    tests.any(|path| text(path, read).is_some_and(|text| from.iter().any(|from| text.contains(from.as_str()))))
}

/// Returns whether a source among tests belongs to them by its name.
fn helps_in_place(path: &str) -> bool {
    let name = name_of(path);
    matches!(name, "__init__.py" | "conftest.py") || loaded_by_tests::helps(name)
}
