//! Worktrees of real repositories: their base, the reasons why they stay, and their complete
//! removal.

mod corners;

use super::*;
use crate::workspace::trees::git::GitFolder;
use std::fs;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A repository with a commit, and a folder for worktrees.
struct Project {
    home: TempDir,
    stop: CancellationToken,
}

impl Project {
    async fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { home: crate::test_support::temp_dir(), stop: CancellationToken::new() };
        fs::create_dir_all(project.root()).unwrap();
        fs::create_dir_all(project.all()).unwrap();
        project.git(&["init", "-q", "-b", "main"]).await;
        files.iter().for_each(|(path, text)| put(&project.root(), path, text));
        project.commit_all().await;
        project
    }

    fn root(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("w")
    }

    fn all(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("state/p-1").join(FOLDER)
    }

    fn env(&self) -> [(String, String); 2] {
        let home = self.home.path().to_string_lossy().into_owned();
        [("PATH".to_owned(), PATH.to_owned()), ("HOME".to_owned(), home)]
    }

    async fn git_in(&self, folder: &Path, args: &[&str]) -> String {
        let git = GitFolder::of_user(folder, self.home.path(), &self.env());
        let me = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"];
        let output = git.ask(&[me.as_slice(), args].concat(), &self.stop).await.unwrap();
        String::from_utf8(output).unwrap().trim_end().to_owned()
    }

    async fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root(), args).await
    }

    async fn commit_all(&self) {
        self.git(&["add", "-A"]).await;
        self.git(&["commit", "-qm", "first"]).await;
    }

    fn choose(&self, run: &str) -> (Worktree, RunId) {
        let (run, root) = (RunId::new(run), self.root());
        (Worktree::choose(&self.all(), &run, "Mend: the Dates!", None, &root, &root), run)
    }

    async fn try_to_make(&self, worktree: &Worktree, run: &RunId) -> Result<MadeWorktree, WorktreeError> {
        worktree.make(run, &self.env(), self.home.path(), &self.stop).await
    }

    async fn make(&self, run: &str) -> Worktree {
        let (worktree, run) = self.choose(run);
        self.try_to_make(&worktree, &run).await.unwrap();
        worktree
    }

    async fn remove(&self, worktree: &Worktree, discard: bool) -> WorktreeLeftover {
        let record = WorktreeRecord::read(worktree.outer()).unwrap().unwrap();
        record.remove(discard, &self.env(), self.home.path(), &self.stop).await.unwrap()
    }

    /// Returns the reason why a worktree stays.
    async fn kept(&self, worktree: &Worktree) -> String {
        let left = self.remove(worktree, false).await;
        assert!(worktree.folder.exists());
        left.stays.unwrap()
    }

    /// Checks that no worktree is left: no folder, nothing in the repository, and no branches
    /// except `branches`.
    async fn must_be_clear(&self, branches: &str) {
        let left: Vec<_> = fs::read_dir(self.all()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [""; 0]);
        assert!(!self.root().join(".git/worktrees").exists());
        let named = self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/fledge"]).await;
        assert_eq!(named, branches);
        assert_eq!(self.git(&["status", "--porcelain"]).await, "");
    }
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const GONE: WorktreeLeftover = WorktreeLeftover { stays: None, has_branch: false };

#[test]
fn a_name_is_made_of_the_title_and_of_the_end_of_the_run_s_id() {
    let run = RunId::new("0198f2aa-1b2c-7def-8123-456789abcdef");
    let named = |title: &str| name(title, &run);
    assert_eq!(named("Mend: the *Dates*!"), "mend-the-dates-89abcdef");
    assert_eq!(named("…"), "run-89abcdef");
    assert_eq!(named("--x"), "x-89abcdef");
    assert_eq!(named(&"long ".repeat(30)), "long-long-long-long-long-89abcdef");
    assert_eq!(named("Find the cause of the deadlocks"), "find-the-cause-of-the-89abcdef");
    assert_eq!(named(&"x".repeat(40)), format!("{}-89abcdef", "x".repeat(24)));
}

#[tokio::test]
async fn a_worktree_has_the_newest_commit_on_a_new_branch_and_is_removed_completely() {
    let project = Project::new(&[("a", "1"), ("sub/b", "2"), (".gitignore", "target\n")]).await;
    put(&project.root(), "a", "not committed");
    let worktree = project.make("r-1").await;
    assert_eq!(fs::read_to_string(worktree.folder.join("a")).unwrap(), "1");
    assert_eq!(worktree.branch, "fledge/mend-the-dates-r1");
    assert_eq!(project_of(&project.home.path().join("state"), &worktree.folder.join("sub")), Some(project.root()));
    assert_eq!(project_of(&project.home.path().join("state"), &project.root()), None);
    // A second call finds the existing worktree.
    project.try_to_make(&worktree, &RunId::new("r-1")).await.unwrap();
    put(&worktree.folder, "target/deep/built", "ignored");
    assert_eq!(project.remove(&worktree, false).await, GONE);
    put(&project.root(), "a", "1");
    project.must_be_clear("").await;
    let fault = worktree.must_stand().unwrap_err();
    assert!(matches!(fault, WorktreeError::Gone { .. }), "{fault}");
}

#[tokio::test]
async fn a_branch_stays_that_has_a_commit_of_its_own() {
    let project = Project::new(&[("a", "1")]).await;
    let worktree = project.make("r-1").await;
    put(&worktree.folder, "b", "2");
    project.git_in(&worktree.folder, &["add", "-A"]).await;
    project.git_in(&worktree.folder, &["commit", "-qm", "work"]).await;
    assert_eq!(project.remove(&worktree, false).await, WorktreeLeftover { stays: None, has_branch: true });
    project.must_be_clear(&worktree.branch).await;
}

#[tokio::test]
async fn work_that_is_nowhere_else_is_removed_for_nobody_but_who_asks_for_that() {
    let project = Project::new(&[("a", "1"), (".gitignore", "target\n")]).await;
    // These settings of the user do not matter.
    project.git(&["config", "status.showUntrackedFiles", "no"]).await;
    project.git(&["config", "status.relativePaths", "true"]).await;
    let worktree = project.make("r-1").await;
    let cases: [(&str, &[&str]); 4] = [
        ("a changed file", &[]),
        ("one that is staged", &["add", "-A"]),
        ("one in another index", &["rm", "-q", "--cached", "a"]),
        ("a rename", &["mv", "-f", "a", "c"]),
    ];
    for (case, command) in cases {
        put(&worktree.folder, "a", "changed");
        if !command.is_empty() {
            project.git_in(&worktree.folder, command).await;
        }
        let why = project.kept(&worktree).await;
        assert!(why.starts_with("it has uncommitted changes: "), "{case}: {why}");
        project.git_in(&worktree.folder, &["reset", "-q", "--hard"]).await;
    }
    put(&worktree.folder, "new/deep", "");
    assert_eq!(project.kept(&worktree).await, "it has uncommitted changes: new/");
    fs::remove_dir_all(worktree.folder.join("new")).unwrap();
    project.git_in(&worktree.folder, &["checkout", "-q", "--detach"]).await;
    project.git_in(&worktree.folder, &["commit", "-q", "--allow-empty", "-m", "loose"]).await;
    let why = project.kept(&worktree).await;
    assert!(why.starts_with("it has a commit that is on no branch: "), "{why}");
    assert_eq!(project.remove(&worktree, true).await, GONE);
    project.must_be_clear("").await;
}

#[tokio::test]
async fn nothing_that_stands_in_a_worktree_leads_the_look_at_it_elsewhere() {
    let project = Project::new(&[("a", "1")]).await;
    let worktree = project.make("r-1").await;
    // By its own `.git`, this would be a clean repository.
    put(&worktree.folder, "a", "changed");
    fs::remove_file(worktree.folder.join(".git")).unwrap();
    project.git_in(&worktree.folder, &["init", "-q"]).await;
    project.git_in(&worktree.folder, &["add", "-A"]).await;
    project.git_in(&worktree.folder, &["commit", "-qm", "x"]).await;
    assert_eq!(project.kept(&worktree).await, "it has uncommitted changes: a");
    // Without git's data, the contents cannot be judged.
    fs::remove_dir_all(project.root().join(".git/worktrees")).unwrap();
    let why = project.kept(&worktree).await;
    assert!(why.starts_with("cannot check its content: git no longer knows it"), "{why}");
    assert_eq!(project.remove(&worktree, true).await, GONE);
    project.must_be_clear("").await;
}

#[tokio::test]
async fn of_submodules_it_is_said_that_they_are_empty_and_work_in_their_folders_is_work() {
    let inner = Project::new(&[("x", "1")]).await;
    let project = Project::new(&[("a", "1")]).await;
    let url = inner.root().display().to_string();
    project.git(&["submodule", "add", "-q", &url, "lib"]).await;
    project.commit_all().await;
    let (worktree, run) = project.choose("r-1");
    let made = project.try_to_make(&worktree, &run).await.unwrap();
    assert!(made.notes[0].starts_with("the worktree does not contain the submodules `lib`: "), "{:?}", made.notes);
    put(&worktree.folder, "lib/new", "");
    assert_eq!(project.kept(&worktree).await, "it has uncommitted changes: lib/");
    fs::remove_file(worktree.folder.join("lib/new")).unwrap();
    assert_eq!(project.remove(&worktree, false).await, GONE);
    project.must_be_clear("").await;
}

#[tokio::test]
async fn what_a_dead_process_has_half_made_is_made_anew() {
    let project = Project::new(&[("a", "1")]).await;
    let base = project.git(&["rev-parse", "HEAD"]).await;
    let (worktree, run) = project.choose("r-1");
    let git = project.root().join(".git");
    let kept = git.join("worktrees/w");
    let half: [(&str, &dyn Fn()); 4] = [
        ("nothing but what is written down", &|| {}),
        ("a folder with a part of the files", &|| put(&worktree.folder, "half", "")),
        ("what git keeps, before it says of what", &|| put(&kept, "locked", "initializing")),
        ("all but the files", &|| {
            put(&kept, "gitdir", &format!("{}/.git\n", worktree.folder.display()));
            put(&git, &format!("refs/heads/{}", worktree.branch), &format!("{base}\n"));
            put(&worktree.folder, ".git", &format!("gitdir: {}\n", kept.display()));
        }),
    ];
    for (case, prepare) in half {
        let (run, worktree) = (run.clone(), worktree.clone());
        let record = WorktreeRecord {
            run: run.clone(),
            worktree,
            base: base.clone(),
            stage: WorktreeStage::Making,
            git_dir: None,
        };
        record.write().unwrap();
        prepare();
        project.try_to_make(&record.worktree, &run).await.unwrap_or_else(|fault| panic!("{case}: {fault}"));
        let files = project.git_in(&record.worktree.folder, &["ls-files"]).await;
        assert_eq!((files.as_str(), record.worktree.folder.join("half").exists()), ("a", false), "{case}");
        assert_eq!(project.remove(&record.worktree, false).await, GONE, "{case}");
        project.must_be_clear("").await;
    }
}

#[tokio::test]
async fn what_is_of_somebody_else_is_neither_taken_nor_removed() {
    let project = Project::new(&[("a", "1")]).await;
    let (worktree, run) = project.choose("r-1");
    project.git(&["branch", &worktree.branch]).await;
    let fault = project.try_to_make(&worktree, &run).await.unwrap_err();
    assert!(matches!(fault, WorktreeError::BranchTaken { .. }), "{fault}");
    project.git(&["rev-parse", &worktree.branch]).await;
    project.git(&["branch", "-D", &worktree.branch]).await;
    put(&worktree.folder, "mine", "");
    let fault = project.try_to_make(&worktree, &run).await.unwrap_err();
    assert!(matches!(fault, WorktreeError::InTheWay { .. }), "{fault}");
    assert!(worktree.folder.join("mine").exists());
    fs::remove_dir_all(worktree.outer()).unwrap();
    // After a stop, another call completes everything.
    let stopped = CancellationToken::new();
    stopped.cancel();
    let fault = worktree.make(&run, &project.env(), project.home.path(), &stopped).await.unwrap_err();
    assert!(fault.to_string().contains("stopped"), "{fault}");
    project.try_to_make(&worktree, &run).await.unwrap();
    assert_eq!(project.remove(&worktree, false).await, GONE);
    project.must_be_clear("").await;
}

#[tokio::test]
async fn what_somebody_has_removed_by_hand_is_forgotten() {
    let project = Project::new(&[("a", "1")]).await;
    let worktree = project.make("r-1").await;
    fs::remove_dir_all(&worktree.folder).unwrap();
    assert_eq!(project.remove(&worktree, false).await, GONE);
    let worktree = project.make("r-2").await;
    project.git(&["worktree", "remove", worktree.folder.to_str().unwrap()]).await;
    assert_eq!(project.remove(&worktree, false).await, GONE);
    project.must_be_clear("").await;
}

#[tokio::test]
async fn many_are_made_and_removed_at_once() {
    let project = Project::new(&[("a", "1"), ("b", "2")]).await;
    let one = async |number: usize| {
        let worktree = project.make(&format!("run-{number}")).await;
        assert_eq!(fs::read_to_string(worktree.folder.join("b")).unwrap(), "2");
        assert_eq!(project.remove(&worktree, false).await, GONE);
    };
    futures_util::future::join_all((0..24).map(one)).await;
    project.must_be_clear("").await;
}
