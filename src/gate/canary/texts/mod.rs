//! The texts of planted tests. Each is made like tests of the base beside it, with their imports and
//! base classes, and there is one for each form of assertion that they use: code that silences one
//! of these silences a planted test, too, and so shows itself. Pure.

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

/// The most forms of assertions of one kind that are planted for a file of the base.
const MOST_FORMS: usize = 32;

/// A file of planted tests, before its words are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    /// The file of the base that it is made like, or the folder.
    pub(super) like: String,
    /// Its path, with placeholders.
    pub(super) path: String,
    /// The text before the tests.
    pub(super) head: String,
    pub(super) groups: Vec<Group>,
    /// The text behind the tests.
    pub(super) tail: String,
    /// Its plain text, where it has one.
    pub(super) plain: Option<Plain>,
}

/// What a file has in place of its head and tests where a lane sees none of these: a failing test that needs nothing of the
/// project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) head: String,
    pub(super) group: Group,
}

impl Plain {
    fn new(head: impl Into<String>, form: &str, test: String) -> Option<Self> {
        Some(Self { head: head.into(), group: Group::new("plain", vec![(form.into(), test)]) })
    }

    /// The same with a text around the test.
    fn within(head: impl Into<String>, form: &str, test: String, open: &str, close: &'static str) -> Option<Self> {
        let plain = Self::new(head, form, test)?;
        Some(Self { group: Group { open: open.into(), close, ..plain.group }, ..plain })
    }
}

/// Planted tests that a runner runs together: if it runs one of them, it runs all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) label: String,
    /// The text before and behind the tests, such as that of a class.
    pub(super) open: String,
    pub(super) close: &'static str,
    /// The form of each assertion, and the test that uses it.
    pub(super) tests: Vec<(String, String)>,
}

impl Group {
    fn new(label: impl Into<String>, tests: Vec<(String, String)>) -> Self {
        Self { label: label.into(), tests, ..Self::default() }
    }
}

/// Replaces the placeholders for the word of the file and for the name and the word of a test; the
/// names with a capital letter are words with one.
pub(super) fn filled(text: &str, file: &str, name: &str, mark: &str) -> String {
    let text = text.replace("{file}", file).replace("{File}", &capital(file));
    text.replace("{name}", name).replace("{Name}", &capital(name)).replace("{mark}", mark)
}

/// The package of a Go file.
pub(super) fn package_of(source: &str) -> Option<&str> {
    source.lines().find_map(|line| line.strip_prefix("package "))?.split_whitespace().next()
}

/// A word with a capital letter.
fn capital(word: &str) -> String {
    word.get(..1).map_or(String::new(), |first| [&first.to_uppercase(), &word[1..]].concat())
}

/// The names in a source, with the dots between them and a `!` behind them.
fn tokens(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '.' | '!');
    text.split(|letter| !is_part(letter)).filter(|token| !token.is_empty()).collect()
}

/// The rows of a table whose names are among these, in the order of the table.
fn used<'t>(table: &'t [(&'t str, &'t str)], names: &BTreeSet<&str>) -> Vec<(&'t str, &'t str)> {
    table.iter().filter(|(name, _)| names.contains(name)).take(MOST_FORMS).copied().collect()
}

/// The first lines of a text, up to one that begins with one of these.
fn until(text: &str, ends: &[&str]) -> String {
    let head: Vec<&str> = text.lines().take_while(|line| !ends.iter().any(|end| line.starts_with(end))).collect();
    head.join("\n")
}

#[cfg(test)]
mod tests;
