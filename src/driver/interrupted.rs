//! The result of a call that was under way when fledge was interrupted: its effect is unknown, so
//! the model gets the files that differ now.

use crate::chat::ToolOutcome;
use crate::id::TreeId;
use crate::workspace::jail::{FinalLink, Jail};
use crate::workspace::trees::{DiffForm, Trees, TreesError};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The first part of every such result.
pub(super) const UNKNOWN: &str = "fledge was interrupted while this call was running. \
    The call may have done all, some or none of its work. fledge did not repeat it. \
    Check the files before you continue.";
/// The maximum number of changed paths to name.
const PATHS: usize = 40;
/// The maximum number of bytes of the diff.
const DIFF: usize = 4 * 1024;

/// Removes the half-written file that an interrupted call left beside its target.
pub(super) fn tidy(root: &Path, path: &str) {
    let tidied = Jail::open(root).and_then(|jail| jail.locate(&jail.path(path)?, FinalLink::Follow)?.tidy());
    if let Err(error) = tidied {
        tracing::debug!(%error, "cannot look for a half-written file beside the target");
    }
}

/// Returns the result of an interrupted call. `began` is the tree at the start of the run, if
/// known. Asks only fledge's own git, because the agent may have made the repository in the
/// workspace.
pub(super) async fn outcome(trees: &Trees, began: Option<&TreeId>, stop: &CancellationToken) -> ToolOutcome {
    match what_differs(trees, began, stop).await {
        Some(differs) => ToolOutcome::error(format!("{UNKNOWN}\n\n{differs}")),
        None => ToolOutcome::error(UNKNOWN),
    }
}

/// Describes the differences from the start of the run, if they can be found.
pub(super) async fn what_differs(trees: &Trees, began: Option<&TreeId>, stop: &CancellationToken) -> Option<String> {
    let differs = differs(trees, began?, stop).await;
    differs.inspect_err(|fault| tracing::debug!(%fault, "cannot find out what differs")).ok()
}

async fn differs(trees: &Trees, began: &TreeId, stop: &CancellationToken) -> Result<String, TreesError> {
    let now = trees.take(stop).await?.tree;
    let changes = trees.changes(began, &now, stop).await?;
    if changes.is_empty() {
        return Ok("No file differs from the start of the run.".into());
    }
    let named: Vec<&str> = changes.iter().take(PATHS).map(|change| change.path.as_str()).collect();
    let more = changes.len().saturating_sub(PATHS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let diff = trees.diff(began, &now, DiffForm::Patch, DIFF, stop).await?;
    let diff = String::from_utf8_lossy(&diff);
    Ok(format!("Files that differ from the start of the run: {}{more}\n\n{diff}", named.join(", ")))
}
