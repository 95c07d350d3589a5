//! The conversation of an ended run as the beginning of another run.

use super::record::RunTerms;
use super::resume::{ResumeError, folded, terms};
use crate::chat::{Block, Message, Role, ToolResult};
use crate::id::RunId;
use crate::run::Run;
use crate::store::{RunRow, Store, StoredRunState};
use serde::{Deserialize, Serialize};

/// The conversation that a run continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlierRun {
    /// The run that had the conversation.
    pub run: RunId,
    /// The conversation, with a result for each tool use.
    pub messages: Vec<Message>,
}

/// Returns the conversation of an ended run, with its row and its terms.
///
/// # Errors
/// [`ResumeError`] if the run does not exist, has not ended, or cannot be read.
pub fn earlier(store: &Store, run: &RunId) -> Result<(RunRow, RunTerms, EarlierRun), ResumeError> {
    let (row, terms) = terms(store, run)?;
    if !matches!(row.state, StoredRunState::Ended(_)) {
        return Err(ResumeError::NotOver { run: run.clone() });
    }
    let folded = folded(run, store.events(run, 0)?)?;
    Ok((row, terms, EarlierRun { run: run.clone(), messages: answered(&folded.run) }))
}

/// Returns the conversation with a result for each tool use. A run can end while its last calls are
/// under way.
fn answered(run: &Run) -> Vec<Message> {
    let mut messages = run.conversation().to_vec();
    let unanswered = |block: &Block| match block {
        Block::ToolUse(call) => Some(Block::ToolResult(ToolResult::text(
            &call.id,
            "the run ended before this call finished; whether the call had an effect is unknown",
            true,
        ))),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {
            None
        }
    };
    let last = messages.last().filter(|last| last.role == Role::Assistant);
    let results: Vec<Block> = last.into_iter().flat_map(|last| &last.content).filter_map(unanswered).collect();
    if !results.is_empty() {
        messages.push(Message { role: Role::User, content: results });
    }
    messages
}

/// Adds text for the model to the conversation: to the newest message if that is a user's, else as
/// a new message.
pub(super) fn and_then(earlier: &EarlierRun, text: String) -> Vec<Message> {
    let mut messages = earlier.messages.clone();
    match messages.last_mut() {
        Some(last) if last.role == Role::User => last.content.push(Block::Text { text }),
        Some(_) | None => messages.push(Message::user(text)),
    }
    messages
}
