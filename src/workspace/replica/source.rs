//! The user's repository before the agent starts: the parts that a room's repository copies.

use crate::workspace::trees::git::GitFolder;
use crate::workspace::trees::{Trees, TreesError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The name of a repository without a usable URL.
const UNNAMED: &str = "project";

/// A reference that is reachable from the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceReference {
    pub(super) name: String,
    pub(super) object: String,
    /// The target of a symbolic reference.
    pub(super) target: Option<String>,
}

/// The user's repository at the start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRepository {
    /// The hash function of the object ids: `sha1` or `sha256`.
    pub(super) format: String,
    /// The commit of the base; `None` if the branch has no commit yet.
    pub(super) commit: Option<String>,
    /// The full name of the branch; `None` if the head is detached.
    pub(super) branch: Option<String>,
    /// Tags and branches of `origin` that are reachable from the base, sorted by name.
    pub(super) references: Vec<SourceReference>,
    /// The path of the URL of `origin` without the host: `owner/name.git`.
    pub(super) remote: String,
    /// The git directory that all worktrees of the repository share.
    common: PathBuf,
    /// The boundary of a shallow clone, as git writes it.
    pub(super) shallow: String,
}

impl SourceRepository {
    /// Reads the repository of the workspace of `trees`; `None` if none exists. The branch is
    /// that of `origin`, the user's checkout. `env` is the user's environment.
    ///
    /// # Errors
    /// [`TreesError`] if git cannot be run.
    pub async fn read(
        trees: &Trees,
        origin: &Path,
        env: &[(String, String)],
        stop: &CancellationToken,
    ) -> Result<Option<Self>, TreesError> {
        Self::read_at("HEAD", trees, origin, env, stop).await
    }

    /// Reads the repository as [`Self::read`] does, with `rev` as the commit of the base.
    ///
    /// # Errors
    /// [`TreesError`] if git cannot be run.
    pub async fn read_at(
        rev: &str,
        trees: &Trees,
        origin: &Path,
        env: &[(String, String)],
        stop: &CancellationToken,
    ) -> Result<Option<Self>, TreesError> {
        let git = GitFolder::of_user(trees.root(), trees.scratch(), env);
        let commit = format!("{rev}^{{commit}}");
        let Some(place) = line(&git, &["rev-parse", "--git-common-dir", "--show-object-format"], stop).await? else {
            return Ok(None);
        };
        let Some((common, format)) = place.rsplit_once('\n') else { return Ok(None) };
        let Ok(common) = trees.root().join(common).canonicalize() else { return Ok(None) };
        let at_origin = git.within(origin);
        let asked = ["rev-parse", "--quiet", "--verify", "--end-of-options", &commit];
        let (commit, branch, url) = futures_util::try_join!(
            line(&git, &asked, stop),
            line(&at_origin, &["symbolic-ref", "--quiet", "HEAD"], stop),
            line(&git, &["config", "--get", "remote.origin.url"], stop),
        )?;
        let references = match &commit {
            Some(commit) => references(&git, commit, stop).await?,
            None => Vec::new(),
        };
        let shallow = fs::read_to_string(common.join("shallow")).unwrap_or_default();
        let name = origin.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let remote = remote_path(url.as_deref().unwrap_or_default(), &name);
        Ok(Some(Self { format: format.to_owned(), commit, branch, references, remote, common, shallow }))
    }

    /// Returns the folder with the repository's objects and configuration. No room sees it.
    pub fn common(&self) -> &Path {
        &self.common
    }

    /// Returns everything on which a history depends, as text.
    pub fn key(&self) -> String {
        serde_json::to_string(&(&self.format, &self.commit, &self.references, &self.shallow)).unwrap_or_default()
    }

    /// Returns whether the repository uses SHA-1 object ids, as fledge does.
    pub fn is_sha1(&self) -> bool {
        self.format == "sha1"
    }
}

/// Returns git's output without the last line break; `None` if git fails or prints nothing.
async fn line(git: &GitFolder, args: &[&str], stop: &CancellationToken) -> Result<Option<String>, TreesError> {
    let answer = git.run(args, b"", usize::MAX, stop).await?;
    let text = String::from_utf8_lossy(&answer.output).trim_end_matches('\n').to_owned();
    Ok((answer.code == 0 && !text.is_empty()).then_some(text))
}

/// Returns the tags, including annotated tags, and the branches of `origin`.
async fn references(
    git: &GitFolder,
    commit: &str,
    stop: &CancellationToken,
) -> Result<Vec<SourceReference>, TreesError> {
    let merged = format!("--merged={commit}");
    let format = "--format=%(objectname) %(refname) %(symref)";
    let args = ["for-each-ref", &merged, format, "refs/tags", "refs/remotes/origin"];
    let answer = git.run(&args, b"", usize::MAX, stop).await?;
    if answer.code != 0 {
        return Ok(Vec::new()); // a reference is broken, so the user's git would find none either
    }
    let text = String::from_utf8_lossy(&answer.output).into_owned();
    let references = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (object, name) = (words.next()?.to_owned(), words.next()?.to_owned());
        let target = words.next().filter(|target| !target.is_empty()).map(str::to_owned);
        Some(SourceReference { name, object, target })
    });
    let mut references: Vec<SourceReference> = references.collect();
    references.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(references)
}

/// Returns the path of a URL without its host, from which tools read owner and name. Returns
/// `local/NAME.git` if the URL is a path or empty.
fn remote_path(url: &str, folder: &str) -> String {
    let after_host = |rest: &str| rest.split_once('/').map(|(_, path)| path.to_owned());
    let path = match url.split_once("://") {
        Some(("file", _)) => None,
        Some((_, rest)) => after_host(rest),
        None => url.split_once(':').filter(|(host, _)| !host.contains('/')).map(|(_, path)| path.to_owned()),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain = |part: &str| part.chars().filter(|c| is_plain(*c)).collect::<String>();
    let parts = |path: &str| -> Vec<String> {
        path.split('/').map(plain).filter(|part| part.chars().any(|c| c != '.')).collect()
    };
    let mut found = path.map(|path| parts(&path)).unwrap_or_default();
    if found.is_empty() {
        let last = parts(url).pop().or_else(|| parts(folder).pop()).unwrap_or_else(|| UNNAMED.to_owned());
        found = vec!["local".to_owned(), last];
    }
    let path = found.join("/");
    format!("{}.git", path.strip_suffix(".git").unwrap_or(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_url_stays_and_its_host_and_what_it_tells_of_the_user_go() {
        for (url, path) in [
            ("https://github.com/owner/name.git", "owner/name.git"),
            ("https://user:secret@example.org:8443/group/sub/name", "group/sub/name.git"),
            ("git@github.com:owner/name.git", "owner/name.git"),
            ("ssh://git@host:22/owner/name/", "owner/name.git"),
            ("/srv/git/name.git", "local/name.git"),
            ("file:///srv/git/name.git", "local/name.git"),
            ("../name", "local/name.git"),
            ("", "local/folder.git"),
            ("https://host/../a\"b\nc/x", "abc/x.git"),
        ] {
            assert_eq!(remote_path(url, "folder"), path, "{url}");
        }
    }
}
