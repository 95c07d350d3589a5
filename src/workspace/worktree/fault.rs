//! Why there is no worktree.

use crate::workspace::trees::TreesFault;
use std::io;
use std::path::{Path, PathBuf};

/// What could not be done with a worktree.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum WorktreeFault {
    /// There is nothing that it could be a worktree of.
    #[error(
        "{} is in no git repository, and a worktree needs one: `git init` makes one, or take `isolation: in-place`",
        folder.display()
    )]
    NoRepository { folder: PathBuf },
    /// The project's folder is what git keeps, without files.
    #[error("{} is a bare repository, which has no files to work on: clone it, and run in the clone", folder.display())]
    Bare { folder: PathBuf },
    /// The repository is empty.
    #[error(
        "the repository has no commit yet, and a worktree is made from one: make the first one, or take `isolation: in-place`"
    )]
    NoCommit,
    /// What it is to be made from is no commit.
    #[error("there is no commit `{rev}` in the repository (--base takes a branch, a tag, or an id)")]
    NoBase { rev: String },
    /// The commit does not have the project's folder.
    #[error("the commit `{rev}` has no folder `{}`: commit it first, or name another commit by --base", inner.display())]
    NoFolder { rev: String, inner: PathBuf },
    /// Somebody else has a branch of this name.
    #[error("there is a branch `{branch}` already, which is not of this run: rename it, or start another run")]
    BranchTaken { branch: String },
    /// Something else is in its place.
    #[error("{} is in the way of the worktree, and is none of this run's: move it away", folder.display())]
    InTheWay { folder: PathBuf },
    /// It was made, and somebody has removed it since.
    #[error("the worktree {} is gone, and what was not committed in it: start another run", folder.display())]
    Gone { folder: PathBuf },
    /// What was written down of it cannot be understood.
    #[error("{} is not what fledge writes there ({why}): move it away", path.display())]
    Unclear { path: PathBuf, why: String },
    /// Others have had the repository for themselves for too long.
    #[error("somebody else makes worktrees in {} and does not come to an end", git_dir.display())]
    Busy { git_dir: PathBuf },
    /// A file or folder cannot be used.
    #[error("cannot {verb} {}", path.display())]
    Io { verb: &'static str, path: PathBuf, source: io::Error },
    /// Git could not be asked, or said no.
    #[error(transparent)]
    Git(#[from] TreesFault),
}

impl WorktreeFault {
    pub(super) fn io(verb: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { verb, path, source }
    }

    /// Whether another task, place or base mends it.
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

/// Makes a folder and those above it, for their owner alone.
pub(super) fn make_folder(folder: &Path) -> Result<(), WorktreeFault> {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(WorktreeFault::io("make the folder", folder))
}
