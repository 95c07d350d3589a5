//! The dialect of Anthropic Messages (<https://docs.anthropic.com/en/api/messages>), streaming
//! only.

mod body;
mod stream;
#[cfg(test)]
mod tests;
mod thinking;

use super::{
    Endpoint, ModelRequest, Secret,
    codec::{Decoder, Dialect},
};
use serde_json::{Value, json};

/// The Messages dialect.
#[derive(Debug)]
pub(super) struct AnthropicMessages;

impl Dialect for AnthropicMessages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn own_base(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn path(&self, base: &str) -> String {
        if base.ends_with("/v1") { format!("{base}/messages") } else { format!("{base}/v1/messages") }
    }

    fn headers(&self) -> Vec<(&'static str, &'static str)> {
        vec![("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("x-api-key", key.reveal().to_owned())
    }

    fn body(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value {
        body::body(endpoint, request)
    }

    fn events_of(&self, whole: &Value) -> Vec<String> {
        let Some(blocks) = whole["content"].as_array() else { return Vec::new() };
        let mut events =
            vec![json!({"type": "message_start", "message": {"model": whole["model"], "usage": whole["usage"]}})];
        for (index, block) in blocks.iter().enumerate() {
            events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}}));
        events.push(json!({"type": "message_stop"}));
        events.iter().map(Value::to_string).collect()
    }

    fn decoder(&self, _turn: u64) -> Box<dyn Decoder> {
        Box::new(stream::AnthropicStream::default())
    }
}
