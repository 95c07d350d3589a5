//! Errors of sending runs.

use crate::http::HttpError;
use crate::id::RunId;
use crate::store::StoreError;

/// An error of sending. The data stays unsent.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum SyncError {
    /// The request did not arrive, or no answer came back.
    #[error(transparent)]
    Courier(#[from] HttpError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The access to the store panicked.
    #[error("cannot read the stored runs")]
    Broken,
    /// A token may not be sent to this address.
    #[error("refusing to send the token to {host} without https")]
    Unguarded { host: String },
    /// The server refuses the token.
    #[error("{host} rejects the token (status {status})")]
    Token { host: String, status: u16 },
    /// The address is not that of a fledge server that takes runs.
    #[error("{host} is not a fledge server that accepts runs (status {status})")]
    NoServer { host: String, status: u16 },
    /// The server cannot take runs now.
    #[error("{host} cannot accept runs now (status {status}): {detail}")]
    Later { host: String, status: u16, detail: String },
    /// The answer is not a receipt for what was sent.
    #[error("invalid receipt from {host}: {what}")]
    NoReceipt { host: String, what: String },
    /// The server refuses this run.
    #[error("{host} rejects run {run} (status {status}): {detail}")]
    Refused { run: RunId, host: String, status: u16, detail: String },
    /// A record is larger than one parcel may be.
    #[error("record {seq} of run {run} is too large to send ({bytes} bytes)")]
    TooLarge { run: RunId, seq: u64, bytes: usize },
}

impl SyncError {
    /// Returns true if the error concerns one run alone, so that other runs can be sent.
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
