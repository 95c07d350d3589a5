//! The rules for paths that fledge watches. Excluded are files of version control systems, ignored
//! files, the folders to leave out, and temporary files of fledge. fledge does not follow symbolic
//! links, so files outside of the root never count.

use ignore::IncrementalIgnore;
use ignore::WalkBuilder;
use std::path::{Component, Path, PathBuf};

/// The folders (or files) of version control systems.
const HISTORY: [&str; 4] = [".git", ".hg", ".jj", ".svn"];
/// Prefix and suffix of the temporary files that fledge writes.
const UNDER_WAY: (&str, &str) = (".fledge-", ".tmp");
/// The names of ignore files, which apply to the folder that contains them.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// git's own exclude file, relative to the root of a repository.
pub(super) const EXCLUDE: &str = ".git/info/exclude";

/// The rules as last read. Paths are relative to the root.
#[derive(Debug)]
pub(super) struct WatchRules {
    ignored: Option<IncrementalIgnore>,
    apart: Vec<PathBuf>,
}

impl WatchRules {
    /// Reads the rules. In a repository, they are git's rules, starting at the root of the
    /// repository. Elsewhere, the ignore files in `root` and below apply.
    pub(super) fn read(root: &Path, apart: &[PathBuf]) -> Self {
        let is_in_repository =
            root.ancestors().any(|folder| folder.join(".git").exists() || folder.join(".jj").exists());
        let mut builder = WalkBuilder::new(root);
        builder.hidden(false).require_git(is_in_repository).parents(is_in_repository);
        let apart = apart.iter().filter_map(|path| path.strip_prefix(root).ok());
        Self { ignored: builder.build_matchers().pop(), apart: apart.map(Path::to_path_buf).collect() }
    }

    /// Returns true if the path is excluded.
    pub(super) fn leave_out(&mut self, path: &Path, is_folder: bool) -> bool {
        let is_history = |part: Component<'_>| HISTORY.iter().any(|name| part.as_os_str() == *name);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        (name.starts_with(UNDER_WAY.0) && name.ends_with(UNDER_WAY.1))
            || path.components().any(is_history)
            || self.apart.iter().any(|apart| path.starts_with(apart))
            || self.ignored.as_mut().is_some_and(|rules| rules.matched(path, is_folder).is_ignore())
    }
}

/// Returns true if a change of this path can change the rules.
pub(super) fn are_made_of(path: &Path) -> bool {
    let is_rule = |name| IGNORE_FILES.iter().any(|rule| name == *rule);
    path.file_name().is_some_and(is_rule) || path == Path::new(EXCLUDE) || path == Path::new(".git")
}
