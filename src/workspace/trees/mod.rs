//! States of the workspace as git trees: fledge takes, compares, exports and restores them with a
//! private git directory that agents cannot write. Git uses only that directory's configuration,
//! hooks, attributes and ignore rules, and the workspace's `.gitignore` files.

mod anomaly;
mod difference;
mod error;
mod export;
pub(in crate::workspace) mod git;
mod git_programs;
mod ignores;
mod keeping;
mod listing;
mod look;
pub(in crate::workspace) mod names;
mod outside;
mod restore;
mod retake;
mod scratch;
mod seen;
mod take;
mod written;

pub use anomaly::{AnomalyKind, TreeAnomaly};
pub use difference::FileDifference;
pub use error::TreesError;
pub use git_programs::GitPrograms;
pub(in crate::workspace) use listing::entries_of;
pub use names::{path_text, text_path};
pub use outside::OutsideFiles;
pub(in crate::workspace) use take::tree_of;

use crate::id::TreeId;
use crate::process;
use git::GitFolder;
use scratch::GitScratch;
use seen::GitAnswers;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use take::TakeState;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Git's mode of a symbolic link.
pub const LINK: u32 = 0o120_000;
/// Git's mode of a nested repository.
pub const REPOSITORY: u32 = 0o160_000;
/// The maximum number of bytes that a file of a tree may have.
pub const MOST_BYTES: u64 = 200_000_000;

/// The states of one workspace, for one run. Clones share the index, so only one of them takes a
/// state at a time.
#[derive(Debug, Clone)]
pub struct Trees(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    git_dir: PathBuf,
    root: PathBuf,
    /// The search path for git.
    path: String,
    git: GitFolder,
    /// True if this git can write many files into one pack.
    packs_at_once: bool,
    scratch: GitScratch,
    state: Mutex<TakeState>,
    seen: GitAnswers,
}

/// A state of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenTree {
    /// The tree of the workspace.
    pub tree: TreeId,
    /// The anomalies that are in the tree or missing from it, and were not there at the base. Empty
    /// for the base itself.
    pub anomalies: Vec<TreeAnomaly>,
}

/// A path that differs between two trees. A renamed file appears as one removed and one added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TreeChange {
    /// The path relative to the root of the workspace, as in [`TreeEntry::path`].
    pub path: String,
    /// The kind of change.
    pub kind: TreeChangeKind,
    /// Git's mode before: `0o100644`, `0o100755`, `0o120000` for a link, `0o160000` for a
    /// repository. It is 0 if the path did not exist.
    pub from_mode: u32,
    /// Git's mode after; 0 if the path no longer exists.
    pub to_mode: u32,
}

/// The kind of change of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeChangeKind {
    /// The path did not exist before.
    Added,
    /// The contents or the kind of file differ.
    Modified,
    /// The path no longer exists.
    Removed,
    /// Only the executable bit differs.
    ModeChanged,
}

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// The path relative to the root of the workspace, with `/`. A byte that is not UTF-8 becomes
    /// the character U+10FF00 plus the byte. So each name has one spelling, and patterns match the
    /// rest of the name.
    pub path: String,
    /// Git's mode, as in [`TreeChange`].
    pub mode: u32,
    /// The id of the contents.
    pub blob: String,
}

/// The form of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffForm {
    /// A unified diff for people; of binary files it only says that they differ.
    Patch,
    /// A unified diff for `git apply`, with the contents of binary files.
    Whole,
    /// One line for each file, with the amount that was added and removed.
    Stat,
}

impl Trees {
    /// Opens the private git directory for this workspace; makes it if it is missing, and rewrites
    /// its settings. `path` is the search path for git; folders in the workspace are left out.
    ///
    /// # Errors
    /// [`TreesError`] if git is missing or too old, or one of the folders cannot be used.
    pub async fn open(git_dir: &Path, root: &Path, path: &str, stop: &CancellationToken) -> Result<Self, TreesError> {
        let opened = |path: &Path| path.canonicalize().map_err(TreesError::io("open", path));
        let root = opened(root)?;
        std::fs::create_dir_all(git_dir).map_err(TreesError::io("make", git_dir))?;
        let git_dir = opened(git_dir)?;
        if git_dir.starts_with(&root) {
            return Err(TreesError::Inside { path: git_dir });
        }
        scratch::prepare(&git_dir)?;
        let scratch = GitScratch::make(&git_dir)?;
        scratch::copy_index(&git_dir.join("index"), &scratch.path().join("index"))?;
        let path = process::outside(path, &root);
        let git = GitFolder::own(&git_dir, &root, scratch.path(), &path);
        let packs_at_once = git.version(stop).await?.packs_at_once;
        let state = Mutex::default();
        Ok(Self(Arc::new(Inner {
            git_dir,
            root,
            path,
            git,
            packs_at_once,
            scratch,
            state,
            seen: GitAnswers::default(),
        })))
    }

    /// Returns the output of `git version`, for example `git version 2.47.3`.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn version(&self, stop: &CancellationToken) -> Result<String, TreesError> {
        Ok(self.0.git.version(stop).await?.text)
    }

    /// Reads the ignore rules outside of the workspace's `.gitignore` files: the exclude file of
    /// the repository, the user's own list, and `.gitignore` files in parent folders. Asks the
    /// user's repository once, before the base is taken. Returns the files that the user's git
    /// reads and runs in the workspace.
    ///
    /// # Errors
    /// [`TreesError`] if git fails. A workspace in no repository is not an error.
    pub async fn freeze_ignores(
        &self,
        env: &[(String, String)],
        stop: &CancellationToken,
    ) -> Result<GitPrograms, TreesError> {
        let frozen = ignores::frozen(&self.0.root, self.0.scratch.path(), env, stop);
        let (found, frozen) = futures_util::join!(self.0.look_first(), frozen);
        let (found, frozen) = (found?, frozen?);
        scratch::write(&self.0.git_dir.join("info/exclude"), frozen.lines.as_bytes())?;
        let mut state = self.0.state.lock().await;
        (state.tracked, state.found) = (Some(frozen.tracked), Some(found));
        Ok(frozen.programs)
    }

    /// Takes the current state of the workspace. The first state is the base; later ones are
    /// compared with it. Files of the base stay included even if they are ignored later. Files that
    /// the base ignores are never included.
    ///
    /// # Errors
    /// [`TreesError`], with the path if a file is too large.
    pub async fn take(&self, stop: &CancellationToken) -> Result<TakenTree, TreesError> {
        self.0.take(stop).await
    }

    /// Sets the base that a resumed run took earlier.
    ///
    /// # Errors
    /// [`TreesError`] if the base is no longer kept here.
    pub async fn resume(&self, base: &TreeId, stop: &CancellationToken) -> Result<(), TreesError> {
        self.0.resume(base, stop).await
    }

    /// Replaces the base that was taken by a part of it. The workspace must have no other files of
    /// the base.
    ///
    /// # Errors
    /// [`TreesError`] if the new base cannot be stored.
    pub async fn replace_base(&self, part: &TreeId) -> Result<(), TreesError> {
        self.0.replace_base(part).await
    }

    /// Sets the base to a tree that the workspace may differ from. Ignored files of the workspace
    /// are never included, nor is anything below `left_out`.
    ///
    /// # Errors
    /// [`TreesError`] if git fails, or would wait for ever at a pipe.
    pub async fn begin_at(
        &self,
        base: &TreeId,
        left_out: &[String],
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        self.0.begin_at(base, left_out, stop).await
    }

    /// Returns the changes between two trees, sorted by path.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn changes(
        &self,
        from: &TreeId,
        to: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Vec<TreeChange>, TreesError> {
        self.0.changes(from, to, stop).await
    }

    /// Returns all files of a tree, sorted by path.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn entries(&self, tree: &TreeId, stop: &CancellationToken) -> Result<Vec<TreeEntry>, TreesError> {
        self.0.entries(tree, stop).await
    }

    /// Returns the contents of a file or the target of a link; `None` if the tree has neither at
    /// that path.
    ///
    /// # Errors
    /// [`TreesError::TooLarge`] for more than `limit` bytes; others if git fails.
    pub async fn read(
        &self,
        tree: &TreeId,
        path: &str,
        limit: u64,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<u8>>, TreesError> {
        self.0.read(tree, path, limit, stop).await
    }

    /// Returns the contents of those of these files, and the targets of those links, that the tree
    /// has and that are not larger than `limit` bytes.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn read_all(
        &self,
        tree: &TreeId,
        paths: &[&str],
        limit: u64,
        stop: &CancellationToken,
    ) -> Result<BTreeMap<String, Vec<u8>>, TreesError> {
        self.0.read_all(tree, paths, limit, stop).await
    }

    /// Returns a copy of `tree` in which these paths are as in `base`. Paths that `base` does not
    /// have are removed. A folder includes everything in it.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn with_paths_of(
        &self,
        tree: &TreeId,
        base: &TreeId,
        paths: &[String],
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        self.0.with_paths_of(tree, base, paths, stop).await
    }

    /// Takes the current state of a folder into which `tree` was exported: the files of `tree`, and
    /// with `new` also new files that are not ignored. Paths in `except` stay as in `tree`.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn retake(
        &self,
        tree: &TreeId,
        folder: &Path,
        new: bool,
        except: &[String],
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        self.0.retake(tree, folder, new, except, stop).await
    }

    /// Restores files of the workspace from a tree, each one completely or not at all: all files,
    /// or those at and below `paths`. Ignored files stay. Returns the tree of the workspace before,
    /// so that nothing is lost; [`Trees::keep`] it.
    ///
    /// # Errors
    /// [`TreesError`]. Some files may be restored and others not.
    pub async fn put_back(
        &self,
        tree: &TreeId,
        paths: Option<&[String]>,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        self.0.put_back(tree, paths, stop).await
    }

    /// Returns the diff between two trees, cut after `limit` bytes.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn diff(
        &self,
        from: &TreeId,
        to: &TreeId,
        form: DiffForm,
        limit: usize,
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, TreesError> {
        self.0.diff(from, to, form, limit, stop).await
    }

    /// Packs the kept objects, and removes those that were neither kept nor written in the last two
    /// weeks. A running run has not yet kept everything that it wrote.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn shrink(&self, stop: &CancellationToken) -> Result<(), TreesError> {
        self.0.git.ask(&["gc", "--quiet", "--prune=2.weeks.ago"], stop).await.map(drop)
    }

    /// Returns whether a tree exists here with all of its contents.
    ///
    /// # Errors
    /// [`TreesError`] if git cannot be run.
    pub async fn has(&self, tree: &TreeId, stop: &CancellationToken) -> Result<bool, TreesError> {
        let args = ["rev-list", "--objects", "--quiet", tree.as_str()];
        Ok(self.0.git.run(&args, b"", 0, stop).await?.code == 0)
    }
}

/// Access for the delivery of a tree and for the repository of a room.
impl Trees {
    /// Returns the root of the workspace.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    pub(in crate::workspace) fn scratch(&self) -> &Path {
        self.0.scratch.path()
    }

    pub(in crate::workspace) fn own_git(&self) -> &GitFolder {
        &self.0.git
    }

    pub(in crate::workspace) fn git_dir(&self) -> &Path {
        &self.0.git_dir
    }

    pub(in crate::workspace) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, TreesError> + Send + 'static,
    ) -> Result<T, TreesError> {
        self.0.run_blocking(work).await
    }

    pub(in crate::workspace) async fn blobs<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
        stop: &CancellationToken,
    ) -> Result<Vec<Vec<u8>>, TreesError> {
        self.0.blobs(ids, stop).await
    }
}

impl Inner {
    /// Runs blocking file work on another thread, so that other tasks can run.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, TreesError> + Send + 'static,
    ) -> Result<T, TreesError> {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(TreesError::io("work in", &self.root)(error.into())))
    }
}

#[cfg(test)]
mod ignore_tests;
#[cfg(test)]
mod odd_tests;
#[cfg(test)]
mod room_tests;
#[cfg(test)]
mod tests;
