//! Whole events for what was sent in pieces, from the journal record that ended the pieces. So a
//! late reader misses no text, no call and no step.

use crate::chat::Block;
use crate::run::{AgentEvent, Event, StateName};
use crate::verdict::StepProgress;

/// Returns the events that replace the pieces before this event of a run in this state, in order.
pub(super) fn whole(state: StateName, event: &Event) -> Vec<AgentEvent> {
    match (state, event) {
        (StateName::Executing, Event::ModelCompleted { reply, .. }) => {
            reply.content.iter().filter_map(block_event).collect()
        }
        (StateName::Executing, Event::CancelRequested { said, .. }) if !said.is_empty() => {
            vec![AgentEvent::Text(said.clone())]
        }
        // A verdict that repeats an earlier one ran no step.
        (StateName::Verifying, Event::GateFinished { verdict, .. }) if verdict.unchanged_since.is_none() => {
            let steps = verdict.steps.iter().cloned();
            steps.map(|step| AgentEvent::LaneStep(StepProgress::Ended(step))).collect()
        }
        _ => Vec::new(),
    }
}

fn block_event(block: &Block) -> Option<AgentEvent> {
    match block {
        Block::Text { text } if !text.is_empty() => Some(AgentEvent::Text(text.clone())),
        Block::Thinking { text, .. } if !text.is_empty() => Some(AgentEvent::Thinking(text.clone())),
        Block::ToolUse(call) => Some(AgentEvent::ToolCall { name: call.name.clone(), args: call.input.to_value() }),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {
            None
        }
    }
}
