//! Operations that the user has begun and not ended. Git ends each with its own kind of commit:
//! with two parents, or as one of a series.

use super::{DeliveryError, UserRepository};
use tokio_util::sync::CancellationToken;

/// The files that git keeps in its directory during an operation, and the command of the operation.
const UNFINISHED: [(&str, &str); 5] = [
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
];

impl UserRepository<'_> {
    /// Fails if an operation is unfinished: then only that operation may make a commit.
    pub(super) async fn must_be_finished(&self, stop: &CancellationToken) -> Result<(), DeliveryError> {
        self.under_way(stop).await?.map_or(Ok(()), |what| Err(DeliveryError::Unfinished { what }))
    }

    /// Returns the unfinished operation, by the name of its git command.
    pub(super) async fn under_way(&self, stop: &CancellationToken) -> Result<Option<&'static str>, DeliveryError> {
        let mut args = vec!["rev-parse"];
        args.extend(UNFINISHED.iter().flat_map(|(name, _)| ["--git-path", *name]));
        let paths = self.git.ask(&args, stop).await?;
        let paths = String::from_utf8_lossy(&paths);
        let is_there = |path: &str| self.trees.root().join(path).symlink_metadata().is_ok();
        Ok(paths.lines().zip(UNFINISHED).find(|(path, _)| is_there(path)).map(|(_, (_, what))| what))
    }
}
