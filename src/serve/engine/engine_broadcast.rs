//! The news of the engine.

use super::super::broadcast::{Broadcaster, Topic};
use serde_json::Value;

/// The sender of the engine's news.
#[derive(Debug, Clone)]
pub(super) struct EngineBroadcast(pub(super) Broadcaster);

impl EngineBroadcast {
    /// Sends news about a run.
    pub(super) fn run(&self, data: Value) {
        self.0.ring(Topic::Run, data);
    }

    /// Sends news about a question.
    pub(super) fn confirmation(&self, data: Value) {
        self.0.ring(Topic::Confirmation, data);
    }
}
