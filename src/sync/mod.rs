//! Sync of runs to a server. Records are sent as they are in the journal, and the server accepts
//! them only if they continue the hash chain.
//!
//! ```text
//! wire     the messages: a batch of records, its receipt, a refusal
//! outbox   the records to send, from the store, and what was sent
//! sender   sends the records, and checks the answer
//! intake   receives the records on the server
//! ```
//!
//! A server neither delays a run nor changes its outcome. Data counts as sent only if the server
//! confirms it by its link in the chain.

mod error;
mod intake;
mod outbox;
mod sender;
mod wire;

pub use error::SyncError;
pub use intake::{Refused, take};
pub use outbox::SyncOutbox;
pub use sender::{SendResult, SyncSender};
pub use wire::{LARGEST_PARCEL, SyncBatch, SyncBegin, SyncEnd, SyncReceipt, SyncRefusal, WIRE_VERSION, WireRecord};

#[cfg(test)]
mod tests;
