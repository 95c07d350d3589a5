//! Result of a batch as data: every job, counts, cost, and one exit code for all. Pure.

use super::outcome::{FinishedJob, JobEnding, JobStatus};
use crate::verdict::{gravest, mildest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of [`BatchSummary`].
pub const BATCH_SCHEMA_VERSION: u32 = 1;

/// The remark on a job whose gate counted no test and saw no canary.
pub(crate) const EXIT_CODES_ALONE: &str = "by exit codes alone";

/// The result of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BatchSummary {
    /// The version of this format.
    pub schema_version: u32,
    /// The version of fledge that wrote it.
    pub fledge: &'static str,
    /// The name of the batch.
    pub batch: String,
    /// The exit code: the most severe code of all jobs. A race that no candidate won counts with
    /// its least severe code.
    pub exit_code: u8,
    /// True if every job is verified, apart from beaten candidates.
    pub verified: bool,
    /// Counts of jobs by how they ended.
    pub counts: JobCounts,
    /// The known cost of all runs, in millionths of a US dollar.
    pub usd_micros: u64,
    /// The money limit for all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usd_micros: Option<u64>,
    /// Time from the start of this process to the end of the last job, in milliseconds.
    pub duration_ms: u64,
    /// The command that continues the unfinished jobs, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// The jobs, in the order of the plan.
    pub jobs: Vec<JobSummary>,
}

/// Counts of jobs by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the fields are named after the words of `Standing`")]
pub struct JobCounts {
    pub jobs: usize,
    pub verified: usize,
    /// Verified jobs whose gate passed by exit codes alone.
    pub exit_codes_alone: usize,
    pub failed: usize,
    pub errored: usize,
    pub cancelled: usize,
    pub skipped: usize,
    pub not_started: usize,
}

/// The outcome of a job, with its task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct JobSummary {
    /// The task's file.
    pub task: String,
    /// The folder of the repository.
    pub repository: String,
    /// The job that it is a candidate for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_of: Option<String>,
    /// The models of this candidate, or of this run in an evaluation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The result of the job in one word.
    pub standing: JobStatus,
    /// The exit code of the job, as for a single run.
    pub exit_code: u8,
    /// One line on how the job ended.
    pub says: String,
    /// The path of its report, if it has a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The full outcome.
    #[serde(flatten)]
    pub outcome: FinishedJob,
}

impl JobSummary {
    /// Creates the summary of a job from its outcome.
    pub fn new(outcome: FinishedJob, task: String, repository: String, report: Option<String>) -> Self {
        let (standing, exit_code, says) = (outcome.standing(), outcome.exit_code(), outcome.says());
        let (candidate_of, models) = (None, Vec::new());
        Self { task, repository, candidate_of, models, standing, exit_code, says, report, outcome }
    }

    /// Adds the job that it is a candidate for, and its models.
    #[must_use]
    pub fn among(self, candidate_of: Option<String>, models: Vec<String>) -> Self {
        Self { candidate_of, models, ..self }
    }

    /// Returns the word for a table: `won` or `beaten` for verified candidates, or how the job
    /// ended.
    pub fn word(&self) -> &'static str {
        match (&self.candidate_of, self.standing) {
            (Some(_), JobStatus::Verified) if self.outcome.beaten => "beaten",
            (Some(_), JobStatus::Verified) => "won",
            (_, standing) => standing.word(),
        }
    }

    /// Returns the remark for a table: the reason if the job did not succeed, or that its gate
    /// passed by exit codes alone. Otherwise empty.
    pub fn remark(&self) -> &str {
        match self.standing {
            JobStatus::Verified if !self.outcome.beaten => self.doubt().unwrap_or_default(),
            _ => &self.says,
        }
    }

    /// Returns the remark if the gate passed by exit codes alone.
    pub fn doubt(&self) -> Option<&'static str> {
        self.outcome.is_by_exit_codes_alone().then_some(EXIT_CODES_ALONE)
    }

    /// Returns attempts, model turns and milliseconds of the last run; `None` without a run.
    pub fn effort(&self) -> Option<(u64, u64, u64)> {
        match &self.outcome.end {
            JobEnding::Ran(ran) => Some((ran.attempts, ran.turns, ran.duration_ms)),
            JobEnding::NotRun(_) => None,
        }
    }
}

impl JobCounts {
    /// Counts outcomes.
    pub fn count<'o>(outcomes: impl IntoIterator<Item = &'o FinishedJob>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            counts.jobs += 1;
            counts.exit_codes_alone += usize::from(outcome.is_by_exit_codes_alone() && outcome.is_verified());
            *match outcome.standing() {
                JobStatus::Verified => &mut counts.verified,
                JobStatus::Failed => &mut counts.failed,
                JobStatus::Errored => &mut counts.errored,
                JobStatus::Cancelled => &mut counts.cancelled,
                JobStatus::Skipped => &mut counts.skipped,
                JobStatus::NotStarted => &mut counts.not_started,
            } += 1;
        }
        counts
    }

    /// Returns the number of jobs that ended like this.
    pub fn get(&self, standing: JobStatus) -> usize {
        match standing {
            JobStatus::Verified => self.verified,
            JobStatus::Failed => self.failed,
            JobStatus::Errored => self.errored,
            JobStatus::Cancelled => self.cancelled,
            JobStatus::Skipped => self.skipped,
            JobStatus::NotStarted => self.not_started,
        }
    }

    /// Formats the counts: `3 of 5 verified (2 by exit codes alone), 1 failed, 1 skipped`.
    pub fn words(&self) -> String {
        let others = JobStatus::ALL.into_iter().filter(|standing| *standing != JobStatus::Verified);
        let others = others.filter(|standing| self.get(*standing) > 0);
        let doubt = match self.exit_codes_alone {
            0 => String::new(),
            count => format!(" ({count} {EXIT_CODES_ALONE})"),
        };
        let first = format!("{} of {} verified{doubt}", self.verified, self.jobs);
        let rest = others.map(|standing| format!("{} {}", self.get(standing), standing.word()));
        [first].into_iter().chain(rest).collect::<Vec<_>>().join(", ")
    }
}

impl BatchSummary {
    /// Creates the summary of a batch from its jobs.
    pub fn new(batch: String, jobs: Vec<JobSummary>, max_usd_micros: Option<u64>, duration_ms: u64) -> Self {
        let counts = JobCounts::count(jobs.iter().map(|job| &job.outcome));
        Self {
            schema_version: BATCH_SCHEMA_VERSION,
            fledge: env!("CARGO_PKG_VERSION"),
            batch,
            exit_code: code(&jobs),
            verified: jobs.iter().all(|job| job.outcome.is_verified() || job.outcome.beaten),
            counts,
            usd_micros: jobs.iter().fold(0, |sum, job| sum.saturating_add(job.outcome.usd_micros)),
            max_usd_micros,
            duration_ms,
            resume: None,
            jobs,
        }
    }

    /// Returns true if jobs did not come to a final result.
    pub fn is_unfinished(&self) -> bool {
        self.jobs.iter().any(|job| !job.standing.stays() && !job.outcome.beaten)
    }

    /// Adds the command that continues the unfinished jobs, if there are any.
    #[must_use]
    pub fn resumed_by(self, command: Option<String>) -> Self {
        Self { resume: command.filter(|_| self.is_unfinished()), ..self }
    }

    /// Returns indented JSON with a trailing newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
        text.push('\n');
        text
    }
}

/// Returns the exit code of the batch.
fn code(jobs: &[JobSummary]) -> u8 {
    let (mut codes, mut races): (Vec<u8>, BTreeMap<&str, Vec<&JobSummary>>) = (Vec::new(), BTreeMap::new());
    for job in jobs {
        match &job.candidate_of {
            Some(race) => races.entry(race).or_default().push(job),
            None => codes.push(job.exit_code),
        }
    }
    let of_race = |all: Vec<&JobSummary>| {
        let is_won = all.iter().any(|job| job.outcome.is_verified());
        if is_won { 0 } else { mildest(all.iter().map(|job| job.exit_code)) }
    };
    codes.extend(races.into_values().map(of_race));
    gravest(codes)
}
