//! What a worktree would begin with, found out before there is one.

use super::{Worktree, WorktreeFault};
use crate::workspace::trees::names::{each, spelled};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Submodules that are named.
const NAMED: usize = 5;

/// The commit that a worktree would be made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its id.
    pub commit: String,
    /// Whether the checkout has just its files, beside what git ignores.
    pub is_checked_out: bool,
    /// What people should know of the worktree, a sentence each.
    pub notes: Vec<String>,
}

impl Worktree {
    /// The id of the commit that it would be made from.
    ///
    /// # Errors
    /// As those of [`Self::make`], before anything is made.
    pub async fn commit(
        &self,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<String, WorktreeFault> {
        let git = self.git(scratch, env).with("GIT_NO_LAZY_FETCH", Path::new("0"));
        self.common(&git, stop).await?;
        self.resolve(&git, stop).await
    }

    /// Finds out what it would be made from; nothing is made.
    ///
    /// # Errors
    /// As those of [`Self::make`], before anything is made.
    pub async fn base(
        &self,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<Base, WorktreeFault> {
        let commit = self.commit(env, scratch, stop).await?;
        let git = self.git(scratch, env).with("GIT_NO_LAZY_FETCH", Path::new("0")).within(&self.origin);
        let head = git.run(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], b"", 200, stop).await?;
        let is_head = String::from_utf8_lossy(&head.output).trim() == commit;
        let status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all"];
        let is_clean =
            is_head && git.run(&status, b"", usize::MAX, stop).await.is_ok_and(|said| said.output.is_empty());
        let list = git.ask(&["ls-tree", "-r", "-z", "--full-tree", &commit], stop).await?;
        let path = |entry: &[u8]| {
            let at = entry.iter().position(|byte| *byte == b'\t')?;
            Some(spelled(entry.get(at + 1..)?))
        };
        let submodules: Vec<String> =
            each(&list).filter(|entry| entry.starts_with(b"160000 ")).filter_map(path).collect();
        Ok(Base { commit, is_checked_out: is_clean, notes: empty(&submodules).into_iter().collect() })
    }
}

/// What is to be said of submodules, whose folders are empty in a worktree.
pub(super) fn empty(folders: &[String]) -> Option<String> {
    let named: Vec<String> = folders.iter().take(NAMED).map(|folder| format!("`{folder}`")).collect();
    let more = folders.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!folders.is_empty()).then(|| {
        format!(
            "the worktree has nothing of the submodules {}{more}: where the checks need them, take `isolation: in-place`",
            named.join(", ")
        )
    })
}
