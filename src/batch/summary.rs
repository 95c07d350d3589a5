//! What a batch came to, as data: every job, counts, money, and the exit code that stands for all of them. Pure.

use super::outcome::{End, Outcome, Standing};
use crate::verdict::{gravest, mildest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of [`Summary`].
pub const BATCH_SCHEMA_VERSION: u32 = 1;

/// The doubt about a job whose gate counted no test and saw no canary.
pub(crate) const EXIT_CODES_ALONE: &str = "by exit codes alone";

/// What a batch came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The version of this form.
    pub schema_version: u32,
    /// The program that made it.
    pub fledge: &'static str,
    /// The batch.
    pub batch: String,
    /// The exit code: the gravest of its jobs'; of a race that nobody has won, the least grave one of its candidates'.
    pub exit_code: u8,
    /// Whether every job is verified that is not a beaten candidate.
    pub verified: bool,
    /// Jobs by how they ended.
    pub counts: Counts,
    /// What all runs have cost, in millionths of a US dollar, as far as that is known.
    pub usd_micros: u64,
    /// What they might cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usd_micros: Option<u64>,
    /// From the start of this process to the end of the last job, in milliseconds.
    pub duration_ms: u64,
    /// The jobs, in the order of the plan.
    pub jobs: Vec<JobSummary>,
}

/// Jobs by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the fields are named after the words of `Standing`")]
pub struct Counts {
    pub jobs: usize,
    pub verified: usize,
    /// Those of `verified` whose gate passed by exit codes alone.
    pub exit_codes_alone: usize,
    pub failed: usize,
    pub errored: usize,
    pub cancelled: usize,
    pub skipped: usize,
    pub not_started: usize,
}

/// What a job came to, with the task that it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct JobSummary {
    /// The task's file.
    pub task: String,
    /// The folder of its repository.
    pub repository: String,
    /// The job that it is a candidate for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_of: Option<String>,
    /// The models that it has as a candidate or for a comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// How it ended, in one word.
    pub standing: Standing,
    /// The exit code that a run of its own would have had.
    pub exit_code: u8,
    /// One line on how it ended.
    pub says: String,
    /// Where its report is, of a job that has a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl JobSummary {
    /// The one of an outcome.
    pub fn new(outcome: Outcome, task: String, repository: String, report: Option<String>) -> Self {
        let (standing, exit_code, says) = (outcome.standing(), outcome.exit_code(), outcome.says());
        let (candidate_of, models) = (None, Vec::new());
        Self { task, repository, candidate_of, models, standing, exit_code, says, report, outcome }
    }

    /// The same of one of several runs of a task: the job that it is a candidate for, and its models.
    #[must_use]
    pub fn among(self, candidate_of: Option<String>, models: Vec<String>) -> Self {
        Self { candidate_of, models, ..self }
    }

    /// How it ended, as a row of a table says it: of candidates also who has won.
    pub fn word(&self) -> &'static str {
        match (&self.candidate_of, self.standing) {
            (Some(_), Standing::Verified) if self.outcome.beaten => "beaten",
            (Some(_), Standing::Verified) => "won",
            (_, standing) => standing.word(),
        }
    }

    /// The remark of a row of a table: why the job has not succeeded, or that its gate passed by
    /// exit codes alone; empty otherwise.
    pub fn remark(&self) -> &str {
        match self.standing {
            Standing::Verified if !self.outcome.beaten => self.doubt().unwrap_or_default(),
            _ => &self.says,
        }
    }

    /// The doubt about a verified job.
    pub fn doubt(&self) -> Option<&'static str> {
        self.outcome.is_by_exit_codes_alone().then_some(EXIT_CODES_ALONE)
    }

    /// Attempts, model turns and milliseconds of its last run; nothing without one.
    pub fn effort(&self) -> Option<(u64, u64, u64)> {
        match &self.outcome.end {
            End::Ran(ran) => Some((ran.attempts, ran.turns, ran.duration_ms)),
            End::NotRun(_) => None,
        }
    }
}

impl Counts {
    /// Of these.
    pub fn of<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            counts.jobs += 1;
            counts.exit_codes_alone += usize::from(outcome.is_by_exit_codes_alone() && outcome.is_verified());
            *match outcome.standing() {
                Standing::Verified => &mut counts.verified,
                Standing::Failed => &mut counts.failed,
                Standing::Errored => &mut counts.errored,
                Standing::Cancelled => &mut counts.cancelled,
                Standing::Skipped => &mut counts.skipped,
                Standing::NotStarted => &mut counts.not_started,
            } += 1;
        }
        counts
    }

    /// How many ended like this.
    pub fn get(&self, standing: Standing) -> usize {
        match standing {
            Standing::Verified => self.verified,
            Standing::Failed => self.failed,
            Standing::Errored => self.errored,
            Standing::Cancelled => self.cancelled,
            Standing::Skipped => self.skipped,
            Standing::NotStarted => self.not_started,
        }
    }

    /// In words: `3 of 5 verified (2 by exit codes alone), 1 failed, 1 skipped`.
    pub fn words(&self) -> String {
        let others = Standing::ALL.into_iter().filter(|standing| *standing != Standing::Verified);
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

impl Summary {
    /// Of these jobs.
    pub fn new(batch: String, jobs: Vec<JobSummary>, max_usd_micros: Option<u64>, duration_ms: u64) -> Self {
        let counts = Counts::of(jobs.iter().map(|job| &job.outcome));
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
            jobs,
        }
    }

    /// As JSON, indented, with a line end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
        text.push('\n');
        text
    }
}

/// The exit code of all of them.
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
