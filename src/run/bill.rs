//! What a run has used, for whoever began it as a sub-agent: the bill that its parent books.

use super::Run;
use super::budget::estimated;
use crate::chat::{FileChange, Usage};
use crate::id::CallId;
use std::collections::BTreeMap;

/// What a run has used and changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bill {
    /// All of it together.
    pub usage: Usage,
    /// Model calls that completed.
    pub turns: u64,
    /// All that was asked of models: also what came to nothing, and summaries.
    pub requests: u64,
    /// By model.
    pub by_model: BTreeMap<String, Usage>,
    /// What its file tools changed, sorted by path.
    pub changes: Vec<FileChange>,
}

impl Bill {
    /// Adds another one. What was changed last in a file stands.
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
    /// What was booked so far, that of its sub-agents included.
    pub fn bill(&self) -> Bill {
        let ledger = &self.context.ledger;
        Bill {
            usage: ledger.usage.total.clone(),
            turns: ledger.turns.saturating_add(ledger.child_turns),
            requests: ledger.usage.requests,
            by_model: ledger.usage.by_model.clone(),
            changes: ledger.files.values().cloned().collect(),
        }
    }

    /// The bill of a run that nobody can go on with. A model call in flight is charged what was set aside for it, as nobody knows what it
    /// cost; of its sub-agents in flight, `children` has the bills.
    pub fn last_bill(&self, children: &BTreeMap<CallId, Bill>) -> Bill {
        let mut bill = self.bill();
        for (call, aside) in &self.context.ledger.reserved {
            if let Some(child) = children.get(call) {
                bill.add(child);
                continue;
            }
            let cost = self.context.charter.terms_of(self.context.model).price.map(|_| aside.usd_micros);
            let usage = Usage { cost_micros: cost, ..estimated(aside.input_tokens, aside.output_tokens) };
            let model = self.context.charter.models.get(self.context.model).cloned().unwrap_or_default();
            let by_model = BTreeMap::from([(model, usage.clone())]);
            bill.add(&Bill { by_model, usage, requests: 1, ..Bill::default() });
        }
        bill
    }
}
