//! `fledge runs undo`: restores the files of the workspace as they were before a run, and back.

use super::super::failure::CliError;
use super::super::output::{no_output, print_json};
use super::super::paint::{self, Tone};
use super::super::runtime::heeding;
use super::diff::change;
use super::leftovers::{LeftRun, WorkspaceView, broken, refused};
use super::{RunsContext, data};
use crate::config::EnvironmentLayer;
use crate::id::TreeId;
use anyhow::anyhow;
use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Args)]
#[command(
    after_help = "Ignored files and commits stay unchanged. fledge first saves the current state and prints its id; \
    pass that id to --to to restore it.\n\n\
    Examples:\n  fledge runs undo last\n  fledge runs undo last --to 4b825dc642cb6eb9a060e54bf8d69288fbee4904"
)]
pub(in crate::cli) struct UndoArguments {
    /// Run: the start of its id, its run key, `last`, or `last-failed`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Undo even if the workspace was changed after the run
    #[arg(long)]
    force: bool,
    /// Restore the state of TREE instead of the state before the run
    #[arg(long, value_name = "TREE", value_parser = TreeId::parse)]
    to: Option<TreeId>,
    /// Print the result as JSON to standard output
    #[arg(long)]
    json: bool,
}

/// Undoes a run; returns the exit code.
pub(super) fn undo(
    shelf: &RunsContext,
    arguments: &UndoArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    heeding(|stop| put_back(shelf, arguments, environment, stop))
}

async fn put_back(
    shelf: &RunsContext,
    arguments: &UndoArguments,
    environment: &EnvironmentLayer,
    stop: CancellationToken,
) -> Result<u8, CliError> {
    let left = LeftRun::find(shelf, &arguments.run, WorkspaceView::WhereItWorked, environment, stop).await?;
    left.must_rest()?;
    let (run, now) = (&left.row.head.id, left.now().await?);
    let tree = arguments.to.as_ref().unwrap_or(&left.base);
    if !left.trees.has(tree, &left.stop).await.map_err(broken)? {
        return Err(CliError::input(anyhow!("no tree {tree} is kept for this project")));
    }
    let is_asked_for = arguments.force || arguments.to.is_some() || now == *tree;
    if !is_asked_for && left.candidate.as_ref() != Some(&now) {
        let hint = "--force undoes those changes too; fledge keeps the current state and prints its id";
        let error = match &left.candidate {
            Some(candidate) => {
                let paths = left.differing(candidate, &now).await?;
                anyhow!("the workspace was changed after run {run}: {paths}")
            }
            None => anyhow!("no final state of run {run} is kept: fledge cannot tell what changed since"),
        };
        return Err(refused(error).hint(hint));
    }
    let changes = left.trees.changes(&now, tree, &left.stop).await.map_err(broken)?;
    let before = if changes.is_empty() { now } else { left.put(tree).await? };
    if arguments.json {
        let changes: Vec<_> = changes.iter().map(change).collect();
        let version = data::RUNS_SCHEMA_VERSION;
        let all = json!({ "schema_version": version, "run": run, "tree": tree, "before": before, "changes": changes });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    if changes.is_empty() {
        paint::line(&[(Tone::Faint, "no differences: no file was changed")]);
        return Ok(0);
    }
    let files = if changes.len() == 1 { "1 file is".to_owned() } else { format!("{} files are", changes.len()) };
    paint::line(&[(Tone::Good, "✓ "), (Tone::Plain, &format!("{files} as in {tree}"))]);
    Ok(0)
}
