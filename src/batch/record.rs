//! Events of a batch, in addition to the events of its runs. They are plain data, each one line of
//! `--json`. Pure.

use super::evaluation::Evaluation;
use super::outcome::{FinishedJob, JobStatus};
use super::summary::BatchSummary;
use serde::Serialize;
use std::borrow::Cow;

/// An event of a batch in its envelope.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BatchRecord<'r> {
    /// The version of this format.
    pub schema_version: u32,
    /// The name of the batch.
    pub batch: &'r str,
    /// The job, for an event about one job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<&'r str>,
    /// The event: `type` and `data`.
    #[serde(flatten)]
    pub event: BatchEvent<'r>,
}

/// An event of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum BatchEvent<'r> {
    /// The batch begins. `over` is the number of its jobs that already ended.
    BatchStarted { jobs: &'r [String], over: usize },
    /// A run begins for a job. `tries` is the number of the try.
    JobStarted { tries: u32 },
    /// A job will be tried again after a pause. `outcome` is the result of its last run.
    JobRetried { tries: u32, wait_ms: u64, outcome: &'r FinishedJob },
    /// A job ended: its standing in one word, its exit code, one line on how it ended, and the full
    /// outcome.
    JobFinished { standing: JobStatus, exit_code: u8, says: String, outcome: &'r FinishedJob },
    /// All jobs of the batch ended.
    BatchFinished(Cow<'r, BatchSummary>),
    /// All runs of an evaluation ended.
    EvalFinished(Cow<'r, Evaluation>),
}
