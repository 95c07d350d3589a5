//! Restores files of the workspace from a tree. Folders are opened one by one through directory
//! handles, so a symbolic link cannot lead out of the workspace, even if it appears during the
//! restore. A file has its old or its new content at any time, never a part of it.

use super::names::{listed, with_folders};
use super::take::native;
use super::{Inner, LINK, REPOSITORY, TreeChange, TreesError};
use crate::id::TreeId;
use crate::workspace::jail::{JailEntryKind, OpenFolder};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

impl Inner {
    pub(super) async fn put_back(
        &self,
        tree: &TreeId,
        paths: Option<&[String]>,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        self.unblock().await?;
        let before = self.take_plain(stop).await?;
        let mut changes = self.changes(&before, tree, stop).await?;
        if let Some(paths) = paths {
            let paths: BTreeSet<String> = paths.iter().map(|path| path.trim_end_matches('/').to_owned()).collect();
            changes.retain(|change| super::look::is_within(&change.path, &paths));
        }
        changes.retain(|change| change.from_mode != REPOSITORY && change.to_mode != REPOSITORY);
        if changes.is_empty() {
            return Ok(before);
        }
        let source =
            tempfile::tempdir_in(self.scratch.path()).map_err(TreesError::io("write in", self.scratch.path()))?;
        let index = source.path().with_extension("index");
        let git = self.git.with("GIT_INDEX_FILE", &index).within(source.path());
        git.ask(&["read-tree", tree.as_str()], stop).await?;
        let wanted = changes.iter().filter(|change| change.to_mode != 0).map(|change| change.path.as_str());
        git.tell(&["checkout-index", "--quiet", "-z", "--stdin"], &listed(wanted), stop).await?;
        let root = self.root.clone();
        self.run_blocking(move || {
            let root = OpenFolder::open_root(&root).map_err(TreesError::io("open", root))?;
            // Removals come first: a file may take the place of a folder, or a folder that of a
            // file.
            for change in changes.iter().rev().filter(|change| change.to_mode == 0) {
                remove(&root, &change.path).map_err(in_the_way(change))?;
            }
            for change in changes.iter().filter(|change| change.to_mode != 0) {
                write_entry(&root, change, &source.path().join(native(&change.path))).map_err(in_the_way(change))?;
            }
            Ok(())
        })
        .await?;
        let _ignored = fs::remove_file(index); // the scratch folder is removed later anyway
        Ok(before)
    }
}

/// Removes an entry that is not a folder, and the folders that it leaves empty.
pub(super) fn remove_at(root: &Path, path: &str) -> Result<(), TreesError> {
    let gone = OpenFolder::open_root(root).and_then(|folder| remove(&folder, path));
    gone.map_err(|error| TreesError::InTheWay { path: path.to_owned(), why: error.to_string() })
}

/// Removes a file, and the folders that it leaves empty.
fn remove(root: &OpenFolder, path: &str) -> io::Result<()> {
    let mut name = native(path);
    for (depth, _) in with_folders(path).enumerate() {
        let parent = name.parent().unwrap_or(Path::new("")).to_owned();
        let done = folder(root, &parent, false).and_then(|folder| {
            let last = name.file_name().unwrap_or(OsStr::new(""));
            if depth == 0 { folder.remove(last) } else { folder.remove_folder(last) }
        });
        match done {
            Err(error) if depth > 0 && error.kind() == ErrorKind::DirectoryNotEmpty => return Ok(()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => name = parent,
        }
    }
    Ok(())
}

/// Writes the file or link of a change from its copy at `source`.
fn write_entry(root: &OpenFolder, change: &TreeChange, source: &Path) -> io::Result<()> {
    let path = native(&change.path);
    let folder = folder(root, path.parent().unwrap_or(Path::new("")), true)?;
    let name = path.file_name().unwrap_or(OsStr::new(""));
    if change.to_mode == LINK {
        return folder.put_link(name, fs::read_link(source)?.as_os_str());
    }
    let old = folder.metadata(name)?.filter(|old| old.kind == JailEntryKind::File).map(|old| old.mode);
    let may_run = change.to_mode & 0o100 != 0;
    let mode_if_new = if may_run { 0o777 } else { 0o666 };
    // An existing file keeps its other mode bits. If the tree's file is executable, each class of
    // users with the read bit gets the execute bit; otherwise all execute bits are cleared.
    let mode_if_existing = old.map(|old| if may_run { old | ((old & 0o444) >> 2) } else { old & !0o111 });
    folder.put(name, &fs::read(source)?, mode_if_new, mode_if_existing)
}

fn folder(root: &OpenFolder, path: &Path, make: bool) -> io::Result<OpenFolder> {
    path.components().try_fold(root.again()?, |folder, name| {
        let name = OsStr::from_bytes(name.as_os_str().as_bytes());
        if make { folder.make(name) } else { folder.folder(name) }
    })
}

fn in_the_way(change: &TreeChange) -> impl FnOnce(io::Error) -> TreesError {
    let path = change.path.clone();
    move |error| TreesError::InTheWay { path, why: error.to_string() }
}
