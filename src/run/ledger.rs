//! Records of a run so far: turns, tokens, tools, files, attempts, warnings.

use super::budget::Reserve;
use crate::chat::{FileChange, ModelUsage};
use crate::id::CallId;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Warnings kept for the report. Later ones are only counted.
const MAX_WARNINGS: usize = 100;

/// The records of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunLedger {
    /// Model calls that completed.
    pub(super) turns: u64,
    pub(super) usage: ModelUsage,
    /// Input and output tokens of the newest model call: the length of the conversation at that
    /// time. 0: unknown.
    pub(super) context_tokens: u64,
    /// The bytes of the conversation at that time, with the answer.
    pub(super) context_bytes: usize,
    /// The tokens of the conversation after the last summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shortened_to: Option<u64>,
    /// Model calls that sub-agents completed.
    pub(super) child_turns: u64,
    /// Amounts reserved for calls in flight.
    pub(super) reserved: Vec<(CallId, Reserve)>,
    /// Tallies by tool name.
    pub(super) tools: BTreeMap<String, ToolTally>,
    /// Changes of successful file tools, by path.
    pub(super) files: BTreeMap<String, FileChange>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) warnings: Vec<String>,
    pub(super) warnings_dropped: u64,
    /// Notes of hooks to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) hooks: Vec<String>,
    /// Protected paths that tools refused to change, each with its rule.
    pub(super) refused: BTreeMap<String, String>,
}

/// Counts of calls of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ToolTally {
    /// Calls that the model asked for.
    pub called: u64,
    /// Calls that ran and failed.
    pub failed: u64,
    /// Calls that did not run: unknown, not allowed, malformed, or denied by a person.
    pub denied: u64,
}

/// One pass from Executing to Verifying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// The verdict of the gate.
    pub verdict: Verdict,
}

impl RunLedger {
    pub(super) fn tally(&mut self, tool: &str) -> &mut ToolTally {
        self.tools.entry(tool.to_owned()).or_default()
    }

    pub(super) fn changed(&mut self, change: &FileChange) {
        self.files.insert(change.path.clone(), change.clone());
    }

    pub(super) fn warn(&mut self, message: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(message.to_owned());
        } else {
            self.warnings_dropped += 1;
        }
    }

    /// Keeps a note of a hook to the model.
    pub(super) fn hook_said(&mut self, note: &str) {
        if self.hooks.len() < MAX_WARNINGS {
            self.hooks.push(note.to_owned());
        }
    }

    /// Records that a tool refused to change a protected path.
    pub(super) fn refused(&mut self, path: &str, rule: &str) {
        if self.refused.len() < MAX_WARNINGS {
            self.refused.entry(path.to_owned()).or_insert_with(|| rule.to_owned());
        }
    }
}
