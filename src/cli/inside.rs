//! The hidden verbs of the sandbox: `fledge inside` and `fledge layers` become other programs, `fledge tool-host` serves tool calls.

use super::block_on;
use super::failure::Failure;
use crate::process::wall;
use crate::tool;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::io::Write;

/// Arguments of `fledge inside`.
#[derive(Debug, Args)]
pub(super) struct InsideArguments {
    /// What is forbidden, as JSON
    fence: String,
    /// The program
    program: OsString,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Becomes the program; gives the exit code when that fails.
pub(super) fn enter(arguments: &InsideArguments) -> u8 {
    let fault = wall::enter(&arguments.fence, &arguments.program, &arguments.args);
    let _nobody_reads = writeln!(std::io::stderr(), "{}", fault.line());
    fault.exit_code()
}

/// Verbs of `fledge layers`.
#[derive(Debug, Subcommand)]
pub(super) enum LayersVerb {
    /// Hold a namespace with the layers that standard input names, until its end
    Hold,
    /// Become a program in the namespace that a process holds
    Join {
        /// The process
        holder: u32,
        /// The program
        program: OsString,
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// Does what the verb says; returns the exit code.
pub(super) fn layers(verb: &LayersVerb) -> u8 {
    let error = match verb {
        LayersVerb::Hold => match wall::hold() {
            Ok(()) => return 0,
            Err(error) => error,
        },
        LayersVerb::Join { holder, program, args } => wall::join(*holder, program, args),
    };
    let _nobody_reads = writeln!(std::io::stderr(), "{}", error.line());
    error.exit_code()
}

/// Serves tool calls until nobody asks any more.
pub(super) fn host() -> Result<u8, Failure> {
    std::panic::set_hook(Box::new(|_| {})); // standard error is where answers go; a panic is one of them
    block_on(tool::serve())?.map_err(Failure::own)?;
    Ok(0)
}
