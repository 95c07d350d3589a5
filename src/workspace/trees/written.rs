//! Takes a tree from the newest one and a few files that were written since. It reads only these
//! files and the trees of their folders, so the cost does not depend on the size of the workspace.

use super::look::is_within;
use super::names::{bytes, listed};
use super::take::{native, tree_of};
use super::{Inner, Trees, TreesError};
use crate::id::TreeId;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The maximum number of bytes that are read in this way, for all files together.
const MOST_BYTES: u64 = 50_000_000;
/// With more files than this, taking the whole workspace costs no more.
const MOST_FILES: usize = 100;
/// Files that change how git treats other files.
const LISTS: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

impl Trees {
    /// Takes the newest tree with these files in their current state, for a state that is kept and
    /// not judged. `written` must include everything that has changed since. If git would not take
    /// in one of the files as a plain file, the whole workspace is taken.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn take_written(
        &self,
        written: &BTreeSet<String>,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        match self.0.take_written(written, stop).await? {
            Some(tree) => Ok(tree),
            None => self.take_all(stop).await,
        }
    }

    /// Takes the whole workspace, for a state that is kept and not judged. Oddities are not
    /// reported.
    ///
    /// # Errors
    /// [`TreesError`], also if git would wait for ever at a pipe.
    pub async fn take_all(&self, stop: &CancellationToken) -> Result<TreeId, TreesError> {
        self.0.take_plain(stop).await
    }
}

impl Inner {
    async fn take_written(
        &self,
        written: &BTreeSet<String>,
        stop: &CancellationToken,
    ) -> Result<Option<TreeId>, TreesError> {
        let mut state = self.state.lock().await;
        let (Some(base), Some(last)) = (&state.base, &state.last) else { return Ok(None) };
        let is_list = |path: &String| LISTS.contains(&path.rsplit('/').next().unwrap_or(path));
        let is_hidden = |path: &String| is_within(path, &base.ignored);
        if state.has_other_lists
            || written.len() > MOST_FILES
            || written.iter().any(|path| is_list(path) || is_hidden(path))
        {
            return Ok(None);
        }
        let (root, paths) = (self.root.clone(), written.clone());
        let read = self
            .run_blocking(move || Ok(paths.iter().map(|path| import_command(&root, path)).collect::<Option<Vec<_>>>()));
        let Some(files) = read.await? else { return Ok(None) };
        if files.is_empty() {
            return Ok(Some(last.clone()));
        }
        let args = ["check-ignore", "--no-index", "--quiet", "-z", "--stdin"];
        let ignored = self.git.run(&args, &listed(written.iter().map(String::as_str)), 0, stop).await?;
        if ignored.code != 1 {
            return Ok(None);
        }
        // This commit exists only in git's input; no reference to it stays.
        let begin = format!("commit refs/turn\ncommitter fledge <> 0 +0000\ndata 0\nM 040000 {} \"\"\n", last.as_str());
        let end = format!("ls \"\"\n\nreset refs/turn\nfrom {}\n\n", "0".repeat(last.as_str().len()));
        let input = [begin.into_bytes(), files.concat(), end.into_bytes()].concat();
        let answer = self.git.tell(&["fast-import", "--quiet"], &input, stop).await?;
        let tree = std::str::from_utf8(&answer)
            .ok()
            .and_then(|text| text.strip_prefix("040000 tree ")?.get(..last.as_str().len()));
        let tree = tree_of(tree.unwrap_or_default().as_bytes(), "fast-import")?;
        state.last = Some(tree.clone());
        Ok(Some(tree))
    }
}

/// Returns the `git fast-import` command for a file: its contents, or its removal. `None` if the
/// path is neither a file, a link nor missing, if the file is large, or if a parent is a link.
fn import_command(root: &Path, path: &str) -> Option<Vec<u8>> {
    let at = root.join(native(path));
    let folders = at.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let has_links = folders.map(Path::symlink_metadata).any(|meta| meta.is_ok_and(|meta| !meta.is_dir()));
    if has_links {
        return None;
    }
    let name = quoted(path);
    let Ok(meta) = at.symlink_metadata() else { return Some([b"D ", name.as_slice(), b"\n"].concat()) };
    let (mode, content) = if meta.is_symlink() {
        ("120000", fs::read_link(&at).ok()?.as_os_str().as_bytes().to_vec())
    } else if meta.is_file() && meta.len() <= MOST_BYTES / MOST_FILES as u64 {
        (if meta.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" }, fs::read(&at).ok()?)
    } else {
        return None;
    };
    let head =
        [format!("M {mode} inline ").as_bytes(), &name, format!("\ndata {}\n", content.len()).as_bytes()].concat();
    Some([head.as_slice(), &content, b"\n"].concat())
}

/// Quotes a path for `git fast-import`.
fn quoted(path: &str) -> Vec<u8> {
    let escaped = bytes(path).into_iter().flat_map(|byte| match byte {
        b'"' | b'\\' => vec![b'\\', byte],
        b'\n' => b"\\n".to_vec(),
        byte => vec![byte],
    });
    [b"\"".to_vec(), escaped.collect(), b"\"".to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Project;
    use super::*;
    use std::os::unix::fs::symlink;

    #[tokio::test]
    async fn a_tree_by_what_was_written_is_that_of_a_whole_look() {
        let project =
            Project::new(&[(".gitignore", "*.log\n"), ("a", "1"), ("gone", "2"), ("src/b", "3"), ("dir/c", "4")]);
        symlink("dir", project.at("link")).unwrap();
        let (trees, _) = project.begin().await;
        let take = async |paths: &[&str]| {
            let written = paths.iter().map(|path| (*path).to_owned()).collect();
            trees.take_written(&written, &project.stop).await.unwrap()
        };
        project.write("a", "5");
        project.write("new/\"odd\\ \n\u{e4}", "6");
        project.write("src/run", "7");
        fs::set_permissions(project.at("src/run"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(project.at("gone")).unwrap();
        let tree = take(&["a", "new/\"odd\\ \n\u{e4}", "src/run", "gone"]).await;
        assert_eq!(project.take(&trees).await, tree);
        // The change of `src/b` is not in the given list.
        project.write("src/b", "8");
        project.write("a", "9");
        let tree = take(&["a"]).await;
        assert_eq!(trees.read(&tree, "src/b", 9, &project.stop).await.unwrap(), Some(b"3".to_vec()));
        assert_ne!(project.take(&trees).await, tree);
        for (path, text) in [("x.log", "ignored"), ("link/c", "10"), (".gitignore", "a\n"), ("link/new", "11")] {
            project.write(path, text);
            let tree = take(&[path]).await;
            assert_eq!(project.take(&trees).await, tree, "{path}");
        }
        // The result again equals that of the whole workspace.
        fs::write(project.at("a"), "9").unwrap();
        let tree = take(&["a"]).await;
        assert_eq!(project.take(&trees).await, tree);
    }
}
