//! What is written down of a worktree, beside it: `NAME.json`.

use super::fault::make_folder;
use super::{Worktree, WorktreeFault};
use crate::id::RunId;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What is known of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Whose it is.
    pub run: RunId,
    /// Where it is.
    pub worktree: Worktree,
    /// The commit that it is made from.
    pub base: String,
    /// How far it is.
    pub stage: Stage,
    /// Its git directory, inside of the repository's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_dir: Option<PathBuf>,
}

/// How far a worktree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Nobody has worked in it: whatever is there is git's.
    Making,
    /// Somebody may have.
    Ready,
}

impl Record {
    /// Reads the record beside the [outer](Worktree::outer) folder of a worktree.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn read(outer: &Path) -> Result<Option<Self>, WorktreeFault> {
        let path = beside(outer);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(WorktreeFault::io("read", &path))?,
        };
        let record = serde_json::from_slice(&text);
        record.map(Some).map_err(|error| WorktreeFault::Unclear { path, why: error.to_string() })
    }

    /// Writes it, whole or not at all, and safe from a crash of the machine.
    pub(super) fn write(&self) -> Result<(), WorktreeFault> {
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
        put().map_err(WorktreeFault::io("write", path))
    }

    /// Forgets the worktree.
    pub(super) fn forget(&self) -> Result<(), WorktreeFault> {
        let path = beside(self.worktree.outer());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(WorktreeFault::io("remove", path)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The path of the record on the worktree in a folder.
pub(super) fn beside(outer: &Path) -> PathBuf {
    let mut name: OsString = outer.file_name().unwrap_or_default().to_owned();
    name.push(".json");
    outer.with_file_name(name)
}
