//! `fledge serve`: the server of a project, and the link for a browser.

mod choices;
mod earlier;
mod jobs;
mod source;
mod start;

use super::failure::CliError;
use super::output::{no_output, print_data};
use super::project::ProjectArguments;
use crate::config::EnvironmentLayer;
use crate::driver::project_of;
use crate::duration::parse_duration;
use crate::serve::{LoginLink, ServeError, ServeLease};
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Programs send the token (`Authorization: Bearer …`), which fledge creates at the first start. A \
    browser signs in with the printed\n\
    link, which works once. After SIGTERM, runs stop at a safe point; a second signal ends the server at once.\n\n\
    Examples:\n  fledge serve\n  fledge serve -C ~/project --listen 127.0.0.1:8080\n  fledge serve link"
)]
pub(super) struct ServeArguments {
    #[command(subcommand)]
    verb: Option<ServeVerb>,
    #[command(flatten)]
    place: PlaceArguments,
    /// Listen at ADDRESS; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777", value_parser = address)]
    listen: SocketAddr,
    /// Read the token from FILE instead of creating one
    ///
    /// FILE must be outside of the project, where agents cannot read it. FLEDGE_SERVE_TOKEN sets a
    /// token too.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Accept NAME as a name of the server, e.g. behind a proxy; repeatable
    ///
    /// Add the port if it differs.
    #[arg(long, value_name = "NAME[:PORT]")]
    host: Vec<String>,
    /// Allow an address that other machines can reach, without TLS
    #[arg(long)]
    allow_public: bool,
    /// Longest time for the head of a request, and again for its body
    ///
    /// Idle connections are closed after the same time.
    #[arg(long, value_name = "DURATION", default_value = "15s", allow_hyphen_values = true, value_parser = parse_duration)]
    request_timeout: Duration,
    /// Run at most N tasks in parallel, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true, value_parser = max_runs)]
    max_runs: usize,
    /// Time for runs to reach a safe point when the server stops
    #[arg(long, value_name = "DURATION", default_value = "30s", allow_hyphen_values = true, value_parser = parse_duration)]
    grace: Duration,
    /// Print no link, e.g. if others can read the output
    #[arg(long)]
    no_link: bool,
}

// Verbs for a running server.
#[derive(Debug, Subcommand)]
enum ServeVerb {
    /// Print a link that lets a browser in, once
    #[command(after_help = "Examples:\n  fledge serve link")]
    Link(PlaceArguments),
}

// The project to serve.
#[derive(Debug, Args)]
struct PlaceArguments {
    #[command(flatten)]
    project: ProjectArguments,
}

/// The folders of a served project.
#[derive(Debug, Clone)]
struct ServedProject {
    state_dir: PathBuf,
    workspace: PathBuf,
    project: PathBuf,
    /// The server's folder within the state folder of the project.
    folder: PathBuf,
}

impl PlaceArguments {
    fn site(&self, environment: &EnvironmentLayer) -> Result<ServedProject, CliError> {
        let workspace = self.project.root(environment)?;
        let state_dir = environment.state_dir().map_err(CliError::input)?;
        let project = project_of(&state_dir, &workspace);
        let folder = crate::serve::folder(&state_dir, &project);
        Ok(ServedProject { state_dir, workspace, project, folder })
    }
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the server cannot start, or no server runs.
pub(super) fn run(arguments: &ServeArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    match &arguments.verb {
        None => start::start(arguments, environment),
        Some(ServeVerb::Link(place)) => link(&place.site(environment)?),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address with a port, e.g. `127.0.0.1:7777` or `[::1]:7777`".to_owned())
}

/// The largest value of `--max-runs`.
const MOST_RUNS: usize = 1000;

fn max_runs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_RUNS).contains(number));
    number.ok_or_else(|| format!("expected a whole number from 1 to {MOST_RUNS}"))
}

fn failed(fault: ServeError) -> CliError {
    let hint = match &fault {
        ServeError::Held { .. } => "use that server, or stop it: a project has one server at a time",
        ServeError::NoServer { .. } => "start a server with `fledge serve`; -C names the project's folder",
        ServeError::InUse { .. } => "name another address with --listen; port 0 picks a free port",
        ServeError::Public { .. } => {
            "listen at 127.0.0.1 behind a TLS proxy; in a trusted network, pass --allow-public"
        }
        ServeError::Unbound { .. } => "name an address of this machine and a permitted port with --listen",
        ServeError::Token { .. } => {
            "create one with `openssl rand -hex 32`, or omit --token-file and FLEDGE_SERVE_TOKEN"
        }
        ServeError::File { .. } | ServeError::Store(_) => {
            "FLEDGE_STATE_DIR, by default ~/.local/state/fledge, must be writable"
        }
        ServeError::NoChance => return CliError::own(fault),
    };
    CliError::input(fault).hint(hint)
}

/// Prints a link for a browser; returns the exit code. Needs no request to the server.
fn link(site: &ServedProject) -> Result<u8, CliError> {
    let none = || failed(ServeError::NoServer { project: site.project.display().to_string() });
    let url = ServeLease::address(&site.folder).ok_or_else(none)?;
    let code = LoginLink::make(&site.folder, jiff::Timestamp::now()).map_err(failed)?;
    print_data(&link_at(&url, &code)).map_err(no_output)?;
    Ok(0)
}

/// Returns the complete link.
fn link_at(url: &str, code: &str) -> String {
    format!("{url}/enter?code={code}")
}
