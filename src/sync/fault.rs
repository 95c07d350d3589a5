//! Why something was not sent.

use crate::courier::CourierError;
use crate::id::RunId;
use crate::store::StoreError;

/// Something was not sent. It stays unsent.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum SyncFault {
    /// It did not get there, or no answer came back.
    #[error(transparent)]
    Courier(#[from] CourierError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A look into the store panicked.
    #[error("the runs could not be looked through")]
    Broken,
    /// The address is not one that a token may be sent to.
    #[error("{host} is not this machine and not https: whoever is on the way could read the token")]
    Unguarded { host: String },
    /// The token is not the right one.
    #[error("{host} does not take the token (status {status})")]
    Token { host: String, status: u16 },
    /// There is no server of this kind.
    #[error("{host} is no fledge server that takes runs (status {status})")]
    NoServer { host: String, status: u16 },
    /// The server cannot take anything now.
    #[error("{host} cannot take runs now (status {status}): {detail}")]
    Later { host: String, status: u16, detail: String },
    /// What was answered is no receipt for what was sent.
    #[error("{host} answers something else than a receipt for what was sent: {what}")]
    NoReceipt { host: String, what: String },
    /// The server does not take this run.
    #[error("run {run} is not taken by {host} (status {status}): {detail}")]
    Refused { run: RunId, host: String, status: u16, detail: String },
    /// A record is larger than what is sent at once.
    #[error("record {seq} of run {run} is too large to be sent ({bytes} bytes)")]
    TooLarge { run: RunId, seq: u64, bytes: usize },
}

impl SyncFault {
    /// Whether it is about one run alone, so that others may go.
    pub fn is_of_one_run(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::TooLarge { .. } | Self::NoReceipt { .. } => true,
            Self::Store(error) => matches!(error, StoreError::Damaged { .. } | StoreError::Unknown { .. }),
            Self::Courier(_)
            | Self::Broken
            | Self::Unguarded { .. }
            | Self::Token { .. }
            | Self::NoServer { .. }
            | Self::Later { .. } => false,
        }
    }
}
