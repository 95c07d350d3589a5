//! Changes between two trees, as the policy looks at them.

/// A path that differs between two trees. A file that was moved is removed and added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content is another, or it is another kind of thing: a link in the place of a file.
    Modified,
    /// It is gone.
    Removed,
    /// Whether it can be run is another.
    ModeChanged,
}

/// Which of two trees is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The tree that was there before the run.
    Base,
    /// The tree that is to be judged.
    Candidate,
}

impl ChangeKind {
    /// The word of findings.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "changed",
            Self::Removed => "removed",
            Self::ModeChanged => "changed (its mode)",
        }
    }
}
