//! What a call to a model has used and said so far, for one that breaks off, or is dropped before it can say so itself.

use crate::chat::{Block, Delta, ModelError, Spent};
use std::sync::{Mutex, PoisonError};

/// Reads along while an answer comes.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Nothing, as long as the request is not on its way.
    read: Mutex<Option<Spent>>,
    said: Mutex<Vec<Block>>,
}

impl Meter {
    /// Takes note of a piece; gives it back where it is one to be shown.
    pub(super) fn read(&self, delta: Delta) -> Option<Delta> {
        if !matches!(delta, Delta::Spent(_)) {
            add(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner), &delta);
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match &delta {
            Delta::Text(text) | Delta::Thinking(text) => text.len(),
            Delta::ToolCall(call) => call.input.to_value().to_string().len(),
            Delta::Spent(spent) => {
                let known = read.take().map_or(0, |known| known.bytes);
                *read = Some(Spent { bytes: known.max(spent.bytes), ..spent.clone() });
                return None;
            }
        };
        read.get_or_insert_default().bytes += bytes as u64;
        Some(delta)
    }

    /// A failure of the call, with what was said before it.
    pub(super) fn broken(&self, error: ModelError) -> ModelError {
        let said = || std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        let spent = error.spent.map(|spent| Box::new(Spent { said: said().into(), ..*spent }));
        ModelError { spent, ..error }
    }

    /// What it has used by now; `None`: nothing, as it has not begun.
    pub(super) fn spent(&self) -> Option<Spent> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Adds a piece to what was said.
fn add(said: &mut Vec<Block>, delta: &Delta) {
    match (said.last_mut(), delta) {
        (Some(Block::Text { text }), Delta::Text(more))
        | (Some(Block::Thinking { text, .. }), Delta::Thinking(more)) => {
            text.push_str(more);
        }
        (_, Delta::Text(text)) => said.push(Block::Text { text: text.clone() }),
        (_, Delta::Thinking(text)) => said.push(Block::Thinking { text: text.clone(), opaque: None }),
        (_, Delta::ToolCall(call)) => said.push(Block::ToolUse(call.clone())),
        (_, Delta::Spent(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Usage;

    #[test]
    fn what_a_dropped_call_has_used_is_what_was_counted_and_what_was_heard() {
        let meter = Meter::default();
        assert_eq!(meter.spent(), None, "it waits for its turn");
        assert_eq!(meter.read(Delta::Spent(Spent::default())), None);
        assert_eq!(meter.spent(), Some(Spent::default()));
        let usage = Some(Usage { input_tokens: 9, output_tokens: 1, ..Usage::default() });
        let counted = Spent { model: "m".into(), usage, bytes: 0, ..Spent::default() };
        assert_eq!(meter.read(Delta::Spent(counted.clone())), None);
        assert_eq!(meter.read(Delta::Text("four".into())), Some(Delta::Text("four".into())));
        assert_eq!(meter.spent(), Some(Spent { bytes: 4, ..counted }));
    }
}
