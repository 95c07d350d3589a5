//! The origin of opaque data. Signatures, encrypted reasoning and opaque blocks are sent back only
//! to their origin: the same wire format, address and model. Any other provider would refuse them,
//! or receive data that is not meant for it.

use super::Endpoint;
use crate::chat::{Block, Message, Reply};
use serde_json::Value;
use std::sync::Arc;

/// The member that holds the origin.
const MARK: &str = "from";

/// The source of opaque data.
#[derive(Debug)]
pub(super) struct DataSource(String);

impl DataSource {
    /// Returns the origin of an endpoint.
    pub(super) fn from_endpoint(endpoint: &Endpoint) -> Self {
        let base = endpoint.base_url.as_deref().unwrap_or_default().trim_end_matches('/');
        Self(format!("{} {base} {}", endpoint.kind.name(), family(&endpoint.model)).replace("  ", " "))
    }

    /// Marks the opaque data of a reply with its origin.
    pub(super) fn mark(&self, reply: &mut Reply) {
        for block in &mut reply.content {
            if let Some(Value::Object(own)) = data_of(block) {
                own.insert(MARK.to_owned(), self.0.as_str().into());
            }
        }
    }

    /// Returns the conversation for this origin: without the marks, and without opaque data of
    /// other origins.
    pub(super) fn own(&self, messages: &Arc<[Message]>) -> Arc<[Message]> {
        let has_data = |block: &Block| matches!(block, Block::Thinking { opaque: Some(_), .. } | Block::Opaque { .. });
        if !messages.iter().any(|message| message.content.iter().any(has_data)) {
            return messages.clone();
        }
        let message = |message: &Message| {
            let content = message.content.iter().filter_map(|block| self.own_block(block.clone())).collect();
            Message { role: message.role, content }
        };
        messages.iter().map(message).collect()
    }

    /// Returns a block for this origin, or `None` if it must not be sent there.
    fn own_block(&self, mut block: Block) -> Option<Block> {
        let Some(data) = data_of(&mut block) else { return Some(block) };
        let mark = data.as_object_mut().and_then(|data| data.remove(MARK));
        if mark.as_ref().and_then(Value::as_str) == Some(self.0.as_str()) {
            return Some(block);
        }
        match block {
            Block::Thinking { text, .. } => Some(Block::Thinking { text, opaque: None }),
            _ => None,
        }
    }
}

/// Returns the opaque data of a block.
fn data_of(block: &mut Block) -> Option<&mut Value> {
    match block {
        Block::Thinking { opaque, .. } => opaque.as_mut(),
        Block::Opaque { value } => Some(value),
        Block::Text { .. } | Block::Image(_) | Block::ToolUse(_) | Block::ToolResult(_) => None,
    }
}

/// Returns a model's name without a version suffix: `-20250929`, `-2025-08-07`, `-latest`.
fn family(model: &str) -> &str {
    let model = model.strip_suffix("-latest").unwrap_or(model);
    let is_date = |text: &str| {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        digits == 8 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let cut = |length: usize| model.len().checked_sub(length).and_then(|at| model.split_at_checked(at));
    [11, 9]
        .into_iter()
        .filter_map(cut)
        .find(|(_, date)| date.starts_with('-') && is_date(&date[1..]))
        .map_or(model, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::StopReason;
    use crate::provider::WireFormat;
    use serde_json::json;

    fn at(kind: WireFormat, base: Option<&str>, model: &str) -> DataSource {
        DataSource::from_endpoint(&Endpoint { base_url: base.map(str::to_owned), ..Endpoint::new(kind, model) })
    }

    fn thought() -> Block {
        Block::Thinking { text: "hm".into(), opaque: Some(json!({"signature": "s"})) }
    }

    fn redacted() -> Block {
        Block::Opaque { value: json!({"type": "redacted_thinking", "data": "x"}) }
    }

    #[test]
    fn opaque_blocks_of_a_model_go_back_only_to_that_model_at_its_address() {
        let giver = at(WireFormat::Anthropic, None, "claude-sonnet-4-5-20250929");
        let block = Block::Text { text: "so".into() };
        let (content, usage) = (vec![thought(), redacted(), block.clone()], None);
        let mut reply =
            Reply { content: content.clone(), stop: StopReason::EndTurn, usage, model: "m".into(), lacks_end: false };
        giver.mark(&mut reply);
        let conversation: Arc<[Message]> = [Message::user("go"), Message::assistant(reply.content)].into();
        let back = |origin: &DataSource| origin.own(&conversation)[1].content.clone();
        assert_eq!(back(&giver), content);
        assert_eq!(
            back(&at(WireFormat::Anthropic, None, "claude-sonnet-4-5")),
            content,
            "the date does not make it another model"
        );
        let plain = [Block::Thinking { text: "hm".into(), opaque: None }, block];
        for other in [
            at(WireFormat::Anthropic, Some("https://elsewhere"), "claude-sonnet-4-5"),
            at(WireFormat::Anthropic, None, "claude-opus-4-5"),
            at(WireFormat::OpenAiResponses, None, "claude-sonnet-4-5"),
        ] {
            assert_eq!(back(&other), plain, "{other:?}");
        }
        let unmarked: Arc<[Message]> = [Message::assistant(vec![thought(), redacted()])].into();
        assert_eq!(giver.own(&unmarked)[0].content, plain[..1], "the giver is unknown");
    }

    #[test]
    fn a_date_is_no_part_of_a_name() {
        let names = ["gpt-5-2025-08-07", "claude-x-20250929", "claude-x-latest", "gpt-5", "o3", "é-2025-08-0", ""];
        assert_eq!(names.map(family), ["gpt-5", "claude-x", "claude-x", "gpt-5", "o3", "é-2025-08-0", ""]);
    }
}
