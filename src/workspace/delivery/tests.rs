//! Commits in real repositories: their trees, the references that move, and refused deliveries.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use tempfile::TempDir;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A repository with a commit, and a workspace in it.
struct Project {
    home: TempDir,
    below: &'static str,
    stop: CancellationToken,
}

impl Project {
    async fn new(below: &'static str, files: &[(&str, &str)]) -> Self {
        let project = Self { home: crate::test_support::temp_dir(), below, stop: CancellationToken::new() };
        fs::create_dir_all(project.root()).unwrap();
        project.git(&["init", "-q", "-b", "main", "../w/."]).await;
        files.iter().for_each(|(path, text)| project.write(path, text));
        if !files.is_empty() {
            project.commit_all().await;
        }
        project
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("w").join(self.below)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join("w").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn env(&self) -> [(String, String); 2] {
        let home = self.home.path().to_string_lossy().into_owned();
        [("PATH".to_owned(), PATH.to_owned()), ("HOME".to_owned(), home)]
    }

    async fn git(&self, args: &[&str]) -> String {
        let git = GitFolder::of_user(&self.home.path().join("w"), self.home.path(), &self.env());
        let me = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"];
        let output = git.ask(&[me.as_slice(), args].concat(), &self.stop).await.unwrap();
        String::from_utf8(output).unwrap().trim_end().to_owned()
    }

    async fn commit_all(&self) {
        self.git(&["add", "-A"]).await;
        self.git(&["commit", "-qm", "first"]).await;
    }

    /// Takes the base, runs `work` as the agent, and commits the result.
    async fn deliver(&self, work: impl AsyncFnOnce()) -> Result<MadeCommit, DeliveryError> {
        let trees = Trees::open(&self.home.path().join("t"), &self.root(), PATH, &self.stop).await.unwrap();
        trees.freeze_ignores(&self.env(), &self.stop).await.unwrap();
        let repository = UserRepository::around(&trees, &self.env(), &self.stop).await.unwrap().unwrap();
        let head = repository.head(&self.stop).await.unwrap();
        let base = trees.take(&self.stop).await.unwrap().tree;
        work().await;
        let tree = trees.take(&self.stop).await.unwrap().tree;
        let trailers = [("Verified-by".to_owned(), "verify".to_owned())];
        let (message, trailers) = ("Mend it\n\nAll of it.", &trailers);
        let what = CommitRequest { head: &head, tree: &tree, base: &base, message, trailers };
        repository.commit(&what, &self.stop).await
    }

    async fn status(&self) -> String {
        self.git(&["status", "--porcelain"]).await
    }
}

#[tokio::test]
async fn the_judged_tree_becomes_a_commit_on_the_branch_and_the_index_is_at_it() {
    let project = Project::new("", &[("a", "1"), ("b", "1")]).await;
    let before = project.git(&["rev-parse", "HEAD"]).await;
    project.git(&["config", "commit.gpgSign", "true"]).await;
    project.write(".git/hooks/reference-transaction", "#!/bin/sh\nexit 1\n");
    let made = project
        .deliver(async || {
            project.write("a", "2");
            project.write("c", "3");
            fs::remove_file(project.root().join("b")).unwrap();
        })
        .await
        .unwrap();
    assert_eq!(made.notes, ["git has no committer configured, so fledge <fledge@localhost> is the author"]);
    assert_eq!(project.git(&["rev-parse", "refs/heads/main"]).await, made.commit);
    assert_eq!(project.git(&["rev-parse", "HEAD^"]).await, before);
    assert_eq!(project.status().await, "");
    let shown = project.git(&["log", "-1", "--format=%an <%ae>%n%B"]).await;
    assert_eq!(shown, "fledge <fledge@localhost>\nMend it\n\nAll of it.\n\nVerified-by: verify");
    assert_eq!(project.git(&["ls-files"]).await, "a\nc");
    project.git(&["fsck", "--strict"]).await;
}

#[tokio::test]
async fn of_a_workspace_below_the_top_only_its_folder_is_another() {
    let project = Project::new("p/q", &[("top", "1"), ("p/q/a", "1"), ("p/other", "1")]).await;
    project.git(&["config", "user.name", "Ann"]).await;
    project.git(&["config", "user.email", "ann@localhost"]).await;
    project.git(&["checkout", "-q", "--detach"]).await;
    project.write("top", "not the run's");
    let made = project.deliver(async || project.write("p/q/new", "2")).await.unwrap();
    assert_eq!(made.notes, [""; 0]);
    assert_eq!(project.git(&["log", "-1", "--format=%an", &made.commit]).await, "Ann");
    assert_eq!(project.git(&["diff", "--name-status", "HEAD^", "HEAD"]).await, "A\tp/q/new");
    assert_eq!(project.git(&["rev-parse", "HEAD"]).await, made.commit);
    assert_ne!(project.git(&["rev-parse", "refs/heads/main"]).await, made.commit);
    assert_eq!(project.status().await, " M top");
}

#[tokio::test]
async fn a_repository_without_a_commit_gets_its_first() {
    let project = Project::new("", &[]).await;
    let made = project.deliver(async || project.write("a", "1")).await.unwrap();
    assert_eq!(project.git(&["rev-list", "--all"]).await, made.commit);
    assert_eq!(project.status().await, "");
}

#[tokio::test]
async fn nothing_is_committed_where_the_head_has_moved_or_nothing_changed() {
    let project = Project::new("", &[("a", "1")]).await;
    assert!(matches!(project.deliver(async || {}).await, Err(DeliveryError::Nothing)));
    let moved = project
        .deliver(async || {
            project.write("a", "2");
            project.commit_all().await;
        })
        .await;
    assert!(matches!(moved, Err(DeliveryError::Moved { .. })));
    let moved = project
        .deliver(async || {
            project.write("a", "3");
            project.git(&["checkout", "-q", "-b", "other"]).await;
        })
        .await;
    assert!(matches!(moved, Err(DeliveryError::Moved { .. })));
}

#[tokio::test]
async fn what_a_filter_stores_otherwise_stays_and_is_refused_when_the_run_changed_it() {
    let project = Project::new("", &[(".gitattributes", "*.bin filter=big\n*.txt text\n"), ("code", "1")]).await;
    project.git(&["config", "filter.big.clean", "echo pointer"]).await;
    project.write("x.bin", "the whole of it");
    project.write("x.txt", "line\r\n");
    project.commit_all().await;
    let made = project.deliver(async || project.write("code", "2")).await.unwrap();
    assert_eq!(project.git(&["diff", "--name-only", "HEAD^", &made.commit]).await, "code");
    assert_eq!(project.git(&["show", "HEAD:x.bin"]).await, "pointer");
    let refused = project
        .deliver(async || {
            project.write("x.bin", "other");
            project.write("x.txt", "other\r\n");
        })
        .await;
    assert!(matches!(&refused, Err(DeliveryError::Foreign { paths }) if paths == &["x.bin", "x.txt"]), "{refused:?}");
    let refused = refused.unwrap_err().to_string();
    assert!(refused.ends_with("other content than was judged: `x.bin`, `x.txt`"), "{refused}");
}

#[tokio::test]
async fn a_submodule_stays_where_it_is_and_is_refused_when_its_files_changed() {
    let library = Project::new("", &[("lib", "1")]).await;
    let project = Project::new("", &[("a", "1")]).await;
    let url = library.root().to_string_lossy().into_owned();
    project.git(&["submodule", "--quiet", "add", &url, "vendor/lib"]).await;
    project.commit_all().await;
    project.deliver(async || project.write("a", "2")).await.unwrap();
    assert_eq!(project.git(&["diff", "--name-only", "HEAD^", "HEAD"]).await, "a");
    assert_eq!(project.status().await, "");
    let refused = project.deliver(async || project.write("vendor/lib/lib", "2")).await;
    assert!(matches!(&refused, Err(DeliveryError::Foreign { paths }) if paths == &["vendor/lib"]), "{refused:?}");
}

#[tokio::test]
async fn what_was_not_committed_before_the_run_is_known() {
    let project = Project::new("", &[("a", "1")]).await;
    let trees = Trees::open(&project.home.path().join("t"), &project.root(), PATH, &project.stop).await.unwrap();
    let repository = UserRepository::around(&trees, &project.env(), &project.stop).await.unwrap().unwrap();
    let head = repository.head(&project.stop).await.unwrap();
    let clean = trees.take(&project.stop).await.unwrap().tree;
    assert_eq!((head.branch.as_deref(), head.tree.as_ref()), (Some("refs/heads/main"), Some(&clean)));
    assert!(!repository.check(&head, &clean, &project.stop).await.unwrap());
    project.write("a", "2");
    let dirty = trees.take(&project.stop).await.unwrap().tree;
    assert!(repository.check(&head, &dirty, &project.stop).await.unwrap());
}

#[tokio::test]
async fn sparse_paths_and_modes_that_git_ignores_stay_as_committed() {
    let project = Project::new("", &[("a/x", "1"), ("b/y", "1"), ("run", "1")]).await;
    project.git(&["sparse-checkout", "set", "--no-cone", "/a", "/run"]).await;
    project.git(&["config", "core.fileMode", "false"]).await;
    assert!(!project.root().join("b").exists());
    fs::set_permissions(project.root().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    project.deliver(async || project.write("run", "2")).await.unwrap();
    assert_eq!(project.git(&["diff", "--raw", "--abbrev=1", "HEAD^", "HEAD"]).await.split(' ').next(), Some(":100644"));
    assert_eq!(project.git(&["diff", "--name-status", "HEAD^", "HEAD"]).await, "M\trun");
    assert_eq!(project.status().await, "");
}

#[tokio::test]
async fn nothing_is_committed_into_a_repository_that_was_not_there_at_the_start() {
    for args in [["init", "-q", "--bare"], ["init", "-q", "."]] {
        let project = Project::new("p", &[("p/a", "1")]).await;
        let trees = Trees::open(&project.home.path().join("t"), &project.root(), PATH, &project.stop).await.unwrap();
        let around = async || UserRepository::around(&trees, &project.env(), &project.stop).await.unwrap();
        let head = around().await.unwrap().head(&project.stop).await.unwrap();
        let base = trees.take(&project.stop).await.unwrap().tree;
        GitFolder::of_user(&project.root(), project.home.path(), &project.env())
            .ask(&args, &project.stop)
            .await
            .unwrap();
        project.write("p/a", "2");
        let tree = trees.take(&project.stop).await.unwrap().tree;
        let what = CommitRequest { head: &head, tree: &tree, base: &base, message: "Mend it", trailers: &[] };
        let Some(found) = around().await else { continue }; // newer versions of git find no repository
        let refused = found.commit(&what, &project.stop).await;
        assert!(matches!(refused, Err(DeliveryError::Another { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn a_commit_of_an_earlier_process_is_known_below_one_of_the_user() {
    let project = Project::new("", &[("a", "1")]).await;
    let trees = Trees::open(&project.home.path().join("t"), &project.root(), PATH, &project.stop).await.unwrap();
    let repository = UserRepository::around(&trees, &project.env(), &project.stop).await.unwrap().unwrap();
    let head = repository.head(&project.stop).await.unwrap();
    let base = trees.take(&project.stop).await.unwrap().tree;
    project.write("a", "2");
    let tree = trees.take(&project.stop).await.unwrap().tree;
    let trailers = [("Run".to_owned(), "r".to_owned())];
    let what = CommitRequest { head: &head, tree: &tree, base: &base, message: "Mend it", trailers: &trailers };
    assert_eq!(repository.made(&what, &project.stop).await.unwrap(), None);
    let MadeCommit { commit, .. } = repository.commit(&what, &project.stop).await.unwrap();
    project.write("a", "3");
    project.commit_all().await;
    project.write("a", "4");
    project.git(&["add", "-A"]).await;
    let made = repository.made(&what, &project.stop).await.unwrap();
    assert_eq!(made, Some(MadeCommit { commit, tree: None, notes: Vec::new() }));
    assert_eq!(project.status().await, "M  a", "the index is the user's");
}

#[tokio::test]
async fn an_object_that_stands_under_the_name_of_another_is_never_committed() {
    let forged = async |project: &Project, text: &str| {
        let id = project.git(&["hash-object", "a"]).await;
        let place = |id: &str| project.root().join(".git/objects").join(&id[..2]).join(&id[2..]);
        project.write("evil", text);
        let evil = project.git(&["hash-object", "-w", "evil"]).await;
        fs::remove_file(project.root().join("evil")).unwrap();
        let _there_may_be_none = fs::remove_file(place(&id));
        fs::create_dir_all(place(&id).parent().unwrap()).unwrap();
        fs::copy(place(&evil), place(&id)).unwrap();
        id
    };
    // A new object, and one that the previous commit has.
    for is_new in [true, false] {
        let project = Project::new("", &[("a", "1"), ("b", "1")]).await;
        let before = project.git(&["rev-parse", "HEAD"]).await;
        let mut id = String::new();
        let made = project
            .deliver(async || {
                project.write(if is_new { "a" } else { "b" }, "good");
                id = forged(&project, "EVIL").await;
            })
            .await;
        assert!(matches!(&made, Err(DeliveryError::Forged { objects }) if *objects == [id]), "{is_new}: {made:?}");
        assert_eq!(project.git(&["rev-parse", "HEAD"]).await, before, "{is_new}");
    }
}

#[tokio::test]
async fn who_commits_and_how_is_what_was_said_before_the_agent() {
    let project = Project::new("", &[("a", "1")]).await;
    project.git(&["config", "user.name", "Ann"]).await;
    project.git(&["config", "user.email", "ann@localhost"]).await;
    let trees = Trees::open(&project.home.path().join("t"), &project.root(), PATH, &project.stop).await.unwrap();
    trees.freeze_ignores(&project.env(), &project.stop).await.unwrap();
    let around = async || UserRepository::around(&trees, &project.env(), &project.stop).await.unwrap().unwrap();
    let repository = around().await;
    let head = repository.head(&project.stop).await.unwrap();
    let head = repository.with_config(head, &project.stop).await.unwrap();
    let base = trees.take(&project.stop).await.unwrap().tree;
    for (key, value) in [
        ("user.name", "Mallory"),
        ("author.email", "mallory@localhost"),
        ("committer.name", "Mallory"),
        ("core.fileMode", "false"),
        ("core.autocrlf", "true"),
        ("i18n.commitEncoding", "latin1"),
    ] {
        project.git(&["config", key, value]).await;
    }
    project.write("a", "2\r\n");
    let tree = trees.take(&project.stop).await.unwrap().tree;
    let what = CommitRequest { head: &head, tree: &tree, base: &base, message: "Mend it", trailers: &[] };
    let made = around().await.as_configured(&head).commit(&what, &project.stop).await.unwrap();
    assert_eq!(made.notes, [""; 0]);
    let shown = project.git(&["log", "-1", "--format=%an <%ae> %cn <%ce> %e"]).await;
    assert_eq!(shown, "Ann <ann@localhost> Ann <ann@localhost>");
    // No committer was known at the start, so the current one does not count.
    let mut anonymous = head.clone();
    anonymous.config.retain(|(key, _)| !key.starts_with("author") && !key.starts_with("committer"));
    let what = CommitRequest { head: &anonymous, ..what };
    let branch =
        around().await.as_configured(&anonymous).commit_to("other", &what, false, &project.stop).await.unwrap();
    let shown = project.git(&["log", "-1", "--format=%an <%ae>", &branch.commit]).await;
    assert_eq!((shown.as_str(), branch.notes.len()), ("fledge <fledge@localhost>", 1));
}

#[tokio::test]
async fn where_a_repository_stands_is_told_with_its_head_references_and_index() {
    let project = Project::new("", &[("a", "1")]).await;
    let trees = Trees::open(&project.home.path().join("t"), &project.root(), PATH, &project.stop).await.unwrap();
    let standing = async || {
        let repository = UserRepository::around(&trees, &project.env(), &project.stop).await.unwrap().unwrap();
        repository.current_state(&project.stop).await.unwrap()
    };
    let before = standing().await;
    project.git(&["status"]).await;
    assert_eq!(before.describe_changes(&standing().await, None), [""; 0]);
    project.write("a", "2");
    project.git(&["update-index", "--assume-unchanged", "a"]).await;
    project.git(&["checkout", "-q", "-b", "side"]).await;
    let reported = before.describe_changes(&standing().await, None);
    assert_eq!(reported[0], "HEAD moved from refs/heads/main to refs/heads/side");
    assert!(
        reported[1].starts_with("refs/heads/side was created") && reported[2].starts_with("the index was"),
        "{reported:?}"
    );
    let kept: RepositoryState = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
    assert_eq!(kept, before);
}
