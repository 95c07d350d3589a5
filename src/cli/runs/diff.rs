//! `fledge runs diff`: the changes between two states of the files, such as the base of a run, its
//! result and the current workspace.

use super::super::failure::CliError;
use super::super::output::{no_output, print_bytes, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::runtime::block_on;
use super::super::steps::StyledLine;
use super::leftovers::{LeftRun, WorkspaceView, broken};
use super::{RunsContext, data};
use crate::config::EnvironmentLayer;
use crate::id::TreeId;
use crate::workspace::trees::{DiffForm, TreeChange};
use crate::yaml::meant;
use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};
use std::io::IsTerminal;
use tokio_util::sync::CancellationToken;

/// The maximum number of bytes of a difference shown at a terminal.
const SHOWN: usize = 16 * 1024 * 1024;

#[derive(Debug, Args)]
#[command(
    after_help = "A state is `base` (before the agent), `candidate` (the tree that passed the gate, else the newest \
    that is kept),\n\
    `turn-N` (after turn N of the model, if that turn changed files), `now` (the current workspace), or the id of a \
    tree.\n\n\
    Examples:\n  fledge runs diff\n  fledge runs diff last candidate now --stat\n  fledge runs diff 0198f2 > work.patch && git apply work.patch"
)]
pub(in crate::cli) struct DiffArguments {
    /// Run: the start of its id, its run key, `last`, or `last-failed`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// State to compare
    #[arg(value_name = "FROM", default_value = "base", value_parser = state)]
    from: DiffSide,
    /// State to compare FROM with
    #[arg(value_name = "TO", default_value = "candidate", value_parser = state)]
    to: DiffSide,
    /// Show only the numbers of added and removed lines for each file
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Print the list of changes as JSON to standard output
    #[arg(long)]
    json: bool,
}

/// A state of the files.
#[derive(Debug, Clone)]
enum DiffSide {
    Base,
    Candidate,
    Now,
    Turn(u64),
    Tree(TreeId),
}

fn state(name: &str) -> Result<DiffSide, String> {
    match name {
        "base" => Ok(DiffSide::Base),
        "candidate" => Ok(DiffSide::Candidate),
        "now" => Ok(DiffSide::Now),
        name => match name.strip_prefix("turn-").map(str::parse) {
            Some(Ok(turn)) => Ok(DiffSide::Turn(turn)),
            Some(Err(_)) => Err("expected a turn number: turn-1, turn-2".into()),
            None => TreeId::parse(name).map(DiffSide::Tree).map_err(|_| {
                let meant = meant(name, ["base", "candidate", "now"]).map(|meant| format!(" ({meant})"));
                let all = "expected base, candidate, now, turn-N, or the full id of a tree";
                format!("{all}{}", meant.unwrap_or_default())
            }),
        },
    }
}

/// Prints the difference; returns the exit code.
pub(super) fn diff(
    shelf: &RunsContext,
    arguments: &DiffArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    block_on(compare(shelf, arguments, environment))?
}

async fn compare(
    shelf: &RunsContext,
    arguments: &DiffArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let left =
        LeftRun::find(shelf, &arguments.run, WorkspaceView::WhereItWorked, environment, CancellationToken::new())
            .await?;
    let (from, to) = (tree(&left, &arguments.from).await?, tree(&left, &arguments.to).await?);
    if arguments.json {
        let changes = left.trees.changes(&from, &to, &left.stop).await.map_err(broken)?;
        let all = json!({
            "schema_version": data::RUNS_SCHEMA_VERSION,
            "run": left.row.head.id,
            "from": from,
            "to": to,
            "changes": changes.iter().map(change).collect::<Vec<_>>(),
        });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    let is_for_people = std::io::stdout().is_terminal() || paint::speaks_to_runner();
    let (form, limit) = match (arguments.stat, is_for_people) {
        (true, _) => (DiffForm::Stat, SHOWN),
        (false, true) => (DiffForm::Patch, SHOWN),
        (false, false) => (DiffForm::Whole, usize::MAX),
    };
    let text = left.trees.diff(&from, &to, form, limit, &left.stop).await.map_err(broken)?;
    if text.is_empty() {
        paint::line(&[(Tone::Faint, "no differences")]);
    } else if is_for_people {
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<StyledLine> = text.lines().map(line).collect();
        print_data(&paint::page(&lines)).map_err(no_output)?;
    } else {
        print_bytes(&text).map_err(no_output)?;
    }
    Ok(0)
}

async fn tree(left: &LeftRun, state: &DiffSide) -> Result<TreeId, CliError> {
    match state {
        DiffSide::Base => Ok(left.base.clone()),
        DiffSide::Candidate => left.candidate.clone().ok_or_else(|| {
            let run = &left.row.head.id;
            let error = anyhow!("no final state of the files of run {run} is kept");
            let hint = "to compare with the current workspace";
            CliError::input(error).hint(format!("run `fledge runs diff {run} base now` {hint}"))
        }),
        DiffSide::Now => left.now().await,
        DiffSide::Turn(turn) => left.turn(*turn).await,
        DiffSide::Tree(tree) => Ok(tree.clone()),
    }
}

/// Returns a change as JSON. Modes have git's form, and are null where no file exists.
pub(super) fn change(change: &TreeChange) -> Value {
    let mode = |mode: u32| (mode != 0).then(|| format!("{mode:06o}"));
    let TreeChange { path, kind, from_mode, to_mode } = change;
    json!({ "path": path, "kind": kind, "from_mode": mode(*from_mode), "to_mode": mode(*to_mode) })
}

/// Colours a line of a difference.
fn line(text: &str) -> StyledLine {
    let tone = if text.starts_with("diff ") || text.starts_with("+++ ") || text.starts_with("--- ") {
        Tone::Strong
    } else {
        match text.as_bytes().first() {
            Some(b'+') => Tone::Good,
            Some(b'-') => Tone::Bad,
            Some(b'@') => Tone::Faint,
            Some(_) | None => Tone::Plain,
        }
    };
    vec![(tone, text.to_owned())]
}
