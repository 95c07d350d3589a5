//! The changes of an overlayfs layer. Reading them takes time only for the written files,
//! regardless of the number of files in the lower folder.

use rustix::fs::lgetxattr;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// The extended attribute of an upper folder that hides the contents of the lower one.
const OPAQUE: &str = "user.overlay.opaque";

/// The two folders of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSides {
    /// The lower folder, which is never written.
    pub lower: PathBuf,
    /// The upper folder, which holds everything that is written.
    pub upper: PathBuf,
}

/// The change of a path in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerEntry {
    /// A written file or link: its inode, and its last change time in seconds and nanoseconds. Any
    /// write changes one of them.
    Written(u64, i64, i64),
    /// A hidden file of the lower folder.
    Gone,
}

impl LayerSides {
    /// Returns the paths, relative to the root, at which the layer has or hides a file or link. A
    /// device and the like hides a file. Folders for which `enters` is false are not searched; the
    /// files that they hide are still returned.
    ///
    /// # Errors
    /// If a folder of either side cannot be read.
    pub fn differences(&self, enters: impl Fn(&Path) -> bool) -> io::Result<BTreeMap<PathBuf, LayerEntry>> {
        let mut found = BTreeMap::new();
        let relative =
            |entry: &DirEntry| entry.path().strip_prefix(&self.upper).map(Path::to_owned).unwrap_or_default();
        let mut walk = WalkDir::new(&self.upper).min_depth(1).into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // An unreadable folder hides the lower folder.
                Err(error) => {
                    let path = error.path().and_then(|path| path.strip_prefix(&self.upper).ok());
                    let path = path.ok_or(io::ErrorKind::NotFound)?;
                    if self.lower.join(path).is_dir() {
                        self.hide(path, &mut found)?;
                    }
                    continue;
                }
            };
            let path = relative(&entry);
            let meta = entry.metadata()?;
            let below = self.lower.join(&path).symlink_metadata().ok();
            if meta.is_dir() {
                let hides = |below: &Metadata| !below.is_dir() || is_opaque(entry.path());
                if below.as_ref().is_some_and(hides) {
                    self.hide(&path, &mut found)?;
                }
                if !enters(&path) {
                    walk.skip_current_dir();
                }
                continue;
            }
            let is_file = meta.is_file() || meta.is_symlink();
            if below.is_some_and(|below| !is_file || below.is_dir()) {
                self.hide(&path, &mut found)?;
            }
            if is_file {
                found.insert(path, LayerEntry::Written(meta.ino(), meta.ctime(), meta.ctime_nsec()));
            }
        }
        Ok(found)
    }

    /// Adds the files of the lower folder at and below a path. If the upper folder has a file at
    /// the same path, a later entry replaces this one.
    fn hide(&self, path: &Path, found: &mut BTreeMap<PathBuf, LayerEntry>) -> io::Result<()> {
        for entry in WalkDir::new(self.lower.join(path)).follow_root_links(false) {
            let entry = entry?;
            if !entry.file_type().is_dir() {
                let path = entry.path().strip_prefix(&self.lower).unwrap_or(path).to_owned();
                found.entry(path).or_insert(LayerEntry::Gone);
            }
        }
        Ok(())
    }
}

fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 1];
    lgetxattr(folder, OPAQUE, &mut value[..]).is_ok() && value == *b"y"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_that_is_not_looked_into_hides_the_file_or_link_in_its_place() {
        let dir = crate::test_support::temp_dir();
        let sides = LayerSides { lower: dir.path().join("lower"), upper: dir.path().join("upper") };
        for folder in ["lower/folder", "lower/both", "upper/file", "upper/link", "upper/both", "upper/new"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
            fs::write(dir.path().join(folder).join("x"), "x").unwrap();
        }
        fs::write(sides.lower.join("file"), "1").unwrap();
        symlink("folder", sides.lower.join("link")).unwrap();
        let found = sides.differences(|_| false).unwrap();
        let hidden = ["file", "link"].map(|path| (PathBuf::from(path), LayerEntry::Gone));
        assert_eq!(found, BTreeMap::from(hidden));
    }
}
