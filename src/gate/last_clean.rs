//! The reasons why a lane failed in its last run by hand in a clean room, stored for later
//! messages.

use super::digest_of;
use crate::lane::Lane;
use crate::store::{StoreError, read_text, write_whole};
use crate::verdict::StepReport;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of these files, within the project's folder.
const FOLDER: &str = "clean";
/// The largest file to read, in bytes.
const MOST: usize = 1 << 20;
/// The maximum number of reasons to keep.
const REASONS: usize = 10;

#[derive(Debug, Serialize, Deserialize)]
struct Last {
    /// The digest of the lane. The reasons do not apply to a changed lane.
    lane: String,
    reasons: Vec<String>,
}

fn place(project: &Path, lane: &Lane) -> PathBuf {
    project.join(FOLDER).join(format!("{}.json", lane.name.replace('/', "%2F")))
}

fn digest(lane: &Lane) -> String {
    digest_of(std::slice::from_ref(lane))
}

/// Stores the reasons of a failure, or the failed steps if no reasons exist. After a pass,
/// removes them.
///
/// # Errors
/// [`StoreError`] when the file cannot be written.
pub fn keep(
    project: &Path,
    lane: &Lane,
    has_passed: bool,
    reasons: &[String],
    steps: &[StepReport],
) -> Result<(), StoreError> {
    let place = place(project, lane);
    if has_passed {
        let _there_may_be_none = fs::remove_file(place);
        return Ok(());
    }
    let failed =
        steps.iter().filter(|step| step.status.is_failure()).map(|step| format!("step `{}` failed", step.step));
    let failed: Vec<String> = failed.filter(|_| reasons.is_empty()).collect();
    let reasons = reasons.iter().cloned().chain(failed).take(REASONS).collect();
    let folder = project.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| StoreError::new("make the folder", &folder, error))?;
    let last = serde_json::to_vec(&Last { lane: digest(lane), reasons }).unwrap_or_default();
    write_whole(&place, &last)
}

/// Returns the reasons why the last run of this lane in a clean room failed. Returns none if that
/// run passed, or there was none.
pub fn recall(project: &Path, lane: &Lane) -> Vec<String> {
    let text = read_text(&place(project, lane), MOST).ok().flatten();
    let last = text.and_then(|text| serde_json::from_str::<Last>(&text).ok());
    last.filter(|last| last.lane == digest(lane)).map_or_else(Vec::new, |last| last.reasons)
}
