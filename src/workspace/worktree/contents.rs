//! The work in a worktree that would be lost if it was removed.

use super::record::{WorktreeRecord, WorktreeStage};
use super::{Worktree, WorktreeError};
use crate::workspace::trees::git::GitFolder;
use crate::workspace::trees::names::{each, spelled};
use std::fs;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The work that is only in a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeContents {
    /// The worktree does not exist.
    Gone,
    /// Nothing: everything is committed on a branch or ignored by git.
    Nothing,
    /// Uncommitted paths, sorted; a folder ends in `/`.
    Uncommitted(Vec<String>),
    /// The id of a commit that is on no branch.
    Loose(String),
    /// Unknown, for this reason.
    Unknown(String),
}

impl WorktreeContents {
    /// Returns the answer for a worktree whose project folder is missing.
    pub fn without_project(project: &Path) -> Self {
        Self::Unknown(format!("its project {} is gone: move it back, or copy out what you need", project.display()))
    }

    /// Returns the reason why the worktree must stay, as a clause; `None` if it may be removed.
    pub fn keeps(&self) -> Option<String> {
        const NAMED: usize = 5;
        match self {
            Self::Gone | Self::Nothing => None,
            Self::Uncommitted(paths) => {
                let named: Vec<&str> = paths.iter().take(NAMED).map(String::as_str).collect();
                let more = paths.len().saturating_sub(NAMED);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                Some(format!("it has uncommitted changes: {}{more}", named.join(", ")))
            }
            Self::Loose(commit) => {
                let short = commit.get(..12).unwrap_or(commit);
                Some(format!("it has a commit that is on no branch: {short}"))
            }
            Self::Unknown(why) => Some(format!("cannot check its content: {why}")),
        }
    }
}

/// Returns whether a new path is a cache that programs make without being asked. Losing it does no
/// harm.
fn is_cache(path: &str) -> bool {
    const NAMES: [&str; 5] = ["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".DS_Store"];
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    NAMES.contains(&name) || name.ends_with(".pyc")
}

impl WorktreeRecord {
    /// Returns the work in the worktree. Runs the user's git, but uses no git data from inside the
    /// worktree. No process may be at work in the worktree.
    ///
    /// # Errors
    /// [`WorktreeError`] if git cannot be run, or was stopped.
    pub async fn work(
        &self,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<WorktreeContents, WorktreeError> {
        let Worktree { folder, project, .. } = &self.worktree;
        if folder.symlink_metadata().is_err() {
            return Ok(WorktreeContents::Gone);
        }
        if self.stage == WorktreeStage::Making {
            return Ok(WorktreeContents::Nothing);
        }
        let Some(git_dir) = self.git_dir.as_ref().filter(|git_dir| git_dir.join("HEAD").is_file()) else {
            let why = format!("git no longer knows it in {}", project.display());
            return Ok(WorktreeContents::Unknown(why));
        };
        let git = self.worktree.git(scratch, env).within(folder);
        let git = git.with("GIT_DIR", git_dir).with("GIT_WORK_TREE", folder);
        // Never look inside submodules: git would run programs that they configure.
        let args =
            ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all"];
        let answer = git.run(&args, b"", usize::MAX, stop).await?;
        if answer.code != 0 {
            return Ok(WorktreeContents::Unknown(answer.stderr));
        }
        let entries =
            each(&answer.output).filter_map(|entry| Some((entry.starts_with(b"??"), spelled(entry.get(3..)?))));
        let work = entries.filter(|(is_new, path)| !(*is_new && is_cache(path)));
        let mut paths: Vec<String> = work.map(|(_, path)| path).collect();
        let is_filled = |path: &String| fs::read_dir(folder.join(path)).is_ok_and(|mut all| all.next().is_some());
        let submodules = self.worktree.submodules(&git, stop).await?;
        paths.extend(submodules.into_iter().filter(is_filled).map(|path| format!("{path}/")));
        if !paths.is_empty() {
            paths.sort();
            return Ok(WorktreeContents::Uncommitted(paths));
        }
        let commit = git.run(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], b"", 200, stop).await?;
        let branch = git.run(&["symbolic-ref", "--quiet", "HEAD"], b"", usize::MAX, stop).await?;
        let commit = String::from_utf8_lossy(&commit.output).trim().to_owned();
        if branch.code == 0 || commit.is_empty() {
            return Ok(WorktreeContents::Nothing);
        }
        let contains = format!("--contains={commit}");
        let named = git.run(&["for-each-ref", "--count=1", &contains], b"", 1000, stop).await?;
        Ok(if named.code == 0 && !named.output.is_empty() {
            WorktreeContents::Nothing
        } else {
            WorktreeContents::Loose(commit)
        })
    }
}

impl Worktree {
    /// Returns the folders of submodules, relative to the top. `git` is the git of the worktree.
    pub(super) async fn submodules(
        &self,
        git: &GitFolder,
        stop: &CancellationToken,
    ) -> Result<Vec<String>, WorktreeError> {
        let list = git.ask(&["ls-files", "-z", "--stage"], stop).await?;
        let path = |entry: &[u8]| {
            let at = entry.iter().position(|byte| *byte == b'\t')?;
            Some(spelled(entry.get(at + 1..)?))
        };
        Ok(each(&list).filter(|entry| entry.starts_with(b"160000 ")).filter_map(path).collect())
    }
}
