//! How the user's repository is, for somebody who asks before a run whether its work could be committed there. Nothing is changed.

use super::{DeliveryFault, Repository};
use crate::workspace::trees::Trees;
use crate::workspace::trees::git::Git;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// What a commit would meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its top folder.
    pub top: String,
    /// Whether there is a first commit.
    pub has_commit: bool,
    /// Whether it has only the newest commits.
    pub is_shallow: bool,
    /// Whether git knows who commits.
    pub knows_committer: bool,
    /// What is under way, as git's command is called.
    pub unfinished: Option<&'static str>,
    /// The files of the workspace that are not as the newest commit has them, by their paths in it.
    pub changed: Vec<String>,
    /// The user it belongs to, where git refuses to work in it for that.
    pub refused_owner: Option<u32>,
}

impl Repository<'_> {
    /// How it is now.
    ///
    /// # Errors
    /// [`DeliveryFault`].
    pub async fn condition(&self, stop: &CancellationToken) -> Result<Condition, DeliveryFault> {
        let top = self.line(&["rev-parse", "--show-toplevel"], stop).await?.unwrap_or_default();
        let shallow = self.line(&["rev-parse", "--is-shallow-repository"], stop).await?;
        Ok(Condition {
            has_commit: self.head(stop).await?.commit.is_some(),
            is_shallow: shallow.as_deref() == Some("true"),
            knows_committer: self.knows_committer(stop).await?,
            unfinished: self.under_way(stop).await?,
            changed: self.uncommitted(stop).await?,
            refused_owner: self.refused_owner(&top, stop).await?,
            top,
        })
    }

    /// Returns the files of the workspace that are not as the newest commit has them, by their paths in it.
    ///
    /// # Errors
    /// [`DeliveryFault`].
    pub async fn uncommitted(&self, stop: &CancellationToken) -> Result<Vec<String>, DeliveryFault> {
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

    /// Git works only in what belongs to its user, or is named in the user's own configuration (git-config(1), `safe.directory`).
    async fn refused_owner(&self, top: &str, stop: &CancellationToken) -> Result<Option<u32>, DeliveryFault> {
        // What was made here says who this process is.
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

/// What git says of a folder around which it finds no repository.
///
/// # Errors
/// [`DeliveryFault`] when git cannot be run.
pub async fn refusal(
    trees: &Trees,
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Result<String, DeliveryFault> {
    let git = Git::of_user(trees.root(), trees.scratch(), env);
    Ok(git.run(&["rev-parse", "--show-prefix"], b"", 0, stop).await?.said)
}
