//! The start of a worktree, determined before it exists.

use super::{Worktree, WorktreeError};
use crate::workspace::trees::names::{each, spelled};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The maximum number of submodules that a message names.
const NAMED: usize = 5;

/// The commit for a new worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeBase {
    /// The id of the commit.
    pub commit: String,
    /// True if the checkout has exactly the files of this commit, apart from ignored files.
    pub is_checked_out: bool,
    /// Notes for the user about the worktree, one sentence each.
    pub notes: Vec<String>,
}

impl Worktree {
    /// Returns the id of the commit for the worktree.
    ///
    /// # Errors
    /// As for [`Self::make`] before it makes anything.
    pub async fn commit(
        &self,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<String, WorktreeError> {
        let git = self.git(scratch, env).with("GIT_NO_LAZY_FETCH", Path::new("0"));
        self.common(&git, stop).await?;
        self.resolve(&git, stop).await
    }

    /// Returns the commit for the worktree, with notes about it. Makes nothing.
    ///
    /// # Errors
    /// As for [`Self::make`] before it makes anything.
    pub async fn base(
        &self,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<WorktreeBase, WorktreeError> {
        let commit = self.commit(env, scratch, stop).await?;
        let git = self.git(scratch, env).with("GIT_NO_LAZY_FETCH", Path::new("0")).within(&self.origin);
        let head = git.run(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], b"", 200, stop).await?;
        let is_head = String::from_utf8_lossy(&head.output).trim() == commit;
        let status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all"];
        let is_clean =
            is_head && git.run(&status, b"", usize::MAX, stop).await.is_ok_and(|message| message.output.is_empty());
        let has_some = git.run(&["cat-file", "-e", &format!("{commit}:.gitmodules")], b"", 0, stop).await?.code == 0;
        if !has_some {
            return Ok(WorktreeBase { commit, is_checked_out: is_clean, notes: Vec::new() });
        }
        let list = git.ask(&["ls-tree", "-r", "-z", "--full-tree", &commit], stop).await?;
        let path = |entry: &[u8]| {
            let at = entry.iter().position(|byte| *byte == b'\t')?;
            Some(spelled(entry.get(at + 1..)?))
        };
        let submodules: Vec<String> =
            each(&list).filter(|entry| entry.starts_with(b"160000 ")).filter_map(path).collect();
        Ok(WorktreeBase { commit, is_checked_out: is_clean, notes: empty(&submodules).into_iter().collect() })
    }
}

/// The files of a checkout that differ from its newest commit.
#[derive(Debug, Clone, Default)]
pub struct CheckoutChanges {
    /// The files, relative to the folder of the project; true if git does not track the file yet.
    pub files: BTreeMap<String, bool>,
    /// Ignored files below the given folders.
    pub ignored: BTreeSet<String>,
}

impl Worktree {
    /// Finds the files of the checkout that differ from its newest commit, and the ignored files
    /// below `folders`. Finds none without a repository or a commit.
    ///
    /// # Errors
    /// If git fails.
    pub async fn uncommitted(
        &self,
        folders: &[&str],
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<CheckoutChanges, WorktreeError> {
        match self.commit(env, scratch, stop).await {
            Err(fault) if fault.is_bad_input() => return Ok(CheckoutChanges::default()),
            commit => commit?,
        };
        let git = self.git(scratch, env).with("GIT_NO_LAZY_FETCH", Path::new("0")).within(&self.origin);
        let prefix = git.ask(&["rev-parse", "--show-prefix"], stop).await?;
        let prefix = spelled(prefix.strip_suffix(b"\n").unwrap_or(&prefix));
        let status = [
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=all",
            "--",
            ".",
        ];
        let status = git.ask(&status, stop).await?;
        let entry = |entry: &[u8]| {
            let path = spelled(entry.get(3..)?);
            Some((path.strip_prefix(&prefix)?.to_owned(), entry.starts_with(b"??")))
        };
        let ignored = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"];
        let ignored = git.ask(&[&ignored, folders].concat(), stop).await?;
        Ok(CheckoutChanges {
            files: each(&status).filter_map(entry).collect(),
            ignored: each(&ignored).map(spelled).collect(),
        })
    }
}

/// Returns a note about submodules, whose folders are empty in a worktree.
pub(super) fn empty(folders: &[String]) -> Option<String> {
    let named: Vec<String> = folders.iter().take(NAMED).map(|folder| format!("`{folder}`")).collect();
    let more = folders.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!folders.is_empty()).then(|| {
        format!(
            "the worktree does not contain the submodules {}{more}: if the checks need them, set `isolation: in-place`",
            named.join(", ")
        )
    })
}
