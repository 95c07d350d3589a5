//! The files and the repository of a room. The files are a checkout of the base with a layer over
//! it. The room has no part of the user's repository: fledge copies the history that is reachable
//! from the base once per base, and adds one commit for the judged tree. Objects of other branches,
//! hooks and configuration are not copied.

mod alone;
mod checkout;
mod history;
pub(in crate::workspace) mod index;
mod layer;
mod room;
mod source;

pub use alone::write_alone;
pub use checkout::Checkout;
pub use history::KeptHistory;
pub use layer::{LayerEntry, LayerSides};
pub use room::{RoomRepository, write};
pub use source::SourceRepository;
