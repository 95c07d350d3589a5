//! What a worktree would begin with, found out before there is one.

use super::{Worktree, WorktreeFault};
use crate::workspace::trees::names::{each, spelled};
use std::collections::{BTreeMap, BTreeSet};
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
        let has_some = git.run(&["cat-file", "-e", &format!("{commit}:.gitmodules")], b"", 0, stop).await?.code == 0;
        if !has_some {
            return Ok(Base { commit, is_checked_out: is_clean, notes: Vec::new() });
        }
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

/// The files of a checkout that differ from its newest commit.
#[derive(Debug, Clone, Default)]
pub struct Uncommitted {
    /// The files, from the folder of the project, and whether git does not know them yet.
    pub files: BTreeMap<String, bool>,
    /// Files below these folders that git ignores.
    pub ignored: BTreeSet<String>,
}

impl Worktree {
    /// Finds the files of the checkout that differ from its newest commit, and those that git ignores below `folders`. Finds none where there
    /// is no repository or no commit.
    ///
    /// # Errors
    /// When git cannot say.
    pub async fn uncommitted(
        &self,
        folders: &[&str],
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<Uncommitted, WorktreeFault> {
        match self.commit(env, scratch, stop).await {
            Err(fault) if fault.is_bad_input() => return Ok(Uncommitted::default()),
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
        Ok(Uncommitted {
            files: each(&status).filter_map(entry).collect(),
            ignored: each(&ignored).map(spelled).collect(),
        })
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
