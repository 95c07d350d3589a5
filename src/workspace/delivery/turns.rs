//! Commits of single turns, on no branch. `refs/fledge/RUN/turns` is at the newest one. Branches,
//! the head, the index and files do not change.

use super::{CommitRequest, DeliveryError, UserRepository, Written, message};
use crate::id::RunId;
use tokio_util::sync::CancellationToken;

impl UserRepository<'_> {
    /// Makes a commit on top of the previous turn's, or of the commit where the run began. Does
    /// nothing if the tree equals that of the previous turn.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn commit_turn(
        &self,
        run: &RunId,
        what: &CommitRequest<'_>,
        stop: &CancellationToken,
    ) -> Result<(), DeliveryError> {
        let name = turns(run);
        let tip = self.line(&["rev-parse", "--quiet", "--verify", &name], stop).await?;
        let (tree, _) = self.compose(what.head, what.tree, what.base, stop).await?;
        if let Some(tip) = &tip
            && self.line(&["rev-parse", &format!("{tip}^{{tree}}")], stop).await?.as_deref() == Some(tree.as_str())
        {
            return Ok(());
        }
        let parent = tip.as_deref().or(what.head.commit.as_deref());
        let Written { commit, .. } = self.write_tree(tree, parent, &message(what), stop).await?;
        let old = tip.clone().unwrap_or_else(|| "0".repeat(commit.len()));
        self.move_ref(&name, &commit, &old, stop).await
    }

    /// Removes the reference to the commits of a run's turns, if there is one.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn forget_turns(&self, run: &RunId, stop: &CancellationToken) -> Result<(), DeliveryError> {
        let name = turns(run);
        match self.line(&["rev-parse", "--quiet", "--verify", &name], stop).await? {
            Some(tip) => Ok(self.git.ask(&["update-ref", "-d", &name, &tip], stop).await.map(drop)?),
            None => Ok(()),
        }
    }
}

fn turns(run: &RunId) -> String {
    format!("refs/fledge/{run}/turns")
}
