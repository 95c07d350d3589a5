//! Notifications of health changes, by command or webhook. A notification is stored together with
//! the change and kept until it is delivered. Its delivery id lets the receiver recognise
//! repetitions.

use super::job::{JobError, error_line};
use super::monitors::HealthChange;
use crate::http::{Address, HttpClient, HttpRequest, HttpSettings};
use crate::limits::CANCEL_GRACE;
use crate::process::{Invocation, ProcessEnd, Variables, run};
use crate::store::{NewsRow, sha256};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time limit of one notification.
pub(super) const WITHIN: Duration = Duration::from_secs(30);
/// Bytes kept of a command's output after a failure.
const SAID: usize = 500;

/// The action on a health change.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthNotifier {
    /// Runs a command, with the change in its environment.
    Command(Vec<String>),
    /// Sends a signed request to a webhook.
    Webhook {
        /// The address.
        url: String,
        /// The secret for the signature.
        secret: String,
    },
}

impl fmt::Debug for HealthNotifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => f.debug_tuple("Command").field(command).finish(),
            Self::Webhook { .. } => f.write_str("Webhook"), // the address may contain a secret too
        }
    }
}

impl HealthNotifier {
    /// Returns the text form for the store.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the text form; `None` for an empty text.
    ///
    /// # Errors
    /// When the text cannot be parsed.
    pub fn parse(text: &str) -> Result<Option<Self>, serde_json::Error> {
        if text.is_empty() { Ok(None) } else { serde_json::from_str(text) }
    }
}

/// Settings for sending notifications.
#[derive(Debug, Clone)]
pub(super) struct NotifierTools {
    pub(super) dir: PathBuf,
    pub(super) env: Vec<(String, String)>,
    pub(super) http: HttpSettings,
    /// The time limit of one notification.
    pub(super) within: Duration,
}

impl NotifierTools {
    /// Sends one notification.
    pub(super) async fn deliver(
        &self,
        how: &HealthNotifier,
        news: &NewsRow,
        second: i64,
        stop: &CancellationToken,
    ) -> Result<(), JobError> {
        match how {
            HealthNotifier::Command(command) => self.run(command, news, stop).await,
            HealthNotifier::Webhook { url, secret } => tokio::select! {
                biased;
                () = stop.cancelled() => Err(JobError::Resting),
                sent = self.send(url, secret, news, second) => sent,
            },
        }
    }

    async fn run(&self, command: &[String], news: &NewsRow, stop: &CancellationToken) -> Result<(), JobError> {
        let Some((program, args)) = command.split_first() else {
            return Err(JobError::Final("the command is empty".into()));
        };
        let data: serde_json::Value = serde_json::from_str(&news.data).unwrap_or_default();
        let word = |name: &str| data["data"][name].as_str().unwrap_or_default().to_owned();
        let own = [
            ("FLEDGE_MONITOR", news.monitor.clone()),
            ("FLEDGE_MONITOR_NAME", word("name")),
            ("FLEDGE_HEALTH", word("health")),
            ("FLEDGE_HEALTH_WAS", word("was")),
            ("FLEDGE_SINCE", word("since")),
            ("FLEDGE_DELIVERY", news.delivery.clone()),
        ];
        let env = self.env.iter().cloned().chain(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let invocation = Invocation {
            program: program.clone(),
            args: args.to_vec(),
            dir: self.dir.clone(),
            env: Variables::new(env),
            timeout: Some(self.within),
            grace: CANCEL_GRACE,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        };
        let ended = run(invocation, stop, &|_| {}).await;
        let failed = |why: String| Err(JobError::Retryable(format!("`{program}` {why}")));
        match ended.end {
            ProcessEnd::Exited(0) => Ok(()),
            ProcessEnd::Exited(code) => {
                failed(format!("ended with exit code {code}: {}", ended.output.text(SAID).trim()))
            }
            ProcessEnd::Signalled(signal) => failed(format!("was killed by signal {signal}")),
            ProcessEnd::TimedOut => failed(format!("took longer than {} seconds", self.within.as_secs())),
            ProcessEnd::Stopped => Err(JobError::Resting),
            ProcessEnd::Exceeded(why) | ProcessEnd::NotStarted(why) => failed(format!("cannot be run: {why}")),
        }
    }

    async fn send(&self, url: &str, secret: &str, news: &NewsRow, second: i64) -> Result<(), JobError> {
        let address = Address::parse(url).map_err(|error| JobError::Final(error_line(&error)))?;
        let courier = HttpClient::to(address, &self.http).map_err(|error| JobError::Final(error_line(&error)))?;
        let letter = HttpRequest { time: self.within, ..HttpRequest::json(news.data.clone().into_bytes()) }
            .with("x-fledge-delivery", news.delivery.clone())
            .with("x-fledge-signature", sign(secret, second, news.data.as_bytes()));
        let answer = courier.send(&letter).await.map_err(|error| JobError::retryable(&error))?;
        if answer.is_success() {
            return Ok(());
        }
        Err(JobError::Retryable(format!("{} answered with status {}", courier.address().host(), answer.status)))
    }
}

/// Returns the signature of a request, `t=…,v1=…`. `t` is the given second since 1970. `v1` is the
/// HMAC-SHA256, in hexadecimal, of the second, a dot and the body.
pub fn sign(secret: &str, second: i64, body: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let mut context = ring::hmac::Context::with_key(&key);
    context.update(format!("{second}.").as_bytes());
    context.update(body);
    let hex: String = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={second},v1={hex}")
}

/// Returns the delivery id of a change. Equal changes have equal ids.
pub(super) fn delivery(change: &HealthChange) -> String {
    let HealthChange { monitor, health, was, since, .. } = change;
    let mut id = sha256(format!("{monitor}\0{}\0{}\0{since}", was.word(), health.word()).as_bytes());
    id.truncate(32);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_its_second_and_of_every_byte() {
        // Computed with `printf '7.{}' | openssl dgst -sha256 -hmac key`.
        let expected = "t=7,v1=77bc83bd1f40422311e47918b203449aecf84b02c1568bb1b570ac2a474cc2d8";
        let signed = sign("key", 7, b"{}");
        assert_eq!(signed, expected);
        assert_ne!(signed, sign("key", 8, b"{}"));
        assert_ne!(signed, sign("key", 7, b"{ }"));
        assert_ne!(signed, sign("other", 7, b"{}"));
    }
}
