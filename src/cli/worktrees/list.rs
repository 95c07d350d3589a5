//! `fledge worktrees list`: the worktrees that runs left, for people and as JSON.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::steps::StyledLine;
use super::{WORKTREES_SCHEMA_VERSION, WorktreeRow, WorktreeState, WorktreesContext};
use crate::report::runs::rfc3339;
use crate::report::{ago, count};
use crate::workspace::worktree::bytes;
use clap::Args;
use serde_json::{Value, json};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge worktrees list\n  fledge worktrees list --json")]
pub(super) struct ListWorktreesArguments {
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
}

/// Lists the worktrees; returns the exit code.
pub(super) async fn list(worktrees: &WorktreesContext, arguments: &ListWorktreesArguments) -> Result<u8, CliError> {
    let trees = worktrees.trees().await?;
    if arguments.json {
        let all: Vec<Value> = trees.iter().map(|tree| data(worktrees, tree)).collect();
        let all = json!({ "schema_version": WORKTREES_SCHEMA_VERSION, "worktrees": all });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    if trees.is_empty() {
        paint::line(&[(Tone::Plain, format!("no run of {} has left a worktree", worktrees.project.display()))]);
        return Ok(0);
    }
    let lines: Vec<StyledLine> = trees.iter().flat_map(|tree| lines(worktrees, tree)).collect();
    print_data(&paint::page(&lines)).map_err(no_output)?;
    Ok(0)
}

/// Returns a worktree as JSON.
fn data(worktrees: &WorktreesContext, tree: &WorktreeRow) -> Value {
    let record = tree.record.as_ref();
    json!({
        "run": record.map(|record| &record.run),
        "title": tree.row.as_ref().map(|row| &row.head.title),
        "path": tree.folder.display().to_string(),
        "branch": record.map(|record| &record.worktree.branch),
        "base": record.map(|record| &record.base),
        "state": tree.state.word(),
        "why": tree.state.keeps(&tree.called(worktrees.store.as_ref())),
        "since": rfc3339(tree.since_ms),
        "bytes": bytes(&tree.folder),
    })
}

fn lines(worktrees: &WorktreesContext, tree: &WorktreeRow) -> Vec<StyledLine> {
    let called = tree.called(worktrees.store.as_ref());
    let tone = match &tree.state {
        WorktreeState::Running(_) | WorktreeState::Interrupted => Tone::Strong,
        WorktreeState::Kept(_) | WorktreeState::Unclear(_) => Tone::Warn,
        WorktreeState::Clean | WorktreeState::Orphaned | WorktreeState::Gone => Tone::Faint,
    };
    let branch = tree.record.as_ref().map_or("", |record| record.worktree.branch.as_str());
    let (age, size) = (ago(worktrees.now_ms, tree.since_ms), count(bytes(&tree.folder)));
    let mut lines = vec![
        vec![
            (Tone::Strong, paint::one_line(&called)),
            (tone, format!("  {:<11}", tree.state.word())),
            (Tone::Faint, format!("  {age}, {size} bytes")),
        ],
        vec![(Tone::Plain, format!("  {}", paint::one_line(&tree.folder.display().to_string())))],
    ];
    if !branch.is_empty() {
        lines.push(vec![(Tone::Faint, "  on ".into()), (Tone::Plain, paint::one_line(branch))]);
    }
    if let Some(why) = tree.state.keeps(&called) {
        lines.push(vec![(Tone::Faint, format!("  {}", paint::one_line(&why)))]);
    }
    lines
}
