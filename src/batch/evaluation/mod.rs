//! Evaluation of models on the same tasks, with several runs each: rates with intervals, cost,
//! turns and time. An error is not a failure of the model: it is counted separately and listed.
//! Pure.

#[cfg(feature = "cli")]
pub(crate) mod page;

use super::outcome::{FinishedJob, JobEnding, JobStatus, RunSummary};
use super::summary::{BatchSummary, JobSummary};
use crate::verdict::{Reason, gravest};
use serde::Serialize;

/// The version of [`Evaluation`].
pub const EVAL_SCHEMA_VERSION: u32 = 1;

/// The two-sided 5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Evaluation {
    /// The version of this format.
    pub schema_version: u32,
    /// The version of fledge that wrote it.
    pub fledge: &'static str,
    /// The batch of its runs.
    pub batch: String,
    /// 0 if every run was judged and no rate is too low; else the most severe error, or 1.
    pub exit_code: u8,
    /// The rate that each model must reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<f64>,
    /// Models with a lower rate, or without a rate.
    pub below: Vec<String>,
    /// The known cost of all runs, in millionths of a US dollar.
    pub usd_micros: u64,
    /// The money limit for all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usd_micros: Option<u64>,
    /// The duration of this process, in milliseconds.
    pub duration_ms: u64,
    /// The results of each model over all tasks.
    pub models: Vec<Tally>,
    /// The results of each task, by model.
    pub tasks: Vec<TaskTally>,
    /// Runs that were not judged, with the reasons.
    pub unjudged: Vec<Unjudged>,
    /// All runs.
    pub jobs: Vec<JobSummary>,
}

/// The results of the models on one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub struct TaskTally {
    pub task: String,
    pub models: Vec<Tally>,
}

/// The results of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Tally {
    /// The model, as requested.
    pub model: String,
    /// Runs in total.
    pub runs: usize,
    /// Runs that were judged: by the gate, or by a limit that they reached.
    pub judged: usize,
    /// Verified runs.
    pub verified: usize,
    /// Runs that ended in an error.
    pub errored: usize,
    /// Runs that were stopped or never began.
    pub cut_off: usize,
    /// The share of verified runs among the judged ones.
    pub rate: Option<f64>,
    /// The Wilson score interval of the rate at 95 %.
    pub interval: Option<[f64; 2]>,
    /// The mean of the rates of all tasks: the chance that one try solves a task.
    pub pass_at_1: Option<f64>,
    /// The known cost of its runs, in millionths of a US dollar.
    pub usd_micros: u64,
    /// The mean cost of the runs with a known cost.
    pub mean_usd_micros: Option<u64>,
    /// Runs with an unknown cost.
    pub unpriced: usize,
    /// The median of model calls in a judged run.
    pub median_turns: Option<f64>,
    /// The median of attempts in a judged run.
    pub median_attempts: Option<f64>,
    /// The median duration of a judged run, in milliseconds.
    pub median_ms: Option<f64>,
}

/// A run that was not judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub struct Unjudged {
    pub job: String,
    pub model: String,
    pub standing: JobStatus,
    pub exit_code: u8,
    pub says: String,
}

/// A run with its task and model.
#[derive(Debug, Clone, Copy)]
struct EvaluatedRun<'s> {
    task: &'s str,
    model: &'s str,
    outcome: &'s FinishedJob,
}

impl Evaluation {
    /// Evaluates the runs of a batch. `of` returns the task and the model of a job by its name.
    pub fn new(summary: &BatchSummary, min_rate: Option<f64>, of: impl Fn(&str) -> Option<(String, String)>) -> Self {
        let named: Vec<(String, String)> =
            summary.jobs.iter().map(|job| of(&job.outcome.job).unwrap_or_default()).collect();
        let sample = |(job, (task, model)): (&'_ JobSummary, &'_ (String, String))| {
            (task.clone(), model.clone(), job.outcome.clone())
        };
        let owned: Vec<(String, String, FinishedJob)> = summary.jobs.iter().zip(&named).map(sample).collect();
        let samples: Vec<EvaluatedRun<'_>> =
            owned.iter().map(|(task, model, outcome)| EvaluatedRun { task, model, outcome }).collect();
        let models = tallies(&samples);
        let task = |name: &str| {
            let own: Vec<EvaluatedRun<'_>> = samples.iter().copied().filter(|sample| sample.task == name).collect();
            TaskTally { task: name.to_owned(), models: tallies(&own) }
        };
        let is_below = |tally: &&Tally| min_rate.is_some_and(|least| tally.rate.is_none_or(|rate| rate < least));
        let below: Vec<String> = models.iter().filter(is_below).map(|tally| tally.model.clone()).collect();
        let unjudged: Vec<Unjudged> =
            samples.iter().filter(|sample| !is_judged(sample.outcome)).map(unjudged).collect();
        let too_low = (!below.is_empty()).then_some(Reason::GateFailed.row().exit_code);
        Self {
            schema_version: EVAL_SCHEMA_VERSION,
            fledge: env!("CARGO_PKG_VERSION"),
            batch: summary.batch.clone(),
            exit_code: gravest(unjudged.iter().map(|run| run.exit_code).chain(too_low)),
            min_rate,
            below,
            usd_micros: summary.usd_micros,
            max_usd_micros: summary.max_usd_micros,
            duration_ms: summary.duration_ms,
            tasks: each(&samples, |sample| sample.task).into_iter().map(task).collect(),
            models,
            unjudged,
            jobs: summary.jobs.clone(),
        }
    }
}

/// Returns the results of each model.
fn tallies(samples: &[EvaluatedRun<'_>]) -> Vec<Tally> {
    let of = |model: &str| samples.iter().copied().filter(|sample| sample.model == model).collect::<Vec<_>>();
    each(samples, |sample| sample.model).into_iter().map(|model| tally(model, &of(model))).collect()
}

fn tally(model: &str, samples: &[EvaluatedRun<'_>]) -> Tally {
    let standing = |wanted: &[JobStatus]| samples.iter().filter(|one| wanted.contains(&one.outcome.standing())).count();
    let verified = standing(&[JobStatus::Verified]);
    let judged = verified + standing(&[JobStatus::Failed]);
    let rate = |verified: usize, judged: usize| (judged > 0).then(|| float(verified) / float(judged));
    let rate_of = |task: &&str| {
        let own = || samples.iter().filter(|one| one.task == *task && is_judged(one.outcome));
        rate(own().filter(|one| one.outcome.is_verified()).count(), own().count())
    };
    let rates: Vec<f64> = each(samples, |sample| sample.task).iter().filter_map(rate_of).collect();
    let ran: Vec<&RunSummary> = samples.iter().filter_map(|one| run(one.outcome)).collect();
    let priced: Vec<u64> = ran.iter().filter_map(|ran| ran.usd_micros).collect();
    let weighed: Vec<&RunSummary> =
        samples.iter().filter(|one| is_judged(one.outcome)).filter_map(|one| run(one.outcome)).collect();
    let middle = |of: fn(&RunSummary) -> u64| median(weighed.iter().map(|ran| of(ran)).collect());
    Tally {
        model: model.to_owned(),
        runs: samples.len(),
        judged,
        verified,
        errored: standing(&[JobStatus::Errored]),
        cut_off: standing(&[JobStatus::Cancelled, JobStatus::Skipped, JobStatus::NotStarted]),
        rate: rate(verified, judged),
        interval: wilson(verified, judged),
        pass_at_1: (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / float(rates.len())),
        usd_micros: samples.iter().fold(0, |sum, one| sum.saturating_add(one.outcome.usd_micros)),
        mean_usd_micros: priced.iter().sum::<u64>().checked_div(priced.len() as u64),
        unpriced: ran.len() - priced.len(),
        median_turns: middle(|ran| ran.turns),
        median_attempts: middle(|ran| ran.attempts),
        median_ms: middle(|ran| ran.duration_ms),
    }
}

/// Returns true if the run was judged.
fn is_judged(outcome: &FinishedJob) -> bool {
    matches!(outcome.standing(), JobStatus::Verified | JobStatus::Failed)
}

fn unjudged(sample: &EvaluatedRun<'_>) -> Unjudged {
    let outcome = sample.outcome;
    Unjudged {
        job: outcome.job.clone(),
        model: sample.model.to_owned(),
        standing: outcome.standing(),
        exit_code: outcome.exit_code(),
        says: outcome.says(),
    }
}

fn run(outcome: &FinishedJob) -> Option<&RunSummary> {
    match &outcome.end {
        JobEnding::Ran(ran) => Some(ran),
        JobEnding::NotRun(_) => None,
    }
}

/// Returns the distinct values, in order of first appearance.
fn each<'s>(samples: &[EvaluatedRun<'s>], of: impl Fn(&EvaluatedRun<'s>) -> &'s str) -> Vec<&'s str> {
    let mut all = Vec::new();
    for value in samples.iter().map(of) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// Returns the median; for an even count, the mean of the middle two.
fn median(mut values: Vec<u64>) -> Option<f64> {
    values.sort_unstable();
    let middle = values.len() / 2;
    let at = |place: usize| values.get(place).map(|value| *value as f64);
    if values.len() % 2 == 1 { at(middle) } else { Some((at(middle.checked_sub(1)?)? + at(middle)?) / 2.0) }
}

/// Returns the Wilson score interval for `successes` of `trials` at 95 %, without continuity
/// correction; `None` without trials. Source: E. B. Wilson, Probable Inference, the Law of
/// Succession, and Statistical Inference, 1927.
pub fn wilson(successes: usize, trials: usize) -> Option<[f64; 2]> {
    if trials == 0 {
        return None;
    }
    let (n, p) = (float(trials), float(successes.min(trials)) / float(trials));
    let (square, scale) = (Z * Z, 1.0 + Z * Z / n);
    let centre = (p + square / (2.0 * n)) / scale;
    let half = Z * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt() / scale;
    Some([(centre - half).max(0.0), (centre + half).min(1.0)])
}

/// Converts a count to a float.
fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
