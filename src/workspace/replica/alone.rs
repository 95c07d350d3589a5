//! A repository whose only commit is a tree, for an agent that must see no other object.

use super::index::with_stat;
use super::room::{RoomRepository, write};
use super::source::SourceRepository;
use crate::id::TreeId;
use crate::workspace::trees::{Trees, TreesError};
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

impl SourceRepository {
    /// Returns the repository without commits and references, so that copies of it have no history.
    #[must_use]
    pub fn without_history(&self) -> Self {
        let mut alone = self.clone();
        (alone.commit, alone.references, alone.shallow) = (None, Vec::new(), String::new());
        alone
    }
}

/// Writes a repository whose only commit is `tree` into `folder`, which is replaced. The workspace
/// of `trees` must have the files of the tree. Returns the git directory.
///
/// # Errors
/// [`TreesError`] if git or the system fails.
pub async fn write_alone(
    trees: &Trees,
    source: &SourceRepository,
    tree: &TreeId,
    folder: &Path,
    stop: &CancellationToken,
) -> Result<PathBuf, TreesError> {
    let _there_may_be_none = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(TreesError::io("make", folder))?;
    let index = folder.join("index");
    trees.own_git().with("GIT_INDEX_FILE", &index).ask(&["read-tree", tree.as_str()], stop).await?;
    let bytes = fs::read(&index).map_err(TreesError::io("read", &index))?;
    let bytes = with_stat(bytes.clone(), trees.root()).unwrap_or(bytes);
    fs::write(&index, bytes).map_err(TreesError::io("write", &index))?;
    let source = source.without_history();
    let repository =
        RoomRepository { source: &source, history: None, seen_at: Path::new(""), base: tree, tree, has_stat: true };
    write(trees, repository, folder, &index, stop).await?;
    Ok(folder.join(".git"))
}
