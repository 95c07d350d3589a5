//! What a run may spend, and the defaults of every bound in the program, in one table.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bounds on one run. `None` means unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Model calls that completed, over all attempts.
    pub turns: u64,
    /// Input and output tokens together, over all attempts.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
    /// Time from start to the moment the report is written, in milliseconds.
    pub time_ms: u64,
    /// Tool calls that one turn may ask for; further ones get an error result.
    pub calls_per_turn: usize,
    /// How often one model call is tried before it counts as failed for good.
    pub tries: u32,
    /// The longest pause a provider may ask for, in milliseconds; a longer one ends the run as blocked.
    pub max_wait_ms: u64,
    /// The first back-off pause in milliseconds; it doubles with each try.
    pub backoff_ms: u64,
    /// Times in a row that a model is asked to go on after its output limit.
    pub continuations: u32,
    /// Answers given in a row to things asked for in prose.
    pub queries: u32,
    /// Alike calls among recent ones that make a loop; the model is told at half of it.
    pub loop_threshold: usize,
    /// Percent of the model's context window at which the conversation is shortened.
    #[serde(default = "compact_at_percent")]
    pub compact_at_percent: u64,
}

fn compact_at_percent() -> u64 {
    70
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
            compact_at_percent: compact_at_percent(),
        }
    }
}

/// The longest back-off pause that fledge chooses by itself.
pub const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Further attempts after the first one when the gate says no.
pub const MAX_RETRIES: u32 = 3;
/// Sub-agents of sub-agents of a run: a run that is so deep has none.
pub const MAX_DEPTH: u32 = 2;
/// Tokens of one answer that are set aside where nobody says how long it may be.
pub const OUTPUT_ESTIMATE: u64 = 4096;
/// Tokens that one answer may have under a budget, where nobody says how long it may be.
pub const ANSWER: u64 = 16_384;
/// Tokens of an answer below which a call is of no use: a budget that leaves less is at its end.
pub const LEAST_ANSWER: u64 = 1024;
/// Tokens that the summary of a conversation may have, what is thought before it included.
pub const SUMMARY_ANSWER: u64 = 4096;
/// The same where what is thought may take most of it: of a model of which nobody knows how much it can write, and at most.
pub const SUMMARY_ROOM: u64 = 16_384;
/// The most tokens of a summary that is asked for again after one that was cut off.
pub const SUMMARY_MOST: u64 = 65_536;
/// The same in runs of older programs, which only reckoned with it.
pub const SUMMARY_TOKENS: u64 = 2048;
/// Bytes of one tool result that go to the model.
pub const MAX_RESULT: usize = 30 * 1024;
/// Bytes of feedback that a failed gate may send to the model.
pub const FEEDBACK_LIMIT: usize = 16 * 1024;
/// The default time of one shell call.
pub const SHELL_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The longest wait for a program that helps fledge and answers at once where the machine is idle: its tool host, bubblewrap, git.
pub const HELPER_TIMEOUT: Duration = Duration::from_secs(2 * 60);
/// What an MCP server has to begin and to name its tools.
pub const MCP_START: Duration = Duration::from_secs(30);
/// The default time of one call of an MCP tool.
pub const MCP_TIMEOUT: Duration = Duration::from_secs(60);
/// The default time of one hook.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(60);
/// The default time of one lane.
pub const LANE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Time that a process has between SIGTERM and SIGKILL when a step times out.
pub const GRACE: Duration = Duration::from_secs(2);
/// The same when the run was cancelled: a cancelled run is over within two seconds.
pub const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// What a process that outlives its step or command has to finish what it is doing.
pub const LINGER: Duration = Duration::from_millis(200);
/// Bytes on disk that one step's log may have; its middle is dropped above that.
pub const LOG_LIMIT: u64 = 200 * 1024 * 1024;
/// How often a machine says of a run that it still goes on, where a server is told of it.
pub const HEARTBEAT: Duration = Duration::from_secs(30);
/// A run of another machine counts as lost after this time without a word of it.
pub const SILENCE: Duration = Duration::from_secs(5 * 60);
/// How long an ephemeral memory lives.
pub const EPHEMERAL_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Tokens of memories in a first message.
pub const RECALL_TOKENS: usize = 500;
/// Bytes of one memory.
pub const MAX_NOTE: usize = 2000;
/// The largest task, lane, parameter or configuration file that is read, in bytes.
pub const MAX_SOURCE: usize = 1024 * 1024;
/// The largest cassette that is read, in bytes: one that was recorded has all that a model has written.
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
    fn a_cancelled_process_has_less_grace() {
        assert!(CANCEL_GRACE < GRACE && CANCEL_GRACE < Duration::from_secs(2));
    }
}
