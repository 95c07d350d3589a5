//! What was told of a run in pieces, whole, from the record of the journal that ended it: so that a reader who comes later misses no text,
//! no call and no step.

use crate::chat::Block;
use crate::run::{AgentEvent, Event, StateName};
use crate::verdict::StepProgress;

/// The events that stand for the pieces before this event of a run in this state, in their order.
pub(super) fn whole(state: StateName, event: &Event) -> Vec<AgentEvent> {
    match (state, event) {
        (StateName::Executing, Event::ModelCompleted { reply, .. }) => reply.content.iter().filter_map(said).collect(),
        (StateName::Executing, Event::CancelRequested { said, .. }) if !said.is_empty() => {
            vec![AgentEvent::Text(said.clone())]
        }
        // A verdict that repeats an earlier one was given without a step.
        (StateName::Verifying, Event::GateFinished { verdict, .. }) if verdict.unchanged_since.is_none() => {
            let steps = verdict.steps.iter().cloned();
            steps.map(|step| AgentEvent::LaneStep(StepProgress::Ended(step))).collect()
        }
        _ => Vec::new(),
    }
}

fn said(block: &Block) -> Option<AgentEvent> {
    match block {
        Block::Text { text } if !text.is_empty() => Some(AgentEvent::Text(text.clone())),
        Block::Thinking { text, .. } if !text.is_empty() => Some(AgentEvent::Thinking(text.clone())),
        Block::ToolUse(call) => Some(AgentEvent::ToolCall { name: call.name.clone(), args: call.input.to_value() }),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {
            None
        }
    }
}
