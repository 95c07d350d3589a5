//! The tests that laws name, in any language, and a search for them in source files.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// The endings of files that may contain tests.
const SOURCES: &str = " bash bats c cc clj cljs cpp cs cxx dart elm ex exs erl fs fsx go groovy h hpp hs java jl js jsx kt kts lua m \
    mjs cjs ml mm nim php pl py r rb rs scala sh sql svelte swift t ts tsx mts cts vue zig ";

/// A test as a law names it: the name after the last `::`, ` > ` or `#`, and the nearest enclosing
/// name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Citation {
    name: String,
    place: Option<String>,
}

/// The tests that laws name, and whether a source file contains them.
#[derive(Debug, Default)]
pub(super) struct LawTests {
    seen: BTreeMap<Citation, bool>,
}

/// Returns whether a file with this name contains code.
pub(super) fn is_source(path: &str) -> bool {
    let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
    ending.is_some_and(|(_, ending)| SOURCES.contains(&format!(" {ending} ")))
}

/// Returns the text in backticks at the end of a law.
pub(super) fn cited(law: &str) -> Option<&str> {
    let span = law.trim_end_matches(['.', ',', ';', ')', ' ']).strip_suffix('`')?;
    span.rsplit_once('`').map(|(_, name)| name)
}

impl Citation {
    /// Parses the name of a test. `None` if the text names no test: a single plain word without an
    /// enclosing name, such as `None` or `src/a.rs`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts: Vec<&str> =
            text.split("::").flat_map(|part| part.split(" > ")).flat_map(|part| part.split('#')).collect();
        let name = parts.pop()?.split(['(', '[']).next()?.trim();
        let place = parts.into_iter().rev().map(str::trim).find(|part| !matches!(*part, "" | "test" | "tests"));
        let is_camel = name.contains(char::is_lowercase) && name.chars().skip(1).any(char::is_uppercase);
        let tells = place.is_some() || is_camel || name.contains(['_', ' ']);
        (tells && !name.is_empty()).then(|| Self { name: name.into(), place: place.map(str::to_owned) })
    }
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{}` in `{place}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl LawTests {
    /// Adds a test that a law names.
    pub(super) fn want(&mut self, citation: Citation) {
        self.seen.entry(citation).or_default();
    }

    /// Looks for the tests in a source file. The file contains a test if it has the whole name
    /// outside of comment lines. The enclosing name must also be a word of the file or a part of
    /// its path.
    pub(super) fn see(&mut self, path: &str, text: &str) {
        let code = || text.lines().map(str::trim_start).filter(|line| !is_comment(line));
        let words: HashSet<&str> = code().flat_map(|line| line.split(|c| !is_word(c))).collect();
        for (Citation { name, place }, seen) in self.seen.iter_mut().filter(|(_, seen)| !**seen) {
            let is_there = || place.as_ref().is_none_or(|place| path.contains(place) || words.contains(place.as_str()));
            let has_name =
                words.contains(name.as_str()) || (!name.chars().all(is_word) && code().any(|line| line.contains(name)));
            *seen = has_name && is_there();
        }
    }

    /// Returns whether a source file contains the test.
    pub(super) fn has(&self, citation: &Citation) -> bool {
        self.seen.get(citation).is_some_and(|seen| *seen)
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && c.is_alphanumeric())
}

fn is_comment(line: &str) -> bool {
    ["//", "/*", "* ", "# ", "-- ", "<!--"].iter().any(|mark| line.starts_with(mark))
}
