//! Takes the workspace as it stands: one `git status` with an index of our own, then only what it found is read.

use super::git::Git;
use super::names::{each, listed, spelled};
use super::{Inner, Oddness, Taken, TreesFault, ground, look, oddity};
use crate::id::TreeId;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Paths from which on what they hold is written at once.
pub(super) const MANY: usize = 100;

/// What is known between two takes.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Where what is taken begins.
    pub(super) base: Option<Base>,
    /// Files that the user's repository has although they are ignored; asked for before the base is taken.
    pub(super) tracked: Vec<String>,
    /// The newest tree, as long as the index is that.
    newest: Option<TreeId>,
}

/// What later states are compared with. It is kept beside the objects, for runs that are taken up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Base {
    pub(super) tree: TreeId,
    /// Ignored files and folders; they stay out whatever becomes of the lists of ignored files.
    ignored: BTreeSet<String>,
    /// What was odd already.
    odd: BTreeMap<String, Oddness>,
}

/// What git says of the workspace.
#[derive(Debug, Default)]
struct Seen {
    changed: Vec<String>,
    gone: Vec<String>,
    /// Repositories inside whose files are not in the index.
    repositories: Vec<String>,
    ignored: BTreeSet<String>,
}

impl Inner {
    /// The base when there is none yet, else a candidate with what is odd about it.
    pub(super) async fn take(&self, stop: &CancellationToken) -> Result<Taken, TreesFault> {
        let mut state = self.state.lock().await;
        let Some(base) = state.base.clone() else {
            let base = self.take_base(&mut state, stop).await?;
            return Ok(Taken { tree: state.base.insert(base).tree.clone(), oddities: Vec::new() });
        };
        let looking = self.look(base.ignored.clone());
        let (found, seen) = futures_util::join!(looking, self.status(stop));
        let (tree, unreadable) = self.write(&mut state, seen?, stop).await?;
        let mut found = found?;
        found.extend(unreadable);
        found.retain(|path, what| base.odd.get(path) != Some(what));
        let oddities = oddity::scan(self, &base.tree, &tree, found, stop).await?;
        Ok(Taken { tree, oddities })
    }

    /// Only the tree, for who compares nothing.
    pub(super) async fn take_plain(&self, stop: &CancellationToken) -> Result<TreeId, TreesFault> {
        let mut state = self.state.lock().await;
        let seen = self.status(stop).await?;
        Ok(self.write(&mut state, seen, stop).await?.0)
    }

    /// Goes on from a base that was taken before.
    pub(super) async fn resume(&self, base: &TreeId, stop: &CancellationToken) -> Result<(), TreesFault> {
        let path = self.base_file(base);
        let text = std::fs::read(&path).map_err(TreesFault::io("read", &path))?;
        let known: Base = serde_json::from_slice(&text).map_err(|error| TreesFault::io("read", &path)(error.into()))?;
        let mut state = self.state.lock().await;
        self.git.ask(&["read-tree", "--reset", base.as_str()], stop).await?;
        *state = State { base: Some(known), tracked: Vec::new(), newest: None };
        Ok(())
    }

    async fn take_base(&self, state: &mut State, stop: &CancellationToken) -> Result<Base, TreesFault> {
        // What an earlier run left in the index, and is ignored since, is not the user's.
        let stale = self.git.ask(&["ls-files", "-z", "-c", "-i", "--exclude-standard"], stop).await?;
        let tracked: BTreeSet<String> = state.tracked.iter().cloned().collect();
        let stale: Vec<String> = each(&stale).map(spelled).filter(|path| !tracked.contains(path)).collect();
        self.update(&["--force-remove"], &stale, stop).await?;
        let mut seen = self.status(stop).await?;
        let is_there = |path: &&String| self.root.join(native(path)).symlink_metadata().is_ok_and(|it| !it.is_dir());
        seen.changed.extend(tracked.iter().filter(is_there).cloned());
        seen.ignored.retain(|path| !tracked.contains(path));
        let ignored = std::mem::take(&mut seen.ignored);
        let (tree, unreadable) = self.write(state, seen, stop).await?;
        let mut odd = self.look(ignored.clone()).await?;
        odd.extend(unreadable);
        let base = Base { tree, ignored, odd };
        let text = serde_json::to_vec(&base).map_err(|error| TreesFault::io("write", &self.git_dir)(error.into()))?;
        ground::write(&self.base_file(&base.tree), &text)?;
        Ok(base)
    }

    fn base_file(&self, base: &TreeId) -> PathBuf {
        self.git_dir.join("bases").join(base.as_str())
    }

    async fn look(&self, hidden: BTreeSet<String>) -> Result<BTreeMap<String, Oddness>, TreesFault> {
        let root = self.root.clone();
        self.aside(move || Ok(look::look(&root, &hidden))).await
    }

    async fn status(&self, stop: &CancellationToken) -> Result<Seen, TreesFault> {
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
        let mut seen = Seen::default();
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

    /// Brings the index to what was seen, and writes its tree. Files that may not be read stay as they were.
    async fn write(
        &self,
        state: &mut State,
        mut seen: Seen,
        stop: &CancellationToken,
    ) -> Result<(TreeId, Vec<(String, Oddness)>), TreesFault> {
        while let Some(repository) = seen.repositories.pop() {
            self.open_up(&repository, &mut seen, stop).await?;
        }
        if let Some(base) = &state.base {
            seen.changed.retain(|path| !look::is_within(path, &base.ignored));
        }
        let (root, changed) = (self.root.clone(), seen.changed);
        let (changed, unreadable) = self.aside(move || readable(&root, changed)).await?;
        match &state.newest {
            Some(newest) if changed.is_empty() && seen.gone.is_empty() => return Ok((newest.clone(), unreadable)),
            _ => state.newest = None,
        }
        self.update(&["--force-remove"], &seen.gone, stop).await?;
        self.update(&["--add", "--remove", "--replace"], &changed, stop).await?;
        let tree = tree_of(&self.git.ask(&["write-tree"], stop).await?, "write-tree")?;
        ground::copy_index(&self.scratch.path().join("index"), &self.git_dir.join("index"))?;
        state.newest = Some(tree.clone());
        Ok((tree, unreadable))
    }

    async fn update(&self, how: &[&str], paths: &[String], stop: &CancellationToken) -> Result<(), TreesFault> {
        if paths.is_empty() {
            return Ok(());
        }
        let args: Vec<&str> = ["update-index"].iter().chain(how).chain(&["-z", "--stdin"]).copied().collect();
        let is_much = self.packs_at_once && paths.len() >= MANY;
        let git = if is_much { self.git.packing() } else { self.git.clone() };
        git.tell(&args, &listed(paths.iter().map(String::as_str)), stop).await.map(drop)
    }

    /// The files of a repository inside are taken as others are. Once they are in the index, git sees an ordinary folder.
    async fn open_up(&self, repository: &str, seen: &mut Seen, stop: &CancellationToken) -> Result<(), TreesFault> {
        let git = Git::own(&self.git_dir, &self.root.join(native(repository)), self.scratch.path(), &self.path);
        let git = git.with("GIT_INDEX_FILE", &self.scratch.path().join("none"));
        let output = git.ask(&["ls-files", "-z", "-o", "--exclude-standard"], stop).await?;
        for path in each(&output) {
            let inside = format!("{repository}/{}", spelled(path.strip_suffix(b"/").unwrap_or(path)));
            if path.ends_with(b"/") { seen.repositories.push(inside) } else { seen.changed.push(inside) }
        }
        Ok(())
    }
}

/// A path as the system has it.
pub(super) fn native(path: &str) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&super::names::bytes(path)))
}

/// Git's answer where it is a tree.
pub(in crate::workspace) fn tree_of(output: &[u8], verb: &str) -> Result<TreeId, TreesFault> {
    let text = std::str::from_utf8(output).unwrap_or_default();
    TreeId::parse(text.trim_end()).map_err(|_| TreesFault::odd_answer(verb))
}

type Readable = (Vec<String>, Vec<(String, Oddness)>);

/// Those that git can take in, and those that it would fail at.
fn readable(root: &Path, paths: Vec<String>) -> Result<Readable, TreesFault> {
    let (mut sound, mut unreadable) = (Vec::with_capacity(paths.len()), Vec::new());
    for path in paths {
        let file = root.join(native(&path));
        let Ok(it) = file.symlink_metadata() else {
            sound.push(path); // it is gone since, and git will see that
            continue;
        };
        if it.is_file() && it.len() > super::MOST_BYTES {
            return Err(TreesFault::TooLarge { path, bytes: it.len(), limit: super::MOST_BYTES });
        }
        if it.is_file() && access(&file, Access::READ_OK).is_err() {
            unreadable.push((path, Oddness::Unreadable));
        } else {
            sound.push(path);
        }
    }
    Ok((sound, unreadable))
}
