//! Where a conversation may be cut so that its older part can be summarised.

use crate::chat::{Block, Message, Role};

/// Messages at the end that stay as they are.
const KEEP: usize = 6;

/// How many messages from the start may be replaced by a summary: never between a tool use and its result, never the newest
/// few, and at least two. `None` when there is nothing to gain.
pub(super) fn cut(messages: &[Message]) -> Option<usize> {
    let latest = messages.len().checked_sub(KEEP)?;
    (2..=latest).rev().find(|upto| messages.get(*upto).is_some_and(begins_a_turn))
}

/// Whether a message depends on nothing before it: the model's own, which no result precedes, or a plain text of the user.
fn begins_a_turn(message: &Message) -> bool {
    let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
    message.role == Role::Assistant || !message.content.iter().any(is_result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ToolCall, ToolInput, ToolResult};
    use serde_json::json;

    fn turn(n: usize) -> [Message; 2] {
        let id = format!("c{n}");
        let call = ToolCall { id: id.clone(), name: "t".into(), input: ToolInput::Object(json!({})) };
        let result = ToolResult::text(id, "ok", false);
        [
            Message::assistant(vec![Block::ToolUse(call)]),
            Message { role: Role::User, content: vec![Block::ToolResult(result)] },
        ]
    }

    #[test]
    fn a_cut_never_separates_a_tool_use_from_its_result() {
        for turns in 0..20 {
            let mut messages = vec![Message::user("task")];
            messages.extend((0..turns).flat_map(turn));
            if let Some(upto) = cut(&messages) {
                assert_eq!(messages[upto].role, Role::Assistant, "{turns} turns cut at {upto}");
                assert!(messages.len() - upto >= KEEP);
            } else {
                assert!(messages.len() < KEEP + 2, "{turns} turns could have been cut");
            }
        }
    }
}
