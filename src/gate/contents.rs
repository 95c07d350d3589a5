//! The contents of a clean room beside the tree, as far as they are known without making a room.

use super::built;
use super::installed::InstalledPackages;
use crate::lane::Lane;
use std::path::Path;

/// The paths that the clean room of a lane has beside the files of the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomContents {
    /// Folders of installed dependencies.
    pub dependencies: Vec<String>,
    /// Ignored files.
    pub files: Vec<String>,
    /// Folders that the run on the base fills.
    pub caches: Vec<String>,
}

/// Returns the contents that the room of a lane would have. `paths` are the files of the project
/// that git does not ignore.
pub fn room_contents(root: &Path, lane: &Lane, paths: &[String]) -> RoomContents {
    let mut lanes = [lane.clone()];
    built::add(&mut lanes, paths);
    let [lane] = lanes;
    let (folders, included): (Vec<&String>, Vec<&String>) =
        lane.include_ignored.iter().filter(|path| root.join(path).exists()).partition(|path| root.join(path).is_dir());
    let InstalledPackages { folders, mut files, .. } = InstalledPackages::find(root, paths, folders.into_iter());
    files.extend(included.into_iter().cloned());
    files.sort();
    files.dedup();
    let caches = lane.kept_folders().filter(|path| !folders.contains(path)).cloned().collect();
    RoomContents { dependencies: folders, files, caches }
}
