//! What comes out of a tree: a room, and the workspace as it was.

use super::tests::Project;
use super::*;
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
    assert!(matches!(again, Err(TreesFault::NotEmpty { .. })));
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
    // `b` is what a build finds behind the link, and it did not build that.
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
    assert!(matches!(&fault, TreesFault::InTheWay { path, .. } if path == "f"), "{fault}");
    assert!(project.at("f/precious.log").exists());
}
