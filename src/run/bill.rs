//! Usage of a run, as its parent books it for a sub-agent.

use super::Run;
use super::budget::estimated;
use crate::chat::{FileChange, Usage};
use crate::id::CallId;
use std::collections::BTreeMap;

/// The usage and the file changes of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunBill {
    /// Total usage.
    pub usage: Usage,
    /// Model calls that completed.
    pub turns: u64,
    /// Requests sent to models, including failed ones and summaries.
    pub requests: u64,
    /// Usage by model name.
    pub by_model: BTreeMap<String, Usage>,
    /// Files that its file tools changed, sorted by path.
    pub changes: Vec<FileChange>,
}

impl RunBill {
    /// Adds another bill. Of two changes to the same file, the change in `other` replaces the
    /// earlier one.
    fn add(&mut self, other: &Self) {
        self.usage.add(&other.usage);
        self.turns = self.turns.saturating_add(other.turns);
        self.requests = self.requests.saturating_add(other.requests);
        for (model, usage) in &other.by_model {
            self.by_model.entry(model.clone()).or_default().add(usage);
        }
        for change in &other.changes {
            self.changes.retain(|mine| mine.path != change.path);
            self.changes.push(change.clone());
        }
        self.changes.sort_by(|one, other| one.path.cmp(&other.path));
    }
}

impl Run {
    /// Returns the usage booked so far, including that of its sub-agents.
    pub fn bill(&self) -> RunBill {
        let ledger = &self.context.ledger;
        RunBill {
            usage: ledger.usage.total.clone(),
            turns: ledger.turns.saturating_add(ledger.child_turns),
            requests: ledger.usage.requests,
            by_model: ledger.usage.by_model.clone(),
            changes: ledger.files.values().cloned().collect(),
        }
    }

    /// Returns the final bill of a run that cannot be resumed. A model call in flight is charged
    /// the amount reserved for it, since its real cost is unknown. `children` holds the bills of
    /// sub-agents in flight.
    pub fn last_bill(&self, children: &BTreeMap<CallId, RunBill>) -> RunBill {
        let mut bill = self.bill();
        for (call, aside) in &self.context.ledger.reserved {
            if let Some(child) = children.get(call) {
                bill.add(child);
                continue;
            }
            let cost = self.context.spec.terms_of(self.context.model).price.map(|_| aside.usd_micros);
            let usage = Usage { cost_micros: cost, ..estimated(aside.input_tokens, aside.output_tokens) };
            let model = self.context.spec.models.get(self.context.model).cloned().unwrap_or_default();
            let by_model = BTreeMap::from([(model, usage.clone())]);
            bill.add(&RunBill { by_model, usage, requests: 1, ..RunBill::default() });
        }
        bill
    }
}
