//! What the model hears of a call that was under way when fledge was interrupted: that nobody knows what it did, and what differs now.

use crate::chat::ToolOutcome;
use crate::id::TreeId;
use crate::workspace::jail::{Jail, Last};
use crate::workspace::trees::{DiffForm, Trees, TreesFault};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Always said.
pub(super) const UNKNOWN: &str = "fledge was interrupted while this call was running. It may have done all, some or nothing of its work, and it \
    was not repeated: look at what is there before you go on.";
/// Changed paths that are named.
const PATHS: usize = 40;
/// Bytes of the diff.
const DIFF: usize = 4 * 1024;

/// Removes what such a call has left half written beside the file that it was about.
pub(super) fn tidy(root: &Path, path: &str) {
    let tidied = Jail::open(root).and_then(|jail| jail.locate(&jail.path(path)?, Last::Follow)?.tidy());
    if let Err(error) = tidied {
        tracing::debug!(%error, "nothing was looked for beside a file that was being written");
    }
}

/// The result of such a call; `began` is the tree that the run began with, where it is known. Only our own git is asked: what stands in
/// the workspace may be a repository that the agent has made.
pub(super) async fn outcome(trees: &Trees, began: Option<&TreeId>, stop: &CancellationToken) -> ToolOutcome {
    match what_differs(trees, began, stop).await {
        Some(differs) => ToolOutcome::error(format!("{UNKNOWN}\n\n{differs}")),
        None => ToolOutcome::error(UNKNOWN),
    }
}

/// What differs from what the run began with, where that can be told.
pub(super) async fn what_differs(trees: &Trees, began: Option<&TreeId>, stop: &CancellationToken) -> Option<String> {
    let differs = differs(trees, began?, stop).await;
    differs.inspect_err(|fault| tracing::debug!(%fault, "what differs cannot be told")).ok()
}

async fn differs(trees: &Trees, began: &TreeId, stop: &CancellationToken) -> Result<String, TreesFault> {
    let now = trees.take(stop).await?.tree;
    let changes = trees.changes(began, &now, stop).await?;
    if changes.is_empty() {
        return Ok("Nothing differs from what the run began with.".into());
    }
    let named: Vec<&str> = changes.iter().take(PATHS).map(|change| change.path.as_str()).collect();
    let more = changes.len().saturating_sub(PATHS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let diff = trees.diff(began, &now, DiffForm::Patch, DIFF, stop).await?;
    let diff = String::from_utf8_lossy(&diff);
    Ok(format!("What differs from what the run began with: {}{more}\n\n{diff}", named.join(", ")))
}
