//! Results of earlier batches of a project. Each ended batch has a file.

use super::super::failure::CliError;
use crate::batch::{BatchSummary, JobSummary};
use crate::driver::project_of;
use crate::store::{StoreError, make_private, project_dir, read_text, write_whole};
use anyhow::Context as _;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder of these files, within the project's state folder.
const FOLDER: &str = "batches";
/// The number of batches to keep for a project, newest first.
const KEPT: usize = 100;
/// The largest file to read, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;

/// The parts of a file that are read. Everything else follows from them.
#[derive(Debug, Deserialize)]
struct KeptBatch {
    batch: String,
    max_usd_micros: Option<u64>,
    duration_ms: u64,
    #[serde(default)]
    resume: Option<String>,
    jobs: Vec<JobSummary>,
}

/// Stores the summary of a batch, and removes the oldest files.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn keep(summary: &BatchSummary, state_dir: &Path, workspace: &Path) -> Result<(), StoreError> {
    let folder = folder(state_dir, workspace);
    make_private(&folder)?;
    write_whole(&folder.join(format!("{}.json", summary.batch)), summary.to_json().as_bytes())?;
    for (_, path) in files(&folder).into_iter().skip(KEPT) {
        fs::remove_file(&path).map_err(|source| StoreError::new("remove", &path, source))?;
    }
    Ok(())
}

/// Reads a file. Returns its text and the summary in it.
pub(in crate::cli) fn read(path: &Path) -> Result<(String, BatchSummary), CliError> {
    let text = read_text(path, LARGEST).map_err(CliError::own)?.unwrap_or_default();
    let kept: Result<KeptBatch, _> = serde_json::from_str(&text);
    let KeptBatch { batch, max_usd_micros, duration_ms, resume, jobs } =
        kept.with_context(|| format!("{} is not a batch summary of fledge", path.display())).map_err(CliError::own)?;
    Ok((text, BatchSummary::new(batch, jobs, max_usd_micros, duration_ms).resumed_by(resume)))
}

/// Returns the files of batches with their times, newest first.
pub(in crate::cli) fn files(folder: &Path) -> Vec<(SystemTime, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let paths = entries.map(|entry| entry.path()).filter(is_one);
    let mut all: Vec<(SystemTime, PathBuf)> =
        paths.filter_map(|path| Some((path.metadata().and_then(|meta| meta.modified()).ok()?, path))).collect();
    all.sort_by(|one, other| other.cmp(one));
    all
}

/// Returns the folder of these files.
pub(in crate::cli) fn folder(state_dir: &Path, workspace: &Path) -> PathBuf {
    project_dir(state_dir, &project_of(state_dir, workspace)).join(FOLDER)
}
