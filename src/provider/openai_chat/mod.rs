//! The dialect of OpenAI Chat Completions (<https://platform.openai.com/docs/api-reference/chat>),
//! streaming only, for OpenAI and the many compatible servers.

mod body;
mod stream;
#[cfg(test)]
mod tests;

use super::{
    Endpoint, ModelRequest,
    codec::{Decoder, Dialect},
};
use serde_json::{Value, json};

/// The Chat Completions dialect.
#[derive(Debug)]
pub(super) struct ChatCompletions;

impl Dialect for ChatCompletions {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn own_base(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn path(&self, base: &str) -> String {
        format!("{base}/chat/completions")
    }

    fn body(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value {
        body::body(endpoint, request)
    }

    fn events_of(&self, whole: &Value) -> Vec<String> {
        let Some(choice) = whole["choices"].get(0).filter(|choice| choice["message"].is_object()) else {
            return Vec::new();
        };
        let choice = json!({"index": 0, "delta": choice["message"], "finish_reason": choice["finish_reason"]});
        let chunk = json!({"model": whole["model"], "choices": [choice], "usage": whole["usage"]});
        vec![chunk.to_string(), "[DONE]".to_owned()]
    }

    fn decoder(&self, turn: u64) -> Box<dyn Decoder> {
        Box::new(stream::ChatStream::new(turn))
    }
}
