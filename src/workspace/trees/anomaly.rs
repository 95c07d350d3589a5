//! Oddities: properties of a state that honest work seldom needs. The gate reports them.

use super::names::with_folders;
use super::{Inner, LINK, REPOSITORY, TreeChange, TreeChangeKind, TreeEntry, Trees, TreesError};
use crate::id::TreeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use tokio_util::sync::CancellationToken;

/// The maximum number of links that one path may go through: the limit of Linux.
const MOST_LINKS: usize = 40;

/// An anomaly of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TreeAnomaly {
    /// The path, spelled as in [`super::TreeEntry::path`].
    pub path: String,
    /// The kind of anomaly.
    pub what: AnomalyKind,
}

/// The kind of an anomaly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnomalyKind {
    /// A link that leads out of the workspace, directly or through other links.
    LinkOut,
    /// A nested repository, or a folder that git takes for one. Its files are in the tree as
    /// ordinary files.
    Repository,
    /// A pipe, socket or device; it is in no tree.
    Special,
    /// An unreadable folder or file. The tree has its contents as of the base.
    Unreadable,
    /// A file of this many bytes, more than a tree takes. It is as of the base, or in no tree.
    TooLarge(u64),
    /// A name that some systems take for `.git`; it is in no tree.
    LikeGit,
    /// A name that differs from this one only in capitals.
    SameButForCase(String),
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkOut => f.write_str("a link that leads out of the workspace"),
            Self::Repository => f.write_str("a repository inside the workspace"),
            Self::Special => f.write_str("a pipe, socket or device"),
            Self::Unreadable => f.write_str("it may not be read"),
            Self::TooLarge(bytes) => {
                let limit = super::MOST_BYTES / 1_000_000;
                write!(
                    f,
                    "it has {bytes} bytes, and {limit} MB are the most that can be judged: make it smaller, remove it"
                )
            }
            Self::LikeGit => f.write_str("a name that some systems take for `.git`"),
            Self::SameButForCase(other) => write!(f, "differs only in capitals from `{other}`"),
        }
    }
}

impl Trees {
    /// Returns the anomalies that are in a tree and not in the base, as far as trees show them.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn anomalies(
        &self,
        tree: &TreeId,
        base: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Vec<TreeAnomaly>, TreesError> {
        scan(&self.0, base, tree, BTreeMap::new(), stop).await
    }
}

/// Combines the findings in the folders with the anomalies of the tree, sorted.
pub(super) async fn scan(
    inner: &Inner,
    base: &TreeId,
    tree: &TreeId,
    found: BTreeMap<String, AnomalyKind>,
    stop: &CancellationToken,
) -> Result<Vec<TreeAnomaly>, TreesError> {
    let mut all: Vec<TreeAnomaly> = found.into_iter().map(|(path, what)| TreeAnomaly { path, what }).collect();
    if tree != base {
        let changes = inner.changes(base, tree, stop).await?;
        let entries = inner.entries(tree, stop).await?;
        let repositories = changes.iter().filter(|change| change.to_mode == REPOSITORY);
        all.extend(repositories.map(|change| TreeAnomaly { path: change.path.clone(), what: AnomalyKind::Repository }));
        all.extend(bare(&changes, &entries));
        let added =
            changes.iter().filter(|change| change.kind == TreeChangeKind::Added).map(|change| change.path.as_str());
        all.extend(same_but_for_case(&added.collect::<Vec<_>>(), &entries));
        let out = outward(&links(inner, &entries, stop).await?);
        if !out.is_empty() {
            let before = inner.entries(base, stop).await?;
            let before = outward(&links(inner, &before, stop).await?);
            let new = out.difference(&before).map(|(path, _)| path.clone());
            all.extend(new.map(|path| TreeAnomaly { path, what: AnomalyKind::LinkOut }));
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// Returns new folders that git takes for repositories because of their contents.
fn bare(changes: &[TreeChange], entries: &[TreeEntry]) -> Vec<TreeAnomaly> {
    let has = |folder: &str| entries.iter().any(|entry| entry.path.starts_with(folder));
    let heads = changes.iter().filter(|change| change.kind == TreeChangeKind::Added);
    let folders = heads.filter_map(|change| change.path.strip_suffix("HEAD")?.strip_suffix('/'));
    let found = folders.filter(|folder| has(&format!("{folder}/objects/")) && has(&format!("{folder}/refs/")));
    found.map(|folder| TreeAnomaly { path: folder.to_owned(), what: AnomalyKind::Repository }).collect()
}

/// Returns the targets of the links of a tree.
async fn links(
    inner: &Inner,
    entries: &[TreeEntry],
    stop: &CancellationToken,
) -> Result<HashMap<String, String>, TreesError> {
    let links: Vec<&TreeEntry> = entries.iter().filter(|entry| entry.mode == LINK).collect();
    let targets = inner.blobs(links.iter().map(|entry| entry.blob.as_str()), stop).await?;
    Ok(links.iter().map(|entry| entry.path.clone()).zip(targets.iter().map(|it| super::names::spelled(it))).collect())
}

/// Returns the links that lead out of the workspace, with their targets.
fn outward(links: &HashMap<String, String>) -> BTreeSet<(String, String)> {
    let out = links.iter().filter(|(path, target)| leads_out(path, target, links));
    out.map(|(path, target)| (path.clone(), target.clone())).collect()
}

/// Follows a link name by name, through other links, as the system would. The top folder has no
/// parent here.
fn leads_out(path: &str, target: &str, links: &HashMap<String, String>) -> bool {
    let mut here: Vec<&str> = path.split('/').collect();
    here.pop();
    let mut ahead: Vec<&str> = target.split('/').rev().collect();
    if target.starts_with('/') {
        return true;
    }
    let mut followed = 0;
    while let Some(name) = ahead.pop() {
        match name {
            "" | "." => continue,
            ".." if here.pop().is_none() => return true,
            ".." => continue,
            name => here.push(name),
        }
        if let Some(next) = links.get(&here.join("/")) {
            followed += 1;
            if next.starts_with('/') {
                return true;
            }
            if followed > MOST_LINKS {
                return false; // the system refuses this path
            }
            here.pop();
            ahead.extend(next.split('/').rev());
        }
    }
    false
}

/// Finds added names, also of folders, that differ from other names only in capitals.
fn same_but_for_case(added: &[&str], entries: &[TreeEntry]) -> BTreeSet<TreeAnomaly> {
    if added.is_empty() {
        return BTreeSet::new();
    }
    let new: BTreeSet<&str> = added.iter().copied().collect();
    let old = || entries.iter().map(|entry| entry.path.as_str()).filter(|path| !new.contains(path));
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for path in old() {
        // The parents of a known folder are known too.
        let _ = with_folders(path).find(|path| !known.insert(path));
    }
    let mut folded: HashMap<String, BTreeSet<&str>> = HashMap::new();
    for path in added.iter().flat_map(|path| with_folders(path)).filter(|path| !known.contains(path)) {
        folded.entry(path.to_lowercase()).or_default().insert(path);
    }
    let mut found = BTreeSet::new();
    for path in known.iter().chain(folded.values().flatten()) {
        let ours = folded.get(&path.to_lowercase()).into_iter().flatten().filter(|ours| *ours != path);
        let anomalies = |ours: &&str| TreeAnomaly {
            path: (*ours).to_owned(),
            what: AnomalyKind::SameButForCase((*path).to_owned()),
        };
        found.extend(ours.map(anomalies));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_through_others_to_where_it_ends() {
        let links = [
            ("in", "src/a"),
            ("deep/back", "../src"),
            ("abs", "/etc"),
            ("up", "../x"),
            ("deep/two", "../../x"),
            ("a/b/c", "../.."),
            ("chain", "a/b/c/../y"),
            ("longer", "a/b/c/a/b/../z"),
            ("round", "round"),
            ("through", "abs/passwd"),
        ];
        let links = links.map(|(path, target)| (path.to_owned(), target.to_owned())).into();
        let out: Vec<String> = outward(&links).into_iter().map(|(path, _)| path).collect();
        assert_eq!(out, ["abs", "chain", "deep/two", "through", "up"]);
    }

    #[test]
    fn names_that_differ_only_in_capitals_are_told_with_the_other() {
        let entry = |path: &str| TreeEntry { path: path.into(), mode: 0o100644, blob: String::new() };
        let entries = ["README.md", "Src/new.rs", "src/lib.rs", "src/main.rs", "src/é", "src/É"].map(entry);
        let found = same_but_for_case(&["Src/new.rs", "src/É"], &entries);
        let found: Vec<String> = found.iter().map(|it| format!("{} {}", it.path, it.what)).collect();
        assert_eq!(found, ["Src differs only in capitals from `src`", "src/É differs only in capitals from `src/é`"]);
    }
}
