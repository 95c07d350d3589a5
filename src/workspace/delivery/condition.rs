//! The condition of the user's repository before a run: can the work be committed there? Nothing is
//! changed.

use super::{DeliveryError, UserRepository};
use crate::workspace::trees::Trees;
use crate::workspace::trees::git::GitFolder;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The facts about a repository that matter for a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryCondition {
    /// The top folder of the repository.
    pub top: String,
    /// True if the repository has a commit.
    pub has_commit: bool,
    /// True if the repository is a shallow clone.
    pub is_shallow: bool,
    /// True if git knows the committer.
    pub knows_committer: bool,
    /// The unfinished operation, by the name of its git command.
    pub unfinished: Option<&'static str>,
    /// The files of the workspace that differ from the newest commit, relative to the workspace.
    pub changed: Vec<String>,
    /// The user id of the owner, if git refuses to work in the repository because of the owner.
    pub refused_owner: Option<u32>,
}

impl UserRepository<'_> {
    /// Returns the current condition.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn condition(&self, stop: &CancellationToken) -> Result<RepositoryCondition, DeliveryError> {
        let top = self.line(&["rev-parse", "--show-toplevel"], stop).await?.unwrap_or_default();
        let shallow = self.line(&["rev-parse", "--is-shallow-repository"], stop).await?;
        Ok(RepositoryCondition {
            has_commit: self.head(stop).await?.commit.is_some(),
            is_shallow: shallow.as_deref() == Some("true"),
            knows_committer: self.knows_committer(stop).await?,
            unfinished: self.under_way(stop).await?,
            changed: self.uncommitted(stop).await?,
            refused_owner: self.refused_owner(&top, stop).await?,
            top,
        })
    }

    /// Returns the files of the workspace that differ from the newest commit, relative to the
    /// workspace.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn uncommitted(&self, stop: &CancellationToken) -> Result<Vec<String>, DeliveryError> {
        const STATE: usize = "XY ".len();
        let prefix = self.line(&["rev-parse", "--show-prefix"], stop).await?.unwrap_or_default();
        let status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", "."];
        let status = self.git.ask(&status, stop).await?;
        let path = |entry: &[u8]| {
            let path = String::from_utf8_lossy(entry.get(STATE..)?).into_owned();
            Some(path.strip_prefix(&prefix).map(str::to_owned).unwrap_or(path))
        };
        Ok(status.split(|byte| *byte == 0).filter_map(path).collect())
    }

    /// Returns the owner if git refuses to work in the repository. Git accepts its own user's
    /// repositories, and those that the user's configuration names (git-config(1),
    /// `safe.directory`).
    async fn refused_owner(&self, top: &str, stop: &CancellationToken) -> Result<Option<u32>, DeliveryError> {
        // This process made the scratch folder, so its owner is the user of this process.
        let [owner, own] =
            [Path::new(top), self.trees.scratch()].map(|folder| folder.metadata().map(|it| it.uid()).ok());
        let Some(owner) = owner.filter(|_| owner != own) else { return Ok(None) };
        for whose in ["--global", "--system"] {
            let named = self.git.run(&["config", whose, "--get-all", "safe.directory"], b"", usize::MAX, stop).await?;
            let covers =
                |name: &str| name == "*" || name == top || name.strip_suffix('*').is_some_and(|it| top.starts_with(it));
            if String::from_utf8_lossy(&named.output).lines().any(covers) {
                return Ok(None);
            }
        }
        Ok(Some(owner))
    }
}

/// Returns git's message about a folder in which it finds no repository.
///
/// # Errors
/// [`DeliveryError`] if git cannot be run.
pub async fn refusal(
    trees: &Trees,
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Result<String, DeliveryError> {
    let git = GitFolder::of_user(trees.root(), trees.scratch(), env);
    Ok(git.run(&["rev-parse", "--show-prefix"], b"", 0, stop).await?.stderr)
}
