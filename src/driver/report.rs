//! Writes the report: into the run's folder, and wherever the caller wants a copy. None stays that says a better end than the run had.

use super::Settings;
use crate::report::Report;
use crate::run::TaskResult;
use crate::store::{RunDir, StoreError, read_text, write_whole};
use crate::task::Task;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The largest report that is read again, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;

/// Writes the report of a result, and copies of it.
///
/// # Errors
/// When one of its places cannot be written.
pub(super) fn save(
    result: &TaskResult,
    task: &Task,
    settings: &Settings,
    run_dir: &RunDir,
    copies: &[PathBuf],
) -> Result<(), StoreError> {
    let text = text(result, task, settings, run_dir);
    write_whole(&run_dir.report(), text.as_bytes())?;
    copies.iter().try_for_each(|path| write_whole(path, text.as_bytes()))
}

/// Writes it wherever that goes. From where it does not, an older report of the same run is removed.
pub(super) fn replace(result: &TaskResult, task: &Task, settings: &Settings, run_dir: &RunDir, copies: &[PathBuf]) {
    let text = text(result, task, settings, run_dir);
    for path in [&run_dir.report()].into_iter().chain(copies) {
        let Err(error) = write_whole(path, text.as_bytes()) else { continue };
        tracing::error!(%error, "the report cannot be written");
        if read(path).is_some_and(|old| old["run"] == result.run.as_str())
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::error!(%error, path = %path.display(), "an older report of this run is left, and does not say how it ended");
        }
    }
}

/// Whether the report in the run's folder says that the run ended like this.
pub(super) fn says(run_dir: &RunDir, result: &TaskResult) -> bool {
    read(&run_dir.report())
        .is_some_and(|report| report["reason"] == result.reason.to_string() && report["exit_code"] == result.exit_code)
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_str(&read_text(path, LARGEST).ok()??).ok()
}

fn text(result: &TaskResult, task: &Task, settings: &Settings, run_dir: &RunDir) -> String {
    let task_digest = crate::store::sha256(task.prompt.as_bytes());
    Report::new(result.clone(), &task.source, task_digest, &settings.workspace, run_dir.path()).to_json()
}
