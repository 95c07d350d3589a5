//! The checked settings of a connection to a model, and secrets that are never printed.

use std::{fmt, time::Duration};

/// The address of a model and the settings of its connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// The wire format.
    pub kind: WireFormat,
    /// The model, as the provider names it; for a cassette its path.
    pub model: String,
    /// The address of the API, with or without a trailing slash; `None` for the provider's own
    /// address.
    pub base_url: Option<String>,
    /// The key; only the provider's own address demands one.
    pub key: Option<Secret>,
    /// The source of the key, for people: `the key in OPENAI_API_KEY`.
    pub key_from: Option<String>,
    /// Additional headers. They override the provider's headers of the same name.
    pub headers: Vec<(String, Secret)>,
    /// A proxy for this endpoint only, as an `http` or `https` address that may contain a user and
    /// password; `None` for the system's proxies.
    pub proxy: Option<Secret>,
    /// Trusted certificates (PEM, one or more) in addition to the system's.
    pub ca_file: Option<Vec<u8>>,
    /// The token limit of one answer; `None` for the provider's default.
    pub max_output_tokens: Option<u64>,
    /// The token limit of request and answer together, for servers that need it (Ollama).
    pub context_window: Option<u64>,
    /// True if the model accepts images. A model that does not gets a text in place of each image.
    pub images: bool,
    /// The reasoning effort; `None` for the provider's default.
    pub reasoning: Option<Effort>,
    /// The time limits.
    pub clocks: TurnTimeouts,
    /// The size limit of one answer on the wire, in bytes.
    pub max_response: usize,
}

impl Endpoint {
    /// Creates an endpoint at the provider's own address, with all defaults and without a key.
    pub fn new(kind: WireFormat, model: impl Into<String>) -> Self {
        Self {
            kind,
            model: model.into(),
            base_url: None,
            key: None,
            key_from: None,
            headers: Vec::new(),
            proxy: None,
            ca_file: None,
            max_output_tokens: None,
            context_window: None,
            images: true,
            reasoning: None,
            clocks: TurnTimeouts::default(),
            max_response: 64 * 1024 * 1024,
        }
    }
}

/// A wire format, or a recording.
#[derive(Debug, Clone, PartialEq)]
pub enum WireFormat {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, which many other servers implement too.
    OpenAi,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Ollama's own API.
    Ollama,
    /// A cassette: written or recorded turns.
    Cassette {
        /// The cassette's text.
        text: String,
        /// The cassette's path, for messages.
        path: String,
    },
}

impl WireFormat {
    /// Returns the provider's name, which is the part before the slash in
    /// `anthropic/claude-sonnet-4-5`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Ollama => "ollama",
            Self::Cassette { .. } => "cassette",
        }
    }
}

/// The amount of reasoning before an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Little reasoning.
    Low,
    /// Medium reasoning.
    Medium,
    /// Much reasoning.
    High,
}

impl Effort {
    /// Returns the effort's name, which is equal in all wire formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The time limits of a turn, measured on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTimeouts {
    /// From the request to the answer's headers.
    pub first_byte: Duration,
    /// Between two events that extend the answer. Pings do not count.
    pub idle: Duration,
    /// For the whole turn.
    pub turn: Duration,
}

impl Default for TurnTimeouts {
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(60), idle: Duration::from_secs(120), turn: Duration::from_secs(15 * 60) }
    }
}

/// A text that is sent to a provider and never shown. It has no `RunDisplay` and no serialized
/// form.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret without surrounding white space, which files and commands often add.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// Returns the text, for code that sends it or redacts it from output.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let mut endpoint = Endpoint::new(WireFormat::OpenAi, "m");
        endpoint.key = Some(Secret::new("sk-canary"));
        endpoint.headers = vec![("x-token".into(), Secret::new("hdr-canary"))];
        endpoint.proxy = Some(Secret::new("http://user:canary@proxy"));
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("***") && !shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_secret_from_a_file_loses_its_line_end() {
        assert_eq!(Secret::new("sk-1\n").reveal(), "sk-1");
    }
}
