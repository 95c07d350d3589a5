//! What tools may have changed since the last state that was kept.

use crate::chat::ToolOutcome;
use crate::tool::{Effect, Tool};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The paths that file tools have written; `None` where anything may have changed.
#[derive(Debug, Default)]
pub(super) struct Unkept(Mutex<Option<BTreeSet<String>>>);

impl Unkept {
    /// A tool with this name begins.
    pub(super) fn begins(&self, tool: &str) {
        if !Tool::find(tool).is_some_and(|tool| tool.names_its_changes()) {
            self.anything();
        }
    }

    /// A call has ended.
    pub(super) fn ended(&self, outcome: &ToolOutcome) {
        if let (Some(paths), Some(change)) = (self.paths().as_mut(), &outcome.change) {
            paths.insert(change.path.clone());
        }
    }

    /// Anything may have changed.
    pub(super) fn anything(&self) {
        *self.paths() = None;
    }

    /// Gives what is not kept, before that is kept.
    pub(super) fn take(&self) -> Option<BTreeSet<String>> {
        self.paths().take()
    }

    /// All that had changed is kept.
    pub(super) fn kept(&self) {
        *self.paths() = Some(BTreeSet::new());
    }

    fn paths(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a tool changes nothing, so that it may be run again. One that is not known may.
pub(super) fn only_looks(tool: &str) -> bool {
    Tool::find(tool).is_some_and(|tool| tool.flags.effect == Effect::ReadOnly)
}
