//! The runner that stays: one process that serves one project by HTTP to whoever has its token, until it is asked to stop.
//!
//! ```text
//! lease      one server for a project at a time
//! entrance   who gets in: the token, one-time links, sessions
//! http       sockets, bounds, the guard; problems, the OpenAPI document, health and figures
//! api        what can be asked for
//! page       what people see
//! bell       what happens, for all who listen
//! house      what all of these share
//! ```

mod api;
mod bell;
mod clock;
pub mod engine;
mod entrance;
mod fault;
mod house;
mod http;
mod lease;
mod page;

pub use bell::{Bell, Ear, News, Topic};
pub use entrance::{Entrance, Link, Token};
pub use fault::ServeFault;
pub use house::{House, Parts};
pub use http::{Door, serve};
pub use lease::Lease;

use crate::store::project_dir;
use std::path::{Path, PathBuf};

/// The folder of a project's server among what is kept of the project: its lock, its token, links and sessions.
pub fn folder(state_dir: &Path, project: &Path) -> PathBuf {
    project_dir(state_dir, project).join("serve")
}
