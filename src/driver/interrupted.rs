//! What the model hears of a call that was under way when fledge was interrupted: that nobody knows what it did, and what differs now.

use crate::chat::ToolOutcome;
use crate::workspace::jail::{Jail, Last};
use crate::workspace::{changed_paths, diff_of};
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

/// The result of such a call.
pub(super) async fn outcome(root: &Path, env: &[(String, String)], stop: &CancellationToken) -> ToolOutcome {
    let Some(paths) = changed_paths(root, env, stop).await else { return ToolOutcome::error(UNKNOWN) };
    if paths.is_empty() {
        return ToolOutcome::error(format!("{UNKNOWN}\n\nNothing differs from the last commit."));
    }
    let named: Vec<&str> = paths.iter().take(PATHS).map(String::as_str).collect();
    let more = paths.len().saturating_sub(PATHS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let mut text = format!("{UNKNOWN}\n\nWhat differs from the last commit: {}{more}", named.join(", "));
    if let Some(diff) = diff_of(root, env, DIFF, stop).await.filter(|diff| !diff.is_empty()) {
        text.push_str(&format!("\n\n{diff}"));
    }
    ToolOutcome::error(text)
}
