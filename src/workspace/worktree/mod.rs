//! Worktrees of runs: linked to the user's repository, each on a branch of its own, in a folder apart from every checkout. What is made
//! is written down beside it before it is made, and forgotten after it is gone: a crash leaves nothing that nobody finds.
//!
//! ```text
//! NAME.json      what it is: whose, of which project, on which branch, from which commit
//! NAME/PROJECT   the worktree, named like the project's folder: some builds take their name from it
//! .gone-NAME/    one that holds nothing any more, on its way out
//! ```

mod beforehand;
mod door;
mod fault;
mod list;
mod look;
mod make;
mod record;
mod remove;

pub use beforehand::{Base, Uncommitted};
pub use fault::WorktreeFault;
pub use list::{Listed, all, bytes};
pub use look::Work;
pub use make::Made;
pub use record::{Record, Stage};
pub use remove::Left;

use super::trees::git::Git;
use crate::id::RunId;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The name of the folder with them, in that of a project.
pub const FOLDER: &str = "worktrees";
/// What the names of their branches begin with.
const BRANCHES: &str = "fledge/";
/// Characters of a title that a name has, and of a run's id: its end, which differs also where many runs begin at once.
const OF_TITLE: usize = 24;
const OF_RUN: usize = 8;

/// Where the worktree of a run is, and what it is made from. It may not be there yet, or no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worktree {
    /// Its top, a canonical path once it is there.
    pub folder: PathBuf,
    /// The name of its branch, without `refs/heads/`.
    pub branch: String,
    /// What it is made from: `HEAD`, or what was asked for.
    pub from: String,
    /// The folder in whose repository that is meant.
    pub origin: PathBuf,
    /// From the top of the repository to that folder; empty when that is the top.
    pub inner: PathBuf,
    /// The folder of the project whose run it is: a canonical path.
    pub project: PathBuf,
}

impl Worktree {
    /// The one of a run in `all`, which is the folder for those of its project. Nothing is asked of git yet.
    pub fn choose(all: &Path, run: &RunId, title: &str, from: Option<&str>, origin: &Path, project: &Path) -> Self {
        let name = name(title, run);
        let (top, inner) = at_its_top(origin);
        // The folder's name goes through git and this record, which are text.
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

    /// The folder in it that an agent works in: the same one that the project is in its repository.
    pub fn workspace(&self) -> PathBuf {
        if self.inner.as_os_str().is_empty() { self.folder.clone() } else { self.folder.join(&self.inner) }
    }

    /// The folder that is the run's own, with nothing but the worktree in it.
    pub fn outer(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// Its name, which is also the end of that of its branch.
    pub fn name(&self) -> String {
        self.outer().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn all(&self) -> &Path {
        self.outer().parent().unwrap_or(&self.folder)
    }

    fn full_branch(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// The user's git in their own checkout.
    fn git(&self, scratch: &Path, env: &[(String, String)]) -> Git {
        Git::of_user(&self.project, scratch, env)
    }
}

/// The project whose run a folder is the worktree of, or in the worktree of. `state` is where all projects' folders are.
pub fn project_of(state: &Path, folder: &Path) -> Option<PathBuf> {
    let state = state.canonicalize().ok()?;
    let mut names = folder.strip_prefix(&state).ok()?.components();
    let [project, all, name] = [names.next()?, names.next()?, names.next()?];
    if all != Component::Normal(FOLDER.as_ref()) {
        return None;
    }
    let record = Record::read(&state.join(project).join(all).join(name)).ok()??;
    Some(record.worktree.project)
}

/// A title as a part of a path and of a branch, and the end of an id.
fn name(title: &str, run: &RunId) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        if slug.len() == OF_TITLE {
            // No word is cut off but a long one.
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

/// The top of the repository that a folder is in, and the path from there to the folder.
fn at_its_top(folder: &Path) -> (&Path, PathBuf) {
    let is_top = |folder: &&Path| folder.join(".git").is_file() || folder.join(".git/HEAD").symlink_metadata().is_ok();
    let top = folder.ancestors().find(is_top).unwrap_or(folder);
    (top, folder.strip_prefix(top).map(Path::to_owned).unwrap_or_default())
}

#[cfg(test)]
mod tests;
