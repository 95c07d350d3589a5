//! Makefiles: what they include, and which targets the gate asks for.

use super::named::{inside, words};
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a file is read by `make`.
pub(super) fn is_makefile(path: &str) -> bool {
    name_of(path).to_lowercase().ends_with("makefile") || path.ends_with(".mk")
}

/// What a Makefile includes by a plain name.
pub(super) fn included(path: &str, text: &str) -> Vec<String> {
    included_words(path, text).filter(|name| !name.contains(['*', '?', '['])).collect()
}

/// The patterns by which a Makefile includes files.
pub(super) fn patterns(path: &str, text: &str) -> Vec<String> {
    included_words(path, text).filter(|name| name.contains(['*', '?', '['])).collect()
}

fn included_words(path: &str, text: &str) -> impl Iterator<Item = String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let lines = text.lines().filter(|_| is_makefile(path)).filter_map(|line| {
        let line = line.trim_start().trim_start_matches(['-', 's']);
        line.strip_prefix("include ")
    });
    let split = |c: char| c.is_whitespace() || "()".contains(c);
    let names = lines.flat_map(move |line| line.split(split)).filter(|name| !name.contains(['$', '%', '#']));
    names.filter(|name| !name.is_empty()).filter_map(|name| inside(folder, name)).collect::<Vec<_>>().into_iter()
}

/// The targets that the gate's commands make, with what they need, as paths. Left out are those that are phony, and those with an
/// ending or a folder: generated files may be kept.
pub(super) fn targets(texts: &[(String, String)]) -> BTreeSet<String> {
    let asked: BTreeSet<&str> =
        texts.iter().filter(|(path, _)| !is_makefile(path)).flat_map(|(_, text)| words(text)).collect();
    let mut found = BTreeSet::new();
    if !["make", "gmake"].iter().any(|program| asked.contains(program)) {
        return found;
    }
    for (path, text) in texts.iter().filter(|(path, _)| is_makefile(path)) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let rules = rules(text);
        let own = asked.iter().filter(|name| rules.contains_key(**name)).copied();
        let mut open: Vec<&str> = own.collect();
        open.extend(first(text).filter(|_| open.is_empty()));
        let (mut seen, phony) = (BTreeSet::new(), rules.get(".PHONY").cloned().unwrap_or_default());
        while let Some(target) = open.pop() {
            if seen.insert(target) {
                open.extend(rules.get(target).into_iter().flatten().filter(|name| rules.contains_key(**name)));
            }
        }
        let is_plain = |target: &&str| !phony.contains(target) && !target.contains(['/', '.', '$', '%', '*']);
        found.extend(seen.into_iter().filter(is_plain).filter_map(|target| inside(folder, target)));
    }
    found
}

/// The first target of a Makefile, which is made where none is asked for.
fn first(text: &str) -> Option<&str> {
    text.lines()
        .filter_map(rule)
        .flat_map(|(targets, _)| targets.split_whitespace())
        .find(|name| !name.starts_with('.'))
}

/// What each target needs.
fn rules(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (targets, needs) in text.lines().filter_map(rule) {
        for target in targets.split_whitespace() {
            found.entry(target).or_default().extend(needs.split_whitespace().filter(|need| *need != "|"));
        }
    }
    found
}

/// The targets and needs of a line, where it is a rule.
fn rule(line: &str) -> Option<(&str, &str)> {
    let line = line.split('#').next().filter(|line| !line.starts_with(['\t', ' ']))?;
    let (targets, needs) = line.split_once(':')?;
    let needs = needs.trim_start_matches(':');
    let is_variable = targets.contains('=') || needs.trim_start().starts_with('=') || needs.contains('=');
    (!is_variable).then(|| (targets, needs.split(';').next().unwrap_or_default()))
}
