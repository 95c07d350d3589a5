//! What `fledge run` takes for many tasks, and how that goes together with what a batch file says.

use crate::batch::Bounds;
use crate::batch::plan::{BatchFile, MOST_AT_ONCE, MOST_RETRIES};
use crate::duration::parse_duration;
use crate::task::CANDIDATES;
use clap::Args;
use std::num::NonZeroUsize;
use std::time::Duration;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Many tasks")]
pub(in crate::cli) struct BatchArguments {
    /// Runs at once [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_AT_ONCE))]
    jobs: Option<u32>,
    /// End all of it with the first task that is not verified
    #[arg(long)]
    fail_fast: bool,
    /// Run the others all the same (this is the default)
    #[arg(long, conflicts_with = "fail_fast")]
    keep_going: bool,
    /// Further runs for a task whose run ended in an error; what a gate has said is never tried again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MOST_RETRIES))]
    retries: Option<u32>,
    /// How long to wait before each of these [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = delay)]
    retry_delay: Option<Duration>,
    /// Runs of the task that race, each in a worktree: the first one that is verified ends the others. It costs the tokens of all of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(CANDIDATES))]
    pub(super) candidates: Option<u32>,
    /// Go on with the newest batch of these tasks: what is finished is not done again
    #[arg(long, conflicts_with = "resume_or_start")]
    pub(super) resume: bool,
}

fn delay(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|why| why.to_string())
}

impl BatchArguments {
    /// Whether anything is said that is only of use for many tasks.
    pub(in crate::cli) fn is_any(&self) -> bool {
        let Self { jobs, fail_fast, keep_going, retries, retry_delay, candidates, resume } = self;
        let is_said = jobs.is_some() || retries.is_some() || retry_delay.is_some() || candidates.is_some();
        is_said || *fail_fast || *keep_going || *resume
    }

    /// Whether it is said how many runs there are at once.
    pub(super) fn has_jobs(&self) -> bool {
        self.jobs.is_some()
    }

    /// A flag that is of no use where every run is measured.
    pub(super) fn not_for_eval(&self) -> Option<&'static str> {
        let flags = [("--fail-fast", self.fail_fast), ("--candidates", self.candidates.is_some())];
        flags.iter().find(|(_, is_said)| *is_said).map(|(flag, _)| *flag)
    }

    /// The bounds: of the flags, then of the file.
    pub(super) fn bounds(&self, file: &BatchFile, usd_micros: Option<u64>) -> Bounds {
        let usual = Bounds::default();
        let jobs = self.jobs.and_then(|jobs| usize::try_from(jobs).ok()).or(file.jobs);
        let fail_fast = if self.keep_going { Some(false) } else { self.fail_fast.then_some(true) };
        Bounds {
            jobs: jobs.unwrap_or_else(cores),
            fail_fast: fail_fast.or(file.fail_fast).unwrap_or(usual.fail_fast),
            retries: self.retries.or(file.retries).unwrap_or(usual.retries),
            retry_delay: self.retry_delay.or(file.retry_delay).unwrap_or(usual.retry_delay),
            usd_micros: usd_micros.or(file.usd_micros),
        }
    }
}

/// Processors that may be used.
pub(in crate::cli) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
