//! The sending side of sync: run by run, parcel by parcel. A parcel counts as sent only if the
//! server confirms its last link.

use super::wire::{SyncBatch, SyncReceipt, SyncRefusal};
use super::{SyncError, SyncOutbox};
use crate::http::{Address, HttpClient, HttpRequest, HttpSettings};
use crate::id::RunId;
use crate::limits::HEARTBEAT;
use crate::store::{Unsent, WhichUnsent};
use std::convert::Infallible;
use std::time::Duration;

/// The time limit for one parcel.
const PARCEL_TIME: Duration = Duration::from_secs(30);
/// The maximum number of bytes of an answer.
const LARGEST_ANSWER: usize = 64 * 1024;
/// The maximum number of times that a server may ask for earlier records of one run.
const MOST_REWINDS: u32 = 2;
/// The longest pause between two attempts while sending fails.
const SLOWEST_PACE: Duration = Duration::from_secs(60);

/// The sender of one project's runs to a server.
#[derive(Debug, Clone)]
pub struct SyncSender {
    outbox: SyncOutbox,
    courier: HttpClient,
    /// The client for the health of the server.
    health: HttpClient,
    token: SyncToken,
}

/// The token, hidden in debug output.
#[derive(Clone)]
struct SyncToken(String);

impl std::fmt::Debug for SyncToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// The result of sending.
#[derive(Debug, Default)]
pub struct SendResult {
    /// The number of runs that the server has completely.
    pub runs: u64,
    /// The number of records that the server has taken.
    pub records: u64,
    /// The number of runs that still have unsent data.
    pub left: u64,
    /// The errors. An error of one run does not keep the next run from being sent; any other error
    /// ends the sending.
    pub faults: Vec<SyncError>,
}

impl SyncSender {
    /// Prepares to send to a server. `server` is the server's address, without the path of the
    /// request.
    ///
    /// # Errors
    /// When the address is invalid, a token may not be sent to it, or the connection cannot be set
    /// up.
    pub fn new(server: &str, token: &str, outbox: SyncOutbox, ways: &HttpSettings) -> Result<Self, SyncError> {
        let address = Address::parse(server)?;
        if !address.is_guarded() {
            return Err(SyncError::Unguarded { host: address.host() });
        }
        let courier = HttpClient::to(address.join("v1/sync"), ways)?;
        let health = HttpClient::to(address.join("healthz"), ways)?;
        Ok(Self { outbox, courier, health, token: SyncToken(token.to_owned()) })
    }

    /// Returns the server's host, which may be shown.
    pub fn host(&self) -> String {
        self.courier.address().host()
    }

    /// Returns the source of the runs.
    pub fn outbox(&self) -> &SyncOutbox {
        &self.outbox
    }

    /// Sends the unsent data, oldest run first. If the future is dropped, data without a receipt
    /// stays unsent.
    pub async fn send(&self, which: WhichUnsent) -> SendResult {
        let mut result = SendResult::default();
        let unsent = match self.outbox.unsent(which).await {
            Ok(unsent) => unsent,
            Err(fault) => {
                result.faults.push(fault);
                return result;
            }
        };
        result.left = unsent.len() as u64;
        for one in unsent {
            match self.send_run(&one, &mut result.records).await {
                Ok(()) => {
                    result.runs += 1;
                    result.left -= 1;
                }
                Err(fault) => {
                    let goes_on = fault.is_of_one_run();
                    result.faults.push(fault);
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        result
    }

    /// Checks that the server answers, for a sender that has nothing to send.
    ///
    /// # Errors
    /// When no answer comes back.
    pub async fn must_answer(&self) -> Result<(), SyncError> {
        let question = HttpRequest { time: PARCEL_TIME, max_answer: LARGEST_ANSWER, ..HttpRequest::question() };
        Ok(self.health.send(&question).await.map(drop)?)
    }

    /// Sends a heartbeat for each run that is driven here. It tells the server that this machine is
    /// alive, even if nothing happens in the run.
    ///
    /// # Errors
    /// When the server does not take a heartbeat.
    pub async fn beat(&self) -> Result<(), SyncError> {
        for one in self.outbox.sent_and_driven().await? {
            self.send_run(&one, &mut 0).await?;
        }
        Ok(())
    }

    /// Sends unsent data repeatedly, at this interval, and less often while sending fails. Never
    /// returns. It reports no errors: the final call of [`SyncSender::send`] does.
    pub async fn follow(&self, usual: Duration) -> Infallible {
        let (mut pace, mut since_beat) = (usual, Duration::ZERO);
        loop {
            tokio::time::sleep(pace).await;
            since_beat += pace;
            let result = self.send(WhichUnsent::Begun).await;
            let mut is_heard = result.faults.is_empty();
            if is_heard && since_beat >= HEARTBEAT {
                since_beat = Duration::ZERO;
                is_heard = self.beat().await.is_ok();
            }
            pace = if is_heard { usual } else { (pace * 2).min(SLOWEST_PACE.max(usual)) };
        }
    }

    async fn send_run(&self, unsent: &Unsent, records: &mut u64) -> Result<(), SyncError> {
        let run = &unsent.run;
        // If only the end of the run is unsent, it is sent after the last record.
        let (mut after, mut rewinds) = ((unsent.from - 1).min(unsent.upto), 0);
        loop {
            let parcel = self.outbox.parcel(run, after).await?;
            match self.send_parcel(&parcel).await? {
                Reply::Taken => {
                    self.outbox.sent(run, parcel.last(), parcel.end.is_some()).await?;
                    *records += parcel.records.len() as u64;
                    after = parcel.last();
                }
                Reply::SendFrom(from, detail) => {
                    rewinds += 1;
                    // The server can lack only records that were sent before, so they precede this
                    // parcel.
                    if rewinds > MOST_REWINDS || from == 0 || from > after {
                        return Err(self.refused(run, 409, detail));
                    }
                    after = from - 1;
                    continue;
                }
            }
            if parcel.end.is_some() || after >= unsent.upto {
                return Ok(());
            }
        }
    }

    async fn send_parcel(&self, parcel: &SyncBatch) -> Result<Reply, SyncError> {
        let host = self.host();
        let body = serde_json::to_vec(parcel).unwrap_or_default();
        let letter = HttpRequest { time: PARCEL_TIME, max_answer: LARGEST_ANSWER, ..HttpRequest::json(body) };
        let answer = self.courier.send(&letter.with("authorization", format!("Bearer {}", self.token.0))).await?;
        let refusal = || serde_json::from_slice::<SyncRefusal>(&answer.body).unwrap_or_default();
        let result = || crate::yaml::excerpt(&refusal().detail).to_string();
        match answer.status {
            200 => {
                let no = |what: &str| SyncError::NoReceipt { host: host.clone(), what: what.to_owned() };
                let receipt: SyncReceipt = serde_json::from_slice(&answer.body).map_err(|_| no("unexpected format"))?;
                match receipt == parcel.receipt() {
                    true => Ok(Reply::Taken),
                    false => Err(no("wrong run, record or link of the chain")),
                }
            }
            401 | 403 => Err(SyncError::Token { host, status: answer.status }),
            409 => match refusal().send_from {
                Some(from) => Ok(Reply::SendFrom(from, result())),
                None => Err(self.refused(&parcel.run, 409, result())),
            },
            400 | 413 | 422 => Err(self.refused(&parcel.run, answer.status, result())),
            status @ (408 | 429 | 500..) => Err(SyncError::Later { host, status, detail: result() }),
            status => Err(SyncError::NoServer { host, status }),
        }
    }

    fn refused(&self, run: &RunId, status: u16, detail: String) -> SyncError {
        SyncError::Refused { run: run.clone(), host: self.host(), status, detail }
    }
}

/// A server's answer to a parcel.
enum Reply {
    /// The server has all of the parcel.
    Taken,
    /// The server lacks earlier records.
    SendFrom(u64, String),
}
