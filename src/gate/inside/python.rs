//! The tests inside a Python module: test cases, test functions, self-tests under
//! `if __name__ == "__main__"`, and doctests. Pure.

use super::bodies::TestBody;
use super::outline::{Example, Outline, TestPart};
use std::ops::Range;

/// Signs that a block under `if __name__ == "__main__"` tests the module.
const SELF_TEST: [&str; 4] = ["unittest", "doctest", "pytest", "assert "];
/// Texts by which code finds out that a test runner runs it.
const SWITCHES: [&str; 6] = [
    "PYTEST_CURRENT_TEST",
    "PYTEST_VERSION",
    "\"pytest\" in sys.modules",
    "\"pytest\" not in sys.modules",
    "'pytest' in sys.modules",
    "'pytest' not in sys.modules",
];

/// A line of a module.
struct Line {
    range: Range<usize>,
    /// True if the line begins a statement, rather than going on with a text or with brackets.
    begins: bool,
}

/// The lines of a module, with their kinds.
#[derive(Default)]
struct Layout {
    lines: Vec<Line>,
    /// The texts in three quotes that are statements of their own, with their quotes.
    documentation: Vec<Range<usize>>,
    /// The comments.
    comments: Vec<Range<usize>>,
}

/// Returns the outline of a module.
pub(super) fn outline(text: &str) -> Outline {
    let layout = Layout::read(text);
    let mut outline = Outline::default();
    for block in layout.blocks(text) {
        let code = &text[block.clone()];
        let header = code.lines().find(|line| !line.starts_with('@')).unwrap_or_default();
        if is_test(header, code) {
            let name = header.split([':', '(']).next().unwrap_or(header).trim().to_owned();
            let words = layout.words(text, &block);
            outline.parts.push(TestPart { around: Vec::new(), name, words, range: block, is_test: true });
        } else {
            outline.switches.extend(super::signs_in(&layout.words(text, &block), &SWITCHES));
        }
    }
    outline.switches.sort();
    let documented = layout.documentation.iter().filter(|at| !outline.parts.iter().any(|part| holds(&part.range, at)));
    outline.examples = documented.filter_map(|at| doctest(&text[at.clone()])).collect();
    outline
}

/// Returns the test functions of a module and of its classes, in order. The failing statement
/// follows the last statement of each body.
pub(super) fn test_bodies(text: &str) -> Vec<TestBody> {
    let layout = Layout::read(text);
    // The open classes and functions: the indentation and the name of each.
    let mut around: Vec<(usize, &str)> = Vec::new();
    let mut found = Vec::new();
    for (number, Line { range, begins }) in layout.lines.iter().enumerate() {
        let line = &text[range.clone()];
        let code = line.trim_start();
        if !begins || code.trim().is_empty() || code.starts_with('#') {
            continue;
        }
        let indent = line.len() - code.len();
        around.retain(|(outer, _)| *outer < indent);
        let is_in_function = around.iter().any(|(_, name)| !name.starts_with("class "));
        let header = code.strip_prefix("async ").unwrap_or(code);
        let name = header.split(['(', ':']).next().unwrap_or(header).trim();
        if !name.starts_with("class ") && !name.starts_with("def ") {
            continue;
        }
        if let (Some(test), false) = (name.strip_prefix("def test"), is_in_function) {
            let classes = around.iter().filter_map(|(_, name)| name.strip_prefix("class ")).map(ToOwned::to_owned);
            if let Some((at, indent)) = layout.body_end(text, number, indent) {
                let gap = if text[..at].ends_with('\n') { "" } else { "\n" };
                let statement = format!("{gap}{indent}raise AssertionError(\"{{mark}}\")\n");
                found.push(TestBody { name: classes.chain([format!("test{test}")]).collect(), at, statement });
            }
        }
        around.push((indent, name));
    }
    found
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Returns whether a statement of the module is a test.
fn is_test(header: &str, code: &str) -> bool {
    let header = header.strip_prefix("async ").unwrap_or(header);
    match header.split_once(' ') {
        Some(("class", rest)) => {
            let bases = rest.split_once('(').map_or("", |(_, bases)| bases.split(')').next().unwrap_or(bases));
            bases.contains("TestCase") || (rest.starts_with("Test") && code.contains("assert"))
        }
        Some(("def", rest)) => rest.starts_with("test"),
        Some(("if", rest)) => rest.contains("__name__") && SELF_TEST.iter().any(|sign| code.contains(sign)),
        _ => false,
    }
}

/// Returns the doctest in a documentation text, which is given with its quotes: all examples with
/// their output as the key, and a function with the same documentation.
fn doctest(literal: &str) -> Option<Example> {
    let mut key = String::new();
    let mut is_example = false;
    for line in literal.lines().map(str::trim) {
        is_example = line.starts_with(">>>") || (is_example && !line.is_empty());
        if is_example {
            key.push_str(line);
            key.push('\n');
        }
    }
    let text = format!("\n\ndef _doctest_of_the_base_{{number}}():\n    {literal}\n");
    (!key.is_empty()).then_some(Example { key, text })
}

impl Layout {
    fn read(text: &str) -> Self {
        let (mut layout, bytes) = (Self::default(), text.as_bytes());
        let (mut at, mut depth, mut start, mut begins) = (0, 0_usize, 0, true);
        while at < bytes.len() {
            match bytes[at] {
                b'\n' => {
                    layout.lines.push(Line { range: start..at + 1, begins });
                    begins = depth == 0 && !text[start..at].trim_end().ends_with('\\');
                    start = at + 1;
                    at += 1;
                }
                b'#' => {
                    let end = text[at..].find('\n').map_or(bytes.len(), |length| at + length);
                    layout.comments.push(at..end);
                    at = end;
                }
                quote @ (b'"' | b'\'') => {
                    let end = end_of_text(bytes, at, quote);
                    let before = text[start..at].trim_start();
                    let is_alone = ["", "r", "R", "u", "U"].contains(&before) && begins;
                    if is_alone && bytes[at..].starts_with(&[quote; 3]) {
                        layout.documentation.push(at - before.len()..end);
                    }
                    // The lines within the text begin no statement.
                    for (offset, _) in text[at..end].match_indices('\n') {
                        layout.lines.push(Line { range: start..at + offset + 1, begins });
                        (start, begins) = (at + offset + 1, false);
                    }
                    at = end;
                }
                byte => {
                    match byte {
                        b'(' | b'[' | b'{' => depth += 1,
                        b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    at += 1;
                }
            }
        }
        if start < bytes.len() {
            layout.lines.push(Line { range: start..bytes.len(), begins });
        }
        layout
    }

    /// Returns the statements of the module itself, each with its decorators and its body.
    fn blocks(&self, text: &str) -> Vec<Range<usize>> {
        let mut blocks: Vec<Range<usize>> = Vec::new();
        let mut is_decorated = false;
        for Line { range, begins } in &self.lines {
            let line = &text[range.clone()];
            let is_new = *begins
                && !line.starts_with(|first: char| first.is_whitespace() || first == '#')
                && !["else", "elif", "except", "finally"].iter().any(|word| line.starts_with(word));
            match blocks.last_mut() {
                Some(last) if !is_new || is_decorated => {
                    let is_code = !line.trim().is_empty() && (!line.starts_with('#') || !begins);
                    last.end = if is_code { range.end } else { last.end };
                }
                _ if is_new => blocks.push(range.clone()),
                _ => {}
            }
            if is_new {
                is_decorated = line.starts_with('@');
            }
        }
        blocks
    }

    /// Returns the end of the body of the function whose header begins on a line, and the
    /// indentation of its statements. `None` for a body on the line of the header.
    fn body_end<'t>(&self, text: &'t str, header: usize, indent: usize) -> Option<(usize, &'t str)> {
        let mut body = None;
        for Line { range, begins } in &self.lines[header + 1..] {
            let line = &text[range.clone()];
            let code = line.trim_start();
            if code.trim().is_empty() || (*begins && code.starts_with('#')) {
                continue;
            }
            let depth = line.len() - code.len();
            match body {
                _ if *begins && depth <= indent => break,
                None if *begins => body = Some((range.end, &line[..depth])),
                Some((_, own)) => body = Some((range.end, own)),
                None => {}
            }
        }
        body
    }

    /// Returns the code of a block without comments, empty lines and spaces at the ends of lines.
    fn words(&self, text: &str, block: &Range<usize>) -> String {
        let mut code = String::new();
        let mut at = block.start;
        for comment in self.comments.iter().filter(|comment| holds(block, comment)) {
            code.push_str(&text[at..comment.start]);
            at = comment.end;
        }
        code.push_str(&text[at..block.end]);
        let lines = code.lines().map(str::trim_end).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the end of the text that begins at a quote.
fn end_of_text(bytes: &[u8], at: usize, quote: u8) -> usize {
    let is_long = bytes[at..].starts_with(&[quote; 3]);
    let length = if is_long { 3 } else { 1 };
    let mut next = at + length;
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 2,
            b'\n' if !is_long => return next,
            byte if byte == quote && (!is_long || bytes[next..].starts_with(&[quote; 3])) => return next + length,
            _ => next += 1,
        }
    }
    bytes.len()
}
