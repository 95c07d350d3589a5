//! Assertions that a source redefines, as macros of Rust, C or C++. Such a macro can silence
//! chosen tests: the planted tests of a canary still fail, because it leaves their values alone.

use super::named::text;
use super::tests_named::BaseTests;
use super::{BaseFiles, PathChange, PathChangeKind, Policy};
use crate::gate::names::name_of;
use crate::verdict::TamperFinding;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::str::FromStr as _;

/// Macros with which tests in Rust compare.
#[rustfmt::skip]
const OF_RUST: [&str; 9] = [
    "assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "prop_assert", "prop_assert_eq", "prop_assert_ne",
];
/// Macros of Rust with which a test fails or compares. Other things have these names, too, so only
/// their definitions count.
const NAMED_LIKE_OTHERS: [&str; 3] = ["matches", "panic", "unreachable"];
/// The attribute of tests in Rust.
const TEST: &str = "test";
/// Endings of headers in C and C++, and of other files that sources include.
#[rustfmt::skip]
const INCLUDED: [&str; 15] =
    ["def", "h", "H", "h++", "hh", "hpp", "hxx", "in", "inc", "inl", "ipp", "tcc", "tpl", "tpp", "txx"];
/// Endings of sources in C and C++ that are compiled by themselves. What they define holds only
/// there, unless another source includes them.
const COMPILED: [&str; 7] = ["c", "C", "c++", "cc", "cpp", "cxx", "m"];
/// Beginnings of the names of assertions and of declarations of tests, in the frameworks of C and
/// C++.
#[rustfmt::skip]
const FRAMEWORKS: [&str; 24] = [
    "ASSERT", "BOOST_", "CHECK", "CPPUNIT_", "CU_ASSERT", "EXPECT_", "FAIL", "GREATEST_", "QCOMPARE", "QVERIFY", "REQUIRE", "RUN_TEST", "SCENARIO",
    "SECTION", "STATIC_REQUIRE", "SUBCASE", "SUCCEED", "TEST", "TYPED_TEST", "assert", "ck_assert", "cr_assert", "mu_assert", "munit_assert",
];
/// Beginnings of the names of macros that these assertions use, and of the switches that take the
/// assertions out.
#[rustfmt::skip]
const INTERNAL: [&str; 8] = [
    "BOOST_TEST_", "CATCH_CONFIG_DISABLE", "DOCTEST_", "GMOCK_", "GTEST_", "INTERNAL_CATCH_", "UNITY_FAIL", "UNITY_TEST_ASSERT",
];
/// Functions of the C library with which tests compare or fail.
const FUNCTIONS: [&str; 7] = ["abort", "exit", "memcmp", "printf", "puts", "strcmp", "strncmp"];
/// Keywords of C. A header that defines one changes every test that includes the header.
const KEYWORDS: [&str; 8] = ["case", "do", "else", "for", "if", "return", "switch", "while"];
/// The macro that takes out `assert` of C.
const NDEBUG: &str = "NDEBUG";
/// Values of options that do not define a macro: `-DTEST=ON` configures a build.
const SETTINGS: [&str; 8] = ["0", "1", "ON", "OFF", "TRUE", "FALSE", "on", "off"];
/// The maximum number of tests of the base that are read, and of other sources in C and C++.
const MOST: usize = 500;
const MOST_SOURCES: usize = 2000;
/// The longest comment inside a directive of C, and the longest list of parameters, in bytes.
const LONGEST: usize = 4096;

/// Names that the tests of the base use, in C and C++, and files that its sources include.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Assertions {
    /// Macros and functions with which they compare or fail.
    names: BTreeSet<String>,
    /// Names of files that sources of the base include, without those with an ending of
    /// [`INCLUDED`].
    included: BTreeSet<String>,
}

impl Assertions {
    /// Collects the names in the tests of a base. `read` returns the content of a file of the base.
    pub(super) fn from_base(
        base: &BaseFiles,
        tests: &BaseTests,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Self {
        let is_c = |path: &&String| has_ending(path, &INCLUDED) || has_ending(path, &COMPILED);
        let (own, others): (Vec<&String>, Vec<&String>) = base.0.iter().filter(is_c).partition(|path| tests.fit(path));
        let decides = |name: &str| FUNCTIONS.contains(&name) || starts_with(name, &FRAMEWORKS);
        let mut found = Self::default();
        for text in own.into_iter().take(MOST).filter_map(|path| text(path, read)) {
            let CDirectives { defined, included, .. } = CDirectives::read(&text);
            let names = called(&text).map(str::to_owned).chain(defined);
            found.names.extend(names.filter(|name| decides(name)));
            found.included.extend(included);
        }
        if !found.names.is_empty() {
            let texts = others.into_iter().take(MOST_SOURCES).filter_map(|path| text(path, read));
            found.included.extend(texts.flat_map(|text| CDirectives::read(&text).included));
        }
        let of_rust = base.0.iter().filter(|path| is_rust(path)).take(MOST_SOURCES);
        let texts = of_rust.filter_map(|path| text(path, read));
        found.included.extend(texts.flat_map(|text| quoted_includes(&text).collect::<Vec<_>>()));
        found
    }

    /// Returns whether a header must not define a macro of this name.
    fn guards(&self, name: &str) -> bool {
        let has_tests = !self.names.is_empty();
        let is_switch = name == NDEBUG && self.names.contains("assert");
        let is_general = has_tests && (KEYWORDS.contains(&name) || starts_with(name, &INTERNAL));
        is_general || is_switch || self.names.contains(name)
    }
}

/// The assertions that one changed file may redefine.
#[derive(Debug, Default)]
pub struct RedefinedAssertions {
    /// The names that it defines.
    defined: BTreeSet<String>,
    /// The names that it passes to macros of Rust.
    passed: BTreeSet<String>,
    /// True if it has a macro of Rust that defines macros by names that it is given.
    makes_macros: bool,
    /// The names of other files that it includes, or leads to as a link.
    included: BTreeSet<String>,
    /// True if it computes the name of a file that it includes.
    includes_computed: bool,
    /// True if it is too large to be read.
    is_unread: bool,
}

impl RedefinedAssertions {
    /// Returns the answer for a file that is too large to be read.
    pub fn unread() -> Self {
        Self { is_unread: true, ..Self::default() }
    }

    /// Returns the answer for a link to another file.
    pub fn of_link(leads_to: &str) -> Self {
        Self { included: [name_of(leads_to).to_owned()].into(), ..Self::default() }
    }
}

impl RedefinedAssertions {
    /// Adds a file that a Rust source includes, by the source's expression for its path.
    fn include(&mut self, path: String) {
        match path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) {
            Some(path) if !path.contains(['"', '\\']) => drop(self.included.insert(name_of(path).to_owned())),
            _ => self.includes_computed = true,
        }
    }
}

impl Policy {
    /// Returns whether a change may redefine assertions: the file is a source in Rust, C or C++,
    /// builds C, or is included by one of these `sources`, and is neither protected nor opened by
    /// the task.
    pub fn may_redefine_assertions(&self, change: &PathChange, sources: &[(&PathChange, RedefinedAssertions)]) -> bool {
        let path = change.path.as_str();
        let has_c = !self.frozen.assertions.names.is_empty();
        let is_c = || has_ending(path, &INCLUDED) || has_ending(path, &COMPILED) || builds_c(path);
        let is_read = is_rust(path) || (has_c && is_c()) || self.is_included(path, sources);
        is_read && change.kind != PathChangeKind::ModeChanged && self.rule(path).is_none() && !self.is_opened(path)
    }

    /// Returns whether the base, or one of these sources, includes a file of this name.
    fn is_included(&self, path: &str, sources: &[(&PathChange, RedefinedAssertions)]) -> bool {
        let name = name_of(path);
        let may_be = |it: &RedefinedAssertions| it.includes_computed || it.included.contains(name);
        self.frozen.assertions.included.contains(name) || sources.iter().any(|(_, it)| may_be(it))
    }

    /// Returns the assertions that a file may redefine.
    pub fn redefined_assertions(&self, path: &str, text: &[u8]) -> RedefinedAssertions {
        let (text, guarded) = (String::from_utf8_lossy(text), &self.frozen.assertions);
        if is_rust(path) {
            return in_rust(&text);
        }
        if builds_c(path) {
            let names = guarded.names.iter().filter(|name| is_defined_by_build(name, &text));
            return RedefinedAssertions { defined: names.cloned().collect(), ..RedefinedAssertions::default() };
        }
        let CDirectives { mut defined, included, includes_computed } = CDirectives::read(&text);
        defined.retain(|name| guarded.guards(name));
        let is_c = has_ending(path, &INCLUDED) || has_ending(path, &COMPILED);
        let mut found = if is_c { RedefinedAssertions::default() } else { in_rust(&text) };
        found.defined.extend(defined);
        found.included.extend(included);
        found.includes_computed |= includes_computed;
        found
    }

    /// Returns the findings for the changed files with the assertions that each may redefine.
    /// `known` are the same files on the base: a definition may move between them, and change.
    pub fn redefinitions(
        &self,
        found: &[(&PathChange, RedefinedAssertions)],
        known: &[RedefinedAssertions],
    ) -> Vec<TamperFinding> {
        let makes_macros = found.iter().any(|(_, it)| it.makes_macros);
        let has = |name: &String| known.iter().any(|it| it.defined.contains(name) || it.passed.contains(name));
        let mut findings = Vec::new();
        for (change, it) in found {
            if has_ending(&change.path, &COMPILED) && !self.is_included(&change.path, found) {
                continue;
            }
            let passed = it.passed.iter().filter(|_| makes_macros);
            let names = it.defined.iter().chain(passed).filter(|name| !has(name));
            let rules = names.map(|name| format!("it redefines `{name}`, which tests use"));
            // A source that computes names may include any file; only those with a source's name
            // count.
            let is_source = || is_rust(&change.path) || builds_c(&change.path) || has_ending(&change.path, &INCLUDED);
            let is_named = || found.iter().any(|(_, other)| other.included.contains(name_of(&change.path)));
            let unread = (it.is_unread && (is_source() || is_named()))
                .then(|| "too large to look for assertions that it redefines".to_owned());
            let finding = |rule| TamperFinding { path: change.path.clone(), change: change.kind.word().into(), rule };
            findings.extend(rules.chain(unread).map(finding));
        }
        findings
    }
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn has_ending(path: &str, endings: &[&str]) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

fn starts_with(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}

/// Returns whether a file of CMake or Meson gives options to the compiler of C.
fn builds_c(path: &str) -> bool {
    matches!(name_of(path), "CMakeLists.txt" | "meson.build") || path.ends_with(".cmake")
}

/// Returns whether a build defines a macro: by an option of the form `-DNAME=…` or `-DNAME(x)=…`,
/// or in a header that it writes.
fn is_defined_by_build(name: &str, text: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, rest) = (&text[..at], &text[at + name.len()..]);
        if before.ends_with("define ") {
            return !rest.starts_with(is_part);
        }
        let near = &rest[..rest.floor_char_boundary(LONGEST)];
        let parameters = near.strip_prefix('(').and_then(|near| near.split_once(')'));
        let value = parameters.map_or(near, |(_, near)| near).strip_prefix('=');
        // A macro without parameters that gets a path or a text in quotes does not compile.
        let is_code =
            |value: &str| value.is_empty() || value.starts_with(|c: char| is_part(c) || " \t\n\"();".contains(c));
        let is_macro = |value: &str| parameters.is_some() || (is_code(value) && !SETTINGS.contains(&word(value)));
        !before.strip_suffix("-D").unwrap_or(before).ends_with(is_part) && value.is_some_and(is_macro)
    })
}

/// Returns the names of the files that a Rust source includes by `include!("…")` or
/// `#[path = "…"]`, wherever the text is.
fn quoted_includes(text: &str) -> impl Iterator<Item = String> {
    let starts = ["include!(", "path = "].into_iter().flat_map(|start| text.split(start).skip(1));
    let paths = starts.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    paths.map(|path| name_of(path).to_owned())
}

/// Finds the assertions that a Rust source defines as macros, renames other macros to, or passes to
/// a macro.
fn in_rust(text: &str) -> RedefinedAssertions {
    let mut found = RedefinedAssertions::default();
    // The compiler skips the first line of a script.
    let script = text.strip_prefix("#!").filter(|rest| !rest.trim_start().starts_with('['));
    let text = script.map_or(text, |rest| rest.split_once('\n').map_or("", |(_, rest)| rest));
    let Ok(tokens) = TokenStream::from_str(text) else {
        let names = text.split("macro_rules!").skip(1).map(|rest| word(rest.trim_start()));
        found.defined = names.filter(|name| OF_RUST.contains(name)).map(str::to_owned).collect();
        return found;
    };
    let mut open = vec![(tokens, false)];
    while let Some((tokens, is_argument)) = open.pop() {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let before = Before(&tokens[..at]);
            match token {
                TokenTree::Group(group) => {
                    let is_called = before.is_sign(0, '!') && before.word(1).is_some();
                    if is_called && before.is_word(1, "include") {
                        found.include(group.stream().to_string());
                    }
                    let is_list = before.is_sign(0, ':'); // `use a::{…}`
                    open.push((group.stream(), (is_argument || is_called) && !is_list));
                }
                TokenTree::Ident(name) => {
                    let name = plain(&name.to_string());
                    if defines(&name, &before) {
                        found.defined.insert(name);
                    } else if is_argument && is_passed(&name, &before, tokens.get(at + 1)) {
                        found.passed.insert(name);
                    }
                }
                TokenTree::Literal(path) if before.is_path() => found.include(path.to_string()),
                TokenTree::Punct(sign) if sign.as_char() == '$' => {
                    let is_macro = before.is_sign(0, '!') && before.is_word(1, "macro_rules");
                    found.makes_macros |= is_macro || before.is_word(0, "as");
                }
                _ => {}
            }
        }
    }
    proc_macro2::extra::invalidate_current_thread_spans();
    found
}

/// The tokens before another one, in the same pair of brackets.
struct Before<'t>(&'t [TokenTree]);

impl Before<'_> {
    /// Returns the token so many places back; the last one is at 0.
    fn token(&self, back: usize) -> Option<&TokenTree> {
        self.0.iter().rev().nth(back)
    }

    fn word(&self, back: usize) -> Option<String> {
        match self.token(back) {
            Some(TokenTree::Ident(word)) => Some(word.to_string()),
            _ => None,
        }
    }

    fn is_word(&self, back: usize, word: &str) -> bool {
        matches!(self.token(back), Some(TokenTree::Ident(own)) if *own == word)
    }

    fn is_sign(&self, back: usize, sign: char) -> bool {
        self.token(back).is_some_and(|token| is_sign(token, sign))
    }

    /// Returns whether the path of a module is at this place: `#[path = "…"]`.
    fn is_path(&self) -> bool {
        self.is_sign(0, '=') && self.is_word(1, "path")
    }

    /// Returns whether the item at this place is a macro that a function computes.
    fn is_procedure(&self) -> bool {
        let is_end = |token: &&TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            token => is_sign(token, ';'),
        };
        let is_macro = |token: &TokenTree| match token {
            TokenTree::Group(group) => match group.stream().into_iter().next() {
                Some(TokenTree::Ident(first)) => first.to_string().starts_with("proc_macro"),
                _ => false,
            },
            _ => false,
        };
        self.is_word(0, "fn") && self.0.iter().rev().take_while(|token| !is_end(token)).any(is_macro)
    }
}

/// Returns whether a name stands where it gets a new meaning, by the tokens before it.
fn defines(name: &str, before: &Before<'_>) -> bool {
    // `use wasm_bindgen_test as test` only takes another attribute of tests.
    let is_renamed = || before.is_word(0, "as") && !before.word(1).is_some_and(|from| from.ends_with(TEST));
    if name == TEST {
        return is_renamed() || before.is_procedure();
    }
    let is_one = OF_RUST.contains(&name) || NAMED_LIKE_OTHERS.contains(&name);
    let is_macro = || before.is_sign(0, '!') && before.is_word(1, "macro_rules");
    is_one && (is_macro() || before.is_word(0, "macro") || is_renamed() || before.is_procedure())
}

/// Returns whether a name in the arguments of a macro is the name itself, and no use of it.
fn is_passed(name: &str, before: &Before<'_>, next: Option<&TokenTree>) -> bool {
    let is_part = [':', '.', '\''].iter().any(|sign| before.is_sign(0, *sign));
    let is_used = next.is_some_and(|next| is_sign(next, '!') || (name == "assert" && is_sign(next, '.')));
    OF_RUST.contains(&name) && !is_part && !is_used
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(own) if own.as_char() == sign)
}

/// Returns an identifier of Rust without the mark of a raw one.
fn plain(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

/// The directives of a source in C or C++ that matter here.
#[derive(Debug, Default)]
struct CDirectives {
    /// The names that it defines or undefines.
    defined: BTreeSet<String>,
    /// The names of files that it includes, without those with an ending of [`INCLUDED`].
    included: BTreeSet<String>,
    /// True if a macro names a file that it includes.
    includes_computed: bool,
}

impl CDirectives {
    /// Reads a text. Does not leave out comments, because a text that looks like the start of one
    /// may hide a directive.
    fn read(text: &str) -> Self {
        let text = joined_lines(text);
        let mut found = Self::default();
        for (at, line) in lines(&text) {
            // A comment may end before a directive.
            let is_before = |end: &usize| line[*end..].trim_start_matches(BLANK).starts_with(SIGNS);
            let mut ends = line.match_indices("*/").map(|(end, _)| end + 2);
            let start = at + ends.find(is_before).unwrap_or(0);
            let rest = past_comments(&text[start..]);
            let Some(rest) = ["#", "%:", "??="].iter().find_map(|sign| rest.strip_prefix(sign)) else { continue };
            let rest = past_comments(rest);
            if let Some(after) = ["include", "import"].iter().find_map(|word| rest.strip_prefix(word)) {
                let after = past_comments(after.strip_prefix("_next").unwrap_or(after));
                let Some(name) = after.strip_prefix(['"', '<']) else {
                    found.includes_computed |= after.starts_with(is_part);
                    continue;
                };
                let name = name_of(name.split(['"', '>', '\n']).next().unwrap_or_default());
                found.included.extend((!has_ending(name, &INCLUDED)).then(|| name.to_owned()));
            } else if let Some(after) = ["define", "undef"].iter().find_map(|word| rest.strip_prefix(word)) {
                let name = word(past_comments(after));
                found.defined.extend((!name.is_empty() && !after.starts_with(is_part)).then(|| name.to_owned()));
            }
        }
        found
    }
}

/// Characters that separate words within a line.
const BLANK: [char; 6] = [' ', '\t', '\x0b', '\x0c', '\r', '\0'];
/// Characters with which a directive begins.
const SIGNS: [char; 3] = ['#', '%', '?'];

/// Joins lines that end with a backslash with the next one. Compilers also accept blanks behind the
/// backslash.
fn joined_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.trim_end_matches(|c: char| c == '\n' || BLANK.contains(&c)).strip_suffix('\\') {
            Some(start) if line.ends_with('\n') => joined.push_str(start),
            _ => joined.push_str(line),
        }
    }
    joined
}

/// Returns each line with its place in the text.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    })
}

/// Returns the text after blanks and comments, which may have several lines.
fn past_comments(text: &str) -> &str {
    let mut rest = text.trim_start_matches(BLANK);
    while let Some(comment) = rest.strip_prefix("/*") {
        let near = &comment[..comment.floor_char_boundary(LONGEST)];
        let Some(end) = near.find("*/") else { return "" };
        rest = comment[end + 2..].trim_start_matches(BLANK);
    }
    rest
}

/// Returns the names before an opening parenthesis.
fn called(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('(').filter_map(|(at, _)| {
        let before = text[..at].trim_end_matches(' ');
        let start = before.char_indices().rev().take_while(|(_, c)| is_part(*c)).last();
        start.map(|(start, _)| &before[start..])
    })
}

fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !is_part(c)).unwrap_or(text.len())]
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
