//! Real git on real files: contents of trees, files that never get into trees, and restored files.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use tempfile::TempDir;

pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A workspace and a private git directory beside it.
pub(super) struct Project {
    pub(super) home: TempDir,
    pub(super) stop: CancellationToken,
}

impl Project {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { home: crate::test_support::temp_dir(), stop: CancellationToken::new() };
        fs::create_dir(project.root()).unwrap();
        files.iter().for_each(|(path, text)| project.write(path, text));
        project
    }

    pub(super) fn root(&self) -> PathBuf {
        self.home.path().join("w")
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(super) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn env(&self) -> [(String, String); 2] {
        let home = self.home.path().to_string_lossy().into_owned();
        [("PATH".to_owned(), PATH.to_owned()), ("HOME".to_owned(), home)]
    }

    /// Runs the user's git.
    pub(super) async fn git(&self, dir: &str, args: &[&str]) {
        let git = GitFolder::of_user(&self.at(dir), self.home.path(), &self.env());
        let me = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"];
        git.ask(&[me.as_slice(), args].concat(), &self.stop).await.unwrap();
    }

    pub(super) async fn commit_all(&self, dir: &str) {
        for args in [["init", "-q", "."].as_slice(), &["add", "-A"], &["commit", "-qm", "x"]] {
            self.git(dir, args).await;
        }
    }

    pub(super) async fn open(&self) -> Trees {
        let trees = Trees::open(&self.home.path().join("trees.git"), &self.root(), PATH, &self.stop).await.unwrap();
        trees.freeze_ignores(&self.env(), &self.stop).await.unwrap();
        trees
    }

    pub(super) async fn begin(&self) -> (Trees, TreeId) {
        let trees = self.open().await;
        let base = self.take(&trees).await;
        (trees, base)
    }

    pub(super) async fn take(&self, trees: &Trees) -> TreeId {
        trees.take(&self.stop).await.unwrap().tree
    }

    pub(super) async fn paths(&self, trees: &Trees, tree: &TreeId) -> Vec<String> {
        let entries = trees.entries(tree, &self.stop).await.unwrap();
        entries.into_iter().map(|entry| entry.path).collect()
    }

    pub(super) async fn changes(&self, trees: &Trees, from: &TreeId, to: &TreeId) -> Vec<(String, TreeChangeKind)> {
        let changes = trees.changes(from, to, &self.stop).await.unwrap();
        changes.into_iter().map(|change| (change.path, change.kind)).collect()
    }

    pub(super) async fn anomalies(&self, trees: &Trees) -> Vec<String> {
        let taken = trees.take(&self.stop).await.unwrap();
        taken.anomalies.iter().map(|it| format!("{}: {}", it.path, it.what)).collect()
    }
}

#[tokio::test]
async fn a_tree_has_what_is_there_and_not_ignored_and_what_changed_is_told() {
    let project = Project::new(&[(".gitignore", "out/\n"), ("a", "1"), ("out/x", "1"), ("src/b", "2"), ("src/c", "3")]);
    let (trees, base) = project.begin().await;
    assert_eq!(project.paths(&trees, &base).await, [".gitignore", "a", "src/b", "src/c"]);
    assert_eq!(project.take(&trees).await, base);
    project.write("src/b", "4");
    project.write("src/new", "5");
    fs::remove_file(project.at("a")).unwrap();
    fs::set_permissions(project.at("src/c"), fs::Permissions::from_mode(0o755)).unwrap();
    let tree = project.take(&trees).await;
    let expected = [
        ("a", TreeChangeKind::Removed),
        ("src/b", TreeChangeKind::Modified),
        ("src/c", TreeChangeKind::ModeChanged),
        ("src/new", TreeChangeKind::Added),
    ];
    assert_eq!(project.changes(&trees, &base, &tree).await, expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert_eq!(trees.read(&tree, "src/new", 1, &project.stop).await.unwrap(), Some(b"5".to_vec()));
    assert_eq!(trees.read(&tree, "a", 9, &project.stop).await.unwrap(), None);
    assert!(matches!(trees.read(&tree, "src/b", 0, &project.stop).await, Err(TreesError::TooLarge { bytes: 1, .. })));
    let all = trees.read_all(&tree, &["src/new", "src/b", "a"], 1, &project.stop).await.unwrap();
    assert_eq!(
        all.into_iter().map(|(path, text)| (path, text.len())).collect::<Vec<_>>(),
        [("src/b".into(), 1), ("src/new".into(), 1)]
    );
    assert!(trees.read_all(&tree, &["src/b"], 0, &project.stop).await.unwrap().is_empty(), "it is too large");
    let diff = trees.diff(&base, &tree, DiffForm::Patch, 10_000, &project.stop).await.unwrap();
    assert!(String::from_utf8(diff).unwrap().contains("-2\n\\ No newline at end of file\n+4\n"));
    assert_eq!(trees.diff(&base, &tree, DiffForm::Whole, 10, &project.stop).await.unwrap().len(), 10);
}

#[tokio::test]
async fn a_resumed_base_finds_changes_made_since_the_newest_take() {
    let project = Project::new(&[("a", "1"), ("b", "1")]);
    let (trees, base) = project.begin().await;
    project.write("a", "22");
    project.take(&trees).await;
    project.write("a", "333");
    let again = project.open().await;
    again.resume(&base, &project.stop).await.unwrap();
    let tree = project.take(&again).await;
    assert_eq!(again.read(&tree, "a", 9, &project.stop).await.unwrap(), Some(b"333".to_vec()));
}

#[tokio::test]
async fn ignore_lists_of_the_base_apply_and_caches_stay_out_after_the_lists_change() {
    let project = Project::new(&[(".gitignore", "build/\n"), ("a", "1"), ("sub/.gitignore", "*.log\n")]);
    let (trees, base) = project.begin().await;
    project.write(".gitignore", "!build/\n!__pycache__/\n");
    project.write("build/a", "planted");
    project.write("__pycache__/a.cpython-311.pyc", "planted");
    project.write("sub/x.log", "said");
    fs::remove_file(project.at("sub/.gitignore")).unwrap();
    project.write("new", "2");
    for _ in 0..2 {
        let tree = project.take(&trees).await;
        assert_eq!(project.paths(&trees, &tree).await, [".gitignore", "a", "new"]);
        assert_ne!(tree, base);
    }
    assert!(project.at("build/a").exists(), "what stays out stays where it is");
}

#[tokio::test]
async fn a_file_of_the_base_stays_in_view_and_what_the_base_ignores_never_comes_in() {
    let project = Project::new(&[(".gitignore", ".env\nold/\n"), ("a", "1"), (".env", "secret"), ("old/x", "1")]);
    let (trees, base) = project.begin().await;
    project.write(".gitignore", "a\nnew/\n!.env\n");
    project.write("a", "2");
    project.write("new/x", "hidden by its writer");
    let tree = project.take(&trees).await;
    assert_eq!(project.paths(&trees, &tree).await, [".gitignore", "a"]);
    assert_eq!(trees.read(&tree, "a", 9, &project.stop).await.unwrap(), Some(b"2".to_vec()));
    let again = project.open().await;
    again.resume(&base, &project.stop).await.unwrap();
    assert_eq!(project.take(&again).await, tree, "a run that is taken up again sees the same");
}

#[tokio::test]
async fn nothing_that_a_repository_says_runs_a_program_or_changes_a_byte() {
    let project = Project::new(&[("a.txt", "one\r\ntwo\r\n"), ("$Id$", "$Id$\n")]);
    project.commit_all("").await;
    let mark = project.home.path().join("ran");
    let run = format!("touch {}", mark.display());
    for (key, value) in [
        ("core.fsmonitor", run.as_str()),
        ("filter.evil.clean", &run),
        ("filter.evil.process", &run),
        ("core.autocrlf", "true"),
        ("core.worktree", "/"),
    ] {
        project.git("", &["config", key, value]).await;
    }
    project.write(".git/hooks/post-index-change", format!("#!/bin/sh\n{run}\n"));
    fs::set_permissions(project.at(".git/hooks/post-index-change"), fs::Permissions::from_mode(0o755)).unwrap();
    project.write(".git/objects/info/alternates", "/nonexistent\n");
    project.write(".gitattributes", "* text=auto eol=lf filter=evil ident working-tree-encoding=UTF-16 -diff\n");
    let (trees, base) = project.begin().await;
    let bytes = trees.read(&base, "a.txt", 99, &project.stop).await.unwrap().unwrap();
    assert_eq!(bytes, b"one\r\ntwo\r\n");
    project.write("a.txt", "three\r\n");
    let tree = project.take(&trees).await;
    let room = project.home.path().join("room");
    trees.export(&tree, &base, &room, &project.stop).await.unwrap();
    assert_eq!(fs::read(room.join("a.txt")).unwrap(), b"three\r\n");
    assert_eq!(fs::read(room.join("$Id$")).unwrap(), b"$Id$\n");
    let diff = trees.diff(&base, &tree, DiffForm::Patch, 9999, &project.stop).await.unwrap();
    assert!(String::from_utf8(diff).unwrap().contains("+three"), "nor does it hide a difference");
    assert!(!mark.exists());
}

#[tokio::test]
async fn what_the_agent_tells_the_users_index_hides_nothing() {
    let project = Project::new(&[("a", "1"), ("b", "1")]);
    project.commit_all("").await;
    let (trees, base) = project.begin().await;
    project.git("", &["update-index", "--assume-unchanged", "a"]).await;
    project.git("", &["update-index", "--skip-worktree", "b"]).await;
    project.write("a", "2");
    project.write("b", "2");
    let tree = project.take(&trees).await;
    let expected = ["a", "b"].map(|path| (path.to_owned(), TreeChangeKind::Modified));
    assert_eq!(project.changes(&trees, &base, &tree).await, expected);
}

#[tokio::test]
async fn a_change_that_keeps_size_and_time_is_seen() {
    let project = Project::new(&[("a", "1")]);
    let (trees, base) = project.begin().await;
    let time = fs::metadata(project.at("a")).unwrap().modified().unwrap();
    project.write("a", "2");
    fs::File::options().write(true).open(project.at("a")).unwrap().set_modified(time).unwrap();
    assert_ne!(project.take(&trees).await, base);
}

#[tokio::test]
async fn repositories_inside_are_taken_with_their_files_and_new_ones_are_odd() {
    let project =
        Project::new(&[("a", "1"), ("vendor/lib/b", "1"), ("vendor/lib/.gitignore", "x\n"), ("vendor/lib/x", "1")]);
    project.commit_all("vendor/lib").await;
    project.commit_all("").await;
    let (trees, base) = project.begin().await;
    assert_eq!(project.paths(&trees, &base).await, ["a", "vendor/lib/.gitignore", "vendor/lib/b"]);
    assert_eq!(project.anomalies(&trees).await, [""; 0]);
    project.write("vendor/lib/c", "1");
    project.write("new/d", "1");
    project.commit_all("new").await;
    project.git("new", &["config", "core.fsmonitor", "touch ran; false"]).await;
    assert_eq!(project.anomalies(&trees).await, ["new: a repository inside the workspace"]);
    let tree = project.take(&trees).await;
    let paths = ["a", "new/d", "vendor/lib/.gitignore", "vendor/lib/b", "vendor/lib/c"];
    assert_eq!(project.paths(&trees, &tree).await, paths);
}

#[tokio::test]
async fn what_is_odd_and_new_is_told_and_what_was_there_is_not() {
    let project = Project::new(&[("a", "1"), ("src/lib.rs", "1")]);
    symlink("/etc/passwd", project.at("old")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, project.at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let (trees, _) = project.begin().await;
    assert_eq!(project.anomalies(&trees).await, [""; 0]);
    symlink("old", project.at("src/new")).unwrap();
    symlink("../old", project.at("src/chain")).unwrap();
    symlink("../a", project.at("src/fine")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, project.at("src/pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    project.write("src/LIB.rs", "1");
    project.write("src/.GIT/config", "1");
    let expected = [
        "src/.GIT: a name that some systems take for `.git`",
        "src/LIB.rs: differs only in capitals from `src/lib.rs`",
        "src/chain: a link that leads out of the workspace",
        "src/pipe: a pipe, socket or device",
    ];
    assert_eq!(project.anomalies(&trees).await, expected);
}

#[tokio::test]
async fn any_name_goes_in_and_comes_out_again() {
    let long = "n".repeat(255);
    let project = Project::new(&[("-rf", "1"), ("a\n\"b\"\\", "2"), (":(top)x", "3"), (&long, "4"), ("*", "5")]);
    let invalid = project.root().join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"d-\xff"));
    fs::write(&invalid, "6").unwrap();
    let (trees, base) = project.begin().await;
    let mut names = ["-rf", "a\n\"b\"\\", ":(top)x", &long, "*", "d-\u{10FFFF}"].map(str::to_owned);
    names.sort();
    assert_eq!(project.paths(&trees, &base).await, names);
    for name in &names {
        fs::write(project.root().join(take::native(name)), "changed").unwrap();
    }
    let changed = project.take(&trees).await;
    assert_eq!(project.changes(&trees, &base, &changed).await.len(), names.len());
    assert_eq!(trees.read(&changed, "d-\u{10FFFF}", 9, &project.stop).await.unwrap(), Some(b"changed".to_vec()));
    assert_eq!(trees.with_paths_of(&changed, &base, &names, &project.stop).await.unwrap(), base);
    assert_eq!(trees.put_back(&base, Some(&names), &project.stop).await.unwrap(), changed);
    assert_eq!((project.take(&trees).await, fs::read(&invalid).unwrap()), (base, b"6".to_vec()));
}

#[tokio::test]
async fn a_tree_is_made_with_paths_of_the_base_and_without_what_the_base_lacks() {
    let project = Project::new(&[("keep", "1"), ("lanes/verify.yaml", "1"), ("x", "file"), ("t/a", "1")]);
    let (trees, base) = project.begin().await;
    project.write("keep", "2");
    project.write("lanes/verify.yaml", "2");
    project.write("lanes/more.yaml", "2");
    fs::remove_file(project.at("x")).unwrap();
    project.write("x/y", "folder");
    fs::remove_dir_all(project.at("t")).unwrap();
    project.write("t", "file");
    let tree = project.take(&trees).await;
    let paths = ["lanes", "x", "t/a"].map(str::to_owned);
    let made = trees.with_paths_of(&tree, &base, &paths, &project.stop).await.unwrap();
    assert_eq!(project.changes(&trees, &base, &made).await, [("keep".to_owned(), TreeChangeKind::Modified)]);
}

#[tokio::test]
async fn two_runs_do_not_disturb_each_other_and_what_a_dead_one_left_blocks_nobody() {
    let project = Project::new(&[("a", "1")]);
    let (one, base) = project.begin().await;
    let git_dir = project.home.path().join("trees.git");
    fs::write(git_dir.join("index.lock"), "").unwrap();
    fs::create_dir_all(git_dir.join("scratch/dead")).unwrap();
    fs::write(git_dir.join("scratch/dead/lock"), "").unwrap();
    project.write("a", "2");
    let (two, second) = project.begin().await;
    assert!(!git_dir.join("scratch/dead").exists());
    project.write("b", "3");
    let (first, other) = futures_util::join!(one.take(&project.stop), two.take(&project.stop));
    assert_eq!(first.unwrap().tree, other.unwrap().tree);
    assert_ne!(base, second);
    drop(one);
    let left: Vec<_> = fs::read_dir(git_dir.join("scratch")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn who_is_stopped_stops_and_the_git_directory_is_not_in_the_workspace() {
    let project = Project::new(&[("a", "1")]);
    let trees = project.open().await;
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert!(matches!(trees.take(&stopped).await, Err(TreesError::Stopped)));
    let inside = Trees::open(&project.at("t"), &project.root(), PATH, &project.stop).await;
    assert!(matches!(inside, Err(TreesError::Inside { .. })));
    let nowhere = Trees::open(&project.home.path().join("t"), &project.root(), "/nonexistent", &project.stop).await;
    assert!(matches!(nowhere, Err(TreesError::NoGit { .. })));
}

#[tokio::test]
async fn a_tree_is_kept_by_a_name_until_that_is_forgotten() {
    let project = Project::new(&[("a", "1")]);
    let (trees, base) = project.begin().await;
    let refs = async || {
        let all = trees.0.git.ask(&["for-each-ref", "--format=%(refname)"], &project.stop).await.unwrap();
        String::from_utf8(all).unwrap()
    };
    trees.keep("r1/base", &base, &project.stop).await.unwrap();
    // Another git was killed while it wrote this name.
    let lock = trees.0.git_dir.join("refs/kept/r10/base.lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(lock, "").unwrap();
    trees.keep("r10/base", &base, &project.stop).await.unwrap();
    trees.forget("r1", &project.stop).await.unwrap();
    assert_eq!(refs().await, "refs/kept/r10/base\n");
    for name in ["", "../x", "a b", "a//b", "-\n"] {
        assert!(matches!(trees.keep(name, &base, &project.stop).await, Err(TreesError::Name { .. })), "{name}");
    }
}
