//! The dialect of OpenAI Responses (<https://platform.openai.com/docs/api-reference/responses>),
//! streaming only. The provider stores nothing: reasoning arrives encrypted and is sent back with
//! the conversation.

mod body;
mod stream;
#[cfg(test)]
mod tests;

use super::{
    Endpoint, ModelRequest,
    codec::{Decoder, Dialect},
};
use serde_json::{Value, json};

/// The Responses dialect.
#[derive(Debug)]
pub(super) struct Responses;

impl Dialect for Responses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn own_base(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn path(&self, base: &str) -> String {
        format!("{base}/responses")
    }

    fn body(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value {
        body::body(endpoint, request)
    }

    fn events_of(&self, whole: &Value) -> Vec<String> {
        let Some(items) = whole["output"].as_array() else { return Vec::new() };
        let mut events = vec![json!({"type": "response.created", "response": {"model": whole["model"]}})];
        for (index, item) in items.iter().enumerate() {
            for step in ["added", "done"] {
                events
                    .push(json!({"type": format!("response.output_item.{step}"), "output_index": index, "item": item}));
            }
        }
        let end = whole["status"].as_str().unwrap_or("completed");
        events.push(json!({"type": format!("response.{end}"), "response": whole}));
        events.iter().map(Value::to_string).collect()
    }

    fn decoder(&self, _turn: u64) -> Box<dyn Decoder> {
        Box::new(stream::ResponsesStream::default())
    }
}
