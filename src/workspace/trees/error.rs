//! Errors of trees.

use std::io;
use std::path::PathBuf;

/// The reason why a tree could not be taken, compared or restored. Paths in the workspace are
/// spelled as in [`super::TreeEntry`].
#[derive(Debug, thiserror::Error)]
pub enum TreesError {
    /// Git is not in the search path, or does not start.
    #[error("cannot run git: {why} (install git 2.30 or newer)")]
    NoGit {
        /// The error of the system.
        why: String,
    },
    /// Git lacks features that fledge uses.
    #[error("`{version}` is too old: git 2.30 or newer is needed")]
    OldGit {
        /// The output of `git version`.
        version: String,
    },
    /// The private git directory is in the workspace that it records.
    #[error("the git directory `{}` is inside the workspace", path.display())]
    Inside {
        /// The private git directory.
        path: PathBuf,
    },
    /// Git ran and failed.
    #[error("`git {verb}` failed: {stderr}")]
    Git {
        /// Git's command, such as `add`.
        verb: String,
        /// Git's error message, or how git ended.
        stderr: String,
    },
    /// The call was cancelled.
    #[error("stopped")]
    Stopped,
    /// A file is too large for a tree, or for a read from one.
    #[error(
        "`{path}` has {bytes} bytes, more than the limit of {limit} for a file (move it away, or let git ignore it)"
    )]
    TooLarge {
        /// The file.
        path: String,
        /// The size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Git would read a pipe, socket or device and wait for ever.
    #[error("`{path}` is a pipe, socket or device that git would read: remove it")]
    Blocked {
        /// The path of the entry.
        path: String,
    },
    /// A folder that must be empty has entries.
    #[error("`{}` is not empty", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// An entry that no tree records is in the place of a file.
    #[error("cannot restore `{path}`: {why}")]
    InTheWay {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// The name is not valid for a reference.
    #[error("invalid tree name `{name}`: use letters, digits, `-`, `_` and `/`")]
    Name {
        /// The name.
        name: String,
    },
    /// The file system refuses an operation.
    #[error("cannot {verb} `{}`", path.display())]
    Io {
        /// The operation.
        verb: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl TreesError {
    /// Returns a closure for `map_err`.
    pub(in crate::workspace) fn io(verb: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { verb, path, source }
    }

    /// Returns the error for output of git that cannot be parsed.
    pub(in crate::workspace) fn odd_answer(verb: &str) -> Self {
        Self::Git { verb: verb.to_owned(), stderr: "cannot parse its output".to_owned() }
    }
}
