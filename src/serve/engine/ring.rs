//! Where the engine tells its news.

use super::super::bell::{Bell, Topic};
use serde_json::Value;

/// The bell, for what the engine has to say.
#[derive(Debug, Clone)]
pub(super) struct Ring(pub(super) Bell);

impl Ring {
    /// About a run.
    pub(super) fn run(&self, data: Value) {
        self.0.ring(Topic::Run, data);
    }

    /// About a question.
    pub(super) fn confirmation(&self, data: Value) {
        self.0.ring(Topic::Confirmation, data);
    }
}
