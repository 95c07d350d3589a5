//! The contents of trees, and their differences.

use super::git::GitAnswer;
use super::names::{each, listed, spelled};
use super::{DiffForm, Inner, REPOSITORY, TreeChange, TreeChangeKind, TreeEntry, Trees, TreesError, take};
use crate::id::TreeId;
use std::collections::{BTreeMap, BTreeSet};
use tokio_util::sync::CancellationToken;

/// The maximum number of paths that are passed to git as arguments. Beyond that, a list of all
/// files costs little more.
const MOST_ARGUMENTS: usize = 200;

impl Trees {
    /// Returns the paths of all files of a tree, sorted.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn paths(&self, tree: &TreeId, stop: &CancellationToken) -> Result<Vec<String>, TreesError> {
        Ok(self.0.entries(tree, stop).await?.into_iter().map(|entry| entry.path).collect())
    }

    /// Returns a tree with additional or replaced files; each is a path, a text, and whether the
    /// file is executable.
    ///
    /// # Errors
    /// [`TreesError`] if git fails, or a path conflicts with a file of the tree.
    pub async fn with_files<'a>(
        &self,
        tree: &TreeId,
        files: impl Iterator<Item = (&'a str, &'a str, bool)>,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        let inner = &self.0;
        let git = inner.git.with("GIT_INDEX_FILE", &inner.scratch.path().join("composed"));
        let mut lines = Vec::new();
        for (path, text, is_executable) in files {
            let blob = git.tell(&["hash-object", "-w", "--stdin"], text.as_bytes(), stop).await?;
            let mode = if is_executable { "100755" } else { "100644" };
            lines.extend_from_slice(format!("{mode} {}\t", String::from_utf8_lossy(&blob).trim()).as_bytes());
            lines.extend(listed([path]));
        }
        let _one_at_a_time = inner.state.lock().await;
        git.ask(&["read-tree", tree.as_str()], stop).await?;
        git.tell(&["update-index", "--add", "-z", "--index-info"], &lines, stop).await?;
        take::tree_of(&git.ask(&["write-tree"], stop).await?, "write-tree")
    }
}

impl Inner {
    pub(super) async fn changes(
        &self,
        from: &TreeId,
        to: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Vec<TreeChange>, TreesError> {
        if from == to {
            return Ok(Vec::new());
        }
        let pair = (from.clone(), to.clone());
        if let Some(changes) = self.seen.changes.get(&pair) {
            return Ok(changes);
        }
        let args = ["diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", from.as_str(), to.as_str()];
        let output = self.git.ask(&args, stop).await?;
        let (mut fields, mut changes) = (each(&output), Vec::new());
        while let Some(head) = fields.next() {
            let change = fields.next().and_then(|path| changed(head, path));
            changes.push(change.ok_or_else(|| TreesError::odd_answer("diff-tree"))?);
        }
        changes.sort();
        self.seen.changes.keep(pair, &changes);
        Ok(changes)
    }

    /// Returns all files of a tree, sorted by path.
    pub(super) async fn entries(&self, tree: &TreeId, stop: &CancellationToken) -> Result<Vec<TreeEntry>, TreesError> {
        if let Some(entries) = self.seen.entries.get(tree) {
            return Ok(entries);
        }
        let output = self.git.ask(&["ls-tree", "-r", "-z", "--full-tree", tree.as_str()], stop).await?;
        let entries = entries_of(&output)?;
        self.seen.entries.keep(tree.clone(), &entries);
        Ok(entries)
    }

    pub(super) async fn read(
        &self,
        tree: &TreeId,
        path: &str,
        limit: u64,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<u8>>, TreesError> {
        let entries = self.entries_at(tree, &[path], stop).await?;
        let Some(entry) = entries.into_iter().find(|entry| entry.path == path && entry.mode != REPOSITORY) else {
            return Ok(None);
        };
        let args = ["cat-file", "blob", &entry.blob];
        let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
        let blob = self.git.run(&args, b"", most, stop).await?;
        if blob.code != 0 {
            return Err(blob.fault(&args));
        }
        if blob.output.len() < most {
            return Ok(Some(blob.output));
        }
        let size = self.git.ask(&["cat-file", "-s", &entry.blob], stop).await?;
        let bytes = std::str::from_utf8(&size).ok().and_then(|size| size.trim().parse().ok());
        Err(TreesError::TooLarge { path: entry.path, bytes: bytes.unwrap_or(limit), limit })
    }

    pub(super) async fn read_all(
        &self,
        tree: &TreeId,
        paths: &[&str],
        limit: u64,
        stop: &CancellationToken,
    ) -> Result<BTreeMap<String, Vec<u8>>, TreesError> {
        let mut entries = self.entries_at(tree, paths, stop).await?;
        entries.retain(|entry| entry.mode != REPOSITORY && paths.contains(&entry.path.as_str()));
        let ids: String = entries.iter().map(|entry| format!("{}\n", entry.blob)).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let sizes = self.git.tell(&["cat-file", "--batch-check=%(objectsize)"], ids.as_bytes(), stop).await?;
        let sizes = String::from_utf8_lossy(&sizes);
        let is_small = |size: &str| size.parse::<u64>().is_ok_and(|size| size <= limit);
        let small: Vec<TreeEntry> =
            entries.into_iter().zip(sizes.lines()).filter(|(_, size)| is_small(size)).map(|(entry, _)| entry).collect();
        let texts = self.blobs(small.iter().map(|entry| entry.blob.as_str()), stop).await?;
        Ok(small.into_iter().map(|entry| entry.path).zip(texts).collect())
    }

    /// Returns the entries at these paths, or all files of the tree if the paths are too many or
    /// cannot be arguments.
    pub(super) async fn entries_at(
        &self,
        tree: &TreeId,
        paths: &[&str],
        stop: &CancellationToken,
    ) -> Result<Vec<TreeEntry>, TreesError> {
        let is_argument =
            |path: &&str| !path.is_empty() && !path.contains('\0') && super::names::bytes(path) == path.as_bytes();
        if paths.len() > MOST_ARGUMENTS || !paths.iter().all(is_argument) {
            return self.entries(tree, stop).await;
        }
        let args = ["--literal-pathspecs", "ls-tree", "-z", "--full-tree", tree.as_str(), "--"];
        let output = self.git.ask(&[args.as_slice(), paths].concat(), stop).await?;
        Ok(each(&output).filter_map(entry).collect())
    }

    /// Returns the contents of each object.
    pub(super) async fn blobs<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
        stop: &CancellationToken,
    ) -> Result<Vec<Vec<u8>>, TreesError> {
        let input: String = ids.map(|id| format!("{id}\n")).collect();
        if input.is_empty() {
            return Ok(Vec::new());
        }
        let output = self.git.tell(&["cat-file", "--batch"], input.as_bytes(), stop).await?;
        let (mut rest, mut blobs) = (output.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (blob, after) = batched(rest).ok_or_else(|| TreesError::odd_answer("cat-file"))?;
            blobs.push(blob.to_vec());
            rest = after;
        }
        Ok(blobs)
    }

    pub(super) async fn with_paths_of(
        &self,
        tree: &TreeId,
        base: &TreeId,
        paths: &[String],
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        let paths: BTreeSet<String> = paths.iter().map(|path| path.trim_end_matches('/').to_owned()).collect();
        let git = self.git.with("GIT_INDEX_FILE", &self.scratch.path().join("composed"));
        let changes = self.changes(tree, base, stop).await?;
        let blobs = self.entries(base, stop).await?;
        let mut lines = Vec::new();
        for change in changes.iter().filter(|change| super::look::is_within(&change.path, &paths)) {
            let found = blobs.binary_search_by(|entry| entry.path.as_str().cmp(&change.path));
            let (mode, blob) =
                found.map_or((0, "0".repeat(tree.as_str().len())), |at| (blobs[at].mode, blobs[at].blob.clone()));
            lines.extend_from_slice(format!("{mode:o} {blob}\t").as_bytes());
            lines.extend(listed([change.path.as_str()]));
        }
        if lines.is_empty() {
            return Ok(tree.clone());
        }
        let _one_at_a_time = self.state.lock().await;
        git.ask(&["read-tree", tree.as_str()], stop).await?;
        git.tell(&["update-index", "--add", "--replace", "-z", "--index-info"], &lines, stop).await?;
        take::tree_of(&git.ask(&["write-tree"], stop).await?, "write-tree")
    }

    pub(super) async fn diff(
        &self,
        from: &TreeId,
        to: &TreeId,
        form: DiffForm,
        limit: usize,
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, TreesError> {
        let form: &[&str] = match form {
            DiffForm::Patch => &["-p"],
            DiffForm::Whole => &["-p", "--binary", "--full-index"],
            DiffForm::Stat => &["--stat=100"],
        };
        let fixed = ["diff-tree", "-r", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"];
        let args = [fixed.as_slice(), form, &[from.as_str(), to.as_str()]].concat();
        let answer: GitAnswer = self.git.run(&args, b"", limit, stop).await?;
        if answer.code == 0 { Ok(answer.output) } else { Err(answer.fault(&args)) }
    }
}

/// Parses the output of `ls-tree`; sorts it by path.
pub(in crate::workspace) fn entries_of(list: &[u8]) -> Result<Vec<TreeEntry>, TreesError> {
    let entries: Option<Vec<TreeEntry>> = each(list).map(entry).collect();
    let mut entries = entries.ok_or_else(|| TreesError::odd_answer("ls-tree"))?;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// Parses a change from `diff-tree`: `:100644 100755 OLD NEW M`.
fn changed(head: &[u8], path: &[u8]) -> Option<TreeChange> {
    let mut words = std::str::from_utf8(head).ok()?.strip_prefix(':')?.split(' ');
    let mut mode = || u32::from_str_radix(words.next()?, 8).ok();
    let (from_mode, to_mode) = (mode()?, mode()?);
    let (from, to) = (words.next()?, words.next()?);
    let kind = match (from_mode, to_mode) {
        (0, _) => TreeChangeKind::Added,
        (_, 0) => TreeChangeKind::Removed,
        _ if from == to && from_mode & to_mode & 0o170_000 == 0o100_000 => TreeChangeKind::ModeChanged,
        _ => TreeChangeKind::Modified,
    };
    Some(TreeChange { path: spelled(path), kind, from_mode, to_mode })
}

/// Parses a file from `ls-tree`: `100644 blob ID`, a tab, and the path.
fn entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let (_kind, blob) = (words.next()?, words.next()?.to_owned());
    Some(TreeEntry { path: spelled(&line[tab + 1..]), mode, blob })
}

/// Splits the output of `cat-file --batch` after its first object.
fn batched(output: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = output.iter().position(|byte| *byte == b'\n')?;
    let size: usize = std::str::from_utf8(&output[..end]).ok()?.rsplit_once(' ')?.1.parse().ok()?;
    let (blob, rest) = output[end + 1..].split_at_checked(size)?;
    Some((blob, rest.strip_prefix(b"\n")?))
}
