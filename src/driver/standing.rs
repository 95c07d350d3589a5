//! Where the user's repository stood before the agent, behind a wall that does not keep `.git` as it is: what stands elsewhere at the end is
//! told. It may be the user's own doing, so nothing is moved back.

use super::ground::Ground;
use super::perform::Hands;
use super::planning::Planner;
use crate::process::wall::WallKind;
use crate::run::TaskResult;
use crate::store::write_whole;
use crate::workspace::delivery::{DeliveryFault, Repository, Standing};
use std::fs;
use tokio_util::sync::CancellationToken;

/// The file of a run in which it is kept.
const FILE: &str = "repository";

impl Planner {
    /// Writes down where the repository stands. Without that nothing is told later, and nothing else is lost.
    pub(super) async fn note_standing(&self, ground: &Ground) {
        if ground.wall.kind() == WallKind::Bubblewrap {
            return;
        }
        let noted = async {
            let repository = Repository::around(&ground.trees, &self.settings.env, &self.stop).await?;
            match repository {
                Some(repository) => repository.standing(&self.stop).await.map(Some),
                None => Ok::<_, DeliveryFault>(None),
            }
        };
        let kept = match noted.await {
            Ok(Some(standing)) => serde_json::to_vec(&standing).unwrap_or_default(),
            Ok(None) => return,
            Err(fault) => return tracing::debug!(%fault, "where the repository stands cannot be told"),
        };
        if let Err(error) = write_whole(&self.run_dir.path().join(FILE), &kept) {
            tracing::debug!(%error, "where the repository stands is not kept");
        }
    }
}

impl Hands {
    /// What of the repository stands elsewhere than before the agent, a line each. What configures git must be as it was.
    pub(super) async fn moved(&self, result: Option<&TaskResult>, stop: &CancellationToken) -> Vec<String> {
        let kept = fs::read(self.run_dir.path().join(FILE)).ok();
        let before: Option<Standing> = kept.and_then(|kept| serde_json::from_slice(&kept).ok());
        let (Some(before), Some(ready)) = (before, self.ready.get()) else { return Vec::new() };
        let now = async {
            let repository = Repository::around(&ready.ground.trees, &self.settings.env, stop).await?;
            repository.ok_or(DeliveryFault::NoRepository)?.standing(stop).await
        };
        let delivered = result.and_then(|result| Some((result.commit.as_deref()?, result.branch.as_deref())));
        let told = match now.await {
            Ok(now) => before.moved(&now, delivered),
            Err(_) if stop.is_cancelled() => Vec::new(),
            Err(fault) => vec![format!("where the repository stands cannot be told any more: {fault}")],
        };
        told.into_iter().map(|told| format!("in the repository, while the run was under way: {told}")).collect()
    }
}
