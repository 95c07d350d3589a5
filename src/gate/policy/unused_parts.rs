//! New targets of a Makefile and new environments of `tox.ini` that no command of the base uses.
//! Adding them is a note, not a finding. Pure.
//!
//! When in doubt, a part counts as used, and the file stays protected as a whole.

use super::makefiles::is_makefile;
use super::named::{LONGEST, has_script_extension, is_source};
use super::reached::ReachedFiles;
use super::{BaseFiles, PathChange, PathChangeKind, Policy, TreeSide, ci, make_parts, tox_parts, unused};
use crate::gate::names::name_of;
use crate::lane::Lane;
use crate::pattern::Patterns;
use crate::workspace::{ProtectedRule, Protection};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Reason why a change of an unused part is not a finding.
pub(super) const WHY: &str = "which no command of the base uses";

/// The files that are compared part by part.
const READ_BY: &[Row] = &[
    (&["Makefile", "GNUmakefile", "makefile"], &["make", "gmake", "MAKE"], make_parts::differ),
    (&["tox.ini"], &["tox"], tox_parts::differ),
];
/// The maximum number of files that are compared part by part, the maximum number of words that are
/// kept for one file, and the maximum number of files beside one.
const MOST: usize = 20;
const MOST_WORDS: usize = 20_000;
const MOST_BESIDE: usize = 2000;

/// Names of files, the programs that read them, and the function that compares them.
type Row = (&'static [&'static str], &'static [&'static str], Compare);

/// Compares two versions of a file. Returns the new parts if nothing else differs and none of them
/// is used.
type Compare = fn(&str, &str, &SurroundingNames) -> Option<Vec<String>>;

/// The files of the base that are compared part by part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ComparedParts(BTreeMap<String, SurroundingNames>);

/// Names around a file that may refer to its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SurroundingNames {
    /// Words of commands.
    asked: BTreeSet<String>,
    /// The names of the files and folders in the same folder.
    beside: BTreeSet<String>,
}

impl SurroundingNames {
    /// Returns whether something may use a part of this name.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.asked.contains(name) || self.is_beside(name)
    }

    /// Returns whether a file or folder beside the file has this name.
    pub(super) fn is_beside(&self, name: &str) -> bool {
        self.beside.contains(name)
    }
}

/// Returns whether the policy compares a file part by part.
pub(super) fn reads(path: &str) -> bool {
    row(path).is_some()
}

/// Returns whether a rule of the table only protects files that are compared part by part.
fn is_of(pattern: &str) -> bool {
    READ_BY.iter().any(|(names, ..)| names.contains(&pattern))
}

fn row(path: &str) -> Option<&'static Row> {
    READ_BY.iter().find(|(names, ..)| names.contains(&name_of(path)))
}

impl ComparedParts {
    /// Collects the files for the lanes' commands and all files of the base that may hold commands.
    /// A file that `rules` also protect for another reason is left out, so none of its parts may
    /// change.
    pub(super) fn from_commands(
        lanes: &[Lane],
        base: &BaseFiles,
        reached: &ReachedFiles,
        rules: &[ProtectedRule],
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Self {
        let files: Vec<&String> = base.0.iter().filter(|path| reads(path)).take(MOST + 1).collect();
        if files.is_empty() || files.len() > MOST {
            return Self::default();
        }
        let others = rules.iter().filter(|rule| !is_of(&rule.pattern)).cloned();
        let (Ok(others), Some(texts)) = (Protection::new(others, &[]), texts(base, reached, read)) else {
            return Self::default();
        };
        let around = |path: &String| {
            let (_, programs, _) = row(path).filter(|_| others.rule(path).is_none())?;
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let below = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            let inside = base.0.range(below.clone()..).map_while(|other| other.strip_prefix(&below));
            let beside: BTreeSet<String> =
                inside.filter_map(|rest| rest.split('/').next()).take(MOST_BESIDE * 10).map(Into::into).collect();
            let asked = asked(path, programs, lanes, &texts)?;
            (beside.len() < MOST_BESIDE && asked.len() < MOST_WORDS).then_some(SurroundingNames { asked, beside })
        };
        Self(files.into_iter().filter_map(|path| Some((path.clone(), around(path)?))).collect())
    }

    /// Returns the paths of the files.
    pub(super) fn files(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}

impl Policy {
    /// Returns the parts that a change adds to a protected file, if nothing else differs and no
    /// command of the base uses them.
    pub(super) fn changed_parts(
        &self,
        PathChange { path, kind }: &PathChange,
        contents: &mut impl FnMut(&str, TreeSide) -> Option<Vec<u8>>,
    ) -> Option<Vec<String>> {
        let is_one = *kind == PathChangeKind::Modified && self.rule(path).is_some();
        let around = self.frozen.parts.0.get(path).filter(|_| is_one)?;
        let (_, _, differ) = row(path)?;
        let mut text = |side| String::from_utf8(contents(path, side)?).ok().filter(|text| is_plain(text));
        differ(&text(TreeSide::Base)?, &text(TreeSide::Candidate)?, around)
    }

    /// Returns the protected files to which these changes add nothing but unused parts.
    pub fn changed_in_unused_parts(
        &self,
        changes: &[PathChange],
        mut contents: impl FnMut(&str, TreeSide) -> Option<Vec<u8>>,
    ) -> Vec<String> {
        let is_one = |change: &&PathChange| self.changed_parts(change, &mut contents).is_some();
        changes.iter().filter(is_one).map(|change| change.path.clone()).collect()
    }

    /// Returns the patterns of the protected files that tools may write. The gate compares these
    /// files part by part.
    pub fn compared_by_parts(&self) -> impl Iterator<Item = String> {
        self.frozen.parts.files().map(|path| super::exactly(path))
    }
}

/// Returns whether all parsers read the characters of a text alike.
fn is_plain(text: &str) -> bool {
    let is_odd = |c: char| (c.is_control() || c.is_whitespace()) && !matches!(c, ' ' | '\n' | '\t');
    text.len() <= LONGEST && !text.contains(is_odd) && !text.contains("\\\\\n")
}

/// Returns the files that may hold commands, with their texts. Returns `None` if there are too
/// many.
fn texts(
    base: &BaseFiles,
    reached: &ReachedFiles,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Option<Vec<(String, String)>> {
    let files = unused::with_commands(base, reached)?;
    let mut texts: Vec<(String, String)> = reached.texts.clone().into_iter().collect();
    let mut left = unused::MOST_BYTES;
    for path in files.iter().filter(|_| files.len() <= unused::MOST) {
        let Some(bytes) = read(path) else { continue };
        if bytes.len() > LONGEST {
            return None;
        }
        left = left.checked_sub(bytes.len())?;
        texts.push(((*path).clone(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    (files.len() <= unused::MOST).then_some(texts)
}

/// Returns the words of all commands that may name a part of a file. Returns `None` if some of
/// these words cannot be known.
fn asked(path: &str, programs: &[&str], lanes: &[Lane], texts: &[(String, String)]) -> Option<BTreeSet<String>> {
    let of_ci = Patterns::trees(ci::WITH_COMMANDS.iter().copied()).ok()?;
    let mut asked = BTreeSet::new();
    for step in lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup)) {
        asked.extend(names_in(&step.run));
        if is_unclear(&step.run, programs) {
            return None;
        }
    }
    let envs = lanes.iter().flat_map(|lane| lane.steps.iter().map(|step| &step.env).chain([&lane.env]));
    asked.extend(envs.flat_map(|env| env.values()).flat_map(|value| names_in(value)));
    let includes = |(other, text): &(String, String)| {
        other != path && is_makefile(other) && make_parts::included(text).next().is_some()
    };
    if texts.iter().any(includes) {
        return None;
    }
    let mut is_wide = false;
    for (other, text) in texts.iter().filter(|(other, text)| other != path && runs(text, programs)) {
        let is_of_ci = of_ci.fit(other);
        let is_unclear = is_unclear(text, programs);
        if is_of_ci && !is_unclear {
            asked.extend(text.lines().filter(|line| runs(line, programs)).flat_map(names_in));
            continue;
        }
        if is_unclear && !is_of_ci {
            return None;
        }
        is_wide |= is_source(other) && !has_script_extension(other);
        asked.extend(names_in(text));
    }
    if is_wide {
        asked.extend(texts.iter().filter(|(other, _)| other != path).flat_map(|(_, text)| names_in(text)));
    }
    Some(asked)
}

/// Returns the words of a text that may be the name of a part.
pub(super) fn names_in(text: &str) -> impl Iterator<Item = String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.split(move |c| !is_part(c)).filter(|word| !word.is_empty()).map(ToOwned::to_owned)
}

/// Returns whether a text contains the name of one of these programs as a word.
fn runs(text: &str, programs: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| programs.contains(&word))
}

/// Returns whether a command passes one of these programs a word that the text does not contain.
pub(super) fn is_unclear(text: &str, programs: &[&str]) -> bool {
    let text = text.replace("\\\n", " ");
    let fills = ["=$(", "=\"$(", "=`", "read "].iter().any(|fills| text.contains(fills));
    let commands =
        text.split(['\n', ';', '|', '&']).filter(|it| !it.trim_start().starts_with('#') && runs(it, programs));
    commands.flat_map(str::split_whitespace).any(|word| {
        let word = word.trim_matches(['"', '\'', '(', ')', '[', ']', ',']);
        let before = word.split(['$', '`']).next().unwrap_or_default();
        let is_option = before.starts_with('-') && !before.starts_with("-e");
        let is_variable = before.contains('=') && !before.starts_with("TOXENV");
        let is_known =
            before.len() == word.len() || is_option || is_variable || ["$(nproc", "$(MAKE", "${MAKE}"].contains(&word);
        !is_known && (fills || !is_one_variable(word))
    })
}

/// Returns whether a word of a shell is a single variable.
fn is_one_variable(word: &str) -> bool {
    let Some(name) = word.strip_prefix('$') else { return false };
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    !name.is_empty() && (matches!(name, "*" | "@") || name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}
