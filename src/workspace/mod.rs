//! The directory that the agent may change: access to its files in [`jail`], protected paths,
//! states as git trees, and the delivery of the work.

mod changes;
pub mod delivery;
pub mod jail;
mod outlet;
mod protection;
pub mod replica;
pub mod trees;
pub mod worktree;

pub use changes::{changed_paths, ignored_paths, listed_paths};
pub use outlet::{AtomicOutput, OutputError};
pub use protection::{ProtectedRule, Protection};
