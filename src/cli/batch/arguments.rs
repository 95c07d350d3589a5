//! Arguments of `fledge run` for several tasks. They override the keys of a batch file.

use super::super::numbers::whole_number;
use crate::batch::BatchLimits;
use crate::batch::plan::{BatchFile, MOST_AT_ONCE, MOST_RETRIES};
use crate::duration::parse_duration;
use crate::process::cores;
use crate::task::CANDIDATES;
use clap::Args;
use std::time::Duration;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Many tasks")]
pub(in crate::cli) struct BatchArguments {
    /// Run at most N tasks in parallel [default: number of processors]
    ///
    /// For the candidates of one task, the default is at least their number.
    #[arg(help_heading = "Batch", long, short, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(1..=MOST_AT_ONCE))]
    jobs: Option<u32>,
    /// End the batch at the first task that is not verified
    #[arg(help_heading = "Batch", long)]
    fail_fast: bool,
    /// Run the remaining tasks even if one fails (default)
    ///
    /// Overrides `fail_fast` of a batch file.
    #[arg(help_heading = "Batch", long, conflicts_with = "fail_fast")]
    keep_going: bool,
    /// Retry a task up to N times if its run ended in an error, 0 to 20 [default: 0]
    ///
    /// A verdict of the gate is a result and is never retried.
    #[arg(help_heading = "Batch", long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(0..=MOST_RETRIES))]
    retries: Option<u32>,
    /// Pause before each retry, e.g. 30s [default: 10s]
    #[arg(help_heading = "Batch", long, value_name = "TIME", allow_hyphen_values = true, value_parser = delay)]
    retry_delay: Option<Duration>,
    /// Race N runs of the task, 2 to 16; the first verified run ends the others
    ///
    /// Each run has its own worktree. All runs cost tokens.
    #[arg(help_heading = "Batch", long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(CANDIDATES))]
    pub(super) candidates: Option<u32>,
    /// Resume the newest batch of these tasks; finished jobs are not repeated
    #[arg(help_heading = "Batch", long, conflicts_with = "resume_or_start")]
    pub(super) resume: bool,
}

fn delay(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|why| why.to_string())
}

impl BatchArguments {
    /// Returns true if an argument is set that makes sense for several tasks only.
    pub(in crate::cli) fn is_any(&self) -> bool {
        let Self { jobs, fail_fast, keep_going, retries, retry_delay, candidates, resume } = self;
        let is_said = jobs.is_some() || retries.is_some() || retry_delay.is_some() || candidates.is_some();
        is_said || *fail_fast || *keep_going || *resume
    }

    /// Returns true if `--jobs` is set.
    pub(super) fn has_jobs(&self) -> bool {
        self.jobs.is_some()
    }

    /// Returns a flag that is set and has no meaning in an evaluation.
    pub(in crate::cli) fn not_for_eval(&self) -> Option<&'static str> {
        let flags = [("--fail-fast", self.fail_fast), ("--candidates", self.candidates.is_some())];
        flags.iter().find(|(_, is_said)| *is_said).map(|(flag, _)| *flag)
    }

    /// Returns the bounds. The flags override the file.
    pub(super) fn bounds(&self, file: &BatchFile, usd_micros: Option<u64>) -> BatchLimits {
        let usual = BatchLimits::default();
        let jobs = self.jobs.and_then(|jobs| usize::try_from(jobs).ok()).or(file.jobs);
        let fail_fast = if self.keep_going { Some(false) } else { self.fail_fast.then_some(true) };
        BatchLimits {
            jobs: jobs.unwrap_or_else(cores),
            fail_fast: fail_fast.or(file.fail_fast).unwrap_or(usual.fail_fast),
            retries: self.retries.or(file.retries).unwrap_or(usual.retries),
            retry_delay: self.retry_delay.or(file.retry_delay).unwrap_or(usual.retry_delay),
            usd_micros: usd_micros.or(file.usd_micros),
        }
    }
}
