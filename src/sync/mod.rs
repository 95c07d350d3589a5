//! Sync of runs to a server. Records are sent as they are in the journal, and the server accepts
//! them only if they continue the hash chain.
//!
//! ```text
//! wire     what goes over: a parcel, its receipt, a refusal
//! outbox   what is to be sent, out of the store, and what has been
//! sender   who sends it, and what an answer must be to count
//! intake   who takes it
//! ```
//!
//! A server neither delays a run nor changes its outcome. Data counts as sent only if the server
//! confirms it by its link in the chain.

mod fault;
mod intake;
mod outbox;
mod sender;
mod wire;

pub use fault::SyncFault;
pub use intake::{Refused, take};
pub use outbox::Outbox;
pub use sender::{Said, Sender};
pub use wire::{Begin, End, LARGEST_PARCEL, Parcel, Receipt, Refusal, WIRE_VERSION, WireRecord};

#[cfg(test)]
mod tests;
