//! Lanes of another commit: what defines the gate is read there, and not in the workspace, where somebody may have changed it.

use super::Settings;
use super::briefing::PlanFault;
use super::enclosure::variable;
use crate::causes::chain;
use crate::workspace::delivery::{DeliveryFault, Repository};
use crate::workspace::trees::Trees;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Writes the commit whose lanes are asked for into a folder that is not there yet; `None` where those of the workspace are.
///
/// # Errors
/// When there is no repository, or no such commit.
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
        PlanFault::bad(format!("the lanes of `{rev}` (--lanes-from) cannot be read: {}", chain(&fault)))
    })?;
    Ok(Some(into.to_owned()))
}

/// The same for who only wants to look: all that is needed for it is made in `scratch`.
///
/// # Errors
/// As those of a run that would begin with these settings.
pub async fn lanes_at(settings: &Settings, scratch: &Path) -> Result<Option<PathBuf>, PlanFault> {
    if settings.lanes_from.is_none() {
        return Ok(None);
    }
    let (stop, path) = (CancellationToken::new(), variable(settings, "PATH"));
    let trees = Trees::open(&scratch.join("git"), &settings.workspace, path, &stop).await;
    let trees = trees.map_err(|fault| PlanFault::bad(chain(&fault)))?;
    export(settings, &trees, &scratch.join("lanes"), &stop).await
}
