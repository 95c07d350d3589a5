//! The limits of a run and the defaults of every bound in the program, in one table.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Bounds on one run. `None` means unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Completed model calls, over all attempts.
    pub turns: u64,
    /// Input and output tokens together, over all attempts.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
    /// Time from the start until the report is written, in milliseconds.
    pub time_ms: u64,
    /// Tool calls that one turn may request. Further calls get an error result.
    pub calls_per_turn: usize,
    /// Tries of one model call before the call counts as failed for good.
    pub tries: u32,
    /// The longest pause that a provider may ask for, in milliseconds. If it asks for a longer one,
    /// the run switches to its next model or, without one, ends as blocked.
    pub max_wait_ms: u64,
    /// The first back-off pause, in milliseconds. It doubles with each try.
    pub backoff_ms: u64,
    /// Times in a row that the model is asked to continue after it reached its output limit.
    pub continuations: u32,
    /// Answers in a row to questions that the model asks in prose.
    pub queries: u32,
    /// Similar calls among recent ones that count as a loop. At half of them, the model gets a
    /// warning.
    pub loop_threshold: usize,
    /// Percentage of the model's context window at which the conversation is compacted.
    pub compact_at_percent: u64,
}

/// A limit of a run that a resume can raise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say it")]
pub enum LimitName {
    Retries,
    Turns,
    Tokens,
    Cost,
    Time,
}

impl LimitName {
    /// Returns the flag that sets the limit.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Retries => "--max-retries",
            Self::Turns => "--max-turns",
            Self::Tokens => "--max-tokens",
            Self::Cost => "--max-usd",
            Self::Time => "--max-time",
        }
    }

    /// Returns the key that sets the limit in a request.
    pub fn key(self) -> &'static str {
        match self {
            Self::Retries => "max_retries",
            Self::Turns => "max_turns",
            Self::Tokens => "max_tokens",
            Self::Cost => "max_usd",
            Self::Time => "max_time",
        }
    }
}

/// New values for the limits of a run that is taken up again. `None` keeps a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewLimits {
    /// Attempts after the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Completed model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    /// Time of work, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

impl NewLimits {
    /// The values of `max_retries`.
    pub const RETRIES: RangeInclusive<i64> = 0..=100;
    /// The values of turns and tokens.
    pub const COUNT: RangeInclusive<i64> = 1..=u32::MAX as i64;

    /// Returns true if no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets these limits in those of a run. The first are its attempts after the first one.
    pub fn apply(self, max_retries: &mut u32, limits: &mut Limits) {
        *max_retries = self.max_retries.unwrap_or(*max_retries);
        limits.turns = self.turns.unwrap_or(limits.turns);
        limits.tokens = self.tokens.or(limits.tokens);
        limits.usd_micros = self.usd_micros.or(limits.usd_micros);
        limits.time_ms = self.time_ms.unwrap_or(limits.time_ms);
    }

    /// Returns these limits without those that a run with the limits `now` has already.
    #[must_use]
    pub fn beyond(self, now: Self) -> Self {
        Self {
            max_retries: self.max_retries.filter(|_| self.max_retries != now.max_retries),
            turns: self.turns.filter(|_| self.turns != now.turns),
            tokens: self.tokens.filter(|_| self.tokens != now.tokens),
            usd_micros: self.usd_micros.filter(|_| self.usd_micros != now.usd_micros),
            time_ms: self.time_ms.filter(|_| self.time_ms != now.time_ms),
        }
    }
}

/// Checks that a number is in a range, which `u32` must include. `None` stands for an input that is
/// no whole number.
///
/// # Errors
/// The expected numbers.
pub fn check_number(number: Option<i64>, range: &RangeInclusive<i64>) -> Result<u32, String> {
    let wrong = || match *range.end() {
        end if end == i64::from(u32::MAX) => format!("expected a whole number of at least {}", range.start()),
        end => format!("expected a whole number from {} to {end}", range.start()),
    };
    number.filter(|number| range.contains(number)).and_then(|number| u32::try_from(number).ok()).ok_or_else(wrong)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 100,
            tokens: None,
            usd_micros: None,
            time_ms: 60 * 60 * 1000,
            calls_per_turn: 64,
            tries: 4,
            max_wait_ms: 120_000,
            backoff_ms: 1_000,
            continuations: 3,
            queries: 2,
            loop_threshold: 8,
            compact_at_percent: 70,
        }
    }
}

/// The longest back-off pause that fledge chooses itself.
pub const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Attempts after the first one if the gate fails.
pub const MAX_RETRIES: u32 = 3;
/// Levels of sub-agents below a run. A sub-agent at this depth cannot start others.
pub const MAX_DEPTH: u32 = 2;
/// Output tokens to reserve for a call if no maximum is known.
pub const OUTPUT_ESTIMATE: u64 = 4096;
/// Output tokens that a call may have under a budget if no maximum is configured.
pub const ANSWER: u64 = 16_384;
/// The fewest output tokens that are worth a call. A budget that leaves fewer is exhausted.
pub const LEAST_ANSWER: u64 = 1024;
/// The fewest tokens of a summary that are worth a call, reasoning included. In runs of older
/// programs, the most.
pub const SUMMARY_ANSWER: u64 = 4096;
/// The maximum number of tokens of a first summary, reasoning included. Also used if the model has
/// no known maximum.
pub const SUMMARY_ROOM: u64 = 16_384;
/// The maximum number of tokens of a summary that is requested again after one was cut off.
pub const SUMMARY_MOST: u64 = 65_536;
/// Bytes of one tool result that the model gets.
pub const MAX_RESULT: usize = 30 * 1024;
/// Bytes of feedback on a failed gate that the model gets.
pub const FEEDBACK_LIMIT: usize = 16 * 1024;
/// The default timeout of one shell call.
pub const SHELL_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The timeout of helper programs that answer at once on an idle machine: fledge's tool host,
/// bubblewrap, git.
pub const HELPER_TIMEOUT: Duration = Duration::from_secs(2 * 60);
/// The time that an MCP server has to start and to list its tools.
pub const MCP_START: Duration = Duration::from_secs(30);
/// The default timeout of one call of an MCP tool.
pub const MCP_TIMEOUT: Duration = Duration::from_secs(60);
/// The default timeout of one hook.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(60);
/// The default timeout of one lane.
pub const LANE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The time between SIGTERM and SIGKILL for a step that timed out.
pub const GRACE: Duration = Duration::from_secs(2);
/// The time between SIGTERM and SIGKILL in a cancelled run, which must end within two seconds.
pub const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// The time that a process has to finish if it outlives its step or command.
pub const LINGER: Duration = Duration::from_millis(200);
/// Bytes of one step's log on disk. A longer log loses its middle.
pub const LOG_LIMIT: u64 = 200 * 1024 * 1024;
/// The interval at which a machine reports to a server that a run is still under way.
pub const HEARTBEAT: Duration = Duration::from_secs(30);
/// The time without news after which a run of another machine counts as lost.
pub const SILENCE: Duration = Duration::from_secs(5 * 60);
/// The default lifetime of an ephemeral memory.
pub const EPHEMERAL_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The default number of tokens of memories in a first message.
pub const RECALL_TOKENS: usize = 500;
/// The maximum number of bytes of one memory.
pub const MAX_NOTE: usize = 2000;
/// The largest task, lane, parameter or configuration file that fledge reads, in bytes.
pub const MAX_SOURCE: usize = 1024 * 1024;
/// The largest cassette that fledge reads, in bytes. A recorded cassette holds everything that a
/// model wrote.
pub const MAX_CASSETTE: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_bounded_without_being_asked() {
        let Limits { turns, time_ms, tries, tokens, usd_micros, .. } = Limits::default();
        assert_eq!((turns, time_ms, tries, tokens, usd_micros), (100, 3_600_000, 4, None, None));
    }

    #[test]
    fn limits_that_a_run_has_already_are_not_new() {
        let now = NewLimits { turns: Some(9), tokens: Some(5), ..NewLimits::default() };
        assert_eq!(now.beyond(now), NewLimits::default());
        let tokens = NewLimits { tokens: Some(6), ..NewLimits::default() };
        assert_eq!(NewLimits { tokens: Some(6), ..now }.beyond(now), tokens);
        assert_eq!(tokens.beyond(NewLimits::default()), tokens);
    }

    #[test]
    fn a_cancelled_process_has_less_grace() {
        assert!(CANCEL_GRACE < GRACE && CANCEL_GRACE < Duration::from_secs(2));
    }
}
