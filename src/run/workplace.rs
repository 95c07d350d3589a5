//! Where a run works that has a worktree for itself, and what is left of that when it is over.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// The worktree of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Workplace {
    /// Its top folder.
    pub path: String,
    /// The name of its branch, without `refs/heads/`.
    pub branch: String,
    /// The commit that it was made from.
    pub base: String,
    /// What became of it.
    pub state: WorkplaceState,
    /// Why it stays, a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether its branch is there; one without a commit of its own goes with the worktree.
    pub has_branch: bool,
}

/// What became of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkplaceState {
    /// The run is not over.
    InUse,
    /// It is there: something is in it that is nowhere else.
    Kept,
    /// It is there, and what is in it could not be looked at.
    Unclear,
    /// It is gone: all that was in it is committed.
    Removed,
}

impl Workplace {
    /// One that was made.
    pub fn made(folder: &Path, branch: &str, base: &str) -> Self {
        Self {
            path: folder.display().to_string(),
            branch: branch.to_owned(),
            base: base.to_owned(),
            state: WorkplaceState::InUse,
            why: None,
            has_branch: true,
        }
    }

    /// The same that stays.
    #[must_use]
    pub fn kept(self, why: String, has_branch: bool) -> Self {
        Self { state: WorkplaceState::Kept, why: Some(why), has_branch, ..self }
    }

    /// The same that stays since nobody could look into it.
    #[must_use]
    pub fn unclear(self, why: String) -> Self {
        Self { state: WorkplaceState::Unclear, ..self.kept(why, true) }
    }

    /// The same that is gone.
    #[must_use]
    pub fn removed(self, has_branch: bool) -> Self {
        Self { state: WorkplaceState::Removed, why: None, has_branch, ..self }
    }

    /// What became of it, for people.
    pub fn told(&self) -> String {
        let branch = if self.has_branch { format!(", its branch {} stays", self.branch) } else { String::new() };
        match (self.state, &self.why) {
            (WorkplaceState::Removed, _) => format!("removed{branch}"),
            (WorkplaceState::Kept | WorkplaceState::Unclear, Some(why)) => format!("{} stays: {why}", self.path),
            (WorkplaceState::Kept | WorkplaceState::Unclear | WorkplaceState::InUse, _) => self.path.clone(),
        }
    }
}
