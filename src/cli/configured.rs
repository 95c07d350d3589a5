//! The configuration of a project, read after fledge has undone changes that unfinished runs made
//! to it.

use super::paint::{self, Tone};
use crate::config::{self, ConfigError, EnvironmentLayer, ProjectConfig};
use crate::driver::restore_project_configuration;
use std::path::Path;

/// Restores the configuration with a note for each change, then reads all layers like
/// [`config::load`]. `workspace` is a canonical path.
///
/// # Errors
/// Those of [`config::load`].
pub(super) fn load(environment: &EnvironmentLayer, workspace: &Path) -> Result<ProjectConfig, ConfigError> {
    restore_configuration(environment, workspace);
    config::load(environment, workspace)
}

/// Reads all layers for a command that calls no model. Prints a note for each setting that it
/// ignores because a project may not set it.
///
/// # Errors
/// Those of [`config::load_without_models`].
pub(super) fn load_without_models(
    environment: &EnvironmentLayer,
    workspace: &Path,
) -> Result<ProjectConfig, ConfigError> {
    restore_configuration(environment, workspace);
    let (settings, left_out) = config::load_without_models(environment, workspace)?;
    left_out.iter().for_each(|note| warn(note));
    Ok(settings)
}

/// Restores the configuration and prints a note for each change. For callers that read it, or ask
/// the user's git, without [`load`].
pub(super) fn restore_configuration(environment: &EnvironmentLayer, workspace: &Path) {
    for note in restored_notes(environment, workspace) {
        warn(&note);
    }
}

fn warn(note: &str) {
    paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(note))]);
}

/// Restores the configuration and returns notes for the user.
pub(super) fn restored_notes(environment: &EnvironmentLayer, workspace: &Path) -> Vec<String> {
    environment.state_dir().map_or_else(|_| Vec::new(), |state| restore_project_configuration(&state, workspace))
}
