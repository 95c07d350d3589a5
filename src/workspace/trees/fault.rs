//! Why the trees of a workspace could not be taken, compared or brought back.

use std::io;
use std::path::PathBuf;

/// What could not be done with git's trees. A path of the workspace is spelled as [`super::Entry`] says.
#[derive(Debug, thiserror::Error)]
pub enum TreesFault {
    /// There is none in the search path, or it does not start.
    #[error("git cannot be run: {why} (install git 2.30 or newer)")]
    NoGit {
        /// What the system says.
        why: String,
    },
    /// It lacks what is used here.
    #[error("`{version}` is too old: git 2.30 or newer is needed")]
    OldGit {
        /// What `git version` says.
        version: String,
    },
    /// The private directory would be a part of what it looks at.
    #[error("the git directory `{}` is inside the workspace", path.display())]
    Inside {
        /// The private directory.
        path: PathBuf,
    },
    /// Git ran and said no.
    #[error("`git {verb}` failed: {said}")]
    Git {
        /// Its first argument.
        verb: String,
        /// What it said, or how it ended.
        said: String,
    },
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
    /// More than is taken into a tree, or read from one.
    #[error(
        "`{path}` has {bytes} bytes, more than the {limit} a file may have here (move it away, or have git ignore it)"
    )]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Git would wait for ever.
    #[error("`{path}` is a pipe, socket or device, and git would read it: remove it")]
    Blocked {
        /// Where it is.
        path: String,
    },
    /// There is something where a fresh folder was to be made.
    #[error("`{}` is not empty", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// Something that no tree knows stands where a file of the tree belongs.
    #[error("`{path}` cannot be put back: {why}")]
    InTheWay {
        /// The file.
        path: String,
        /// What is there.
        why: String,
    },
    /// A name that would be something else in a git directory.
    #[error("`{name}` is no name to keep a tree under: letters, digits, `-`, `_` and `/` are")]
    Name {
        /// The name.
        name: String,
    },
    /// The file system says no.
    #[error("cannot {verb} `{}`", path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// Where.
        path: PathBuf,
        /// What it says.
        #[source]
        source: io::Error,
    },
}

impl TreesFault {
    /// For `map_err`.
    pub(in crate::workspace) fn io(verb: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { verb, path, source }
    }

    /// Git was asked, and what came is not what it says it gives.
    pub(in crate::workspace) fn odd_answer(verb: &str) -> Self {
        Self::Git { verb: verb.to_owned(), said: "its answer cannot be read".to_owned() }
    }
}
