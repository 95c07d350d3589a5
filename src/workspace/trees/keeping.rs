//! Keeps trees under names, so that git does not remove them.

use super::names::kept;
use super::take::tree_of;
use super::{Trees, TreesError};
use crate::id::TreeId;
use std::collections::BTreeSet;
use std::fs;
use tokio_util::sync::CancellationToken;

/// A short wait for the lock of a reference: no other process writes this reference.
const BRIEFLY: &str = "core.filesRefLockTimeout=500";

impl Trees {
    /// Keeps a tree and its contents under a name (`RUN/base`). An existing name moves to the new
    /// tree.
    ///
    /// # Errors
    /// [`TreesError`] if the name is invalid or git fails.
    pub async fn keep(&self, name: &str, tree: &TreeId, stop: &CancellationToken) -> Result<(), TreesError> {
        let name = kept(name)?;
        let words = ["-c", BRIEFLY, "update-ref", &name, tree.as_str()];
        match self.0.git.ask(&words, stop).await {
            // Only one run writes this name, so the lock is from a git that was killed.
            Err(_) if fs::remove_file(self.0.git_dir.join(format!("{name}.lock"))).is_ok() => {
                self.0.git.ask(&words, stop).await.map(drop)
            }
            answer => answer.map(drop),
        }
    }

    /// Returns the tree that is kept under a name.
    ///
    /// # Errors
    /// [`TreesError`] if the name is invalid or git fails.
    pub async fn kept(&self, name: &str, stop: &CancellationToken) -> Result<Option<TreeId>, TreesError> {
        let answer = self.0.git.run(&["rev-parse", "--quiet", "--verify", &kept(name)?], b"", 100, stop).await?;
        if answer.code == 0 { tree_of(&answer.output, "rev-parse").map(Some) } else { Ok(None) }
    }

    /// Returns the first parts of all names under which trees are kept.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn keepers(&self, stop: &CancellationToken) -> Result<BTreeSet<String>, TreesError> {
        let all = self.0.git.ask(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/kept"], stop).await?;
        let all = String::from_utf8_lossy(&all);
        Ok(all.lines().filter_map(|name| name.split('/').next()).map(str::to_owned).collect())
    }

    /// No longer keeps the trees under the name `prefix` and under `PREFIX/…`.
    ///
    /// # Errors
    /// [`TreesError`] if the name is invalid or git fails.
    pub async fn forget(&self, prefix: &str, stop: &CancellationToken) -> Result<(), TreesError> {
        let all = self.0.git.ask(&["for-each-ref", "--format=delete %(refname)", &kept(prefix)?], stop).await?;
        self.0.git.tell(&["update-ref", "--stdin"], &all, stop).await.map(drop)
    }
}
