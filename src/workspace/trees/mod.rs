//! States of the workspace as git trees: taken, compared, exported and put back by a git directory of our own, which no agent can
//! write. It reads no configuration, hook, attribute or ignored list but its own and the workspace's `.gitignore` files.

mod fault;
mod oddity;

pub use fault::TreesFault;
pub use oddity::{Oddity, Oddness};

use crate::id::TreeId;
use crate::process::Variables;
use serde::{Deserialize, Serialize};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The states of one workspace, for one run. Clones share the index; whoever takes waits for who is taking.
#[derive(Debug, Clone)]
pub struct Trees {}

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
    /// How many bytes it has; 0 for a repository.
    pub bytes: u64,
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
    /// `path` is the search path in which git is found.
    ///
    /// # Errors
    /// [`TreesFault`] when there is no git that is new enough, or either folder cannot be used.
    pub async fn open(git_dir: &Path, root: &Path, path: &str, stop: &CancellationToken) -> Result<Self, TreesFault> {
        let _ = (git_dir, root, path, stop);
        Err(unbuilt())
    }

    /// Makes what is ignored outside of the workspace's `.gitignore` files what it is for the user now: the exclude file of their
    /// repository, their own ignored list, and `.gitignore` files above the workspace. The only time that the user's repository is
    /// asked, before the base is taken. `env` is the user's environment.
    ///
    /// # Errors
    /// [`TreesFault`]; a workspace in no repository is none.
    pub async fn freeze_ignores(&self, env: &Variables, stop: &CancellationToken) -> Result<(), TreesFault> {
        let _ = (env, stop);
        Err(unbuilt())
    }

    /// Takes the workspace as it stands: the first one is the base, what is taken later is compared with it. What is in the base stays
    /// in view whatever is ignored later, and what is ignored at the base never comes in.
    ///
    /// # Errors
    /// [`TreesFault`], with the path of a file that is too large.
    pub async fn take(&self, stop: &CancellationToken) -> Result<Taken, TreesFault> {
        let _ = stop;
        Err(unbuilt())
    }

    /// For a run that is taken up again: the base is this one, which it took then.
    ///
    /// # Errors
    /// [`TreesFault`] when it is not kept here any more.
    pub async fn resume(&self, base: &TreeId, stop: &CancellationToken) -> Result<(), TreesFault> {
        let _ = (base, stop);
        Err(unbuilt())
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
        let _ = (from, to, stop);
        Err(unbuilt())
    }

    /// All files of a tree, sorted by path.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn entries(&self, tree: &TreeId, stop: &CancellationToken) -> Result<Vec<Entry>, TreesFault> {
        let _ = (tree, stop);
        Err(unbuilt())
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
        let _ = (tree, path, limit, stop);
        Err(unbuilt())
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
        let _ = (tree, base, paths, stop);
        Err(unbuilt())
    }

    /// Writes a tree into a folder that is empty or not there yet. A file, or a folder with its names, that is as in `base` gets the
    /// time 2001-09-09T01:46:40Z, every other that of the export, so that what was built from the base is built anew where it must be.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn export(
        &self,
        tree: &TreeId,
        base: &TreeId,
        into: &Path,
        stop: &CancellationToken,
    ) -> Result<(), TreesFault> {
        let _ = (tree, base, into, stop);
        Err(unbuilt())
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
        let _ = (tree, paths, stop);
        Err(unbuilt())
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
        let _ = (from, to, form, limit, stop);
        Err(unbuilt())
    }

    /// Keeps a tree, and what it is made of, under a name (`RUN/base`). A name that is taken is moved.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn keep(&self, name: &str, tree: &TreeId, stop: &CancellationToken) -> Result<(), TreesFault> {
        let _ = (name, tree, stop);
        Err(unbuilt())
    }

    /// Keeps no longer what is named this, or `PREFIX/…`.
    ///
    /// # Errors
    /// [`TreesFault`].
    pub async fn forget(&self, prefix: &str, stop: &CancellationToken) -> Result<(), TreesFault> {
        let _ = (prefix, stop);
        Err(unbuilt())
    }
}

fn unbuilt() -> TreesFault {
    TreesFault::Git { verb: "…".into(), said: "this is not built yet".into() }
}
