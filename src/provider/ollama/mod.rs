//! The dialect of Ollama's own API (<https://github.com/ollama/ollama/blob/main/docs/api.md>),
//! streaming only: one JSON object per line.

mod body;
mod stream;
#[cfg(test)]
mod tests;

use super::{
    Endpoint, ModelRequest,
    codec::{Decoder, Dialect},
    framing::FramingFormat,
};
use serde_json::Value;

/// The Ollama dialect.
#[derive(Debug)]
pub(super) struct OllamaChat;

impl Dialect for OllamaChat {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn own_base(&self) -> &'static str {
        "http://localhost:11434"
    }

    fn wants_key(&self) -> bool {
        false
    }

    fn path(&self, base: &str) -> String {
        if base.ends_with("/api") { format!("{base}/chat") } else { format!("{base}/api/chat") }
    }

    fn body(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value {
        body::body(endpoint, request)
    }

    fn form(&self) -> FramingFormat {
        FramingFormat::Lines
    }

    fn events_of(&self, whole: &Value) -> Vec<String> {
        vec![whole.to_string()]
    }

    fn decoder(&self, turn: u64) -> Box<dyn Decoder> {
        Box::new(stream::OllamaStream::new(turn))
    }
}
