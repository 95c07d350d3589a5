//! One turn over HTTP: one request, one streamed answer, three time limits.
//!
//! An answer counts only if the dialect saw its end, or if it is complete and the body ended
//! properly by the rules of HTTP. An answer that breaks off is still paid for, and its error
//! carries the use. Every other outcome is an error. Every error passes through
//! [`ModelConnection::scrubbed`], so no error contains a key. This module never retries.

mod client;
mod scrub;
#[cfg(test)]
mod tests;
mod watch;

use super::{
    DeltaSink, Endpoint, ModelRequest, PendingReply, Provider, ProviderError, Secret, announce,
    answer::AnswerStream,
    api_error::{ApiErrorText, CHECK_THE_KEY},
    codec::{Dialect, EventProgress, protocol, without_images},
    framing::FramingFormat,
    origin::DataSource,
    vision::VisionSupport,
};
use crate::chat::{Delta, ModelError, ModelErrorKind, Reply, Spent};
use jiff::Timestamp;
use reqwest::{
    Client, Response, Url, Version,
    header::{
        ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
    },
};
use serde_json::Value;
use std::{error::Error, fmt, time::Duration};
use tokio::time::timeout;
use watch::TurnWatch;

/// The number of bytes that are read of an error's body.
const MAX_COMPLAINT: usize = 4 * 1024;
/// The time limit for an error's body.
const COMPLAINT_TIME: Duration = Duration::from_secs(5);
/// The time limit for the rest of a finished answer. If the rest arrives in time, the connection
/// can be used again.
const DRAIN_TIME: Duration = Duration::from_millis(100);

/// A model behind an address.
pub(super) struct ModelConnection {
    dialect: Box<dyn Dialect>,
    endpoint: Endpoint,
    url: Url,
    headers: HeaderMap,
    client: Client,
    origin: DataSource,
    sight: VisionSupport,
}

impl ModelConnection {
    /// Checks the endpoint and prepares the parts that all requests share.
    pub(super) fn open(dialect: Box<dyn Dialect>, endpoint: Endpoint) -> Result<Self, ProviderError> {
        let url = address(dialect.as_ref(), endpoint.base_url.as_deref())?;
        let headers = headers(dialect.as_ref(), &endpoint)?;
        let client = client::shared(&url, &endpoint, dialect.name())?;
        let (origin, sight) = (DataSource::from_endpoint(&endpoint), VisionSupport::new(endpoint.images));
        Ok(Self { dialect, endpoint, url, headers, client, origin, sight })
    }

    async fn turn(&self, request: &ModelRequest, deltas: DeltaSink<'_>) -> Result<Reply, ModelError> {
        let mut watch = TurnWatch::start(self.endpoint.clocks);
        let asked = ModelRequest { messages: self.origin.own(&request.messages), ..request.clone() };
        let body = match self.sight.is_there() {
            true => self.dialect.body(&self.endpoint, &asked),
            false => self.dialect.body(&self.endpoint, &without_images(&asked)),
        };
        announce(deltas).await;
        let sending = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body.to_string()).send();
        // After a timeout without an answer, the model may still be at work on the request.
        let sent = watch.wait(sending).await.map_err(|late| late.after(Spent::default()))?;
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        watch.progress();
        if response.status().as_u16() != 200 {
            let status = response.status().as_u16();
            return Err(self.sight.note_refusal(self.refusal(response).await, status, request));
        }
        let mut answer = AnswerStream::new(self.dialect.as_ref(), request.turn);
        let read = match expect_events(self.dialect.form(), response.headers()) {
            Ok(()) => self.read(&mut answer, &mut response, &mut watch, deltas).await,
            Err(_) if is_json(response.headers()) => self.whole(&mut answer, &mut response, &watch, deltas).await,
            Err(error) => Err(error),
        };
        let mut reply = read.map_err(|error| error.after(answer.spent()))?;
        self.origin.mark(&mut reply);
        Ok(reply)
    }

    /// Reads an answer in one JSON value, although a stream was requested: an error, or the content
    /// of a stream.
    async fn whole(
        &self,
        answer: &mut AnswerStream,
        response: &mut Response,
        watch: &TurnWatch,
        deltas: DeltaSink<'_>,
    ) -> Result<Reply, ModelError> {
        let mut body = Vec::new();
        while let Some(chunk) = watch.wait(response.chunk()).await?.map_err(|error| broken(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() > self.endpoint.max_response {
                return Err(protocol(format!("the answer has more than {} bytes", self.endpoint.max_response)));
            }
            watch.check()?;
        }
        let value: Value = serde_json::from_slice(&body)
            .map_err(|error| protocol(format!("expected an event stream, got invalid JSON: {error}")))?;
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            return Err(ApiErrorText::from_value(error).in_stream());
        }
        for event in self.dialect.events_of(&value) {
            if let EventProgress::Done(reply) = answer.feed(&event, deltas)? {
                return Ok(*reply);
            }
        }
        let head: String = String::from_utf8_lossy(&body).chars().take(120).collect();
        Err(protocol(format!("expected an event stream, got JSON that is not an answer: {head}")))
    }

    async fn read(
        &self,
        answer: &mut AnswerStream,
        response: &mut Response,
        watch: &mut TurnWatch,
        deltas: DeltaSink<'_>,
    ) -> Result<Reply, ModelError> {
        let (mut received, mut is_counted) = (0_usize, false);
        while let Some(chunk) = watch.wait(response.chunk()).await?.map_err(|error| broken(&error))? {
            received = received.saturating_add(chunk.len());
            if received > self.endpoint.max_response {
                return Err(protocol(format!("the answer has more than {} bytes", self.endpoint.max_response)));
            }
            match answer.push(&chunk, deltas)? {
                EventProgress::Idle => {}
                EventProgress::Progress => watch.progress(),
                EventProgress::Done(reply) => {
                    drain(response).await;
                    return Ok(*reply);
                }
            }
            if !is_counted {
                let spent = answer.spent();
                is_counted = spent.usage.is_some();
                if is_counted {
                    deltas(Delta::Spent(spent));
                }
            }
            watch.check()?; // the wait above never times out during a flood
        }
        answer.finish(says_its_end(response), deltas)
    }

    /// Returns the error for an answer with a status other than 200.
    async fn refusal(&self, mut response: Response) -> ModelError {
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk);
                if body.len() >= MAX_COMPLAINT {
                    break;
                }
            }
        };
        let _late = timeout(COMPLAINT_TIME, reading).await; // the part that arrived in time is enough
        body.truncate(MAX_COMPLAINT);
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let status = response.status().as_u16();
        ApiErrorText::parse(&String::from_utf8_lossy(&body)).refusal(status, header, Timestamp::now())
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        let host = self.url.host_str().unwrap_or_default();
        if error.is_connect() {
            let port = self.url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
            let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&host);
            let mend = match self.endpoint.base_url {
                _ if is_here => self.start_here(),
                Some(_) => "check `base_url`, and whether a server listens there".into(),
                None => "check the network, and `HTTPS_PROXY` behind a proxy".into(),
            };
            return ModelError::network(format!("cannot connect to {host}{port}: {} ({mend})", root(error)));
        }
        ModelError::network(format!("no answer from {host}: {}", root(error))).after(Spent::default())
    }

    /// Returns the hint for a server of this machine that is not running.
    fn start_here(&self) -> String {
        if self.dialect.name() == "anthropic" {
            return "no server listens there: start it, or correct `base_url`".to_owned();
        }
        let port = self.url.port_or_known_default().unwrap_or_default();
        let start = start_command(port, self.dialect.name() == "ollama", &self.endpoint.model);
        let other = if self.endpoint.base_url.is_some() { ", or correct `base_url`" } else { "" };
        format!("no server listens there: start it{start}{other}")
    }

    /// Returns the error in the form that leaves this module: one line with the model's name and
    /// without secrets.
    fn scrubbed(&self, mut error: ModelError) -> ModelError {
        let Endpoint { key, key_from, headers, proxy, .. } = &self.endpoint;
        if let Some(from) = key_from.as_ref().filter(|_| error.fault == ModelErrorKind::Auth) {
            let hint = match (key.is_none() && headers.is_empty(), &self.endpoint.base_url) {
                (true, Some(_)) => " (no key was sent: name the key's variable in `api_key_env`)".to_owned(),
                (true, None) => format!(" (no key was sent: {from} is missing)"),
                (false, _) => format!(" (check {from})"),
            };
            error.message = error.message.replace(CHECK_THE_KEY, &hint);
        }
        let secrets = key.iter().chain(headers.iter().map(|(_, value)| value)).chain(proxy);
        // Redact each word: `Bearer KEY` may come back without its first word.
        let secrets: Vec<&str> = secrets.flat_map(|secret| secret.reveal().split_whitespace()).collect();
        error.message = scrub::line(&format!("{}: {}", self.name(), error.message), &secrets);
        error
    }
}

impl Provider for ModelConnection {
    fn name(&self) -> String {
        format!("{}/{}", self.dialect.name(), self.endpoint.model)
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest, deltas: DeltaSink<'a>) -> PendingReply<'a> {
        Box::pin(async move { self.turn(request, deltas).await.map_err(|error| self.scrubbed(error)) })
    }
}

impl fmt::Debug for ModelConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Returns how a server on this port of this machine is usually started.
fn start_command(port: u16, is_ollama: bool, model: &str) -> String {
    const OLLAMA: u16 = 11434;
    const LM_STUDIO: u16 = 1234;
    const VLLM: u16 = 8000;
    match port {
        OLLAMA => " with `ollama serve`".to_owned(),
        _ if is_ollama => format!(" with `OLLAMA_HOST=127.0.0.1:{port} ollama serve`"),
        LM_STUDIO => ", e.g. `lms server start`".to_owned(),
        VLLM => format!(", e.g. `vllm serve {model}`"),
        _ => format!(", e.g. `llama-server --port {port} -m MODEL.gguf`"),
    }
}

/// Checks that an answer is a readable event stream.
fn expect_events(form: FramingFormat, headers: &HeaderMap) -> Result<(), ModelError> {
    let value = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let kind = value(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(media_type(form)) {
        return Err(protocol(format!("expected an event stream, got `{kind}`")));
    }
    match value(CONTENT_ENCODING) {
        "" | "identity" => Ok(()),
        other => Err(protocol(format!("the answer is compressed with `{other}`, which was not requested"))),
    }
}

/// Returns true if the content type is JSON, without compression.
fn is_json(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let kind = value(CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" && matches!(value(CONTENT_ENCODING), "" | "identity")
}

fn media_type(form: FramingFormat) -> &'static str {
    match form {
        FramingFormat::Events => "text/event-stream",
        FramingFormat::Lines => "application/x-ndjson",
    }
}

/// Returns true if the response marks the end of its body: by a length, a last chunk, or an HTTP/2
/// frame. Such a body is complete once it was read to its end. A body that ends with its connection
/// may be cut off.
fn says_its_end(response: &Response) -> bool {
    let headers = response.headers();
    let codings = headers.get(TRANSFER_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_chunked = codings.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"));
    is_chunked || headers.contains_key(CONTENT_LENGTH) || response.version() >= Version::HTTP_2
}

async fn drain(response: &mut Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _late = timeout(DRAIN_TIME, rest).await; // after a timeout the connection is closed
}

fn broken(error: &reqwest::Error) -> ModelError {
    ModelError::network(format!("the stream broke off: {}", root(error)))
}

/// Returns the innermost cause. The outer causes add only the address.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Returns the request URL.
fn address(dialect: &dyn Dialect, base: Option<&str>) -> Result<Url, ProviderError> {
    let wrong = |problem: &str| ProviderError::BadAddress { provider: dialect.name(), problem: problem.to_owned() };
    let mut url = Url::parse(base.unwrap_or(dialect.own_base())).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("unsupported scheme: expected http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("contains a user or password; send them as a header"));
    }
    let path = dialect.path(url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

/// Returns the headers of every request. Configured headers override the provider's.
fn headers(dialect: &dyn Dialect, endpoint: &Endpoint) -> Result<HeaderMap, ProviderError> {
    let provider = dialect.name();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(media_type(dialect.form())));
    for (name, value) in dialect.headers() {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let (key_name, key) = dialect.key_header(endpoint.key.as_ref().unwrap_or(&Secret::new("")));
    if endpoint.key.is_some() {
        let value = secret_value(&key).ok_or(ProviderError::BadKey { provider })?;
        headers.insert(key_name, value);
    }
    for (name, value) in &endpoint.headers {
        let bad = || ProviderError::BadHeader { provider, header: name.clone() };
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        headers.insert(known, secret_value(value.reveal()).ok_or_else(bad)?);
    }
    let own_address = endpoint.base_url.is_none() && dialect.wants_key();
    if own_address && !["authorization", key_name].iter().any(|name| headers.contains_key(*name)) {
        return Err(ProviderError::MissingKey { provider });
    }
    Ok(headers)
}

fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
