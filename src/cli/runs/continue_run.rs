//! `fledge runs continue`: a new run that begins with the conversation of an ended run.

use super::super::configured;
use super::super::connect::again;
use super::super::drive::{AgentWork, OutputArguments, OutputOptions, drive};
use super::super::failure::CliError;
use super::super::outlet::outlet;
use super::super::project::ProjectContext;
use super::super::results::{ResultFiles, RunFiles};
use super::super::runtime::block_on;
use super::super::tasks::read_source;
use super::resume::{failed, home_of, settings, workspace_of};
use super::{RunsContext, story};
use crate::config::EnvironmentLayer;
use crate::driver::{RunTerms, earlier};
use crate::provider::Pacer;
use crate::store::{RunRow, Store};
use crate::task::{Isolation, SpecChoice, Task};
use anyhow::anyhow;
use clap::Args;
use std::path::{Path, PathBuf};

/// The longest title taken from the text, in characters.
const LONGEST_TITLE: usize = 80;

#[derive(Debug, Args)]
#[command(after_help = "The new run uses the gate, models, tools and limits of the earlier run and freezes the gate \
    again.\n\n\
    Examples:\n  fledge runs continue last \"now also update the changelog\"\n  fledge runs continue 0198f2 - < more.md")]
pub(in crate::cli) struct ContinueArguments {
    /// Ended run: the start of its id, its run key, `last`, or `last-failed`
    run: String,
    /// Further work to do, or `-` for standard input
    text: String,
    /// Also write the report to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    voice: OutputArguments,
}

/// Runs the verb. If no run begins, a report about this replaces the report of an earlier run.
pub(super) fn run(
    shelf: &RunsContext,
    arguments: &ContinueArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let report = arguments.report.as_deref().and_then(|path| outlet("--report", path, &shelf.workspace).ok());
    let results = ResultFiles::of_job(&shelf.workspace, environment).with(RunFiles { report, patch: None });
    let done = continue_run(shelf, arguments, environment, results.clone());
    if let Err(failure) = &done
        && let Err(unwritten) = results.write_unbegun(failure)
    {
        unwritten.show(); // the first failure determines the exit code
    }
    done
}

fn continue_run(
    shelf: &RunsContext,
    arguments: &ContinueArguments,
    environment: &EnvironmentLayer,
    results: ResultFiles,
) -> Result<u8, CliError> {
    let text = if arguments.text == "-" { read_source("-")? } else { arguments.text.clone() };
    if text.trim().is_empty() {
        return Err(CliError::input(anyhow!("no task given: add the text in quotes after the run")));
    }
    let (store, row) = shelf.find_to_go_on(&arguments.run)?;
    let (row, terms, before) = earlier(&store, &row.head.id).map_err(failed)?;
    let is_there = Path::new(&row.head.workspace).is_dir();
    let workspace = if is_there { workspace_of(shelf, &row)? } else { home_of(shelf, &store, &row)? };
    arguments.report.as_ref().map(|path| outlet("--report", path, &workspace)).transpose()?;
    let set = configured::load(environment, &workspace).map_err(CliError::input)?;
    let place = ProjectContext { workspace: &workspace, state_dir: &shelf.state, set: &set };
    let models = again(&row, &terms, &place, environment, &Pacer::default())?;
    let task = task_after(text, (&store, &row), &terms, is_there);
    let reports = arguments.report.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let terms = RunTerms { reports: reports.collect(), patch: None, earlier: Some(before), ..terms };
    let voice = OutputOptions::new(arguments.voice, &set, environment).with(results);
    block_on(drive(AgentWork::Task(Box::new(task), None), settings(&place, environment, models, terms), voice))?
}

/// Returns the task of a run that continues an earlier one. `is_there` says that the folder of the
/// earlier run exists.
pub(in crate::cli) fn task_after(
    text: String,
    (store, row): (&Store, &RunRow),
    terms: &RunTerms,
    is_there: bool,
) -> Task {
    let task = further(text, terms.task.clone());
    match &terms.worktree {
        None => task,
        // The earlier worktree exists: work in it, and commit as the earlier run would.
        Some(_) if is_there => {
            Task { commit: Some(task.commits()), isolation: Isolation::InPlace, base: None, allow_dirty: true, ..task }
        }
        Some(_) => {
            let result = story(store, row).0.run.result();
            Task { base: result.and_then(|result| result.commit).or(task.base), ..task }
        }
    }
}

/// Returns the task with a new text. Its context and specs are dropped, because the conversation
/// already has them. Its expectation about the base is dropped, because the base is another one.
fn further(text: String, task: Task) -> Task {
    let first = text.trim().lines().next().unwrap_or_default().trim_start_matches('#').trim();
    let title = first.chars().take(LONGEST_TITLE).collect();
    let (context, specs, expect, is_fix) = (Vec::new(), SpecChoice::None, None, false);
    Task { title, prompt: text, context, specs, expect, is_fix, ..task }
}
