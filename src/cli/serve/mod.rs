//! `fledge serve`: the runner that stays, and the way in for a browser.

mod choices;
mod earlier;
mod jobs;
mod link;
mod source;
mod start;

use super::failure::Failure;
use super::project::ProjectArguments;
use crate::config::Environment;
use crate::driver::project_of;
use crate::duration::parse_duration;
use crate::serve::ServeFault;
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Programs show the token (`Authorization: Bearer …`), which is made at the first start; a browser gets in by the link that is\n\
    printed, once. SIGTERM lets what runs reach a safe point; a second signal ends at once.\n\n\
    Examples:\n  fledge serve\n  fledge serve -C ~/project --listen 127.0.0.1:8080\n  fledge serve link"
)]
pub(super) struct ServeArguments {
    #[command(subcommand)]
    verb: Option<ServeVerb>,
    #[command(flatten)]
    place: PlaceArguments,
    /// Where to listen; port 0 is one that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777", value_parser = address)]
    listen: SocketAddr,
    /// Take the token from this file, which agents must not see, and not one of fledge's own (or set FLEDGE_SERVE_TOKEN)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Another name that the server goes by, with a port where that differs: behind a proxy; again for several
    #[arg(long, value_name = "NAME[:PORT]")]
    host: Vec<String>,
    /// Listen at an address that other machines reach, though there is no TLS
    #[arg(long)]
    allow_public: bool,
    /// How long the head of a request may take, and then its body; a connection is idle no longer
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    request_timeout: Duration,
    /// Runs at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = max_runs)]
    max_runs: usize,
    /// How long what runs may take to come to a safe point when the server is to stop
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    grace: Duration,
    /// Print no link: where others read what is printed
    #[arg(long)]
    no_link: bool,
}

// Verbs about a server that runs.
#[derive(Debug, Subcommand)]
enum ServeVerb {
    /// Print a link that lets a browser in, once
    #[command(after_help = "Examples:\n  fledge serve link")]
    Link(PlaceArguments),
}

// What is served.
#[derive(Debug, Args)]
struct PlaceArguments {
    #[command(flatten)]
    project: ProjectArguments,
}

/// The folders of a project that is served.
#[derive(Debug, Clone)]
struct Site {
    state_dir: PathBuf,
    workspace: PathBuf,
    project: PathBuf,
    /// That of the server among them.
    folder: PathBuf,
}

impl PlaceArguments {
    fn site(&self, environment: &Environment) -> Result<Site, Failure> {
        let workspace = self.project.root(environment)?;
        let state_dir = environment.state_dir().map_err(Failure::input)?;
        let project = project_of(&state_dir, &workspace);
        let folder = crate::serve::folder(&state_dir, &project);
        Ok(Site { state_dir, workspace, project, folder })
    }
}

/// Runs the verb; gives the exit code.
///
/// # Errors
/// When no server can be started, or none runs.
pub(super) fn run(arguments: &ServeArguments, environment: &Environment) -> Result<u8, Failure> {
    match &arguments.verb {
        None => start::start(arguments, environment),
        Some(ServeVerb::Link(place)) => link::link(&place.site(environment)?),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "it is no address with a port: write it like `127.0.0.1:7777` or `[::1]:7777`".to_owned())
}

/// The most runs at once.
const MOST_RUNS: usize = 1000;

fn max_runs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_RUNS).contains(number));
    number.ok_or_else(|| format!("it is a whole number from 1 to {MOST_RUNS}"))
}

fn failed(fault: ServeFault) -> Failure {
    let hint = match &fault {
        ServeFault::Held { .. } => "use that one, or end it: a project has one server at a time",
        ServeFault::NoServer { .. } => "`fledge serve` starts one; -C names the project's folder",
        ServeFault::InUse { .. } => "--listen names another address; with port 0 the system finds one that is free",
        ServeFault::Public { .. } => {
            "listen at 127.0.0.1, behind a proxy that has TLS; where the network is trusted, --allow-public does it all the same"
        }
        ServeFault::Unbound { .. } => "--listen names an address of this machine, and a port that you may use",
        ServeFault::Token { .. } => {
            "`openssl rand -hex 32` makes one; without --token-file and FLEDGE_SERVE_TOKEN fledge does"
        }
        ServeFault::File { .. } | ServeFault::Store(_) => {
            "fledge keeps this in FLEDGE_STATE_DIR, else in ~/.local/state/fledge: it has to be writable"
        }
        ServeFault::NoChance => return Failure::own(fault),
    };
    Failure::input(fault).hint(hint)
}
