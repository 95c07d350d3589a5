//! Files of installed dependencies that could show hidden tests: copies of them, and what build
//! tools keep beside packages. Neither the agent nor a room sees them.

use super::InstalledPackages;
use crate::gate::hidden;
use crate::process::sandbox::hide;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use walkdir::WalkDir;

/// Folders of `node_modules` in which tools keep sources that they transformed, and results.
const TOOLS: [&str; 3] = [".cache", ".vite", ".vitest"];
/// The list of sources in the metadata of an editable install.
const SOURCES: &str = "SOURCES.txt";

impl InstalledPackages {
    /// Adds the files in the folders of `origin` that have one of these contents, each a size and a
    /// digest. Adds the folders and lists of tools too.
    pub(in crate::gate) fn withhold(&mut self, origin: &Path, contents: &BTreeSet<(u64, String)>) {
        let sizes: BTreeSet<u64> = contents.iter().map(|(size, _)| *size).collect();
        let mut withheld = BTreeSet::new();
        for folder in &self.folders {
            let mut walk = WalkDir::new(origin.join(folder)).follow_links(false).into_iter();
            while let Some(entry) = walk.next() {
                let Ok(entry) = entry else { continue };
                let name = entry.file_name().to_str().unwrap_or_default();
                let above = entry.path().parent().and_then(Path::file_name).and_then(|name| name.to_str());
                let is_of_tool = TOOLS.contains(&name) && above == Some("node_modules");
                let is_list = name == SOURCES && above.is_some_and(|above| above.ends_with(super::METADATA));
                let is_copy = || {
                    let is_alike = entry.metadata().is_ok_and(|meta| meta.is_file() && sizes.contains(&meta.len()));
                    is_alike && hidden::content(entry.path()).is_some_and(|content| contents.contains(&content))
                };
                if is_of_tool || is_list || is_copy() {
                    let path = entry.path().strip_prefix(origin).ok().and_then(Path::to_str);
                    withheld.extend(path.map(str::to_owned));
                    if entry.file_type().is_dir() {
                        walk.skip_current_dir();
                    }
                }
            }
        }
        self.withheld = withheld.into_iter().collect();
    }

    /// Hides the withheld files of a folder in the layer over it, whose changes are in `over`.
    pub(super) fn hide_withheld(&self, folder: &str, over: &Path) -> io::Result<()> {
        let below = self.withheld.iter().filter_map(|path| Path::new(path).strip_prefix(folder).ok());
        for path in below.filter(|path| !path.as_os_str().is_empty()) {
            let at = over.join("upper").join(path);
            at.parent().map_or(Ok(()), fs::create_dir_all)?;
            match hide(&at) {
                // An earlier process has made it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => made?,
            }
        }
        Ok(())
    }
}
