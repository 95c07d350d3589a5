//! What an agent may not change, frozen: the gate, what steers tools, manifests by section, and the tests of the base. Pure: it is
//! told which paths the base has, and later which have changed, and says what of that is a finding.
//!
//! Tests inside of product files (`#[cfg(test)] mod tests` beside the code, doctests) cannot be told from the product by their
//! path: whether they are still there is for the evidence of a run to say.

mod ecosystems;
mod manifest;
mod named;

use crate::lane::Lane;
use crate::verdict::Finding;
use crate::workspace::pattern::{PatternError, Patterns};
use crate::workspace::{ProtectedRule, Protection};
use ecosystems::{REPORTED, SHADOW_FOLDERS, SHADOWED, SHADOWS, STANDS_IN, TEST, TEST_FILES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most paths that are kept as they are by a mount of their own: each costs time, and there is an end to them.
const MOST_KEPT: usize = 200;
/// Why what the user has named is protected.
const SAID: &str = "the task or the project says so";

/// The policy of one run.
#[derive(Debug, Clone)]
pub struct Policy {
    frozen: Frozen,
    protection: Protection,
    opened: Patterns,
}

/// A policy as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// What is protected, by pattern. One that is a plain path from the root (`/tests/a.rs`) is that of a single file.
    pub rules: Vec<ProtectedRule>,
    /// What the task opens again, as globs.
    pub allow_edit: Vec<String>,
    /// The manifests of the base.
    pub manifests: BTreeSet<String>,
    /// Where a new file or link would stand in for a program or a module, and a folder would not.
    #[serde(default)]
    pub stand_ins: BTreeSet<String>,
    /// The folders of the base that have files.
    pub folders: BTreeSet<String>,
}

/// A path that differs between two trees. A file that was moved is removed and added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content is another, or it is another kind of thing: a link in the place of a file.
    Modified,
    /// It is gone.
    Removed,
    /// Whether it can be run is another.
    ModeChanged,
}

/// Which of two trees is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The tree that was there before the run.
    Base,
    /// The tree that is to be judged.
    Candidate,
}

/// The files of the base.
pub(super) struct Base(BTreeSet<String>);

impl Base {
    fn has(&self, path: &str) -> bool {
        self.0.contains(path)
    }

    fn has_folder(&self, path: &str) -> bool {
        let below = format!("{path}/");
        path.is_empty() || self.0.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below))
    }
}

impl Policy {
    /// Freezes the policy for a base with these files. `read` gives what is in one, for scripts that a lane names; `protect` adds
    /// globs, `allow_edit` opens paths again.
    ///
    /// # Errors
    /// The first glob that is none.
    pub fn freeze(
        base: impl IntoIterator<Item = String>,
        lanes: &[Lane],
        protect: &[String],
        allow_edit: &[String],
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Result<Self, PatternError> {
        let base = Base(base.into_iter().collect());
        let manifests: BTreeSet<String> = base.0.iter().filter(|path| manifest::is_one(path)).cloned().collect();
        let mut rules: Vec<ProtectedRule> = ecosystems::rules().collect();
        let rule = |pattern: &str, why: &str| ProtectedRule { pattern: pattern.into(), why: why.into() };
        rules.extend(protect.iter().map(|pattern| rule(pattern, SAID)));
        let tests = Patterns::trees(TEST_FILES.iter().flat_map(|(_, globs)| *globs).copied())?;
        let mut named = named::by_lanes(lanes, &base, read);
        named.retain(|path, why| *why != named::BESIDE || !tests.fit(path));
        rules.extend(
            named.iter().filter(|(path, _)| !manifest::is_one(path)).map(|(path, why)| rule(&exactly(path), why)),
        );
        let of_the_base = base.0.iter().filter(|path| tests.fit(path) && !manifests.contains(*path));
        rules.extend(of_the_base.map(|path| rule(&exactly(path), TEST)));
        let mut stand_ins = named::stand_ins(lanes, &base);
        for (folder, name) in SHADOW_FOLDERS.iter().flat_map(|folder| SHADOWS.iter().map(move |name| (folder, name))) {
            let (module, package) = (format!("{folder}{name}.py"), format!("{folder}{name}"));
            if !base.has(&module) && !base.has_folder(&package) {
                rules.extend([module, format!("{package}/__init__.py")].map(|path| rule(&exactly(&path), SHADOWED)));
                stand_ins.insert(package);
            }
        }
        let folders = base.0.iter().flat_map(|path| folders_of(path)).map(ToOwned::to_owned).collect();
        Self::thaw(Frozen { rules, allow_edit: allow_edit.to_vec(), manifests, stand_ins, folders })
    }

    /// The policy that was frozen.
    ///
    /// # Errors
    /// The first glob that is none.
    pub fn thaw(frozen: Frozen) -> Result<Self, PatternError> {
        let protection = Protection::new(frozen.rules.iter().cloned(), &frozen.allow_edit)?;
        let opened = Patterns::trees(frozen.allow_edit.iter().map(String::as_str))?;
        Ok(Self { frozen, protection, opened })
    }

    /// It, to be kept.
    pub fn frozen(&self) -> &Frozen {
        &self.frozen
    }

    /// The rules, compiled, for whoever writes files.
    pub fn protection(&self) -> &Protection {
        &self.protection
    }

    /// The rule that protects a path, if one does. Manifests have none: what may change in them depends on what is changed.
    pub fn rule(&self, path: &str) -> Option<&ProtectedRule> {
        self.protection.rule(path)
    }

    /// Whether [`Policy::findings`] asks for the content of this path.
    pub fn reads(path: &str) -> bool {
        manifest::is_one(path)
    }

    /// What of the files of a tree is protected: files, and with `folders` those folders in which nothing else is. What is left out, so that
    /// there are not too many, is single files, tests first.
    pub fn kept(&self, tree: &[String], folders: bool) -> Vec<String> {
        let is_kept = |path: &str| self.rule(path).is_some();
        let open: BTreeSet<&str> =
            tree.iter().filter(|path| !is_kept(path)).flat_map(|path| folders_of(path)).collect();
        let whole =
            |path: &'_ str| folders_of(path).find(|folder| folders && !open.contains(folder)).map(ToOwned::to_owned);
        let mut kept: BTreeSet<(u8, String)> = BTreeSet::new();
        for path in tree.iter().filter(|path| is_kept(path)) {
            let is_single_test = || self.rule(path).is_some_and(is_a_test);
            kept.insert(
                whole(path).map_or_else(|| (1 + u8::from(is_single_test()), path.clone()), |folder| (0, folder)),
            );
        }
        let mut kept: Vec<String> = kept.into_iter().take(MOST_KEPT).map(|(_, path)| path).collect();
        kept.sort();
        kept
    }

    /// What of these changes is not allowed, sorted. `contents` gives a file of one of the trees; it is asked for manifests alone.
    pub fn findings(
        &self,
        changes: &[Change],
        mut contents: impl FnMut(&str, Side) -> Option<Vec<u8>>,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        for Change { path, kind } in changes {
            let finding = |rule: String| Finding { path: path.clone(), change: kind.word().into(), rule };
            if let Some(rule) = self.rule(path) {
                findings.push(finding(rule.why.clone()));
            } else if self.frozen.stand_ins.contains(path) && !self.opened.fit(path) {
                findings.push(finding(STANDS_IN.into()));
            } else if manifest::is_one(path) && !self.opened.fit(path) && *kind != ChangeKind::ModeChanged {
                let told = self.in_manifest(path, *kind, &mut contents);
                findings.extend(told.into_iter().map(finding));
            }
        }
        findings.sort();
        findings
    }

    /// What these changes do with leave, and what they do that can't be judged by a path or a section: a line each.
    pub fn notes(&self, changes: &[Change]) -> Vec<String> {
        let mut notes = Vec::new();
        for Change { path, kind } in changes {
            let is_protected = self.protection.closed_rule(path).is_some() || manifest::is_one(path);
            let reported = || REPORTED.iter().find(|(glob, _)| Patterns::files(glob).is_ok_and(|glob| glob.fit(path)));
            if self.opened.fit(path) && is_protected {
                notes.push(format!("allow_edit: {path} {}", kind.word()));
            } else if let (None, Some((_, why))) = (self.rule(path), reported()) {
                notes.push(format!("{path} {}: {why}", kind.word()));
            }
        }
        notes
    }

    fn in_manifest(
        &self,
        path: &str,
        kind: ChangeKind,
        contents: &mut impl FnMut(&str, Side) -> Option<Vec<u8>>,
    ) -> Vec<String> {
        let was = self.frozen.manifests.contains(path).then(|| contents(path, Side::Base)).flatten();
        let is = if kind == ChangeKind::Removed { None } else { contents(path, Side::Candidate) };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let place = manifest::Place {
            has_others: self.frozen.manifests.iter().any(|other| name_of(other) == name_of(path)),
            was_there: folder.is_empty() || self.frozen.folders.contains(folder),
            is_test: &|file: &str| {
                let file = named::inside(folder, file);
                file.is_some_and(|file| self.protection.closed_rule(&file).is_some_and(|rule| rule.why == TEST))
            },
        };
        manifest::findings(path, was.as_deref(), is.as_deref(), &place)
    }
}

impl ChangeKind {
    /// The word of findings.
    fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "changed",
            Self::Removed => "removed",
            Self::ModeChanged => "changed (its mode)",
        }
    }
}

/// Whether a rule protects what defines the gate, or what somebody has named: that stays as it is also where git ignores it.
pub(super) fn defines_the_gate(rule: &ProtectedRule) -> bool {
    rule.why == SAID || ecosystems::of_the_gate(&rule.why)
}

/// Whether a rule is that of a test of the base.
pub(super) fn is_a_test(rule: &ProtectedRule) -> bool {
    rule.why == TEST
}

/// The pattern that means one path alone.
pub(super) fn exactly(path: &str) -> String {
    format!("/{}", globset::escape(path))
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// The whole table, for people: what steers, which files are tests, and which sections of manifests may not change.
pub fn table() -> String {
    let mut text = String::from(
        "# What a run may not change\n\nPrinted from `src/gate/policy` by a test; to write it anew, run `FLEDGE_BLESS=1 cargo test --test architecture`.\n\n\
         Patterns with a `/` first begin at the root, others fit at any depth; a folder means everything in it.\n\n| of | pattern | why |\n|---|---|---|\n",
    );
    let globs = |globs: &[&str]| globs.iter().map(|glob| format!("`{glob}`")).collect::<Vec<_>>().join(" ");
    for steers in ecosystems::STEERS {
        text.push_str(&format!("| {} | {} | {} |\n", steers.ecosystem, globs(steers.globs), steers.why));
    }
    let folders = globs(&SHADOW_FOLDERS[1..]);
    text.push_str(&format!(
        "| Python | {} at the root and in {folders}, unless the base has them | {SHADOWED} |\n",
        globs(SHADOWS)
    ));
    text.push_str("\nFiles of the base with these names are its tests, and stay as they are; new ones may be added.\n\n| of | names |\n|---|---|\n");
    for (of, names) in TEST_FILES {
        text.push_str(&format!("| {of} | {} |\n", globs(names)));
    }
    text.push_str("\nOf manifests, these sections stay as they are.\n\n| manifest | section | why |\n|---|---|---|\n");
    for (name, section, why) in manifest::rows() {
        text.push_str(&format!("| `{name}` | `{section}` | {why} |\n"));
    }
    text.push_str("\nWhat is also product is only reported.\n\n| file | why |\n|---|---|\n");
    for (glob, why) in REPORTED {
        text.push_str(&format!("| `{glob}` | {why} |\n"));
    }
    text
}

#[cfg(test)]
mod tests;
