//! The settings of all HTTP clients ([`client_builder`]), and a client for receivers that are not
//! models ([`HttpClient`]). It sends a request once, bounds time and size, and follows no redirect.
//!
//! Every failure is one error of one line that names only the host. An address may hold a secret in
//! its path, its query or before its `@`, and all headers are secret. The caller decides whether to
//! send the request again.

mod address;
mod client;
mod error;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use client::{client_builder, is_local, is_plain};
pub use error::HttpError;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use std::{fmt, time::Duration};
use tokio::time::timeout;

/// The proxy and the certificates from the configuration, in addition to the system's.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// An `http` or `https` address that may contain a user and password. `None` selects the
    /// system's proxies, which are not used for addresses on this machine.
    pub proxy: Option<String>,
    /// Trusted certificates (PEM, one or more) in addition to the system's.
    pub ca_file: Option<Vec<u8>>,
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (proxy, ca_file) = (self.proxy.is_some(), self.ca_file.as_ref().map(Vec::len));
        f.debug_struct("HttpSettings").field("proxy", &proxy).field("ca_file", &ca_file).finish()
    }
}

/// A request.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The headers. `Debug` does not show their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The time limit, from the name lookup to the last byte of the answer. At most a day.
    pub time: Duration,
    /// The size limit of the answer's body, in bytes.
    pub max_answer: usize,
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A request without a body.
    Get,
    /// A request with a body.
    Post,
}

impl HttpRequest {
    /// Creates a `POST` of JSON with a time limit of 30 seconds and an answer of at most 64 KiB.
    pub fn json(body: Vec<u8>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { method: Method::Post, headers, body, time: Duration::from_secs(30), max_answer: 64 * 1024 }
    }

    /// Creates a `GET` with the limits of [`HttpRequest::json`].
    pub fn question() -> Self {
        Self { method: Method::Get, headers: Vec::new(), ..Self::json(Vec::new()) }
    }

    /// Adds a header, whose value may be a secret.
    pub fn with(mut self, header: &str, value: impl Into<String>) -> Self {
        self.headers.push((header.to_owned(), value.into()));
        self
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let mut shown = f.debug_struct("HttpRequest");
        shown.field("method", &self.method).field("headers", &names).field("body", &self.body.len());
        shown.field("time", &self.time).field("max_answer", &self.max_answer).finish()
    }
}

/// The answer to a request: any status except a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The media type without parameters, in lower case; empty if the answer has none.
    pub content_type: String,
    /// The number of seconds in `retry-after`, if that header is a number.
    pub retry_after: Option<u64>,
    /// The complete body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Returns true for a status from 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A client for one address. Clones share their connections.
#[derive(Clone)]
pub struct HttpClient {
    address: Address,
    client: Client,
}

impl HttpClient {
    /// Creates a client. It does not connect yet.
    ///
    /// # Errors
    /// If the proxy or the certificates cannot be used.
    pub fn to(address: Address, settings: &HttpSettings) -> Result<Self, HttpError> {
        let mut builder = client_builder(&address.url(), settings)?;
        if address.is_local() {
            builder = builder.no_proxy(); // local traffic stays local, because it may carry an unencrypted token
        }
        let client = builder.build().map_err(|source| HttpError::Client { source })?;
        Ok(Self { address, client })
    }

    /// Returns the address of the requests.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a request once and waits for the complete answer. Dropping the future cancels the
    /// request and closes the connection.
    ///
    /// # Errors
    /// If no complete answer arrives within the limits, or the answer is a redirect. The receiver
    /// may have acted on the request nevertheless.
    pub async fn send(&self, request: &HttpRequest) -> Result<HttpResponse, HttpError> {
        let headers = headers(request)?;
        let time = request.time.min(LONGEST);
        match timeout(time, self.exchange(request, headers)).await {
            Ok(answer) => answer,
            Err(_late) => Err(HttpError::Late { host: self.address.host(), time }),
        }
    }

    async fn exchange(&self, request: &HttpRequest, headers: HeaderMap) -> Result<HttpResponse, HttpError> {
        let host = || self.address.host();
        let prepared = match request.method {
            Method::Get => self.client.get(self.address.url()),
            Method::Post => self.client.post(self.address.url()).body(request.body.clone()),
        };
        let sent = prepared.headers(headers).send().await;
        let mut response = sent.map_err(|error| HttpError::unreachable(host(), &error))?;
        let status = response.status().as_u16();
        if response.status().is_redirection() && response.headers().contains_key("location") {
            return Err(HttpError::Redirect { host: host(), status });
        }
        let header =
            |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let content_type = header("content-type").split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let retry_after = header("retry-after").trim().parse().ok();
        let body = self.body(&mut response, request.max_answer).await?;
        Ok(HttpResponse { status, content_type, retry_after, body })
    }

    async fn body(&self, response: &mut Response, most: usize) -> Result<Vec<u8>, HttpError> {
        let host = || self.address.host();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| HttpError::broken(host(), &error))? {
            if body.len().saturating_add(chunk.len()) > most {
                return Err(HttpError::TooLarge { host: host(), most });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The upper limit of a request's time: a deadline cannot be arbitrarily late.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

fn headers(request: &HttpRequest) -> Result<HeaderMap, HttpError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let bad = || HttpError::BadHeader { header: name.clone() };
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}
