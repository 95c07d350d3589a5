//! `fledge runs continue`: a new run that begins with the conversation of an ended run.

use super::super::configured;
use super::super::connect::again;
use super::super::drive::{AgentWork, OutputArguments, OutputOptions, drive};
use super::super::failure::CliError;
use super::super::limit_arguments::LimitArguments;
use super::super::output_path::find_output;
use super::super::results::{ResultFiles, RunFiles};
use super::super::resume::{failed, settings, task_after};
use super::super::runtime::block_on;
use super::super::tasks::read_source;
use super::RunsContext;
use super::resume::{home_of, workspace_of};
use crate::config::EnvironmentLayer;
use crate::driver::{RunTerms, earlier};
use crate::provider::Pacer;
use crate::setup::ProjectContext;
use anyhow::anyhow;
use clap::Args;
use std::path::{Path, PathBuf};

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
    limits: LimitArguments,
    #[command(flatten)]
    voice: OutputArguments,
}

/// Runs the verb. If no run begins, a report about this replaces the report of an earlier run.
pub(super) fn run(
    shelf: &RunsContext,
    arguments: &ContinueArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let report = arguments.report.as_deref().and_then(|path| find_output("--report", path, &shelf.workspace).ok());
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
    arguments.report.as_ref().map(|path| find_output("--report", path, &workspace)).transpose()?;
    let set = configured::load(environment, &workspace).map_err(CliError::input)?;
    let place = ProjectContext { workspace: &workspace, state_dir: &shelf.state, set: &set };
    let models = again(&row, &terms, &place, environment, &Pacer::default())?;
    let task = arguments.limits.say(task_after(text, (&store, &row), &terms, is_there));
    let reports = arguments.report.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let terms = RunTerms { reports: reports.collect(), patch: None, earlier: Some(before), ..terms };
    let voice = OutputOptions::new(arguments.voice, &set, environment).with(results);
    block_on(drive(AgentWork::Task(Box::new(task), None), settings(&place, environment, models, terms), voice))?
}
