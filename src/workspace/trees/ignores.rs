//! The files that the user ignores through other lists than the workspace's own `.gitignore` files,
//! as of the start of a run.

use super::git::GitFolder;
use super::git_programs::{Checkouts, ConfiguredPaths, GitPrograms};
use super::names::{each, listed, spelled, with_folders};
use super::take::native;
use super::{Inner, Trees, TreesError, scratch};
use crate::id::TreeId;
use globset::GlobBuilder;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Caches of tools, which the tools trust without a look at the sources. They are ignored unless
/// tracked. The user's lists come later and may override this.
const CACHES: [&str; 7] =
    ["__pycache__/", "*.py[co]", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", "*.tsbuildinfo", ".eslintcache"];

/// The name of the files with ignore rules.
pub(super) const LIST: &str = ".gitignore";

/// The ignore rules and git programs at the start of a run.
pub(super) struct FrozenIgnores {
    /// The lines of an exclude file at the root of the workspace.
    pub(super) lines: String,
    /// The query for tracked files that are ignored.
    pub(super) tracked: TrackedIgnored,
    /// The files that the user's git reads and runs in the workspace.
    pub(super) programs: GitPrograms,
}

/// A query to the user's repository for tracked files that are ignored. In a large repository the
/// query takes as long as the base, so both run at the same time.
#[derive(Debug)]
pub(super) struct TrackedIgnored {
    git: GitFolder,
    /// The option that names the file with ignore rules.
    exclude: String,
}

impl TrackedIgnored {
    /// Returns the files; none if the workspace is in no repository.
    pub(super) async fn ask(&self, stop: &CancellationToken) -> Result<Vec<String>, TreesError> {
        let args = ["ls-files", "-z", "-c", "-i", "--exclude-per-directory=.gitignore", &self.exclude];
        let answer = self.git.run(&args, b"", usize::MAX, stop).await?;
        Ok(if answer.code == 0 { each(&answer.output).map(spelled).collect() } else { Vec::new() })
    }
}

/// Reads the rules with the user's git. A workspace in no repository has only its own `.gitignore`
/// files and the user's list.
pub(super) async fn frozen(
    root: &Path,
    scratch: &Path,
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Result<FrozenIgnores, TreesError> {
    let git = GitFolder::of_user(root, scratch, env);
    let reported = async |args: &[&str]| -> Result<String, TreesError> {
        let answer = git.run(args, b"", usize::MAX, stop).await?;
        Ok(if answer.code == 0 { String::from_utf8_lossy(&answer.output).into_owned() } else { String::new() })
    };
    // Paths without line breaks; git prints them one per line.
    let places = ["rev-parse", "--show-toplevel", "--show-prefix", "--git-path", "info/exclude"];
    let (set, places) = futures_util::join!(ConfiguredPaths::read(&git, stop), reported(&places));
    let (set, places) = (set?, places?);
    let own = set.last("core.excludesfile").filter(|path| !path.is_empty());
    let home = |name: &str| env.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value);
    let usual = || match (home("XDG_CONFIG_HOME"), home("HOME")) {
        (Some(folder), _) => Some(Path::new(folder).join("git/ignore")),
        (None, Some(folder)) => Some(Path::new(folder).join(".config/git/ignore")),
        (None, None) => None,
    };
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut lines = places.lines();
    let top = lines.next().map(PathBuf::from);
    let prefix = lines.next().unwrap_or_default().trim_end_matches('/').to_owned();
    files.extend(own.map(|path| root.join(path)).or_else(usual).map(|path| (path, prefix.clone())));
    let mut programs = GitPrograms::default();
    if let Some(top) = &top {
        let exclude = root.join(lines.next().unwrap_or_default());
        let git_dir = exclude.ancestors().nth(2).unwrap_or(top);
        let main = git_dir.parent().filter(|_| git_dir.ends_with(".git")).unwrap_or(top);
        let main = if prefix.is_empty() { main.to_owned() } else { main.join(&prefix) };
        let (roots, hooks) = (Checkouts { own: root, main: &main }, git_dir.join("hooks"));
        programs = GitPrograms::read(&git, &set, roots, (top, &prefix, &hooks), stop).await?;
        files.push((exclude, prefix.clone()));
        let mut above = top.clone();
        let mut rest = prefix.as_str();
        while !rest.is_empty() {
            files.push((above.join(".gitignore"), rest.to_owned()));
            let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
            above.push(name);
            rest = below;
        }
    }
    let texts = files.iter().filter_map(|(path, prefix)| Some((std::fs::read_to_string(path).ok()?, prefix)));
    let own = texts.flat_map(|(text, prefix)| seen_from(prefix, &text));
    let lines: String = CACHES.iter().map(|cache| format!("{cache}\n")).chain(own).collect();
    scratch::write(&scratch.join("exclude"), lines.as_bytes())?;
    let exclude = format!("--exclude-from={}", scratch.join("exclude").display());
    Ok(FrozenIgnores { lines, tracked: TrackedIgnored { git, exclude }, programs })
}

/// Returns a path relative to the root of the workspace; `None` for the root itself or a path
/// outside.
pub(super) fn inside(root: &Path, path: &Path) -> Option<String> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    let below = plain.strip_prefix(root).or(path.strip_prefix(root)).ok()?.to_str()?;
    (!below.is_empty()).then(|| below.to_owned())
}

impl Trees {
    /// Returns the given paths that are ignored: by the `.gitignore` files of a tree, or by the
    /// user's rules at the start of the run.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn ignored(
        &self,
        tree: &TreeId,
        paths: &[String],
        stop: &CancellationToken,
    ) -> Result<BTreeSet<String>, TreesError> {
        self.0.ignored(tree, paths, stop).await
    }
}

impl Inner {
    pub(super) async fn ignored(
        &self,
        tree: &TreeId,
        paths: &[String],
        stop: &CancellationToken,
    ) -> Result<BTreeSet<String>, TreesError> {
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        let scratch = self.scratch.path();
        let folder = tempfile::tempdir_in(scratch).map_err(TreesError::io("write in", scratch))?;
        let folders: BTreeSet<&str> = paths.iter().flat_map(|path| with_folders(path).skip(1)).collect();
        let mut places: BTreeSet<String> = folders.iter().map(|folder| format!("{folder}/{LIST}")).collect();
        places.insert(LIST.into());
        let mut lists = self.entries_at(tree, &places.iter().map(String::as_str).collect::<Vec<_>>(), stop).await?;
        lists.retain(|entry| entry.mode & 0o170_000 == 0o100_000 && places.contains(&entry.path));
        let texts = self.blobs(lists.iter().map(|entry| entry.blob.as_str()), stop).await?;
        for (list, text) in lists.iter().zip(texts) {
            let place = folder.path().join(native(&list.path));
            let parent = place.parent().unwrap_or(folder.path());
            std::fs::create_dir_all(parent).map_err(TreesError::io("make", parent))?;
            scratch::write(&place, &text)?;
        }
        let git = self.git.within(folder.path());
        let args = ["check-ignore", "--no-index", "-z", "--stdin"];
        let answer = git.run(&args, &listed(paths.iter().map(String::as_str)), usize::MAX, stop).await?;
        match answer.code {
            0 | 1 => Ok(each(&answer.output).map(spelled).collect()), // 1: no path is ignored
            _ => Err(answer.fault(&args)),
        }
    }
}

/// Rewrites the lines of an ignore file for a folder below it. `prefix` is the path from the ignore
/// file's folder to that folder.
fn seen_from(prefix: &str, text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| Some(format!("{}\n", line_from(prefix, line)?))).collect()
}

fn line_from(prefix: &str, line: &str) -> Option<String> {
    let (not, pattern) = line.strip_prefix('!').map_or(("", line), |rest| ("!", rest));
    let is_anchored = pattern.trim_end().trim_end_matches('/').contains('/');
    if prefix.is_empty() || !is_anchored {
        return Some(line.to_owned());
    }
    let mut rest = pattern.strip_prefix('/').unwrap_or(pattern);
    for folder in prefix.split('/') {
        let (name, below) = rest.split_once('/')?;
        if name == "**" {
            return Some(format!("{not}{rest}"));
        }
        let glob = GlobBuilder::new(name).literal_separator(true).backslash_escape(true).build().ok()?;
        if !glob.compile_matcher().is_match(folder) || below.is_empty() {
            return None;
        }
        rest = below;
    }
    Some(format!("{not}/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_from_above_reads_the_same_from_below() {
        let text = "# no\n\ntarget/\n*.pyc\n/crates/core/out\ncrates/*/tmp/x\n**/cache/y\n/other/z\n!crates/core/out/keep\ncrates/\n/crates/core/\n";
        let lines = seen_from("crates/core", text).concat();
        assert_eq!(lines, "target/\n*.pyc\n/out\n/tmp/x\n**/cache/y\n!/out/keep\ncrates/\n");
        assert_eq!(seen_from("", "/a/b\n!c\n").concat(), "/a/b\n!c\n");
    }
}
