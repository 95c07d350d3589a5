//! Actions of users beside a worktree, and unusual repositories.

use super::{GONE, Project, put};
use crate::workspace::worktree::{Worktree, WorktreeContents, WorktreeLeftover, WorktreeRecord};
use std::fs;

#[tokio::test]
async fn housekeeping_of_git_takes_nothing_of_a_worktree() {
    let project = Project::new(&[("a", "1")]).await;
    let worktree = project.make("r-1").await;
    put(&worktree.folder, "a", "changed");
    project.git_in(&worktree.folder, &["add", "-A"]).await;
    for command in [&["gc", "-q", "--prune=now"][..], &["worktree", "prune", "--expire=now"], &["pack-refs", "--all"]] {
        project.git(command).await;
    }
    assert_eq!(project.kept(&worktree).await, "it has uncommitted changes: a");
    assert_eq!(project.git_in(&worktree.folder, &["diff", "--cached", "--name-only"]).await, "a");
    project.git_in(&worktree.folder, &["reset", "-q", "--hard"]).await;
    assert_eq!(project.remove(&worktree, false).await, GONE);
    project.must_be_clear("").await;
}

#[tokio::test]
async fn a_branch_that_somebody_has_checked_out_elsewhere_stays() {
    let project = Project::new(&[("a", "1")]).await;
    let worktree = project.make("r-1").await;
    project.git(&["checkout", "-q", "--ignore-other-worktrees", &worktree.branch]).await;
    assert_eq!(project.remove(&worktree, false).await, WorktreeLeftover { stays: None, has_branch: true });
    assert_eq!(project.git(&["rev-parse", "HEAD"]).await, project.git(&["rev-parse", "main"]).await);
    project.must_be_clear(&worktree.branch).await;
}

#[tokio::test]
async fn the_worktree_of_a_repository_that_was_moved_stays_until_it_is_moved_back() {
    let project = Project::new(&[("a", "1")]).await;
    let worktree = project.make("r-1").await;
    let (root, elsewhere) = (project.root(), project.home.path().join("elsewhere"));
    fs::rename(&root, &elsewhere).unwrap();
    let record = WorktreeRecord::read(worktree.outer()).unwrap().unwrap();
    let work = WorktreeContents::without_project(&root);
    let why = work.keeps().unwrap();
    assert!(why.ends_with(&format!("its project {} is gone: move it back, or copy out what you need", root.display())));
    let left = record.remove(false, &project.env(), project.home.path(), &project.stop).await.unwrap();
    assert_eq!(left, WorktreeLeftover { stays: Some(why), has_branch: true });
    fs::rename(&elsewhere, &root).unwrap();
    assert_eq!(project.remove(&worktree, false).await, GONE);
    project.must_be_clear("").await;
}

#[tokio::test]
async fn files_that_a_filter_keeps_elsewhere_are_as_in_any_checkout() {
    // Like Git LFS: the commit has a pointer, and a program replaces it with the contents.
    let project = Project::new(&[(".gitattributes", "*.bin filter=lfs\n")]).await;
    project.git(&["config", "filter.lfs.clean", "sed s/large/pointer/"]).await;
    project.git(&["config", "filter.lfs.smudge", "sed s/pointer/large/"]).await;
    put(&project.root(), "x.bin", "large\n");
    project.commit_all().await;
    assert_eq!(project.git(&["show", "HEAD:x.bin"]).await, "pointer");
    let worktree = project.make("r-1").await;
    assert_eq!(fs::read_to_string(worktree.folder.join("x.bin")).unwrap(), "large\n");
    assert_eq!(project.remove(&worktree, false).await, GONE);
    project.must_be_clear("").await;
    // If that program is missing, git fails and the unfinished worktree is not kept.
    project.git(&["config", "filter.lfs.smudge", "no-such-program"]).await;
    project.git(&["config", "filter.lfs.required", "true"]).await;
    let (worktree, run) = project.choose("r-2");
    let fault = project.try_to_make(&worktree, &run).await.unwrap_err().to_string();
    assert!(fault.contains("x.bin") && fault.contains("no-such-program"), "{fault}");
    assert_eq!(project.remove(&worktree, false).await, GONE);
    project.git(&["config", "filter.lfs.smudge", "sed s/pointer/large/"]).await;
    project.must_be_clear("").await;
}

#[tokio::test]
async fn what_a_worktree_would_begin_with_is_written_for_who_only_looks() {
    let project = Project::new(&[("a", "1"), ("sub/b", "2")]).await;
    put(&project.root(), "a", "not committed");
    put(&project.root(), "new", "");
    let (worktree, _run) = project.choose("r-1");
    let into = project.home.path().join("seen");
    let base = worktree.export(&into, &project.env(), project.home.path(), &project.stop).await.unwrap();
    assert_eq!(base, project.git(&["rev-parse", "HEAD"]).await);
    assert_eq!(fs::read_to_string(into.join("a")).unwrap(), "1");
    assert!(into.join("sub/b").is_file() && !into.join("new").exists() && !into.join(".git").exists());
    assert_eq!(project.git(&["status", "--porcelain"]).await, " M a\n?? new");
    assert!(WorktreeRecord::read(worktree.outer()).unwrap().is_none());
    let inner = Worktree { inner: "sub".into(), ..worktree };
    let into = project.home.path().join("inner");
    inner.export(&into, &project.env(), project.home.path(), &project.stop).await.unwrap();
    assert_eq!(fs::read_to_string(into.join("b")).unwrap(), "2");
}

#[tokio::test]
async fn a_worktree_has_the_name_of_the_project_and_is_told_from_others_of_that_name() {
    let project = Project::new(&[("a", "1")]).await;
    let named = project.home.path().canonicalize().unwrap().join("my app~1");
    fs::rename(project.root(), &named).unwrap();
    std::os::unix::fs::symlink(&named, project.root()).unwrap();
    let [first, second] = ["r-1", "r-2"].map(|run| {
        let run = crate::id::RunId::new(run);
        (Worktree::choose(&project.all(), &run, "Mend", None, &named, &named), run)
    });
    for (worktree, run) in [&first, &second] {
        project.try_to_make(worktree, run).await.unwrap();
        assert_eq!(worktree.folder.file_name(), named.file_name());
    }
    // A worktree of the user with the same name, and one that git has only begun.
    let own = project.home.path().join("own/my app~1");
    project.git(&["worktree", "add", "-q", "-b", "own", own.to_str().unwrap()]).await;
    let kept = named.join(".git/worktrees");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 3);
    put(&kept, "my-app-17/locked", "initializing");
    assert_eq!(project.remove(&first.0, false).await, GONE);
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 2);
    project.git_in(&own, &["status"]).await;
    put(&second.0.folder, "a", "changed");
    assert_eq!(project.kept(&second.0).await, "it has uncommitted changes: a");
    assert_eq!(project.remove(&second.0, true).await, GONE);
}
