//! The tree of a commit: the judged one in the place of the workspace's folder, with its objects in the user's repository.

use super::foreign::Foreign;
use super::{DeliveryFault, Head, Repository};
use crate::id::TreeId;
use crate::workspace::trees::names::{each, listed, spelled};
use crate::workspace::trees::{Entry, REPOSITORY, TreesFault, entries_of, tree_of};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// Files by their path from the root of the workspace.
pub(super) type Files = BTreeMap<String, Entry>;

impl Repository<'_> {
    /// The whole tree of the commit, and whether it is another one than the head's.
    pub(super) async fn compose(
        &self,
        head: &Head,
        tree: &TreeId,
        base: &TreeId,
        stop: &CancellationToken,
    ) -> Result<(TreeId, bool), DeliveryFault> {
        if head.commit.as_ref().is_some_and(|commit| commit.len() != tree.as_str().len()) {
            return Err(DeliveryFault::Hash);
        }
        self.bring(tree, stop).await?;
        let own =
            async |tree: &TreeId| -> Result<Files, TreesFault> { Ok(by_path(self.trees.entries(tree, stop).await?)) };
        let (judged, begun) = (own(tree).await?, own(base).await?);
        let committed = match &head.tree {
            Some(tree) => {
                let list = self.git.ask(&["ls-tree", "-r", "-z", "--full-tree", tree.as_str()], stop).await?;
                by_path(entries_of(&list)?)
            }
            None => Files::new(),
        };
        let foreign = Foreign::find(self, &committed, &judged, stop).await?;
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
        // Of a partial clone, files that nobody has looked at are not here.
        let made = tree_of(&git.ask(&["write-tree", "--missing-ok"], stop).await?, "write-tree")?;
        let before = match &head.commit {
            Some(commit) => self.line(&["rev-parse", &format!("{commit}^{{tree}}")], stop).await?,
            None => None,
        };
        let is_new = before.as_deref() != Some(made.as_str());
        Ok((made, is_new))
    }

    /// Puts entries into an index, or takes them out.
    async fn set<'e>(
        &self,
        git: &crate::workspace::trees::git::Git,
        entries: impl Iterator<Item = (&'e String, Option<&'e Entry>)>,
        stop: &CancellationToken,
    ) -> Result<(), TreesFault> {
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

    /// Files that the user's git has left out of the folder (a sparse checkout), from the root of the workspace.
    async fn not_checked_out(&self, stop: &CancellationToken) -> Result<Vec<String>, TreesFault> {
        let list = self.git.ask(&["ls-files", "-z", "-t"], stop).await?;
        Ok(each(&list).filter_map(|entry| entry.strip_prefix(b"S ")).map(spelled).collect())
    }

    /// Whether the user's git does not look at who may run a file.
    async fn has_no_modes(&self, stop: &CancellationToken) -> Result<bool, TreesFault> {
        let answer = self.git.run(&["config", "--type=bool", "--get", "core.fileMode"], b"", 100, stop).await?;
        Ok(answer.output.trim_ascii() == b"false")
    }

    /// Insists that all that a tree is made of is what its names say, where it is here: git reads an object without a look at whether it is
    /// the one that it was asked for, so one that was put in its place would be delivered for the judged one.
    pub(super) async fn must_be_genuine(&self, tree: &TreeId, stop: &CancellationToken) -> Result<(), DeliveryFault> {
        let args = ["rev-list", "--objects", "--verify-objects", "--missing=allow-any", "--quiet", tree.as_str()];
        let answer = self.git.run(&args, b"", 0, stop).await?;
        // It complains and goes on.
        let wrong = answer.said.lines().filter_map(|line| line.split_once("mismatch ")?.1.split_whitespace().next());
        let objects: Vec<String> = wrong.map(str::to_owned).collect();
        match objects.is_empty() {
            false => Err(DeliveryFault::Forged { objects }),
            true if answer.code != 0 => Err(answer.fault(&args).into()),
            true => Ok(()),
        }
    }

    /// Has the repository have all objects of a tree.
    async fn bring(&self, tree: &TreeId, stop: &CancellationToken) -> Result<(), TreesFault> {
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

/// Files with the mode that they are committed with, where the run left it alone.
fn as_committed(committed: &Files, judged: &Files, begun: &Files) -> Vec<(String, Option<Entry>)> {
    const PLAIN: u32 = 0o100_000;
    let is_plain = |entry: &Entry| entry.mode & 0o170_000 == PLAIN;
    let differs = |(path, now): (&String, &Entry)| {
        let then = committed.get(path).filter(|then| is_plain(then) && is_plain(now) && then.mode != now.mode)?;
        let is_left_alone = begun.get(path).is_some_and(|begun| begun.mode == now.mode);
        is_left_alone.then(|| (path.clone(), Some(Entry { mode: then.mode, ..now.clone() })))
    };
    judged.iter().filter_map(differs).collect()
}

/// Whether an entry is a submodule.
pub(super) fn is_repository(entry: &Entry) -> bool {
    entry.mode == REPOSITORY
}

fn by_path(entries: Vec<Entry>) -> Files {
    entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect()
}
