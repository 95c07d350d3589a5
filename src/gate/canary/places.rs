//! The places in which fledge plants failing tests.

use crate::gate::names::name_of;
use crate::lane::CanaryTerms;
use std::collections::BTreeMap;

/// The maximum number of places. Those nearest to the root are used.
const MOST_PLACES: usize = 16;
/// The maximum number of files in one place that planted tests imitate.
const MOST_LIKES: usize = 32;
/// Usual names of folders with third-party code in C++, whose tests a project does not run.
const VENDORED: [&str; 10] = [
    "3rdparty",
    "_deps",
    "deps",
    "extern",
    "external",
    "googletest",
    "subprojects",
    "third_party",
    "thirdparty",
    "vendor",
];
/// The maximum number of Rust source files that are searched for unit tests.
const MOST_UNITS: usize = 32;

/// The folders and source files in which tests are planted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::gate) struct PlantingPlaces {
    /// Folders, each with the files of the base that its planted tests imitate.
    pub(super) folders: Vec<(String, Vec<String>)>,
    /// Source files of the work that may contain unit tests.
    pub(super) units: Vec<String>,
}

impl PlantingPlaces {
    /// Chooses places from the paths of the base: each folder with tests, or each package.
    pub(in crate::gate) fn choose(canary: &CanaryTerms, paths: &[String]) -> Self {
        let of = |is_test: &dyn Fn(&str) -> bool| Self { folders: folders(paths, is_test), units: Vec::new() };
        match canary {
            CanaryTerms::Pytest => of(&is_python_test).or_root(),
            CanaryTerms::NodeTest | CanaryTerms::Jest => of(&is_script_test).or_root(),
            CanaryTerms::CargoTest => {
                let mut places = of(&|path| name_of(path) == "Cargo.toml");
                for (folder, likes) in &mut places.folders {
                    let tests = format!("{folder}tests/");
                    let is_program = |path: &&String| {
                        path.strip_prefix(&tests).is_some_and(|name| name.ends_with(".rs") && !name.contains('/'))
                    };
                    likes.extend(paths.iter().filter(is_program).take(MOST_LIKES).cloned());
                }
                places
            }
            CanaryTerms::GoTest => {
                let is_built = |path: &str| !path.split('/').any(|part| part == "testdata" || part == "vendor");
                let mut places = of(&|path| path.ends_with("_test.go") && is_built(path));
                if places.folders.is_empty() {
                    places = of(&|path| path.ends_with(".go") && is_built(path));
                    places.folders.truncate(1);
                    places.folders.iter_mut().for_each(|(_, likes)| likes.truncate(1));
                }
                places
            }
            CanaryTerms::Junit => of(&is_java_test),
            CanaryTerms::CppTest => {
                // A file with another name is a test if it includes a framework.
                let is_own = |path: &&String| is_cpp(path) && !path.split('/').any(|part| VENDORED.contains(&part));
                let mut files: Vec<&String> = paths.iter().filter(is_own).collect();
                files.sort_by_key(|path| (!is_cpp_test(path), path.matches('/').count(), *path));
                let named = files.iter().filter(|path| is_cpp_test(path)).count().min(MOST_PLACES);
                let others = files.iter().filter(|path| !is_cpp_test(path)).take(MOST_LIKES - named);
                let files = files[..named].iter().chain(others);
                let folders = files.map(|path| (folder_of(path).to_owned(), vec![(*path).clone()])).collect();
                Self { folders, units: Vec::new() }
            }
            CanaryTerms::Auto | CanaryTerms::None | CanaryTerms::File { .. } => Self::default(),
        }
    }

    /// Adds the Rust source files that may contain unit tests, from the paths of the work. Files
    /// for which `is_changed` returns true come first.
    pub(in crate::gate) fn look_inside(&mut self, paths: &[String], is_changed: impl Fn(&str) -> bool) {
        const NO_UNITS: [&str; 5] = ["tests", "benches", "examples", "target", "fixtures"];
        let is_unit = |path: &&String| {
            path.ends_with(".rs")
                && name_of(path) != "build.rs"
                && !folder_of(path).split('/').any(|part| NO_UNITS.contains(&part))
                && self.folders.iter().any(|(folder, _)| path.starts_with(folder.as_str()))
        };
        let mut units: Vec<&String> = paths.iter().filter(is_unit).collect();
        units.sort_by_key(|path| (!is_changed(path), path.matches('/').count(), *path));
        self.units = units.into_iter().take(MOST_UNITS).cloned().collect();
    }

    /// Returns the files of the base that planted tests imitate.
    pub(in crate::gate) fn likes(&self) -> impl Iterator<Item = &String> {
        self.folders.iter().flat_map(|(_, likes)| likes)
    }

    /// Returns the files of the work to which planted tests are added.
    pub(in crate::gate) fn units(&self) -> impl Iterator<Item = &String> {
        self.units.iter()
    }

    fn or_root(mut self) -> Self {
        if self.folders.is_empty() {
            self.folders.push((String::new(), Vec::new()));
        }
        self
    }
}

fn is_python_test(path: &str) -> bool {
    let name = name_of(path);
    name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"))
}

fn is_script_test(path: &str) -> bool {
    let stem = ["js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx"];
    let stem = stem.iter().find_map(|ending| name_of(path).strip_suffix(ending)?.strip_suffix('.'));
    let ends = [".test", ".spec", "_test", "-test"];
    let is_named = |stem: &str| ends.iter().any(|end| stem.ends_with(end)) || stem.starts_with("test-");
    // Folders whose files are all tests for Node and Jest.
    let is_in_folder = || matches!(name_of(folder_of(path).trim_end_matches('/')), "test" | "__tests__");
    stem.is_some_and(|stem| stem == "test" || is_named(stem) || is_in_folder())
}

fn is_java_test(path: &str) -> bool {
    let stem = name_of(path).strip_suffix(".java");
    stem.is_some_and(|stem| {
        stem.starts_with("Test") || ["Test", "Tests", "TestCase"].iter().any(|end| stem.ends_with(end))
    })
}

fn is_cpp(path: &str) -> bool {
    matches!(path.rsplit_once('.'), Some((_, "cpp" | "cc" | "cxx")))
}

fn is_cpp_test(path: &str) -> bool {
    let Some((stem, "cpp" | "cc" | "cxx")) = path.rsplit_once('.') else { return false };
    let is_named = |part: &str| part.to_ascii_lowercase().contains("test");
    let is_below = |part: &str| ["test", "tests", "unittest", "unittests"].contains(&part);
    is_named(name_of(stem)) || folder_of(path).split('/').any(is_below)
}

/// Returns the folders that directly contain files selected by `is_one`, those nearest to the root
/// first. Each folder ends with `/`, except the root, and comes with its first such files.
fn folders(paths: &[String], is_one: &dyn Fn(&str) -> bool) -> Vec<(String, Vec<String>)> {
    let mut found: BTreeMap<(usize, &str), Vec<String>> = BTreeMap::new();
    for path in paths.iter().filter(|path| is_one(path)) {
        found.entry((path.matches('/').count(), folder_of(path))).or_default().push(path.clone());
    }
    let first = |mut likes: Vec<String>| {
        likes.truncate(MOST_LIKES);
        likes
    };
    found.into_iter().map(|((_, folder), likes)| (folder.to_owned(), first(likes))).take(MOST_PLACES).collect()
}

fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..=end])
}
