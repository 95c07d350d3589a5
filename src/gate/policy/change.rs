//! Changes between two trees.

/// A path that differs between two trees. A moved file is one removed and one added path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// The kind of the change.
    pub kind: PathChangeKind,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathChangeKind {
    /// The path is new.
    Added,
    /// The content differs, or the type: a link may have replaced a file.
    Modified,
    /// The path no longer exists.
    Removed,
    /// Only the executable bit differs.
    ModeChanged,
}

/// One of the two compared trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeSide {
    /// The tree before the run.
    Base,
    /// The tree to be judged.
    Candidate,
}

impl PathChangeKind {
    /// Returns the word for the change in findings.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "changed",
            Self::Removed => "removed",
            Self::ModeChanged => "changed (its mode)",
        }
    }
}
