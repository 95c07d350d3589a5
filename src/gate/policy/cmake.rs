//! Test programs that CMake builds, and scripts of its tests, by the commands of `CMakeLists.txt`.

use super::BaseFiles;
use super::calls::without_places;
use super::named::{inside, text};
use crate::gate::names::name_of;
use crate::gate::signs;
use std::collections::{BTreeMap, BTreeSet};

/// The file with the commands of CMake in each folder.
pub(super) const LISTS: &str = "CMakeLists.txt";
/// Commands that declare which targets are tests.
pub(super) const TESTS: &[&str] =
    &["add_test", "gtest_discover_tests", "catch_discover_tests", "doctest_discover_tests", "gtest_add_tests"];
/// Commands that name a target and its sources.
const TARGETS: &[&str] = &["add_executable", "add_library", "target_sources"];

/// Returns the files of the base that only test programs use and that have signs of tests or a
/// `main`.
pub(super) fn tests(base: &BaseFiles, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> BTreeSet<String> {
    let (mut sources, mut tested): (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) = Default::default();
    for path in base.0.iter().filter(|path| name_of(path) == LISTS) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let Some(text) = text(path, read) else { continue };
        for (command, words) in commands(&plain(&text)) {
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

/// Returns the command lines of the tests that a `CMakeLists.txt` declares.
pub(super) fn commands_of_tests(lists: &str) -> String {
    let plain = plain(lists);
    let declared = commands(&plain).into_iter().filter(|(command, _)| command == "add_test");
    let lines = declared.filter_map(|(_, words)| {
        let start = words.iter().position(|word| *word == "COMMAND").map_or(1, |at| at + 1);
        words.get(start..).map(|words| words.join(" "))
    });
    without_places(&lines.collect::<Vec<_>>().join("\n"))
}

/// Returns each command with its words, in a text that [`plain`] has simplified.
pub(super) fn commands(plain: &str) -> Vec<(String, Vec<&str>)> {
    let mut found = Vec::new();
    for part in plain.split(')') {
        let Some((before, words)) = part.rsplit_once('(') else { continue };
        let command = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
        let words = words.split(|c: char| c.is_whitespace() || c == '"').filter(|word| !word.is_empty());
        found.push((command, words.collect()));
    }
    found
}

/// Returns the text without comments and bracket arguments. Parentheses in quotes are replaced, so
/// that each remaining parenthesis belongs to a command.
pub(super) fn plain(text: &str) -> String {
    let (mut kept, mut rest, mut is_quoted) = (String::new(), text, false);
    while let Some(next) = rest.chars().next() {
        let mut length = next.len_utf8();
        let comment = rest.strip_prefix('#').filter(|_| !is_quoted);
        if let Some(after) = past_brackets(comment.unwrap_or(rest)).filter(|_| !is_quoted) {
            kept.push(' ');
            rest = after;
            continue;
        }
        match next {
            '#' if !is_quoted => length = rest.find('\n').unwrap_or(rest.len()),
            '\\' => {
                length = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
                kept.push('_');
            }
            '(' | ')' if is_quoted => kept.push('_'),
            mark => {
                is_quoted ^= mark == '"';
                kept.push(mark);
            }
        }
        rest = &rest[length..];
    }
    kept
}

/// Returns the text after `[[ … ]]` or `[=[ … ]=]`, if the text begins with one.
fn past_brackets(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?;
    let body = inside.trim_start_matches('=');
    let close = format!("]{}]", "=".repeat(inside.len() - body.len()));
    body.strip_prefix('[')?.split_once(&close).map(|(_, after)| after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_quotes_hide_no_command_and_make_none() {
        for (text, known) in [
            ("a(b) # c(d)\ne(f)", "a(b) e(f)"),
            ("a(b #c)\n d)", "a(b d)"),
            ("a(\"b # ) c(\" d) e(f)", "a(b # _ c_ d) e(f)"),
            ("#[[ a(b) ]] c(d)", "c(d)"),
            ("#[=[ a(b) ]] ]=] c([[ d) ]] e)", "c(e)"),
            ("a(b\\)c) d(e)", "a(b_c) d(e)"),
            ("A_b(c) # unclosed [[\nd(e)", "a_b(c) d(e)"),
        ] {
            let plain = plain(text);
            let found: Vec<String> =
                commands(&plain).iter().map(|(command, words)| format!("{command}({})", words.join(" "))).collect();
            assert_eq!(found.join(" "), known, "{text}");
        }
    }
}
