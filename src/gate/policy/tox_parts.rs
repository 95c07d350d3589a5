//! Comparison of `tox.ini` by environment: whether a version only adds unused environments. Pure.

use super::unused_parts::{SurroundingNames, names_in};
use std::collections::{BTreeMap, BTreeSet};

/// A piece of the file, in file order.
enum Piece<'t> {
    Environment(&'t str, String),
    Line(&'t str),
}

/// Returns the unused environments that a version adds, if nothing else differs.
pub(super) fn differ(was: &str, is: &str, around: &SurroundingNames) -> Option<Vec<String>> {
    if around.uses("ALL") {
        return None;
    }
    let pieces = [pieces(was), pieces(is)];
    let [(was_rest, was), (is_rest, is)] = [without_unused(&pieces[0], around)?, without_unused(&pieces[1], around)?];
    let is_kept = was.iter().all(|(name, text)| is.get(name) == Some(text));
    let new = is.keys().filter(|name| !was.contains_key(*name)).map(|name| (*name).to_owned());
    (is_kept && was_rest == is_rest).then(|| new.collect())
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut pieces, mut at) = (Vec::new(), 0);
    while let Some(line) = lines.get(at) {
        let length = 1 + lines[at + 1..].iter().take_while(|line| !line.starts_with('[')).count();
        match environment(line).filter(|_| is_plain(&lines[at + 1..at + length])) {
            Some(name) => {
                let kept = lines[at..at + length].iter().filter(|line| !line.trim().is_empty());
                pieces.push(Piece::Environment(name, kept.copied().collect::<Vec<_>>().join("\n")));
                at += length;
            }
            None => {
                pieces.push(Piece::Line(line));
                at += 1;
            }
        }
    }
    pieces
}

/// Returns the name of the environment in a section header. Names with `-` are left out, since
/// several sections supply their commands, and so are Python's, which exist without a section.
fn environment(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_prefix("[testenv:")?.strip_suffix(']')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_part) && !name.starts_with("py")).then_some(name)
}

/// Returns whether all parsers read the lines of a section alike: unique keys with values, and
/// comments.
fn is_plain(lines: &[&str]) -> bool {
    let mut keys = BTreeSet::new();
    lines.iter().filter(|line| !line.trim().is_empty()).all(|line| {
        let inner = line.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        match line.split_once('=') {
            _ if inner.starts_with(['#', ';']) => true,
            _ if inner.len() < line.len() => !keys.is_empty() && !inner.starts_with('['),
            Some((key, _)) => key.trim_end().chars().all(is_part) && keys.insert(key.trim_end().to_lowercase()),
            None => false,
        }
    })
}

/// Returns the lines without the unused environments, and these environments by name. Returns
/// `None` if the used environments cannot be known.
fn without_unused<'p>(
    pieces: &'p [Piece<'_>],
    around: &SurroundingNames,
) -> Option<(Vec<&'p str>, BTreeMap<&'p str, &'p str>)> {
    let mut unused: BTreeMap<&str, &str> = BTreeMap::new();
    for piece in pieces {
        if let Piece::Environment(name, text) = piece
            && unused.insert(name, text).is_some()
        {
            return None;
        }
    }
    unused.retain(|name, _| !around.uses(name));
    loop {
        let mut rest: Vec<&str> = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Line(line) => rest.push(line),
                Piece::Environment(name, text) if !unused.contains_key(name) => rest.extend(text.lines()),
                // Empty lines before an environment belong to it.
                Piece::Environment(..) => trim_end(&mut rest),
            }
        }
        trim_end(&mut rest);
        let used = uses(&rest.join("\n"))?;
        let before = unused.len();
        unused.retain(|name, _| !used.iter().any(|(start, end)| fits(name, start, end)));
        if unused.len() == before {
            return Some((rest, unused));
        }
    }
}

fn trim_end(lines: &mut Vec<&str>) {
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
}

fn fits(name: &str, start: &str, end: &str) -> bool {
    if end == WHOLE { name == start } else { name.starts_with(start) && name.ends_with(end) }
}

/// A marker in the place of a suffix: the prefix is the whole name.
const WHOLE: &str = "\n";

/// Returns the names that a text uses: whole names, and the prefixes and suffixes of names that
/// braces compose. Returns `None` if a name is composed of two expressions.
fn uses(text: &str) -> Option<Vec<(String, String)>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut used: Vec<(String, String)> = names_in(text).map(|name| (name, WHOLE.to_owned())).collect();
    for (at, _) in text.match_indices('{') {
        let start = text[..at].rsplit(|c| !is_part(c)).next().unwrap_or_default();
        used.extend((!start.is_empty()).then(|| (start.to_owned(), String::new())));
    }
    for (at, _) in text.match_indices('}') {
        let end = text[at + 1..].split(|c| !is_part(c)).next().unwrap_or_default();
        used.extend((!end.is_empty()).then(|| (String::new(), end.to_owned())));
    }
    let has_two =
        |(at, _): (usize, &str)| text[at + 1..].trim_start_matches(|c| is_part(c) || c == '-').starts_with('{');
    (!text.match_indices('}').any(has_two)).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::super::{PathChange, PathChangeKind, Policy, TreeSide};
    use std::collections::BTreeMap;

    const BASE: &str = "[tox]\nenvlist = py{310,311}, lint\n\n[testenv]\ndeps = pytest\ncommands = pytest {posargs}\n\n\
                        [testenv:lint]\ndeps = {[testenv:tools]deps}\ncommands = ruff check\n\n[testenv:tools]\ndeps = ruff\n\n[testenv:old]\ncommands = true\n\n[pytest]\naddopts = -q\n";

    fn is_free(is: &str, step: &str) -> bool {
        let lane = serde_json::json!({ "steps": [{ "run": step }] }).to_string();
        let lanes = [crate::lane::parse("verify", "lanes/verify.yaml", &lane).unwrap()];
        let files = BTreeMap::from([("tox.ini", BASE), ("app.py", "")]);
        let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
        let policy = Policy::freeze(files.keys().map(|path| (*path).to_owned()), &lanes, &[], &[], &mut read).unwrap();
        let change = [PathChange { path: "tox.ini".into(), kind: PathChangeKind::Modified }];
        let content = |_: &str, side| Some(if side == TreeSide::Base { BASE } else { is }.as_bytes().to_vec());
        let (findings, notes) = (policy.findings(&change, content), policy.unused_notes(&change, content));
        assert_ne!(findings.is_empty(), notes.is_empty(), "{findings:?} {notes:?}");
        findings.is_empty()
    }

    #[test]
    fn environments_that_nothing_uses_may_be_added() {
        let docs =
            "[testenv:docs]\n# For people.\ndeps = sphinx\ncommands =\n    sphinx-build docs out\n\n    echo done\n";
        for is in [format!("{BASE}\n{docs}"), BASE.replace("[pytest]", &format!("{docs}\n[pytest]"))] {
            for step in ["tox -e lint", "tox", "python3 -m pytest"] {
                assert!(is_free(&is, step), "{step}: {is}");
            }
        }
        let is = format!("{BASE}\n{docs}");
        for step in ["tox -e docs", "tox -e ALL", "tox -e \"$(cat which)\"", "TOXENV=d$X tox", "tox -e$X"] {
            assert!(!is_free(&is, step), "{step}");
        }
    }

    #[test]
    fn whatever_a_used_environment_may_be_changed_by_stays() {
        for (from, to) in [
            ("", "\n[testenv:lint]\ncommands = true\n"),
            ("", "\n[testenv:docs]\ncommands = true\n [testenv]\ncommands = true\n"),
            ("", "\n[testenv:docs]\n[pytest]\naddopts = -k x\n"),
            ("", "\n[testenv:docs]\ndeps = a\nDeps = b\n"),
            ("", "\n[testenv:docs]\nno key\n"),
            ("", "\n[testenv:docs]\ndeps = a\n\n[testenv:docs]\ndeps = b\n"),
            ("", "\n[testenv:py311]\ncommands = true\n"),
            ("", "\n[testenv:docs]\ncommands = true\r\n[testenv]\n"),
            ("lint\n", "lint, docs\n"),
            ("commands = true", "commands = false"),
            ("[testenv:old]\ncommands = true\n\n", ""),
            ("deps = ruff\n", "deps = fake\n"),
            ("commands = ruff check", "commands = true"),
            ("addopts = -q", "addopts = -q -k x"),
        ] {
            let is = if from.is_empty() { format!("{BASE}{to}") } else { BASE.replacen(from, to, 1) };
            assert_ne!(is, BASE);
            assert!(!is_free(&is, "tox"), "{to}");
        }
    }
}
