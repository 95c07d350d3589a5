//! The request for reasoning, in the form that the model's generation accepts: a token budget
//! before Claude 4.6, an effort from then on
//! (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>).

use crate::{
    chat::{Block, Message, Role},
    provider::Effort,
};
use serde_json::{Value, json};

/// The smallest budget that the API accepts, in tokens.
const LEAST: u64 = 1024;
/// The first generation with adaptive thinking.
const ADAPTIVE: (u64, u64) = (4, 6);

/// Adds the effort to a body that already has `max_tokens`. If `stretch` is true, `max_tokens`
/// grows by the budget for thoughts.
pub(super) fn ask(body: &mut Value, effort: Effort, stretch: bool, model: &str, messages: &[Message]) {
    if generation(model).is_none_or(|generation| generation >= ADAPTIVE) {
        body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
        body["output_config"] = json!({"effort": effort.name()});
        return;
    }
    let budget = match effort {
        Effort::Low => 2048,
        Effort::Medium => 8192,
        Effort::High => 24_576,
    };
    let most = body["max_tokens"].as_u64().unwrap_or_default();
    let (budget, most) = if stretch { (budget, most + budget) } else { (budget.min(most / 2), most) };
    if budget >= LEAST && began_with_a_thought(messages) {
        body["max_tokens"] = most.into();
        body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
    }
}

/// Parses the version in a model's name: (4, 5) of `claude-sonnet-4-5-20250929`, (3, 7) of
/// `claude-3-7-sonnet-latest`.
fn generation(model: &str) -> Option<(u64, u64)> {
    let name = model.get(model.find("claude")?..)?;
    let mut numbers = name.split(|c: char| !c.is_ascii_alphanumeric()).map(|part| part.parse::<u64>().ok());
    let first = numbers.by_ref().flatten().next()?;
    let second = numbers.next().flatten().filter(|number| *number < 100);
    Some((first, second.unwrap_or(0)))
}

/// Returns true if the model's current turn began with a thought, or no turn is under way.
///
/// A turn of tool calls has thoughts from its start or not at all. The API refuses thinking for a
/// turn that began without a thought, as after another model made the first calls.
fn began_with_a_thought(messages: &[Message]) -> bool {
    let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
    let asked =
        messages.iter().rposition(|message| message.role == Role::User && !message.content.iter().any(is_result));
    let under_way =
        messages[asked.map_or(0, |place| place + 1)..].iter().find(|message| message.role == Role::Assistant);
    under_way.is_none_or(|message| match message.content.first() {
        Some(Block::Thinking { opaque, .. }) => opaque.as_ref().is_some_and(|opaque| opaque["signature"].is_string()),
        Some(Block::Opaque { value }) => value["type"] == "redacted_thinking",
        Some(Block::Text { .. } | Block::Image(_) | Block::ToolUse(_) | Block::ToolResult(_)) | None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ToolResult;

    fn asked(model: &str, effort: Effort, stretch: bool, max_tokens: u64, messages: &[Message]) -> Value {
        let mut body = json!({"max_tokens": max_tokens});
        ask(&mut body, effort, stretch, model, messages);
        body
    }

    #[test]
    fn every_generation_is_asked_in_its_own_form() {
        let adaptive = json!({
            "max_tokens": 100, "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "medium"},
        });
        for model in
            ["claude-opus-4-6", "anthropic/claude-sonnet-4.6", "claude-opus-4-7-20260416", "claude-opus-5", "other"]
        {
            assert_eq!(asked(model, Effort::Medium, true, 100, &[]), adaptive, "{model}");
        }
        let budget = |most: u64, budget: u64| json!({"max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": budget}});
        for model in ["claude-sonnet-4-5-20250929", "claude-sonnet-4-20250514", "claude-3-7-sonnet-latest"] {
            assert_eq!(asked(model, Effort::High, true, 16_384, &[]), budget(40_960, 24_576), "{model}");
        }
        assert_eq!(asked("claude-haiku-4-5", Effort::Medium, false, 8000, &[]), budget(8000, 4000));
        assert_eq!(asked("claude-haiku-4-5", Effort::Low, false, 2000, &[]), json!({"max_tokens": 2000}));
    }

    #[test]
    fn a_turn_of_calls_that_began_without_a_thought_goes_on_without() {
        let result =
            || Message { role: Role::User, content: vec![Block::ToolResult(ToolResult::text("c", "ok", false))] };
        let thought = |opaque| Message::assistant(vec![Block::Thinking { text: "hm".into(), opaque }]);
        let plain = || Message::assistant(vec![Block::Text { text: "a".into() }]);
        let signed = || thought(Some(json!({"signature": "s"})));
        for (thinks, messages) in [
            (true, vec![Message::user("go")]),
            (true, vec![Message::user("go"), signed(), result(), plain(), result()]),
            (false, vec![Message::user("go"), plain(), result(), signed(), result()]),
            (false, vec![Message::user("go"), thought(None), result()]),
            (true, vec![Message::user("go"), plain(), Message::user("again")]),
        ] {
            let body = asked("claude-sonnet-4-5", Effort::Low, true, 16_384, &messages);
            assert_eq!(body.get("thinking").is_some(), thinks, "{messages:?}");
        }
    }
}
