//! What goes between the driver and a tool host in another process: one JSON value a line. The host's side of it is data that the agent may
//! have had a hand in: anything that is not exactly this ends the host.

use super::contract::ToolRequest;
use super::host::HostSettings;
use super::ledger::LedgerCopy;
use crate::chat::{FileChange, ToolOutcome};
use crate::id::CallId;
use serde::{Deserialize, Serialize};

/// The longest line of a host but the last one, in bytes: a bounded result and a bounded diff, escaped, or a picture.
pub(super) const LONGEST: usize = 8 * 1024 * 1024;
/// The longest last line, with what it remembers.
pub(super) const LONGEST_LEDGER: usize = 64 * 1024 * 1024;
/// The longest line to a host.
pub(super) const LONGEST_ORDER: usize = 2 * LONGEST_LEDGER;

/// What a host is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Order {
    /// First of all.
    Open(Box<Opening>),
    Call(ToolRequest),
    Cancel(CallId),
    /// Last of all: it answers with what it remembers.
    Close,
}

/// What a host begins with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    pub(super) settings: HostSettings,
    /// What the host before it remembered.
    pub(super) ledger: LedgerCopy,
    /// What was changed since.
    pub(super) changes: Vec<FileChange>,
}

/// What a host says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Word {
    /// It can be called.
    Ready,
    /// It can't, for this reason.
    Refused(String),
    Progress(CallId, String),
    Done(CallId, Box<ToolOutcome>),
    Closed(LedgerCopy),
}
