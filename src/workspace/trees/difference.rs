//! The differences between two trees for people, file by file: lines, renames, modes and binary
//! files.

use super::names::{each, spelled};
use super::{Trees, TreesError};
use crate::id::TreeId;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// A file that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDifference {
    /// The path relative to the root of the workspace, as in [`super::TreeEntry::path`].
    pub path: String,
    /// The old path of a renamed file.
    pub from: Option<String>,
    /// Git's mode before; 0 if the file did not exist.
    pub from_mode: u32,
    /// Git's mode after; 0 if the file no longer exists.
    pub to_mode: u32,
    /// The numbers of added and removed lines; `None` for a binary file.
    pub lines: Option<(u64, u64)>,
}

impl Trees {
    /// Returns the files that differ, sorted by path. A file that was removed and added under
    /// another name with most of its lines counts as one renamed file.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn difference(
        &self,
        from: &TreeId,
        to: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Vec<FileDifference>, TreesError> {
        if from == to {
            return Ok(Vec::new());
        }
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--find-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--raw",
            "--numstat",
            "--no-abbrev",
            from.as_str(),
            to.as_str(),
        ];
        let output = self.0.git.ask(&args, stop).await?;
        parsed(&output).ok_or_else(|| TreesError::odd_answer("diff-tree"))
    }
}

/// Parses the output of `diff-tree`. First come records such as `:100644 100755 OLD NEW M`, PATH,
/// then records such as `3 1 PATH`; a zero byte ends each field. A rename has two paths:
/// `:100644 100644 OLD NEW R90`, OLD, NEW, and `3 1 `, OLD, NEW.
fn parsed(output: &[u8]) -> Option<Vec<FileDifference>> {
    let (mut fields, mut files) = (each(output), BTreeMap::new());
    while let Some(head) = fields.next() {
        if let Some(head) = head.strip_prefix(b":") {
            let mut words = std::str::from_utf8(head).ok()?.split(' ');
            let mut mode = || u32::from_str_radix(words.next()?, 8).ok();
            let (from_mode, to_mode) = (mode()?, mode()?);
            let first = spelled(fields.next()?);
            let is_rename = words.nth(2)?.starts_with('R');
            let (from, path) = if is_rename { (Some(first), spelled(fields.next()?)) } else { (None, first) };
            files.insert(path.clone(), FileDifference { path, from, from_mode, to_mode, lines: None });
        } else {
            let mut words = head.splitn(3, |byte| *byte == b'\t');
            let mut count = || std::str::from_utf8(words.next()?).ok();
            let (added, removed) = (count()?, count()?);
            let path = match words.next()? {
                b"" => fields.nth(1)?,
                path => path,
            };
            let lines = added.parse().ok().zip(removed.parse().ok());
            files.get_mut(&spelled(path))?.lines = lines;
        }
    }
    Some(files.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::Project;
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn what_git_says_of_renames_modes_and_files_without_lines_is_understood() {
        let id = "1".repeat(40);
        let raw = |head: &str, paths: &str| format!(":{head}\0{paths}\0").replace("ID", &id);
        let output = [
            raw("100644 100755 ID ID M", "run.sh"),
            raw("100644 100644 ID ID R090", "old.txt\0new\tname.txt"),
            raw("000000 100644 ID ID A", "logo.png"),
            raw("160000 160000 ID ID M", "sub"),
            "0\t0\trun.sh\0".into(),
            "3\t1\t\0old.txt\0new\tname.txt\0".into(),
            "-\t-\tlogo.png\0".into(),
            "1\t1\tsub\0".into(),
        ]
        .concat();
        let file = |path: &str, from: Option<&str>, from_mode, to_mode, lines| FileDifference {
            path: path.into(),
            from: from.map(str::to_owned),
            from_mode,
            to_mode,
            lines,
        };
        let expected = [
            file("logo.png", None, 0, 0o100_644, None),
            file("new\tname.txt", Some("old.txt"), 0o100_644, 0o100_644, Some((3, 1))),
            file("run.sh", None, 0o100_644, 0o100_755, Some((0, 0))),
            file("sub", None, 0o160_000, 0o160_000, Some((1, 1))),
        ];
        assert_eq!(parsed(output.as_bytes()).unwrap(), expected);
        assert_eq!(parsed(b"x\0"), None);
    }

    #[tokio::test]
    async fn git_says_what_differs_file_by_file() {
        let lines = "1\n2\n3\n4\n5\n6\n";
        let project = Project::new(&[("old", lines), ("run.sh", "true\n"), ("gone", "1\n"), ("sub/a", "1\n")]);
        project.commit_all("sub").await;
        let (trees, base) = project.begin().await;
        fs::rename(project.at("old"), project.at("moved")).unwrap();
        fs::set_permissions(project.at("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(project.at("gone")).unwrap();
        project.write("logo", [0, 1, 2]);
        symlink("moved", project.at("link")).unwrap();
        project.write("sub/a", "2\n");
        project.git("sub", &["commit", "-qam", "y"]).await;
        let tree = project.take(&trees).await;
        let files = trees.difference(&base, &tree, &project.stop).await.unwrap();
        let reported = |file: &FileDifference| {
            let from = file.from.as_ref().map(|from| format!("{from} ")).unwrap_or_default();
            format!("{from}{} {:o} {:o} {:?}", file.path, file.from_mode, file.to_mode, file.lines)
        };
        let expected = [
            "gone 100644 0 Some((0, 1))",
            "link 0 120000 Some((1, 0))",
            "logo 0 100644 None",
            "old moved 100644 100644 Some((0, 0))",
            "run.sh 100644 100755 Some((0, 0))",
            "sub/a 100644 100644 Some((1, 1))",
        ];
        assert_eq!(files.iter().map(reported).collect::<Vec<_>>(), expected);
        assert_eq!(trees.difference(&base, &base, &project.stop).await.unwrap(), []);
    }
}
