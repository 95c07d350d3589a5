//! `fledge runs diff`: what differs between the state that a run began with, the one that it came to, and the workspace of today.

use super::super::failure::Failure;
use super::super::paint::{self, Tone};
use super::super::steps::Line;
use super::super::{block_on, no_output, print_bytes, print_data, print_json};
use super::left::{Left, Seen, broken};
use super::{Shelf, data};
use crate::config::Environment;
use crate::id::TreeId;
use crate::workspace::trees::{DiffForm, TreeChange};
use crate::yaml::meant;
use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};
use std::io::IsTerminal;
use tokio_util::sync::CancellationToken;

/// Bytes of a difference that are shown at a terminal.
const SHOWN: usize = 16 * 1024 * 1024;

#[derive(Debug, Args)]
#[command(
    after_help = "A state is `base` (before the agent), `candidate` (what the gate has passed, else the newest that is kept),\n\
    `turn-N` (what turn N of the model has left, where it changed something), `now` (the workspace as it stands), or the id of a tree.\n\n\
    Examples:\n  fledge runs diff\n  fledge runs diff last candidate now --stat\n  fledge runs diff 0198f2 > work.patch && git apply work.patch"
)]
pub(in crate::cli) struct DiffArguments {
    /// The run: the start of its id, its run key, `last`, or `last-failed`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// The state that is compared
    #[arg(value_name = "FROM", default_value = "base", value_parser = state)]
    from: State,
    /// The state that it is compared with
    #[arg(value_name = "TO", default_value = "candidate", value_parser = state)]
    to: State,
    /// How much of each file was added and removed, and nothing else
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// The list of changes as JSON, to standard output
    #[arg(long)]
    json: bool,
}

/// A state of the files.
#[derive(Debug, Clone)]
enum State {
    Base,
    Candidate,
    Now,
    Turn(u64),
    Tree(TreeId),
}

fn state(name: &str) -> Result<State, String> {
    match name {
        "base" => Ok(State::Base),
        "candidate" => Ok(State::Candidate),
        "now" => Ok(State::Now),
        name => match name.strip_prefix("turn-").map(str::parse) {
            Some(Ok(turn)) => Ok(State::Turn(turn)),
            Some(Err(_)) => Err("turns have numbers: turn-1, turn-2".into()),
            None => TreeId::parse(name).map(State::Tree).map_err(|_| {
                let meant = meant(name, ["base", "candidate", "now"]).map(|meant| format!(" ({meant})"));
                let all = "it is one of base, candidate, now, turn-N, or a whole id of a tree";
                format!("{all}{}", meant.unwrap_or_default())
            }),
        },
    }
}

/// Shows it; gives the exit code.
pub(super) fn diff(shelf: &Shelf, arguments: &DiffArguments, environment: &Environment) -> Result<u8, Failure> {
    block_on(compare(shelf, arguments, environment))?
}

async fn compare(shelf: &Shelf, arguments: &DiffArguments, environment: &Environment) -> Result<u8, Failure> {
    let left = Left::find(shelf, &arguments.run, Seen::WhereItWorked, environment, CancellationToken::new()).await?;
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
        paint::line(&[(Tone::Faint, "nothing differs")]);
    } else if is_for_people {
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<Line> = text.lines().map(line).collect();
        print_data(&paint::page(&lines)).map_err(no_output)?;
    } else {
        print_bytes(&text).map_err(no_output)?;
    }
    Ok(0)
}

async fn tree(left: &Left, state: &State) -> Result<TreeId, Failure> {
    match state {
        State::Base => Ok(left.base.clone()),
        State::Candidate => left.candidate.clone().ok_or_else(|| {
            let error = anyhow!("no state of the files after run {} is kept", left.row.head.id);
            Failure::input(error).hint("`fledge runs diff RUN base now` compares with the workspace as it stands")
        }),
        State::Now => left.now().await,
        State::Turn(turn) => left.turn(*turn).await,
        State::Tree(tree) => Ok(tree.clone()),
    }
}

/// A change as data: modes as git writes them, null where there is no file.
pub(super) fn change(change: &TreeChange) -> Value {
    let mode = |mode: u32| (mode != 0).then(|| format!("{mode:06o}"));
    let TreeChange { path, kind, from_mode, to_mode } = change;
    json!({ "path": path, "kind": kind, "from_mode": mode(*from_mode), "to_mode": mode(*to_mode) })
}

/// A line of a difference in its colour.
fn line(text: &str) -> Line {
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
