//! Checkouts of bases. fledge checks out the files of a base once and never writes them again. Each
//! room has an overlayfs layer over them, so its cost depends on how much its tree differs from the
//! base.

use super::index::with_stat;
use crate::id::TreeId;
use crate::process::sandbox;
use crate::workspace::trees::names::listed;
use crate::workspace::trees::{LINK, TreeChange, Trees, TreesError, text_path};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

const FILES: &str = "files";
const INDEX: &str = "index";
/// The file that marks a complete checkout. Each room holds a shared lock on it.
const WHOLE: &str = "whole";
/// The modification time of a base's files, in seconds: see [`Trees::export`].
const LONG_AGO: i64 = 1_000_000_000;

/// A checkout of a base. The checkout stays in use while this value exists.
#[derive(Debug)]
pub struct Checkout {
    folder: PathBuf,
    _in_use: File,
}

impl Checkout {
    /// Opens the checkout in `folder`; `None` if none exists.
    pub fn open(folder: &Path) -> Option<Self> {
        let in_use = File::open(folder.join(WHOLE)).ok()?;
        in_use.try_lock_shared().ok()?;
        is_at(folder, &in_use).then(|| Self { folder: folder.to_owned(), _in_use: in_use })
    }

    /// Returns whether the files are as they were made: with the times and numbers of the index,
    /// and with no other file or repository beside them. A process without a sandbox could have
    /// changed them.
    ///
    /// # Errors
    /// [`TreesError`] if git or the system fails.
    pub async fn is_intact(&self, trees: &Trees, stop: &CancellationToken) -> Result<bool, TreesError> {
        let git = trees.own_git().with("GIT_INDEX_FILE", &self.folder.join(INDEX)).within(&self.files());
        let ask = async |args: &[&str]| git.run(args, b"", 1, stop).await;
        let (changed, new) = futures_util::join!(ask(&["diff-files", "--quiet"]), ask(&["ls-files", "--others", "-z"]));
        let (changed, new) = (changed?, new?);
        let has_repository = self.files().join(".git").symlink_metadata().is_ok();
        Ok(changed.code == 0 && new.code == 0 && new.output.is_empty() && !has_repository)
    }

    /// Moves the checkout in `folder` to `to` unless a room uses it. Returns whether it did.
    ///
    /// # Errors
    /// [`io::Error`] if the checkout cannot be opened or locked.
    pub fn take_away(folder: &Path, to: &Path) -> io::Result<bool> {
        let file = File::open(folder.join(WHOLE))?;
        match file.try_lock() {
            // Another run may have moved the checkout and made it again since.
            Ok(()) => Ok(is_at(folder, &file) && fs::rename(folder, to).is_ok()),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Writes the files of a base to `folder`, with an index that has the times and numbers of
    /// each.
    ///
    /// # Errors
    /// [`TreesError`] if git or the system fails.
    pub async fn make(trees: &Trees, base: &TreeId, folder: &Path, stop: &CancellationToken) -> Result<(), TreesError> {
        let (files, index) = (folder.join(FILES), folder.join(INDEX));
        trees.export_with_index(base, base, &files, &index, stop).await?;
        let work = folder.to_owned();
        let filled = move || {
            let bare = fs::read(&index).map_err(TreesError::io("read", &index))?;
            if let Some(filled) = with_stat(bare, &files) {
                fs::write(&index, filled).map_err(TreesError::io("write", &index))?;
            }
            fs::write(work.join(WHOLE), []).map_err(TreesError::io("write", &work))
        };
        trees.run_blocking(filled).await
    }

    /// Returns the folder with the files.
    pub fn files(&self) -> PathBuf {
        self.folder.join(FILES)
    }

    /// Returns whether a layer over this checkout can represent a tree with these changes to the
    /// base. It cannot if a link changes: then all files need a new time. Builds follow links, and
    /// an old file behind a new link would look as if it was already built.
    pub fn is_enough_for(changes: &[TreeChange]) -> bool {
        !changes.iter().any(|change| [change.from_mode, change.to_mode].contains(&LINK))
    }

    /// Makes `upper` and writes the layer to it that turns this checkout into `tree`. Writes an
    /// index of all files to `index`. `changes` are the changes from the base. The times are those
    /// of [`Trees::export`].
    ///
    /// # Errors
    /// [`TreesError`] if git or the system fails.
    pub async fn lay_over(
        &self,
        trees: &Trees,
        (tree, changes): (&TreeId, &[TreeChange]),
        upper: &Path,
        index: &Path,
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(upper);
        made.map_err(TreesError::io("make", upper))?;
        fs::copy(self.folder.join(INDEX), index).map_err(TreesError::io("copy", index))?;
        if changes.is_empty() {
            return age(upper);
        }
        let git = trees.own_git().with("GIT_INDEX_FILE", index).within(upper);
        // Unchanged entries keep their times and numbers.
        git.ask(&["read-tree", "-m", tree.as_str()], stop).await?;
        let new = changes.iter().filter(|change| change.to_mode != 0).map(|change| change.path.as_str());
        git.tell(&["checkout-index", "--force", "--index", "--quiet", "-z", "--stdin"], &listed(new), stop).await?;
        let (below, upper, changes) = (self.files(), upper.to_owned(), changes.to_vec());
        trees
            .run_blocking(move || {
                for path in removed(&below, &changes).map_err(TreesError::io("read", &below))? {
                    hide(&upper, &path).map_err(TreesError::io("hide", upper.join(&path)))?;
                }
                set_times(&upper, &changes)
            })
            .await
    }
}

/// Returns whether `lock` is on the current file of the checkout in `folder`. The checkout may have
/// been moved before the file was locked.
fn is_at(folder: &Path, lock: &File) -> bool {
    let there = fs::metadata(folder.join(WHOLE)).map(|meta| meta.ino());
    there.is_ok_and(|ino| lock.metadata().is_ok_and(|meta| meta.ino() == ino))
}

/// Returns the files and folders that these changes remove. A removed folder includes everything in
/// it.
fn removed(below: &Path, changes: &[TreeChange]) -> io::Result<BTreeSet<PathBuf>> {
    let all = changes.iter().filter(|change| change.to_mode == 0);
    let mut gone: BTreeSet<PathBuf> = all.map(|change| text_path(&change.path)).collect();
    let added: BTreeSet<PathBuf> = changes
        .iter()
        .filter(|change| change.to_mode != 0)
        .flat_map(|change| text_path(&change.path).ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>())
        .collect();
    // Deepest first: a folder is removed if everything in it is removed.
    let mut folders: BTreeMap<usize, BTreeSet<PathBuf>> = BTreeMap::new();
    for folder in gone.iter().filter_map(|path| path.parent()) {
        folders.entry(folder.components().count()).or_default().insert(folder.to_owned());
    }
    while let Some((depth, level)) = folders.pop_last() {
        for folder in level.into_iter().filter(|folder| depth > 0 && !added.contains(folder)) {
            let mut names = fs::read_dir(below.join(&folder))?.map(|entry| entry.map(|it| folder.join(it.file_name())));
            if names.all(|path| path.is_ok_and(|path| gone.contains(&path))) {
                gone.retain(|path| !path.starts_with(&folder));
                let above = folder.parent().unwrap_or(Path::new("")).to_owned();
                folders.entry(depth - 1).or_default().insert(above);
                gone.insert(folder);
            }
        }
    }
    Ok(gone)
}

/// Hides a path of the lower layer, unless the upper layer has an entry there.
fn hide(upper: &Path, path: &Path) -> io::Result<()> {
    let (at, folder) = (upper.join(path), upper.join(path.parent().unwrap_or(Path::new(""))));
    // A file in the place of a folder hides the whole folder.
    if at.symlink_metadata().is_ok() || path.ancestors().skip(1).any(|it| upper.join(it).is_file()) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    sandbox::hide(&at)
}

/// Sets the times of the folders of changed paths. A folder gets a new time if a name in it or
/// below is new or gone, else an old one.
fn set_times(upper: &Path, changes: &[TreeChange]) -> Result<(), TreesError> {
    let (mut touched, mut renamed) = (BTreeSet::new(), BTreeSet::new());
    for change in changes {
        let path = text_path(&change.path);
        let folders: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
        let has_new_name = change.from_mode == 0 || change.to_mode == 0;
        renamed.extend(has_new_name.then(|| folders.clone()).into_iter().flatten());
        // The topmost folder gets a new time if any file directly in it changes.
        renamed.extend((folders.len() == 1).then(PathBuf::new));
        touched.extend(folders);
    }
    for folder in touched.iter().map(|folder| (upper.join(folder), renamed.contains(folder))) {
        match folder {
            (path, true) if path.is_dir() => set_time(&path, Timespec { tv_sec: 0, tv_nsec: UTIME_NOW })?,
            (path, false) if path.is_dir() => age(&path)?,
            _ => {}
        }
    }
    Ok(())
}

fn age(path: &Path) -> Result<(), TreesError> {
    set_time(path, Timespec { tv_sec: LONG_AGO, tv_nsec: 0 })
}

fn set_time(path: &Path, time: Timespec) -> Result<(), TreesError> {
    let times = Timestamps { last_access: time, last_modification: time };
    let done = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    done.map_err(|error| TreesError::io("set the time of", path)(error.into()))
}
