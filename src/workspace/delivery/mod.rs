//! Brings a judged tree into the user's own repository as a commit: that tree and no other, on the branch as it was when the run began.

mod again;
mod branch;
mod compose;
mod condition;
mod fault;
mod foreign;
mod pinned;
mod standing;
mod turns;
mod unfinished;

pub use again::{nobody, patch};
pub use condition::{Condition, refusal};
pub use fault::{DeliveryFault, listed};
pub use standing::Standing;

use super::trees::Trees;
use super::trees::git::Git;
use crate::id::TreeId;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Who commits where the user's git does not say who they are.
const NOBODY: (&str, &str) = ("fledge", "fledge@localhost");
/// What the log of a branch says of a commit.
const LOGGED: &str = "commit by fledge";

/// The user's repository around a workspace.
#[derive(Debug)]
pub struct Repository<'t> {
    trees: &'t Trees,
    git: Git,
    /// From the top of the repository to the workspace, with `/` behind each name; empty when that is the top.
    prefix: String,
    /// The configuration that holds in the place of what is said now.
    pinned: Option<Vec<(String, String)>>,
}

/// Where a repository stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The id of the commit; `None` before the first one.
    pub commit: Option<String>,
    /// The full name of the branch (`refs/heads/main`); `None` when the head is detached.
    pub branch: Option<String>,
    /// The tree of the workspace's folder; `None` when the commit does not have it.
    pub tree: Option<TreeId>,
    /// Where its git directory is; `None` where an older program looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_dir: Option<String>,
    /// What a commit goes by of who commits and of git's configuration: keys and values. Empty where an older program looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<(String, String)>,
}

/// What is to be committed.
#[derive(Debug, Clone)]
pub struct Commit<'c> {
    /// Where the repository stood when the base was taken.
    pub head: &'c Head,
    /// The judged tree.
    pub tree: &'c TreeId,
    /// The tree that the run began with.
    pub base: &'c TreeId,
    /// Subject and body.
    pub message: &'c str,
    /// Names and values for the end of the message.
    pub trailers: &'c [(String, String)],
}

/// A commit that is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// Its id.
    pub commit: String,
    /// The tree of the workspace's folder in it, where that is another one than was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// What the user should know of it, a sentence each.
    pub notes: Vec<String>,
}

/// A commit that is on no branch yet.
struct Written {
    commit: String,
    tree: TreeId,
    notes: Vec<String>,
}

impl<'t> Repository<'t> {
    /// The one that the workspace is in; `None` when it is in none. `env` is the user's environment. The user's git is run, with hooks
    /// and file system monitors off, so nobody may be at work in the repository who should not start programs there.
    ///
    /// # Errors
    /// [`DeliveryFault`] when git cannot be run.
    pub async fn around(
        trees: &'t Trees,
        env: &[(String, String)],
        stop: &CancellationToken,
    ) -> Result<Option<Self>, DeliveryFault> {
        let git = Git::of_user(trees.root(), trees.scratch(), env);
        let answer = git.run(&["rev-parse", "--show-prefix"], b"", usize::MAX, stop).await?;
        let prefix = String::from_utf8_lossy(&answer.output).trim_end_matches('\n').to_owned();
        Ok((answer.code == 0).then_some(Self { trees, git, prefix, pinned: None }))
    }

    /// Whether its user wants commits to be signed (git-config(1), `commit.gpgSign`). What is committed here never is.
    ///
    /// # Errors
    /// [`DeliveryFault`].
    pub async fn wants_signatures(&self, stop: &CancellationToken) -> Result<bool, DeliveryFault> {
        let said = self.line(&["config", "--type=bool", "--get", "commit.gpgSign"], stop).await?;
        Ok(said.as_deref() == Some("true"))
    }

    /// Where it stands.
    ///
    /// # Errors
    /// [`DeliveryFault`].
    pub async fn head(&self, stop: &CancellationToken) -> Result<Head, DeliveryFault> {
        let commit = self.line(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], stop).await?;
        let branch = self.line(&["symbolic-ref", "--quiet", "HEAD"], stop).await?;
        let folder = format!("HEAD:{}", self.prefix.trim_end_matches('/'));
        let tree = match commit {
            Some(_) => self.line(&["rev-parse", "--quiet", "--verify", &folder], stop).await?,
            None => None,
        };
        let git_dir = self.line(&["rev-parse", "--absolute-git-dir"], stop).await?;
        let tree = tree.and_then(|tree| TreeId::parse(&tree).ok());
        Ok(Head { commit, branch, tree, git_dir, config: Vec::new() })
    }

    /// Makes the commit, moves the branch or the detached head to it, and brings the index there. No file of the workspace is touched.
    ///
    /// # Errors
    /// [`DeliveryFault`], with which nothing but a few loose objects was added to the repository: once the branch is moved, nothing is an
    /// error any more.
    pub async fn commit(&self, what: &Commit<'_>, stop: &CancellationToken) -> Result<Committed, DeliveryFault> {
        self.must_be_finished(stop).await?;
        let now = self.head(stop).await?;
        if what.head.git_dir.is_some() && now.git_dir != what.head.git_dir {
            return Err(DeliveryFault::Another { path: now.git_dir.unwrap_or_default() });
        }
        if (&now.commit, &now.branch) != (&what.head.commit, &what.head.branch) {
            return Err(DeliveryFault::Moved { was: told(what.head), is: told(&now) });
        }
        let Written { commit, tree, mut notes } = self.write(what, stop).await?;
        let old = what.head.commit.clone().unwrap_or_else(|| "0".repeat(commit.len()));
        self.move_ref("HEAD", &commit, &old, stop).await?;
        notes.extend(self.bring_index(tree.as_str(), stop).await);
        Ok(Committed { commit, tree: self.stored(&tree, what.tree, stop).await, notes })
    }

    /// Has a name be at a commit. A git that was stopped on the way may have come so far all the same.
    async fn move_ref(&self, name: &str, to: &str, from: &str, stop: &CancellationToken) -> Result<(), DeliveryFault> {
        let Err(fault) = self.git.ask(&["update-ref", "-m", LOGGED, name, to, from], stop).await else { return Ok(()) };
        let nobody_stops_this = CancellationToken::new();
        let now = self.line(&["rev-parse", "--quiet", "--verify", name], &nobody_stops_this).await;
        if now.is_ok_and(|now| now.as_deref() == Some(to)) { Ok(()) } else { Err(fault.into()) }
    }

    /// Writes the commit, which nothing names yet.
    async fn write(&self, what: &Commit<'_>, stop: &CancellationToken) -> Result<Written, DeliveryFault> {
        let (tree, is_new) = self.compose(what.head, what.tree, what.base, stop).await?;
        if !is_new {
            return Err(DeliveryFault::Nothing);
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
    ) -> Result<Written, DeliveryFault> {
        self.must_be_genuine(&tree, stop).await?;
        let mut notes = Vec::new();
        let mut git = self.git.clone();
        if !self.knows_committer(stop).await? {
            let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, NOBODY.0));
            let places = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, NOBODY.1));
            git = names.iter().chain(&places).fold(git, |git, (name, value)| git.with(name, value.as_ref()));
            notes.push(format!("git does not know who you are, so {} is the author", again::nobody()));
        }
        let mut args = vec!["commit-tree", tree.as_str()];
        args.extend(parent.iter().flat_map(|parent| ["-p", parent]));
        let commit = git.tell(&args, message.as_bytes(), stop).await?;
        let commit = String::from_utf8_lossy(&commit).trim_end().to_owned();
        Ok(Written { commit, tree, notes })
    }

    /// The one line that git prints; `None` when it says no.
    async fn line(&self, args: &[&str], stop: &CancellationToken) -> Result<Option<String>, DeliveryFault> {
        let answer = self.git.run(args, b"", usize::MAX, stop).await?;
        let line = String::from_utf8_lossy(&answer.output).trim_end_matches('\n').to_owned();
        Ok((answer.code == 0 && !line.is_empty()).then_some(line))
    }
}

/// Subject, body and trailers, with a blank line between.
fn message(what: &Commit<'_>) -> String {
    let trailers: String = what.trailers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let gap = if trailers.is_empty() { "" } else { "\n" };
    format!("{}\n{gap}{trailers}", what.message.trim())
}

/// A head in a few words.
fn told(head: &Head) -> String {
    let commit = head.commit.as_deref().map_or("no commit", |commit| &commit[..commit.len().min(12)]);
    let branch = head.branch.as_deref().map_or("a detached head", |it| it.strip_prefix("refs/heads/").unwrap_or(it));
    format!("{commit} on {branch}")
}

#[cfg(test)]
mod tests;
