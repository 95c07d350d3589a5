//! `fledge runs replay`: checks that fledge would decide earlier runs today as it did then.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::resume::failed;
use super::RunsContext;
use crate::driver::{ReplayResult, replay};
use crate::id::RunId;
use crate::store::{RunListFilter, Store};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 same result, 1 a difference, 8 a damaged journal.\n\n\
    Examples:\n  fledge runs replay\n  fledge runs replay --all --json")]
pub(in crate::cli) struct ReplayArguments {
    /// Run: the start of its id, its run key, `last`, or `last-failed`
    #[arg(default_value = "last", conflicts_with = "all")]
    run: String,
    /// Replay every run of the project
    #[arg(long)]
    all: bool,
    /// Print JSON, one line for each run
    #[arg(long)]
    json: bool,
}

/// Runs the verb; returns the exit code.
pub(super) fn run(shelf: &RunsContext, arguments: &ReplayArguments) -> Result<u8, CliError> {
    let (store, runs) = if arguments.all {
        let Some(store) = shelf.store()? else { return Ok(0) };
        let runs = all(&store)?;
        (store, runs)
    } else {
        let (store, row) = shelf.find(&arguments.run)?;
        (store, vec![row.head.id])
    };
    let mut worst = 0;
    for run in &runs {
        match replay(&store, run) {
            Ok(replayed) => {
                worst = worst.max(u8::from(replayed.difference.is_some()));
                let line = line(&replayed, arguments.json);
                let printed = if arguments.json { print_json(&line) } else { print_data(&line) };
                printed.map_err(no_output)?;
            }
            Err(fault) => worst = worst.max(failed(fault).show()),
        }
    }
    Ok(worst)
}

fn all(store: &Store) -> Result<Vec<RunId>, CliError> {
    let rows = store.runs(&RunListFilter { limit: u32::MAX, ..RunListFilter::default() }).map_err(CliError::own)?;
    Ok(rows.into_iter().map(|row| row.head.id).collect())
}

fn line(replayed: &ReplayResult, json: bool) -> String {
    let ReplayResult { run, records, difference } = replayed;
    match difference {
        _ if json => serde_json::to_string(replayed).unwrap_or_default(),
        None => format!("{run}  the same, {records} records"),
        Some(at) => {
            format!("{run}  differs after record {}, {}\n  then: {}\n  now:  {}", at.seq, at.event, at.then, at.now)
        }
    }
}
