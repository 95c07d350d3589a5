//! A race between candidates of one task. The winner's result is delivered as if it had run alone,
//! and its report lists the other candidates too.

use super::super::failure::CliError;
use super::super::output_path::find_output;
use super::super::results::ResultFiles;
use super::super::resume::LARGEST_REPORT;
use super::BatchRequest;
use crate::batch::{BatchSummary, JobEnding, JobSummary, RunSummary};
use crate::config::EnvironmentLayer;
use crate::run::TaskResult;
use crate::store;
use crate::task::{Candidates, Commit, GateChoice, Isolation, Task};
use crate::workspace::AtomicOutput;
use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder for the candidates' patches until there is a winner, in the state folder.
const PATCHES: &str = "patches";

/// The places for the result of a race.
#[derive(Debug)]
pub(super) struct RaceOutput {
    results: ResultFiles,
    report: Option<AtomicOutput>,
    patch: Option<AtomicOutput>,
    state_dir: PathBuf,
}

impl RaceOutput {
    /// Finds the places of all requested files.
    ///
    /// # Errors
    /// When a file cannot be written, or two have the same place.
    pub(super) fn find(
        request: &BatchRequest<'_>,
        workspace: &Path,
        state_dir: &Path,
        environment: &EnvironmentLayer,
    ) -> Result<Self, CliError> {
        let options = request.options;
        let results = options.results.places(workspace, environment)?;
        let find = |flag, path: Option<PathBuf>| path.map(|path| find_output(flag, &path, workspace)).transpose();
        let (report, patch) = (find("--report", options.reports().pop())?, find("--patch", options.patch())?);
        Ok(Self { results, report, patch, state_dir: state_dir.to_owned() })
    }

    /// Writes all files.
    ///
    /// # Errors
    /// The first file that cannot be written, or a report of the winner that cannot be read.
    pub(super) fn deliver(&self, summary: &BatchSummary) -> Result<(), CliError> {
        let best = best(summary);
        let mut report = json!({ "verified": false, "exit_code": summary.exit_code });
        if let Some(path) = best.and_then(|job| job.report.as_ref()) {
            let text = store::read_text(Path::new(path), LARGEST_REPORT).map_err(CliError::own)?;
            let text = text.ok_or_else(|| CliError::own(anyhow!("there is no report {path}")))?;
            let unread = || format!("cannot read the report {path}");
            report = serde_json::from_str(&text).with_context(unread).map_err(CliError::own)?;
            let result: TaskResult = serde_json::from_str(&text).with_context(unread).map_err(CliError::own)?;
            self.results.write(&result)?;
        }
        if let Some(map) = report.as_object_mut() {
            map.insert("candidates".into(), summary.jobs.iter().map(candidate).collect());
        }
        if let Some(place) = &self.report {
            let text = format!("{report:#}\n");
            place.write(text.as_bytes(), &|| true).map_err(CliError::own)?;
        }
        self.deliver_patch(summary, best)
    }

    fn deliver_patch(&self, summary: &BatchSummary, best: Option<&JobSummary>) -> Result<(), CliError> {
        let Some(place) = &self.patch else { return Ok(()) };
        let of = |job: &JobSummary| patch_of(&self.state_dir, &summary.batch, &job.outcome.job);
        if let Some(winner) = best.filter(|job| job.outcome.is_verified()) {
            match std::fs::read(of(winner)) {
                Ok(patch) => place.write(&patch, &|| true).map_err(CliError::own)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {} // delivered by an earlier process, or nothing to deliver
                Err(error) => return Err(CliError::own(anyhow::Error::new(error).context("cannot read the patch"))),
            }
        } else {
            place.remove().context("cannot remove the old patch").map_err(CliError::own)?;
        }
        for job in &summary.jobs {
            let _as_well_as_it_can_be = std::fs::remove_file(of(job));
        }
        Ok(())
    }
}

/// Returns the path of a candidate's patch until there is a winner.
pub(super) fn patch_of(state_dir: &Path, batch: &str, job: &str) -> PathBuf {
    state_dir.join(PATCHES).join(format!("{batch}-{job}"))
}

/// Returns the path of the list of trees that failed in a job, or in all candidates of its race.
pub(super) fn failed_trees_of(state_dir: &Path, batch: &str, job: &str) -> PathBuf {
    state_dir.join(PATCHES).join(format!("{batch}-{job}.failed"))
}

/// Creates the folder for these patches.
///
/// # Errors
/// When the folder cannot be created.
pub(super) fn make_patches(state_dir: &Path) -> Result<(), CliError> {
    store::make_private(&state_dir.join(PATCHES)).map_err(CliError::own)
}

/// Returns the winner. If none exists, returns the candidate with the race's exit code, or else
/// the first candidate that ran.
fn best(summary: &BatchSummary) -> Option<&JobSummary> {
    let winner = summary.jobs.iter().find(|job| job.outcome.is_verified() && !job.outcome.beaten);
    let has_run = |job: &&JobSummary| ran(job).is_some();
    let as_the_race = |job: &&JobSummary| has_run(job) && job.exit_code == summary.exit_code;
    winner.or_else(|| summary.jobs.iter().find(as_the_race)).or_else(|| summary.jobs.iter().find(has_run))
}

fn ran(job: &JobSummary) -> Option<&RunSummary> {
    match &job.outcome.end {
        JobEnding::Ran(ran) => Some(ran),
        JobEnding::NotRun(_) => None,
    }
}

/// Returns a candidate's entry in the report.
fn candidate(job: &JobSummary) -> Value {
    let ran = ran(job);
    json!({
        "job": job.outcome.job,
        "run": ran.map(|ran| &ran.run),
        "models": job.models,
        "outcome": job.standing,
        "beaten": job.outcome.beaten,
        "exit_code": ran.map_or(job.exit_code, |ran| ran.exit_code),
        "says": job.says,
        "attempts": ran.map(|ran| ran.attempts),
        "turns": ran.map(|ran| ran.turns),
        "tokens_in": ran.map(|ran| ran.tokens_in),
        "tokens_out": ran.map(|ran| ran.tokens_out),
        "usd_micros": ran.and_then(|ran| ran.usd_micros),
        "duration_ms": ran.map(|ran| ran.duration_ms),
        "branch": ran.and_then(|ran| ran.branch.as_ref()),
    })
}

/// Adapts a task to the request.
///
/// # Errors
/// The reason why the task does not fit, and a fix.
pub(super) fn fitted(task: Task, request: &BatchRequest<'_>) -> Result<Task, String> {
    if request.eval.is_some() { compared(task) } else { raced(task, request) }
}

/// Adapts a task for `fledge run`. Candidates need worktrees.
fn raced(mut task: Task, request: &BatchRequest<'_>) -> Result<Task, String> {
    if let Some(count) = request.arguments.candidates {
        task.candidates = Some(Candidates::Count(count));
    }
    match &task.candidates {
        None => Ok(task),
        Some(_) if task.isolation == Isolation::InPlace => {
            Err("candidates need worktrees, but this task runs in place (remove `isolation: in-place`)".into())
        }
        Some(Candidates::Models(_)) if request.options.has_models() => {
            Err("both `candidates` and --model name models (omit one of them, or use --candidates N)".into())
        }
        Some(Candidates::Models(_) | Candidates::Count(_)) => Ok(task),
    }
}

/// Adapts a task for an evaluation: a separate run in a worktree, with a gate and without delivery.
fn compared(task: Task) -> Result<Task, String> {
    if !task.needs.is_empty() {
        return Err(
            "this task needs other tasks, but an evaluation delivers nothing to build on (leave the task out)".into()
        );
    }
    if task.gate == GateChoice::Skip {
        return Err("this task skips its gate, so no run can succeed or fail (name a lane)".into());
    }
    Ok(Task { candidates: None, isolation: Isolation::Worktree, commit: Some(Commit::None), ..task })
}
