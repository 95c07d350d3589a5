//! `fledge eval`: tasks × models × repetitions, each a run in a worktree that is removed afterwards; rates of models out, and nothing delivered.

use super::super::failure::Failure;
use super::super::options::RunOptions;
use super::super::run::values;
use super::{BatchArguments, Request};
use crate::config::Environment;
use anyhow::anyhow;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Each task is run --repeat times with each --model, in a worktree of its own that is removed afterwards; nothing is committed or\n\
    remembered. A run counts as verified by its gate. One that ends in an error is named, and not in the rate.\n\n\
    Examples:\n  fledge eval tasks --model claude --model gpt --repeat 5 --jobs 4\n  \
    fledge eval tasks --repeat 10 --max-usd 5 --summary rates.md --report rates.json\n  \
    fledge eval tasks/*.md --model openai/gpt-5-mini --repeat 8 --min-rate 0.8\n  fledge eval tasks --model claude --repeat 5 --resume"
)]
pub(in crate::cli) struct EvalArguments {
    /// The tasks: files, folders, globs, or one batch.yaml
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
    /// Runs of each task with each model
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Exit with 1 when the rate of a model is lower: a number from 0 to 1
    #[arg(long, value_name = "RATE", value_parser = rate)]
    min_rate: Option<f64>,
    /// A value for a parameter of the tasks
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// A YAML file with values for parameters; --param wins
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    batch: BatchArguments,
}

/// What is measured, and what is asked of it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct EvalTerms {
    /// Models that are compared; none: the ones of the tasks.
    pub(super) models: Vec<String>,
    /// Runs of each task with each of these.
    pub(super) repeat: u32,
    /// The least rate.
    pub(super) min_rate: Option<f64>,
}

fn rate(text: &str) -> Result<f64, &'static str> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or("it is a number from 0 to 1, like 0.8")
}

/// Runs the verb; gives the exit code.
///
/// # Errors
/// Whatever was wrong before the first run began.
pub(in crate::cli) fn run(arguments: &EvalArguments, environment: &Environment) -> Result<u8, Failure> {
    let EvalArguments { tasks, repeat, min_rate, param, params, options, batch } = arguments;
    if let Some(flag) = batch.not_for_eval().or_else(|| options.not_for_eval()) {
        let error =
            anyhow!("{flag}: an evaluation runs every task by itself in a worktree, to its end, and delivers nothing");
        return Err(Failure::input(error).hint("leave the flag out"));
    }
    let mut models = options.models().to_vec();
    models.dedup();
    let terms = EvalTerms { models, repeat: *repeat, min_rate: *min_rate };
    let params = values(params.as_deref(), param)?;
    super::run(&Request { tasks, params, no_verify: false, options, arguments: batch, eval: Some(&terms) }, environment)
}
