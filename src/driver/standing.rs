//! Changes of the user's repository during a run in a sandbox that does not protect `.git`.
//!
//! fledge records the head, the references and the staged files before the agent starts, and
//! reports differences at the end. The user may have made them, so fledge undoes nothing.

use super::effects::EffectRunner;
use super::ground::RunGround;
use super::planning::Planner;
use crate::process::sandbox::SandboxKind;
use crate::run::TaskResult;
use crate::store::write_whole;
use crate::workspace::delivery::{DeliveryError, RepositoryState, UserRepository};
use std::fs;
use tokio_util::sync::CancellationToken;

/// The file of a run with the state of the repository before the agent.
const FILE: &str = "repository";

impl Planner {
    /// Records the state of the repository. A failure only loses the later report.
    pub(super) async fn note_standing(&self, ground: &RunGround) {
        if ground.wall.kind() == SandboxKind::Bubblewrap {
            return;
        }
        let noted = async {
            let repository = UserRepository::around(&ground.trees, &self.settings.env, &self.stop).await?;
            match repository {
                Some(repository) => repository.standing(&self.stop).await.map(Some),
                None => Ok::<_, DeliveryError>(None),
            }
        };
        let kept = match noted.await {
            Ok(Some(standing)) => serde_json::to_vec(&standing).unwrap_or_default(),
            Ok(None) => return,
            Err(fault) => return tracing::debug!(%fault, "cannot read the state of the repository"),
        };
        if let Err(error) = write_whole(&self.run_dir.path().join(FILE), &kept) {
            tracing::debug!(%error, "cannot keep the state of the repository");
        }
    }
}

impl EffectRunner {
    /// Returns the changes of the repository since then, one line each. The files that configure
    /// git must be restored before.
    pub(super) async fn moved(&self, result: Option<&TaskResult>, stop: &CancellationToken) -> Vec<String> {
        let kept = fs::read(self.run_dir.path().join(FILE)).ok();
        let before: Option<RepositoryState> = kept.and_then(|kept| serde_json::from_slice(&kept).ok());
        let (Some(before), Some(ready)) = (before, self.ready.get()) else { return Vec::new() };
        let now = async {
            let repository = UserRepository::around(&ready.ground.trees, &self.settings.env, stop).await?;
            repository.ok_or(DeliveryError::NoRepository)?.standing(stop).await
        };
        let delivered = result.and_then(|result| Some((result.commit.as_deref()?, result.branch.as_deref())));
        let told = match now.await {
            Ok(now) => before.moved(&now, delivered),
            Err(_) if stop.is_cancelled() => Vec::new(),
            Err(fault) => vec![format!("cannot check the repository for changes: {fault}")],
        };
        told.into_iter().map(|told| format!("the repository changed during the run: {told}")).collect()
    }
}
