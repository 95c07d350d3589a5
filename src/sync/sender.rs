//! Who sends: run by run, parcel by parcel, and a parcel counts only when the server names its last link.

use super::wire::{Parcel, Receipt, Refusal};
use super::{Outbox, SyncFault};
use crate::courier::{Address, Courier, Letter, Ways};
use crate::id::RunId;
use crate::limits::HEARTBEAT;
use crate::store::{Unsent, WhichUnsent};
use std::convert::Infallible;
use std::time::Duration;

/// How long one parcel may take.
const PARCEL_TIME: Duration = Duration::from_secs(30);
/// The most bytes of an answer.
const LARGEST_ANSWER: usize = 64 * 1024;
/// How often a server may ask for what it was sent before, of one run.
const MOST_REWINDS: u32 = 2;
/// How seldom it is tried at most where the server does not answer.
const SLOWEST_PACE: Duration = Duration::from_secs(60);

/// A way to a server, for the runs of one project.
#[derive(Debug, Clone)]
pub struct Sender {
    outbox: Outbox,
    courier: Courier,
    token: Token,
}

/// The token: shown to nobody.
#[derive(Clone)]
struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// What was sent.
#[derive(Debug, Default)]
pub struct Said {
    /// Runs of which all was taken.
    pub runs: u64,
    /// Records that were taken.
    pub records: u64,
    /// Runs of which something is still to be sent.
    pub left: u64,
    /// Why, each once: what is about one run goes on with the next one, anything else ends the sending.
    pub faults: Vec<SyncFault>,
}

impl Sender {
    /// Prepares to send to the server at this address: that of the server, without the path of what is sent.
    ///
    /// # Errors
    /// When nothing may be sent there, or cannot.
    pub fn new(server: &str, token: &str, outbox: Outbox, ways: &Ways) -> Result<Self, SyncFault> {
        let address = Address::parse(server)?;
        if !address.is_guarded() {
            return Err(SyncFault::Unguarded { host: address.host() });
        }
        let courier = Courier::to(address.join("v1/sync"), ways)?;
        Ok(Self { outbox, courier, token: Token(token.to_owned()) })
    }

    /// What may be shown of where it goes.
    pub fn host(&self) -> String {
        self.courier.address().host()
    }

    /// What is sent, and out of where.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Sends what was not sent, the oldest run first. Dropped on its way, what has no receipt stays unsent.
    pub async fn send(&self, which: WhichUnsent) -> Said {
        let mut said = Said::default();
        let unsent = match self.outbox.unsent(which).await {
            Ok(unsent) => unsent,
            Err(fault) => {
                said.faults.push(fault);
                return said;
            }
        };
        said.left = unsent.len() as u64;
        for one in unsent {
            match self.send_run(&one, &mut said.records).await {
                Ok(()) => {
                    said.runs += 1;
                    said.left -= 1;
                }
                Err(fault) => {
                    let goes_on = fault.is_of_one_run();
                    said.faults.push(fault);
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        said
    }

    /// Tells the server of the runs that go on here, also where nothing happens in them: so that it knows that this machine lives.
    ///
    /// # Errors
    /// When the server did not take it.
    pub async fn beat(&self) -> Result<(), SyncFault> {
        for one in self.outbox.sent_and_driven().await? {
            self.send_run(&one, &mut 0).await?;
        }
        Ok(())
    }

    /// Sends what there is to send, again and again at this pace: more seldom where it does not go. Never ends; what goes wrong is told by who
    /// sends the rest in the end.
    pub async fn follow(&self, usual: Duration) -> Infallible {
        let (mut pace, mut since_beat) = (usual, Duration::ZERO);
        loop {
            tokio::time::sleep(pace).await;
            since_beat += pace;
            let said = self.send(WhichUnsent::Begun).await;
            let mut is_heard = said.faults.is_empty();
            if is_heard && since_beat >= HEARTBEAT {
                since_beat = Duration::ZERO;
                is_heard = self.beat().await.is_ok();
            }
            pace = if is_heard { usual } else { (pace * 2).min(SLOWEST_PACE.max(usual)) };
        }
    }

    async fn send_run(&self, unsent: &Unsent, records: &mut u64) -> Result<(), SyncFault> {
        let run = &unsent.run;
        // Where only its end was not sent, that goes after the last record.
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
                    // What the server lacks was sent before, so it is not behind what is sent now.
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

    async fn send_parcel(&self, parcel: &Parcel) -> Result<Reply, SyncFault> {
        let host = self.host();
        let body = serde_json::to_vec(parcel).unwrap_or_default();
        let letter = Letter { time: PARCEL_TIME, max_answer: LARGEST_ANSWER, ..Letter::json(body) };
        let answer = self.courier.send(&letter.with("authorization", format!("Bearer {}", self.token.0))).await?;
        let refusal = || serde_json::from_slice::<Refusal>(&answer.body).unwrap_or_default();
        let said = || crate::yaml::excerpt(&refusal().detail).to_string();
        match answer.status {
            200 => {
                let no = |what: &str| SyncFault::NoReceipt { host: host.clone(), what: what.to_owned() };
                let receipt: Receipt = serde_json::from_slice(&answer.body).map_err(|_| no("no JSON of that form"))?;
                match receipt == parcel.receipt() {
                    true => Ok(Reply::Taken),
                    false => Err(no("another run, another record, or another link of the chain")),
                }
            }
            401 | 403 => Err(SyncFault::Token { host, status: answer.status }),
            409 => match refusal().send_from {
                Some(from) => Ok(Reply::SendFrom(from, said())),
                None => Err(self.refused(&parcel.run, 409, said())),
            },
            400 | 413 | 422 => Err(self.refused(&parcel.run, answer.status, said())),
            status @ (408 | 429 | 500..) => Err(SyncFault::Later { host, status, detail: said() }),
            status => Err(SyncFault::NoServer { host, status }),
        }
    }

    fn refused(&self, run: &RunId, status: u16, detail: String) -> SyncFault {
        SyncFault::Refused { run: run.clone(), host: self.host(), status, detail }
    }
}

/// What a server says to a parcel.
enum Reply {
    /// It has all of it.
    Taken,
    /// It lacks what comes before.
    SendFrom(u64, String),
}
