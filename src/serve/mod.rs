//! The server: one long-running process that serves one project over HTTP to holders of its token,
//! until it is stopped.
//!
//! ```text
//! lease      the lock that allows one server per project
//! entrance   authentication: the token, one-time links, sessions
//! http       sockets, limits, checks; problems, the OpenAPI document, health and metrics
//! api        the endpoints
//! page       the web page
//! broadcast  news for all listeners
//! app_state  the state shared by all of these
//! ```

mod api;
mod app_state;
mod broadcast;
mod clock;
pub mod engine;
mod entrance;
mod error;
mod http;
mod lease;
mod page;

pub use app_state::{AppParts, AppState};
pub use broadcast::{Broadcaster, ServerNews, Subscription, Topic};
pub use entrance::{AccessToken, LoginGuard, LoginLink};
pub use error::ServeError;
pub use http::{ServerListener, serve};
pub use lease::ServeLease;

use crate::store::project_dir;
use std::path::{Path, PathBuf};

/// Returns the folder of a project's server within the project's state. It holds the lock, the
/// token, the links and the sessions.
pub fn folder(state_dir: &Path, project: &Path) -> PathBuf {
    project_dir(state_dir, project).join("serve")
}

/// Returns the database with the requests for runs that wait for a project's server.
pub fn queue_path(state_dir: &Path, project: &Path) -> PathBuf {
    project_dir(state_dir, project).join("queue.db")
}
