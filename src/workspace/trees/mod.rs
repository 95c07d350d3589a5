//! States of the workspace as git trees: taken, compared, exported and put back by a git directory of our own, which no agent can
//! write. It reads no configuration, hook, attribute or ignored list but its own and the workspace's `.gitignore` files.

mod difference;
mod export;
mod fault;
pub(in crate::workspace) mod git;
mod git_programs;
mod ground;
mod ignores;
mod keeping;
mod listing;
mod look;
pub(in crate::workspace) mod names;
mod oddity;
mod outside;
mod restore;
mod retake;
mod seen;
mod take;
mod written;

pub use difference::FileDifference;
pub use fault::TreesFault;
pub use git_programs::GitPrograms;
pub(in crate::workspace) use listing::entries_of;
pub use names::{path_text, text_path};
pub use oddity::{Oddity, Oddness};
pub use outside::Outside;
pub(in crate::workspace) use take::tree_of;

use crate::id::TreeId;
use crate::process;
use git::Git;
use ground::Scratch;
use seen::Seen;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use take::State;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Git's mode of a symbolic link.
pub const LINK: u32 = 0o120_000;
/// Git's mode of a repository inside.
pub const REPOSITORY: u32 = 0o160_000;
/// The most bytes that a file of a tree may have.
pub const MOST_BYTES: u64 = 200_000_000;

/// The states of one workspace, for one run. Clones share the index; whoever takes waits for who is taking.
#[derive(Debug, Clone)]
pub struct Trees(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    git_dir: PathBuf,
    root: PathBuf,
    /// The search path in which git is.
    path: String,
    git: Git,
    /// Whether this git writes many files into one pack.
    packs_at_once: bool,
    scratch: Scratch,
    state: Mutex<State>,
    seen: Seen,
}

/// A state of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Its tree.
    pub tree: TreeId,
    /// What is in it, or could not be, that was not so at the base; none at the base itself.
    pub oddities: Vec<Oddity>,
}

/// One path that differs between two trees. A file that was renamed is one removed and one added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TreeChange {
    /// From the root of the workspace, as [`Entry::path`].
    pub path: String,
    /// What became of it.
    pub kind: ChangeKind,
    /// Git's mode before (`0o100644`, `0o100755`, `0o120000` for a link, `0o160000` for a repository); 0 where it was not there.
    pub from_mode: u32,
    /// The same after.
    pub to_mode: u32,
}

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// Other bytes, or another kind of file.
    Modified,
    /// It is there no more.
    Removed,
    /// The same bytes, and may be run now or no more.
    ModeChanged,
}

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// From the root of the workspace, with `/`. A byte that is no UTF-8 is the character U+10FF00 plus the byte, so that each name
    /// has one spelling and patterns fit the rest of it.
    pub path: String,
    /// Git's mode, as in [`TreeChange`].
    pub mode: u32,
    /// The id of its bytes.
    pub blob: String,
}

/// How a difference is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffForm {
    /// For people: unified, and of files that are no text only that they differ.
    Patch,
    /// For `git apply`: unified, with the bytes of files that are no text.
    Whole,
    /// A line for each file with how much was added and removed.
    Stat,
}

impl Trees {
    /// Opens the private git directory for this workspace, and makes it when it is missing; its settings are written anew each time.
    /// `path` is the search path in which git is found, but not in the workspace.
    ///
    /// # Errors
    /// [`TreesFault`] when there is no git that is new enough, or either folder cannot be used.
    pub async fn open(git_dir: &Path, root: &Path, path: &str, stop: &CancellationToken) -> Result<Self, TreesFault> {
        let opened = |path: &Path| path.canonicalize().map_err(TreesFault::io("open", path));
        let root = opened(root)?;
        std::fs::create_dir_all(git_dir).map_err(TreesFault::io("make", git_dir))?;
        let git_dir = opened(git_dir)?;
        if git_dir.starts_with(&root) {
            return Err(TreesFault::Inside { path: git_dir });
        }
        ground::prepare(&git_dir)?;
        let scratch = Scratch::make(&git_dir)?;
        ground::copy_index(&git_dir.join("index"), &scratch.path().join("index"))?;
        let path = process::outside(path, &root);
        let git = Git::own(&git_dir, &root, scratch.path(), &path);
        let packs_at_once = git.version(stop).await?.packs_at_once;
        let state = Mutex::default();
        Ok(Self(Arc::new(Inner { git_dir, root, path, git, packs_at_once, scratch, state, seen: Seen::default() })))
    }

    /// Which git it is, in its own words: `git version 2.47.3`.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn version(&self, stop: &CancellationToken) -> Result<String, TreesFault> {
        Ok(self.0.git.version(stop).await?.text)
    }

    /// Reads what the user ignores now, outside of the workspace's `.gitignore` files: in the
    /// exclude file of the repository, their own ignored list, and `.gitignore` files above. Asks
    /// the user's repository once, before the base is taken. Returns what the user's git reads and
    /// runs in the workspace.
    ///
    /// # Errors
    /// [`TreesFault`]; a workspace in no repository is none.
    pub async fn freeze_ignores(
        &self,
        env: &[(String, String)],
        stop: &CancellationToken,
    ) -> Result<GitPrograms, TreesFault> {
        let found = self.0.look_first().await?;
        let frozen = ignores::frozen(&self.0.root, self.0.scratch.path(), env, stop).await?;
        ground::write(&self.0.git_dir.join("info/exclude"), frozen.lines.as_bytes())?;
        let mut state = self.0.state.lock().await;
        (state.tracked, state.found) = (Some(frozen.tracked), Some(found));
        Ok(frozen.programs)
    }

    /// Takes the workspace as it stands: the first one is the base, what is taken later is compared with it. What is in the base stays
    /// in view whatever is ignored later, and what is ignored at the base never comes in.
    ///
    /// # Errors
    /// [`TreesFault`], with the path of a file that is too large.
    pub async fn take(&self, stop: &CancellationToken) -> Result<Taken, TreesFault> {
        self.0.take(stop).await
    }

    /// For a run that is taken up again: the base is this one, which it took then.
    ///
    /// # Errors
    /// [`TreesFault`] when it is not kept here any more.
    pub async fn resume(&self, base: &TreeId, stop: &CancellationToken) -> Result<(), TreesFault> {
        self.0.resume(base, stop).await
    }

    /// What differs, sorted by path.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn changes(
        &self,
        from: &TreeId,
        to: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Vec<TreeChange>, TreesFault> {
        self.0.changes(from, to, stop).await
    }

    /// All files of a tree, sorted by path.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn entries(&self, tree: &TreeId, stop: &CancellationToken) -> Result<Vec<Entry>, TreesFault> {
        self.0.entries(tree, stop).await
    }

    /// The bytes of a file, or the target of a link; `None` when the tree has none of that path.
    ///
    /// # Errors
    /// [`TreesFault::TooLarge`] for more than `limit` bytes, and the others.
    pub async fn read(
        &self,
        tree: &TreeId,
        path: &str,
        limit: u64,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<u8>>, TreesFault> {
        self.0.read(tree, path, limit, stop).await
    }

    /// A tree with these paths as in `base`, and without those that `base` does not have. A folder means all in it.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn with_paths_of(
        &self,
        tree: &TreeId,
        base: &TreeId,
        paths: &[String],
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesFault> {
        self.0.with_paths_of(tree, base, paths, stop).await
    }

    /// Takes a tree that was exported into a folder as it stands there now: its own files, and with `new` also those that were not in it and
    /// are not ignored. What is in `except` is left out of it.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn retake(
        &self,
        tree: &TreeId,
        folder: &Path,
        new: bool,
        except: &[String],
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesFault> {
        self.0.retake(tree, folder, new, except, stop).await
    }

    /// Makes files of the workspace what they are in the tree, each one whole or not at all: all of them, or those at and below these
    /// paths. What is ignored stays. Gives the tree of the workspace before, in which nothing is lost; [`Trees::keep`] it.
    ///
    /// # Errors
    /// [`TreesFault`]; then some may be put back and others not.
    pub async fn put_back(
        &self,
        tree: &TreeId,
        paths: Option<&[String]>,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesFault> {
        self.0.put_back(tree, paths, stop).await
    }

    /// What differs, for people or for programs; cut after `limit` bytes.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn diff(
        &self,
        from: &TreeId,
        to: &TreeId,
        form: DiffForm,
        limit: usize,
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, TreesFault> {
        self.0.diff(from, to, form, limit, stop).await
    }

    /// Packs what is kept, and removes what nobody has kept or written for two weeks: a run that is under way has not kept all that it
    /// wrote.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn shrink(&self, stop: &CancellationToken) -> Result<(), TreesFault> {
        self.0.git.ask(&["gc", "--quiet", "--prune=2.weeks.ago"], stop).await.map(drop)
    }

    /// Whether a tree is here, with all that is in it.
    ///
    /// # Errors
    /// [`TreesFault`] when git cannot be asked.
    pub async fn has(&self, tree: &TreeId, stop: &CancellationToken) -> Result<bool, TreesFault> {
        let args = ["rev-list", "--objects", "--quiet", tree.as_str()];
        Ok(self.0.git.run(&args, b"", 0, stop).await?.code == 0)
    }
}

/// Access for the delivery of a tree and for the repository of a room.
impl Trees {
    pub(in crate::workspace) fn root(&self) -> &Path {
        &self.0.root
    }

    pub(in crate::workspace) fn scratch(&self) -> &Path {
        self.0.scratch.path()
    }

    pub(in crate::workspace) fn own_git(&self) -> &Git {
        &self.0.git
    }

    pub(in crate::workspace) fn git_dir(&self) -> &Path {
        &self.0.git_dir
    }

    pub(in crate::workspace) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, TreesFault> + Send + 'static,
    ) -> Result<T, TreesFault> {
        self.0.aside(work).await
    }

    pub(in crate::workspace) async fn blobs<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
        stop: &CancellationToken,
    ) -> Result<Vec<Vec<u8>>, TreesFault> {
        self.0.blobs(ids, stop).await
    }
}

impl Inner {
    /// Works on files without keeping anybody else from working.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, TreesFault> + Send + 'static,
    ) -> Result<T, TreesFault> {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(TreesFault::io("work in", &self.root)(error.into())))
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
