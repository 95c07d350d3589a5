//! Models behind one trait: a request goes in, pieces of the answer stream out, and a complete
//! reply ends the turn.
//!
//! A turn is a transaction. A provider makes one HTTP request per turn. It returns a [`Reply`] only
//! if it saw the end marker of the protocol. An answer that lacks only this marker also counts if
//! its body ended properly. Everything else is a [`ModelError`], and the caller decides whether to
//! try again. Dropping the future cancels a turn and closes its connection.

mod answer;
mod anthropic;
mod api_error;
mod cassette;
mod codec;
mod framing;
mod key_command;
mod ollama;
mod openai_chat;
mod openai_responses;
mod origin;
mod pace;
mod settings;
mod text_tools;
mod transport;
mod vision;

pub use cassette::{Cassette, CassetteBounds, Recording};
pub use framing::{EventFraming, FramingError, FramingFormat, MAX_EVENT};
pub use key_command::{KeyCommand, KeyCommands, KeyError, SecretListener, connect_keyed};
pub use pace::{Pacer, RateLimit};
pub use settings::{Effort, Endpoint, Secret, TurnTimeouts, WireFormat};
pub use text_tools::TextTools;

use crate::chat::{Delta, Message, ModelError, ModelErrorKind, Reply, Spent, ToolSpec};
use crate::yaml::Problems;
use answer::AnswerStream;
use codec::{Dialect, EventProgress};
use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

/// The first words of the system prompt of a request for a summary. A cassette recognizes such
/// requests by these words.
pub const SUMMARISER: &str = "You sum up the work of a coding agent";

/// A model that answers requests.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Returns the name as tasks write it: `anthropic/claude-sonnet-4-5`.
    fn name(&self) -> String;

    /// Runs one turn. The texts passed to `deltas`, joined, are the reply's text; each tool call of
    /// the reply is passed exactly once.
    ///
    /// All deltas before an error are void, except [`Delta::Spent`]. A provider that costs money
    /// passes it before its request goes out, and again when it learns the token counts. A turn
    /// that is dropped later is therefore paid for. After the first one, the provider yields once:
    /// the caller may drop the turn there, so that no request goes out.
    ///
    /// # Errors
    /// If the turn did not end properly. The kind of the error decides what may help.
    fn complete<'a>(&'a self, request: &'a ModelRequest, deltas: DeltaSink<'a>) -> PendingReply<'a>;

    /// Renews the credentials if they expire within `ahead`, so that no turn has to wait for the
    /// renewal.
    ///
    /// # Errors
    /// If no new credentials are available. The provider keeps the old ones, and the next turn
    /// tries again.
    fn renew(&self, ahead: Duration) -> PendingRenewal<'_> {
        let _nothing_grows_old = ahead;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the limits of the recorded model, if this provider is a cassette.
    fn bounds(&self) -> Option<CassetteBounds> {
        None
    }

    /// Returns the provider for the sub-agent with this path (`1.2`), or `None` if all agents share
    /// one. Only cassettes have separate answers per agent.
    fn for_child(&self, path: &str) -> Option<Arc<dyn Provider>> {
        let _nobody_asks = path;
        None
    }
}

/// A callback for the pieces of a streaming answer.
pub type DeltaSink<'a> = &'a (dyn Fn(Delta) + Send + Sync);

/// Tells the caller that the request is about to go out. The caller may drop the turn meanwhile.
async fn announce(deltas: DeltaSink<'_>) {
    deltas(Delta::Spent(Spent::default()));
    tokio::task::yield_now().await;
}

/// A turn under way.
pub type PendingReply<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;

/// A renewal under way.
pub type PendingRenewal<'a> = Pin<Box<dyn Future<Output = Result<(), ModelError>> + Send + 'a>>;

/// A request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation so far.
    pub messages: Arc<[Message]>,
    /// The tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// The number of the turn in its run, counted from 1.
    pub turn: u64,
    /// The token limit of the answer, if the caller has its own limit.
    pub max_output: Option<u64>,
}

/// Creates the provider of an endpoint. It does not connect yet.
///
/// # Errors
/// If the endpoint is not usable as configured.
pub fn connect(endpoint: Endpoint) -> Result<Arc<dyn Provider>, ProviderError> {
    Ok(match dialect(&endpoint.kind) {
        Ok(dialect) => Arc::new(transport::ModelConnection::open(dialect, endpoint)?),
        Err((text, path)) => Arc::new(Cassette::parse(text, &endpoint.model).map_err(|fault| fault.at(path))?),
    })
}

/// Decodes an answer from bytes of any source, with the rules for live connections. The division
/// into chunks does not matter.
///
/// # Errors
/// The errors of [`Provider::complete`], and an error for a cassette, which has no wire format.
pub fn decode<'b>(
    kind: &WireFormat,
    chunks: impl IntoIterator<Item = &'b [u8]>,
    deltas: DeltaSink<'_>,
) -> Result<Reply, ModelError> {
    let dialect =
        dialect(kind).map_err(|_| ModelError::new(ModelErrorKind::BadRequest, "a cassette has no wire format"))?;
    let mut answer = AnswerStream::new(dialect.as_ref(), 1);
    for chunk in chunks {
        match answer.push(chunk, deltas)? {
            EventProgress::Idle | EventProgress::Progress => {}
            EventProgress::Done(reply) => return Ok(*reply),
        }
    }
    answer.finish(false, deltas) // bytes alone do not prove that the body was complete
}

/// Returns the wire format of a kind, or the text and the path of a cassette.
fn dialect(kind: &WireFormat) -> Result<Box<dyn Dialect>, (&str, &str)> {
    Ok(match kind {
        WireFormat::Anthropic => Box::new(anthropic::AnthropicMessages),
        WireFormat::OpenAi => Box::new(openai_chat::ChatCompletions),
        WireFormat::OpenAiResponses => Box::new(openai_responses::Responses),
        WireFormat::Ollama => Box::new(ollama::OllamaChat),
        WireFormat::Cassette { text, path } => return Err((text, path)),
    })
}

/// The reason why an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider's own address demands a key, and none is configured.
    #[error("{provider}: no API key")]
    MissingKey {
        /// The provider's name.
        provider: &'static str,
    },
    /// The key contains a character that an HTTP header cannot carry.
    #[error("{provider}: the API key contains a character that a header cannot carry")]
    BadKey {
        /// The provider's name.
        provider: &'static str,
    },
    /// A configured header cannot be sent.
    #[error("{provider}: header `{header}` is not a valid HTTP header")]
    BadHeader {
        /// The provider's name.
        provider: &'static str,
        /// The header's name.
        header: String,
    },
    /// The base URL cannot be used.
    #[error("{provider}: base URL: {problem}")]
    BadAddress {
        /// The provider's name.
        provider: &'static str,
        /// The reason.
        problem: String,
    },
    /// The proxy cannot be used.
    #[error("{provider}: the proxy is not an http or https address")]
    BadProxy {
        /// The provider's name.
        provider: &'static str,
    },
    /// The additional certificates cannot be read.
    #[error("{provider}: the CA file contains no certificates in PEM format")]
    BadCertificates {
        /// The provider's name.
        provider: &'static str,
    },
    /// The HTTP client cannot be created, usually because the system has no root certificates.
    #[error("cannot set up the HTTP client")]
    Client {
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The text of a cassette is invalid.
    #[error("{}", .problems.within(.name))]
    BadCassette {
        /// The cassette's name or path.
        name: String,
        /// The problems, with their positions if known.
        problems: Problems,
    },
}

impl ProviderError {
    /// Replaces the name of an invalid cassette with its path.
    fn at(self, path: &str) -> Self {
        match self {
            Self::BadCassette { problems, .. } => Self::BadCassette { name: path.to_owned(), problems },
            other => other,
        }
    }
}
