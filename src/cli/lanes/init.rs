//! `fledge lanes init`: writes the detected lane if none exists.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data};
use super::super::paint::{self, Tone};
use super::{Unasked, say};
use crate::lane_files::{self, WriteLaneError};
use clap::Args;
use std::path::Path;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge lanes init --print\n  fledge lanes init")]
pub(in crate::cli) struct InitLanesArguments {
    /// Print the file to standard output, and write nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    _unasked: Unasked,
}

/// Writes the detected lane; returns the exit code.
pub(super) fn init(root: &Path, arguments: &InitLanesArguments, path: &str) -> Result<u8, CliError> {
    let detected = lane_files::detect_lane(root, path);
    if arguments.print && !detected.is_empty() {
        print_data(detected.yaml().trim_end()).map_err(no_output)?;
        say(&detected.remarks);
        return Ok(0);
    }
    let file = lane_files::write_detected(root, &detected).map_err(|fault| match fault {
        WriteLaneError::Store(_) => CliError::own(fault),
        WriteLaneError::AlreadyThere(_) => CliError::input(fault).hint("use --print to see the detected lane"),
        WriteLaneError::NoFolder => CliError::input(fault),
        WriteLaneError::NothingFound(_) => {
            CliError::input(fault).hint("write lanes/verify.yaml by hand; one step is enough")
        }
    })?;
    let lane = detected.lane().map_err(CliError::input)?;
    let steps: Vec<&str> = lane.steps.iter().map(|step| step.name.as_str()).collect();
    paint::line(&[(Tone::Good, &format!("wrote {file}")), (Tone::Plain, &format!(": {}", steps.join(", ")))]);
    say(&detected.remarks);
    Ok(0)
}
