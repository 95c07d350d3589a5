//! The outline of a Rust file: its items, and which of them are only built for tests. Pure.

use super::{DEEP, is, words};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::str::FromStr as _;

/// Macros and attributes of crates that make tests, even without `#[test]` inside.
const TEST_MACROS: [&str; 2] = ["proptest", "quickcheck"];
/// Keywords that may come before the keyword of an item.
const QUALIFIERS: [&str; 5] = ["pub", "default", "unsafe", "async", "extern"];
/// Items that end with `;`, so braces inside them do not end them.
const UP_TO_SEMICOLON: [&str; 4] = ["use", "static", "type", "const"];

/// An attribute `#[…]`. It is empty for documentation.
#[derive(Debug, Default)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) text: String,
    /// True for `#[test]` and similar attributes of test functions.
    pub(super) is_test: bool,
    /// True for a condition that only holds in builds for tests, such as `cfg(all(test, unix))`.
    needs_test: bool,
    /// True for a condition that depends on `test` or `doctest`.
    is_condition: bool,
}

impl Attribute {
    pub(super) fn parse(group: &Group) -> Self {
        let path = group.stream().into_iter().take_while(|token| !matches!(token, TokenTree::Group(_)));
        let names: Vec<String> = path.filter_map(|token| ident(&token)).collect();
        if names.first().is_some_and(|name| name == "doc") {
            return Self::default();
        }
        let is_test = names.last().is_some_and(|name| {
            name.ends_with("test") || name.starts_with("test_") || TEST_MACROS.contains(&name.as_str())
        });
        let (name, text) = (names.concat(), words(group.stream()));
        let is_cfg = name == "cfg" || name == "cfg_attr";
        let needs_test = name == "cfg" && inner(group.stream()).is_some_and(needs_test);
        let is_condition = is_cfg && inner(group.stream()).is_some_and(mentions_test);
        Self { name, text, is_test, needs_test, is_condition }
    }

    /// Returns whether this is the plain condition `cfg(test)`.
    pub(super) fn is_for_tests(&self) -> bool {
        self.text == "cfg ( test ) "
    }
}

/// An item of a module, with its attributes and comments.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) attributes: Vec<Attribute>,
    pub(super) parts: Vec<TokenTree>,
    /// The bytes of the file with the item, from its first attribute or comment.
    range: Range<usize>,
}

/// The items of a module or of another pair of braces, and its inner attributes.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) inner: Vec<Attribute>,
    pub(super) items: Vec<Item>,
}

impl Scope {
    pub(super) fn parse(tokens: TokenStream) -> Self {
        let (mut scope, mut attributes, mut parts, mut start) = (Self::default(), Vec::new(), Vec::new(), None);
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let bytes = token.span().byte_range();
            if parts.is_empty() && is(&token, '#') {
                let is_inner = tokens.next_if(|next| is(next, '!')).is_some();
                let Some(TokenTree::Group(group)) = tokens.next() else { continue };
                if is_inner {
                    scope.inner.push(Attribute::parse(&group));
                } else {
                    start.get_or_insert(bytes.start);
                    attributes.push(Attribute::parse(&group));
                }
                continue;
            }
            let ends = is_end(&parts, &token);
            let from = *start.get_or_insert(bytes.start);
            parts.push(token);
            if ends {
                let (attributes, parts) = (std::mem::take(&mut attributes), std::mem::take(&mut parts));
                scope.items.push(Item { attributes, parts, range: from..bytes.end });
                start = None;
            }
        }
        scope
    }
}

/// A part of a file that is only built for tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestPart {
    /// The headers of the modules and `impl` blocks around the part, outermost first.
    pub(super) around: Vec<String>,
    /// The keyword and the name. Two parts with the same name at the same place are versions of
    /// one.
    pub(super) name: String,
    /// All tokens, regardless of formatting.
    pub(super) words: String,
    pub(super) range: Range<usize>,
    /// True for a test, a macro with tests, or a module with the name of tests. False for code that
    /// tests use, and that may change what the product is in builds for tests.
    pub(super) is_test: bool,
}

/// An example in documentation that runs as a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    /// The code and the output of the example, regardless of its place.
    pub(super) key: String,
    /// The code that adds the example to the end of a file. `{number}` is a number in the file.
    pub(super) text: String,
}

/// The outline of a file.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) parts: Vec<TestPart>,
    /// The places at which the modules and `impl` blocks end, in bytes, by their headers.
    pub(super) ends: BTreeMap<Vec<String>, usize>,
    pub(super) examples: Vec<Example>,
    /// The conditions on tests within product code, sorted.
    pub(super) switches: Vec<String>,
    /// True if the whole file is only built for tests.
    pub(super) is_for_tests: bool,
    /// The macros of the file that expand to tests.
    pub(super) macros: BTreeSet<String>,
}

impl Outline {
    /// Returns the outline of a text. A text that is not Rust has an empty one.
    pub(super) fn parse(text: &str) -> Self {
        let mut outline = Self::default();
        if let Ok(tokens) = TokenStream::from_str(text) {
            outline.macros = test_macros(tokens.clone());
            outline.add(tokens, &[]);
        }
        outline.switches.iter_mut().for_each(|switch| *switch = compact(switch));
        outline.switches.sort();
        outline.examples = super::examples(text).into_iter().map(example).collect();
        proc_macro2::extra::invalidate_current_thread_spans();
        outline
    }

    fn add(&mut self, tokens: TokenStream, around: &[String]) {
        let Scope { inner, items } = Scope::parse(tokens);
        self.is_for_tests |= around.is_empty() && inner.iter().any(|attribute| attribute.needs_test);
        self.switches.extend(inner.into_iter().filter(|it| it.is_condition && !it.needs_test).map(|it| it.text));
        for item in items {
            self.item(item, around);
        }
    }

    fn item(&mut self, item: Item, around: &[String]) {
        let Item { attributes, parts, range } = item;
        if !parts.iter().any(|part| ident(part).is_some()) {
            return; // the `;` after a body
        }
        let name = name_of(&parts);
        let holds_tests = self.holds_tests(&parts);
        let is_test = attributes.iter().any(|attribute| attribute.is_test) || holds_tests;
        if is_test || attributes.iter().any(|attribute| attribute.needs_test) {
            let said: String = attributes.iter().map(|attribute| attribute.text.as_str()).collect();
            let is_test = is_test || name.strip_prefix("mod ").is_some_and(is_name_of_tests);
            let words = said + &words(parts.into_iter().collect());
            self.parts.push(TestPart { around: around.to_vec(), name, words, range, is_test });
            return;
        }
        self.switches.extend(attributes.into_iter().filter(|it| it.is_condition).map(|it| it.text));
        let is_scope = ["mod ", "impl", "trait "].iter().any(|keyword| name.starts_with(keyword));
        match parts.last() {
            Some(TokenTree::Group(body)) if is_scope && around.len() < DEEP => {
                let around: Vec<String> = around.iter().cloned().chain([name]).collect();
                self.ends.insert(around.clone(), body.span_close().byte_range().start);
                self.add(body.stream(), &around);
            }
            _ => self.switches.extend(conditions(parts.into_iter().collect())),
        }
    }

    /// Returns whether a macro, or an invocation of one, holds tests.
    fn holds_tests(&self, parts: &[TokenTree]) -> bool {
        let [TokenTree::Ident(first), sign, rest @ ..] = parts else { return false };
        let Some(TokenTree::Group(body)) = rest.iter().find(|part| matches!(part, TokenTree::Group(_))) else {
            return false;
        };
        let first = first.to_string();
        if !is(sign, '!') {
            return false;
        }
        if TEST_MACROS.contains(&first.as_str()) || self.macros.contains(&first) {
            return true;
        }
        has_test_attribute(body.stream())
    }
}

/// Returns the names of the macros that expand to tests, wherever the code defines them. Works
/// without recursion.
fn test_macros(code: TokenStream) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![code]);
    while let Some(tokens) = open.pop() {
        let mut before: [Option<TokenTree>; 3] = [None, None, None];
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                match &before {
                    [Some(keyword), Some(sign), Some(name)]
                        if is(sign, '!') && ident(keyword).as_deref() == Some("macro_rules") =>
                    {
                        found.extend(ident(name).filter(|_| has_test_attribute(group.stream())));
                    }
                    _ => open.push(group.stream()),
                }
            }
            before = [before[1].take(), before[2].take(), Some(token)];
        }
    }
    found
}

fn example((language, example): (String, String)) -> Example {
    let body: String = example.lines().map(|line| format!("/// {line}\n")).collect();
    let text = format!(
        "\n/// ```{language}\n{body}/// ```\n#[cfg(doctest)]\n#[allow(dead_code)]\nstruct ExampleOfTheBase{{number}};\n"
    );
    Example { key: format!("{language}\n{example}"), text }
}

fn is_name_of_tests(module: &str) -> bool {
    let parts = ["test", "tests"];
    parts.contains(&module) || module.starts_with("test_") || module.ends_with("_test") || module.ends_with("_tests")
}

/// Returns whether `token` ends the item that begins with `parts`.
fn is_end(parts: &[TokenTree], token: &TokenTree) -> bool {
    let is_body = matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let is_argument = || parts.last().is_some_and(|last| is(last, '<'));
    is(token, ';') || (is_body && !is_argument() && !ends_with_semicolon(parts))
}

fn ends_with_semicolon(parts: &[TokenTree]) -> bool {
    let mut keywords = parts.iter().filter_map(ident).skip_while(|word| word == "pub");
    match keywords.next() {
        Some(word) if word == "const" => {
            keywords.next().is_some_and(|next| !["fn", "unsafe", "async", "extern"].contains(&next.as_str()))
        }
        Some(word) => UP_TO_SEMICOLON.contains(&word.as_str()),
        None => false,
    }
}

/// Returns the keyword and the name of an item, or all of it before its body for items without a
/// name of their own.
fn name_of(parts: &[TokenTree]) -> String {
    let is_before = |part: &&TokenTree| {
        matches!(part, TokenTree::Ident(word) if QUALIFIERS.contains(&word.to_string().as_str()))
            || matches!(part, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
            || matches!(part, TokenTree::Literal(_))
    };
    let parts: Vec<&TokenTree> = parts.iter().skip_while(is_before).collect();
    let is_const_fn = matches!(parts.as_slice(), [first, second, ..] if ident(first).as_deref() == Some("const") && ident(second).as_deref() == Some("fn"));
    let parts = if is_const_fn { &parts[1..] } else { &parts[..] };
    let keyword = parts.first().and_then(|first| ident(first)).unwrap_or_default();
    let is_nameless = keyword == "impl" || keyword == "use";
    let count = if is_nameless {
        parts.len()
    } else if keyword == "macro_rules" {
        3
    } else {
        2
    };
    let is_head = |part: &&&TokenTree| {
        !is_nameless
            || !matches!(part, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && keyword == "impl")
    };
    let head = parts.iter().take(count).take_while(is_head).map(|part| (*part).clone());
    words(head.collect()).trim_end().to_owned()
}

/// Returns whether a condition only holds in builds for tests.
fn needs_test(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    match tokens.as_slice() {
        [one] | [one, _] if ident(one).as_deref() == Some("test") => true,
        [kind, TokenTree::Group(list), ..] => {
            let each = elements(list.stream());
            match ident(kind).as_deref() {
                Some("all") => each.into_iter().any(needs_test),
                Some("any") => !each.is_empty() && each.into_iter().all(needs_test),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Splits a list at its commas.
fn elements(list: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = list.into_iter().collect();
    let each = tokens.split(|token| is(token, ',')).filter(|part| !part.is_empty());
    each.map(|part| part.iter().cloned().collect()).collect()
}

/// Returns the conditions on `test` in some code: `#[cfg(test)]`, `#[cfg_attr(test, …)]`,
/// `cfg!(test)`. Works without recursion, for code of any depth.
fn conditions(code: TokenStream) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![code]);
    while let Some(tokens) = open.pop() {
        let mut before: [Option<TokenTree>; 2] = [None, None];
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                let is_attribute = group.delimiter() == Delimiter::Bracket
                    && before.iter().flatten().any(|token| is(token, '#'))
                    && Attribute::parse(group).is_condition;
                let is_macro = matches!(&before, [Some(name), Some(sign)] if is(sign, '!') && ident(name).as_deref() == Some("cfg"))
                    && mentions_test(group.stream());
                if is_attribute || is_macro {
                    found.push(words(group.stream()));
                } else {
                    open.push(group.stream());
                }
            }
            before = [before[1].take(), Some(token)];
        }
    }
    found
}

/// Returns whether some code has an attribute of a test function. Works without recursion.
fn has_test_attribute(code: TokenStream) -> bool {
    let mut open = vec![code];
    while let Some(tokens) = open.pop() {
        let mut is_after_sign = false;
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                if is_after_sign && group.delimiter() == Delimiter::Bracket && Attribute::parse(group).is_test {
                    return true;
                }
                open.push(group.stream());
            }
            is_after_sign = is(&token, '#');
        }
    }
    false
}

/// Returns whether a condition names `test` or `doctest`.
fn mentions_test(condition: TokenStream) -> bool {
    let mut open = vec![condition];
    while let Some(tokens) = open.pop() {
        for token in tokens {
            match token {
                TokenTree::Ident(word) if word == "test" || word == "doctest" => return true,
                TokenTree::Group(group) => open.push(group.stream()),
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
    false
}

/// Returns the tokens of a condition without the spaces between them: `cfg(not(test))`.
fn compact(words: &str) -> String {
    words.replace(' ', "").replace(',', ", ")
}

/// Returns the arguments of an attribute.
fn inner(attribute: TokenStream) -> Option<TokenStream> {
    attribute.into_iter().find_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream()),
        TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    })
}

fn ident(token: &TokenTree) -> Option<String> {
    if let TokenTree::Ident(name) = token { Some(name.to_string()) } else { None }
}
