//! Exports of trees to rooms, and restored workspaces.

use super::tests::Project;
use super::*;
use crate::workspace::replica::{self, KeptHistory, RoomRepository, SourceRepository};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

#[tokio::test]
async fn a_room_has_the_tree_and_only_what_changed_is_new_in_it() {
    let project = Project::new(&[("a", "1"), ("run.sh", "#!/bin/sh\n"), ("src/b", "2"), ("src/deep/c", "3")]);
    fs::set_permissions(project.at("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a", project.at("link")).unwrap();
    let (trees, base) = project.begin().await;
    project.write("src/b", "4");
    project.write("src/deep/new", "5");
    let tree = project.take(&trees).await;
    let room = project.home.path().join("room");
    trees.export(&tree, &base, &room, &project.stop).await.unwrap();
    let is_old = |path: &str| fs::symlink_metadata(room.join(path)).unwrap().mtime() == 1_000_000_000;
    let old = ["a", "run.sh", "link", "src/deep/c"].map(is_old);
    let new = ["src/b", "src/deep/new", "src/deep", "src"].map(is_old);
    assert_eq!((old, new), ([true; 4], [false; 4]));
    assert_eq!(fs::read_link(room.join("link")).unwrap(), Path::new("a"));
    assert_eq!(fs::metadata(room.join("run.sh")).unwrap().mode() & 0o100, 0o100);
    assert!(!room.join(".git").exists());
    let again = trees.export(&tree, &base, &room, &project.stop).await;
    assert!(matches!(again, Err(TreesError::NotEmpty { .. })));
}

#[tokio::test]
async fn all_is_new_where_a_link_has_changed() {
    let project = Project::new(&[("a", "1"), ("b", "2")]);
    symlink("a", project.at("link")).unwrap();
    let (trees, base) = project.begin().await;
    fs::remove_file(project.at("link")).unwrap();
    symlink("b", project.at("link")).unwrap();
    let tree = project.take(&trees).await;
    let room = project.home.path().join("room");
    trees.export(&tree, &base, &room, &project.stop).await.unwrap();
    // The build finds `b` behind the link now, but never built it.
    assert!(fs::metadata(room.join("link")).unwrap().mtime() > 1_000_000_000);
}

#[tokio::test]
async fn the_workspace_is_put_back_and_ignored_files_stay() {
    let project = Project::new(&[(".gitignore", "*.log\n"), ("a", "1"), ("d/b", "2"), ("f", "3")]);
    symlink("a", project.at("link")).unwrap();
    let (trees, base) = project.begin().await;
    project.write("a", "9");
    fs::set_permissions(project.at("a"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir_all(project.at("d")).unwrap();
    symlink(project.home.path(), project.at("d")).unwrap();
    fs::remove_file(project.at("f")).unwrap();
    project.write("f/inside", "9");
    project.write("new/deep/x", "9");
    project.write("kept.log", "9");
    fs::remove_file(project.at("link")).unwrap();
    let changed = project.take(&trees).await;
    assert_eq!(trees.put_back(&base, None, &project.stop).await.unwrap(), changed);
    assert_eq!(project.take(&trees).await, base);
    assert_eq!((project.at("kept.log").exists(), project.at("new").exists()), (true, false));
    assert!(!project.home.path().join("b").exists(), "nothing went by the link");
    trees.put_back(&changed, Some(&["f".to_owned(), "a".to_owned()]), &project.stop).await.unwrap();
    assert_eq!((fs::read(project.at("f/inside")).unwrap(), project.at("new").exists()), (b"9".to_vec(), false));
    assert_eq!(fs::metadata(project.at("a")).unwrap().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn what_is_ignored_is_not_removed_to_put_a_file_back() {
    let project = Project::new(&[(".gitignore", "*.log\n"), ("f", "3")]);
    let (trees, base) = project.begin().await;
    fs::remove_file(project.at("f")).unwrap();
    project.write("f/precious.log", "9");
    let fault = trees.put_back(&base, None, &project.stop).await.unwrap_err();
    assert!(matches!(&fault, TreesError::InTheWay { path, .. } if path == "f"), "{fault}");
    assert!(project.at("f/precious.log").exists());
}

/// Makes a room of the base with a history. `most` limits the bytes of the user's packs for a whole
/// history. Returns the git of the room.
async fn room_with_history(project: &Project, most: u64) -> GitFolder {
    let (trees, base) = project.begin().await;
    let stop = &project.stop;
    let source = SourceRepository::read(&trees, &project.root(), &project.env(), stop).await.unwrap().unwrap();
    let at = |name: &str| project.home.path().join(format!("{name}-{most}"));
    let history = KeptHistory::make(&trees, &source, &base, &at("history"), (&[], most), stop).await.unwrap();
    let (room, index) = (at("room"), at("index"));
    trees.export_with_index(&base, &base, &room, &index, stop).await.unwrap();
    let (seen_at, tree) = (history.folder(), &base);
    let repository =
        RoomRepository { source: &source, history: Some(&history), seen_at, base: &base, tree, has_stat: false };
    replica::write(&trees, repository, &room, &index, stop).await.unwrap();
    GitFolder::of_user(&room, project.home.path(), &project.env())
}

#[tokio::test]
async fn of_a_large_history_a_room_has_the_commits_and_tags_and_the_files_of_the_base() {
    let project = Project::new(&[("a", "1"), ("old", "gone since")]);
    project.commit_all("").await;
    project.git("", &["tag", "-a", "v1", "-m", "x"]).await;
    fs::remove_file(project.at("old")).unwrap();
    project.commit_all("").await;
    project.git("", &["gc", "-q"]).await;
    for (most, has_old) in [(u64::MAX, true), (0, false)] {
        let git = room_with_history(&project, most).await;
        let says = async |args: &[&str]| {
            let answer = git.run(args, b"", usize::MAX, &project.stop).await.unwrap();
            (answer.code == 0).then(|| String::from_utf8(answer.output).unwrap())
        };
        assert!(says(&["describe", "--long"]).await.is_some_and(|name| name.starts_with("v1-1-g")), "{most}");
        assert_eq!(says(&["rev-list", "--count", "HEAD"]).await.as_deref(), Some("2\n"));
        assert_eq!(says(&["cat-file", "blob", "HEAD:a"]).await.as_deref(), Some("1"));
        assert_eq!(says(&["cat-file", "blob", "HEAD~1:old"]).await.is_some(), has_old, "{most}");
        assert_eq!(says(&["status", "--porcelain"]).await.as_deref(), Some(""));
    }
}

#[tokio::test]
async fn the_index_of_a_room_has_the_times_of_its_files_so_that_git_reads_none() {
    let project = Project::new(&[("a", "1"), ("run.sh", "#!/bin/sh\n"), ("src/a-name-of-another-length", "2")]);
    fs::set_permissions(project.at("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a", project.at("link")).unwrap();
    project.commit_all("").await;
    let git = room_with_history(&project, u64::MAX).await;
    // `diff-files` compares the index with the files, and names each file that it would have to
    // read.
    let stale = git.run(&["diff-files", "--name-only"], b"", usize::MAX, &project.stop).await.unwrap();
    assert_eq!((stale.code, String::from_utf8(stale.output).unwrap().as_str()), (0, ""));
    // `fsck` verifies the checksum of the index.
    let checked = git.run(&["fsck", "--no-dangling"], b"", usize::MAX, &project.stop).await.unwrap();
    assert_eq!((checked.code, checked.stderr.as_str()), (0, ""));
}
