//! `fledge fix`: makes failing lanes pass. Needs no model if they pass already.

use super::failure::CliError;
use super::options::RunOptions;
use super::start::run_task;
use super::tasks::must_say_something;
use crate::config::EnvironmentLayer;
use crate::lane::detect::DETECTED_LANE;
use crate::task::{GateChoice, Task, TaskDefaults};
use anyhow::anyhow;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "The default lane is `verify`. fledge first runs the lane on the current files; if it passes, \
    fledge stops and needs no model.\n\nExamples:\n  fledge fix\n  fledge fix --lane test --lane lint --max-retries \
    5\n  \
    fledge fix --stuck-after 2 --report report.json\n  fledge fix -p 'Do not touch src/parser'")]
pub(super) struct FixArguments {
    /// Additional instructions for the agent
    #[arg(help_heading = "Task", long, short, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    #[command(flatten)]
    options: RunOptions,
    /// Accepted only to report what to use instead
    #[arg(help_heading = "Batch", long, hide = true, value_name = "N", allow_negative_numbers = true)]
    candidates: Option<String>,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// Every failure before the run began.
pub(super) fn run(arguments: &FixArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let options = &arguments.options;
    if arguments.candidates.is_some() {
        let error = anyhow!("--candidates: `fledge fix` starts a single run; candidates need a task file");
        let hint = "write a task file that names the lane, then run `fledge run task.md --candidates 3`";
        return Err(CliError::input(error).hint(hint));
    }
    must_say_something(arguments.prompt.as_deref())?;
    let task = |defaults: &TaskDefaults| {
        let lanes = options.lanes().or_else(|| defaults.lanes.clone()).unwrap_or_else(|| vec![DETECTED_LANE.into()]);
        let mut task = defaults.apply_to(Task::fix(lanes.clone()));
        task.gate = GateChoice::Lanes(lanes);
        if let Some(text) = &arguments.prompt {
            task.prompt = format!("{}\n\n{text}", task.prompt);
        }
        Ok(task)
    };
    run_task(options, task, environment)
}
