//! Whether the user is in the middle of something that git ends with a commit of its own kind: with two parents, or one of a series.

use super::{DeliveryFault, Repository};
use tokio_util::sync::CancellationToken;

/// What lies in the git directory as long as it is so.
const UNFINISHED: [(&str, &str); 5] = [
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
];

impl Repository<'_> {
    /// Refuses a repository in which nothing but what is under way may be committed.
    pub(super) async fn must_be_finished(&self, stop: &CancellationToken) -> Result<(), DeliveryFault> {
        self.under_way(stop).await?.map_or(Ok(()), |what| Err(DeliveryFault::Unfinished { what }))
    }

    /// What is under way, as git's command is called.
    pub(super) async fn under_way(&self, stop: &CancellationToken) -> Result<Option<&'static str>, DeliveryFault> {
        let mut args = vec!["rev-parse"];
        args.extend(UNFINISHED.iter().flat_map(|(name, _)| ["--git-path", *name]));
        let paths = self.git.ask(&args, stop).await?;
        let paths = String::from_utf8_lossy(&paths);
        let is_there = |path: &str| self.trees.root().join(path).symlink_metadata().is_ok();
        Ok(paths.lines().zip(UNFINISHED).find(|(path, _)| is_there(path)).map(|(_, (_, what))| what))
    }
}
