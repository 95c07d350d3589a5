//! Tests inside of product files, as in Rust: modules for tests, test functions, and examples in
//! the documentation. Pure. Each language has its own file; this one compares files of Rust.
//!
//! Their paths do not distinguish them from the product. So the gate finds the files whose tests
//! differ, and judges the work by the base's own versions of these tests too.

mod bodies;
mod graft;
mod outline;
mod python;
mod script;

pub(super) use bodies::{TestBody, test_bodies};
pub(super) use graft::{Grafts, graft};

use outline::{Attribute, Item, Outline, Scope, TestPart};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

/// The deepest nesting of modules that is searched.
const DEEP: usize = 32;

/// Reads the outline of a text in a language.
type Reader = fn(&str) -> Outline;
/// The languages in which fledge finds tests inside product files, or code that depends on tests,
/// by the ending of their files.
const LANGUAGES: [(&str, Reader); 11] = [
    ("rs", Outline::parse),
    ("py", python::outline),
    ("js", script::outline),
    ("mjs", script::outline),
    ("cjs", script::outline),
    ("jsx", script::outline),
    ("ts", script::outline),
    ("mts", script::outline),
    ("cts", script::outline),
    ("tsx", script::outline),
    ("go", script::outline_of_go),
];

fn reader(path: &str) -> Option<Reader> {
    let (_, ending) = path.rsplit_once('.')?;
    LANGUAGES.iter().find(|(own, _)| *own == ending).map(|(_, reader)| *reader)
}

/// Returns whether a file at this path may have tests beside the product.
pub(super) fn may_have(path: &str) -> bool {
    reader(path).is_some()
}

/// Returns those of some signs that are in a text, each as often as it is there.
fn signs_in(text: &str, signs: &[&str]) -> Vec<String> {
    signs.iter().flat_map(|sign| text.matches(sign)).map(ToOwned::to_owned).collect()
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
/// now, each with true if the work only adds to what its tests use. A test that was only moved is
/// found in one of `after`. A test that was moved to another package counts as missing, because no
/// check may run it there.
///
/// A new file that no module declares is not built. So its tests do not count, unless Cargo finds
/// the file as a test or program of `packages`.
pub(super) fn changed<'b>(
    before: &[(&'b str, String)],
    after: &[ChangedSource<'_>],
    packages: &CargoPackages,
) -> BTreeMap<&'b str, bool> {
    let mut now: BTreeMap<Option<&str>, Found> = BTreeMap::new();
    for source in built(after, &packages.finding).into_iter().filter(|source| is_rust(source.path)) {
        now.entry(packages.package_of(source.path)).or_default().look_into(&source.text);
    }
    let nothing = Found::default();
    let compared = |(path, text): &(&'b str, String)| {
        let (mut was, now) = (Found::default(), now.get(&packages.package_of(path)).unwrap_or(&nothing));
        was.look_into(text);
        let has_examples = was.examples.is_subset(&now.examples);
        let is_other = !was.tests.is_subset(&now.items) || !has_examples;
        let is_more = has_examples && was.tests.difference(&was.used).all(|test| now.items.contains(test));
        is_other.then_some((*path, is_more && was.used_items.is_subset(&now.items)))
    };
    before.iter().filter(|(path, _)| is_rust(path)).filter_map(compared).collect()
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
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

/// Returns the paths of the files that may declare the module in a file.
pub(super) fn parents(path: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let (folder, _) = match name {
        "mod.rs" => folder.rsplit_once('/').unwrap_or(("", folder)),
        _ => (folder, name),
    };
    let beside = ["lib.rs", "main.rs", "mod.rs"].map(|file| super::names::joined(folder, file));
    let above = (!folder.is_empty()).then(|| format!("{folder}.rs"));
    beside.into_iter().chain(above).filter(|parent| parent != path).collect()
}

/// Returns whether one of these parents, given by path and text, loads a file only for tests: as a
/// module or by `include!`.
pub(super) fn is_for_tests<'t>(path: &str, mut parents: impl Iterator<Item = (&'t str, &'t str)>) -> bool {
    let loads = |(parent, text): (&str, &str)| {
        let folder = parent.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_included = |part: &TestPart| {
            let mut texts = part.words.split("include ! ( \"").skip(1).filter_map(|rest| rest.split('"').next());
            texts.any(|file| super::names::joined(folder, file) == path)
        };
        let is_module = |part: &TestPart| {
            let module = part.name.strip_prefix("mod ").filter(|_| part.words.ends_with("; "));
            module.is_some_and(|name| module_places(parent, name).iter().any(|place| place == path))
        };
        Outline::parse(text).parts.iter().any(|part| is_module(part) || is_included(part))
    };
    parents.any(loads)
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
    /// All that tests of one module use, as one text each, and each item of it.
    used: BTreeSet<String>,
    used_items: BTreeSet<String>,
    /// All items except modules.
    items: BTreeSet<String>,
    /// Examples in documentation that run as tests.
    examples: BTreeSet<(String, String)>,
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
        let Scope { inner, items } = Scope::parse(tokens);
        let within = inner.iter().fold(within.clone(), Within::and);
        // All items that tests use count as one, because a new item may change the meaning of the
        // others.
        let each: Vec<String> = items.into_iter().filter_map(|item| self.item(item, &within)).collect();
        let used = each.concat();
        if within.is_test && !used.is_empty() {
            self.tests.insert(used.clone());
            self.used.insert(used.clone());
            self.used_items.extend(each);
        }
        self.items.insert(used);
    }

    /// Adds an item. Returns its text if it is neither a test nor a module.
    fn item(&mut self, Item { attributes, parts, .. }: Item, within: &Within) -> Option<String> {
        let is_module = parts.iter().any(|part| matches!(part, TokenTree::Ident(name) if *name == "mod"));
        if let (true, Some(TokenTree::Group(body))) = (is_module, parts.last()) {
            let inner = attributes.iter().fold(within.clone(), Within::and);
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

/// Returns the examples in documentation comments that run as tests, each with the words after its
/// fence.
fn examples(text: &str) -> BTreeSet<(String, String)> {
    let (mut all, mut open) = (BTreeSet::new(), None::<(Option<String>, String)>);
    for line in text.lines().map(str::trim_start) {
        let Some(message) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim) else {
            open = None;
            continue;
        };
        match (message.strip_prefix("```"), &mut open) {
            (Some(fence), None) => open = Some((language(fence), String::new())),
            (Some(_), Some(_)) => {
                let (language, example) = open.take().unwrap_or_default();
                all.extend(language.map(|language| (language, example)));
            }
            (None, Some((_, example))) => {
                example.push_str(message);
                example.push('\n');
            }
            (None, None) => {}
        }
    }
    all
}

/// Returns the words after the fence of an example that is built or run, without `rust`. Returns
/// `None` for other examples.
fn language(fence: &str) -> Option<String> {
    let words = fence.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "rust");
    let is_built = |word: &&str| {
        ["should_panic", "no_run", "compile_fail", "standalone_crate"].contains(word) || word.starts_with("edition")
    };
    let words: Vec<&str> = words.collect();
    words.iter().all(is_built).then(|| words.join(","))
}

#[cfg(test)]
mod tests;
