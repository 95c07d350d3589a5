//! A walk through a tree by directory handles, so that no path is resolved twice. It skips ignored
//! files, hidden names and links. The names of a directory come in byte order.

use super::ToolError;
use crate::workspace::jail::{Jail, JailEntryKind, OpenFolder, RelPath, shown};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsStr;
use std::io::Read;
use std::ops::ControlFlow;
use tokio_util::sync::CancellationToken;

/// The maximum depth. Each directory on the way is an open handle.
const MAX_DEPTH: usize = 128;
/// The maximum number of bytes read from an ignore file.
const MAX_IGNORE: u64 = 1024 * 1024;
/// The names of ignore files. If two rules match a name, the later file wins.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// A callback for each file: its path from the root, its directory and its name there.
pub(super) type Visit<'v> = dyn FnMut(&str, &OpenFolder, &OsStr) -> ControlFlow<()> + 'v;

/// The settings of a walk.
pub(super) struct FileWalk<'w> {
    pub(super) jail: &'w Jail,
    /// True if the walk includes hidden names. It never enters `.git`.
    pub(super) hidden: bool,
    pub(super) stop: &'w CancellationToken,
}

/// A walk in progress.
struct Walker<'w, 'v> {
    walk: &'w FileWalk<'w>,
    visit: &'w mut Visit<'v>,
    /// The ignore files of the directories from the root to the current one.
    ignores: Vec<Gitignore>,
    /// The number of directories that could not be read.
    unread: usize,
}

impl FileWalk<'_> {
    /// Visits the files below `start`, whose path from the root is `at`, until the visitor breaks.
    /// Returns the number of directories that could not be read.
    ///
    /// # Errors
    /// [`ToolError::Stopped`] if the run is cancelled, or an error if a directory above `start`
    /// cannot be opened.
    pub(super) fn files(&self, start: &OpenFolder, at: &RelPath, visit: &mut Visit<'_>) -> Result<usize, ToolError> {
        let mut walker = Walker { walk: self, visit, ignores: Vec::new(), unread: 0 };
        walker.heed_above(at)?;
        let _ = walker.enter(start, at.as_str(), 0);
        match self.stop.is_cancelled() {
            true => Err(ToolError::Stopped),
            false => Ok(walker.unread),
        }
    }
}

impl Walker<'_, '_> {
    /// Loads git's own exclude file and the ignore files above `at`.
    fn heed_above(&mut self, at: &RelPath) -> Result<(), ToolError> {
        let (mut folder, mut path) = self.walk.jail.folder(&RelPath::default())?;
        let excludes = folder.folder(".git".as_ref()).and_then(|git| git.folder("info".as_ref()));
        if let Ok(info) = excludes {
            self.read_ignore_files(&info, "", &["exclude"]);
        }
        for name in at.names() {
            self.read_ignore_files(&folder, path.as_str(), &IGNORE_FILES);
            (folder, path) = self.walk.jail.folder(&path.join(name))?;
        }
        Ok(())
    }

    fn enter(&mut self, folder: &OpenFolder, path: &str, depth: usize) -> ControlFlow<()> {
        let entries = match folder.entries() {
            Ok(entries) if depth < MAX_DEPTH => entries,
            Ok(_) | Err(_) => {
                self.unread += 1;
                return ControlFlow::Continue(());
            }
        };
        let ignores_before = self.ignores.len();
        self.read_ignore_files(folder, path, &IGNORE_FILES);
        for entry in entries {
            if self.walk.stop.is_cancelled() {
                return ControlFlow::Break(());
            }
            let name = shown(&entry.name);
            let at = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let is_folder = entry.kind == JailEntryKind::Folder;
            if name == ".git" || (!self.walk.hidden && name.starts_with('.')) || self.ignored(&at, is_folder) {
                continue;
            }
            match entry.kind {
                JailEntryKind::File => (self.visit)(&at, folder, &entry.name)?,
                JailEntryKind::Folder => match folder.folder(&entry.name) {
                    Ok(next) => self.enter(&next, &at, depth + 1)?,
                    Err(_) => self.unread += 1,
                },
                JailEntryKind::Link | JailEntryKind::Special => {}
            }
        }
        self.ignores.truncate(ignores_before);
        ControlFlow::Continue(())
    }

    /// Adds the rules of the ignore files in a directory. Invalid lines are skipped, as in git.
    fn read_ignore_files(&mut self, folder: &OpenFolder, path: &str, files: &[&str]) {
        let mut rules = GitignoreBuilder::new(path);
        for file in files {
            let mut bytes = Vec::new();
            let Ok(file) = folder.file(file.as_ref()) else { continue };
            if file.take(MAX_IGNORE).read_to_end(&mut bytes).is_err() {
                continue;
            }
            for line in String::from_utf8_lossy(&bytes).lines() {
                let _ = rules.add_line(None, line);
            }
        }
        self.ignores.extend(rules.build().ok().filter(|rules| !rules.is_empty()));
    }

    fn ignored(&self, path: &str, is_folder: bool) -> bool {
        let verdict =
            self.ignores.iter().rev().map(|rules| rules.matched(path, is_folder)).find(|verdict| !verdict.is_none());
        matches!(verdict, Some(Match::Ignore(_)))
    }
}

/// Returns the note for a result when directories could not be read; empty if all were read.
pub(super) fn unread_note(unread: usize) -> String {
    if unread == 0 { String::new() } else { format!("[{unread} directories could not be read]\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_the_walk_at_the_next_name() {
        let home = crate::test_support::temp_dir();
        for name in ["a", "b", "c"] {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        let jail = Jail::open(home.path()).unwrap();
        let (root, at) = jail.folder(&RelPath::default()).unwrap();
        let stop = CancellationToken::new();
        let mut visited = Vec::new();
        let walked = FileWalk { jail: &jail, hidden: false, stop: &stop }.files(&root, &at, &mut |path, _, _| {
            visited.push(path.to_owned());
            stop.cancel();
            ControlFlow::Continue(())
        });
        assert!(matches!(walked, Err(ToolError::Stopped)));
        assert_eq!(visited, ["a"]);
    }
}
