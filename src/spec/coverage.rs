//! The coverage of a project by the `files` of its specs: items without a file, and modules without
//! a spec.

use super::law::is_source;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::{BTreeMap, BTreeSet};

/// The folders that contain a project's modules.
const ROOTS: [&str; 6] = ["src", "lib", "app", "pkg", "internal", "Sources"];
/// Names of entry files, which are not modules themselves.
const ENTRIES: [&str; 6] = ["__init__", "__main__", "index", "lib", "main", "mod"];

/// All `files` items of all specs, and the files recorded so far.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    items: Vec<String>,
    globs: GlobSet,
    /// The item of each glob. An item has two globs: itself, and everything below it.
    of: Vec<usize>,
    found: BTreeSet<usize>,
    /// Source files, and whether an item covers them.
    sources: BTreeMap<String, bool>,
}

impl Coverage {
    /// Creates the coverage of these items, which are globs or paths.
    pub(super) fn of(items: Vec<String>) -> Self {
        let (mut globs, mut of) = (GlobSetBuilder::new(), Vec::new());
        for (at, item) in items.iter().enumerate() {
            for glob in [item.clone(), format!("{item}/**")] {
                if let Ok(glob) = GlobBuilder::new(&glob).literal_separator(true).build() {
                    globs.add(glob);
                    of.push(at);
                }
            }
        }
        let globs = globs.build().unwrap_or_default();
        Self { items, globs, of, found: BTreeSet::new(), sources: BTreeMap::new() }
    }

    /// Records a file of the project.
    pub(super) fn see(&mut self, path: &str) {
        let mut by: BTreeSet<usize> = self.globs.matches(path).into_iter().map(|glob| self.of[glob]).collect();
        by.extend(self.items.iter().enumerate().filter(|(_, item)| *item == path).map(|(at, _)| at)); // `[id].tsx` is also a name
        if is_source(path) && !is_test(path) {
            self.sources.insert(path.to_owned(), !by.is_empty());
        }
        self.found.extend(by);
    }

    /// Returns the items without a matching file.
    pub(super) fn missing(&self) -> impl Iterator<Item = &str> {
        let is_missing = |(at, _): &(usize, &String)| !self.found.contains(at);
        self.items.iter().enumerate().filter(is_missing).map(|(_, item)| item.as_str())
    }

    /// Returns the path and name of each module without a file in a spec. Modules are folders and
    /// single files in the folders for modules.
    pub(super) fn bare(&self) -> Vec<(String, String)> {
        let packages = self.sources.keys().filter_map(|path| path.strip_suffix("/__init__.py"));
        let roots: BTreeSet<&str> = ROOTS.into_iter().chain(packages.filter(|path| !path.contains('/'))).collect();
        let mut modules = BTreeMap::<(String, String), bool>::new();
        for root in roots {
            let root = self.descend(root.to_owned());
            for (rest, is_covered) in self.below(&root) {
                let name = rest.split(['/', '.']).next().unwrap_or(rest);
                let is_folder = rest.contains('/');
                if is_folder || !ENTRIES.contains(&name) {
                    let path = format!("{root}/{}", if is_folder { name } else { rest });
                    *modules.entry((path, name.to_owned())).or_default() |= is_covered;
                }
            }
        }
        modules.into_iter().filter(|(_, is_covered)| !is_covered).map(|(module, _)| module).collect()
    }

    /// Descends while a folder contains only one folder, as in `src/main/java/org/example`.
    fn descend(&self, mut root: String) -> String {
        loop {
            let first = |(rest, _): (&str, bool)| rest.split_once('/').map(|(folder, _)| folder.to_owned());
            let inner: BTreeSet<Option<String>> =
                self.below(&root).filter(|(rest, _)| *rest != "__init__.py").map(first).collect();
            match inner.into_iter().collect::<Vec<_>>().as_slice() {
                [Some(folder)] => root = format!("{root}/{folder}"),
                _ => return root,
            }
        }
    }

    /// Returns the sources below a folder: their paths relative to it, and whether an item covers
    /// them.
    fn below(&self, folder: &str) -> impl Iterator<Item = (&str, bool)> {
        let below = format!("{folder}/");
        let start = self.sources.range(below.clone()..);
        start.map_while(move |(path, is_covered)| Some((path.strip_prefix(&below)?, *is_covered)))
    }
}

/// Returns whether the name of a file or of one of its folders marks tests.
fn is_test(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let ends = ["_test", ".test", "_tests", "_spec", ".spec", "Test", "Tests"];
    folders.split('/').any(|folder| matches!(folder, "test" | "tests" | "__tests__" | "testdata"))
        || matches!(stem, "test" | "tests")
        || stem.starts_with("test_")
        || ends.iter().any(|end| stem.ends_with(end))
}
