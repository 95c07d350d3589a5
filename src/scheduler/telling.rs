//! Who else hears of another health: a program, or an address. What is to be told is written down with the change itself, and stays there
//! until it was told, with a number by which whoever hears it twice knows that.

use super::job::{JobError, told};
use super::monitors::Change;
use crate::courier::{Address, Courier, Letter, Ways};
use crate::limits::CANCEL_GRACE;
use crate::process::{End, Invocation, Variables, run};
use crate::store::{NewsRow, sha256};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long one telling may take.
pub(super) const WITHIN: Duration = Duration::from_secs(30);
/// Bytes of what went wrong that are kept.
const SAID: usize = 500;

/// What is done when the health of a monitor is another one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnChange {
    /// A program is run, with the change in its environment.
    Command(Vec<String>),
    /// It is sent to an address, signed.
    Webhook {
        /// Where to.
        url: String,
        /// With what it is signed.
        secret: String,
    },
}

impl fmt::Debug for OnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => f.debug_tuple("Command").field(command).finish(),
            Self::Webhook { .. } => f.write_str("Webhook"), // its address may hold a secret, too
        }
    }
}

impl OnChange {
    /// As it is kept.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The one of such a text; nothing for an empty one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(text: &str) -> Result<Option<Self>, serde_json::Error> {
        if text.is_empty() { Ok(None) } else { serde_json::from_str(text) }
    }
}

/// With what is told.
#[derive(Debug, Clone)]
pub(super) struct Means {
    pub(super) dir: PathBuf,
    pub(super) env: Vec<(String, String)>,
    pub(super) ways: Ways,
    /// How long telling may take.
    pub(super) within: Duration,
}

impl Means {
    /// Tells it once.
    pub(super) async fn tell(
        &self,
        how: &OnChange,
        news: &NewsRow,
        second: i64,
        stop: &CancellationToken,
    ) -> Result<(), JobError> {
        match how {
            OnChange::Command(command) => self.run(command, news, stop).await,
            OnChange::Webhook { url, secret } => tokio::select! {
                biased;
                () = stop.cancelled() => Err(JobError::Resting),
                sent = self.send(url, secret, news, second) => sent,
            },
        }
    }

    async fn run(&self, command: &[String], news: &NewsRow, stop: &CancellationToken) -> Result<(), JobError> {
        let Some((program, args)) = command.split_first() else {
            return Err(JobError::Final("there is no command".into()));
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
            End::Exited(0) => Ok(()),
            End::Exited(code) => failed(format!("ended with exit code {code}: {}", ended.output.text(SAID).trim())),
            End::Signalled(signal) => failed(format!("was ended by signal {signal}")),
            End::TimedOut => failed(format!("took longer than {} seconds", self.within.as_secs())),
            End::Stopped => Err(JobError::Resting),
            End::Exceeded(why) | End::NotStarted(why) => failed(format!("could not be run: {why}")),
        }
    }

    async fn send(&self, url: &str, secret: &str, news: &NewsRow, second: i64) -> Result<(), JobError> {
        let address = Address::parse(url).map_err(|error| JobError::Final(told(&error)))?;
        let courier = Courier::to(address, &self.ways).map_err(|error| JobError::Final(told(&error)))?;
        let letter = Letter { time: self.within, ..Letter::json(news.data.clone().into_bytes()) }
            .with("x-fledge-delivery", news.delivery.clone())
            .with("x-fledge-signature", sign(secret, second, news.data.as_bytes()));
        let answer = courier.send(&letter).await.map_err(|error| JobError::retryable(&error))?;
        if answer.is_success() {
            return Ok(());
        }
        Err(JobError::Retryable(format!("{} has answered with {}", courier.address().host(), answer.status)))
    }
}

/// The signature of what is sent, as of a second since 1970: `t=…,v1=…`, the second part an HMAC-SHA256 of the second, a dot and the body, in
/// hexadecimal.
pub fn sign(secret: &str, second: i64, body: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let mut context = ring::hmac::Context::with_key(&key);
    context.update(format!("{second}.").as_bytes());
    context.update(body);
    let hex: String = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={second},v1={hex}")
}

/// The number of what is told of a change: the same for the same one.
pub(super) fn delivery(change: &Change) -> String {
    let Change { monitor, health, was, since, .. } = change;
    let mut id = sha256(format!("{monitor}\0{}\0{}\0{since}", was.word(), health.word()).as_bytes());
    id.truncate(32);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_its_second_and_of_every_byte() {
        // By `printf '7.{}' | openssl dgst -sha256 -hmac key`.
        let expected = "t=7,v1=77bc83bd1f40422311e47918b203449aecf84b02c1568bb1b570ac2a474cc2d8";
        let signed = sign("key", 7, b"{}");
        assert_eq!(signed, expected);
        assert_ne!(signed, sign("key", 8, b"{}"));
        assert_ne!(signed, sign("key", 7, b"{ }"));
        assert_ne!(signed, sign("other", 7, b"{}"));
    }
}
