//! Removes worktrees without uncommitted work, and their branches if these have no new commits.
//! Uncommitted work is removed only on explicit request.

use super::contents::WorktreeContents;
use super::record::WorktreeRecord;
use super::worktree_lock::WorktreeLock;
use super::{Worktree, WorktreeError};
use crate::fail_point::reach;
use crate::workspace::trees::git::GitFolder;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;
use walkdir::WalkDir;

/// The prefix of the name of a worktree that is being removed.
const GONE: &str = ".gone-";

/// The result of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeLeftover {
    /// The reason why the worktree is still there, as a clause; `None` if it was removed.
    pub stays: Option<String>,
    /// True if the branch still exists. A branch with new commits stays.
    pub has_branch: bool,
}

impl WorktreeRecord {
    /// Removes the worktree, its ignored files and its record. If it has work that is nowhere else,
    /// it stays, unless `discard` is set. No process may be at work in it. After an interruption,
    /// another call completes the removal.
    ///
    /// # Errors
    /// [`WorktreeError`] if git or the file system fails.
    pub async fn remove(
        &self,
        discard: bool,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<WorktreeLeftover, WorktreeError> {
        let worktree = &self.worktree;
        let git = worktree.git(scratch, env);
        if !discard {
            let work = if worktree.project.is_dir() {
                self.work(env, scratch, stop).await?
            } else {
                WorktreeContents::without_project(&worktree.project)
            };
            let is_there = worktree.folder.symlink_metadata().is_ok();
            if let Some(why) = work.keeps().filter(|_| is_there) {
                let has_branch = !worktree.project.is_dir() || worktree.tip(&git, stop).await?.is_some();
                return Ok(WorktreeLeftover { stays: Some(why), has_branch });
            }
        }
        reach("worktree removal", "begun").map_err(WorktreeError::io("remove", &worktree.folder))?;
        let has_branch = match worktree.common(&git, stop).await {
            Ok(common) => {
                let _door = WorktreeLock::open(&common, stop).await?;
                self.put_aside()?;
                worktree.unlink(&common)?;
                self.at("unlinked")?;
                worktree.delete_branch(&self.base, &git, stop).await?
            }
            // Without a repository, only the record refers to the worktree.
            Err(WorktreeError::NoRepository { .. } | WorktreeError::Bare { .. }) => {
                self.put_aside()?;
                false
            }
            Err(WorktreeError::Git(_)) if !worktree.project.is_dir() => {
                self.put_aside()?;
                false
            }
            Err(fault) => return Err(fault),
        };
        self.at("unbranched")?;
        self.forget()?;
        self.at("forgotten")?;
        erase(&gone(worktree.outer()), stop);
        Ok(WorktreeLeftover { stays: None, has_branch })
    }

    /// Renames the folder in one step, so that no process finds it half removed.
    fn put_aside(&self) -> Result<(), WorktreeError> {
        let folder = self.worktree.outer();
        let run_blocking = gone(folder);
        match fs::rename(folder, &run_blocking) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {
                fs::remove_dir_all(&run_blocking).map_err(WorktreeError::io("remove", &run_blocking))?;
                fs::rename(folder, &run_blocking).map_err(WorktreeError::io("remove", folder))?;
            }
            done => done.map_err(WorktreeError::io("remove", folder))?,
        }
        self.at("aside")
    }

    fn at(&self, how_far: &str) -> Result<(), WorktreeError> {
        reach("worktree removal", how_far).map_err(WorktreeError::io("remove", &self.worktree.folder))
    }
}

impl Worktree {
    /// Removes git's data about the worktree, even if it is incomplete. The caller must hold the
    /// lock of the repository.
    pub(super) fn unlink(&self, common: &Path) -> Result<(), WorktreeError> {
        let all = common.join("worktrees");
        let own = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let end = format!("/{}/{own}/.git", self.name());
        // Git appends a number to a name that is taken, and writes `-` for characters that
        // references cannot have.
        let plain = |name: &str| name.replace(|c: char| !c.is_alphanumeric() && c != '_', "-");
        let is_named_so = |name: &str| {
            plain(name).strip_prefix(&plain(&own)).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
        };
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let leads = fs::read_to_string(entry.path().join("gitdir")).unwrap_or_default();
            let is_half_made = leads.is_empty() && is_named_so(&entry.file_name().to_string_lossy());
            if is_half_made || leads.trim_end().ends_with(&end) {
                fs::remove_dir_all(entry.path()).map_err(WorktreeError::io("remove", entry.path()))?;
            }
        }
        let _others_are_there = fs::remove_dir(all); // as git does with the last one
        Ok(())
    }

    /// Returns the commit of the branch; `None` if no branch exists.
    pub(super) async fn tip(&self, git: &GitFolder, stop: &CancellationToken) -> Result<Option<String>, WorktreeError> {
        let answer = git.run(&["rev-parse", "--quiet", "--verify", &self.full_branch()], b"", 200, stop).await?;
        let tip = String::from_utf8_lossy(&answer.output).trim().to_owned();
        Ok(Some(tip).filter(|tip| answer.code == 0 && !tip.is_empty()))
    }

    /// Deletes the branch of a removed worktree if it is at `commit` and not checked out. Returns
    /// whether the branch still exists.
    ///
    /// # Errors
    /// [`WorktreeError`] if git fails or the lock cannot be taken.
    pub async fn forget_branch(
        &self,
        commit: &str,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<bool, WorktreeError> {
        let git = self.git(scratch, env);
        let common = self.common(&git, stop).await?;
        let _door = WorktreeLock::open(&common, stop).await?;
        self.delete_branch(commit, &git, stop).await
    }

    /// Deletes the branch if it is still at `base` and not checked out elsewhere. Returns whether
    /// the branch still exists.
    pub(super) async fn delete_branch(
        &self,
        base: &str,
        git: &GitFolder,
        stop: &CancellationToken,
    ) -> Result<bool, WorktreeError> {
        let branch = self.full_branch();
        let asked = ["for-each-ref", "--count=1", "--format=%(objectname) %(worktreepath)", &branch];
        let answer = String::from_utf8_lossy(&git.ask(&asked, stop).await?).into_owned();
        match answer.trim_end_matches('\n').split_once(' ') {
            Some((tip, "")) if tip == base => {
                git.ask(&["update-ref", "-d", &branch, base], stop).await?;
                Ok(false)
            }
            found => Ok(found.is_some()),
        }
    }
}

/// Erases worktrees whose removal was interrupted.
pub(super) fn sweep(all: &Path, stop: &CancellationToken) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(GONE) {
            erase(&entry.path(), stop);
        }
    }
}

/// Returns the path of a worktree during its removal.
fn gone(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{GONE}{name}"))
}

/// Removes a folder until `stop` is cancelled. A later sweep removes the rest.
fn erase(folder: &Path, stop: &CancellationToken) {
    let entries = WalkDir::new(folder).contents_first(true).follow_links(false).into_iter().flatten();
    for entry in entries.take_while(|_| !stop.is_cancelled()) {
        let path = entry.path();
        let removed = if entry.file_type().is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        if removed.is_err() && !entry.file_type().is_dir() {
            open(path.parent());
            let _it_is_tried_again_next_time = fs::remove_file(path);
        }
    }
}

/// Restores the owner's access to a folder.
fn open(folder: Option<&Path>) {
    use std::os::unix::fs::PermissionsExt as _;
    if let Some(folder) = folder {
        let _removing_says_more = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    }
}
