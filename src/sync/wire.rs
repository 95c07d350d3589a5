//! The messages between sender and server, as JSON.

use crate::id::RunId;
use crate::store::{JournalRecord, RunHead, RunOutcome, SyncDelivery, TaskCopy};
use serde::{Deserialize, Serialize};

/// The version of the message format.
pub const WIRE_VERSION: u32 = 1;
/// The maximum number of bytes of a parcel as JSON. A server accepts a little more.
pub const LARGEST_PARCEL: usize = 6 * 1024 * 1024;

/// A piece of a run's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SyncBatch {
    /// The version of the message format.
    pub schema_version: u32,
    /// The machine that drives the run.
    pub machine: String,
    /// The run.
    pub run: RunId,
    /// The start of the run; only if `after` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<SyncBegin>,
    /// The number of the record before the first one in `records`; 0 for the head of the run.
    pub after: u64,
    /// The link of that record, in hexadecimal.
    pub link: String,
    /// The records, in order and without a gap.
    pub records: Vec<WireRecord>,
    /// The outcome of the run, if it ended with the last record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<SyncEnd>,
}

/// The start of a run, and of its chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SyncBegin {
    /// The run's head.
    #[cfg_attr(feature = "cli", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub head: RunHead,
    /// The run's task.
    #[cfg_attr(feature = "cli", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub task: TaskCopy,
}

/// A record of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WireRecord {
    /// The record's number, from 1.
    pub seq: u64,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// The kind of the event.
    pub kind: String,
    /// The event as JSON text, byte for byte as the link covers it.
    pub data: String,
    /// The record's link, in hexadecimal.
    pub link: String,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SyncEnd {
    /// The end of the run, in milliseconds since 1970.
    pub ended_at_ms: i64,
    /// The name of the reason.
    pub reason: String,
    /// The exit code.
    pub exit_code: u8,
    /// True if the work counts as verified.
    pub verified: bool,
    /// True if a stop was requested.
    pub cancelled: bool,
    /// The number of times that the run reached the gate.
    pub attempts: u64,
    /// The number of completed model calls.
    pub turns: u64,
    /// Tokens read by models, cached ones included.
    pub tokens_in: u64,
    /// Tokens written by models.
    pub tokens_out: u64,
    /// Tokens that came from a provider's cache.
    pub tokens_cached: u64,
    /// The price in millionths of a US dollar, if known.
    pub cost_micros: Option<u64>,
    /// A summary of the work, in one line.
    pub summary: String,
}

/// A server's receipt: the parcel is safe there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SyncReceipt {
    /// The run.
    pub run: RunId,
    /// The number of the last record of the parcel.
    pub upto: u64,
    /// The link of that record, in hexadecimal.
    pub link: String,
    /// True if the parcel contained the end of the run.
    pub end: bool,
}

/// The body of a refusal. Every field is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRefusal {
    /// A message for people.
    #[serde(default)]
    pub detail: String,
    /// The number of the first record to send again; 1 for the whole run.
    #[serde(default)]
    pub send_from: Option<u64>,
}

impl SyncBatch {
    /// Returns the number of the last record, or `after` if the parcel has none.
    pub fn last(&self) -> u64 {
        self.records.last().map_or(self.after, |record| record.seq)
    }

    /// Returns the receipt that the server must answer for the parcel to count as sent.
    pub fn receipt(&self) -> SyncReceipt {
        let link = self.records.last().map_or(&self.link, |record| &record.link).clone();
        SyncReceipt { run: self.run.clone(), upto: self.last(), link, end: self.end.is_some() }
    }

    /// Converts the parcel for the store.
    pub fn delivery(self) -> SyncDelivery {
        let Self { machine, run, begin, after, link, records, end, schema_version: _ } = self;
        let record = |WireRecord { seq, at_ms, kind, data, link }| (JournalRecord { seq, at_ms, kind, data }, link);
        SyncDelivery {
            run,
            machine,
            begin: begin.map(|SyncBegin { head, task }| (head, task)),
            after,
            link,
            records: records.into_iter().map(record).collect(),
            end: end.map(RunOutcome::from),
        }
    }
}

impl From<SyncEnd> for RunOutcome {
    fn from(end: SyncEnd) -> Self {
        let SyncEnd {
            ended_at_ms, reason, exit_code, verified, cancelled, attempts, turns, tokens_in, tokens_out, ..
        } = end;
        let SyncEnd { tokens_cached, cost_micros, summary, .. } = end;
        Self {
            ended_at_ms,
            reason,
            exit_code,
            verified,
            cancelled,
            attempts,
            turns,
            tokens_in,
            tokens_out,
            tokens_cached,
            cost_micros,
            summary,
        }
    }
}

impl From<RunOutcome> for SyncEnd {
    fn from(outcome: RunOutcome) -> Self {
        let RunOutcome {
            ended_at_ms,
            reason,
            exit_code,
            verified,
            cancelled,
            attempts,
            turns,
            tokens_in,
            tokens_out,
            ..
        } = outcome;
        let RunOutcome { tokens_cached, cost_micros, summary, .. } = outcome;
        Self {
            ended_at_ms,
            reason,
            exit_code,
            verified,
            cancelled,
            attempts,
            turns,
            tokens_in,
            tokens_out,
            tokens_cached,
            cost_micros,
            summary,
        }
    }
}
