//! The protocol between the driver and a tool host in another process: one JSON value per line. The
//! agent may have influenced what a host sends, so any deviation from the protocol ends the host.

use super::contract::ToolRequest;
use super::host::HostSettings;
use super::ledger::LedgerCopy;
use crate::chat::{FileChange, ToolOutcome};
use crate::id::CallId;
use serde::{Deserialize, Serialize};

/// The longest line from a host except its last, in bytes: a bounded result and diff, escaped, or a
/// picture.
pub(super) const LONGEST: usize = 8 * 1024 * 1024;
/// The longest last line from a host, which contains its ledger, in bytes.
pub(super) const LONGEST_LEDGER: usize = 64 * 1024 * 1024;
/// The longest line to a host, in bytes.
pub(super) const LONGEST_ORDER: usize = 2 * LONGEST_LEDGER;

/// A message to a host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum HostOrder {
    /// The first message.
    Open(Box<HostOpening>),
    Call(ToolRequest),
    Cancel(CallId),
    /// The last message. The host answers with its ledger.
    Close,
}

/// The state that a host starts with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostOpening {
    pub(super) settings: HostSettings,
    /// The ledger of the previous host.
    pub(super) ledger: LedgerCopy,
    /// The changes made since that ledger.
    pub(super) changes: Vec<FileChange>,
}

/// A message from a host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum HostMessage {
    /// The host accepts calls.
    Ready,
    /// The host cannot start, for this reason.
    Refused(String),
    Progress(CallId, String),
    Done(CallId, Box<ToolOutcome>),
    Closed(LedgerCopy),
}
