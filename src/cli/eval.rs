//! `fledge eval`: runs tasks × models × repetitions, each in a temporary worktree. Reports success
//! rates of the models, and delivers nothing.

use super::batch::{self, BatchArguments, BatchRequest, EvalTerms};
use super::failure::CliError;
use super::numbers::whole_number;
use super::options::RunOptions;
use super::tasks::values;
use crate::config::EnvironmentLayer;
use anyhow::anyhow;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Each task runs --repeat times with each --model, in a separate worktree that fledge removes \
    afterwards. Runs commit nothing and\n\
    store no memories. The gate decides whether a run is verified. Runs that end in an error are listed but not \
    counted in the rate.\n\n\
    Examples:\n  fledge eval tasks --model claude --model gpt --repeat 5 --jobs 4\n  \
    fledge eval tasks --repeat 10 --max-usd 5 --summary rates.md --report rates.json\n  \
    fledge eval tasks/*.md --model openai/gpt-5-mini --repeat 8 --min-rate 0.8\n  fledge eval tasks --model claude --repeat 5 --resume")]
pub(super) struct EvalArguments {
    /// Tasks: files, folders, globs, or one batch.yaml
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
    /// Run each task N times with each model, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole_number(1..=1000))]
    repeat: u32,
    /// Exit with 1 if the rate of a model is below RATE, a number from 0 to 1
    #[arg(long, value_name = "RATE", allow_negative_numbers = true, value_parser = rate)]
    min_rate: Option<f64>,
    /// Set a parameter of the tasks
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// Read parameters from a YAML FILE; --param overrides them
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    batch: BatchArguments,
}

fn rate(text: &str) -> Result<f64, &'static str> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or("expected a number from 0 to 1, e.g. 0.8")
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// All faults before the first run began.
pub(super) fn run(arguments: &EvalArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let EvalArguments { tasks, repeat, min_rate, param, params, options, batch } = arguments;
    if let Some(flag) = batch.not_for_eval().or_else(|| options.not_for_eval()) {
        let error =
            anyhow!("{flag}: an evaluation runs each task alone in a worktree, to its end, and delivers nothing");
        return Err(CliError::input(error).hint("omit the flag"));
    }
    let mut models = options.models().to_vec();
    models.dedup();
    let terms = EvalTerms { models, repeat: *repeat, min_rate: *min_rate };
    let params = values(params.as_deref(), param)?;
    batch::run(
        &BatchRequest { tasks, params, no_verify: false, options, arguments: batch, eval: Some(&terms) },
        environment,
    )
}
