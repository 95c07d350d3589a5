//! Internal verbs that only fledge starts. `fledge inside` and `fledge layers` become other
//! programs; `fledge tool-host` serves tool calls.
//!
//! A run starts them dozens of times, so their parser does not build the table of all verbs.

use super::failure::CliError;
use super::runtime::block_on;
use crate::process::sandbox;
use crate::tool;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;

/// The command line of the internal verbs.
#[derive(Debug, Parser)]
#[command(name = "fledge", disable_help_subcommand = true)]
enum Internal {
    /// Become a program in a sandbox
    #[command(name = sandbox::INSIDE)]
    Inside(InsideArguments),
    /// Hold layers over folders, or become a program that sees them
    #[command(name = sandbox::LAYERS, subcommand)]
    Layers(LayersVerb),
    /// Serve tool calls
    #[command(name = tool::TOOL_HOST)]
    ToolHost,
}

#[derive(Debug, Args)]
struct InsideArguments {
    /// The restrictions, as JSON
    fence: String,
    /// The program
    program: OsString,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Returns the arguments of this process; the first is the program.
pub(super) fn command_line() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

/// Returns true if fledge started this process for an internal verb.
pub(super) fn is_called() -> bool {
    let verb = command_line().nth(1);
    verb.is_some_and(|verb| [sandbox::INSIDE, sandbox::LAYERS, tool::TOOL_HOST].iter().any(|own| verb == *own))
}

/// Runs the internal verb; returns the exit code.
pub(super) fn run() -> u8 {
    match Internal::try_parse() {
        Ok(Internal::Inside(arguments)) => enter(&arguments),
        Ok(Internal::Layers(verb)) => layers(&verb),
        Ok(Internal::ToolHost) => {
            let done = host().unwrap_or_else(|failure: CliError| failure.show());
            crate::process::close();
            done
        }
        Err(error) => {
            let _nobody_reads = error.print();
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    }
}

/// Becomes the program; returns the exit code if that fails.
fn enter(arguments: &InsideArguments) -> u8 {
    let fault = sandbox::enter(&arguments.fence, &arguments.program, &arguments.args);
    let _nobody_reads = writeln!(std::io::stderr(), "{}", fault.line());
    fault.exit_code()
}

#[derive(Debug, Subcommand)]
enum LayersVerb {
    /// Hold a namespace with the layers named on standard input, until standard input ends
    Hold,
    /// Become a program in the namespace of another process
    Join {
        /// The process id of the holder
        holder: u32,
        /// The program
        program: OsString,
        /// Arguments of the program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// Runs the verb; returns the exit code.
fn layers(verb: &LayersVerb) -> u8 {
    let error = match verb {
        LayersVerb::Hold => match sandbox::hold() {
            Ok(()) => return 0,
            Err(error) => error,
        },
        LayersVerb::Join { holder, program, args } => sandbox::join(*holder, program, args),
    };
    let _nobody_reads = writeln!(std::io::stderr(), "{}", error.line());
    error.exit_code()
}

/// Serves tool calls until the requests end.
fn host() -> Result<u8, CliError> {
    std::panic::set_hook(Box::new(|_| {})); // answers go to standard error, also for a panic
    block_on(tool::serve())?.map_err(CliError::own)?;
    Ok(0)
}
