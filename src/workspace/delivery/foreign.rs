//! Paths at which the user's git stores other bytes than the workspace has: submodules, and files
//! that a filter or a line-ending rule changes. If the run did not change a path, the path stays as
//! committed. If the run changed it, the path cannot be delivered.

use super::compose::{TreeFiles, is_repository};
use super::{DeliveryError, UserRepository};
use crate::workspace::trees::names::{each, listed, spelled};
use crate::workspace::trees::{TreeEntry, TreesError};
use std::collections::{BTreeMap, BTreeSet};
use tokio_util::sync::CancellationToken;

/// The number of bytes at the start of a file in which a NUL makes it binary, as in git.
const START: usize = 8000;

/// The foreign paths of one tree, relative to the root of the workspace.
pub(super) struct ForeignPaths {
    submodules: Vec<String>,
    filtered: BTreeSet<String>,
}

/// The entries that replace judged ones, by path; `None` removes the path.
pub(super) type KeptEntry = BTreeMap<String, Option<TreeEntry>>;

impl ForeignPaths {
    pub(super) async fn find(
        repository: &UserRepository<'_>,
        committed: &TreeFiles,
        judged: &TreeFiles,
        stop: &CancellationToken,
    ) -> Result<Self, TreesError> {
        let submodules: Vec<String> =
            committed.iter().filter(|(_, entry)| is_repository(entry)).map(|(path, _)| path.clone()).collect();
        let differs =
            |path: &str, entry: &TreeEntry| committed.get(path) != Some(entry) && entry.mode & 0o170_000 == 0o100_000;
        let changed: Vec<&TreeEntry> =
            judged.iter().filter(|(path, entry)| differs(path, entry)).map(|(_, it)| it).collect();
        let filtered = repository.filtered(&changed, stop).await?;
        Ok(Self { submodules, filtered })
    }

    /// Returns the entries that stay as committed. Fails with [`DeliveryError::Foreign`] if the run
    /// changed any of them.
    pub(super) fn kept(
        &self,
        committed: &TreeFiles,
        judged: &TreeFiles,
        begun: &TreeFiles,
    ) -> Result<KeptEntry, DeliveryError> {
        let (mut kept, mut wrong) = (KeptEntry::new(), Vec::new());
        for submodule in &self.submodules {
            let below = format!("{submodule}/");
            let inside = |files: &TreeFiles| -> TreeFiles {
                let range = files.range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
                range.map(|(path, entry)| (path.clone(), entry.clone())).collect()
            };
            let files = inside(judged);
            if files == inside(begun) && judged.get(submodule) == begun.get(submodule) {
                kept.extend(files.into_keys().map(|path| (path, None)));
                kept.insert(submodule.clone(), committed.get(submodule).cloned());
            } else {
                wrong.push(submodule.clone());
            }
        }
        for path in &self.filtered {
            if kept.contains_key(path) {
                continue; // inside a submodule
            }
            match committed.get(path) {
                Some(entry) if judged.get(path) == begun.get(path) => {
                    drop(kept.insert(path.clone(), Some(entry.clone())))
                }
                _ => wrong.push(path.clone()),
            }
        }
        wrong.sort();
        if wrong.is_empty() { Ok(kept) } else { Err(DeliveryError::Foreign { paths: wrong }) }
    }
}

impl UserRepository<'_> {
    /// Returns the files that git would change when it stores them.
    async fn filtered(&self, files: &[&TreeEntry], stop: &CancellationToken) -> Result<BTreeSet<String>, TreesError> {
        let names = ["filter", "ident", "text", "eol", "working-tree-encoding"];
        let args = [["check-attr", "-z", "--stdin"].as_slice(), &names].concat();
        if files.is_empty() {
            return Ok(BTreeSet::new());
        }
        let answer = self.git.tell(&args, &listed(files.iter().map(|it| it.path.as_str())), stop).await?;
        let mut attributes: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut fields = each(&answer).map(spelled);
        while let (Some(path), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next()) {
            attributes.entry(path).or_default().insert(name, value);
        }
        let autocrlf = self.line_ends(stop).await?;
        let (mut found, mut doubtful) = (BTreeSet::new(), Vec::new());
        for file in files {
            let value = |name: &str| {
                let value =
                    attributes.get(&file.path).and_then(|all| all.get(name)).map_or("unspecified", String::as_str);
                if value == "unset" { None } else { Some(value) }
            };
            let is_given = |name: &str| value(name).is_some_and(|value| value != "unspecified");
            // A filter counts even if this git has no program for it: other users of the commit may
            // have one.
            let is_filtered = is_given("filter") && value("filter") != Some("set");
            if is_filtered || is_given("ident") || is_given("working-tree-encoding") {
                found.insert(file.path.clone());
            } else if is_given("text") || is_given("eol") && value("text").is_some() {
                doubtful.push((*file, value("text") != Some("auto")));
            } else if autocrlf && value("text").is_some() {
                doubtful.push((*file, false));
            }
        }
        let blobs = self.trees.blobs(doubtful.iter().map(|(file, _)| file.blob.as_str()), stop).await?;
        for ((file, always), bytes) in doubtful.iter().zip(blobs) {
            let is_text = *always || !bytes.iter().take(START).any(|byte| *byte == 0);
            if is_text && bytes.windows(2).any(|pair| pair == b"\r\n") {
                found.insert(file.path.clone());
            }
        }
        Ok(found)
    }

    /// Returns whether git changes line endings of files that no attribute covers.
    async fn line_ends(&self, stop: &CancellationToken) -> Result<bool, TreesError> {
        let answer = self.git.run(&["config", "--get", "core.autocrlf"], b"", usize::MAX, stop).await?;
        let value = String::from_utf8_lossy(&answer.output).trim().to_ascii_lowercase();
        Ok(["true", "input", "yes", "on", "1"].contains(&value.as_str()))
    }
}
