//! Writes trees into empty folders. The times of the files show builds what differs from the base,
//! and nothing else.

use super::names::with_folders;
use super::take::native;
use super::{Inner, LINK, TreeChangeKind, Trees, TreesError};
use crate::id::TreeId;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The modification time of everything that equals the base, in seconds: 2001-09-09T01:46:40Z.
const LONG_AGO: i64 = 1_000_000_000;

impl Trees {
    /// Writes a tree into a folder that is empty or does not exist. A file that equals the one in
    /// `base`, or a folder with the same names, gets the time 2001-09-09T01:46:40Z. All others get
    /// the time of the export, so builds rebuild them.
    ///
    /// # Errors
    /// [`TreesError`] if git or the file system fails, or the folder is not empty.
    pub async fn export(
        &self,
        tree: &TreeId,
        base: &TreeId,
        into: &Path,
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        self.0.export(tree, base, into, None, stop).await
    }

    /// Writes a tree like [`Trees::export`], and an index of it to `index`, for a repository in
    /// that folder.
    ///
    /// # Errors
    /// As for [`Trees::export`].
    pub async fn export_with_index(
        &self,
        tree: &TreeId,
        base: &TreeId,
        into: &Path,
        index: &Path,
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        self.0.export(tree, base, into, Some(index), stop).await
    }
}

impl Inner {
    pub(super) async fn export(
        &self,
        tree: &TreeId,
        base: &TreeId,
        into: &Path,
        index: Option<&Path>,
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        let into = fresh(into)?;
        let changes = self.changes(base, tree, stop).await?;
        let entries = self.entries(tree, stop).await?;
        let exported = self.scratch.path().join("exported");
        let git = self.git.with("GIT_INDEX_FILE", index.unwrap_or(&exported)).within(&into);
        {
            let _one_at_a_time = self.state.lock().await;
            git.ask(&["read-tree", tree.as_str()], stop).await?;
            git.ask(&["checkout-index", "--all", "--quiet"], stop).await?;
        }
        if changes.iter().any(|change| [change.from_mode, change.to_mode].contains(&LINK)) {
            // Builds follow links: an old file behind a new link would look as if it was already
            // built.
            return Ok(());
        }
        let touched: BTreeSet<String> = changes.iter().map(|change| change.path.clone()).collect();
        let named = changes.iter().filter(|it| matches!(it.kind, TreeChangeKind::Added | TreeChangeKind::Removed));
        let renamed: BTreeSet<String> =
            named.flat_map(|it| with_folders(&it.path).skip(1)).map(str::to_owned).collect();
        let is_base = changes.is_empty();
        self.run_blocking(move || {
            let files = entries.iter().map(|entry| entry.path.as_str());
            for path in files.clone().filter(|path| !touched.contains(*path)) {
                age(&into.join(native(path)))?;
            }
            let mut folders = BTreeSet::new();
            for path in files {
                // The parents of a known folder are known too.
                let _ = with_folders(path).skip(1).find(|folder| !folders.insert((*folder).to_owned()));
            }
            for folder in folders.difference(&renamed) {
                age(&into.join(native(folder)))?;
            }
            if renamed.is_empty() && (is_base || !touched.iter().any(|path| !path.contains('/'))) {
                age(&into)?;
            }
            Ok(())
        })
        .await
    }
}

/// Makes a folder that must be empty, and returns its path without links.
pub(super) fn fresh(into: &Path) -> Result<std::path::PathBuf, TreesError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(into);
    made.map_err(TreesError::io("make", into))?;
    let into = into.canonicalize().map_err(TreesError::io("open", into))?;
    match fs::read_dir(&into).map_err(TreesError::io("read", &into))?.next() {
        None => Ok(into),
        Some(_) => Err(TreesError::NotEmpty { path: into }),
    }
}

fn age(path: &Path) -> Result<(), TreesError> {
    let time = Timespec { tv_sec: LONG_AGO, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    let done = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    done.map_err(|error| TreesError::io("set the time of", path)(error.into()))
}
