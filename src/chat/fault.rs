//! Why a model call did not give an answer, sorted by what is to be done about it.

use super::{Block, Usage};
use serde::{Deserialize, Serialize};

/// What went wrong with one model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFault {
    /// No connection, a reset, a stall, a stream that ended too early. Worth another try.
    Network,
    /// The provider says it is busy or broken (408, 409, 425, 429, 5xx, 529, an `error` event of that kind). Worth another try.
    Busy,
    /// What came does not follow the provider's protocol. The turn is discarded; worth another try.
    Protocol,
    /// The conversation is too long for the model (also 413). Worth another try after compaction.
    ContextTooLong,
    /// The key is missing, wrong or not allowed (401, 403). Final.
    Auth,
    /// The money or quota of the account is used up. Final.
    Quota,
    /// The model or the address does not exist (404). Final.
    NotFound,
    /// The request is refused as wrong (other 4xx, a redirect to another host, a bad cassette). Final.
    BadRequest,
}

impl ModelFault {
    /// Whether the same request may succeed later.
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
    /// What kind of failure it is.
    pub fault: ModelFault,
    /// One line for people; it never contains a key, and at most a few hundred bytes of what the provider said.
    pub message: String,
    /// How long the provider wants to be left alone, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// What it has used all the same; `None`: nothing, as it was refused, or came to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Box<Spent>>,
}

/// What a call has used that gave no answer: its provider was at work on it, or nobody knows that it was not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The model, as its provider names it; empty where it did not say.
    pub model: String,
    /// What the provider had counted by then, if anything.
    pub usage: Option<Usage>,
    /// The bytes of the answer that had come.
    pub bytes: u64,
    /// What it had said by then, for who plays the same again. All of it is void.
    #[serde(default, skip_serializing_if = "<[Block]>::is_empty")]
    pub said: Box<[Block]>,
}

impl ModelError {
    /// A failure without a wish of the provider.
    pub fn new(fault: ModelFault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), retry_after_ms: None, spent: None }
    }

    /// A connection that failed.
    pub fn network(message: impl Into<String>) -> Self {
        Self::new(ModelFault::Network, message)
    }

    /// The same failure of a call that has used this.
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
