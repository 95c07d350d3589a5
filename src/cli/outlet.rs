//! Files that are written when all is over: whether they can be is known before anything begins.

use super::failure::Failure;
use crate::workspace::Outlet;
use anyhow::anyhow;
use rustix::fs::{Access, access};
use std::path::Path;

/// Checks that a file could be written to `path`, which `flag` names.
///
/// # Errors
/// When there is no folder for it, or one that is not ours to write, or a folder in its place.
pub(super) fn has_place(flag: &str, path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let why = if path.is_dir() {
        "it is a folder"
    } else if !folder.is_dir() {
        "there is no folder for it"
    } else if !path.exists() && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        "its folder cannot be written to"
    } else if path.exists() && access(path, Access::WRITE_OK).is_err() {
        "it cannot be written to"
    } else {
        return Ok(());
    };
    Err(Failure::input(anyhow!("{flag} {}: {why}", path.display())))
}

/// The same for what is written after an agent was at work; gives where it really is.
///
/// # Errors
/// Also when the way leads through a link in the workspace.
pub(super) fn outlet(flag: &str, path: &Path, workspace: &Path) -> Result<Outlet, Failure> {
    let found = Outlet::find(path, workspace).map_err(|fault| Failure::input(anyhow!("{flag}: {fault}")))?;
    has_place(flag, found.path()).map(|()| found)
}
