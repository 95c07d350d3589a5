//! Anthropic Messages (<https://docs.anthropic.com/en/api/messages>), streaming only.

mod body;
mod stream;
#[cfg(test)]
mod tests;
mod thinking;

use super::{
    Endpoint, Request, Secret,
    codec::{Decoder, Dialect},
};
use serde_json::Value;

/// The dialect.
#[derive(Debug)]
pub(super) struct Messages;

impl Dialect for Messages {
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

    fn body(&self, endpoint: &Endpoint, request: &Request) -> Value {
        body::body(endpoint, request)
    }

    fn decoder(&self, _turn: u64) -> Box<dyn Decoder> {
        Box::new(stream::Stream::default())
    }
}
