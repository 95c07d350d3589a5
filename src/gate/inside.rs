//! Tests inside of product files, as in Rust: modules for tests, test functions, and examples in
//! the documentation. Pure.
//!
//! Their paths do not distinguish them from the product, and a change of the product may have to
//! change them. So a change is only reported. A change that is hidden well enough is not found.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

/// The deepest nesting of modules that is searched.
const DEEP: usize = 32;

/// Returns whether a file at this path may have tests beside the product.
pub(super) fn may_have(path: &str) -> bool {
    path.ends_with(".rs")
}

/// A file of the work that was changed or is new.
#[derive(Debug)]
pub(super) struct ChangedSource<'p> {
    pub(super) path: &'p str,
    pub(super) text: String,
    pub(super) is_new: bool,
}

/// The Cargo packages of the base, by their folders.
#[derive(Debug, Default)]
pub(super) struct CargoPackages {
    /// All packages.
    pub(super) all: BTreeSet<String>,
    /// The packages in which Cargo finds tests and programs by their paths.
    pub(super) finding: BTreeSet<String>,
}

impl CargoPackages {
    /// Returns the folder of the package that a file belongs to.
    fn package_of(&self, path: &str) -> Option<&str> {
        let all = self.all.iter().filter(|folder| below(folder, path).is_some());
        all.max_by_key(|folder| folder.len()).map(String::as_str)
    }
}

/// Returns the files of the base with a test that no file of the same package contains unchanged
/// now. A test that was only moved is found in one of `after`. A test that was moved to another
/// package counts as missing, because no check may run it there.
///
/// A new file that no module declares is not built. So its tests do not count, unless Cargo finds
/// the file as a test or program of `packages`.
pub(super) fn changed<'b>(
    before: &[(&'b str, String)],
    after: &[ChangedSource<'_>],
    packages: &CargoPackages,
) -> Vec<&'b str> {
    let mut now: BTreeMap<Option<&str>, Found> = BTreeMap::new();
    for source in built(after, &packages.finding) {
        now.entry(packages.package_of(source.path)).or_default().look_into(&source.text);
    }
    let nothing = Found::default();
    let is_other = |path: &str, text: &str| {
        let (mut was, now) = (Found::default(), now.get(&packages.package_of(path)).unwrap_or(&nothing));
        was.look_into(text);
        !was.tests.is_subset(&now.items) || !was.examples.is_subset(&now.examples)
    };
    before.iter().filter(|(path, text)| is_other(path, text)).map(|(path, _)| *path).collect()
}

/// Returns the sources that are built: those that the base had, those that Cargo finds by their
/// path, and those that either of them declares.
fn built<'s, 'p>(sources: &'s [ChangedSource<'p>], packages: &BTreeSet<String>) -> Vec<&'s ChangedSource<'p>> {
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

/// Returns whether Cargo builds the file as a test or a program of the package because of its path.
fn is_found_in(package: &str, path: &str) -> bool {
    let place =
        below(package, path).and_then(|path| path.strip_prefix("tests/").or_else(|| path.strip_prefix("src/bin/")));
    place.is_some_and(|name| match name.split_once('/') {
        None => name.ends_with(".rs"),
        Some((_, inner)) => inner == "main.rs",
    })
}

/// Returns the rest of a path below a folder.
fn below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

/// Returns the paths at which a module may be, given the file that declares it.
fn module_places(path: &str, module: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let files = [format!("{module}.rs"), format!("{module}/mod.rs")];
    let in_folder = |folder: &str| files.clone().map(|file| super::names::joined(folder, &file));
    let inner = super::names::joined(folder, stem);
    in_folder(folder).into_iter().chain(in_folder(&inner)).collect()
}

/// The contents of some files, each item as its tokens, regardless of formatting.
#[derive(Debug, Default)]
struct Found {
    /// Items that are tests or are only built for tests.
    tests: BTreeSet<String>,
    /// All items except modules.
    items: BTreeSet<String>,
    /// Examples in documentation that run as tests.
    examples: BTreeSet<String>,
    /// Modules in other files that are built wherever this file is, or for tests. Each is a name,
    /// or the path in its `path` attribute without the ending.
    modules: BTreeSet<String>,
}

/// The context of an item.
#[derive(Debug, Clone, Default)]
struct Within {
    /// True if the item is only built for tests.
    is_test: bool,
    /// The other `cfg` conditions of the item.
    when: String,
    depth: usize,
}

impl Found {
    /// Adds the contents of a text. Of a text that is not Rust, adds only the examples.
    fn look_into(&mut self, text: &str) {
        if let Ok(tokens) = TokenStream::from_str(text) {
            self.items_of(tokens, &Within::default());
        }
        self.examples.extend(examples(text));
    }

    fn items_of(&mut self, tokens: TokenStream, within: &Within) {
        let (mut within, mut attributes, mut parts) = (within.clone(), Vec::new(), Vec::new());
        // All items that tests use count as one, because a new item may change the meaning of the
        // others.
        let mut used = String::new();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if parts.is_empty() && is(&token, '#') {
                let is_inner = tokens.next_if(|next| is(next, '!')).is_some();
                match tokens.next() {
                    Some(TokenTree::Group(group)) if is_inner => within = within.and(&Attribute::parse(&group)),
                    Some(TokenTree::Group(group)) => attributes.push(Attribute::parse(&group)),
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

    /// Adds an item. Returns its text if it is neither a test nor a module.
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
            return None; // the `;` after a body
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
        let message: Vec<&str> = attributes.iter().map(|attribute| attribute.text.as_str()).collect();
        let text = format!("{}{}{}", within.when, message.concat(), words(parts.into_iter().collect()));
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

/// An attribute `#[…]`. It is empty for documentation.
#[derive(Debug, Default)]
struct Attribute {
    name: String,
    text: String,
    is_test: bool,
}

impl Attribute {
    fn parse(group: &Group) -> Self {
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

    /// Returns whether an item with this attribute is only built for tests.
    fn is_for_tests(&self) -> bool {
        self.text == "cfg ( test ) "
    }
}

fn is(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Returns the tokens of some code, each followed by a space. Works without recursion, for code of
/// any depth.
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

/// Returns the examples in documentation comments that run as tests.
fn examples(text: &str) -> BTreeSet<String> {
    let (mut all, mut open) = (BTreeSet::new(), None::<(bool, String)>);
    for line in text.lines().map(str::trim_start) {
        let Some(message) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim) else {
            open = None;
            continue;
        };
        match (message.strip_prefix("```"), &mut open) {
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
                example.push_str(message);
                example.push('\n');
            }
            (None, None) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests;
