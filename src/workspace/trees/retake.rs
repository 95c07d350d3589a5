//! Takes a tree again from the folder to which it was exported: programs may have changed the
//! folder.

use super::names::listed;
use super::take::tree_of;
use super::{Inner, Trees, TreesError};
use crate::id::TreeId;
use std::path::Path;
use tokio_util::sync::CancellationToken;

impl Inner {
    pub(super) async fn retake(
        &self,
        tree: &TreeId,
        folder: &Path,
        new: bool,
        except: &[String],
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        let folder = folder.canonicalize().map_err(TreesError::io("open", folder))?;
        let index = self.scratch.path().join("retaken");
        let git = self.git.with("GIT_INDEX_FILE", &index).within(&folder);
        let left_out: Vec<String> = except.iter().map(|path| format!(":(exclude,top,literal){path}")).collect();
        let which = if new { "--all" } else { "--update" };
        let mut add = vec!["add", which, "--ignore-errors", "--", ":/"];
        add.extend(left_out.iter().map(String::as_str));
        let _one_at_a_time = self.state.lock().await;
        git.ask(&["read-tree", tree.as_str()], stop).await?;
        git.ask(&add, stop).await?;
        tree_of(&git.ask(&["write-tree"], stop).await?, "write-tree")
    }
}

impl Trees {
    /// Returns the tree of all files in a folder, ignored or not.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn tree_of_folder(&self, folder: &Path, stop: &CancellationToken) -> Result<TreeId, TreesError> {
        let inner = &self.0;
        let folder = folder.canonicalize().map_err(TreesError::io("open", folder))?;
        let git = inner.git.with("GIT_INDEX_FILE", &inner.scratch.path().join("retaken")).within(&folder);
        let _one_at_a_time = inner.state.lock().await;
        git.ask(&["read-tree", "--empty"], stop).await?;
        git.ask(&["add", "--all", "--force", "--", ":/"], stop).await?;
        tree_of(&git.ask(&["write-tree"], stop).await?, "write-tree")
    }

    /// Returns a copy of `tree` with the `written` files as they are in `folder`, and without the
    /// `gone` files. Other files in the folder do not matter.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn with_written(
        &self,
        tree: &TreeId,
        folder: &Path,
        (written, gone): (&[String], &[String]),
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        let inner = &self.0;
        let index = inner.scratch.path().join("retaken");
        let git = inner.git.with("GIT_INDEX_FILE", &index).within(folder);
        let _one_at_a_time = inner.state.lock().await;
        git.ask(&["read-tree", tree.as_str()], stop).await?;
        for (how, paths) in [("--force-remove", gone), ("--replace", written)] {
            if !paths.is_empty() {
                let args = ["update-index", "--add", how, "-z", "--stdin"];
                git.tell(&args, &listed(paths.iter().map(String::as_str)), stop).await?;
            }
        }
        tree_of(&git.ask(&["write-tree"], stop).await?, "write-tree")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Project;
    use std::fs;
    use tokio_util::sync::CancellationToken;

    #[tokio::test]
    async fn changed_files_are_taken_and_new_files_only_on_request() {
        let place = Project::new(&[("a", "1"), ("b", "2"), (".gitignore", "out\n")]);
        let (trees, base) = place.begin().await;
        let (stop, room) = (CancellationToken::new(), crate::test_support::temp_dir());
        let folder = room.path().join("room");
        trees.export(&base, &base, &folder, &stop).await.unwrap();
        let none: [String; 0] = [];
        assert_eq!(trees.retake(&base, &folder, true, &none, &stop).await.unwrap(), base);
        for new in ["new", "out", "cache/x"] {
            fs::create_dir_all(folder.join(new).parent().unwrap()).unwrap();
            fs::write(folder.join(new), "n").unwrap();
        }
        assert_eq!(trees.retake(&base, &folder, false, &none, &stop).await.unwrap(), base);
        let after = trees.retake(&base, &folder, true, &["cache".into()], &stop).await.unwrap();
        let changed = trees.changes(&base, &after, &stop).await.unwrap();
        assert_eq!(changed.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["new"]);
        fs::write(folder.join("a"), "3").unwrap();
        fs::remove_file(folder.join("b")).unwrap();
        let after = trees.retake(&base, &folder, false, &none, &stop).await.unwrap();
        let changed = trees.changes(&base, &after, &stop).await.unwrap();
        assert_eq!(changed.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }
}
