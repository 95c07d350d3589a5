//! The dialect of Ollama's own API (<https://github.com/ollama/ollama/blob/main/docs/api.md>),
//! streaming only: one JSON object per line.

mod body;
mod stream;
#[cfg(test)]
mod tests;

use super::{
    Endpoint, Request,
    codec::{Decoder, Dialect},
    framing::Form,
};
use serde_json::Value;

/// The Ollama dialect.
#[derive(Debug)]
pub(super) struct Chat;

impl Dialect for Chat {
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

    fn body(&self, endpoint: &Endpoint, request: &Request) -> Value {
        body::body(endpoint, request)
    }

    fn form(&self) -> Form {
        Form::Lines
    }

    fn events_of(&self, whole: &Value) -> Vec<String> {
        vec![whole.to_string()]
    }

    fn decoder(&self, turn: u64) -> Box<dyn Decoder> {
        Box::new(stream::Stream::new(turn))
    }
}
