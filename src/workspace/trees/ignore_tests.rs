//! Ignored files in bases, with the rules of the workspace, of the user's repository and of the
//! user.

use super::tests::{PATH, Project};
use super::*;
use std::fs;

#[tokio::test]
async fn what_a_run_before_took_and_is_ignored_since_is_not_in_the_next_base() {
    let project = Project::new(&[("a", "1"), ("big/x", "1")]);
    let (_, first) = project.begin().await;
    project.write(".gitignore", "big/\n");
    let (trees, second) = project.begin().await;
    assert_eq!(project.paths(&trees, &second).await, [".gitignore", "a"]);
    assert_ne!(first, second);
    // In each case two bases are taken before the rule exists, and then only the rule changes.
    for (list, text) in [("big/.gitignore", "*\n"), (".git/info/exclude", "big\n"), (".gitignore", "x\n")] {
        let project = Project::new(&[("a", "1"), ("big/x", "1")]);
        project.git("", &["init", "-q", "."]).await;
        for _ in 0..2 {
            let (trees, base) = project.begin().await;
            assert_eq!(project.paths(&trees, &base).await, ["a", "big/x"]);
        }
        project.write(list, text);
        let (trees, base) = project.begin().await;
        assert!(!project.paths(&trees, &base).await.contains(&"big/x".to_owned()), "{list}");
    }
}

#[tokio::test]
async fn what_the_work_ignores_is_no_longer_in_the_base_of_the_next_run() {
    let project = Project::new(&[("a", "1"), ("big/x", "1")]);
    let (trees, base) = project.begin().await;
    project.write(".gitignore", "big\n");
    let tree = project.take(&trees).await;
    assert_eq!(project.paths(&trees, &tree).await, [".gitignore", "a", "big/x"]);
    assert_ne!(tree, base);
    let (trees, next) = project.begin().await;
    assert_eq!(project.paths(&trees, &next).await, [".gitignore", "a"]);
}

#[tokio::test]
async fn what_is_tracked_no_more_and_ignored_is_not_in_the_next_base() {
    let project = Project::new(&[("a", "1"), (".gitignore", "*.log\n"), ("b.log", "1")]);
    project.commit_all("").await;
    project.git("", &["add", "-f", "b.log"]).await;
    for _ in 0..2 {
        let (trees, base) = project.begin().await;
        assert_eq!(project.paths(&trees, &base).await, [".gitignore", "a", "b.log"]);
    }
    project.git("", &["rm", "-q", "--cached", "b.log"]).await;
    let (trees, base) = project.begin().await;
    assert_eq!(project.paths(&trees, &base).await, [".gitignore", "a"]);
}

#[tokio::test]
async fn what_the_user_ignores_elsewhere_counts_as_it_was_at_the_start() {
    let project =
        Project::new(&[("p/a", "1"), ("p/local", "1"), ("p/mine", "1"), ("p/out/x", "1"), ("p/forced.log", "1")]);
    project.write(".gitignore", "/p/out\n*.log\n");
    fs::create_dir_all(project.home.path().join(".config/git")).unwrap();
    fs::write(project.home.path().join(".config/git/ignore"), "mine\n").unwrap();
    project.git("", &["init", "-q", "."]).await;
    fs::write(project.at(".git/info/exclude"), "local\n").unwrap();
    project.commit_all("").await;
    project.git("", &["add", "-f", "p/forced.log"]).await;
    let below = project.root().join("p");
    let trees = Trees::open(&project.home.path().join("t"), &below, PATH, &project.stop).await.unwrap();
    trees.freeze_ignores(&project.env(), &project.stop).await.unwrap();
    fs::write(project.at(".git/info/exclude"), "a\nlater\n").unwrap();
    project.write("p/later", "1");
    let base = project.take(&trees).await;
    assert_eq!(project.paths(&trees, &base).await, ["a", "forced.log", "later"]);
}
