//! The flags that set new limits for an earlier run.

use super::numbers::whole_number;
use super::options::dollars;
use crate::duration::parse_duration;
use crate::limits::NewLimits;
use crate::task::Task;
use clap::Args;
use std::time::Duration;

// New limits for an earlier run.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct LimitArguments {
    /// Allow N further attempts in all if the gate fails, 0 to 100
    #[arg(help_heading = "Limits", long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(NewLimits::RETRIES))]
    max_retries: Option<u32>,
    /// Allow N model calls in all
    #[arg(help_heading = "Limits", long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(NewLimits::COUNT))]
    max_turns: Option<u32>,
    /// Allow N tokens in all, input and output together
    #[arg(help_heading = "Limits", long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(NewLimits::COUNT))]
    max_tokens: Option<u32>,
    /// Allow this cost in all, in US dollars, e.g. 2.50
    #[arg(help_heading = "Limits", long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    max_usd: Option<u64>,
    /// Allow this time of work in all, e.g. 90m
    #[arg(help_heading = "Limits", long, value_name = "DURATION", allow_hyphen_values = true, value_parser = parse_duration)]
    max_time: Option<Duration>,
}

impl LimitArguments {
    /// Returns the limits that are given.
    pub(super) fn limits(&self) -> NewLimits {
        NewLimits {
            max_retries: self.max_retries,
            turns: self.max_turns.map(u64::from),
            tokens: self.max_tokens.map(u64::from),
            usd_micros: self.max_usd,
            time_ms: self.max_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// Returns the task with these limits instead of its own.
    pub(super) fn say(&self, mut task: Task) -> Task {
        task.set_limits(self.limits());
        task
    }
}
