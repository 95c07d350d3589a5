//! Copies of the history that is reachable from a base. fledge copies it once per base and never
//! writes it again; all rooms of the base share the copy.

use super::source::SourceRepository;
use crate::id::TreeId;
use crate::workspace::trees::git::GitFolder;
use crate::workspace::trees::{Trees, TreesError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The longest chain of histories that link objects of an earlier one. The next history is packed
/// anew.
const GENERATIONS: u32 = 16;
/// The commits, tags and files of the history.
const HISTORY: &str = "history";
/// The files of the base that no commit has.
const BASE: &str = "base";
const ABOUT: &str = "history.json";

/// A stored copy of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptHistory {
    folder: PathBuf,
    pub(super) about: About,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    source: SourceRepository,
    /// The tree of the base.
    pub(super) base: TreeId,
    /// The tree of the base's commit, in the object format of the repository.
    pub(super) tree: Option<String>,
    /// The object that replaces the base's commit and has the tree of the base; `None` if the
    /// commit has that tree.
    pub(super) replacement: Option<String>,
    /// The date of the base's commit, as git writes it.
    pub(super) date: Option<String>,
    /// True if the history has all files and not only commits.
    is_whole: bool,
    generation: u32,
}

impl KeptHistory {
    /// Opens the history in `folder`; `None` if none exists.
    pub fn open(folder: &Path) -> Option<Self> {
        let about = serde_json::from_slice(&fs::read(folder.join(ABOUT)).ok()?).ok()?;
        Some(Self { folder: folder.to_owned(), about })
    }

    /// Makes `folder` and copies the history of `source` into it. If the commit of an `earlier`
    /// history is an ancestor, its objects are linked instead of copied. If the user's packs have
    /// more than `most` bytes, only commits, tags and the files of the base are copied.
    ///
    /// # Errors
    /// [`TreesError`] if objects are missing or cannot be written.
    pub async fn make(
        trees: &Trees,
        source: &SourceRepository,
        base: &TreeId,
        folder: &Path,
        (earlier, most): (&[PathBuf], u64),
        stop: &CancellationToken,
    ) -> Result<Self, TreesError> {
        for name in [HISTORY, BASE].map(|name| folder.join(name).join("pack")).iter().chain([&folder.join("refs")]) {
            fs::create_dir_all(name).map_err(TreesError::io("make", name))?;
        }
        put(&folder.join("HEAD"), b"ref: refs/heads/none\n")?;
        put(&folder.join("config"), settings(&source.format).as_bytes())?;
        if !source.shallow.is_empty() {
            put(&folder.join("shallow"), source.shallow.as_bytes())?;
        }
        let is_whole = size(&source.common().join("objects/pack")) <= most;
        let about = About {
            source: source.clone(),
            base: base.clone(),
            tree: None,
            replacement: None,
            date: None,
            is_whole,
            generation: 0,
        };
        let mut history = Self { folder: folder.to_owned(), about };
        let git = history.git(trees);
        if let Some(commit) = &source.commit {
            history.pack_commits(&git, commit, earlier, stop).await?;
            let commit = git.ask(&["cat-file", "commit", commit], stop).await?;
            let commit = String::from_utf8_lossy(&commit).into_owned();
            history.about.tree = header(&commit, "tree ").map(str::to_owned);
            history.about.date = header(&commit, "committer ").and_then(date).map(str::to_owned);
            if source.is_sha1() && history.about.tree.as_deref() != Some(base.as_str()) {
                history.about.replacement = Some(history.replace(&git, &commit, stop).await?);
            }
        }
        if source.is_sha1() {
            history.pack_base(&git, stop).await?;
        }
        let about = serde_json::to_vec(&history.about).unwrap_or_default();
        put(&folder.join(ABOUT), &about)?;
        Ok(history)
    }

    /// Returns the history after its folder was moved to `folder`.
    #[must_use]
    pub fn moved(self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self }
    }

    /// Returns the folder of the history.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the object folders of the history at `at`.
    pub(super) fn objects(at: &Path) -> [PathBuf; 2] {
        [HISTORY, BASE].map(|name| at.join(name))
    }

    /// Returns a git for the history that can read the objects of the user's repository and of the
    /// trees. It reads only the history's configuration.
    fn git(&self, trees: &Trees) -> GitFolder {
        let own = self.about.source.is_sha1().then(|| trees.git_dir().join("objects"));
        let others = [Some(self.about.source.common().join("objects")), own].into_iter().flatten();
        let git = trees.own_git().with("GIT_DIR", &self.folder).within(&self.folder);
        let git = git.with("GIT_OBJECT_DIRECTORY", &self.folder.join(BASE));
        let all: Vec<PathBuf> = others.chain([self.folder.join(HISTORY)]).collect();
        git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", Path::new(&listed(&all)))
    }

    /// Packs the objects that are reachable from the base's commit and not in an earlier history.
    async fn pack_commits(
        &mut self,
        git: &GitFolder,
        commit: &str,
        earlier: &[PathBuf],
        stop: &CancellationToken,
    ) -> Result<(), TreesError> {
        let source = self.about.source.clone();
        let tags = source.references.iter().filter(|it| it.name.starts_with("refs/tags/")).map(|it| it.object.as_str());
        let mut wanted: Vec<String> = [commit].into_iter().chain(tags).map(str::to_owned).collect();
        let into = self.folder.join(HISTORY).join("pack");
        if let Some(before) = self.ancestor(git, earlier, stop).await? {
            link_all(&before.folder.join(HISTORY).join("pack"), &into).map_err(TreesError::io("link in", &into))?;
            let known = &before.about.source;
            let had = known.references.iter().map(|it| it.object.as_str()).chain(known.commit.as_deref());
            let had: Vec<String> = had.map(|object| format!("^{object}")).collect();
            wanted.retain(|object| !had.contains(&format!("^{object}")));
            wanted.extend(had);
            self.about.generation = before.about.generation + 1;
        }
        let pack = into.join("pack").to_string_lossy().into_owned();
        // Objects that a partial clone lacks stay missing. Git reuses existing deltas and searches
        // for no new ones.
        let mut args = vec!["pack-objects", "-q", "--non-empty", "--delta-base-offset", "--window=0"];
        let mut objects = lines(&wanted);
        if self.about.is_whole {
            args.extend(["--revs", "--missing=allow-any"]);
        } else {
            objects = git.tell(&["rev-list", "--stdin"], &objects, stop).await?;
            objects.extend(lines(wanted.iter().filter(|object| !object.starts_with('^'))));
        }
        args.push(&pack);
        git.tell(&args, &objects, stop).await.map(drop)
    }

    /// Returns the first of the `earlier` histories whose commit is an ancestor of this commit.
    async fn ancestor(
        &self,
        git: &GitFolder,
        earlier: &[PathBuf],
        stop: &CancellationToken,
    ) -> Result<Option<Self>, TreesError> {
        let source = &self.about.source;
        for before in earlier.iter().filter_map(|folder| Self::open(folder)) {
            let About { source: theirs, is_whole, generation, .. } = &before.about;
            let is_alike = theirs.format == source.format
                && theirs.shallow == source.shallow
                && theirs.common() == source.common()
                && *is_whole == self.about.is_whole;
            let (Some(old), Some(new)) = (&theirs.commit, &source.commit) else { continue };
            if is_alike && *generation < GENERATIONS {
                let args = ["merge-base", "--is-ancestor", old, new];
                if git.run(&args, b"", 0, stop).await?.code == 0 {
                    return Ok(Some(before));
                }
            }
        }
        Ok(None)
    }

    /// Writes the base's commit with the tree of the base; returns the id of the new object.
    async fn replace(&self, git: &GitFolder, commit: &str, stop: &CancellationToken) -> Result<String, TreesError> {
        let text = with_tree(commit, self.about.base.as_str());
        let id = git.tell(&["hash-object", "-w", "-t", "commit", "--stdin"], text.as_bytes(), stop).await?;
        Ok(String::from_utf8_lossy(&id).trim().to_owned())
    }

    /// Packs the files of the base that the history lacks.
    async fn pack_base(&self, git: &GitFolder, stop: &CancellationToken) -> Result<(), TreesError> {
        let About { base, tree, is_whole, .. } = &self.about;
        let is_there = *is_whole && tree.as_deref() == Some(base.as_str());
        if is_there || *base == TreeId::empty() {
            return Ok(());
        }
        let known = tree.as_ref().filter(|_| *is_whole).map(|tree| format!("^{tree}"));
        let wanted: Vec<String> = [base.as_str().to_owned()].into_iter().chain(known).collect();
        let pack = self.folder.join(BASE).join("pack/pack").to_string_lossy().into_owned();
        let args = ["pack-objects", "-q", "--non-empty", "--delta-base-offset", "--window=0", "--revs", &pack];
        git.tell(&args, &lines(&wanted), stop).await.map(drop)
    }
}

/// Returns the configuration of a repository with this object format.
pub(super) fn settings(format: &str) -> String {
    if format == "sha1" {
        return "[core]\n\trepositoryformatversion = 0\n\tbare = false\n".to_owned();
    }
    format!("[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = {format}\n")
}

/// Writes a file of a repository that is not in use yet.
pub(super) fn put(path: &Path, bytes: &[u8]) -> Result<(), TreesError> {
    fs::write(path, bytes).map_err(TreesError::io("write", path))
}

/// Formats folders for an environment variable of git.
pub(super) fn listed(folders: &[PathBuf]) -> String {
    let quoted = |folder: &PathBuf| {
        format!("\"{}\"", folder.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
    };
    folders.iter().map(quoted).collect::<Vec<_>>().join(":")
}

/// Returns the value of a line in the header of a commit.
fn header<'c>(commit: &'c str, name: &str) -> Option<&'c str> {
    commit.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(name))
}

/// Returns seconds and time zone from the end of `A U Thor <mail> 1700000000 +0100`.
fn date(who: &str) -> Option<&str> {
    who.rsplit_once("> ").map(|(_, date)| date)
}

/// Returns the text of a commit with another tree and without its signature, which would no longer
/// match.
fn with_tree(commit: &str, tree: &str) -> String {
    let (head, message) = commit.split_once("\n\n").unwrap_or((commit, ""));
    let mut is_signature = false;
    let kept = head.lines().filter(|line| {
        is_signature = line.starts_with("gpgsig") || (is_signature && line.starts_with(' '));
        !is_signature && !line.starts_with("tree ")
    });
    let head: Vec<&str> = kept.collect();
    format!("tree {tree}\n{}\n\n{message}", head.join("\n"))
}

fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| format!("{}\n", line.as_ref()).into_bytes()).collect()
}

/// Returns the total size of the files in a folder, in bytes.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

/// Makes hard links to all files of a folder in another folder.
fn link_all(from: &Path, into: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::hard_link(entry.path(), into.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_with_another_tree_keeps_all_but_its_signature() {
        let commit = "tree 1\nparent 2\nauthor A <a@b> 5 +0100\ncommitter C <c@d> 1700000000 +0100\ngpgsig -----BEGIN\n abc\n \n -----END\nencoding x\n\nSay it\n\ntree 9\n";
        let other = "tree 7\nparent 2\nauthor A <a@b> 5 +0100\ncommitter C <c@d> 1700000000 +0100\nencoding x\n\nSay it\n\ntree 9\n";
        assert_eq!(with_tree(commit, "7"), other);
        assert_eq!((header(commit, "tree "), header(commit, "none ")), (Some("1"), None));
        assert_eq!(header(commit, "committer ").and_then(date), Some("1700000000 +0100"));
    }
}
