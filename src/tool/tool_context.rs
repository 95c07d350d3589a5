//! The context of tool calls: the workspace, the rules, the ledger of files and the store for
//! results that are too long to show.

use super::ledger::{self, FileLedger};
use super::memory_access::MemoryAccess;
use super::rules::ToolRules;
use super::{ToolError, bound};
use crate::chat::{FileChange, OutcomeDetail, ToolOutcome};
use crate::id::CallId;
use crate::process::ProcessBounds;
use crate::verdict::StepLog;
use crate::workspace::jail::{FinalLink, Jail, JailPlace};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The largest file that tools read or edit, in bytes.
pub(super) const MAX_FILE: u64 = 16 * 1024 * 1024;
/// The prefix by which `files-read` addresses stored results.
pub(super) const OUTPUT: &str = "@output/";

/// All resources that a tool may use.
#[derive(Debug)]
pub(super) struct ToolContext {
    pub(super) jail: Jail,
    pub(super) outputs: Jail,
    pub(super) rules: ToolRules,
    pub(super) ledger: Mutex<FileLedger>,
    pub(super) env: Vec<(String, String)>,
    pub(super) max_result: usize,
    pub(super) shell_timeout: Duration,
    pub(super) bounds: ProcessBounds,
    /// The memory of the project, unless the run has none.
    pub(super) memory: Option<MemoryAccess>,
    /// The logs of the gate's steps that the model may read.
    pub(super) logs: Mutex<Arc<[StepLog]>>,
}

impl ToolContext {
    /// Locks the ledger of files. A tool that changes a file holds the lock from its first read to
    /// its last record, so that changes do not interleave.
    pub(super) fn ledger(&self) -> MutexGuard<'_, FileLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the logs of the gate's steps.
    pub(super) fn logs(&self) -> Arc<[StepLog]> {
        Arc::clone(&self.logs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn show_logs(&self, logs: Vec<StepLog>) {
        *self.logs.lock().unwrap_or_else(PoisonError::into_inner) = logs.into();
    }

    /// Locates a file for reading.
    pub(super) fn readable(&self, path: &str) -> Result<JailPlace, ToolError> {
        Ok(self.jail.locate(&self.jail.path(path)?, FinalLink::Follow)?)
    }

    /// Locates a file for writing. The rules must allow both the given path and the real path
    /// behind links.
    pub(super) fn writable(&self, path: &str, last: FinalLink) -> Result<JailPlace, ToolError> {
        let path = self.jail.path(path)?;
        self.rules.check(&path)?;
        let place = self.jail.locate(&path, last)?;
        self.rules.check(place.real())?;
        Ok(place)
    }

    /// Writes a file for a call and records the change.
    pub(super) fn put(
        &self,
        call: CallId,
        ledger: &mut FileLedger,
        place: &JailPlace,
        before: Option<&[u8]>,
        after: &[u8],
        said: String,
    ) -> Result<ToolOutcome, ToolError> {
        if before == Some(after) {
            // Do not report this as a change: a model that rewrites the same content makes no
            // progress.
            ledger.saw(call, place.real(), after);
            return Ok(ToolOutcome::ok(format!("`{}` has this content already: nothing was changed", place.real())));
        }
        place.write(after, 0o666)?;
        let change: FileChange = ledger.changed(call, place.real(), before, Some(after));
        let diff = ledger::diff(place.real(), before.unwrap_or_default(), after);
        Ok(ToolOutcome { change: Some(change), detail: OutcomeDetail::Diff(diff), ..ToolOutcome::ok(said) })
    }

    /// Locates the file that keeps the whole result of a call.
    pub(super) fn output(&self, call: CallId) -> Result<JailPlace, ToolError> {
        Ok(self.outputs.locate(&self.outputs.path(&format!("{call}.txt"))?, FinalLink::Follow)?)
    }

    /// Returns the path of that file, for a process that writes the file itself. Creates the file,
    /// readable and writable only by its owner.
    pub(super) fn output_file(&self, call: CallId) -> Result<PathBuf, ToolError> {
        let place = self.output(call)?;
        place.write(b"", 0o600)?;
        Ok(self.outputs.root().join(place.real().as_str()))
    }

    /// Returns the text for the model. A text that is too long is cut, and the whole text is kept
    /// under the call's number.
    pub(super) fn bounded(&self, call: CallId, text: String) -> String {
        self.bounded_to(self.max_result, call, text)
    }

    /// Returns the text like [`ToolContext::bounded`], but with this limit in bytes.
    pub(super) fn bounded_to(&self, limit: usize, call: CallId, text: String) -> String {
        if text.len() <= limit {
            return text;
        }
        let kept = self.output(call).and_then(|place| Ok(place.write(text.as_bytes(), 0o600)?));
        let whereabouts = match kept {
            Ok(()) => format!("all of it: files-read {OUTPUT}{call}"),
            Err(error) => bound::line(&format!("the rest is lost: {error}"), bound::NOTE / 2),
        };
        bound::cut(&text, limit, &whereabouts).unwrap_or(text)
    }
}
