//! The paths that count: no file of a version control system, no file that an ignore file names or that is set apart, and no file that
//! fledge is writing. Symbolic links are not followed, so files outside of the root never count.

use ignore::IncrementalIgnore;
use ignore::WalkBuilder;
use std::path::{Component, Path, PathBuf};

/// The folders (or files) of version control systems.
const HISTORY: [&str; 4] = [".git", ".hg", ".jj", ".svn"];
/// Start and end of the names that files have while fledge writes them.
const UNDER_WAY: (&str, &str) = (".fledge-", ".tmp");
/// The names of ignore files, which hold for the folder that they are in.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// git's own ignore file, in the root of a repository.
pub(super) const EXCLUDE: &str = ".git/info/exclude";

/// The rules as they were when they were read; paths are relative to the root.
#[derive(Debug)]
pub(super) struct Rules {
    ignored: Option<IncrementalIgnore>,
    apart: Vec<PathBuf>,
}

impl Rules {
    /// Reads them. Within a repository they are git's, from its root down; elsewhere the ignore files of `root` and below hold.
    pub(super) fn read(root: &Path, apart: &[PathBuf]) -> Self {
        let is_in_repository =
            root.ancestors().any(|folder| folder.join(".git").exists() || folder.join(".jj").exists());
        let mut builder = WalkBuilder::new(root);
        builder.hidden(false).require_git(is_in_repository).parents(is_in_repository);
        let apart = apart.iter().filter_map(|path| path.strip_prefix(root).ok());
        Self { ignored: builder.build_matchers().pop(), apart: apart.map(Path::to_path_buf).collect() }
    }

    /// Whether this path does not count.
    pub(super) fn leave_out(&mut self, path: &Path, is_folder: bool) -> bool {
        let is_history = |part: Component<'_>| HISTORY.iter().any(|name| part.as_os_str() == *name);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        (name.starts_with(UNDER_WAY.0) && name.ends_with(UNDER_WAY.1))
            || path.components().any(is_history)
            || self.apart.iter().any(|apart| path.starts_with(apart))
            || self.ignored.as_mut().is_some_and(|rules| rules.matched(path, is_folder).is_ignore())
    }
}

/// Whether the rules are others when something has happened to this path.
pub(super) fn are_made_of(path: &Path) -> bool {
    let is_rule = |name| IGNORE_FILES.iter().any(|rule| name == *rule);
    path.file_name().is_some_and(is_rule) || path == Path::new(EXCLUDE) || path == Path::new(".git")
}
