//! Takes states of the workspace: `git status` runs with fledge's own index, and then git reads
//! only the files that it reported.

use super::git::GitFolder;
use super::ignores::{LIST, TrackedIgnored};
use super::names::{each, listed, spelled};
use super::scratch::IndexChecksum;
use super::{AnomalyKind, Inner, TakenTree, TreesError, anomaly, look, scratch};
use crate::id::TreeId;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The number of paths from which their contents are written into one pack.
pub(super) const MANY: usize = 100;
/// The file with the ignore rules that the kept index was checked against.
const CHECKED: &str = "index.checked";

/// The state between two takes.
#[derive(Debug, Default)]
pub(super) struct TakeState {
    /// The base of all later states.
    pub(super) base: Option<TakeBase>,
    /// The query for tracked files that are ignored; the base includes them.
    pub(super) tracked: Option<TrackedIgnored>,
    /// The ignored files of the base, as far as they are remembered.
    pub(super) ignored_files: BTreeSet<String>,
    /// The anomalies that were found before the base is taken.
    pub(super) found: Option<FolderScan>,
    /// The ignore rules that the index was checked against.
    rules: Option<Vec<u8>>,
    /// The newest tree, if the index matches it.
    newest: Option<TreeId>,
    /// The newest tree, even if the index is older.
    pub(super) last: Option<TreeId>,
    /// True if the newest tree has other ignore files than the base.
    pub(super) has_other_lists: bool,
}

/// The base that later states are compared with. It is stored beside the objects, for resumed runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TakeBase {
    pub(super) tree: TreeId,
    /// Ignored files and folders. They are never included, even if ignore files change.
    pub(super) ignored: BTreeSet<String>,
    /// The anomalies of the base.
    anomalies: BTreeMap<String, AnomalyKind>,
}

/// The result of `git status`.
#[derive(Debug, Default)]
pub(super) struct SeenWorkspace {
    pub(super) changed: Vec<String>,
    gone: Vec<String>,
    /// Nested repositories whose files are not in the index.
    repositories: Vec<String>,
    pub(super) ignored: BTreeSet<String>,
}

impl SeenWorkspace {
    /// Returns whether an ignore file differs from the index.
    fn changes_rules(&self) -> bool {
        let mut others = self.changed.iter().chain(&self.gone).chain(&self.ignored);
        others.any(|path| name_of(path) == LIST)
    }
}

/// Returns the contents of the file [`CHECKED`].
fn checked(rules: &[u8], index: IndexChecksum) -> Vec<u8> {
    [&index, rules].concat()
}

impl Inner {
    /// Takes the base if none exists yet, else a candidate with its anomalies.
    pub(super) async fn take(&self, stop: &CancellationToken) -> Result<TakenTree, TreesError> {
        let mut state = self.state.lock().await;
        let Some(base) = state.base.clone() else {
            let base = self.take_base(&mut state, stop).await?;
            return Ok(TakenTree { tree: state.base.insert(base).tree.clone(), anomalies: Vec::new() });
        };
        let (mut found, seen) = self.look_and_ask(base.ignored.clone(), stop).await?;
        let tree = match seen {
            Some(seen) => {
                let (tree, left_out) = self.write(&mut state, seen, stop).await?;
                found.extend(left_out);
                tree
            }
            None => base.tree.clone(), // the entry that blocks git is reported and judged first
        };
        found.retain(|path, what| base.anomalies.get(path) != Some(what));
        let anomalies = anomaly::scan(self, &base.tree, &tree, found, stop).await?;
        Ok(TakenTree { tree, anomalies })
    }

    /// Takes the tree only, for callers that compare nothing.
    pub(super) async fn take_plain(&self, stop: &CancellationToken) -> Result<TreeId, TreesError> {
        let mut state = self.state.lock().await;
        let hidden = state.base.as_ref().map(|base| base.ignored.clone()).unwrap_or_default();
        let (found, seen) = self.look_and_ask(hidden, stop).await?;
        let blocked = || TreesError::Blocked { path: blocking(&found).next().cloned().unwrap_or_default() };
        let seen = seen.ok_or_else(blocked)?;
        Ok(self.write(&mut state, seen, stop).await?.0)
    }

    /// Loads a base that was taken earlier.
    pub(super) async fn resume(&self, base: &TreeId, stop: &CancellationToken) -> Result<(), TreesError> {
        let path = self.base_file(base);
        let text = std::fs::read(&path).map_err(TreesError::io("read", &path))?;
        let known: TakeBase =
            serde_json::from_slice(&text).map_err(|error| TreesError::io("read", &path)(error.into()))?;
        let mut state = self.state.lock().await;
        self.git.ask(&["read-tree", "--reset", base.as_str()], stop).await?;
        // Without the list, only deletions of ignored files are not reported.
        let ignored_files = std::fs::read(self.ignored_file(base)).unwrap_or_default();
        let ignored_files = serde_json::from_slice(&ignored_files).unwrap_or_default();
        *state = TakeState { base: Some(known), ignored_files, ..TakeState::default() };
        Ok(())
    }

    /// Compares later states with a part of the base.
    pub(super) async fn replace_base(&self, part: &TreeId) -> Result<(), TreesError> {
        let mut state = self.state.lock().await;
        let Some(base) = &state.base else { return Ok(()) };
        let base = TakeBase { tree: part.clone(), ..base.clone() };
        let text = serde_json::to_vec(&base).map_err(|error| TreesError::io("write", &self.git_dir)(error.into()))?;
        scratch::write(&self.base_file(part), &text)?;
        self.keep_ignored(part, &state.ignored_files)?;
        (state.base, state.newest, state.last) = (Some(base), None, None);
        Ok(())
    }

    /// Compares later states with a tree that was not taken here.
    pub(super) async fn begin_at(
        &self,
        base: &TreeId,
        left_out: &[String],
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        self.look_first().await?;
        let mut state = self.state.lock().await;
        self.git.ask(&["read-tree", "--reset", base.as_str()], stop).await?;
        let mut ignored = self.status(stop).await?.ignored;
        ignored.extend(left_out.iter().cloned());
        let base = TakeBase { tree: base.clone(), ignored, anomalies: BTreeMap::new() };
        *state = TakeState { base: Some(base), ..TakeState::default() };
        Ok(())
    }

    async fn take_base(&self, state: &mut TakeState, stop: &CancellationToken) -> Result<TakeBase, TreesError> {
        let found = match state.found.take() {
            Some(found) => found,
            None => self.look_first().await?,
        };
        let index = scratch::checksum(&self.index()); // `git status` rewrites the index
        let asked = state.tracked.take();
        let ask_tracked = async {
            match &asked {
                Some(tracked) => tracked.ask(stop).await,
                None => Ok(Vec::new()),
            }
        };
        let (seen, tracked) = futures_util::join!(self.status(stop), ask_tracked);
        let (mut seen, tracked): (SeenWorkspace, BTreeSet<String>) = (seen?, tracked?.into_iter().collect());
        let rules = self.rules(&tracked);
        if seen.changes_rules() || !self.is_checked(&rules, index) {
            // An earlier run may have left files in the index that are ignored now.
            let stale = self.git.ask(&["ls-files", "-z", "-c", "-i", "--exclude-standard"], stop).await?;
            let stale: Vec<String> = each(&stale).map(spelled).filter(|path| !tracked.contains(path)).collect();
            if !stale.is_empty() {
                self.update(&["--force-remove"], &stale, stop).await?;
                seen = self.status(stop).await?;
            }
        }
        state.rules = Some(rules);
        let is_there = |path: &&String| self.root.join(native(path)).symlink_metadata().is_ok_and(|it| !it.is_dir());
        seen.changed.extend(tracked.iter().filter(is_there).cloned());
        seen.ignored.retain(|path| !tracked.contains(path));
        let ignored = std::mem::take(&mut seen.ignored);
        let (tree, left_out) = self.write(state, seen, stop).await?;
        let mut anomalies = found;
        anomalies.retain(|path, _| !look::is_within(path, &ignored));
        anomalies.extend(left_out);
        let base = TakeBase { tree, ignored, anomalies };
        let text = serde_json::to_vec(&base).map_err(|error| TreesError::io("write", &self.git_dir)(error.into()))?;
        scratch::write(&self.base_file(&base.tree), &text)?;
        Ok(base)
    }

    fn index(&self) -> PathBuf {
        self.scratch.path().join("index")
    }

    /// Returns the ignore rules from outside of the workspace, and the tracked files that are
    /// exempt from all rules.
    fn rules(&self, tracked: &BTreeSet<String>) -> Vec<u8> {
        let mut rules = std::fs::read(self.git_dir.join("info/exclude")).unwrap_or_default();
        rules.extend(listed(tracked.iter().map(String::as_str)));
        rules
    }

    /// Returns whether an earlier run found no file in this index that these rules ignore.
    fn is_checked(&self, rules: &[u8], index: Option<IndexChecksum>) -> bool {
        let kept = std::fs::read(self.git_dir.join(CHECKED)).ok();
        index.zip(kept).is_some_and(|(index, kept)| kept == checked(rules, index))
    }

    /// Records that the index has no file that the rules ignore.
    fn keep_checked(&self, state: &TakeState) -> Result<(), TreesError> {
        let rules = state.rules.as_ref().filter(|_| !state.has_other_lists);
        let Some((rules, index)) = rules.zip(scratch::checksum(&self.index())) else { return Ok(()) };
        scratch::write(&self.git_dir.join(CHECKED), &checked(rules, index))
    }

    fn base_file(&self, base: &TreeId) -> PathBuf {
        self.git_dir.join("bases").join(base.as_str())
    }

    fn ignored_file(&self, base: &TreeId) -> PathBuf {
        self.base_file(base).with_added_extension("ignored")
    }

    /// Stores the ignored files of a base, for resumed runs.
    pub(super) fn keep_ignored(&self, base: &TreeId, files: &BTreeSet<String>) -> Result<(), TreesError> {
        let text = serde_json::to_vec(files).map_err(|error| TreesError::io("write", &self.git_dir)(error.into()))?;
        scratch::write(&self.ignored_file(base), &text)
    }

    /// Searches the folders while git runs, because git takes most of the time. Returns `None` and
    /// stops git if git would wait for ever: at a pipe with the name of a file that git reads.
    pub(super) async fn look_and_ask(
        &self,
        hidden: BTreeSet<String>,
        stop: &CancellationToken,
    ) -> Result<(FolderScan, Option<SeenWorkspace>), TreesError> {
        let asking = stop.child_token();
        let looking = async {
            let found = self.look(hidden).await;
            if !found.as_ref().is_ok_and(|found| blocking(found).next().is_none()) {
                asking.cancel();
            }
            found
        };
        let (found, seen) = futures_util::join!(looking, self.status(&asking));
        let found = found?;
        if blocking(&found).next().is_none() {
            return Ok((found, Some(seen?)));
        }
        // Git has ended by now. A killed git has left its lock.
        let _there_may_be_none = std::fs::remove_file(self.scratch.path().join("index.lock"));
        Ok((found, None))
    }

    /// Searches the folders before git runs, because git may read any ignore file.
    pub(super) async fn look_first(&self) -> Result<FolderScan, TreesError> {
        let found = self.look(BTreeSet::new()).await?;
        let blocked = blocking(&found).next().cloned();
        blocked.map_or(Ok(found), |path| Err(TreesError::Blocked { path }))
    }

    /// Removes pipes and similar entries at which git would wait.
    pub(super) async fn unblock(&self) -> Result<(), TreesError> {
        let hidden = self.state.lock().await.base.as_ref().map(|base| base.ignored.clone()).unwrap_or_default();
        for path in blocking(&self.look(hidden).await?) {
            super::restore::remove_at(&self.root, path)?;
        }
        Ok(())
    }

    async fn look(&self, hidden: BTreeSet<String>) -> Result<BTreeMap<String, AnomalyKind>, TreesError> {
        let root = self.root.clone();
        self.run_blocking(move || Ok(look::look(&root, &hidden))).await
    }

    async fn status(&self, stop: &CancellationToken) -> Result<SeenWorkspace, TreesError> {
        const STATUS: [&str; 7] = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--ignored=matching",
            "--no-renames",
            "--ignore-submodules=all",
        ];
        let output = self.git.ask(&STATUS, stop).await?;
        let mut seen = SeenWorkspace::default();
        for entry in each(&output) {
            let (Some(&[staged, here, _]), Some(path)) = (entry.first_chunk(), entry.get(3..)) else { continue };
            let is_folder = path.ends_with(b"/");
            let place = || spelled(path.strip_suffix(b"/").unwrap_or(path));
            match (staged, here) {
                (b'!', _) => drop(seen.ignored.insert(place())),
                (b'?', _) if is_folder => seen.repositories.push(place()),
                (b'?', _) | (_, b'M' | b'T') => seen.changed.push(place()),
                (_, b'D') => seen.gone.push(place()),
                _ => {}
            }
        }
        Ok(seen)
    }

    /// Updates the index with the seen changes, and writes its tree. Unreadable files, and files
    /// that have become too large since the base, stay as they were.
    async fn write(
        &self,
        state: &mut TakeState,
        mut seen: SeenWorkspace,
        stop: &CancellationToken,
    ) -> Result<(TreeId, LeftOut), TreesError> {
        while let Some(repository) = seen.repositories.pop() {
            self.open_up(&repository, &mut seen, stop).await?;
        }
        if let Some(base) = &state.base {
            seen.changed.retain(|path| !look::is_within(path, &base.ignored));
        }
        let (root, changed) = (self.root.clone(), seen.changed);
        let (changed, left_out) = self.run_blocking(move || Ok(readable(&root, changed))).await?;
        if let (None, Some((path, AnomalyKind::TooLarge(bytes)))) =
            (&state.base, left_out.iter().find(|(_, what)| matches!(what, AnomalyKind::TooLarge(_))))
        {
            return Err(TreesError::TooLarge { path: path.clone(), bytes: *bytes, limit: super::MOST_BYTES });
        }
        match &state.newest {
            Some(newest) if changed.is_empty() && seen.gone.is_empty() => {
                state.last = Some(newest.clone());
                return Ok((newest.clone(), left_out));
            }
            _ => state.newest = None,
        }
        self.update(&["--force-remove"], &seen.gone, stop).await?;
        self.update(&["--add", "--remove", "--replace"], &changed, stop).await?;
        let mut tree = tree_of(&self.git.ask(&["write-tree"], stop).await?, "write-tree")?;
        if let Some(base) = state.base.as_ref().map(|base| base.tree.clone()) {
            let unhidden = self.unhidden(state, (&base, &tree), stop).await?;
            if !unhidden.is_empty() {
                self.update(&["--force-remove"], &unhidden, stop).await?;
                tree = tree_of(&self.git.ask(&["write-tree"], stop).await?, "write-tree")?;
            }
        }
        // The shared index is for the project's own checkout. Worktrees in the project's state
        // folder have other times and inodes.
        if self.git_dir.parent().is_none_or(|kept| !self.root.starts_with(kept)) {
            scratch::copy_index(&self.index(), &self.git_dir.join("index"))?;
            self.keep_checked(state)?;
        }
        state.newest = Some(tree.clone());
        state.last = Some(tree.clone());
        Ok((tree, left_out))
    }

    /// Returns new files that the base ignores, if an ignore file has changed. They are left out
    /// like ignored files that existed at the base.
    async fn unhidden(
        &self,
        state: &mut TakeState,
        (base, tree): (&TreeId, &TreeId),
        stop: &CancellationToken,
    ) -> Result<Vec<String>, TreesError> {
        let changes = self.changes(base, tree, stop).await?;
        state.has_other_lists = changes.iter().any(|change| name_of(&change.path) == LIST);
        if !state.has_other_lists {
            return Ok(Vec::new());
        }
        let new =
            changes.into_iter().filter(|change| change.kind == super::TreeChangeKind::Added).map(|change| change.path);
        Ok(self.ignored(base, &new.collect::<Vec<_>>(), stop).await?.into_iter().collect())
    }

    async fn update(&self, how: &[&str], paths: &[String], stop: &CancellationToken) -> Result<(), TreesError> {
        if paths.is_empty() {
            return Ok(());
        }
        let args: Vec<&str> = ["update-index"].iter().chain(how).chain(&["-z", "--stdin"]).copied().collect();
        let is_much = self.packs_at_once && paths.len() >= MANY;
        let git = if is_much { self.git.packing() } else { self.git.clone() };
        git.tell(&args, &listed(paths.iter().map(String::as_str)), stop).await.map(drop)
    }

    /// Adds the files of a nested repository like ordinary files. Once they are in the index, git
    /// treats the repository as an ordinary folder.
    async fn open_up(
        &self,
        repository: &str,
        seen: &mut SeenWorkspace,
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        let git = GitFolder::own(&self.git_dir, &self.root.join(native(repository)), self.scratch.path(), &self.path);
        let git = git.with("GIT_INDEX_FILE", &self.scratch.path().join("none"));
        let output = git.ask(&["ls-files", "-z", "-o", "--exclude-standard"], stop).await?;
        for path in each(&output) {
            let inside = format!("{repository}/{}", spelled(path.strip_suffix(b"/").unwrap_or(path)));
            if path.ends_with(b"/") { seen.repositories.push(inside) } else { seen.changed.push(inside) }
        }
        Ok(())
    }
}

/// Returns the last name of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns a path as the system knows it.
pub(super) fn native(path: &str) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&super::names::bytes(path)))
}

/// Parses the output of git as a tree id.
pub(in crate::workspace) fn tree_of(output: &[u8], verb: &str) -> Result<TreeId, TreesError> {
    let text = std::str::from_utf8(output).unwrap_or_default();
    TreeId::parse(text.trim_end()).map_err(|_| TreesError::odd_answer(verb))
}

/// The findings in the folders, by path.
pub(super) type FolderScan = BTreeMap<String, AnomalyKind>;
/// Files that are not in a tree, and why.
type LeftOut = Vec<(String, AnomalyKind)>;

/// Returns the entries at which git would wait: special files with names that git reads.
fn blocking(found: &FolderScan) -> impl Iterator<Item = &String> {
    const READ: [&str; 3] = [LIST, ".gitattributes", ".gitmodules"];
    let is_read = |path: &str| READ.contains(&name_of(path));
    found.iter().filter(move |(path, what)| **what == AnomalyKind::Special && is_read(path)).map(|(path, _)| path)
}

/// Separates the files that git can take in from those that it cannot.
fn readable(root: &Path, paths: Vec<String>) -> (Vec<String>, LeftOut) {
    let (mut sound, mut left_out) = (Vec::with_capacity(paths.len()), Vec::new());
    for path in paths {
        let file = root.join(native(&path));
        let Ok(it) = file.symlink_metadata() else {
            sound.push(path); // removed since; git will notice
            continue;
        };
        if it.is_file() && it.len() > super::MOST_BYTES {
            left_out.push((path, AnomalyKind::TooLarge(it.len())));
        } else if it.is_file() && access(&file, Access::READ_OK).is_err() {
            left_out.push((path, AnomalyKind::Unreadable));
        } else {
            sound.push(path);
        }
    }
    (sound, left_out)
}
