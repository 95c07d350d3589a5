//! OpenAI Responses (<https://platform.openai.com/docs/api-reference/responses>), streaming only, with nothing kept at the provider:
//! reasoning comes encrypted and goes back with the conversation.

mod body;
mod stream;
#[cfg(test)]
mod tests;

use super::{
    Endpoint, Request,
    codec::{Decoder, Dialect},
};
use serde_json::Value;

/// The dialect.
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

    fn body(&self, endpoint: &Endpoint, request: &Request) -> Value {
        body::body(endpoint, request)
    }

    fn decoder(&self, _turn: u64) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }
}
