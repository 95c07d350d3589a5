//! Checks, before anything begins, that output files can be written at the end.

use super::failure::CliError;
use crate::verdict::shell_word;
use crate::workspace::AtomicOutput;
use anyhow::anyhow;
use rustix::fs::{Access, access};
use std::path::Path;

/// Checks that a file could be written to `path`, which `flag` names.
///
/// # Errors
/// When `path` is a folder, or its folder does not exist or cannot be written.
pub(super) fn check_writable(flag: &str, path: &Path) -> Result<(), CliError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = folder.display();
    let why = if path.is_dir() {
        let error = anyhow!("{flag} {}: the path is a folder", path.display());
        return Err(CliError::input(error).hint("name a file in it"));
    } else if !folder.is_dir() {
        let error = anyhow!("{flag} {}: its folder does not exist", path.display());
        return Err(CliError::input(error)
            .hint(format!("create the folder with `mkdir -p {}`", shell_word(&shown.to_string()))));
    } else if !path.exists() && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        "its folder is not writable"
    } else if path.exists() && access(path, Access::WRITE_OK).is_err() {
        "the file is not writable"
    } else {
        return Ok(());
    };
    Err(CliError::input(anyhow!("{flag} {}: {why}", path.display())))
}

/// Finds the real path of a file that is written after an agent's work, and checks it like
/// [`check_writable`].
///
/// # Errors
/// Those of [`check_writable`]; also when the path leads through a link in the workspace.
pub(super) fn find_output(flag: &str, path: &Path, workspace: &Path) -> Result<AtomicOutput, CliError> {
    let found = AtomicOutput::find(path, workspace).map_err(|fault| CliError::input(anyhow!("{flag}: {fault}")))?;
    check_writable(flag, found.path()).map(|()| found)
}
