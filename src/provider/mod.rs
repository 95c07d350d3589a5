//! Models behind one trait: a request goes in, pieces of the answer come out as they stream, and the whole answer ends it.
//!
//! A turn is a transaction. A provider makes one HTTP request for one turn and returns a [`Reply`] only when the protocol's own
//! end was seen, or when a complete answer lacks nothing else and its body ended as it should; everything else is a
//! [`ModelError`], and whether to try again is decided by whoever asked. To cancel a turn, drop its future: the connection
//! closes with it.

mod answer;
mod anthropic;
mod cassette;
mod codec;
mod complaint;
mod framing;
mod keyed;
mod ollama;
mod openai_chat;
mod openai_responses;
mod origin;
mod pace;
#[cfg(test)]
mod scripted;
mod settings;
mod sight;
mod text_tools;
mod transport;

pub use cassette::{Bounds, Cassette, Recording};
pub use framing::{Form, Framing, FramingError, MAX_EVENT};
pub use keyed::{KeyCommand, KeyCommands, KeyFault, Told, connect_keyed};
pub use pace::{Pacer, Rate};
pub use settings::{Clocks, Effort, Endpoint, Kind, Secret};
pub use text_tools::TextTools;

use crate::chat::{Delta, Message, ModelError, ModelFault, Reply, ToolSpec};
use crate::yaml::Problems;
use answer::Answer;
use codec::{Dialect, Pulse};
use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

/// How the system prompt of a request for a summary begins: by this a recording knows one.
pub const SUMMARISER: &str = "You sum up the work of a coding agent";

/// A model that can be asked.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Its name as tasks write it: `anthropic/claude-sonnet-4-5`.
    fn name(&self) -> String;

    /// Asks for one turn. The texts given to `deltas`, joined, are the reply's text; each tool call of the reply is given to it
    /// exactly once. What was given before an error is void, but for [`Delta::Spent`]: a provider that costs something gives it when the request
    /// goes out, and again when it hears how much that is, so that a turn which is dropped is paid for.
    ///
    /// # Errors
    /// When the turn did not end properly; the error says what may help.
    fn complete<'a>(&'a self, request: &'a Request, deltas: DeltaSink<'a>) -> Completion<'a>;

    /// Renews what it is let in by, where that is good for no longer than this: so no turn has to wait for it.
    ///
    /// # Errors
    /// When it is not to be had. What is there stays, and a turn tries again.
    fn renew(&self, ahead: Duration) -> Renewal<'_> {
        let _nothing_grows_old = ahead;
        Box::pin(std::future::ready(Ok(())))
    }

    /// What bounded it when it was recorded, where it is a recording.
    fn bounds(&self) -> Option<Bounds> {
        None
    }

    /// The same model as the sub-agent of this path (`1.2`) asks it, where that makes a difference: written answers say whose they are.
    fn for_child(&self, path: &str) -> Option<Arc<dyn Provider>> {
        let _nobody_asks = path;
        None
    }
}

/// Where the pieces of an answer go while it streams.
pub type DeltaSink<'a> = &'a (dyn Fn(Delta) + Send + Sync);

/// A turn under way.
pub type Completion<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;

/// A renewal under way.
pub type Renewal<'a> = Pin<Box<dyn Future<Output = Result<(), ModelError>> + Send + 'a>>;

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation so far.
    pub messages: Arc<[Message]>,
    /// The tools it may ask for.
    pub tools: Arc<[ToolSpec]>,
    /// Which turn of the run this is, counted from 1.
    pub turn: u64,
    /// The most tokens that the answer may have, where whoever asks has a bound of its own.
    pub max_output: Option<u64>,
}

/// Makes the provider that an endpoint describes. Nothing is sent yet.
///
/// # Errors
/// When the endpoint cannot work as it is written.
pub fn connect(endpoint: Endpoint) -> Result<Arc<dyn Provider>, ProviderError> {
    Ok(match dialect(&endpoint.kind) {
        Ok(dialect) => Arc::new(transport::Connection::open(dialect, endpoint)?),
        Err((text, path)) => Arc::new(Cassette::parse(text, &endpoint.model).map_err(|fault| fault.at(path))?),
    })
}

/// The answer that bytes from elsewhere are, by the same rules as those from a connection and however they are cut.
///
/// # Errors
/// As [`Provider::complete`] has them; and of a cassette, which has no wire format.
pub fn decode<'b>(
    kind: &Kind,
    chunks: impl IntoIterator<Item = &'b [u8]>,
    deltas: DeltaSink<'_>,
) -> Result<Reply, ModelError> {
    let dialect =
        dialect(kind).map_err(|_| ModelError::new(ModelFault::BadRequest, "a cassette has no wire format"))?;
    let mut answer = Answer::new(dialect.as_ref(), 1);
    for chunk in chunks {
        match answer.take(chunk, deltas)? {
            Pulse::Idle | Pulse::Progress => {}
            Pulse::Done(reply) => return Ok(*reply),
        }
    }
    answer.finish(false, deltas) // bytes alone do not say that no more of them were to come
}

/// The wire format of a kind, or the text and the place of a cassette.
fn dialect(kind: &Kind) -> Result<Box<dyn Dialect>, (&str, &str)> {
    Ok(match kind {
        Kind::Anthropic => Box::new(anthropic::Messages),
        Kind::OpenAi => Box::new(openai_chat::ChatCompletions),
        Kind::OpenAiResponses => Box::new(openai_responses::Responses),
        Kind::Ollama => Box::new(ollama::Chat),
        Kind::Cassette { text, path } => return Err((text, path)),
    })
}

/// Why an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider's own address wants a key, and there is none.
    #[error("{provider}: no API key")]
    MissingKey {
        /// The provider's name.
        provider: &'static str,
    },
    /// The key holds what no HTTP header can carry.
    #[error("{provider}: the API key holds a character that a header cannot carry")]
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
        /// What is wrong with it.
        problem: String,
    },
    /// The proxy cannot be used.
    #[error("{provider}: the proxy is not an http or https address")]
    BadProxy {
        /// The provider's name.
        provider: &'static str,
    },
    /// The further certificates cannot be read.
    #[error("{provider}: the CA file holds no certificates in PEM form")]
    BadCertificates {
        /// The provider's name.
        provider: &'static str,
    },
    /// The HTTP client cannot be made: usually there are no root certificates.
    #[error("cannot set up the HTTP client")]
    Client {
        /// What it said.
        #[source]
        source: reqwest::Error,
    },
    /// A cassette does not say what to play.
    #[error("{}", .problems.within(.name))]
    BadCassette {
        /// The cassette's name, or where it is.
        name: String,
        /// What is wrong, with its place where there is one.
        problems: Problems,
    },
}

impl ProviderError {
    /// The same of a cassette that is here.
    fn at(self, path: &str) -> Self {
        match self {
            Self::BadCassette { problems, .. } => Self::BadCassette { name: path.to_owned(), problems },
            other => other,
        }
    }
}
