//! `--record`: what the models of a run have said, written as a cassette when it is over, however it ended.

use super::failure::Failure;
use super::outlet::outlet;
use crate::driver::{ResumeFault, cassette};
use crate::id::RunId;
use crate::store::Store;
use crate::workspace::Outlet;
use anyhow::anyhow;
use std::path::{Component, Path};

/// Finds where the cassette comes to be, before anybody is at work.
///
/// # Errors
/// When there is something already, no folder for it, or git's own.
pub(super) fn place(path: &Path, workspace: &Path) -> Result<Outlet, Failure> {
    let found = outlet_beside_git("--record", path, workspace)?;
    if found.path().symlink_metadata().is_ok() {
        let error = anyhow!("--record {}: there is a file of that name already", path.display());
        return Err(Failure::input(error).hint("name another file, or remove that one: it is not replaced"));
    }
    Ok(found)
}

/// The same for what may take the place of a file.
///
/// # Errors
/// When there is no folder for it, or git's own.
pub(super) fn outlet_beside_git(flag: &str, path: &Path, workspace: &Path) -> Result<Outlet, Failure> {
    let found = outlet(flag, path, workspace)?;
    let is_git = |part: Component<'_>| matches!(part, Component::Normal(name) if name == ".git");
    if found.path().components().any(is_git) {
        let error = anyhow!("{flag} {}: it would lie inside of `.git`, which belongs to git", path.display());
        return Err(Failure::input(error).hint("name a file elsewhere"));
    }
    Ok(found)
}

/// The cassette of a run, as text.
///
/// # Errors
/// When its journal cannot be read.
pub(super) fn text(store: &Store, run: &RunId) -> Result<String, Failure> {
    let recording = cassette(store, run).map_err(|fault: ResumeFault| Failure::because(fault.reason(), fault))?;
    recording.to_yaml(&format!("run {run}")).map_err(Failure::own)
}

/// Writes the cassette of a run, whole or not at all.
///
/// # Errors
/// When its journal cannot be read, or the file not be written.
pub(super) fn write(place: &Outlet, store: &Store, run: &RunId) -> Result<(), Failure> {
    place.write(text(store, run)?.as_bytes(), &|| true).map_err(Failure::own)
}
