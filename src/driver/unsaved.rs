//! Changes by tools since the last kept state.

use crate::chat::ToolOutcome;
use crate::tool::{Tool, ToolEffect};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The paths that file tools have written. `None` if anything may have changed.
#[derive(Debug, Default)]
pub(super) struct UnsavedPaths(Mutex<Option<BTreeSet<String>>>);

impl UnsavedPaths {
    /// Records that a tool with this name starts.
    pub(super) fn begins(&self, tool: &str) {
        if !Tool::find(tool).is_some_and(|tool| tool.names_its_changes()) {
            self.anything();
        }
    }

    /// Records the change of a call that has ended.
    pub(super) fn ended(&self, outcome: &ToolOutcome) {
        if let (Some(paths), Some(change)) = (self.paths().as_mut(), &outcome.change) {
            paths.insert(change.path.clone());
        }
    }

    /// Records that anything may have changed.
    pub(super) fn anything(&self) {
        *self.paths() = None;
    }

    /// Takes the changes, just before they are kept. Until [`UnsavedPaths::kept`], anything may have
    /// changed.
    pub(super) fn take_paths(&self) -> Option<BTreeSet<String>> {
        self.paths().take()
    }

    /// Records that all changes are kept.
    pub(super) fn kept(&self) {
        *self.paths() = Some(BTreeSet::new());
    }

    fn paths(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if a tool changes nothing, so that it may run again. An unknown tool may change
/// something.
pub(super) fn only_looks(tool: &str) -> bool {
    Tool::find(tool).is_some_and(|tool| tool.flags.effect == ToolEffect::ReadOnly)
}
