//! Tests inside of product files, as Rust has them: modules for tests alone, functions that are tests, examples in the documentation. No
//! path tells them from the product, and whoever changes the product may have to change them; so it is only told that they are other ones.
//! What hides such a change well enough is not found. Pure.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

/// Modules within modules that are looked into.
const DEEP: usize = 32;

/// Whether a file of this path may have tests beside the product.
pub(super) fn may_have(path: &str) -> bool {
    path.ends_with(".rs")
}

/// A file of the work that was changed or is new.
#[derive(Debug)]
pub(super) struct Source<'p> {
    pub(super) path: &'p str,
    pub(super) text: String,
    pub(super) is_new: bool,
}

/// The packages of cargo in the base, by their folders.
#[derive(Debug, Default)]
pub(super) struct Packages {
    /// All of them.
    pub(super) all: BTreeSet<String>,
    /// Those that find their tests and programs by themselves.
    pub(super) finding: BTreeSet<String>,
}

impl Packages {
    /// Returns the folder of the package that a file belongs to.
    fn of(&self, path: &str) -> Option<&str> {
        let all = self.all.iter().filter(|folder| below(folder, path).is_some());
        all.max_by_key(|folder| folder.len()).map(String::as_str)
    }
}

/// The files of the base in which a test was that is in none of the files of its package now, or is another one. A test that was only moved is
/// found in one of `after`; in another package no check may run it. A new file that no module declares is not built, so what is in it does
/// not count, unless it lies where cargo finds tests and programs of `packages`.
pub(super) fn changed<'b>(before: &[(&'b str, String)], after: &[Source<'_>], packages: &Packages) -> Vec<&'b str> {
    let mut now: BTreeMap<Option<&str>, Found> = BTreeMap::new();
    for source in built(after, &packages.finding) {
        now.entry(packages.of(source.path)).or_default().look_into(&source.text);
    }
    let nothing = Found::default();
    let is_other = |path: &str, text: &str| {
        let (mut was, now) = (Found::default(), now.get(&packages.of(path)).unwrap_or(&nothing));
        was.look_into(text);
        !was.tests.is_subset(&now.items) || !was.examples.is_subset(&now.examples)
    };
    before.iter().filter(|(path, text)| is_other(path, text)).map(|(path, _)| *path).collect()
}

/// The sources that are built: those that the base had, those that cargo finds as tests or programs by their folder, and what these declare.
fn built<'s, 'p>(sources: &'s [Source<'p>], packages: &BTreeSet<String>) -> Vec<&'s Source<'p>> {
    let is_found = |path: &str| packages.iter().any(|package| is_found_in(package, path));
    let (mut open, mut others): (Vec<_>, Vec<_>) =
        sources.iter().partition(|source| !source.is_new || is_found(source.path));
    let mut found = Vec::new();
    while let Some(source) = open.pop() {
        let mut declared = Found::default();
        declared.look_into(&source.text);
        let places: BTreeSet<String> =
            declared.modules.iter().flat_map(|module| module_places(source.path, module)).collect();
        let (next, rest) = others.into_iter().partition(|other| places.contains(other.path));
        others = rest;
        open.extend::<Vec<_>>(next);
        found.push(source);
    }
    found
}

/// Returns true if cargo builds the file as a test or a program of the package because of its folder.
fn is_found_in(package: &str, path: &str) -> bool {
    let place =
        below(package, path).and_then(|path| path.strip_prefix("tests/").or_else(|| path.strip_prefix("src/bin/")));
    place.is_some_and(|name| match name.split_once('/') {
        None => name.ends_with(".rs"),
        Some((_, inner)) => inner == "main.rs",
    })
}

/// The rest of a path below a folder.
fn below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

/// The paths that a module may be at, seen from the file that declares it.
fn module_places(path: &str, module: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let files = [format!("{module}.rs"), format!("{module}/mod.rs")];
    let in_folder = |folder: &str| files.clone().map(|file| super::names::joined(folder, &file));
    let inner = super::names::joined(folder, stem);
    in_folder(folder).into_iter().chain(in_folder(&inner)).collect()
}

/// What is in some files: each as its words, whatever the form.
#[derive(Debug, Default)]
struct Found {
    /// What is a test, or only there for tests.
    tests: BTreeSet<String>,
    /// All there is, but for modules.
    items: BTreeSet<String>,
    /// Examples in documentation that are run.
    examples: BTreeSet<String>,
    /// The modules in other files that are built wherever this file is, or for tests; a path where one is said, without its ending.
    modules: BTreeSet<String>,
}

/// Where something stands.
#[derive(Debug, Clone, Default)]
struct Within {
    /// Only tests are built of it.
    is_test: bool,
    /// When it is built at all, where that is said otherwise.
    when: String,
    depth: usize,
}

impl Found {
    /// Of a text that is no Rust nothing is known.
    fn look_into(&mut self, text: &str) {
        if let Ok(tokens) = TokenStream::from_str(text) {
            self.items_of(tokens, &Within::default());
        }
        self.examples.extend(examples(text));
    }

    fn items_of(&mut self, tokens: TokenStream, within: &Within) {
        let (mut within, mut attributes, mut parts) = (within.clone(), Vec::new(), Vec::new());
        // What tests use is one: what is new there may stand before what is meant.
        let mut used = String::new();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if parts.is_empty() && is(&token, '#') {
                let is_inner = tokens.next_if(|next| is(next, '!')).is_some();
                match tokens.next() {
                    Some(TokenTree::Group(group)) if is_inner => within = within.and(&Attribute::of(&group)),
                    Some(TokenTree::Group(group)) => attributes.push(Attribute::of(&group)),
                    Some(_) | None => {}
                }
                continue;
            }
            let ends =
                is(&token, ';') || matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
            parts.push(token);
            if ends {
                used.extend(self.item(std::mem::take(&mut attributes), std::mem::take(&mut parts), &within));
            }
        }
        if within.is_test && !used.is_empty() {
            self.tests.insert(used.clone());
        }
        self.items.insert(used);
    }

    /// Takes an item in; gives it where it is neither a test nor a module.
    fn item(&mut self, attributes: Vec<Attribute>, parts: Vec<TokenTree>, within: &Within) -> Option<String> {
        let is_module = parts.iter().any(|part| matches!(part, TokenTree::Ident(name) if *name == "mod"));
        if let (true, Some(TokenTree::Group(body))) = (is_module, parts.last()) {
            let inner = attributes.iter().fold(within.clone(), |within, attribute| within.and(attribute));
            if within.depth < DEEP {
                self.items_of(body.stream(), &Within { depth: within.depth + 1, ..inner });
            }
            return None;
        }
        if !parts.iter().any(|part| matches!(part, TokenTree::Ident(_))) {
            return None; // the `;` behind a body
        }
        let is_always = attributes.iter().all(|attribute| attribute.name != "cfg" || attribute.is_for_tests());
        if is_module
            && is_always
            && within.when.is_empty()
            && !attributes.iter().any(|attribute| attribute.name == "cfg_attr")
        {
            let name = parts
                .iter()
                .rev()
                .find_map(|part| if let TokenTree::Ident(name) = part { Some(name.to_string()) } else { None });
            let path = attributes.iter().find(|attribute| attribute.name == "path");
            let path = path.and_then(|path| Some(path.text.split('"').nth(1)?.trim_end_matches(".rs").to_owned()));
            self.modules.extend(path.or(name));
        }
        let is_test = attributes.iter().any(|attribute| attribute.is_test || attribute.is_for_tests());
        let said: Vec<&str> = attributes.iter().map(|attribute| attribute.text.as_str()).collect();
        let text = format!("{}{}{}", within.when, said.concat(), words(parts.into_iter().collect()));
        self.items.insert(text.clone());
        if is_test {
            self.tests.insert(text);
            return None;
        }
        Some(text)
    }
}

impl Within {
    fn and(mut self, attribute: &Attribute) -> Self {
        if attribute.is_for_tests() {
            self.is_test = true;
        } else if attribute.name == "cfg" {
            self.when.push_str(&attribute.text);
        }
        self
    }
}

/// What stands in `#[…]`; nothing of documentation.
#[derive(Debug, Default)]
struct Attribute {
    name: String,
    text: String,
    is_test: bool,
}

impl Attribute {
    fn of(group: &Group) -> Self {
        let path = group.stream().into_iter().take_while(|token| !matches!(token, TokenTree::Group(_)));
        let names =
            path.filter_map(|token| if let TokenTree::Ident(name) = token { Some(name.to_string()) } else { None });
        let names: Vec<String> = names.collect();
        if names.first().is_some_and(|name| name == "doc") {
            return Self::default();
        }
        let is_test = names.last().is_some_and(|name| name.ends_with("test") || name.starts_with("test_"));
        Self { name: names.concat(), text: words(group.stream()), is_test }
    }

    /// Whether nothing but tests is built of what has it.
    fn is_for_tests(&self) -> bool {
        self.text == "cfg ( test ) "
    }
}

fn is(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// All words of some code, with a blank behind each. However deep it is, this is not.
fn words(code: TokenStream) -> String {
    let (mut text, mut open) = (String::new(), vec![(code.into_iter(), "")]);
    while let Some((tokens, _)) = open.last_mut() {
        let (word, inner) = match tokens.next() {
            None => (open.pop().map_or("", |(_, end)| end).to_owned(), None),
            Some(TokenTree::Group(group)) => {
                let (begin, end) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                (begin.to_owned(), Some((group.stream().into_iter(), end)))
            }
            Some(token) => (token.to_string(), None),
        };
        if !word.is_empty() {
            text.push_str(&word);
            text.push(' ');
        }
        open.extend(inner);
    }
    text
}

/// The examples in comments of documentation that are run as tests.
fn examples(text: &str) -> BTreeSet<String> {
    let (mut all, mut open) = (BTreeSet::new(), None::<(bool, String)>);
    for line in text.lines().map(str::trim_start) {
        let Some(said) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim) else {
            open = None;
            continue;
        };
        match (said.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                let is_run = language.split(',').map(str::trim).all(|word| {
                    word.is_empty()
                        || ["rust", "should_panic", "no_run", "compile_fail"].contains(&word)
                        || word.starts_with("edition")
                });
                open = Some((is_run, String::new()));
            }
            (Some(_), Some(_)) => all.extend(open.take().filter(|(is_run, _)| *is_run).map(|(_, example)| example)),
            (None, Some((_, example))) => {
                example.push_str(said);
                example.push('\n');
            }
            (None, None) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests;
