//! What a state of files has, or hides, that honest work seldom needs: told to whoever judges it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One such thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Oddity {
    /// Where, spelled as [`super::Entry::path`].
    pub path: String,
    /// What is odd about it.
    pub what: Oddness,
}

/// What is odd about a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Oddness {
    /// A link that leads out of the workspace, at once or by others.
    LinkOut,
    /// A folder that is a repository of its own; its files are in the tree as others are.
    Repository,
    /// A pipe, socket or device; it is in no tree.
    Special,
    /// A folder or file that may not be read; what it holds is in no tree.
    Unreadable,
    /// A name that some system takes for `.git`; it is in no tree.
    LikeGit,
    /// A name that is the same as this one where capitals do not count.
    SameButForCase(String),
}

impl fmt::Display for Oddness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkOut => f.write_str("a link that leads out of the workspace"),
            Self::Repository => f.write_str("a repository inside the workspace"),
            Self::Special => f.write_str("a pipe, socket or device"),
            Self::Unreadable => f.write_str("it may not be read"),
            Self::LikeGit => f.write_str("a name that some systems take for `.git`"),
            Self::SameButForCase(other) => write!(f, "differs only in capitals from `{other}`"),
        }
    }
}
