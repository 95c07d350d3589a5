//! The texts of planted tests. They imitate the tests of the base beside them: they have the same
//! imports and base classes, with one test for each form of assertion. Code that silences a form of
//! assertion also silences a planted test, and so reveals itself. Pure.

mod cpp;
mod go;
mod java;
mod python;
mod rust;
mod script;

pub(super) use cpp::cpp;
pub(super) use go::go;
pub(super) use java::{in_class, junit};
pub(super) use python::pytest;
pub(super) use rust::{integration, library, unit};
pub(super) use script::{jest, node};

use std::collections::BTreeSet;

/// The maximum number of forms of assertions of one kind that are planted for a file of the base.
const MOST_FORMS: usize = 32;

/// The label of the group of a [`PlainFailure`].
pub(super) const PLAIN: &str = "plain";

/// A file of planted tests whose placeholders are not filled yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlantDraft {
    /// The imitated file, or the folder.
    pub(super) like: String,
    /// The path, with placeholders.
    pub(super) path: String,
    /// The text before the tests.
    pub(super) head: String,
    pub(super) groups: Vec<PlantGroup>,
    /// The text after the tests.
    pub(super) tail: String,
    /// The plain variant of the file, if it has one.
    pub(super) plain: Option<PlainFailure>,
}

/// A variant of a file for lanes that see none of its tests. It replaces the head and tests with a
/// failing test that needs nothing of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlainFailure {
    pub(super) head: String,
    pub(super) group: PlantGroup,
}

impl PlainFailure {
    fn new(head: impl Into<String>, form: &str, test: String) -> Option<Self> {
        Some(Self { head: head.into(), group: PlantGroup::new(PLAIN, vec![(form.into(), test)]) })
    }

    /// Like [`PlainFailure::new`], with `open` and `close` around the test.
    fn within(head: impl Into<String>, form: &str, test: String, open: &str, close: &'static str) -> Option<Self> {
        let plain = Self::new(head, form, test)?;
        Some(Self { group: PlantGroup { open: open.into(), close, ..plain.group }, ..plain })
    }
}

/// Planted tests that a runner runs together: if it runs one of them, it runs all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlantGroup {
    pub(super) label: String,
    /// The text before the tests, such as a class declaration. `close` is the text after them.
    pub(super) open: String,
    pub(super) close: &'static str,
    /// The form of each assertion, and the test that uses it.
    pub(super) tests: Vec<(String, String)>,
}

impl PlantGroup {
    fn new(label: impl Into<String>, tests: Vec<(String, String)>) -> Self {
        Self { label: label.into(), tests, ..Self::default() }
    }
}

/// Replaces the placeholders with the file's word, the test's name and its mark. Placeholders with
/// a capital letter get the capitalized word.
pub(super) fn filled(text: &str, file: &str, name: &str, mark: &str) -> String {
    let text = text.replace("{file}", file).replace("{File}", &capital(file));
    text.replace("{name}", name).replace("{Name}", &capital(name)).replace("{mark}", mark)
}

/// Returns the package of a Go file.
pub(super) fn package_of(source: &str) -> Option<&str> {
    source.lines().find_map(|line| line.strip_prefix("package "))?.split_whitespace().next()
}

/// Returns a word with its first letter capitalized.
fn capital(word: &str) -> String {
    word.get(..1).map_or(String::new(), |first| [&first.to_uppercase(), &word[1..]].concat())
}

/// Returns the names in a source with their dots and a following `!`, such as `assert.equal` or
/// `panic!`.
fn tokens(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '.' | '!');
    text.split(|letter| !is_part(letter)).filter(|token| !token.is_empty()).collect()
}

/// Returns the rows of a table whose names are in `names`, in the order of the table. Returns at
/// most [`MOST_FORMS`] rows.
fn used<'t>(table: &'t [(&'t str, &'t str)], names: &BTreeSet<&str>) -> Vec<(&'t str, &'t str)> {
    table.iter().filter(|(name, _)| names.contains(name)).take(MOST_FORMS).copied().collect()
}

/// Returns the lines of a text before the first line that starts with one of `ends`.
fn until(text: &str, ends: &[&str]) -> String {
    let head: Vec<&str> = text.lines().take_while(|line| !ends.iter().any(|end| line.starts_with(end))).collect();
    head.join("\n")
}

#[cfg(test)]
mod tests;
