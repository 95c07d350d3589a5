//! Comparison of Makefiles by target: whether a version only adds unused targets. Pure.
//!
//! The comparison is textual: without the unused targets, both versions must be equal. The unused
//! targets of the base must be unchanged as well, since a command may build their names in ways
//! that fledge cannot see.

use super::makefiles::{expanded, outside_calls, rule, variables};
use super::unused_parts::{SurroundingNames, is_unclear, names_in};
use std::collections::{BTreeMap, BTreeSet};

/// Words at the start of a line that are not targets.
const DIRECTIVES: &[&str] = &[
    "include", "sinclude", "export", "unexport", "override", "private", "define", "endef", "undefine", "vpath", "load",
];
const CONDITIONALS: &[&str] = &["ifeq", "ifneq", "ifdef", "ifndef", "else", "endif"];
/// Text that changes how make reads lines, or that lets a Makefile read itself.
const UNCLEAR: &[&str] =
    &[".RECIPEPREFIX", ".SECONDEXPANSION", "$(eval", "${eval", "MAKEFILE_LIST", ".VARIABLES", "$(file", "${file"];

/// A piece of a Makefile, in file order.
#[derive(Debug)]
enum Piece<'t> {
    /// A plain rule of one target.
    Target { name: &'t str, needs: &'t str, text: String },
    /// Names of phony targets.
    Phony(Vec<&'t str>),
    /// Any other line.
    Line(&'t str),
}

/// A Makefile without its unused targets.
struct Without<'t> {
    rest: Vec<String>,
    unused: BTreeMap<&'t str, (&'t str, &'t str)>,
}

/// Returns the unused targets that a version adds, if nothing but comments differs otherwise.
pub(super) fn differ(was: &str, is: &str, around: &SurroundingNames) -> Option<Vec<String>> {
    if [was, is].iter().flat_map(|text| included(text)).any(|name| !is_path(name) || around.is_beside(first(name))) {
        return None;
    }
    let pieces = [pieces(was)?, pieces(is)?];
    let [was, is] = [without_unused(&pieces[0], around)?, without_unused(&pieces[1], around)?];
    let headers: BTreeSet<&str> =
        is.rest.iter().filter_map(|line| rule(line)).flat_map(|(_, needs, _)| needs.split_whitespace()).collect();
    let is_known = |need: &str| is.unused.contains_key(need) || headers.contains(need) || around.is_beside(need);
    let is_kept = was.unused.iter().all(|(name, part)| is.unused.get(name) == Some(part));
    let new: Vec<&str> = is.unused.keys().copied().filter(|name| !was.unused.contains_key(name)).collect();
    let needs = new.iter().filter_map(|name| is.unused.get(name)).flat_map(|(needs, _)| needs.split_whitespace());
    let is_same = is_kept && was.rest == is.rest && needs.filter(|need| *need != "|").all(is_known);
    is_same.then(|| new.into_iter().map(ToOwned::to_owned).collect())
}

/// Returns the words after `include` in a Makefile: file names, or expressions that make expands to
/// file names.
pub(super) fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut words = line.trim_start().trim_start_matches('-').split_whitespace();
        let is_one = words.next().is_some_and(|word| matches!(word, "include" | "sinclude"));
        words.filter(move |_| is_one)
    })
}

fn is_path(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./|".contains(c))
}

/// Returns the first component of a path.
fn first(path: &str) -> &str {
    path.split('/').find(|name| !matches!(*name, "" | ".")).unwrap_or_default()
}

/// Splits a Makefile into pieces. Returns `None` if make may read its lines in another way.
fn pieces(text: &str) -> Option<Vec<Piece<'_>>> {
    let has_text = text.split_whitespace().any(|word| matches!(word, "define" | "endef"));
    if has_text || UNCLEAR.iter().any(|unclear| text.contains(unclear)) {
        return None;
    }
    let lines = logical_lines(text);
    let (mut pieces, mut at) = (Vec::new(), 0);
    while let Some(line) = lines.get(at) {
        let mut end = at + 1;
        let gap = |from: usize| from + lines[from..].iter().take_while(|line| is_nothing(line)).count();
        while lines.get(gap(end)).is_some_and(|line| line.starts_with('\t')) {
            end = gap(end) + 1;
        }
        // After a conditional, the rule may have more commands.
        let follows = lines[end..].iter().find(|line| !is_nothing(line));
        let is_whole = follows.is_none_or(|line| !line.starts_with('\t') && !is_conditional(line));
        match (phony(line), target(line)) {
            (Some(names), _) if is_whole && end == at + 1 => pieces.push(Piece::Phony(names)),
            (_, Some((name, needs))) if is_whole => {
                let text =
                    lines[at..end].iter().filter(|line| !is_nothing(line)).copied().collect::<Vec<_>>().join("\n");
                pieces.push(Piece::Target { name, needs, text });
                at = end - 1;
            }
            _ if is_nothing(line) => {}
            _ => pieces.push(Piece::Line(line)),
        }
        at += 1;
    }
    Some(pieces)
}

/// Returns the logical lines, each with its continuation lines.
fn logical_lines(text: &str) -> Vec<&str> {
    let (mut lines, mut start, mut from) = (Vec::new(), 0, 0);
    while let Some(end) = text[from..].find('\n').map(|end| from + end) {
        if !text[..end].ends_with('\\') {
            lines.push(&text[start..end]);
            start = end + 1;
        }
        from = end + 1;
    }
    lines.extend((start < text.len()).then(|| &text[start..]));
    lines
}

/// Returns whether a line is empty or a comment.
fn is_nothing(line: &str) -> bool {
    !line.starts_with('\t') && (line.trim().is_empty() || line.trim_start().starts_with('#'))
}

fn is_conditional(line: &str) -> bool {
    let word = line.trim_start().split(|c: char| !c.is_ascii_alphanumeric()).next();
    !line.starts_with('\t') && word.is_some_and(|word| CONDITIONALS.contains(&word))
}

/// Returns the name and the prerequisites of a line that is the header of a plain rule.
fn target(line: &str) -> Option<(&str, &str)> {
    let line = line.split('#').next().filter(|line| !line.contains(['\\', ';', '=', '%', '*', '?', '\n']))?;
    let (name, needs) = line.split_once(':')?;
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let name = name.trim_end();
    let is_name = !name.is_empty()
        && !name.starts_with('-')
        && is_plain(name)
        && !DIRECTIVES.iter().chain(CONDITIONALS).any(|word| *word == name);
    let is_variable = |need: &str| {
        let name = need.strip_prefix("$(").and_then(|name| name.strip_suffix(')'));
        name.is_some_and(is_plain)
    };
    let is_need = |need: &str| is_path(need) || is_variable(need);
    (is_name && needs.split_whitespace().all(is_need)).then_some((name, needs))
}

/// Returns the targets that a `.PHONY` line names.
fn phony(line: &str) -> Option<Vec<&str>> {
    let names = line.strip_prefix(".PHONY")?.trim_start().strip_prefix(':')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || " \t\n\\._-/".contains(c);
    names.chars().all(is_part).then(|| names.split_whitespace().filter(|name| *name != "\\").collect())
}

/// Removes the unused targets. Returns `None` if the used targets cannot be known.
fn without_unused<'t>(pieces: &'t [Piece<'t>], around: &SurroundingNames) -> Option<Without<'t>> {
    let mut unused = BTreeMap::new();
    let (mut depth, mut has_first) = (0_usize, false);
    for piece in pieces {
        match piece {
            Piece::Target { name, needs, text } => {
                if has_first && unused.insert(*name, (*needs, text.as_str())).is_some() {
                    return None;
                }
                has_first |= depth == 0;
            }
            Piece::Line(line) if is_conditional(line) => match line.trim_start() {
                line if line.starts_with("if") => depth += 1,
                line if line.starts_with("endif") => depth = depth.saturating_sub(1),
                _ => {}
            },
            Piece::Line(line) => has_first |= depth == 0 && is_first(line),
            Piece::Phony(_) => {}
        }
    }
    unused.retain(|name, _| !around.uses(name));
    loop {
        let rest = rest(pieces, &unused);
        let used = Used::parse(&rest)?;
        let before = unused.len();
        unused.retain(|name, _| !used.has(name));
        if unused.len() == before {
            return Some(Without { rest: rest.into_iter().map(|(line, _)| line).collect(), unused });
        }
    }
}

/// Returns whether a line is the rule of a target that can be the default.
fn is_first(line: &str) -> bool {
    let plain = |name: &str| !name.starts_with('.') && !name.contains(['%', '$', '\\']);
    let word = line.trim_start_matches('-').split_whitespace().next().unwrap_or_default();
    let is_rule = !line.starts_with([' ', '\t']) && !DIRECTIVES.contains(&word);
    let targets = rule(line).filter(|_| is_rule).map(|(targets, ..)| targets);
    targets.is_some_and(|targets| targets.split_whitespace().next().is_some_and(plain))
}

/// Returns the lines without these targets, each with `true` if its words count as uses.
fn rest(pieces: &[Piece<'_>], unused: &BTreeMap<&str, (&str, &str)>) -> Vec<(String, bool)> {
    let mut rest = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Target { name, .. } if unused.contains_key(name) => {}
            Piece::Target { text, .. } => {
                rest.extend(logical_lines(text).into_iter().map(|line| (line.to_owned(), true)))
            }
            Piece::Phony(names) => {
                let kept: Vec<&str> = names.iter().copied().filter(|name| !unused.contains_key(name)).collect();
                rest.extend((!kept.is_empty()).then(|| (format!(".PHONY: {}", kept.join(" ")), false)));
            }
            Piece::Line(line) => rest.push(((*line).to_owned(), true)),
        }
    }
    rest
}

/// Names that the rest of a Makefile uses.
struct Used {
    names: BTreeSet<String>,
    /// Prefixes and suffixes of composed names.
    patterns: BTreeSet<(String, String)>,
}

impl Used {
    fn parse(rest: &[(String, bool)]) -> Option<Self> {
        let lines: Vec<String> =
            rest.iter().filter(|(_, uses)| *uses).map(|(line, _)| line.replace("\\\n", " ")).collect();
        let text = lines.join("\n");
        let variables = variables(&text);
        let (mut names, mut patterns): (BTreeSet<String>, _) = (names_in(&text).collect(), BTreeSet::new());
        for line in &lines {
            if line.starts_with('\t') {
                if is_unclear(line.trim_start(), &["make", "gmake", "MAKE"]) {
                    return None;
                }
                continue;
            }
            let header = rule(line).map(|(targets, needs, _)| format!("{targets} {needs}"));
            let value = line.split_once('=').map(|(_, value)| value).filter(|_| header.is_none());
            let Some(words) = header.as_deref().or(value) else { continue };
            patterns.extend(joined_words(words));
            if header.is_some() {
                let evaluated = expanded(words, &variables, (0, "%"));
                names.extend(names_in(&evaluated));
                patterns.extend(evaluated.split_whitespace().filter_map(|word| ends(word, &['%', '*', '?', '['])));
            }
        }
        Some(Self { names, patterns })
    }

    fn has(&self, name: &str) -> bool {
        let fits = |(start, end): &(String, String)| {
            name.len() >= start.len() + end.len() && name.starts_with(start.as_str()) && name.ends_with(end.as_str())
        };
        self.names.contains(name) || self.patterns.iter().any(fits)
    }
}

/// Returns the text before the first and the text after the last of these characters in a word.
fn ends(word: &str, signs: &[char]) -> Option<(String, String)> {
    let (start, end) = (word.find(signs)?, word.rfind(signs)?);
    Some((word[..start].to_owned(), word[end + 1..].to_owned()))
}

/// Returns the prefix and suffix of each word that is composed of text and calls, or of several
/// calls.
fn joined_words(text: &str) -> Vec<(String, String)> {
    let (mut found, mut start, mut calls) = (Vec::new(), None::<String>, 0);
    let mut end = String::new();
    for c in outside_calls(text).map(|(_, c)| c).chain([' ']) {
        match c {
            '$' => {
                calls += 1;
                start.get_or_insert_with(|| std::mem::take(&mut end));
                end.clear();
            }
            c if c.is_whitespace() => {
                let (before, after) = (start.take(), std::mem::take(&mut end).replace([')', '}'], ""));
                let before = before.filter(|before| calls > 1 || !(before.is_empty() && after.is_empty()));
                found.extend(before.map(|before| (before, after)));
                calls = 0;
            }
            c => end.push(c),
        }
    }
    found
}

#[cfg(test)]
mod tests;
