//! The tree that the agent left, and its violations of the rules.

use super::policy::{PathChange, PathChangeKind, Policy, RedefinedAssertions, TreeSide};
use super::unfetched::AddedDependency;
use super::{Gate, GateSite, install, locks};
use crate::id::TreeId;
use crate::verdict::TamperFinding;
use crate::workspace::trees::{self, AnomalyKind, TakenTree, TreeAnomaly, TreeChange, TreesError, path_text};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use tokio_util::sync::CancellationToken;

/// The largest file that the policy reads, in bytes. Data and documents are larger than manifests.
const LOOKED_INTO: u64 = 8 * 1024 * 1024;

/// The number of sources that are read at once.
const READ_AT_ONCE: usize = 64;

/// The rule against files in a cache.
const CACHED: &str = "it is in a cache of the gate, which only the base fills";

/// The rule against links in the place of files whose content is compared with the base.
const COMPARED: &str = "its content is compared with the base, so a link must not replace it";

/// A tree to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) tree: TreeId,
    /// The violations of the rules, sorted.
    pub(super) findings: Vec<TamperFinding>,
    /// Protected files that may differ from the base, and folders in which all protected files may.
    pub(super) may_differ: Vec<String>,
    /// Notes for people on changes that are allowed but should be looked at, one line each.
    pub(super) notes: Vec<String>,
    /// Dependencies that the base does not have, sorted.
    pub(super) added: Vec<AddedDependency>,
}

impl Candidate {
    /// Adds the findings in the tree to the findings of the seal. Removes findings of the seal on
    /// paths that may differ from the base.
    pub(super) fn add_to(&self, sealed: &mut Vec<TamperFinding>) {
        sealed.retain(|finding| !is_in(&self.may_differ, &finding.path));
        for finding in sealed.iter_mut() {
            let is_same = |own: &&TamperFinding| own.path == finding.path && own.rule.starts_with(&finding.rule);
            if let Some(own) = self.findings.iter().find(is_same) {
                finding.rule.clone_from(&own.rule);
            }
        }
        let known: BTreeSet<String> = sealed.iter().map(|finding| finding.path.clone()).collect();
        sealed.extend(self.findings.iter().filter(|finding| !known.contains(&finding.path)).cloned());
        sealed.sort();
    }
}

/// Takes a snapshot of the workspace and compares it with the base.
pub(super) async fn take_candidate(
    gate: &Gate,
    site: &GateSite,
    stop: &CancellationToken,
) -> Result<Candidate, TreesError> {
    let mut taken = site.trees.take(stop).await?;
    forget_ignored(gate, site, &mut taken.anomalies, stop).await?;
    look(gate, site, taken, stop).await
}

/// Removes from the anomalies pipes and sockets that the base ignores. They are not part of the
/// work, because a program of the user may have made them. Keeps those in the place of a file that
/// a step or fledge itself writes, because there they only help an attacker.
pub(super) async fn forget_ignored(
    gate: &Gate,
    site: &GateSite,
    anomalies: &mut Vec<TreeAnomaly>,
    stop: &CancellationToken,
) -> Result<(), TreesError> {
    let outlets = site.outlets.iter().filter_map(|path| path.strip_prefix(&site.root).ok()).map(path_text);
    let reports = gate.lanes.iter().flat_map(|lane| &lane.steps).filter_map(|step| step.junit.clone());
    let written: BTreeSet<String> = outlets.chain(reports).collect();
    let may_be_others = |anomaly_finding: &&TreeAnomaly| {
        anomaly_finding.what == AnomalyKind::Special && !written.contains(&anomaly_finding.path)
    };
    let special: Vec<String> =
        anomalies.iter().filter(may_be_others).map(|anomaly_finding| anomaly_finding.path.clone()).collect();
    let ignored = site.trees.ignored(gate.base(), &special, stop).await?;
    anomalies.retain(|anomaly_finding| !ignored.contains(&anomaly_finding.path));
    Ok(())
}

/// Compares a state with the base.
pub(super) async fn look(
    gate: &Gate,
    site: &GateSite,
    taken: TakenTree,
    stop: &CancellationToken,
) -> Result<Candidate, TreesError> {
    let (trees, base) = (&site.trees, gate.base());
    let changes = trees.changes(base, &taken.tree, stop).await?;
    let mut contents: BTreeMap<&str, [Option<Vec<u8>>; 2]> = BTreeMap::new();
    for path in changes.iter().map(|change| change.path.as_str()).filter(|path| Policy::reads(path)) {
        let was = trees.read(base, path, LOOKED_INTO, stop).await?;
        contents.insert(path, [was, trees.read(&taken.tree, path, LOOKED_INTO, stop).await?]);
    }
    let content = |path: &str, side: TreeSide| contents.get(path)?[usize::from(side == TreeSide::Candidate)].clone();
    let differ: Vec<PathChange> = changes.iter().map(changed).collect();
    let mut findings = gate.policy.findings(&differ, content);
    let mut notes = gate.policy.notes(&differ);
    notes.extend(gate.policy.unused_notes(&differ, content));
    let (moved, changed_locks) = locked(gate, site, &differ, &taken.tree, stop).await?;
    findings.extend(moved);
    notes.extend(changed_locks);
    let added = |(manifest, name)| AddedDependency { name, manifest };
    let added = gate.policy.new_dependencies(&differ, content).into_iter().map(added).collect();
    findings.extend(taken.anomalies.iter().map(anomaly_finding));
    findings.extend(in_caches(gate, &changes));
    findings.extend(changes.iter().filter_map(|change| linked(gate, change)));
    let links = changes.iter().filter(|change| change.to_mode == trees::LINK).map(|change| change.path.as_str());
    findings.extend(redefined(gate, site, (&differ, &links.collect()), &taken.tree, stop).await?);
    findings.sort();
    findings.dedup();
    let mut may_differ =
        install::allow_vendored_folders(gate, site, &taken.tree, &mut findings, &mut notes, stop).await?;
    may_differ.extend(gate.policy.changed_in_unused_parts(&differ, content));
    Ok(Candidate { tree: taken.tree, findings, may_differ, notes, added })
}

/// Returns a finding for each assertion that a source redefines. Some changed paths are `links`
/// now.
async fn redefined(
    gate: &Gate,
    site: &GateSite,
    (changes, links): (&[PathChange], &BTreeSet<&str>),
    tree: &TreeId,
    stop: &CancellationToken,
) -> Result<Vec<TamperFinding>, TreesError> {
    let mut found: Vec<(&PathChange, RedefinedAssertions)> = Vec::new();
    loop {
        let known: BTreeSet<&str> = found.iter().map(|(change, _)| change.path.as_str()).collect();
        let is_new = |change: &&PathChange| !known.contains(change.path.as_str());
        let may_redefine = |change: &&PathChange| gate.policy.may_redefine_assertions(change, &found);
        let more: Vec<&PathChange> = changes.iter().filter(is_new).filter(may_redefine).collect();
        if more.is_empty() {
            break; // no other file is included by those that were read
        }
        let (more_links, files): (Vec<&PathChange>, Vec<&PathChange>) =
            more.into_iter().partition(|change| links.contains(change.path.as_str()));
        found.extend(redefined_in(gate, site, &files, tree, stop).await?);
        for link in more_links {
            let leads_to = site.trees.read(tree, &link.path, LOOKED_INTO, stop).await?.unwrap_or_default();
            found.push((link, RedefinedAssertions::of_link(&String::from_utf8_lossy(&leads_to))));
        }
    }
    if gate.policy.redefinitions(&found, &[]).is_empty() {
        return Ok(Vec::new());
    }
    let sources: Vec<&PathChange> = found.iter().map(|(change, _)| *change).collect();
    let known = redefined_in(gate, site, &sources, gate.base(), stop).await?;
    let known: Vec<RedefinedAssertions> = known.into_iter().map(|(_, it)| it).collect();
    Ok(gate.policy.redefinitions(&found, &known))
}

/// Looks for redefined assertions in these files, as they are in a tree.
async fn redefined_in<'c>(
    gate: &Gate,
    site: &GateSite,
    sources: &[&'c PathChange],
    tree: &TreeId,
    stop: &CancellationToken,
) -> Result<Vec<(&'c PathChange, RedefinedAssertions)>, TreesError> {
    let mut found = Vec::new();
    for some in sources.chunks(READ_AT_ONCE) {
        let paths: Vec<&str> = some.iter().map(|change| change.path.as_str()).collect();
        let texts = site.trees.read_all(tree, &paths, LOOKED_INTO, stop).await?;
        let look = |change: &'c PathChange| match texts.get(&change.path) {
            Some(text) => gate.policy.redefined_assertions(&change.path, text),
            None if change.kind == PathChangeKind::Removed => RedefinedAssertions::default(),
            None => RedefinedAssertions::unread(),
        };
        found.extend(some.iter().map(|change| (*change, look(change))));
    }
    Ok(found)
}

/// Compares the lock files, and the manifests that name sources of packages, with those of the
/// base. Returns findings and notes.
async fn locked(
    gate: &Gate,
    site: &GateSite,
    changes: &[PathChange],
    tree: &TreeId,
    stop: &CancellationToken,
) -> Result<(Vec<TamperFinding>, Vec<String>), TreesError> {
    let paths: Vec<&str> =
        changes.iter().map(|change| change.path.as_str()).filter(|path| locks::reads(path)).collect();
    let mut contents: BTreeMap<String, [Option<Vec<u8>>; 2]> = BTreeMap::new();
    for path in &paths {
        let was = lock_text(site, gate.base(), path, stop).await?;
        contents.insert((*path).to_owned(), [was, lock_text(site, tree, path, stop).await?]);
    }
    let folders = paths.iter().map(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder));
    for folder in folders.chain([""]).collect::<BTreeSet<_>>().into_iter().filter(|_| !paths.is_empty()) {
        for name in locks::CONFIGURED {
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            if let Entry::Vacant(free) = contents.entry(path) {
                let was = lock_text(site, gate.base(), free.key(), stop).await?;
                free.insert([was, None]);
            }
        }
    }
    let content = |path: &str, side: TreeSide| contents.get(path)?[usize::from(side == TreeSide::Candidate)].clone();
    Ok(locks::findings_and_notes(changes, content, |path| gate.policy.is_opened(path)))
}

/// Returns the content of a lock file. For a file that is too large, returns content that cannot be
/// parsed.
async fn lock_text(
    site: &GateSite,
    tree: &TreeId,
    path: &str,
    stop: &CancellationToken,
) -> Result<Option<Vec<u8>>, TreesError> {
    match site.trees.read(tree, path, locks::LARGEST, stop).await {
        Err(TreesError::TooLarge { .. }) => Ok(Some(b"\0 too large".to_vec())),
        read => read,
    }
}

/// Returns a finding for each change in a folder that only caches of the base may fill.
fn in_caches(gate: &Gate, changes: &[TreeChange]) -> Vec<TamperFinding> {
    let caches: Vec<String> = gate.lanes.iter().flat_map(|lane| lane.cache.iter().cloned()).collect();
    let finding = |change: &TreeChange| TamperFinding {
        path: change.path.clone(),
        change: "changed".into(),
        rule: CACHED.into(),
    };
    changes.iter().filter(|change| is_in(&caches, &change.path)).map(finding).collect()
}

/// Returns a finding for a link in a place where links are not allowed.
fn linked(gate: &Gate, change: &TreeChange) -> Option<TamperFinding> {
    let path = &change.path;
    let is_compared = || (Policy::is_compared(path) || locks::reads(path)) && !gate.policy.is_opened(path);
    let forbidden = gate.policy.forbids_link(path).or_else(|| is_compared().then_some(COMPARED));
    let rule = forbidden.filter(|_| change.to_mode == trees::LINK)?;
    Some(TamperFinding { path: change.path.clone(), change: "changed".into(), rule: rule.into() })
}

/// Returns whether a path is one of these folders, or in one.
pub(super) fn is_in(folders: &[String], path: &str) -> bool {
    let below = |folder: &String| path.strip_prefix(folder.as_str());
    folders.iter().filter_map(below).any(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Converts a change to the policy's type.
fn changed(change: &TreeChange) -> PathChange {
    let kind = match change.kind {
        trees::TreeChangeKind::Added => PathChangeKind::Added,
        trees::TreeChangeKind::Modified => PathChangeKind::Modified,
        trees::TreeChangeKind::Removed => PathChangeKind::Removed,
        trees::TreeChangeKind::ModeChanged => PathChangeKind::ModeChanged,
    };
    PathChange { path: change.path.clone(), kind }
}

/// Returns the finding for an anomaly in the tree.
fn anomaly_finding(anomaly: &TreeAnomaly) -> TamperFinding {
    TamperFinding { path: anomaly.path.clone(), change: "added".into(), rule: anomaly.what.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::HeldBack;
    use crate::workspace::trees::AnomalyKind;

    #[test]
    fn no_flag_is_named_for_what_no_task_can_open() {
        let other = "a".to_owned();
        let anomaly_finding = [
            AnomalyKind::LinkOut,
            AnomalyKind::Repository,
            AnomalyKind::Special,
            AnomalyKind::Unreadable,
            AnomalyKind::TooLarge(9),
        ];
        let anomaly_finding = anomaly_finding
            .into_iter()
            .chain([AnomalyKind::LikeGit, AnomalyKind::SameButForCase(other)])
            .map(|what| what.to_string());
        for rule in anomaly_finding.chain([CACHED.to_owned()]) {
            assert_eq!(HeldBack::new("x", "added", &rule).flag, None, "{rule}");
        }
        assert_eq!(HeldBack::new("x", "added", "it controls how tests run").flag.as_deref(), Some("--allow-edit x"));
    }
}
