//! Writes the report: into the run's folder, and wherever the caller wants a copy. What later runs may want to know of it is remembered.

use super::{Settings, memory};
use crate::report::Report;
use crate::run::TaskResult;
use crate::store::{RunDir, StoreError, write_whole};
use crate::task::Task;
use std::path::PathBuf;

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
    memory::keep(result, task, settings);
    let task_digest = crate::store::sha256(task.prompt.as_bytes());
    let report = Report::new(result.clone(), &task.source, task_digest, &settings.workspace, run_dir.path());
    let text = report.to_json();
    write_whole(&run_dir.report(), text.as_bytes())?;
    copies.iter().try_for_each(|path| write_whole(path, text.as_bytes()))
}
