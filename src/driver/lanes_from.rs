//! Lanes of another commit. fledge reads the definition of the gate there, not in the workspace,
//! where it may have been changed.

use super::Settings;
use super::briefing::PlanFault;
use super::enclosure::variable;
use crate::causes::chain;
use crate::workspace::delivery::{DeliveryFault, Repository};
use crate::workspace::trees::Trees;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Exports the commit of `lanes_from` into a folder that does not exist yet. Returns `None` if the
/// lanes of the workspace are used.
///
/// # Errors
/// [`PlanFault`] if there is no repository or no such commit.
pub(super) async fn export(
    settings: &Settings,
    trees: &Trees,
    into: &Path,
    stop: &CancellationToken,
) -> Result<Option<PathBuf>, PlanFault> {
    let Some(rev) = &settings.lanes_from else { return Ok(None) };
    let exported = async {
        let repository = Repository::around(trees, &settings.env, stop).await?.ok_or(DeliveryFault::NoRepository)?;
        repository.export(rev, into, stop).await
    };
    let done: Result<(), DeliveryFault> = exported.await;
    done.map_err(|fault| {
        PlanFault::bad(format!("cannot read the lanes of `{rev}` (--lanes-from): {}", chain(&fault)))
    })?;
    Ok(Some(into.to_owned()))
}

/// Exports the commit of `lanes_from` for a caller that starts no run. Creates all files in
/// `scratch`.
///
/// # Errors
/// [`PlanFault`], as for a run with these settings.
pub async fn lanes_at(settings: &Settings, scratch: &Path) -> Result<Option<PathBuf>, PlanFault> {
    if settings.lanes_from.is_none() {
        return Ok(None);
    }
    let (stop, path) = (CancellationToken::new(), variable(settings, "PATH"));
    let trees = Trees::open(&scratch.join("git"), &settings.workspace, path, &stop).await;
    let trees = trees.map_err(|fault| PlanFault::bad(chain(&fault)))?;
    export(settings, &trees, &scratch.join("lanes"), &stop).await
}
