//! Changes between two trees, and the findings of a policy: changes that it does not allow.

use super::ecosystems::{SHADOWED, TEST};
use super::{FrozenPolicy, Policy, loaded, manifest, named, unused, vendored};
use crate::gate::names::name_of;
use crate::verdict::TamperFinding;
use std::collections::BTreeSet;

impl Policy {
    /// Returns the changes that are not allowed, sorted. `contents` returns the content of a file
    /// in one of the trees. It is needed only for paths for which [`Policy::reads`] returns true.
    pub fn findings(
        &self,
        changes: &[PathChange],
        mut contents: impl FnMut(&str, TreeSide) -> Option<Vec<u8>>,
    ) -> Vec<TamperFinding> {
        let mut findings = Vec::new();
        let removed = changes.iter().filter(|change| change.kind == PathChangeKind::Removed);
        let gone: BTreeSet<&str> = removed.map(|change| change.path.as_str()).collect();
        for change @ PathChange { path, kind } in changes {
            let finding = |rule: String| TamperFinding { path: path.clone(), change: kind.word().into(), rule };
            if let Some(rule) = self.rule(path) {
                if self.changed_parts(change, &mut contents).is_none() {
                    findings.push(finding(rule.why.clone()));
                }
            } else if let Some(why) = self.stands_in(change, &gone).filter(|_| !self.opened.fit(path)) {
                findings.push(finding(why));
            } else if vendored::is_nearer(change, &self.frozen.folders) && !self.opened.fit(path) {
                findings.push(finding(vendored::NEARER.into()));
            } else if manifest::is_one(path) && !self.opened.fit(path) && *kind != PathChangeKind::ModeChanged {
                let mut told = self.in_manifest(path, *kind, &mut contents);
                told.retain(|told| unused::of_section(&self.frozen.unused, told).is_none());
                findings.extend(told.into_iter().map(finding));
            } else if !self.opened.fit(path) && *kind != PathChangeKind::Removed {
                let text = contents(path, TreeSide::Candidate);
                let is_new = *kind == PathChangeKind::Added;
                let why = text.as_ref().filter(|_| is_new).and_then(|text| loaded::steers(path, text));
                findings.extend(why.map(|why| finding(why.into())));
                let is_read = !is_new && path.ends_with(".md");
                let was = is_read.then(|| contents(path, TreeSide::Base)).flatten();
                let has_documents = |folder: &str| has_documents(changes, folder);
                let tasks = &self.frozen.declared.tasks;
                let later = text.as_ref().and_then(|text| tasks.forbid(path, (was.as_deref(), text), has_documents));
                findings.extend(later.map(|why| finding(why.into())));
                findings.extend(self.frozen.declared.forbids(path, is_new, text.as_deref()).map(finding));
            }
        }
        findings.sort();
        findings
    }

    /// Returns the reason why a path must not be added, if it would be taken for something else.
    fn stands_in(&self, PathChange { path, kind }: &PathChange, gone: &BTreeSet<&str>) -> Option<String> {
        let FrozenPolicy { shadows, stand_ins, found, .. } = &self.frozen;
        if shadows.modules().contains(path) || (*kind == PathChangeKind::Added && shadows.has_form(path)) {
            return Some(SHADOWED.into());
        }
        let (is_gone, is_kept) = (|other: &str| gone.contains(other), |other: &str| self.rule(other).is_some());
        let behind = || found.behind(path, is_gone, is_kept).filter(|_| *kind == PathChangeKind::Added);
        let nearer = || behind().map(|other| format!("it would be found before `{other}`"));
        stand_ins.rejection_reason(path, *kind == PathChangeKind::Added).or_else(nearer)
    }

    pub(super) fn in_manifest(
        &self,
        path: &str,
        kind: PathChangeKind,
        contents: &mut impl FnMut(&str, TreeSide) -> Option<Vec<u8>>,
    ) -> Vec<String> {
        let was = self.frozen.manifests.contains(path).then(|| contents(path, TreeSide::Base)).flatten();
        let is = if kind == PathChangeKind::Removed { None } else { contents(path, TreeSide::Candidate) };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let closed = |file: &str| {
            let rule = named::inside(folder, file).and_then(|file| self.protection.closed_rule(&file).cloned());
            rule.map(|rule| rule.why)
        };
        let place = manifest::ManifestSurroundings {
            has_others: self.frozen.manifests.iter().any(|other| name_of(other) == name_of(path)),
            was_there: folder.is_empty() || self.frozen.folders.contains(folder),
            is_test: &|file: &str| closed(file).is_some_and(|why| why == TEST),
            is_kept: &|file: &str| closed(file).is_some(),
            is_taken: &|name: &str| self.frozen.taken.contains(name),
        };
        let mut told = manifest::findings(path, was.as_deref(), is.as_deref(), &place);
        let leaves = |place: &str| named::inside(folder, place).is_none();
        let foreign = manifest::new_sources(path, was.as_deref(), is.as_deref(), &leaves);
        let is_new = |(start, _): &(String, String)| !told.iter().any(|told| told.starts_with(start));
        let new: Vec<String> = foreign.into_iter().filter(is_new).map(|(start, rest)| start + &rest).collect();
        told.extend(new);
        told
    }
}

/// Returns whether the work adds or changes Markdown files in a folder.
fn has_documents(changes: &[PathChange], folder: &str) -> bool {
    let of_folder =
        |path: &str| path.strip_suffix(".md").and_then(|path| path.rsplit_once('/')).map(|(of, _)| of == folder);
    changes.iter().any(|PathChange { path, kind }| *kind != PathChangeKind::Removed && of_folder(path).unwrap_or(false))
}

/// A path that differs between two trees. A moved file is one removed and one added path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// The kind of the change.
    pub kind: PathChangeKind,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathChangeKind {
    /// The path is new.
    Added,
    /// The content differs, or the type: a link may have replaced a file.
    Modified,
    /// The path no longer exists.
    Removed,
    /// Only the executable bit differs.
    ModeChanged,
}

/// One of the two compared trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeSide {
    /// The tree before the run.
    Base,
    /// The tree to be judged.
    Candidate,
}

impl PathChangeKind {
    /// Returns the word for the change in findings.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "changed",
            Self::Removed => "removed",
            Self::ModeChanged => "changed (its mode)",
        }
    }
}
