//! The repository of a room. Rooms have no part of the user's repository: fledge copies the history
//! that is reachable from the base once per base, and adds one commit for the judged tree. Objects
//! of other branches, hooks and configuration stay out.

mod history;
pub(in crate::workspace) mod index;
mod room;
mod source;

pub use history::History;
pub use room::{RoomRepository, write};
pub use source::SourceRepository;
