//! All worktrees of a project that have a record, and the folders beside them that have none.

use super::record::beside;
use super::remove::sweep;
use super::{WorktreeError, WorktreeRecord};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;
use walkdir::WalkDir;

/// A worktree, or a folder in the place of a worktree.
#[derive(Debug)]
pub struct ListedWorktree {
    /// The name of the worktree.
    pub name: String,
    /// The folder of the worktree, which may be missing. Without a record, the folder found in its
    /// place.
    pub folder: PathBuf,
    /// The record; `None` if none exists.
    pub record: Result<Option<WorktreeRecord>, WorktreeError>,
    /// The time at which the record was last written; without a record, the folder's.
    pub since: Option<SystemTime>,
}

/// Returns the worktrees in the folder `all` of a project, sorted by name. Also erases worktrees
/// whose removal was interrupted.
///
/// # Errors
/// [`WorktreeError`] if the folder cannot be read. A missing folder counts as empty.
pub fn all(all: &Path, stop: &CancellationToken) -> Result<Vec<ListedWorktree>, WorktreeError> {
    let entries = match fs::read_dir(all) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(WorktreeError::io("read the folder", all))?,
    };
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match name.strip_suffix(".json") {
            _ if name.starts_with('.') => {} // being made or removed
            Some(name) => folders.push(all.join(name)),
            None if is_folder => folders.push(entry.path()),
            None => {}
        }
    }
    sweep(all, stop);
    folders.sort();
    folders.dedup();
    let listed = |outer: PathBuf| {
        let meta = fs::metadata(beside(&outer)).or_else(|_| fs::metadata(&outer));
        let since = meta.and_then(|meta| meta.modified()).ok();
        let record = WorktreeRecord::read(&outer);
        let name = outer.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder =
            record.as_ref().ok().and_then(Option::as_ref).map_or(outer, |record| record.worktree.folder.clone());
        ListedWorktree { name, folder, record, since }
    };
    Ok(folders.into_iter().map(listed).collect())
}

/// Returns the disk space of the files in a folder, in bytes.
pub fn bytes(folder: &Path) -> u64 {
    const BLOCK: u64 = 4096;
    let files = WalkDir::new(folder).into_iter().flatten().filter_map(|entry| entry.metadata().ok());
    files.filter(|meta| meta.is_file()).map(|meta| meta.len().next_multiple_of(BLOCK)).fold(0, u64::saturating_add)
}
