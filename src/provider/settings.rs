//! What it takes to reach a model: checked settings, and keys that do not print.

use std::{fmt, time::Duration};

/// Where a model is and how it is talked to.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// Which wire format it speaks.
    pub kind: Kind,
    /// The model, as the provider names it; the path of a cassette.
    pub model: String,
    /// Where the API is, with or without a slash at the end; `None` for the provider's own address.
    pub base_url: Option<String>,
    /// The key; only the provider's own address demands one.
    pub key: Option<Secret>,
    /// The source of the key, for people: `the key in OPENAI_API_KEY`.
    pub key_from: Option<String>,
    /// Further headers; one that is also the provider's takes its place.
    pub headers: Vec<(String, Secret)>,
    /// A proxy for this endpoint alone, as an `http` or `https` address that may hold a user and password; `None` for the system's.
    pub proxy: Option<Secret>,
    /// Certificates (PEM, one or more) that are trusted beside the system's.
    pub ca_file: Option<Vec<u8>>,
    /// The most tokens that one answer may have; `None` for the provider's default.
    pub max_output_tokens: Option<u64>,
    /// The most tokens that question and answer may have together, where the server has to be told (Ollama).
    pub context_window: Option<u64>,
    /// Whether it takes pictures; one that does not is told that there is one.
    pub images: bool,
    /// How much it shall reason; `None` for the provider's default.
    pub reasoning: Option<Effort>,
    /// How long things may take.
    pub clocks: Clocks,
    /// The most bytes that one answer may have on the wire.
    pub max_response: usize,
}

impl Endpoint {
    /// A model at its provider's own address, with every default and no key.
    pub fn new(kind: Kind, model: impl Into<String>) -> Self {
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
            clocks: Clocks::default(),
            max_response: 64 * 1024 * 1024,
        }
    }
}

/// A wire format, or a recording.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, which many other servers speak too.
    OpenAi,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Ollama's own API.
    Ollama,
    /// Written or recorded turns.
    Cassette {
        /// The cassette's text.
        text: String,
        /// Where it is, as people are told.
        path: String,
    },
}

impl Kind {
    /// The provider's name: what stands before the slash in `anthropic/claude-sonnet-4-5`.
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

/// How much a model shall reason before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl Effort {
    /// Its name, which is the same in every wire format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// How long a turn may take, by three monotonic clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// From sending the request to the answer's headers.
    pub first_byte: Duration,
    /// Between two events that bring the answer on. Pings do not.
    pub idle: Duration,
    /// For all of it.
    pub turn: Duration,
}

impl Default for Clocks {
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(60), idle: Duration::from_secs(120), turn: Duration::from_secs(15 * 60) }
    }
}

/// A text that is sent to a provider and shown to nobody. It has no `Display` and no serialised form.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret without the white space around it, which files and commands leave there.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// The text itself, for the places that send it or keep it out of what is shown.
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
        let mut endpoint = Endpoint::new(Kind::OpenAi, "m");
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
