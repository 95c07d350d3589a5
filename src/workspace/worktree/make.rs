//! Makes the worktree of a run, or finds it if an earlier process made it. fledge writes the record
//! first, then makes the worktree, then marks the record as ready.

use super::checkout_state::empty;
use super::error::make_folder;
use super::record::{WorktreeRecord, WorktreeStage};
use super::remove::sweep;
use super::worktree_lock::WorktreeLock;
use super::{Worktree, WorktreeError};
use crate::fail_point::reach;
use crate::id::RunId;
use crate::workspace::trees::TreesError;
use crate::workspace::trees::git::GitFolder;
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The maximum number of times that fledge asks git to add a worktree. Another process that makes a
/// worktree of the same repository can make git fail.
const TRIES: u32 = 5;
/// Lets several processes write the files of a checkout; git's default is one. A large checkout
/// mostly waits for the disk.
const TOGETHER: &str = "checkout.workers=4";

/// The most bytes of the names of branches and tags in which to look for a similar one.
const MOST_REFS: usize = 64 * 1024;

/// A worktree that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeWorktree {
    /// The commit of the worktree.
    pub base: String,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

impl Worktree {
    /// Makes the worktree unless it exists. If an earlier process was interrupted, starts again
    /// from the same commit. `env` is the user's environment; `scratch` is a folder for git's input
    /// and output.
    ///
    /// # Errors
    /// [`WorktreeError`]. Another try continues from the record.
    pub async fn make(
        &self,
        run: &RunId,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<MadeWorktree, WorktreeError> {
        sweep(self.all(), stop);
        let record = WorktreeRecord::read(self.outer())?;
        if let Some(record) = &record
            && (record.run != *run || record.worktree != *self)
        {
            return Err(WorktreeError::InTheWay { folder: self.folder.clone() });
        }
        if let Some(record) = record.as_ref().filter(|record| record.stage == WorktreeStage::Ready) {
            self.must_stand()?;
            return Ok(MadeWorktree { base: record.base.clone(), notes: Vec::new() });
        }
        // A partial clone may lack objects. Git fetches them, as for any checkout of the user.
        let git = self.git(scratch, env).with("GIT_NO_LAZY_FETCH", Path::new("0"));
        let common = self.common(&git, stop).await?;
        if record.is_none() && self.outer().symlink_metadata().is_ok() {
            return Err(WorktreeError::InTheWay { folder: self.outer().to_owned() });
        }
        let base = match &record {
            Some(record) => record.base.clone(),
            None if self.tip(&git, stop).await?.is_some() => {
                return Err(WorktreeError::BranchTaken { branch: self.branch.clone() });
            }
            None => self.resolve(&git, stop).await?,
        };
        if record.is_some() {
            self.unlock(&common);
        }
        let mut record = WorktreeRecord {
            run: run.clone(),
            worktree: self.clone(),
            base,
            stage: WorktreeStage::Making,
            git_dir: None,
        };
        record.write()?;
        self.at("written")?;
        if let Err(fault) = self.add(&record, &git, &common, stop).await {
            if !matches!(fault, WorktreeError::Git(TreesError::Stopped)) {
                self.take_back(&record, &git, &common).await;
            }
            return Err(fault);
        }
        let notes = self.fill(&git, stop).await?;
        self.at("filled")?;
        let own = git.within(&self.folder).ask(&["rev-parse", "--absolute-git-dir"], stop).await?;
        record.git_dir = Some(PathBuf::from(String::from_utf8_lossy(&own).trim_end_matches('\n')));
        record.stage = WorktreeStage::Ready;
        record.write()?;
        self.at("ready")?;
        Ok(MadeWorktree { base: record.base, notes })
    }

    /// Checks that the worktree exists; returns its record.
    ///
    /// # Errors
    /// [`WorktreeError::Gone`] if it does not exist; others if the record cannot be read.
    pub fn must_stand(&self) -> Result<WorktreeRecord, WorktreeError> {
        let record = WorktreeRecord::read(self.outer())?.filter(|record| record.stage == WorktreeStage::Ready);
        let is_there = self.folder.join(".git").symlink_metadata().is_ok() && self.workspace().is_dir();
        record.filter(|_| is_there).ok_or_else(|| WorktreeError::Gone { folder: self.folder.clone() })
    }

    /// Removes the locks that a killed git has left on the worktree's branch, head and index. Only
    /// the process that resumes the run uses them, so no other git holds these locks.
    pub fn tidy(&self) {
        let Ok(Some(WorktreeRecord { git_dir: Some(own), .. })) = WorktreeRecord::read(self.outer()) else { return };
        if let Some(common) = own.ancestors().nth(2) {
            self.unlock(common);
        }
        for name in ["HEAD.lock", "index.lock"] {
            let _mostly_there_is_none = fs::remove_file(own.join(name));
        }
    }

    fn unlock(&self, common: &Path) {
        let _mostly_there_is_none = fs::remove_file(common.join(format!("{}.lock", self.full_branch())));
    }

    /// Returns the git directory that all worktrees of the repository share.
    pub(super) async fn common(&self, git: &GitFolder, stop: &CancellationToken) -> Result<PathBuf, WorktreeError> {
        let folder = self.project.clone();
        let is_bare = ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists());
        if is_bare && !folder.join(".git").exists() {
            return Err(WorktreeError::Bare { folder });
        }
        let answer = git.run(&["rev-parse", "--git-common-dir"], b"", usize::MAX, stop).await?;
        if answer.code != 0 {
            return Err(WorktreeError::NoRepository { folder });
        }
        let found = self.project.join(String::from_utf8_lossy(&answer.output).trim_end_matches('\n'));
        found.canonicalize().map_err(WorktreeError::io("open", found))
    }

    /// Returns the id of the commit for the worktree.
    pub(super) async fn resolve(&self, git: &GitFolder, stop: &CancellationToken) -> Result<String, WorktreeError> {
        let git = git.within(&self.origin);
        let commit = format!("{}^{{commit}}", self.from);
        let args = ["rev-parse", "--quiet", "--verify", "--end-of-options", &commit];
        let answer = git.run(&args, b"", usize::MAX, stop).await?;
        let id = String::from_utf8_lossy(&answer.output).trim().to_owned();
        if answer.code != 0 || id.is_empty() {
            if self.from == "HEAD" {
                return Err(WorktreeError::NoCommit);
            }
            let args = ["for-each-ref", "--count=1000", "--format=%(refname:short)"];
            let refs = git.run(&args, b"", MOST_REFS, stop).await?;
            let refs = String::from_utf8_lossy(&refs.output).into_owned();
            let near = crate::yaml::nearest(&self.from, refs.lines()).map(str::to_owned);
            return Err(WorktreeError::NoBase { rev: self.from.clone(), near });
        }
        if !self.inner.as_os_str().is_empty() {
            let folder = format!("{id}:{}", self.inner.display());
            let kind = git.run(&["cat-file", "-t", &folder], b"", usize::MAX, stop).await?;
            if kind.output.trim_ascii() != b"tree" {
                return Err(WorktreeError::NoFolder { rev: self.from.clone(), inner: self.inner.clone() });
            }
        }
        Ok(id)
    }

    /// Makes the folder `into` and writes the files of the future workspace to it, for inspection
    /// only. Returns the id of the commit.
    ///
    /// # Errors
    /// As for [`Self::make`] before it makes anything.
    pub async fn export(
        &self,
        into: &Path,
        env: &[(String, String)],
        scratch: &Path,
        stop: &CancellationToken,
    ) -> Result<String, WorktreeError> {
        let git = self.git(scratch, env).with("GIT_NO_LAZY_FETCH", Path::new("0"));
        let common = self.common(&git, stop).await?;
        let base = self.resolve(&git, stop).await?;
        make_folder(into)?;
        let git = git.within(into).with("GIT_DIR", &common).with("GIT_WORK_TREE", into);
        let git = git.with("GIT_INDEX_FILE", &scratch.join("index"));
        let tree = format!("{base}:{}", self.inner.display());
        git.ask(&["read-tree", &tree], stop).await?;
        git.ask(&["-c", TOGETHER, "checkout-index", "--all", "--quiet"], stop).await?;
        Ok(base)
    }

    /// Adds the worktree to the repository without files.
    async fn add(
        &self,
        record: &WorktreeRecord,
        git: &GitFolder,
        common: &Path,
        stop: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let folder = self.folder.to_string_lossy().into_owned();
        let args = [
            "-c",
            "worktree.useRelativePaths=false",
            "worktree",
            "add",
            "--quiet",
            "--no-checkout",
            "--no-track",
            "-b",
            &self.branch,
            &folder,
            &record.base,
        ];
        let _door = WorktreeLock::open(common, stop).await?;
        self.at("begun")?;
        let mut tries = 1;
        loop {
            self.clear(record, git, common, stop).await?;
            if self.tip(git, stop).await?.is_some() {
                return Err(WorktreeError::BranchTaken { branch: self.branch.clone() });
            }
            let answer = git.run(&args, b"", 0, stop).await?;
            match answer.code {
                0 => break,
                // Another process has half made or half removed a worktree.
                _ if tries < TRIES && answer.stderr.contains("worktrees/") => tries += 1,
                _ => return Err(answer.fault(&["worktree add"]).into()),
            }
        }
        self.at("added")
    }

    /// Writes the files of the commit into the worktree. Returns notes about files that are
    /// missing.
    async fn fill(&self, git: &GitFolder, stop: &CancellationToken) -> Result<Vec<String>, WorktreeError> {
        let git = git.within(&self.folder);
        git.ask(&["-c", TOGETHER, "reset", "--hard", "--quiet", "--no-recurse-submodules"], stop).await?;
        if !self.workspace().is_dir() {
            let (rev, inner) = (self.from.clone(), self.inner.clone()); // a sparse checkout leaves it out
            return Err(WorktreeError::NoFolder { rev, inner });
        }
        Ok(empty(&self.submodules(&git, stop).await?).into_iter().collect())
    }

    /// Undoes a failed start as far as possible. A later cleanup finds the rest by the record.
    async fn take_back(&self, record: &WorktreeRecord, git: &GitFolder, common: &Path) {
        let nobody_stops_this = CancellationToken::new();
        let Ok(_door) = WorktreeLock::open(common, &nobody_stops_this).await else { return };
        if self.clear(record, git, common, &nobody_stops_this).await.is_ok() {
            let _it_is_found_again = record.forget();
        }
    }

    /// Removes the remains of a worktree in which no agent has worked yet.
    async fn clear(
        &self,
        record: &WorktreeRecord,
        git: &GitFolder,
        common: &Path,
        stop: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let is_there = self.outer().symlink_metadata().is_ok();
        if is_there && record.stage == WorktreeStage::Making {
            fs::remove_dir_all(self.outer()).map_err(WorktreeError::io("remove", self.outer()))?;
        }
        self.unlink(common)?;
        self.delete_branch(&record.base, git, stop).await.map(drop)
    }

    /// A point at which a test can make this fail.
    pub(super) fn at(&self, how_far: &str) -> Result<(), WorktreeError> {
        reach("worktree", how_far).map_err(WorktreeError::io("make", &self.folder))
    }
}
