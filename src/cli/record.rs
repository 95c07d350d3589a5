//! `--record`: the models' answers of a run, written as a cassette at the end of every run, even a
//! failed one.

use super::failure::CliError;
use super::output_path::find_output;
use crate::driver::{ResumeError, cassette};
use crate::id::RunId;
use crate::store::Store;
use crate::workspace::AtomicOutput;
use anyhow::anyhow;
use std::path::{Component, Path};

/// Finds the place of the cassette before any agent works.
///
/// # Errors
/// When the file exists, has no folder, or is in `.git`.
pub(super) fn place(path: &Path, workspace: &Path) -> Result<AtomicOutput, CliError> {
    let found = find_output_beside_git("--record", path, workspace)?;
    if found.path().symlink_metadata().is_ok() {
        let error = anyhow!("--record {}: the file exists already", path.display());
        return Err(CliError::input(error).hint("name another file, or remove the existing file"));
    }
    Ok(found)
}

/// Finds the place of a file that may replace another one.
///
/// # Errors
/// When the file has no folder, or is in `.git`.
pub(super) fn find_output_beside_git(flag: &str, path: &Path, workspace: &Path) -> Result<AtomicOutput, CliError> {
    let found = find_output(flag, path, workspace)?;
    let is_git = |part: Component<'_>| matches!(part, Component::Normal(name) if name == ".git");
    if found.path().components().any(is_git) {
        let error = anyhow!("{flag} {}: cannot write inside `.git`, which belongs to git", path.display());
        return Err(CliError::input(error).hint("name a file outside `.git`"));
    }
    Ok(found)
}

/// Returns the cassette of a run as text.
///
/// # Errors
/// When its journal cannot be read.
pub(super) fn text(store: &Store, run: &RunId) -> Result<String, CliError> {
    let recording = cassette(store, run).map_err(|fault: ResumeError| CliError::because(fault.reason(), fault))?;
    recording.to_yaml(&format!("run {run}")).map_err(CliError::own)
}

/// Writes the cassette of a run, completely or not at all.
///
/// # Errors
/// When its journal cannot be read, or the file cannot be written.
pub(super) fn write(place: &AtomicOutput, store: &Store, run: &RunId) -> Result<(), CliError> {
    place.write(text(store, run)?.as_bytes(), &|| true).map_err(CliError::own)
}
