//! What goes over the wire, as JSON.

use crate::id::RunId;
use crate::store::{Delivery, Outcome, Record, RunHead, TaskCopy};
use serde::{Deserialize, Serialize};

/// The version of this form.
pub const WIRE_VERSION: u32 = 1;
/// Bytes that a parcel may have as JSON. A server takes a little more.
pub const LARGEST_PARCEL: usize = 6 * 1024 * 1024;

/// A piece of a run's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Parcel {
    /// The version of this form.
    pub schema_version: u32,
    /// The machine that drives the run.
    pub machine: String,
    /// The run.
    pub run: RunId,
    /// What it was begun with; only where `after` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Begin>,
    /// The number of the record before the first one; 0 for the head of the run.
    pub after: u64,
    /// The link of that record, in hexadecimal.
    pub link: String,
    /// Records, in order and without a gap.
    pub records: Vec<WireRecord>,
    /// How the run ended with the last of them, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// What a run was begun with, as its chain begins with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Begin {
    /// Its head.
    #[cfg_attr(feature = "cli", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub head: RunHead,
    /// Its task.
    #[cfg_attr(feature = "cli", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub task: TaskCopy,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WireRecord {
    /// Its number, from 1.
    pub seq: u64,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// What kind of event it is.
    pub kind: String,
    /// The event, as a text of JSON: byte by byte what the link is over.
    pub data: String,
    /// Its link, in hexadecimal.
    pub link: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct End {
    /// Milliseconds since 1970.
    pub ended_at_ms: i64,
    /// The reason, by its name.
    pub reason: String,
    /// The exit code.
    pub exit_code: u8,
    /// Whether the work counts.
    pub verified: bool,
    /// Whether somebody asked for it to stop.
    pub cancelled: bool,
    /// How often the gate was reached.
    pub attempts: u64,
    /// Model calls that completed.
    pub turns: u64,
    /// Tokens read by models, cached ones included.
    pub tokens_in: u64,
    /// Tokens written by models.
    pub tokens_out: u64,
    /// Tokens that came from a provider's cache.
    pub tokens_cached: u64,
    /// The price in millionths of a US dollar, where it is known.
    pub cost_micros: Option<u64>,
    /// What was done, in one line.
    pub summary: String,
}

/// What a server has taken: it is safe there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Receipt {
    /// The run.
    pub run: RunId,
    /// The number of the last record of the parcel.
    pub upto: u64,
    /// The link of that record, in hexadecimal.
    pub link: String,
    /// Whether the end of the run was in the parcel.
    pub end: bool,
}

/// What a refusal says beside its words. Nothing of it has to be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// For people.
    #[serde(default)]
    pub detail: String,
    /// The number of the record from which on it is to be sent again; 1 for all of the run.
    #[serde(default)]
    pub send_from: Option<u64>,
}

impl Parcel {
    /// The number of its last record; that before the first one where it has none.
    pub fn last(&self) -> u64 {
        self.records.last().map_or(self.after, |record| record.seq)
    }

    /// What has to be answered for it to count as sent.
    pub fn receipt(&self) -> Receipt {
        let link = self.records.last().map_or(&self.link, |record| &record.link).clone();
        Receipt { run: self.run.clone(), upto: self.last(), link, end: self.end.is_some() }
    }

    /// As it is kept.
    pub fn delivery(self) -> Delivery {
        let Self { machine, run, begin, after, link, records, end, schema_version: _ } = self;
        let record = |WireRecord { seq, at_ms, kind, data, link }| (Record { seq, at_ms, kind, data }, link);
        Delivery {
            run,
            machine,
            begin: begin.map(|Begin { head, task }| (head, task)),
            after,
            link,
            records: records.into_iter().map(record).collect(),
            end: end.map(Outcome::from),
        }
    }
}

impl From<End> for Outcome {
    fn from(end: End) -> Self {
        let End { ended_at_ms, reason, exit_code, verified, cancelled, attempts, turns, tokens_in, tokens_out, .. } =
            end;
        let End { tokens_cached, cost_micros, summary, .. } = end;
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

impl From<Outcome> for End {
    fn from(outcome: Outcome) -> Self {
        let Outcome {
            ended_at_ms, reason, exit_code, verified, cancelled, attempts, turns, tokens_in, tokens_out, ..
        } = outcome;
        let Outcome { tokens_cached, cost_micros, summary, .. } = outcome;
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
