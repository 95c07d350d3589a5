//! Shared by all unit tests: the one limit on waiting.

use std::time::Duration;

/// The limit on each wait for an event. It only bounds a hang: no busy machine is that slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
