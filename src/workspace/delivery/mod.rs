//! Delivers a judged tree to the user's repository as a commit: exactly that tree, on the branch
//! where the run began.

mod again;
mod branch;
mod compose;
mod condition;
mod error;
mod foreign;
mod pinned;
mod standing;
mod turns;
mod unfinished;

pub use again::{ExportedBase, fallback_identity, patch};
pub use condition::{RepositoryCondition, refusal};
pub use error::{DeliveryError, listed};
pub use standing::RepositoryState;

use super::trees::Trees;
use super::trees::git::GitFolder;
use crate::id::TreeId;
use crate::run::RepositoryHead;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// The author and committer where the user's git configures none: name and mail address.
const NOBODY: (&str, &str) = ("fledge", "fledge@localhost");
/// The reflog message of a commit.
const LOGGED: &str = "commit by fledge";

/// The user's repository around a workspace.
#[derive(Debug)]
pub struct UserRepository<'t> {
    trees: &'t Trees,
    git: GitFolder,
    /// The path from the top of the repository to the workspace, with `/` after each name. It is
    /// empty at the top.
    prefix: String,
    /// The pinned configuration that overrides the current one.
    pinned: Option<Vec<(String, String)>>,
}

/// The content of a commit to make.
#[derive(Debug, Clone)]
pub struct CommitRequest<'c> {
    /// The head when the base was taken.
    pub head: &'c RepositoryHead,
    /// The judged tree.
    pub tree: &'c TreeId,
    /// The tree that the run began with.
    pub base: &'c TreeId,
    /// Subject and body.
    pub message: &'c str,
    /// The trailers at the end of the message: names and values.
    pub trailers: &'c [(String, String)],
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeCommit {
    /// The id of the commit.
    pub commit: String,
    /// The tree of the workspace's folder in the commit, if it differs from the judged tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// A commit that no branch has yet.
struct Written {
    commit: String,
    tree: TreeId,
    notes: Vec<String>,
}

impl<'t> UserRepository<'t> {
    /// Finds the repository of the workspace; `None` if none exists. `env` is the user's
    /// environment. fledge runs the user's git there with hooks and file system monitors off. No
    /// untrusted process may be at work in the repository during that time.
    ///
    /// # Errors
    /// [`DeliveryError`] if git cannot be run.
    pub async fn around(
        trees: &'t Trees,
        env: &[(String, String)],
        stop: &CancellationToken,
    ) -> Result<Option<Self>, DeliveryError> {
        let git = GitFolder::of_user(trees.root(), trees.scratch(), env);
        let answer = git.run(&["rev-parse", "--show-prefix"], b"", usize::MAX, stop).await?;
        let prefix = String::from_utf8_lossy(&answer.output).trim_end_matches('\n').to_owned();
        Ok((answer.code == 0).then_some(Self { trees, git, prefix, pinned: None }))
    }

    /// Returns whether the user wants signed commits (git-config(1), `commit.gpgSign`). fledge
    /// never signs its commits.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn wants_signatures(&self, stop: &CancellationToken) -> Result<bool, DeliveryError> {
        let text = self.line(&["config", "--type=bool", "--get", "commit.gpgSign"], stop).await?;
        Ok(text.as_deref() == Some("true"))
    }

    /// Returns the current head, without its configuration.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn head(&self, stop: &CancellationToken) -> Result<RepositoryHead, DeliveryError> {
        let commit = self.line(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], stop).await?;
        let branch = self.line(&["symbolic-ref", "--quiet", "HEAD"], stop).await?;
        let folder = format!("HEAD:{}", self.prefix.trim_end_matches('/'));
        let tree = match commit {
            Some(_) => self.line(&["rev-parse", "--quiet", "--verify", &folder], stop).await?,
            None => None,
        };
        let git_dir = self.line(&["rev-parse", "--absolute-git-dir"], stop).await?;
        let tree = tree.and_then(|tree| TreeId::parse(&tree).ok());
        Ok(RepositoryHead { commit, branch, tree, git_dir, config: Vec::new() })
    }

    /// Makes the commit, moves the branch or the detached head to it, and updates the index. Files
    /// of the workspace do not change.
    ///
    /// # Errors
    /// [`DeliveryError`]. The repository then has at most some new loose objects: after the branch
    /// has moved, nothing fails any more.
    pub async fn commit(
        &self,
        what: &CommitRequest<'_>,
        stop: &CancellationToken,
    ) -> Result<MadeCommit, DeliveryError> {
        self.must_be_finished(stop).await?;
        let now = self.head(stop).await?;
        if now.git_dir != what.head.git_dir {
            return Err(DeliveryError::Another { path: now.git_dir.unwrap_or_default() });
        }
        if (&now.commit, &now.branch) != (&what.head.commit, &what.head.branch) {
            return Err(DeliveryError::Moved { was: describe_head(what.head), is: describe_head(&now) });
        }
        let Written { commit, tree, mut notes } = self.write(what, stop).await?;
        let old = what.head.commit.clone().unwrap_or_else(|| "0".repeat(commit.len()));
        self.move_ref("HEAD", &commit, &old, stop).await?;
        notes.extend(self.bring_index(tree.as_str(), stop).await);
        Ok(MadeCommit { commit, tree: self.stored(&tree, what.tree, stop).await, notes })
    }

    /// Moves a reference from one commit to another. If git was stopped after it moved the
    /// reference, the move counts as done.
    async fn move_ref(&self, name: &str, to: &str, from: &str, stop: &CancellationToken) -> Result<(), DeliveryError> {
        let Err(fault) = self.git.ask(&["update-ref", "-m", LOGGED, name, to, from], stop).await else { return Ok(()) };
        // A stop may have ended git after the move, so the stop must not end this check too.
        let uncancelled = CancellationToken::new();
        let now = self.line(&["rev-parse", "--quiet", "--verify", name], &uncancelled).await;
        if now.is_ok_and(|now| now.as_deref() == Some(to)) { Ok(()) } else { Err(fault.into()) }
    }

    /// Writes the commit without moving a reference to it.
    async fn write(&self, what: &CommitRequest<'_>, stop: &CancellationToken) -> Result<Written, DeliveryError> {
        let (tree, is_new) = self.compose(what.head, what.tree, what.base, stop).await?;
        if !is_new {
            return Err(DeliveryError::Nothing);
        }
        self.write_tree(tree, what.head.commit.as_deref(), &message(what), stop).await
    }

    /// Writes a commit of a tree that the repository has.
    async fn write_tree(
        &self,
        tree: TreeId,
        parent: Option<&str>,
        message: &str,
        stop: &CancellationToken,
    ) -> Result<Written, DeliveryError> {
        self.must_be_genuine(&tree, stop).await?;
        let mut notes = Vec::new();
        let mut git = self.git.clone();
        if !self.knows_committer(stop).await? {
            let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, NOBODY.0));
            let places = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, NOBODY.1));
            git = names.iter().chain(&places).fold(git, |git, (name, value)| git.with(name, value.as_ref()));
            notes.push(format!("git has no committer configured, so {} is the author", again::fallback_identity()));
        }
        let mut args = vec!["commit-tree", tree.as_str()];
        args.extend(parent.iter().flat_map(|parent| ["-p", parent]));
        let commit = git.tell(&args, message.as_bytes(), stop).await?;
        let commit = String::from_utf8_lossy(&commit).trim_end().to_owned();
        Ok(Written { commit, tree, notes })
    }

    /// Returns the single line that git prints; `None` if git fails or prints nothing.
    async fn line(&self, args: &[&str], stop: &CancellationToken) -> Result<Option<String>, DeliveryError> {
        let answer = self.git.run(args, b"", usize::MAX, stop).await?;
        let line = String::from_utf8_lossy(&answer.output).trim_end_matches('\n').to_owned();
        Ok((answer.code == 0 && !line.is_empty()).then_some(line))
    }
}

/// Joins subject, body and trailers, with a blank line between body and trailers.
fn message(what: &CommitRequest<'_>) -> String {
    let trailers: String = what.trailers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let gap = if trailers.is_empty() { "" } else { "\n" };
    format!("{}\n{gap}{trailers}", what.message.trim())
}

/// Describes a head in a few words.
fn describe_head(head: &RepositoryHead) -> String {
    let commit = head.commit.as_deref().map_or("no commit", |commit| &commit[..commit.len().min(12)]);
    let branch = head.branch.as_deref().map_or("a detached head", |it| it.strip_prefix("refs/heads/").unwrap_or(it));
    format!("{commit} on {branch}")
}

#[cfg(test)]
mod tests;
