//! Tests that change real files and compare all reported changes.

use super::*;
use crate::test_support::PATIENCE;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::SystemTime;
use tempfile::TempDir;

/// A watched folder with some files in it.
struct Project {
    root: PathBuf,
    _folder: TempDir,
    watch: ProjectWatch,
}

impl Project {
    async fn with(files: &[(&str, &str)]) -> Self {
        Self::apart(files, &[]).await
    }

    async fn apart(files: &[(&str, &str)], apart: &[&str]) -> Self {
        let folder = crate::test_support::temp_dir();
        let root = folder.path().canonicalize().unwrap();
        files.iter().for_each(|(path, content)| put(&root.join(path), content));
        let apart: Vec<PathBuf> = apart.iter().map(|path| root.join(path)).collect();
        let watch = ProjectWatch::start(&root, apart).await.unwrap();
        Self { root, _folder: folder, watch }
    }

    fn put(&self, path: &str, content: &str) {
        put(&self.root.join(path), content);
    }

    /// Sets the modification time, in seconds since the epoch.
    fn touch(&self, path: &str, time: u64) {
        let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(time));
        File::options().write(true).open(self.at(path)).unwrap().set_times(times).unwrap();
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the paths of the next changes.
    async fn changed(&mut self) -> Vec<String> {
        let changes = tokio::time::timeout(PATIENCE, self.watch.changed()).await.expect("no change was reported");
        changes.unwrap().into_keys().map(|path| path.to_string_lossy().into_owned()).collect()
    }
}

fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[tokio::test]
async fn what_is_written_made_and_removed_is_told_at_once_and_once() {
    let mut project = Project::with(&[("a", "1"), ("src/b", "1"), ("src/gone", "1")]).await;
    project.put("a", "22");
    project.put("src/new", "1");
    fs::remove_file(project.at("src/gone")).unwrap();
    assert_eq!(project.changed().await, ["a", "src/gone", "src/new"]);
    project.put("src/b", "22");
    assert_eq!(project.changed().await, ["src/b"]);
    assert_eq!(project.watch.wait_until_quiet().await.unwrap(), FileEvents::new());
}

#[tokio::test]
async fn a_file_that_takes_the_place_of_another_is_a_change_of_that_one() {
    let mut project = Project::with(&[("a", "1")]).await;
    project.put(".a.swp", "2");
    fs::rename(project.at(".a.swp"), project.at("a")).unwrap();
    assert_eq!(project.changed().await, ["a"]);
}

#[tokio::test]
async fn whatever_appears_in_new_folders_is_seen_and_watched() {
    let mut project = Project::with(&[("a", "1")]).await;
    project.put("x/y/z/new", "1");
    assert_eq!(project.changed().await, ["x/y/z/new"]);
    project.put("x/y/z/new", "22");
    assert_eq!(project.changed().await, ["x/y/z/new"]);
    fs::rename(project.at("x/y"), project.at("moved")).unwrap();
    assert_eq!(project.changed().await, ["moved/z/new", "x/y/z/new"]);
    project.put("moved/z/new", "333");
    assert_eq!(project.changed().await, ["moved/z/new"]);
}

#[tokio::test]
async fn a_folder_that_is_another_of_the_same_name_is_watched_anew() {
    let mut project = Project::with(&[("d/e/same", "1"), ("other", "1")]).await;
    fs::remove_dir_all(project.at("d")).unwrap();
    project.put("d/e/later", "1");
    assert_eq!(project.changed().await, ["d/e/later", "d/e/same"]);
    project.put("d/e/later", "22");
    assert_eq!(project.changed().await, ["d/e/later"]);
    project.put("spare/e/later", "333");
    assert_eq!(project.changed().await, ["spare/e/later"]);
    fs::rename(project.at("d"), project.at("old")).unwrap();
    fs::rename(project.at("spare"), project.at("d")).unwrap();
    assert_eq!(project.changed().await, ["d/e/later", "old/e/later", "spare/e/later"]);
    project.put("d/e/later", "4444");
    assert_eq!(project.changed().await, ["d/e/later"]);
    project.put("old/e/later", "55555");
    assert_eq!(project.changed().await, ["old/e/later"]);
}

#[tokio::test]
async fn what_ignore_files_name_and_version_control_keeps_does_not_count() {
    let files = [
        (".gitignore", "/target/\n*.log\n"),
        (".ignore", "big\n"),
        ("sub/.gitignore", "!keep.log\n"),
        (".git/info/exclude", "mine\n"),
        (".git/HEAD", "x"),
        ("apart/log", "1"),
    ];
    let mut project = Project::apart(&files, &["apart"]).await;
    for path in ["target/debug/x", "a.log", "big", "sub/a.log", "mine", ".git/HEAD", ".git/index", ".hg/x", "apart/log"]
    {
        project.put(".fledge-0yeV2N.tmp", "1");
        project.put(path, "22");
    }
    project.put("sub/keep.log", "1");
    assert_eq!(project.changed().await, ["sub/keep.log"]);
}

#[tokio::test]
async fn without_a_repository_ignore_files_above_the_root_do_not_hold_and_those_below_do() {
    let folder = crate::test_support::temp_dir();
    let root = folder.path().canonicalize().unwrap();
    put(&root.join(".gitignore"), "*\n");
    put(&root.join("project/.gitignore"), "out\n");
    let mut watch = ProjectWatch::start(&root.join("project"), Vec::new()).await.unwrap();
    put(&root.join("project/out"), "1");
    put(&root.join("project/in"), "1");
    assert_eq!(watch.changed().await.unwrap(), [("in".into(), FileEvent::Altered)].into());
}

#[tokio::test]
async fn ignore_files_are_read_again_when_they_change() {
    let mut project =
        Project::with(&[(".gitignore", "out\n"), (".git/info/exclude", ""), ("out/a", "1"), ("in/a", "1")]).await;
    project.put(".gitignore", "in\n");
    assert_eq!(project.changed().await, [".gitignore", "out/a"]);
    project.put("in/a", "22");
    project.put("out/a", "22");
    assert_eq!(project.changed().await, ["out/a"]);
    project.put(".git/info/exclude", "out\n");
    project.put("b", "1");
    assert_eq!(project.changed().await, ["b"]);
    project.put("out/a", "333");
    project.put("b", "22");
    assert_eq!(project.changed().await, ["b"]);
}

#[tokio::test]
async fn a_mode_counts_and_reading_and_folders_without_files_do_not() {
    let mut project = Project::with(&[("a", "1"), ("b", "1")]).await;
    fs::read(project.at("b")).unwrap();
    fs::hard_link(project.at("b"), project.at("c")).unwrap();
    fs::remove_file(project.at("c")).unwrap();
    fs::create_dir_all(project.at("empty/deep")).unwrap();
    fs::set_permissions(project.at("a"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(project.changed().await, ["a"]);
}

#[tokio::test]
async fn a_link_is_what_counts_and_not_where_it_leads() {
    let mut project = Project::apart(&[("apart/x/a", "1"), ("apart/y/a", "1")], &["apart"]).await;
    symlink("apart/x", project.at("link")).unwrap();
    assert_eq!(project.changed().await, ["link"]);
    project.put("link/a", "22");
    fs::remove_file(project.at("link")).unwrap();
    symlink("apart/y", project.at("link")).unwrap();
    assert_eq!(project.changed().await, ["link"]);
}

#[tokio::test]
async fn a_touch_is_told_apart_from_other_content_once_the_content_is_known() {
    let mut project = Project::with(&[("a", "1")]).await;
    project.touch("a", 1000);
    assert_eq!(project.watch.changed().await.unwrap(), [("a".into(), FileEvent::Altered)].into());
    project.touch("a", 2000);
    assert_eq!(project.watch.changed().await.unwrap(), [("a".into(), FileEvent::Rewritten)].into());
}

#[tokio::test]
async fn when_notifications_were_lost_everything_is_looked_at() {
    let mut project = Project::with(&[("d/a", "1"), ("b", "1")]).await;
    project.watch.tree().ears_forget_everything();
    project.put("d/a", "22");
    project.put("d/new/c", "1");
    project.watch.tree().add_notice(fs_events::FsNotice { paths: Default::default(), anywhere: true });
    assert_eq!(project.changed().await, ["d/a", "d/new/c"]);
    project.put("d/new/c", "22");
    assert_eq!(project.changed().await, ["d/new/c"]);
}

#[tokio::test]
async fn a_kernel_that_tells_nothing_is_done_without() {
    let mut project = Project::with(&[("d/a", "1")]).await;
    assert_eq!(project.watch.note(), None);
    project.watch.tree().deafen("no more watches");
    // The pause grows with the time that a look takes, so a busy machine shows more than 2s.
    let note = project.watch.note().unwrap_or_default();
    let pause = note.strip_prefix("no more watches: looking every ").and_then(|rest| rest.strip_suffix("s instead"));
    assert!(pause.and_then(|pause| pause.parse().ok()).is_some_and(|seconds: u64| seconds >= 2), "{note}");
    assert_eq!(project.watch.note(), None, "once is enough");
    project.put("d/a", "22");
    assert_eq!(project.changed().await, ["d/a"]);
}

#[tokio::test]
async fn a_root_that_is_removed_is_said_to_be_gone() {
    let mut project = Project::with(&[("d/a", "1")]).await;
    fs::remove_dir_all(&project.root).unwrap();
    let fault = project.watch.changed().await.unwrap_err();
    assert_eq!(fault.to_string(), format!("the folder {} is gone or cannot be read", project.root.display()));
}

#[tokio::test]
async fn what_was_seen_is_told_even_if_nobody_waited_for_the_end_of_the_look() {
    let mut project = Project::with(&[("a", "1")]).await;
    for round in 0..4 {
        project.put("a", &"x".repeat(round + 2));
        let soon = tokio::time::timeout(Duration::from_millis(190 + round as u64), project.watch.changed()).await;
        if soon.is_err() {
            assert_eq!(project.changed().await, ["a"], "round {round}");
        }
    }
}
