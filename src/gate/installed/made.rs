//! Folders and files that agents made at the paths of installed dependencies, such as
//! `node_modules`. Later runs do not use them.

use super::{InstalledPackages, digest, interpreter, reached};
use crate::store::{StoreError, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The file, in the project's folder of the state, that lists these paths.
const MADE: &str = "made-by-agents";
/// The maximum number of entries of this file.
const MOST_MADE: usize = 10_000;

/// A path with the device and the inode of the file or folder there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Made {
    path: String,
    device: u64,
    inode: u64,
}

impl Made {
    fn at(root: &Path, path: &str) -> Option<Self> {
        let meta = reached(root, path)?.symlink_metadata().ok()?;
        Some(Self { path: path.to_owned(), device: meta.dev(), inode: meta.ino() })
    }

    fn all(project_state: &Path) -> BTreeSet<Self> {
        let text = fs::read(project_state.join(MADE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

impl InstalledPackages {
    /// Adds the paths that did not exist before the agent to the list of a project, so that no
    /// later run uses them. Returns the new paths. `project_state` is the project's folder of the
    /// state.
    pub fn list_made(&self, root: &Path, project_state: &Path) -> Result<Vec<String>, StoreError> {
        let made: Vec<Made> = self.absent.iter().filter_map(|path| Made::at(root, path)).collect();
        let mut all = Made::all(project_state);
        let new: Vec<Made> = made.into_iter().filter(|made| !all.contains(made)).collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        all.extend(new.iter().cloned());
        while all.len() > MOST_MADE {
            all.pop_first();
        }
        write_whole(&project_state.join(MADE), &serde_json::to_vec(&all).unwrap_or_default())?;
        Ok(new.into_iter().map(|made| made.path).collect())
    }

    /// Stops using folders and files that the agent of an earlier run made. Returns a note for
    /// each. A folder that was installed again has another inode, so it is used.
    pub fn leave_out_made(&mut self, origin: &Path, project_state: &Path) -> Vec<String> {
        let all = Made::all(project_state);
        if all.is_empty() {
            return Vec::new();
        }
        let is_made = |path: &String| Made::at(origin, path).is_some_and(|it| all.contains(&it));
        let left_out: Vec<String> =
            self.folders.iter().chain(&self.files).filter(|path| is_made(path)).cloned().collect();
        self.folders.retain(|path| !left_out.contains(path));
        self.files.retain(|path| !left_out.contains(path));
        if !left_out.is_empty() {
            self.interpreters = self.folders.iter().filter_map(|path| interpreter(&origin.join(path))).collect();
            self.digest = if self.folders.is_empty() { String::new() } else { digest(origin, &self.folders) };
        }
        let note = |path: String| {
            format!(
                "`{path}` is not in the room of the checks, because the agent of an earlier run made it: remove it, then install the dependencies yourself"
            )
        };
        left_out.into_iter().map(note).collect()
    }
}
