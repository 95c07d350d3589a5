//! Puts the tests of the base back into product files of the work, so that the work is judged by
//! them. Pure.
//!
//! In each file, every part that is only built for tests is cut out and the parts of the base take
//! their places. A part that was moved unchanged to another file stays there.

use super::outline::{Example, Outline, TestPart};
use super::{CargoPackages, ChangedSource, changed, is_rust, reader};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The work with the tests of the base.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::gate) struct Grafts {
    /// The files that differ from the work, each with its text.
    pub(in crate::gate) files: Vec<(String, String)>,
    /// The files of the base whose tests differ, sorted.
    pub(in crate::gate) differ: Vec<String>,
    /// Those of them that lack a test of the base, or code that its tests use, sorted.
    pub(in crate::gate) lacking: Vec<String>,
    /// The files of the base that are gone together with tests inside them, sorted.
    pub(in crate::gate) gone: Vec<String>,
    /// New conditions by which product code differs in builds for tests, each with its file.
    pub(in crate::gate) switches: Vec<(String, String)>,
    /// The files of the base whose tests differ and are open to the task, sorted.
    pub(in crate::gate) opened: Vec<String>,
    /// Files that are too large to be read, sorted.
    pub(in crate::gate) unread: Vec<String>,
}

/// Puts the tests of `before` into `after`. `for_tests` names the files of the base that are only
/// built for tests. `is_opened` returns whether the task opens the tests in a file.
pub(in crate::gate) fn graft(
    before: &[(&str, String)],
    after: &[ChangedSource<'_>],
    packages: &CargoPackages,
    for_tests: &BTreeSet<String>,
    is_opened: impl Fn(&str) -> bool,
) -> Grafts {
    let read = |path: &str, text: &str| reader(path).map_or_else(Outline::default, |read| read(text));
    let was: BTreeMap<&str, Outline> = before.iter().map(|(path, text)| (*path, read(path, text))).collect();
    let is: BTreeMap<&str, Outline> = after.iter().map(|file| (file.path, read(file.path, &file.text))).collect();
    let is_whole = |path: &str| for_tests.contains(path) || was.get(path).is_some_and(|it| it.is_for_tests);
    let changed = changed(before, after, packages);
    let mut differ: BTreeSet<&str> = changed.keys().copied().collect();
    let now: BTreeSet<&str> = is.values().flat_map(|outline| &outline.parts).map(|part| part.words.as_str()).collect();
    let shown: BTreeSet<&str> = is.values().flat_map(|outline| &outline.examples).map(|it| it.key.as_str()).collect();
    let missing = |path: &str| -> Vec<&Example> {
        let examples = was.get(path).into_iter().flat_map(|outline| &outline.examples);
        examples.filter(|example| !shown.contains(example.key.as_str())).collect()
    };
    // The tests of other languages are compared here, and those of Rust that `changed` does not
    // see.
    let counts = |path: &str, part: &TestPart| !is_rust(path) || part.is_hidden();
    let lacks = |path: &str| {
        let mut parts = was[path].parts.iter();
        let own = |part: &TestPart| is.get(path).is_some_and(|it| it.parts.iter().any(|own| own.words == part.words));
        let has = |part: &TestPart| own(part) || (!part.is_declaration() && now.contains(part.words.as_str()));
        parts.any(|part| counts(path, part) && !has(part)) || !missing(path).is_empty()
    };
    differ.extend(before.iter().map(|(path, _)| *path).filter(|path| is_whole(path) || lacks(path)));
    let opened = differ.iter().filter(|path| is_opened(path)).map(|path| (*path).to_owned()).collect();
    differ.retain(|path| !is_opened(path));
    let moved = moved(&was, &is);
    let has_support = is.iter().any(|(path, outline)| {
        let had = was.get(path).map_or(&[][..], |outline| &outline.parts);
        let is_new = |part: &&TestPart| !had.iter().any(|old| old.is_version_of(part)) && !moved.contains(&*part.words);
        !is_opened(path) && outline.parts.iter().filter(is_new).any(|part| !part.is_test)
    });
    let mut grafts = Grafts { switches: switches(&was, &is, &is_opened), opened, ..Grafts::default() };
    let texts: BTreeMap<&str, &ChangedSource<'_>> = after.iter().map(|file| (file.path, file)).collect();
    grafts.gone = differ.iter().filter(|path| !texts.contains_key(**path)).map(|path| (*path).to_owned()).collect();
    differ.retain(|path| texts.contains_key(*path));
    grafts.differ = differ.iter().map(|path| (*path).to_owned()).collect();
    let is_lacking = |path: &&String| match is_rust(path) {
        true => lacks(path) || changed.get(path.as_str()) != Some(&true),
        false => {
            !missing(path).is_empty() || was[path.as_str()].parts.iter().any(|part| !is[path.as_str()].extends(part))
        }
    };
    grafts.lacking = grafts.differ.iter().filter(is_lacking).cloned().collect();
    if differ.is_empty() && !has_support {
        return grafts;
    }
    let nothing = Outline::default();
    for (path, file) in texts {
        let base = before.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_str());
        let text = match base {
            _ if is_opened(path) => continue,
            Some(base) if is_whole(path) => base.to_owned(),
            None if !has_support => continue,
            base => {
                let outline = was.get(path).unwrap_or(&nothing);
                let text = rewritten((base.unwrap_or(""), outline), (&file.text, &is[path]), &moved);
                with_examples(text, &missing(path))
            }
        };
        if text != file.text {
            grafts.files.push((path.to_owned(), text));
        }
    }
    grafts
}

impl Outline {
    /// Returns whether the file has a part with all lines of this one, in their order.
    fn extends(&self, part: &TestPart) -> bool {
        let has_all = |own: &TestPart| {
            let mut lines = own.words.lines();
            part.words.lines().all(|line| lines.any(|own| own == line))
        };
        self.parts.iter().any(|own| own.is_version_of(part) && has_all(own))
    }
}

impl TestPart {
    /// Returns whether [`changed`] does not see the part as a test: behind a macro, inside a type,
    /// or in another file.
    fn is_hidden(&self) -> bool {
        let is_in_type = self.around.iter().any(|header| !header.starts_with("mod "));
        self.name.contains('!') || is_in_type || self.is_declaration()
    }

    /// Returns whether the part only declares a module in another file. All declarations look
    /// alike, so none counts as moved.
    fn is_declaration(&self) -> bool {
        self.name.starts_with("mod ") && self.words.ends_with("; ")
    }

    fn is_version_of(&self, other: &Self) -> bool {
        self.around == other.around && self.name == other.name
    }
}

/// Returns the parts, as their words, that left one file and are unchanged in another.
fn moved<'o>(was: &'o BTreeMap<&str, Outline>, is: &'o BTreeMap<&str, Outline>) -> BTreeSet<&'o str> {
    let beyond = |from: &'o BTreeMap<&str, Outline>, than: &'o BTreeMap<&str, Outline>| -> BTreeSet<&'o str> {
        let of = |all: &'o BTreeMap<&str, Outline>, path: &str| -> BTreeSet<&'o str> {
            let parts = all.get(path).into_iter().flat_map(|it| &it.parts);
            parts.filter(|part| !part.is_declaration()).map(|part| part.words.as_str()).collect()
        };
        from.keys().flat_map(|path| &of(from, path) - &of(than, path)).collect()
    };
    &beyond(was, is) & &beyond(is, was)
}

/// Returns the conditions on `test` in product code that the base does not have. A condition that
/// moved is not new.
fn switches(
    was: &BTreeMap<&str, Outline>,
    is: &BTreeMap<&str, Outline>,
    is_opened: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut had: BTreeMap<&str, usize> = BTreeMap::new();
    for switch in was.values().flat_map(|outline| &outline.switches) {
        *had.entry(switch).or_default() += 1;
    }
    let mut new = Vec::new();
    for (path, switch) in is.iter().flat_map(|(path, outline)| outline.switches.iter().map(move |it| (*path, it))) {
        match had.get_mut(switch.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            _ if is_opened(path) => {}
            _ => new.push((path.to_owned(), switch.clone())),
        }
    }
    new
}

/// Returns the text of the work with the parts of the base in place of its own.
fn rewritten(base: (&str, &Outline), work: (&str, &Outline), moved: &BTreeSet<&str>) -> String {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut free: Vec<&TestPart> = work.1.parts.iter().collect();
    let mut matched: Vec<Option<&TestPart>> = Vec::new();
    for part in &base.1.parts {
        let same = free.iter().position(|own| own.is_version_of(part) && own.words == part.words);
        let own = same.or_else(|| free.iter().position(|own| own.is_version_of(part)));
        matched.push(own.map(|at| free.remove(at)));
    }
    for (number, part) in base.1.parts.iter().enumerate() {
        let text = &base.0[part.range.clone()];
        match matched[number] {
            Some(own) if own.words == part.words => {}
            Some(own) => edits.push((own.range.clone(), text.to_owned())),
            None if moved.contains(part.words.as_str()) => {}
            None => {
                let beside = |own: &&&TestPart| own.around == part.around;
                let before = matched[..number].iter().rev().flatten().find(beside).map(|own| own.range.end);
                let after = || matched[number..].iter().flatten().find(beside).map(|own| own.range.start);
                let end = work.1.ends.get(&part.around).copied().unwrap_or(work.0.len());
                let at = before.or_else(after).unwrap_or(end);
                edits.push((at..at, format!("\n{text}\n")));
            }
        }
    }
    let extra = free.into_iter().filter(|own| !moved.contains(own.words.as_str()));
    edits.extend(extra.map(|own| (own.range.clone(), String::new())));
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut text, mut at) = (String::new(), 0);
    for (range, new) in edits {
        text.push_str(&work.0[at..range.start]);
        text.push_str(&new);
        at = range.end;
    }
    text + &work.0[at..]
}

/// Adds examples of the base to a text.
fn with_examples(mut text: String, missing: &[&Example]) -> String {
    for (number, example) in missing.iter().enumerate() {
        text.push_str(&example.text.replace("{number}", &number.to_string()));
    }
    text
}

#[cfg(test)]
mod tests;
