//! OpenAI Chat Completions (<https://platform.openai.com/docs/api-reference/chat>), streaming only, as OpenAI and the many
//! servers that follow it speak it.

mod body;
mod stream;
#[cfg(test)]
mod tests;

use super::{
    Request, Secret,
    codec::{Decoder, Dialect},
};
use serde_json::Value;

/// The dialect.
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

    fn headers(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("authorization", format!("Bearer {}", key.reveal()))
    }

    fn body(&self, model: &str, max_output_tokens: Option<u64>, request: &Request) -> Value {
        body::body(model, max_output_tokens, request)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decoder> {
        Box::new(stream::Stream::new(request.turn))
    }
}
