//! The error of a model call, with the kinds of failure that decide what fledge does next.

use super::{Block, Usage};
use serde::{Deserialize, Serialize};

/// The kind of a failed model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// A failed or reset connection, a stall, or a stream that ended too early. fledge may try
    /// again.
    Network,
    /// The provider reports overload or an internal error: status 408, 409, 425, 429, 5xx or 529,
    /// or an `error` event of that kind. fledge may try again.
    Busy,
    /// The response violates the provider's protocol. The turn is discarded, and fledge may try
    /// again.
    Protocol,
    /// The conversation is too long for the model (also status 413). fledge may try again after
    /// compaction.
    ContextTooLong,
    /// The key is missing, wrong or not permitted (401, 403). Final.
    Auth,
    /// The account has no money or quota left. Final.
    Quota,
    /// The model or the address does not exist (404). Final.
    NotFound,
    /// The provider rejects the request as invalid: any other 4xx, a redirect to another host, or
    /// an invalid cassette. Final.
    BadRequest,
}

impl ModelErrorKind {
    /// Returns true if the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Network | Self::Busy | Self::Protocol => true,
            Self::ContextTooLong | Self::Auth | Self::Quota | Self::NotFound | Self::BadRequest => false,
        }
    }
}

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelError {
    /// The kind of failure.
    pub fault: ModelErrorKind,
    /// One line for people. It never contains a key, and at most a few hundred bytes of the
    /// provider's text.
    pub message: String,
    /// The wait that the provider asks for before the next request, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The tokens and bytes that the failed call used. `None` if the provider refused the request
    /// or the request never reached it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Box<Spent>>,
}

/// The use of a call that gave no answer, although its provider worked on it or may have done so.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The model, as its provider names it; empty if the provider did not name it.
    pub model: String,
    /// The tokens that the provider had counted before the failure, if any.
    pub usage: Option<Usage>,
    /// The number of bytes of the answer that had arrived.
    pub bytes: u64,
    /// The partial answer, kept only so that a cassette can replay it. It never becomes part of the
    /// conversation.
    #[serde(default, skip_serializing_if = "<[Block]>::is_empty")]
    pub partial: Box<[Block]>,
}

impl ModelError {
    /// Creates an error without a wait from the provider and without any use.
    pub fn new(fault: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), retry_after_ms: None, spent: None }
    }

    /// Creates an error for a failed connection.
    pub fn network(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Network, message)
    }

    /// Returns this error with what the call used before it failed.
    #[must_use]
    pub fn after(self, spent: Spent) -> Self {
        Self { spent: Some(Box::new(spent)), ..self }
    }
}

impl std::fmt::Display for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelError {}
