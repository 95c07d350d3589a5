//! Worktree that a run has for itself, and its state after the run.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// The worktree of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Workplace {
    /// The top folder of the worktree.
    pub path: String,
    /// The name of the branch, without `refs/heads/`.
    pub branch: String,
    /// The commit that it was created from.
    pub base: String,
    /// The current state.
    pub state: WorkplaceState,
    /// The reason why the worktree was kept, as a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// True if the branch exists. A branch without its own commit is removed with the worktree.
    pub has_branch: bool,
}

/// The state of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkplaceState {
    /// The run has not ended.
    InUse,
    /// It exists, because it contains something that exists nowhere else.
    Kept,
    /// It exists, but fledge could not inspect its content.
    Unclear,
    /// It was removed, since all of its content is committed.
    Removed,
}

impl Workplace {
    /// Returns a worktree that was just created.
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

    /// Marks the worktree as kept.
    #[must_use]
    pub fn kept(self, why: String, has_branch: bool) -> Self {
        Self { state: WorkplaceState::Kept, why: Some(why), has_branch, ..self }
    }

    /// Marks the worktree as kept because fledge could not inspect it.
    #[must_use]
    pub fn unclear(self, why: String) -> Self {
        Self { state: WorkplaceState::Unclear, ..self.kept(why, true) }
    }

    /// Marks the worktree as removed.
    #[must_use]
    pub fn removed(self, has_branch: bool) -> Self {
        Self { state: WorkplaceState::Removed, why: None, has_branch, ..self }
    }

    /// Describes the state of the worktree for people.
    pub fn description(&self) -> String {
        let branch = if self.has_branch { format!(", its branch {} stays", self.branch) } else { String::new() };
        match (self.state, &self.why) {
            (WorkplaceState::Removed, _) => format!("removed{branch}"),
            (WorkplaceState::Kept | WorkplaceState::Unclear, Some(why)) => format!("{} stays: {why}", self.path),
            (WorkplaceState::Kept | WorkplaceState::Unclear | WorkplaceState::InUse, _) => self.path.clone(),
        }
    }
}
