//! Worktrees of runs. Each one is linked to the user's repository, has its own branch, and is in a
//! folder apart from every checkout. fledge writes a record beside the worktree before it makes the
//! worktree, and removes the record only after the worktree is gone. So after a crash every
//! leftover can be found.
//!
//! ```text
//! NAME.json      the record: run, project, branch and commit
//! NAME/PROJECT   the worktree, named like the project's folder because some builds use the name
//! .gone-NAME/    a worktree without work that is being removed
//! ```

mod checkout_state;
mod contents;
mod error;
mod list;
mod make;
mod record;
mod remove;
mod worktree_lock;

pub use checkout_state::{CheckoutChanges, WorktreeBase};
pub use contents::WorktreeContents;
pub use error::WorktreeError;
pub use list::{ListedWorktree, all, bytes};
pub use make::MadeWorktree;
pub use record::{WorktreeRecord, WorktreeStage};
pub use remove::WorktreeLeftover;

use super::trees::git::GitFolder;
use crate::id::RunId;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The name of the folder for worktrees in the folder of a project.
pub const FOLDER: &str = "worktrees";
/// The prefix of the branches of worktrees.
const BRANCHES: &str = "fledge/";
/// The maximum number of characters of the title in a name, and the number of characters from the
/// end of the run's id. The end differs even if many runs begin at once.
const OF_TITLE: usize = 24;
const OF_RUN: usize = 8;

/// The folder and the origin of a run's worktree, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worktree {
    /// The top folder of the worktree, a canonical path once it exists.
    pub folder: PathBuf,
    /// The name of the branch, without `refs/heads/`.
    pub branch: String,
    /// The revision to start from: `HEAD`, or the one that was asked for.
    pub from: String,
    /// The folder in whose repository `from` is resolved.
    pub origin: PathBuf,
    /// The path from the top of the repository to `origin`; empty if `origin` is the top.
    pub inner: PathBuf,
    /// The folder of the run's project, a canonical path.
    pub project: PathBuf,
}

impl Worktree {
    /// Returns the worktree for a run in the folder `all` of its project. Does not run git.
    pub fn choose(all: &Path, run: &RunId, title: &str, from: Option<&str>, origin: &Path, project: &Path) -> Self {
        let name = name(title, run);
        let (top, inner) = at_its_top(origin);
        // Git and the record need the folder's name as text.
        let own = top.file_name().and_then(OsStr::to_str).unwrap_or(&name);
        Self {
            folder: all.join(&name).join(own),
            branch: format!("{BRANCHES}{name}"),
            from: from.unwrap_or("HEAD").to_owned(),
            origin: origin.to_owned(),
            inner,
            project: project.to_owned(),
        }
    }

    /// Returns the folder that the agent works in: the project's folder within the worktree.
    pub fn workspace(&self) -> PathBuf {
        if self.inner.as_os_str().is_empty() { self.folder.clone() } else { self.folder.join(&self.inner) }
    }

    /// Returns the run's own folder, which contains only the worktree.
    pub fn outer(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// Returns the name of the worktree, which is also the end of the branch name.
    pub fn name(&self) -> String {
        self.outer().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn all(&self) -> &Path {
        self.outer().parent().unwrap_or(&self.folder)
    }

    fn full_branch(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Returns the user's git in the user's own checkout.
    fn git(&self, scratch: &Path, env: &[(String, String)]) -> GitFolder {
        GitFolder::of_user(&self.project, scratch, env)
    }
}

/// Returns the project of the worktree that is, or contains, `folder`. `state` contains the folders
/// of all projects.
pub fn project_of(state: &Path, folder: &Path) -> Option<PathBuf> {
    let state = state.canonicalize().ok()?;
    let mut names = folder.strip_prefix(&state).ok()?.components();
    let [project, all, name] = [names.next()?, names.next()?, names.next()?];
    if all != Component::Normal(FOLDER.as_ref()) {
        return None;
    }
    let record = WorktreeRecord::read(&state.join(project).join(all).join(name)).ok()??;
    Some(record.worktree.project)
}

/// Returns a name for paths and branches: the title and the end of the run's id.
fn name(title: &str, run: &RunId) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        if slug.len() == OF_TITLE {
            // Cut between words, unless the last word is long.
            let whole = slug.rfind('-').filter(|at| c.is_ascii_alphanumeric() && *at > OF_TITLE / 2);
            slug.truncate(whole.unwrap_or(OF_TITLE));
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = Some(slug.trim_end_matches('-')).filter(|slug| !slug.is_empty()).unwrap_or("run");
    let id: Vec<char> = run.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    let end: String = id[id.len().saturating_sub(OF_RUN)..].iter().collect();
    format!("{slug}-{end}")
}

/// Returns the top of the repository of a folder, and the path from the top to the folder.
fn at_its_top(folder: &Path) -> (&Path, PathBuf) {
    let is_top = |folder: &&Path| folder.join(".git").is_file() || folder.join(".git/HEAD").symlink_metadata().is_ok();
    let top = folder.ancestors().find(is_top).unwrap_or(folder);
    (top, folder.strip_prefix(top).map(Path::to_owned).unwrap_or_default())
}

#[cfg(test)]
mod tests;
