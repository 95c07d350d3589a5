//! The usage and the text of a model call so far. A call that breaks off or is dropped cannot
//! report them itself.

use crate::chat::{Block, Delta, ModelError, Spent};
use std::sync::{Mutex, PoisonError};

/// Follows an answer while it arrives.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// `None` until the request is sent.
    read: Mutex<Option<Spent>>,
    partial: Mutex<Vec<Block>>,
}

impl Meter {
    /// Records a piece. Returns it if it is to be shown.
    pub(super) fn read(&self, delta: Delta) -> Option<Delta> {
        if !matches!(delta, Delta::Spent(_)) {
            add(&mut self.partial.lock().unwrap_or_else(PoisonError::into_inner), &delta);
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

    /// Adds the content received so far to a failure of the call.
    pub(super) fn broken(&self, error: ModelError) -> ModelError {
        let partial = || std::mem::take(&mut *self.partial.lock().unwrap_or_else(PoisonError::into_inner));
        let spent = error.spent.map(|spent| Box::new(Spent { partial: partial().into(), ..*spent }));
        ModelError { spent, ..error }
    }

    /// Returns the usage so far. `None` if the call has not begun.
    pub(super) fn spent(&self) -> Option<Spent> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Adds a piece to the content received so far.
fn add(partial: &mut Vec<Block>, delta: &Delta) {
    match (partial.last_mut(), delta) {
        (Some(Block::Text { text }), Delta::Text(more))
        | (Some(Block::Thinking { text, .. }), Delta::Thinking(more)) => {
            text.push_str(more);
        }
        (_, Delta::Text(text)) => partial.push(Block::Text { text: text.clone() }),
        (_, Delta::Thinking(text)) => partial.push(Block::Thinking { text: text.clone(), opaque: None }),
        (_, Delta::ToolCall(call)) => partial.push(Block::ToolUse(call.clone())),
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
