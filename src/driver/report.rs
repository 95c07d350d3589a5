//! Writes the report into the run's folder, and to each place for a copy. Removes a report that
//! claims a better end than the run had.

use super::DriverSettings;
use crate::error_chain::chain;
use crate::report::Report;
use crate::run::TaskResult;
use crate::store::{RunDir, read_text, write_whole};
use crate::task::Task;
use crate::workspace::AtomicOutput;
use serde_json::Value;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The largest report that fledge reads back, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;
/// Does not wait for the reader of a pipe.
const NOW: &dyn Fn() -> bool = &|| false;

impl DriverSettings {
    /// Returns the places for copies of the report.
    pub(super) fn report_copies(&self) -> Vec<AtomicOutput> {
        self.reports.iter().map(|path| AtomicOutput::found(path, &self.workspace)).collect()
    }
}

/// Writes the report of a result, and copies of it. Waits for the reader of a pipe until the stop.
///
/// # Errors
/// A message, if a place cannot be written.
pub(super) async fn save(
    result: &TaskResult,
    task: &Task,
    settings: &DriverSettings,
    run_dir: &RunDir,
    stop: &CancellationToken,
) -> Result<(), String> {
    let text = text(result, task, settings, run_dir);
    write_whole(&run_dir.report(), text.as_bytes()).map_err(|error| chain(&error))?;
    write_out(settings.report_copies(), text.into_bytes(), stop).await
}

/// Writes the same bytes to each of these places, on a thread for blocking work.
///
/// # Errors
/// A message, if a place cannot be written.
pub(super) async fn write_out(
    outputs: Vec<AtomicOutput>,
    bytes: Vec<u8>,
    stop: &CancellationToken,
) -> Result<(), String> {
    let stop = stop.clone();
    let work = move || outputs.iter().try_for_each(|output| output.write(&bytes, &|| !stop.is_cancelled()));
    let written = tokio::task::spawn_blocking(work).await.map_err(|error| chain(&error))?;
    written.map_err(|fault| chain(&fault))
}

/// Writes the report of an ended run again, and its copies. Does not wait for the reader of a pipe.
///
/// # Errors
/// As for [`save`].
pub(super) fn correct(
    result: &TaskResult,
    task: &Task,
    settings: &DriverSettings,
    run_dir: &RunDir,
) -> Result<(), String> {
    let text = text(result, task, settings, run_dir);
    write_whole(&run_dir.report(), text.as_bytes()).map_err(|error| chain(&error))?;
    let mut outputs = settings.report_copies().into_iter();
    outputs.try_for_each(|output| output.write(text.as_bytes(), NOW)).map_err(|fault| chain(&fault))
}

/// Writes the report wherever possible. Elsewhere, removes an older report of this run.
pub(super) fn replace(
    result: &TaskResult,
    task: &Task,
    settings: &DriverSettings,
    run_dir: &RunDir,
    copies: &[AtomicOutput],
) {
    let text = text(result, task, settings, run_dir);
    let own = AtomicOutput::found(&run_dir.report(), &settings.workspace);
    for output in [&own].into_iter().chain(copies) {
        let Err(error) = output.write(text.as_bytes(), NOW) else { continue };
        tracing::error!(error = %chain(&error), "cannot write the report");
        let is_ours = |old: &str| parsed(old).is_some_and(|old| old["run"] == result.run.as_str());
        if let Err(error) = output.remove_if(LARGEST as u64, is_ours) {
            tracing::error!(%error, path = %output.path().display(), "an outdated report of this run remains");
        }
    }
}

/// Returns true if the report in the run's folder has the reason and the exit code of this result.
pub(super) fn says(run_dir: &RunDir, result: &TaskResult) -> bool {
    read(&run_dir.report())
        .is_some_and(|report| report["reason"] == result.reason.to_string() && report["exit_code"] == result.exit_code)
}

fn read(path: &Path) -> Option<Value> {
    parsed(&read_text(path, LARGEST).ok()??)
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn text(result: &TaskResult, task: &Task, settings: &DriverSettings, run_dir: &RunDir) -> String {
    let task_digest = crate::store::sha256(task.prompt.as_bytes());
    Report::new(result.clone(), &task.source, task_digest, &settings.workspace, run_dir.path()).to_json()
}
