//! The files that tell git which programs to run, in every repository of a workspace: each `.git`
//! and the folder that it leads to, configuration, hooks, attributes, and alternate object stores.
//!
//! They are in no tree. They take effect later, outside of every sandbox, when a user runs a
//! command such as `git status`.

use super::Seal;
use super::seal::{SealStamps, Sealed};
use crate::process::sandbox::{SandboxKind, git_led_to, gits_below};
use crate::verdict::TamperFinding;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walkdir::{DirEntry, WalkDir};

/// The rule against changes of these files.
pub(super) const WHY: &str = "it controls what git does for everyone who works here later";
/// Files that control git, in any folder of a git directory. Submodules and linked worktrees have
/// their own inside it.
const CONFIGURATION: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];
/// Files that control git, in a folder `info` of a git directory.
const INFO: [&str; 4] = ["attributes", "exclude", "grafts", "sparse-checkout"];
/// Files that control git, in the folder `info` of its objects.
const ELSEWHERE: [&str; 2] = ["alternates", "http-alternates"];
/// Folders of a git directory that contain no files that control git.
const PLAIN: [&str; 4] = ["logs", "lfs", "annex", "rr-cache"];

/// Returns the git directories of a workspace, relative to the root and sorted. These are the
/// `.git` of the root, even if it does not exist, every `.git` below, and the folders of the
/// workspace that they lead to.
pub(super) fn places(root: &Path) -> Vec<PathBuf> {
    let mut gits = gits_below(root);
    gits.push(root.join(".git"));
    let led: Vec<PathBuf> = gits.iter().filter_map(|git| led_to(git)).collect();
    gits.extend(led.into_iter().filter(|place| place.as_path() != root));
    let mut places: Vec<PathBuf> =
        gits.iter().filter_map(|place| place.strip_prefix(root).ok()).map(Path::to_owned).collect();
    places.sort();
    places.dedup();
    places
}

/// Returns the folder that a `.git` leads to, if it is a link or a file.
fn led_to(git: &Path) -> Option<PathBuf> {
    let kind = git.symlink_metadata().ok()?.file_type();
    if kind.is_symlink() {
        return git_led_to(git, fs::read_link(git).ok()?.to_str()?);
    }
    let text = if kind.is_file() { fs::read_to_string(git).ok()? } else { return None };
    git_led_to(git, text.strip_prefix("gitdir: ")?)
}

/// Returns the files of a git directory that control git, each with its path from the root.
pub(super) fn entries(root: &Path, place: &Path) -> Vec<(PathBuf, DirEntry)> {
    let at = root.join(place);
    let walk = WalkDir::new(&at).follow_links(false).follow_root_links(false).into_iter().filter_entry(is_entered);
    let counts = |entry: DirEntry| {
        let inner = entry.path().strip_prefix(&at).ok()?;
        let is_meant = !entry.file_type().is_dir() && steers(inner, entry.path_is_symlink());
        let path = place.join(inner).components().collect();
        is_meant.then_some((path, entry))
    };
    walk.flatten().filter_map(counts).collect()
}

/// Returns whether the walk enters a folder. Skips large folders that do not control git: objects,
/// and references except for those that replace objects.
fn is_entered(entry: &DirEntry) -> bool {
    let (name, above) = (entry.file_name(), entry.path().parent());
    if entry.depth() == 0 || !entry.file_type().is_dir() {
        return true;
    }
    let is_git = |folder: Option<&Path>| folder.is_some_and(|it| it.join("HEAD").symlink_metadata().is_ok());
    let is_below = |of: &str| above.is_some_and(|it| it.file_name() == Some(OsStr::new(of)) && is_git(it.parent()));
    let is_plain = PLAIN.iter().any(|plain| name == *plain) && is_git(above);
    let is_content = is_below("objects") && name != "info" || is_below("refs") && name != "replace";
    !(is_plain || is_content)
}

/// Returns whether a path inside of a git directory controls git.
fn steers(inner: &Path, is_link: bool) -> bool {
    let names: Vec<&str> = inner.iter().map(|name| name.to_str().unwrap_or("?")).collect();
    let Some((name, folders)) = names.split_last() else { return true };
    match folders {
        [.., "objects", "info"] => ELSEWHERE.contains(name),
        [.., "info"] => INFO.contains(name),
        _ if folders.contains(&"hooks") => !name.ends_with(".sample"),
        _ if folders.windows(2).any(|pair| pair == ["refs", "replace"]) => true,
        _ => CONFIGURATION.contains(name) || is_link && *name != "HEAD",
    }
}

impl Seal {
    /// Returns whether a path is in a git directory.
    pub(super) fn is_git(&self, path: &Path) -> bool {
        self.gits.iter().any(|place| path.starts_with(place))
    }

    /// Returns the differences from the seal that programs in this sandbox may have made.
    /// Bubblewrap protects git directories, except where a link is in their place. Other
    /// differences there are the user's own.
    pub(super) fn found(&self, sandbox: SandboxKind) -> Vec<TamperFinding> {
        self.caused_in(sandbox, self.inspect())
    }

    /// Returns the findings of [`Seal::found`], and the stamps of all protected files and of these
    /// manifests from before they were read.
    pub(super) fn found_stamped(
        &self,
        sandbox: SandboxKind,
        manifests: &BTreeSet<String>,
    ) -> (Vec<TamperFinding>, SealStamps) {
        let (findings, stamps) = self.inspect_stamped(manifests);
        (self.caused_in(sandbox, findings), stamps)
    }

    /// Returns the findings that programs in this sandbox may have caused.
    pub(super) fn caused_in(&self, sandbox: SandboxKind, mut findings: Vec<TamperFinding>) -> Vec<TamperFinding> {
        let is_link = |place: &PathBuf| matches!(self.files.get(place), Some(Sealed::Link(_)));
        let may_be_written = |path: &Path| {
            let own = self.gits.iter().filter(|place| path.starts_with(place)).max_by_key(|place| place.iter().count());
            own.is_none_or(is_link)
        };
        findings.retain(|finding| sandbox != SandboxKind::Bubblewrap || may_be_written(Path::new(&finding.path)));
        findings
    }

    /// Finds changes of git directories at the end of a run that is not judged. Restores them if
    /// there is a folder `backup` for the replaced files. Returns a line for each fact that a
    /// person should know.
    pub async fn close_git(self: Arc<Self>, sandbox: SandboxKind, backup: Option<PathBuf>) -> Vec<String> {
        let work = move || {
            let findings = self.caused_in(sandbox, self.inspect_in(&[]));
            let left = backup.as_ref().map(|backup| self.restore(&findings, backup));
            let done = if left.is_some() { "and was put back" } else { "and was not put back" };
            let reported =
                findings.iter().map(|it| format!("`{}` was {} in this run {done}: {}", it.path, it.change, it.rule));
            reported.chain(left.into_iter().flatten()).collect()
        };
        let panicked = |_| vec!["the check of git directories panicked".to_owned()];
        tokio::task::spawn_blocking(work).await.unwrap_or_else(panicked)
    }

    /// Moves away new entries in the place of a git directory that did not exist. Returns a line
    /// for each one that cannot be moved.
    pub(super) fn take_away_new(&self, findings: &[TamperFinding], backup: &Path) -> Vec<String> {
        let is_new = |place: &&PathBuf| !self.files.keys().any(|path| path.starts_with(place));
        let is_found = |place: &&PathBuf| findings.iter().any(|finding| Path::new(&finding.path).starts_with(place));
        let moved = self.gits.iter().filter(is_new).filter(is_found).filter_map(|place| {
            let to = backup.join(format!("{}.new", place.display()));
            let made = to.parent().map_or(Ok(()), fs::create_dir_all);
            let error = made.and_then(|()| fs::rename(self.root.join(place), to)).err()?;
            Some(format!("cannot move {} away: {error}", place.display()))
        });
        moved.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Protection;
    use std::os::unix::fs::symlink;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn describe(findings: &[TamperFinding]) -> Vec<String> {
        findings.iter().map(|finding| format!("{} {}", finding.path, finding.change)).collect()
    }

    /// Makes a repository with a submodule, an ignored repository inside, and one to which a link
    /// leads.
    fn sealed() -> (tempfile::TempDir, Seal) {
        let dir = crate::test_support::temp_dir();
        for (path, text) in [
            (".git/HEAD", "ref: refs/heads/main"),
            (".git/config", "[core]"),
            (".git/hooks/pre-push.sample", "x"),
            (".git/modules/lib/HEAD", "ref: refs/heads/main"),
            (".git/modules/lib/config", "[core]"),
            (".git/objects/ab/config", "an object"),
            (".git/refs/heads/config", "a branch"),
            ("lib/.git", "gitdir: ../.git/modules/lib\n"),
            ("vendor/x/.git/HEAD", "ref: refs/heads/main"),
            ("vendor/x/.git/config", "[core]"),
            ("kept.git/HEAD", "ref: refs/heads/main"),
            ("kept.git/config", "[core]"),
        ] {
            put(dir.path(), path, text);
        }
        fs::create_dir(dir.path().join("linked")).unwrap();
        symlink("../kept.git", dir.path().join("linked/.git")).unwrap();
        let seal = Seal::capture(dir.path(), Protection::new([], &[]).unwrap(), Some(&[])).unwrap();
        (dir, seal)
    }

    #[test]
    fn what_git_does_is_sealed_in_every_repository_and_put_back() {
        let (dir, seal) = sealed();
        let root = dir.path();
        assert_eq!(seal.inspect(), []);
        // Normal work changes these files.
        put(root, ".git/objects/cd/config", "x");
        put(root, ".git/refs/heads/other", "x");
        put(root, ".git/index", "x");
        put(root, "vendor/y/.git/config", "fetched");
        assert_eq!(seal.inspect(), []);
        put(root, ".git/config", "[core]\nfsmonitor = x");
        put(root, ".git/hooks/pre-commit", "x");
        put(root, ".git/info/attributes", "* filter=x");
        put(root, ".git/objects/info/alternates", "/x");
        put(root, ".git/refs/replace/ab", "x");
        put(root, ".git/modules/lib/config", "[core]\nfsmonitor = x");
        put(root, "vendor/x/.git/config", "[core]\nfsmonitor = x");
        put(root, "kept.git/hooks/pre-commit", "x");
        fs::remove_file(root.join("lib/.git")).unwrap();
        put(root, "lib/.git/config", "[core]\nfsmonitor = x");
        put(root, "lib/.git/HEAD", "ref: refs/heads/main");
        fs::remove_file(root.join("linked/.git")).unwrap();
        put(root, "linked/.git/config", "[core]\nfsmonitor = x");
        let (found, backup) = (seal.inspect(), crate::test_support::temp_dir());
        let expected = [
            ".git/config changed",
            ".git/hooks/pre-commit added",
            ".git/info/attributes added",
            ".git/modules/lib/config changed",
            ".git/objects/info/alternates added",
            ".git/refs/replace/ab added",
            "kept.git/hooks/pre-commit added",
            "lib/.git removed",
            "lib/.git/config added",
            "linked/.git removed",
            "linked/.git/config added",
            "vendor/x/.git/config changed",
        ];
        assert_eq!(describe(&found), expected);
        assert!(found.iter().all(|finding| finding.rule == WHY), "{found:?}");
        let behind = |sandbox| describe(&seal.caused_in(sandbox, found.clone()));
        assert_eq!(behind(SandboxKind::Landlock), expected);
        assert_eq!(behind(SandboxKind::Bubblewrap), ["linked/.git removed", "linked/.git/config added"]);
        assert_eq!(seal.restore(&found, backup.path()), [""; 0]);
        assert_eq!(seal.inspect(), []);
        assert_eq!(fs::read_to_string(root.join("lib/.git")).unwrap(), "gitdir: ../.git/modules/lib\n");
        assert_eq!(fs::read_link(root.join("linked/.git")).unwrap(), Path::new("../kept.git"));
        assert!(backup.path().join(".git/hooks/pre-commit").exists());
    }

    #[tokio::test]
    async fn a_repository_that_comes_to_be_around_the_workspace_itself_is_moved_away() {
        let (dir, backup) = (crate::test_support::temp_dir(), crate::test_support::temp_dir());
        let protection = Protection::new([], &[]).unwrap();
        let seal = Arc::new(Seal::capture(dir.path(), protection, Some(&[])).unwrap());
        put(dir.path(), ".git/config", "[core]\nfsmonitor = x");
        put(dir.path(), ".git/HEAD", "ref: refs/heads/main");
        assert_eq!(seal.clone().close_git(SandboxKind::Bubblewrap, None).await, [""; 0]);
        let left = seal.clone().close_git(SandboxKind::Landlock, None).await;
        assert_eq!(left, [format!("`.git/config` was added in this run and was not put back: {WHY}")]);
        let reported = seal.close_git(SandboxKind::Landlock, Some(backup.path().join("a"))).await;
        assert_eq!(reported, [format!("`.git/config` was added in this run and was put back: {WHY}")]);
        assert!(!dir.path().join(".git").exists() && backup.path().join("a/.git.new/HEAD").exists());
    }
}
