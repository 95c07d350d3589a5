//! Walks a tree by directory handles, so that no path is looked up twice, and leaves out what ignore files name, what is
//! hidden, and links. In each directory names come in the order of their bytes.

use super::ToolError;
use crate::workspace::jail::{Folder, Jail, Kind, RelPath, shown};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsStr;
use std::io::Read;
use std::ops::ControlFlow;
use tokio_util::sync::CancellationToken;

/// The deepest directory that is entered: each one on the way is an open handle.
const MAX_DEPTH: usize = 128;
/// The largest ignore file that is heeded, in bytes.
const MAX_IGNORE: u64 = 1024 * 1024;
/// Ignore files; of two rules about a name, that of the later file holds.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// Is given each file: its path from the root, the directory that holds it, and its name there.
pub(super) type Visit<'v> = dyn FnMut(&str, &Folder, &OsStr) -> ControlFlow<()> + 'v;

/// How a walk is made.
pub(super) struct Walk<'w> {
    pub(super) jail: &'w Jail,
    /// Whether hidden names are entered; `.git` never is.
    pub(super) hidden: bool,
    pub(super) stop: &'w CancellationToken,
}

/// A walk under way.
struct Walker<'w, 'v> {
    walk: &'w Walk<'w>,
    visit: &'w mut Visit<'v>,
    /// The ignore files of the directories from the root to here.
    ignores: Vec<Gitignore>,
    /// Directories that could not be read.
    unread: usize,
}

impl Walk<'_> {
    /// Visits the files below `start`, whose path from the root is `at`, until the visitor breaks. Gives the number of
    /// directories that could not be read.
    ///
    /// # Errors
    /// [`ToolError::Stopped`] when the run is cancelled; an unreadable `start`.
    pub(super) fn files(&self, start: &Folder, at: &RelPath, visit: &mut Visit<'_>) -> Result<usize, ToolError> {
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
    /// Heeds the ignore files above `at`, and git's own exclude file.
    fn heed_above(&mut self, at: &RelPath) -> Result<(), ToolError> {
        let (mut folder, mut path) = self.walk.jail.folder(&RelPath::default())?;
        let excludes = folder.folder(".git".as_ref()).and_then(|git| git.folder("info".as_ref()));
        if let Ok(info) = excludes {
            self.heed(&info, "", &["exclude"]);
        }
        for name in at.names() {
            self.heed(&folder, path.as_str(), &IGNORE_FILES);
            (folder, path) = self.walk.jail.folder(&path.join(name))?;
        }
        Ok(())
    }

    fn enter(&mut self, folder: &Folder, path: &str, depth: usize) -> ControlFlow<()> {
        let entries = match folder.entries() {
            Ok(entries) if depth < MAX_DEPTH => entries,
            Ok(_) | Err(_) => {
                self.unread += 1;
                return ControlFlow::Continue(());
            }
        };
        let heeded = self.ignores.len();
        self.heed(folder, path, &IGNORE_FILES);
        for entry in entries {
            if self.walk.stop.is_cancelled() {
                return ControlFlow::Break(());
            }
            let name = shown(&entry.name);
            let at = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let is_folder = entry.kind == Kind::Folder;
            if name == ".git" || (!self.walk.hidden && name.starts_with('.')) || self.ignored(&at, is_folder) {
                continue;
            }
            match entry.kind {
                Kind::File => (self.visit)(&at, folder, &entry.name)?,
                Kind::Folder => match folder.folder(&entry.name) {
                    Ok(next) => self.enter(&next, &at, depth + 1)?,
                    Err(_) => self.unread += 1,
                },
                Kind::Link | Kind::Special => {}
            }
        }
        self.ignores.truncate(heeded);
        ControlFlow::Continue(())
    }

    /// Adds the rules of the ignore files in a directory; lines that make no sense are passed over, as git does.
    fn heed(&mut self, folder: &Folder, path: &str, files: &[&str]) {
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

/// What to add to a result when directories could not be read; empty when all could.
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
        let walked = Walk { jail: &jail, hidden: false, stop: &stop }.files(&root, &at, &mut |path, _, _| {
            visited.push(path.to_owned());
            stop.cancel();
            ControlFlow::Continue(())
        });
        assert!(matches!(walked, Err(ToolError::Stopped)));
        assert_eq!(visited, ["a"]);
    }
}
