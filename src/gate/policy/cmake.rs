//! Sources of test programs that CMake builds, by the commands of `CMakeLists.txt`.

use super::Base;
use super::named::{inside, text};
use crate::gate::names::name_of;
use crate::gate::signs;
use std::collections::{BTreeMap, BTreeSet};

/// Commands that say which targets are tests.
const TESTS: &[&str] =
    &["add_test", "gtest_discover_tests", "catch_discover_tests", "doctest_discover_tests", "gtest_add_tests"];
/// Commands that name a target and its sources.
const TARGETS: &[&str] = &["add_executable", "add_library", "target_sources"];

/// The files of the base that only test programs have, and that begin them.
pub(super) fn tests(base: &Base, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> BTreeSet<String> {
    let (mut sources, mut tested): (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) = Default::default();
    for path in base.0.iter().filter(|path| name_of(path) == "CMakeLists.txt") {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let Some(text) = text(path, read) else { continue };
        for (command, words) in commands(&text) {
            if TESTS.contains(&command.as_str()) {
                tested.extend(words.iter().map(|word| (*word).to_owned()));
            } else if let Some((target, names)) = words.split_first().filter(|_| TARGETS.contains(&command.as_str())) {
                let files = names.iter().filter_map(|name| inside(folder, name)).filter(|file| base.has(file));
                sources.entry((*target).to_owned()).or_default().extend(files);
            }
        }
    }
    let (tests, product): (Vec<_>, Vec<_>) = sources.into_iter().partition(|(target, _)| tested.contains(target));
    let product: BTreeSet<String> = product.into_iter().flat_map(|(_, files)| files).collect();
    let own = tests.into_iter().flat_map(|(_, files)| files).filter(|file| !product.contains(file));
    own.filter(|file| text(file, read).is_some_and(|text| signs::has(&text, signs::OF_C))).collect()
}

/// Each command with its words, without comments.
fn commands(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut found = Vec::new();
    for part in text.split(')') {
        let Some((before, words)) = part.rsplit_once('(') else { continue };
        let command = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
        let lines = words.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || c == '"'));
        found.push((command, words.filter(|word| !word.is_empty()).collect()));
    }
    found
}
