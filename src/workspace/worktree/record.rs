//! The record of a worktree, in the file `NAME.json` beside it.

use super::error::make_folder;
use super::{Worktree, WorktreeError};
use crate::id::RunId;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The record of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorktreeRecord {
    /// The run to which the worktree belongs.
    pub run: RunId,
    /// The worktree.
    pub worktree: Worktree,
    /// The commit from which the worktree is made.
    pub base: String,
    /// The progress of making the worktree.
    pub stage: WorktreeStage,
    /// The worktree's own git directory, inside the repository's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_dir: Option<PathBuf>,
}

/// The progress of making a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorktreeStage {
    /// Nothing but git has written to the worktree.
    Making,
    /// The worktree is complete; an agent may have worked in it.
    Ready,
}

impl WorktreeRecord {
    /// Reads the record beside the [outer](Worktree::outer) folder of a worktree; `None` if there
    /// is none.
    ///
    /// # Errors
    /// If the record cannot be read or parsed.
    pub fn read(outer: &Path) -> Result<Option<Self>, WorktreeError> {
        let path = beside(outer);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(WorktreeError::io("read", &path))?,
        };
        let record = serde_json::from_slice(&text);
        record.map(Some).map_err(|error| WorktreeError::Unclear { path, why: error.to_string() })
    }

    /// Writes the record completely or not at all, and syncs it to the disk.
    pub(super) fn write(&self) -> Result<(), WorktreeError> {
        let path = beside(self.worktree.outer());
        let all = self.worktree.all();
        make_folder(all)?;
        let text = serde_json::to_vec(self).map_err(std::io::Error::from);
        let put = || -> std::io::Result<()> {
            let mut file = NamedTempFile::new_in(all)?;
            file.write_all(&text?)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            File::open(all)?.sync_all()
        };
        put().map_err(WorktreeError::io("write", path))
    }

    /// Removes the record.
    pub(super) fn forget(&self) -> Result<(), WorktreeError> {
        let path = beside(self.worktree.outer());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(WorktreeError::io("remove", path)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Returns the path of the record for the outer folder of a worktree.
pub(super) fn beside(outer: &Path) -> PathBuf {
    let mut name: OsString = outer.file_name().unwrap_or_default().to_owned();
    name.push(".json");
    outer.with_file_name(name)
}
