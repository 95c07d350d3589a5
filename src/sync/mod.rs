//! What runs elsewhere have to tell a server: records are sent as their journal has them, and believed only as far as their chain holds.
//!
//! ```text
//! wire     what goes over: a parcel, its receipt, a refusal
//! outbox   what is to be sent, out of the store, and what has been
//! sender   who sends it, and what an answer must be to count
//! intake   who takes it
//! ```
//!
//! A run is not held up, nor is its end changed, by whatever a server does. Nothing counts as sent but what the server has named by its
//! link in the chain.

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
