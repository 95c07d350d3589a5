//! 9. Before each model call, and when the run is over, each tool use in the conversation has
//!    exactly one result, in order, in the next message. No two tool uses share an id.

use super::{Action, Checked, Law, StateName, Step, law};
use fledge::chat::{Block, Message, Role};
use std::collections::BTreeSet;

#[derive(Default)]
pub(crate) struct Watch;

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        let calls = step.asked().any(|action| matches!(action, Action::CallModel { .. } | Action::Compact { .. }));
        let rests = step.state == StateName::Reporting && step.run.state() == StateName::Idle;
        if calls || rests { is_whole(step.run.conversation()) } else { Ok(()) }
    }
}

fn is_whole(conversation: &[Message]) -> Checked {
    let mut ids = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in conversation {
        law(9, !message.content.is_empty(), || "an empty message".into())?;
        let mut results = Vec::new();
        let mut uses = Vec::new();
        for block in &message.content {
            match (block, message.role) {
                (Block::ToolUse(call), Role::Assistant) => uses.push(call.id.as_str()),
                (Block::ToolResult(result), Role::User) => results.push(result.id.as_str()),
                (Block::ToolUse(_) | Block::ToolResult(_), _) => return Err("law 9: a block in the wrong role".into()),
                (Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::Opaque { .. }, _) => {}
            }
        }
        law(9, results == open, || format!("asked for {open:?}, answered {results:?}"))?;
        law(9, uses.iter().all(|id| ids.insert(*id)), || format!("an id is used twice among {uses:?}"))?;
        open = uses;
    }
    law(9, open.is_empty(), || format!("never answered: {open:?}"))
}
