//! The directory that the agent may change: files by way of [`jail`], and which of them it may not change.

mod changes;
pub mod delivery;
pub mod jail;
mod outlet;
pub mod pattern;
mod protection;
pub mod replica;
pub mod trees;
pub mod worktree;

pub use changes::{changed_paths, ignored_paths, listed_paths};
pub use outlet::{Outlet, OutletFault};
pub use protection::{ProtectedRule, Protection};
