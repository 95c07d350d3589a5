//! Builds the tree of a commit: the judged tree replaces the workspace's folder. All of its objects
//! are copied into the user's repository.

use super::foreign::ForeignPaths;
use super::{DeliveryError, RepositoryHead, UserRepository};
use crate::id::TreeId;
use crate::workspace::trees::names::{each, listed, spelled};
use crate::workspace::trees::{REPOSITORY, TreeEntry, TreesError, entries_of, tree_of};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// Files by their path from the root of the workspace.
pub(super) type TreeFiles = BTreeMap<String, TreeEntry>;

impl UserRepository<'_> {
    /// Builds the whole tree of the commit. Also returns whether it differs from the head's tree.
    pub(super) async fn compose(
        &self,
        head: &RepositoryHead,
        tree: &TreeId,
        base: &TreeId,
        stop: &CancellationToken,
    ) -> Result<(TreeId, bool), DeliveryError> {
        if head.commit.as_ref().is_some_and(|commit| commit.len() != tree.as_str().len()) {
            return Err(DeliveryError::Hash);
        }
        self.copy_objects(tree, stop).await?;
        let own = async |tree: &TreeId| -> Result<TreeFiles, TreesError> {
            Ok(by_path(self.trees.entries(tree, stop).await?))
        };
        let (judged, begun) = (own(tree).await?, own(base).await?);
        let committed = match &head.tree {
            Some(tree) => {
                let list = self.git.ask(&["ls-tree", "-r", "-z", "--full-tree", tree.as_str()], stop).await?;
                by_path(entries_of(&list)?)
            }
            None => TreeFiles::new(),
        };
        let foreign = ForeignPaths::find(self, &committed, &judged, stop).await?;
        let mut kept = foreign.kept(&committed, &judged, &begun)?;
        for path in self.not_checked_out(stop).await? {
            if let (Some(entry), false, false) =
                (committed.get(&path), judged.contains_key(&path), begun.contains_key(&path))
            {
                kept.insert(path, Some(entry.clone()));
            }
        }
        if self.has_no_modes(stop).await? {
            kept.extend(as_committed(&committed, &judged, &begun));
        }

        let index = self.trees.scratch().join("commit");
        let _there_may_be_none = std::fs::remove_file(&index);
        let git = self.git.with("GIT_INDEX_FILE", &index);
        if self.prefix.is_empty() {
            git.ask(&["read-tree", tree.as_str()], stop).await?;
        } else {
            if let Some(commit) = &head.commit {
                git.ask(&["read-tree", commit], stop).await?;
            }
            let gone = committed.keys().map(|path| (path, None));
            self.set(&git, gone, stop).await?;
            git.ask(&["read-tree", &format!("--prefix={}", self.prefix), tree.as_str()], stop).await?;
        }
        self.set(&git, kept.iter().map(|(path, entry)| (path, entry.as_ref())), stop).await?;
        // A partial clone may lack the objects of files that were never read.
        let made = tree_of(&git.ask(&["write-tree", "--missing-ok"], stop).await?, "write-tree")?;
        let before = match &head.commit {
            Some(commit) => self.line(&["rev-parse", &format!("{commit}^{{tree}}")], stop).await?,
            None => None,
        };
        let is_new = before.as_deref() != Some(made.as_str());
        Ok((made, is_new))
    }

    /// Adds entries to an index, or removes them.
    async fn set<'e>(
        &self,
        git: &crate::workspace::trees::git::GitFolder,
        entries: impl Iterator<Item = (&'e String, Option<&'e TreeEntry>)>,
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        let mut lines = Vec::new();
        for (path, entry) in entries {
            let (mode, blob) = entry.map_or((0, "0".repeat(40)), |entry| (entry.mode, entry.blob.clone()));
            lines.extend_from_slice(format!("{mode:o} {blob}\t{}", self.prefix).as_bytes());
            lines.extend(listed([path.as_str()]));
        }
        if lines.is_empty() {
            return Ok(());
        }
        git.tell(&["update-index", "--add", "--replace", "-z", "--index-info"], &lines, stop).await.map(drop)
    }

    /// Returns the files that a sparse checkout leaves out of the folder, relative to the root of
    /// the workspace.
    async fn not_checked_out(&self, stop: &CancellationToken) -> Result<Vec<String>, TreesError> {
        let list = self.git.ask(&["ls-files", "-z", "-t"], stop).await?;
        Ok(each(&list).filter_map(|entry| entry.strip_prefix(b"S ")).map(spelled).collect())
    }

    /// Returns whether the user's git ignores the executable bit (`core.fileMode` is false).
    async fn has_no_modes(&self, stop: &CancellationToken) -> Result<bool, TreesError> {
        let answer = self.git.run(&["config", "--type=bool", "--get", "core.fileMode"], b"", 100, stop).await?;
        Ok(answer.output.trim_ascii() == b"false")
    }

    /// Fails unless the content of each object of a tree matches the object's id. Git does not
    /// check this when it reads an object, so a forged object would be delivered in place of the
    /// judged one. Objects that a partial clone lacks are skipped.
    pub(super) async fn must_be_genuine(&self, tree: &TreeId, stop: &CancellationToken) -> Result<(), DeliveryError> {
        let args = ["rev-list", "--objects", "--verify-objects", "--missing=allow-any", "--quiet", tree.as_str()];
        let answer = self.git.run(&args, b"", 0, stop).await?;
        // `rev-list` reports each mismatch and continues.
        let wrong = answer.stderr.lines().filter_map(|line| line.split_once("mismatch ")?.1.split_whitespace().next());
        let objects: Vec<String> = wrong.map(str::to_owned).collect();
        match objects.is_empty() {
            false => Err(DeliveryError::Forged { objects }),
            true if answer.code != 0 => Err(answer.fault(&args).into()),
            true => Ok(()),
        }
    }

    /// Copies the objects of a tree that the repository lacks into it.
    async fn copy_objects(&self, tree: &TreeId, stop: &CancellationToken) -> Result<(), TreesError> {
        let own = self.trees.own_git();
        let all = own.ask(&["rev-list", "--objects", "--no-object-names", tree.as_str()], stop).await?;
        let known = self.git.tell(&["cat-file", "--batch-check"], &all, stop).await?;
        let known = String::from_utf8_lossy(&known);
        let missing: Vec<&str> = known.lines().filter_map(|line| line.strip_suffix(" missing")).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let pack =
            own.tell(&["pack-objects", "--quiet", "--stdout"], (missing.join("\n") + "\n").as_bytes(), stop).await?;
        self.git.tell(&["unpack-objects", "-q"], &pack, stop).await.map(drop)
    }
}

/// Returns the files whose mode the run did not change, with the mode of the last commit.
fn as_committed(committed: &TreeFiles, judged: &TreeFiles, begun: &TreeFiles) -> Vec<(String, Option<TreeEntry>)> {
    const PLAIN: u32 = 0o100_000;
    let is_plain = |entry: &TreeEntry| entry.mode & 0o170_000 == PLAIN;
    let differs = |(path, now): (&String, &TreeEntry)| {
        let then = committed.get(path).filter(|then| is_plain(then) && is_plain(now) && then.mode != now.mode)?;
        let is_left_alone = begun.get(path).is_some_and(|begun| begun.mode == now.mode);
        is_left_alone.then(|| (path.clone(), Some(TreeEntry { mode: then.mode, ..now.clone() })))
    };
    judged.iter().filter_map(differs).collect()
}

/// Returns whether an entry is a submodule.
pub(super) fn is_repository(entry: &TreeEntry) -> bool {
    entry.mode == REPOSITORY
}

fn by_path(entries: Vec<TreeEntry>) -> TreeFiles {
    entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect()
}
