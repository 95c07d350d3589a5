//! `fledge runs watch`: follows a run of another process through its journal. Changes nothing.

use super::super::display::{RunDisplay, closing, expected};
use super::super::failure::CliError;
use super::super::paint::{self, Tone};
use super::super::project::{git_at, has_repository};
use super::super::runtime::block_on;
use super::super::signals;
use super::{RunsContext, data, failed, story};
use crate::config::EnvironmentLayer;
use crate::driver::{self, ResumeError, RunEvents, StopToken};
use crate::id::RunId;
use crate::report::NamedRun;
use crate::store::{RunListFilter, RunProperty, RunRow, Store, StoredRunState};
use crate::verdict::Reason;
use anyhow::{Context, anyhow};
use clap::Args;
use std::path::Path;
use std::time::Duration;

/// The time between two reads of the journal.
const PACE: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(after_help = "Shows each answer of the model when it is complete: only the terminal of the run \
    shows answers as they stream.\n\
    Exits with the exit code of the run. Ctrl-C stops watching; the run continues.\n\n\
    Examples:\n  fledge runs watch\n  fledge runs watch 0198f2")]
pub(in crate::cli) struct WatchArguments {
    /// Run: the start of its id, its run key, or `last` [default: the newest under way]
    run: Option<String>,
    /// Draw no live lines
    #[arg(long)]
    ni: bool,
}

/// Follows a run to its end; returns its exit code.
pub(super) fn watch(
    shelf: &RunsContext,
    arguments: &WatchArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let (store, row) = match &arguments.run {
        Some(name) => shelf.find(name)?,
        None => newest(shelf)?,
    };
    let is_quiet = arguments.ni || environment.flag("FLEDGE_NON_INTERACTIVE").map_err(CliError::input)?;
    let is_live = !is_quiet && paint::can_draw(environment) && matches!(row.state, StoredRunState::Running { .. });
    let before_ms = data::duration_ms(&row, shelf.now_ms).unwrap_or(0);
    let display = RunDisplay::new(is_live, before_ms).expecting(expected(&store));
    block_on(follow(&store, &row.head.id, &shelf.project, display))?
}

/// Finds the newest run of the project under way.
fn newest(shelf: &RunsContext) -> Result<(Store, RunRow), CliError> {
    let none = || CliError::input(anyhow!("no run of {} is in progress", shelf.project.display()));
    let store = shelf.store()?.ok_or_else(none)?;
    let newest = |only| {
        let filter = RunListFilter { limit: 1, only, now_ms: shelf.now_ms, ..RunListFilter::default() };
        store.runs(&filter).map_err(failed).map(|mut rows| rows.pop())
    };
    match (newest(Some(RunProperty::Running))?, newest(None)?) {
        (Some(row), _) => Ok((store, row)),
        (None, Some(_)) => Err(none().hint("run `fledge runs watch last` to see the newest run that ended")),
        (None, None) => Err(none()),
    }
}

/// Shows the journal so far and new records, until the run ends or no process drives it.
async fn follow(store: &Store, run: &RunId, project: &Path, mut display: RunDisplay) -> Result<u8, CliError> {
    let stop = StopToken::default();
    let _listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(CliError::own)?;
    let mut told = driver::events_after(store, run, 0).map_err(unread)?;
    loop {
        // Read the state first: then the journal has all records from before the end.
        let row = store.run(run).map_err(failed)?;
        show(&mut told, &mut display)?;
        if !matches!(row.state, StoredRunState::Running { .. }) {
            display.close();
            return Ok(end(store, &row, project));
        }
        tokio::select! {
            () = stop.token().cancelled() => {
                display.close();
                let text = format!("the run continues: `fledge runs watch {run}` watches it again");
                paint::line(&[(Tone::Faint, &text)]);
                return Ok(Reason::Cancelled.exit_code(Some(stop.cause())));
            }
            () = tokio::time::sleep(PACE) => {}
        }
        told.read_on(store).map_err(unread)?;
    }
}

fn show(told: &mut RunEvents<'_>, display: &mut RunDisplay) -> Result<(), CliError> {
    for record in told {
        let record = record.map_err(unread)?;
        match &record.of {
            None => display.show(&record.event),
            Some(path) => display.show_of(path, &record.event),
        }
    }
    Ok(())
}

/// Prints the closing lines; returns the exit code of the run.
fn end(store: &Store, row: &RunRow, project: &Path) -> u8 {
    let StoredRunState::Ended(end) = &row.state else {
        let text = format!("the process of run {0} is gone: `fledge runs resume {0}` continues the run", row.head.id);
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &text)]);
        return Reason::Blocked.exit_code(None);
    };
    match story(store, row).0.run.result() {
        Some(result) => {
            let git = has_repository(project).then(|| git_at(project));
            let (name, git, models) = (row.head.id.as_str(), git.as_deref(), row.head.models.as_slice());
            let run = NamedRun { name, git, commit_first: "", models };
            closing(&result, false, Some(run)).iter().for_each(|line| paint::line(line));
        }
        None => paint::line(&[(Tone::Bad, format!("{}: {}", data::outcome(row), paint::one_line(&end.summary)))]),
    }
    end.exit_code
}

fn unread(fault: ResumeError) -> CliError {
    CliError::because(fault.reason(), fault)
}
