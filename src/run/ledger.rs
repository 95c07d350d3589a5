//! What a run has used and done so far: turns, tokens, tools, files, attempts, warnings.

use crate::chat::{FileChange, ModelUsage, Reply, Usage};
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Warnings that are kept for the report; later ones are only counted.
const MAX_WARNINGS: usize = 100;

/// The books of one run. Nothing in it ever falls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ledger {
    /// Model calls that completed.
    pub(super) turns: u64,
    pub(super) usage: ModelUsage,
    /// Input and output tokens of the newest model call: how long the conversation is.
    pub(super) context_tokens: u64,
    /// By tool name.
    pub(super) tools: BTreeMap<String, ToolTally>,
    /// By path: what successful file tools did.
    pub(super) files: BTreeMap<String, FileChange>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) warnings: Vec<String>,
    pub(super) warnings_dropped: u64,
}

/// How often a tool was called, and with what luck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTally {
    /// Calls that the model asked for.
    pub called: u64,
    /// Of these, calls that ran and failed.
    pub failed: u64,
    /// Of these, calls that were not run: unknown, not allowed, not understood, or denied by a person.
    pub denied: u64,
}

/// One pass from Executing to Verifying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// What the gate said.
    pub verdict: Verdict,
}

impl Ledger {
    /// Books a completed model call. Without usage from the provider, the bytes of request and reply stand in for it.
    pub(super) fn book_reply(&mut self, reply: &Reply, request_bytes: usize) {
        const BYTES_PER_TOKEN: usize = 4;
        let estimate = || Usage {
            input_tokens: (request_bytes / BYTES_PER_TOKEN) as u64,
            output_tokens: (super::transcript::bytes_of(&reply.content) / BYTES_PER_TOKEN) as u64,
            ..Usage::default()
        };
        let usage = reply.usage.clone().unwrap_or_else(estimate);
        self.turns += 1;
        self.context_tokens = usage.total();
        self.usage.book(&reply.model, &usage);
    }

    /// Books what a sub-agent used.
    pub(super) fn book_child(&mut self, usage: &Usage) {
        self.usage.total.add(usage);
    }

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
}
