//! Writes the repository of a room before anything runs there. Afterwards fledge never runs git in
//! it: a step may have written its configuration.

use super::history::{KeptHistory, listed, put, settings};
use super::index::with_stat;
use super::source::{SourceReference, SourceRepository};
use crate::id::TreeId;
use crate::workspace::trees::git::GitFolder;
use crate::workspace::trees::names::listed as with_zeros;
use crate::workspace::trees::{Trees, TreesError};
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The date of the commit without a base commit.
const DATE: &str = "1000000000 +0000";
const WHO: &str = "fledge <fledge@localhost>";
/// The git configuration of a room: an author, and nothing that starts a program.
const CONFIG: &str = "[core]
\tfilemode = true
\tfsmonitor = false
\tlogAllRefUpdates = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = fledge
\temail = fledge@localhost
";
/// Gives the files of a room the bytes of the judged tree, regardless of the line endings and
/// filters that `.gitattributes` sets.
const ATTRIBUTES: &str = "* -text -eol -crlf -filter -ident !working-tree-encoding\n";

/// The contents of a room's repository.
#[derive(Debug, Clone, Copy)]
pub struct RoomRepository<'a> {
    /// The user's repository.
    pub source: &'a SourceRepository,
    /// The history of the base; `None` if it cannot be copied. Then the judged tree is the only
    /// commit.
    pub history: Option<&'a KeptHistory>,
    /// The path at which steps find the history.
    pub seen_at: &'a Path,
    /// The tree of the base.
    pub base: &'a TreeId,
    /// The tree of the room.
    pub tree: &'a TreeId,
    /// True if the index already has the times and numbers of the room's files.
    pub has_stat: bool,
}

/// Writes the `.git` folder of the room with the files in `files`. `index` is an index of its tree.
///
/// # Errors
/// [`TreesError`] if git or the system fails.
pub async fn write(
    trees: &Trees,
    repository: RoomRepository<'_>,
    files: &Path,
    index: &Path,
    stop: &CancellationToken,
) -> Result<(), TreesError> {
    let RoomRepository { source, history, seen_at, base, tree, has_stat } = repository;
    let dir = files.join(".git");
    for name in ["hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        let folder = dir.join(name);
        fs::create_dir_all(&folder).map_err(TreesError::io("make", folder))?;
    }
    put(&dir.join("config"), config(source).as_bytes())?;
    put(&dir.join("info/attributes"), ATTRIBUTES.as_bytes())?;
    let excluded = trees.git_dir().join("info/exclude");
    put(&dir.join("info/exclude"), &fs::read(excluded).unwrap_or_default())?;
    put(&dir.join("description"), b"Unnamed repository; edit this file 'description' to name the repository.\n")?;
    put(&dir.join("HEAD"), b"ref: refs/heads/none\n")?; // from here on git takes the folder for a repository
    let git = trees.own_git().with("GIT_DIR", &dir).with("GIT_INDEX_FILE", &dir.join("index")).within(files);
    let git = match history {
        Some(history) => {
            git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", Path::new(&listed(&KeptHistory::objects(history.folder()))))
        }
        None => git,
    };
    let own = if source.is_sha1() {
        pack(trees, history.map(|_| base), tree, &dir, stop).await?;
        let bare = fs::read(index).map_err(TreesError::io("read", index))?;
        let _it_is_no_part_of_the_room = fs::remove_file(index);
        let folder = files.to_owned();
        let filled = move || Ok(if has_stat { bare } else { with_stat(bare.clone(), &folder).unwrap_or(bare) });
        let filled = trees.run_blocking(filled).await?;
        put(&dir.join("index"), &filled)?;
        tree.as_str().to_owned()
    } else {
        let paths = trees.paths(tree, stop).await?;
        git.tell(&["update-index", "--add", "-z", "--stdin"], &with_zeros(paths.iter().map(String::as_str)), stop)
            .await?;
        String::from_utf8_lossy(&git.ask(&["write-tree"], stop).await?).trim().to_owned()
    };
    let about = history.map(|history| &history.about);
    let parent = source.commit.as_ref().filter(|_| about.is_some());
    let is_base =
        if source.is_sha1() { tree == base } else { about.is_some_and(|it| it.tree.as_deref() == Some(&own)) };
    let head = match parent.filter(|_| is_base) {
        Some(commit) => commit.clone(),
        None => commit(&git, &own, parent, about.and_then(|it| it.date.as_deref()), stop).await?,
    };
    if about.is_some() {
        let folders: Vec<String> =
            KeptHistory::objects(seen_at).iter().map(|it| format!("{}\n", it.to_string_lossy())).collect();
        put(&dir.join("objects/info/alternates"), folders.concat().as_bytes())?;
        if !source.shallow.is_empty() && source.commit.is_some() {
            put(&dir.join("shallow"), source.shallow.as_bytes())?;
        }
        let replacement = about.and_then(|it| it.replacement.clone()).zip(source.commit.clone());
        let replaced = replacement.map(|(object, commit)| (format!("refs/replace/{commit}"), object));
        references(&dir, &source.references, replaced)?;
    }
    match &source.branch {
        Some(branch) => {
            let place = dir.join(branch);
            let parent = place.parent().unwrap_or(&dir);
            fs::create_dir_all(parent).map_err(TreesError::io("make", parent))?;
            put(&place, format!("{head}\n").as_bytes())?;
            put(&dir.join("HEAD"), format!("ref: {branch}\n").as_bytes())
        }
        None => put(&dir.join("HEAD"), format!("{head}\n").as_bytes()),
    }
}

fn config(source: &SourceRepository) -> String {
    let remote = format!(
        "[remote \"origin\"]\n\turl = https://invalid.invalid/{}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
        source.remote
    );
    let name = source.branch.as_deref().and_then(|branch| branch.strip_prefix("refs/heads/"));
    let is_followed = |name: &&str| {
        let is_plain =
            name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | '#'));
        is_plain && source.references.iter().any(|it| it.name.strip_prefix("refs/remotes/origin/") == Some(*name))
    };
    let upstream = name
        .filter(is_followed)
        .map(|name| format!("[branch \"{name}\"]\n\tremote = origin\n\tmerge = refs/heads/{name}\n"));
    [settings(&source.format), CONFIG.to_owned(), remote, upstream.unwrap_or_default()].concat()
}

/// Packs the objects of the tree that the base does not have.
async fn pack(
    trees: &Trees,
    base: Option<&TreeId>,
    tree: &TreeId,
    dir: &Path,
    stop: &CancellationToken,
) -> Result<(), TreesError> {
    if Some(tree) == base {
        return Ok(());
    }
    let pack = dir.join("objects/pack/pack").to_string_lossy().into_owned();
    let without = base.map(|base| format!("^{base}\n")).unwrap_or_default();
    let args = ["pack-objects", "-q", "--non-empty", "--window=0", "--revs", &pack];
    trees.own_git().tell(&args, format!("{tree}\n{without}").as_bytes(), stop).await.map(drop)
}

/// Writes the commit of a tree; returns its id.
async fn commit(
    git: &GitFolder,
    tree: &str,
    parent: Option<&String>,
    date: Option<&str>,
    stop: &CancellationToken,
) -> Result<String, TreesError> {
    let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
    let date = date.unwrap_or(DATE);
    let text = format!("tree {tree}\n{parent}author {WHO} {date}\ncommitter {WHO} {date}\n\nThe work that is judged\n");
    let id = git.tell(&["hash-object", "-w", "-t", "commit", "--stdin"], text.as_bytes(), stop).await?;
    Ok(String::from_utf8_lossy(&id).trim().to_owned())
}

/// Writes the references of the base, and the replacement of its commit.
fn references(dir: &Path, all: &[SourceReference], replaced: Option<(String, String)>) -> Result<(), TreesError> {
    let mut packed: Vec<(&str, &str)> = Vec::new();
    for SourceReference { name, object, target } in all {
        match target {
            None => packed.push((name, object)),
            Some(target) if all.iter().any(|other| other.name == *target) => {
                let place: PathBuf = dir.join(name);
                let parent = place.parent().unwrap_or(dir);
                fs::create_dir_all(parent).map_err(TreesError::io("make", parent))?;
                put(&place, format!("ref: {target}\n").as_bytes())?;
            }
            Some(_) => {}
        }
    }
    packed.extend(replaced.as_ref().map(|(name, object)| (name.as_str(), object.as_str())));
    packed.sort_unstable();
    let lines: String = packed.iter().map(|(name, object)| format!("{object} {name}\n")).collect();
    put(&dir.join("packed-refs"), format!("# pack-refs with: sorted \n{lines}").as_bytes())
}
