//! The command line: verbs, their arguments, and `main`. Only this module prints, reads arguments
//! and ends the process.

mod asking;
mod batch;
mod clean_gate;
mod config;
mod configured;
mod connect;
mod display;
mod docs;
mod doctor;
mod drive;
mod error_text;
mod eval;
mod failure;
mod file_time;
mod fix;
mod init;
mod internal;
#[cfg(feature = "serve")]
mod jobs;
mod lane_trial;
mod lanes;
mod left_worktrees;
mod limit_arguments;
mod live;
mod memory;
mod models;
#[cfg(feature = "serve")]
mod monitors;
mod numbers;
mod options;
mod output;
mod output_buffer;
mod output_path;
mod overview;
mod pages;
mod paint;
mod past_batches;
mod project;
mod project_summary;
mod record;
mod results;
mod resume;
mod run;
mod runs;
mod runtime;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod signals;
mod specs;
mod start;
mod step_log;
mod steps;
mod suggestions;
mod sync;
mod sync_target;
mod tasks;
mod terminal;
mod text_style;
mod verify_report;
mod worktrees;

use crate::config::EnvironmentLayer;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::CliError;
use paint::ColorWhen;
use runtime::block_on;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Run a written task with a language-model agent, and trust only the project's own checks
#[derive(Debug, Parser)]
#[command(name = "fledge", version, about, max_term_width = 110)]
#[command(
    after_help = "Exit codes: 0 verified, 1 gate failed, 2 bad input, 3 model failed, 4 limit reached, 5 gate could not run,\n\
    6 gate tampered with, 7 blocked, 8 own state could not be written, 130/143 cancelled by SIGINT/SIGTERM."
)]
struct Arguments {
    /// Log more to standard error: -v transitions, -vv everything (or set FLEDGE_LOG)
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// Let the project's configuration do what only yours may: run programs, name addresses, open
    /// the sandbox
    #[arg(long, global = true)]
    trust_project: bool,
    /// Colour the output; `auto`: on a terminal, unless NO_COLOR, FORCE_COLOR or CLICOLOR_FORCE say
    /// otherwise
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    color: ColorWhen,
    /// The project, or a folder in it
    #[arg(long, short = 'C', global = true, value_name = "DIR", default_value = ".")]
    workspace: PathBuf,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
// Building the flags of all verbs takes longer than the start of a lane.
#[command(defer = true)]
enum Verb {
    /// Run a task: an agent works on it until the project's checks pass
    Run(run::RunArguments),
    /// Have an agent repair the code until the project's failing checks pass
    Fix(fix::FixArguments),
    /// Measure models on tasks: how often each is verified, and at what cost
    Eval(eval::EvalArguments),
    /// List earlier batches and the outcomes of their jobs
    Batch(past_batches::PastArguments),
    /// Write the files for a project's first run: a lane and a task
    Init(init::InitArguments),
    /// List the project's lanes, or run one by hand
    #[command(subcommand, alias = "lane")]
    #[command(after_help = "Examples:\n  fledge lanes list\n  fledge lanes run verify\n  fledge lanes init")]
    Lanes(lanes::LanesVerb),
    /// List and check earlier runs, or resume an interrupted one
    Runs(runs::RunsArguments),
    /// Bring the work that a run's gate has passed into the checkout or onto a branch
    Apply(runs::ApplyArguments),
    /// Check that the newest commit is the tree that a report calls verified
    VerifyReport(verify_report::VerifyArguments),
    /// List the worktrees that runs left, or remove those with nothing in them
    Worktrees(worktrees::WorktreesArguments),
    /// List, add or forget memories of earlier runs
    Memory(memory::MemoryArguments),
    /// List the models, or check that each of them answers
    #[command(subcommand, after_help = "Examples:\n  fledge models list\n  fledge models check")]
    Models(models::ModelsVerb),
    /// Check the environment and suggest fixes
    Doctor(doctor::DoctorArguments),
    /// Print a page of the documentation, or list the pages
    Docs(docs::DocsArguments),
    /// Show the configuration, and the layer that each value comes from
    Config(config::ConfigArguments),
    /// Serve a project: an API and a web page for its runs, jobs and monitors
    #[cfg(feature = "serve")]
    Serve(serve::ServeArguments),
    /// List scheduled jobs and their history
    #[cfg(feature = "serve")]
    Jobs(jobs::JobsArguments),
    /// List monitors of regular events, or send them check-ins
    #[cfg(feature = "serve")]
    Monitors(monitors::MonitorsArguments),
    /// Send a server the runs that it does not know yet
    Sync(sync::SyncArguments),
    /// Print the JSON Schema of a file that fledge reads or of its output
    Schema(schema::SchemaArguments),
    /// Print a completion script for a shell
    Completions(pages::CompletionArguments),
    /// Print a manual page, or write all pages to a folder
    Man(pages::ManArguments),
    /// List what the project's modules promise, or check it
    #[command(subcommand, alias = "spec")]
    #[command(after_help = "Examples:\n  fledge specs list\n  fledge specs check --strict")]
    Specs(specs::SpecsVerb),
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    crate::process::unblock_signals();
    let _as_well_as_it_can_be = block_on(async { signals::survive_limits() });
    crate::process::keep_private(); // the environment has keys, and tools run as the same user
    if internal::is_called() {
        return ExitCode::from(internal::run());
    }
    let parsed = parse(internal::command_line()).or_else(|error| {
        let completed = suggestions::complete_command(&error, internal::command_line());
        completed.and_then(|args| parse(args.into_iter()).ok()).ok_or(error)
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            let error = suggestions::add_suggestion(error, Arguments::command());
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            ColorWhen::of_line(internal::command_line()).apply(&EnvironmentLayer::capture());
            let _nobody_reads = error.print();
            return ExitCode::from(code);
        }
    };
    let environment = EnvironmentLayer::capture().trusting_project(arguments.trust_project);
    arguments.color.apply(&environment);
    terminal::recognize(&environment);
    live::give_up_on_panic();
    if paint::is_runner(&environment) {
        paint::speak_to_runner();
    }
    start_log(arguments.verbose, environment.get("FLEDGE_LOG"));
    let project = project::ProjectArguments::new(arguments.workspace);
    let done = match arguments.verb {
        Some(verb) => done(verb, &project, &environment),
        None => project_summary::print_summary(&project, &environment),
    };
    crate::process::close();
    ExitCode::from(done.unwrap_or_else(|failure: CliError| failure.show()))
}

/// Parses a command line.
fn parse(line: impl Iterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = overview::grouped(Arguments::command());
    let mut matches = command.try_get_matches_from_mut(line)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Runs a verb; returns the exit code.
fn done(verb: Verb, project: &project::ProjectArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    match verb {
        Verb::Run(arguments) => run::run(&arguments, environment),
        Verb::Fix(arguments) => fix::run(&arguments, environment),
        Verb::Eval(arguments) => eval::run(&arguments, environment),
        Verb::Batch(arguments) => past_batches::past(&arguments, environment),
        Verb::Init(arguments) => init::run(&arguments, environment),
        Verb::Lanes(verb) => lanes::run(verb, project, environment),
        Verb::Runs(arguments) => runs::run(arguments, environment),
        Verb::Apply(arguments) => runs::apply(&arguments, environment),
        Verb::VerifyReport(arguments) => verify_report::verify(&arguments, environment),
        Verb::Worktrees(arguments) => worktrees::run(arguments, environment),
        Verb::Memory(arguments) => memory::run(arguments, environment),
        Verb::Models(verb) => models::run(&verb, environment),
        Verb::Doctor(arguments) => doctor::run(&arguments, environment),
        Verb::Docs(arguments) => docs::run(&arguments),
        Verb::Config(arguments) => config::run(&arguments, environment),
        #[cfg(feature = "serve")]
        Verb::Serve(arguments) => serve::run(&arguments, environment),
        #[cfg(feature = "serve")]
        Verb::Jobs(arguments) => jobs::run(&arguments, environment),
        #[cfg(feature = "serve")]
        Verb::Monitors(arguments) => monitors::run(arguments, environment),
        Verb::Sync(arguments) => sync::run(&arguments, environment),
        Verb::Schema(arguments) => schema::run(&arguments),
        Verb::Completions(arguments) => pages::complete(&arguments, Arguments::command()),
        Verb::Man(arguments) => pages::man(&arguments, Arguments::command()),
        Verb::Specs(verb) => specs::run(verb, project, environment),
    }
}

fn start_log(verbose: u8, directives: Option<&str>) {
    let level = match verbose {
        0 => "warn,rmcp=off", // logs of MCP servers do not belong on a terminal
        1 => "fledge=info",
        _ => "fledge=trace",
    };
    let filter = directives.map_or_else(|| EnvFilter::new(level), EnvFilter::new);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| paint::LogWriter).with_target(false);
    let _only_once = log.with_ansi(paint::is_colourful()).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn each_verb_is_in_one_group_of_the_help() {
        let mut command = Arguments::command();
        command.build();
        let mut verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = overview::GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    #[test]
    fn commands_of_lanes_are_held_against_the_verbs_that_there_are() {
        let mut command = Arguments::command();
        command.build();
        let names = |command: &clap::Command| -> Vec<String> {
            let own = |one: &clap::Command| {
                [one.get_name().to_owned()]
                    .into_iter()
                    .chain(one.get_all_aliases().map(str::to_owned))
                    .collect::<Vec<_>>()
            };
            command.get_subcommands().flat_map(own).filter(|name| name != "help").collect()
        };
        let mut verbs: Vec<(String, Vec<String>)> = Vec::new();
        for verb in command.get_subcommands() {
            let all = [verb.get_name()].into_iter().chain(verb.get_all_aliases());
            verbs.extend(all.map(|name| (name.to_owned(), if name == "help" { Vec::new() } else { names(verb) })));
        }
        let known = crate::lane::verbs::VERBS.iter();
        let owned = |(verb, own): &(&str, &[&str])| {
            ((*verb).to_owned(), own.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(known.map(owned).collect::<Vec<_>>(), verbs);
    }
}
