//! What is in a worktree that would be lost with it.

use super::record::{Record, Stage};
use super::{Worktree, WorktreeFault};
use crate::workspace::trees::git::Git;
use crate::workspace::trees::names::{each, spelled};
use std::fs;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// What is in a worktree and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// The worktree itself is not there.
    Gone,
    /// Nothing but what is committed on a branch, and what git ignores.
    Nothing,
    /// Paths that are not committed, sorted; a folder with `/` behind it.
    Uncommitted(Vec<String>),
    /// A commit that is on no branch.
    Loose(String),
    /// That cannot be told, for this reason.
    Unknown(String),
}

impl Work {
    /// What can be said where the project is not in its place.
    pub fn without_project(project: &Path) -> Self {
        Self::Unknown(format!("its project {} is gone: move it back, or take from it what you need", project.display()))
    }

    /// Why the worktree is not removed, a clause; `None` where it may be.
    pub fn keeps(&self) -> Option<String> {
        const NAMED: usize = 5;
        match self {
            Self::Gone | Self::Nothing => None,
            Self::Uncommitted(paths) => {
                let named: Vec<&str> = paths.iter().take(NAMED).map(String::as_str).collect();
                let more = paths.len().saturating_sub(NAMED);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                Some(format!("it has work that is not committed: {}{more}", named.join(", ")))
            }
            Self::Loose(commit) => {
                let short = commit.get(..12).unwrap_or(commit);
                Some(format!("it has a commit that is on no branch: {short}"))
            }
            Self::Unknown(why) => Some(format!("what is in it cannot be told: {why}")),
        }
    }
}

/// Returns whether a new path is a cache that programs make by themselves, of which nothing is lost.
fn is_cache(path: &str) -> bool {
    const NAMES: [&str; 5] = ["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".DS_Store"];
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    NAMES.contains(&name) || name.ends_with(".pyc")
}

impl Record {
    /// What is in the worktree. The user's git is asked about it, and believes nothing that stands in it: nobody may be at work there.
    ///
    /// # Errors
    /// [`WorktreeFault`] when git cannot be run, or was stopped.
    pub async fn work(
        &self,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<Work, WorktreeFault> {
        let Worktree { folder, project, .. } = &self.worktree;
        if folder.symlink_metadata().is_err() {
            return Ok(Work::Gone);
        }
        if self.stage == Stage::Making {
            return Ok(Work::Nothing);
        }
        let Some(git_dir) = self.git_dir.as_ref().filter(|git_dir| git_dir.join("HEAD").is_file()) else {
            let why = format!("git knows it no more in {}", project.display());
            return Ok(Work::Unknown(why));
        };
        let git = self.worktree.git(scratch, env).within(folder);
        let git = git.with("GIT_DIR", git_dir).with("GIT_WORK_TREE", folder);
        // Never inside of submodules: git would run there what stands in them.
        let args =
            ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all"];
        let answer = git.run(&args, b"", usize::MAX, stop).await?;
        if answer.code != 0 {
            return Ok(Work::Unknown(answer.said));
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
            return Ok(Work::Uncommitted(paths));
        }
        let commit = git.run(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], b"", 200, stop).await?;
        let branch = git.run(&["symbolic-ref", "--quiet", "HEAD"], b"", usize::MAX, stop).await?;
        let commit = String::from_utf8_lossy(&commit.output).trim().to_owned();
        if branch.code == 0 || commit.is_empty() {
            return Ok(Work::Nothing);
        }
        let contains = format!("--contains={commit}");
        let named = git.run(&["for-each-ref", "--count=1", &contains], b"", 1000, stop).await?;
        Ok(if named.code == 0 && !named.output.is_empty() { Work::Nothing } else { Work::Loose(commit) })
    }
}

impl Worktree {
    /// The folders of submodules, from the top. `git` is that of the worktree.
    pub(super) async fn submodules(&self, git: &Git, stop: &CancellationToken) -> Result<Vec<String>, WorktreeFault> {
        let list = git.ask(&["ls-files", "-z", "--stage"], stop).await?;
        let path = |entry: &[u8]| {
            let at = entry.iter().position(|byte| *byte == b'\t')?;
            Some(spelled(entry.get(at + 1..)?))
        };
        Ok(each(&list).filter(|entry| entry.starts_with(b"160000 ")).filter_map(path).collect())
    }
}
