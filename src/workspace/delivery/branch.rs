//! Commits onto a branch that is not checked out: a new branch, or one that is at the commit where
//! the work began.

use super::{CommitRequest, DeliveryError, MadeCommit, UserRepository, Written};
use tokio_util::sync::CancellationToken;

impl UserRepository<'_> {
    /// Makes the commit and moves the branch `branch` (such as `fix-dates`) to it. The index and
    /// the files do not change. If the branch is already at this commit, nothing is made. With
    /// `only_look` nothing is made either, and the returned id is empty.
    ///
    /// # Errors
    /// [`DeliveryError`] if the name is invalid, or the branch is checked out or has other commits,
    /// and others.
    pub async fn commit_to(
        &self,
        branch: &str,
        what: &CommitRequest<'_>,
        only_look: bool,
        stop: &CancellationToken,
    ) -> Result<MadeCommit, DeliveryError> {
        let name = || branch.to_owned();
        if self.line(&["check-ref-format", "--branch", branch], stop).await?.as_deref() != Some(branch) {
            return Err(DeliveryError::NoBranch { name: name() });
        }
        let full = format!("refs/heads/{branch}");
        let tip = self.line(&["rev-parse", "--quiet", "--verify", &full], stop).await?;
        if let Some(tip) = tip.as_ref().filter(|tip| Some(*tip) != what.head.commit.as_ref()) {
            return match self.is_made(tip, what, stop).await? {
                Some(_) => Ok(MadeCommit {
                    commit: tip.clone(),
                    tree: None,
                    notes: vec![format!("{branch} is already there")],
                }),
                None => Err(DeliveryError::OtherWork { name: name() }),
            };
        }
        let here = self.line(&["for-each-ref", "--format=%(worktreepath)", &full], stop).await?;
        let is_unborn = tip.is_none() && self.head(stop).await?.branch.as_deref() == Some(full.as_str());
        if here.is_some() || is_unborn {
            return Err(DeliveryError::CheckedOut { name: name() });
        }
        if only_look {
            let (_, is_new) = self.compose(what.head, what.tree, what.base, stop).await?;
            return if is_new {
                Ok(MadeCommit { commit: String::new(), tree: None, notes: Vec::new() })
            } else {
                Err(DeliveryError::Nothing)
            };
        }
        let Written { commit, tree, notes } = self.write(what, stop).await?;
        let old = tip.unwrap_or_else(|| "0".repeat(commit.len()));
        self.move_ref(&full, &commit, &old, stop).await?;
        Ok(MadeCommit { commit, tree: self.stored(&tree, what.tree, stop).await, notes })
    }
}
