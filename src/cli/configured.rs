//! The configuration of a project, once what an unfinished run has left of it is as it was before that run.

use super::paint::{self, Tone};
use crate::config::{self, ConfigFault, Environment, Settings};
use crate::driver::settle_configuration;
use std::path::Path;

/// Reads all layers, as [`config::load`] does; what had to be put back before is said. `workspace` is a canonical path.
///
/// # Errors
/// As those of [`config::load`].
pub(super) fn load(environment: &Environment, workspace: &Path) -> Result<Settings, ConfigFault> {
    settle(environment, workspace);
    config::load(environment, workspace)
}

/// Reads all layers for a command that asks no model. Leaves out what a project may not say, and prints a note for each.
///
/// # Errors
/// As those of [`config::load_without_models`].
pub(super) fn load_without_models(environment: &Environment, workspace: &Path) -> Result<Settings, ConfigFault> {
    settle(environment, workspace);
    let (settings, left_out) = config::load_without_models(environment, workspace)?;
    left_out.iter().for_each(|note| warn(note));
    Ok(settings)
}

/// Puts back what has to be, and says so: for whoever reads it, or asks the user's git, without any configuration.
pub(super) fn settle(environment: &Environment, workspace: &Path) {
    for note in settled(environment, workspace) {
        warn(&note);
    }
}

fn warn(note: &str) {
    paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(note))]);
}

/// Puts back what has to be, and gives what is to be known of it.
pub(super) fn settled(environment: &Environment, workspace: &Path) -> Vec<String> {
    environment.state_dir().map_or_else(|_| Vec::new(), |state| settle_configuration(&state, workspace))
}
