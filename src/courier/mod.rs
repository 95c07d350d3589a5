//! One HTTP request to somebody who is not a model, sent once: bounded in time and size, and with no redirect followed.
//!
//! Whatever goes wrong is one error in one line that names the host alone: an address may hold a secret in its path, its query or
//! before its `@`, and headers are secret altogether. Whether to send again is for whoever sends.

mod address;
mod client;
mod fault;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use fault::CourierError;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use std::{fmt, time::Duration};
use tokio::time::timeout;

/// The ways out of this machine that are configured, beside the system's.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Ways {
    /// An `http` or `https` address that may hold a user and password; `None` for the system's proxies, which are not asked for an
    /// address on this machine.
    pub proxy: Option<String>,
    /// Certificates (PEM, one or more) that are trusted beside the system's.
    pub ca_file: Option<Vec<u8>>,
}

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (proxy, ca_file) = (self.proxy.is_some(), self.ca_file.as_ref().map(Vec::len));
        f.debug_struct("Ways").field("proxy", &proxy).field("ca_file", &ca_file).finish()
    }
}

/// What is sent.
#[derive(Clone)]
pub struct Letter {
    /// How.
    pub method: Method,
    /// Headers, whose values are shown to nobody.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long all of it may take, from the name's look-up to the last byte of the answer. At most a day.
    pub time: Duration,
    /// The most bytes that the answer's body may have.
    pub max_answer: usize,
}

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Asks for something; has no body.
    Get,
    /// Brings something.
    Post,
}

impl Letter {
    /// JSON that is brought: half a minute, and an answer of 64 KiB.
    pub fn json(body: Vec<u8>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { method: Method::Post, headers, body, time: Duration::from_secs(30), max_answer: 64 * 1024 }
    }

    /// A question, by the same bounds.
    pub fn question() -> Self {
        Self { method: Method::Get, headers: Vec::new(), ..Self::json(Vec::new()) }
    }

    /// With one more header. A secret may stand in it.
    pub fn with(mut self, header: &str, value: impl Into<String>) -> Self {
        self.headers.push((header.to_owned(), value.into()));
        self
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let mut shown = f.debug_struct("Letter");
        shown.field("method", &self.method).field("headers", &names).field("body", &self.body.len());
        shown.field("time", &self.time).field("max_answer", &self.max_answer).finish()
    }
}

/// What came back: any status but a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// What the body is called, without parameters, in small letters; empty where nothing is said.
    pub content_type: String,
    /// Seconds after which it wants to be asked again, where it says so as a number.
    pub retry_after: Option<u64>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Whether the status is one of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Who carries letters to one address. Those to the same one share their connections.
#[derive(Clone)]
pub struct Courier {
    address: Address,
    client: Client,
}

impl Courier {
    /// Prepares the way. Nothing is sent yet.
    ///
    /// # Errors
    /// When the proxy or the certificates cannot be used.
    pub fn to(address: Address, ways: &Ways) -> Result<Self, CourierError> {
        let client = client::build(&address, ways)?;
        Ok(Self { address, client })
    }

    /// Where letters go.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a letter once, and waits for the whole answer. To give up earlier, drop the future: the connection closes with it.
    ///
    /// # Errors
    /// When there is no whole answer within the bounds, or it is a redirect. What was sent may have been done all the same.
    pub async fn send(&self, letter: &Letter) -> Result<Answer, CourierError> {
        let headers = headers(letter)?;
        let time = letter.time.min(LONGEST);
        match timeout(time, self.exchange(letter, headers)).await {
            Ok(answer) => answer,
            Err(_late) => Err(CourierError::Late { host: self.address.host(), time }),
        }
    }

    async fn exchange(&self, letter: &Letter, headers: HeaderMap) -> Result<Answer, CourierError> {
        let host = || self.address.host();
        let request = match letter.method {
            Method::Get => self.client.get(self.address.url()),
            Method::Post => self.client.post(self.address.url()).body(letter.body.clone()),
        };
        let sent = request.headers(headers).send().await;
        let mut response = sent.map_err(|error| CourierError::unreachable(host(), &error))?;
        let status = response.status().as_u16();
        if response.status().is_redirection() && response.headers().contains_key("location") {
            return Err(CourierError::Redirect { host: host(), status });
        }
        let header =
            |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let content_type = header("content-type").split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let retry_after = header("retry-after").trim().parse().ok();
        let body = self.body(&mut response, letter.max_answer).await?;
        Ok(Answer { status, content_type, retry_after, body })
    }

    async fn body(&self, response: &mut Response, most: usize) -> Result<Vec<u8>, CourierError> {
        let host = || self.address.host();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| CourierError::broken(host(), &error))? {
            if body.len().saturating_add(chunk.len()) > most {
                return Err(CourierError::TooLarge { host: host(), most });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Courier").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A letter's time is at most this: an instant cannot be arbitrarily late.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

fn headers(letter: &Letter) -> Result<HeaderMap, CourierError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &letter.headers {
        let bad = || CourierError::BadHeader { header: name.clone() };
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}
