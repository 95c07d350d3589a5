//! What a batch tells while it runs, beside the events of its runs: plain data, of which each is a line of `--json`. Pure.

use super::evaluation::Evaluation;
use super::outcome::{Outcome, Standing};
use super::summary::Summary;
use serde::Serialize;
use std::borrow::Cow;

/// An event of a batch in its envelope.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BatchRecord<'r> {
    /// The version of this form.
    pub schema_version: u32,
    /// The batch.
    pub batch: &'r str,
    /// The job that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<&'r str>,
    /// The event: `type` and `data`.
    #[serde(flatten)]
    pub event: BatchEvent<'r>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum BatchEvent<'r> {
    /// It begins. Of these jobs so many are over already.
    BatchStarted { jobs: &'r [String], over: usize },
    /// A run begins for a job, for the so-manieth time.
    JobStarted { tries: u32 },
    /// A job is tried once more after so many milliseconds: this is what its run came to.
    JobRetried { tries: u32, wait_ms: u64, outcome: &'r Outcome },
    /// A job is over: how, in one word, its exit code, one line on how it ended, and everything else.
    JobFinished { standing: Standing, exit_code: u8, says: String, outcome: &'r Outcome },
    /// All of them are over.
    BatchFinished(Cow<'r, Summary>),
    /// All runs of an evaluation are over.
    EvalFinished(Cow<'r, Evaluation>),
}
