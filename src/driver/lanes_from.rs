//! Lanes of another commit. fledge reads the definition of the gate there, not in the workspace,
//! where it may have been changed.

use super::DriverSettings;
use super::briefing::PlanError;
use super::enclosure::variable;
use crate::error_chain::chain;
use crate::workspace::delivery::{DeliveryError, UserRepository};
use crate::workspace::trees::Trees;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Exports the commit of `lanes_from` into a folder that does not exist yet. Returns `None` if the
/// lanes of the workspace are used.
///
/// # Errors
/// [`PlanError`] if there is no repository or no such commit.
pub(super) async fn export(
    settings: &DriverSettings,
    trees: &Trees,
    into: &Path,
    stop: &CancellationToken,
) -> Result<Option<PathBuf>, PlanError> {
    let Some(rev) = &settings.lanes_from else { return Ok(None) };
    let exported = async {
        let repository =
            UserRepository::around(trees, &settings.env, stop).await?.ok_or(DeliveryError::NoRepository)?;
        repository.export(rev, into, stop).await
    };
    let done: Result<(), DeliveryError> = exported.await;
    done.map_err(|fault| {
        PlanError::bad(format!("cannot read the lanes of `{rev}` (--lanes-from): {}", chain(&fault)))
    })?;
    Ok(Some(into.to_owned()))
}

/// Exports the commit of `lanes_from` for a caller that starts no run. Creates all files in
/// `scratch`.
///
/// # Errors
/// [`PlanError`], as for a run with these settings.
pub async fn lanes_at(settings: &DriverSettings, scratch: &Path) -> Result<Option<PathBuf>, PlanError> {
    if settings.lanes_from.is_none() {
        return Ok(None);
    }
    let (stop, path) = (CancellationToken::new(), variable(settings, "PATH"));
    let trees = Trees::open(&scratch.join("git"), &settings.workspace, path, &stop).await;
    let trees = trees.map_err(|fault| PlanError::bad(chain(&fault)))?;
    export(settings, &trees, &scratch.join("lanes"), &stop).await
}
