//! Errors of worktrees.

use crate::workspace::trees::TreesError;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a worktree cannot be made, used or removed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum WorktreeError {
    /// The project is in no repository.
    #[error(
        "{} is not in a git repository, which a worktree needs: \
         create one with `git init && git add -A && git commit -m first`, or set `isolation: in-place`",
        folder.display()
    )]
    NoRepository { folder: PathBuf },
    /// The project's folder is a bare repository, without files.
    #[error("{} is a bare repository, which has no files to work on: clone it, and run in the clone", folder.display())]
    Bare { folder: PathBuf },
    /// The repository has no commit yet.
    #[error(
        "the repository has no commit yet, which a worktree needs: \
         create one with `git add -A && git commit -m first`, or set `isolation: in-place`"
    )]
    NoCommit,
    /// The requested base is not a commit.
    #[error(
        "there is no commit `{rev}` in the repository ({}--base expects a branch, a tag, or an id)",
        near.as_ref().map(|near| format!("did you mean `{near}`?; ")).unwrap_or_default()
    )]
    NoBase { rev: String, near: Option<String> },
    /// The commit does not have the project's folder.
    #[error("the commit `{rev}` has no folder `{}`: commit it first, or name another one with --base", inner.display())]
    NoFolder { rev: String, inner: PathBuf },
    /// A branch of this name exists and is not this run's.
    #[error("the branch `{branch}` already exists and does not belong to this run: rename it, or start another run")]
    BranchTaken { branch: String },
    /// Something else is at the path of the worktree.
    #[error("{} is in the way of the worktree and does not belong to this run: move it away", folder.display())]
    InTheWay { folder: PathBuf },
    /// The worktree was made, and has been removed since.
    #[error("the worktree {} is gone, with its uncommitted changes: start another run", folder.display())]
    Gone { folder: PathBuf },
    /// The record of the worktree cannot be parsed.
    #[error("cannot parse {} ({why}): move it away", path.display())]
    Unclear { path: PathBuf, why: String },
    /// Other processes held the lock of the repository for too long.
    #[error("timed out waiting for the worktree lock of {}: another process holds the lock", git_dir.display())]
    Busy { git_dir: PathBuf },
    /// A file or folder cannot be used.
    #[error("cannot {verb} {}", path.display())]
    Io { verb: &'static str, path: PathBuf, source: io::Error },
    /// Git could not be run, or failed.
    #[error(transparent)]
    Git(#[from] TreesError),
}

impl WorktreeError {
    pub(super) fn io(verb: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { verb, path, source }
    }

    /// Returns whether the user can fix this with another task, folder or base.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::NoRepository { .. }
            | Self::Bare { .. }
            | Self::NoCommit
            | Self::NoBase { .. }
            | Self::NoFolder { .. }
            | Self::BranchTaken { .. }
            | Self::InTheWay { .. } => true,
            Self::Gone { .. } | Self::Unclear { .. } | Self::Busy { .. } | Self::Io { .. } | Self::Git(_) => false,
        }
    }
}

/// Makes a folder and its parents, accessible to their owner only.
pub(super) fn make_folder(folder: &Path) -> Result<(), WorktreeError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(WorktreeError::io("make the folder", folder))
}
