//! `fledge lanes init`: writes the detected lane if there is none.

use super::super::failure::Failure;
use super::super::paint::{self, Tone};
use super::super::{no_output, print_data};
use super::{Unasked, say};
use crate::gate::{self, InitFault};
use clap::Args;
use std::path::Path;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge lanes init --print\n  fledge lanes init")]
pub(in crate::cli) struct InitArguments {
    /// Print the file to standard output, and write nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    _unasked: Unasked,
}

/// Writes the detected lane; returns the exit code.
pub(super) fn init(root: &Path, arguments: &InitArguments, path: &str) -> Result<u8, Failure> {
    let detected = gate::look(root, path);
    if arguments.print && !detected.is_empty() {
        print_data(detected.yaml().trim_end()).map_err(no_output)?;
        say(&detected.remarks);
        return Ok(0);
    }
    let file = gate::write_detected(root, &detected).map_err(|fault| match fault {
        InitFault::Store(_) => Failure::own(fault),
        InitFault::AlreadyThere(_) => Failure::input(fault).hint("use --print to see the detected lane"),
        InitFault::NoFolder => Failure::input(fault),
        InitFault::NothingFound(_) => Failure::input(fault).hint("write lanes/verify.yaml by hand; one step is enough"),
    })?;
    let lane = detected.lane().map_err(Failure::input)?;
    let steps: Vec<&str> = lane.steps.iter().map(|step| step.name.as_str()).collect();
    paint::line(&[(Tone::Good, &format!("wrote {file}")), (Tone::Plain, &format!(": {}", steps.join(", ")))]);
    say(&detected.remarks);
    Ok(0)
}
