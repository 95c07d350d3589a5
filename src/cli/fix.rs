//! `fledge fix`: a lane that fails in; a lane that passes out. Where it passes already no model is asked, nor even needed.

use super::failure::Failure;
use super::options::RunOptions;
use super::run;
use crate::config::Environment;
use crate::lane::detect::DETECTED_LANE;
use crate::task::{Defaults, GateChoice, Task};
use anyhow::anyhow;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "The lane is `verify` unless --lane says otherwise. It judges what is there first: where it passes, that is all, and no \
    model is asked for.\n\nExamples:\n  fledge fix\n  fledge fix --lane test --lane lint --max-retries 5\n  \
    fledge fix --stuck-after 2 --report report.json\n  fledge fix -p 'Do not touch src/parser'"
)]
pub(super) struct FixArguments {
    /// More for the agent to know than that the checks fail
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    #[command(flatten)]
    options: RunOptions,
    /// Known, so that it can be said what to do instead
    #[arg(long, hide = true, value_name = "N")]
    candidates: Option<String>,
}

/// Runs the verb; gives the exit code.
///
/// # Errors
/// Whatever was wrong before the run began.
pub(super) fn run(arguments: &FixArguments, environment: &Environment) -> Result<u8, Failure> {
    let options = &arguments.options;
    if arguments.candidates.is_some() {
        let error = anyhow!("--candidates: `fledge fix` is one run; candidates race for a task in a file");
        let hint = "write one that names the lane, and `fledge run task.md --candidates 3`";
        return Err(Failure::input(error).hint(hint));
    }
    run::must_say_something(arguments.prompt.as_deref())?;
    let task = |defaults: &Defaults| {
        let lanes = options.lanes().or_else(|| defaults.lanes.clone()).unwrap_or_else(|| vec![DETECTED_LANE.into()]);
        let mut task = defaults.of(Task::fix(lanes.clone()));
        task.gate = GateChoice::Lanes(lanes);
        if let Some(text) = &arguments.prompt {
            task.prompt = format!("{}\n\n{text}", task.prompt);
        }
        Ok(task)
    };
    run::begin(options, task, environment)
}
