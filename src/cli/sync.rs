//! `fledge sync`, and the news that runs send to a server, during the work and briefly at its end.
//! A server never changes the end of a run. A failure is reported once, and its data stays to be
//! sent.

use super::configured;
use super::connect::key_in;
use super::failure::CliError;
use super::output::{no_output, print_data, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use super::runtime::block_on;
use crate::config::{self, EnvironmentLayer, KeyPlace, SYNC_TOKEN_VARIABLE, SyncConfig};
use crate::driver::project_of;
use crate::http::HttpSettings;
use crate::process::Variables;
use crate::provider::{KeyCommand, Secret};
use crate::report::count;
use crate::store::{Store, WhichUnsent};
use crate::sync::{Said, SyncError, SyncOutbox, SyncSender};
use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::json;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

/// The longest time to send the end of a run.
const LAST_TIME: Duration = Duration::from_secs(5);
/// The version of the `--json` output.
const SYNC_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Args)]
#[command(
    after_help = "Server: --sync, else FLEDGE_SYNC, else `sync: { url, token_env }` in your user configuration. \
    Token: FLEDGE_SYNC_TOKEN,\n\
    else the variable `token_env`. Exit codes: 0 all records were sent, 1 some records remain.\n\n\
    Examples:\n  fledge sync\n  fledge sync --all --json\n  FLEDGE_SYNC_TOKEN=… fledge sync --sync https://fledge.example.com"
)]
pub(super) struct SyncArguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Also send runs that began before anything was sent
    #[arg(long)]
    all: bool,
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArguments,
}

// The option for the server that receives runs.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ServerArguments {
    /// Send the run to the `fledge serve` at this address (or set FLEDGE_SYNC)
    ///
    /// The server's token is in FLEDGE_SYNC_TOKEN.
    #[arg(help_heading = "Output", long, value_name = "URL")]
    sync: Option<String>,
}

impl ServerArguments {
    /// Returns the server, if there is one.
    pub(super) fn server(&self, set: &config::ProjectConfig) -> Option<SyncConfig> {
        match &self.sync {
            Some(url) => Some(config::elsewhere(url, set.sync.clone())),
            None => set.sync.clone(),
        }
    }
}

/// A server, and all that is needed to send runs to it.
#[derive(Debug, Clone)]
pub(super) struct SyncTarget {
    sync: SyncConfig,
    environment: EnvironmentLayer,
    outbox: SyncOutbox,
}

impl SyncTarget {
    /// Prepares to send the runs of a project.
    ///
    /// # Errors
    /// When the address, the token or the `ca_file` of the server is unusable.
    pub(super) fn new(
        sync: SyncConfig,
        environment: &EnvironmentLayer,
        state_dir: &Path,
        project: &Path,
    ) -> Result<Self, CliError> {
        let machine = sync.machine.clone().unwrap_or_else(own_name);
        let outbox = SyncOutbox { state_dir: state_dir.to_owned(), project: project.to_owned(), machine };
        let plan = Self { sync, environment: environment.clone(), outbox };
        let ways = plan.ways()?;
        SyncSender::new(&plan.sync.url, "", plan.outbox.clone(), &ways).map_err(|fault| {
            let unguarded = matches!(fault, SyncError::Unguarded { .. });
            let hint =
                if unguarded { "use https://…, or a tunnel: http://127.0.0.1:7777" } else { "use https://HOST" };
            CliError::input(anyhow!("invalid sync server: {fault}")).hint(hint)
        })?;
        if plan.environment.get(SYNC_TOKEN_VARIABLE).is_none() {
            let missing = match &plan.sync.token {
                None => Some(SYNC_TOKEN_VARIABLE.to_owned()),
                Some(KeyPlace::Variable(name)) if plan.environment.get(name).is_none() => Some(name.clone()),
                Some(_) => None,
            };
            if let Some(variable) = missing {
                let error = anyhow!("no token for the sync server");
                return Err(CliError::input(error)
                    .hint(format!("set {variable} to the token of `fledge serve` on that server")));
            }
        }
        Ok(plan)
    }

    /// Marks all new runs from now on for sending.
    ///
    /// # Errors
    /// When the mark cannot be stored.
    pub(super) fn mark_runs_for_sync(&self) -> Result<(), CliError> {
        self.outbox.begin().map_err(CliError::own)
    }

    fn ways(&self) -> Result<HttpSettings, CliError> {
        let Some(path) = &self.sync.ca_file else { return Ok(HttpSettings::default()) };
        let path = self.environment.path(path);
        let read = std::fs::read(&path).with_context(|| format!("`sync`: cannot read its ca_file {}", path.display()));
        Ok(HttpSettings { proxy: None, ca_file: Some(read.map_err(CliError::input)?) })
    }

    async fn sender(&self) -> Result<SyncSender, CliError> {
        let (token, ways) = (self.token().await?, self.ways()?);
        SyncSender::new(&self.sync.url, token.reveal(), self.outbox.clone(), &ways).map_err(CliError::input)
    }

    async fn token(&self) -> Result<Secret, CliError> {
        if let Some(token) = self.environment.get(SYNC_TOKEN_VARIABLE) {
            return Ok(Secret::new(token));
        }
        match &self.sync.token {
            None => Ok(Secret::new("")),
            Some(KeyPlace::Variable(name)) => Ok(Secret::new(self.environment.get(name).unwrap_or_default())),
            Some(KeyPlace::File(path)) => key_in(&self.environment.path(path)),
            Some(KeyPlace::Command { command, ttl }) => {
                let env = Variables::new(self.environment.all().clone());
                let ran = KeyCommand { command: command.clone(), env, ttl: *ttl }.run().await;
                ran.map_err(|fault| CliError::input(anyhow!("invalid token for {}: {fault}", self.sync.url)))
            }
        }
    }

    /// Sends the server all news once. Keeps the sender for the next call; after a fault, the next
    /// call makes a new one.
    ///
    /// # Errors
    /// Why the server did not take everything.
    #[cfg(feature = "serve")]
    pub(super) async fn send(&self, kept: &mut Option<SyncSender>) -> Result<(), String> {
        let sender = match kept.take() {
            Some(sender) => sender,
            None => self.sender().await.map_err(|failure| failure.message())?,
        };
        if let Some(fault) = sender.send(WhichUnsent::Begun).await.faults.first() {
            return Err(fault.to_string());
        }
        sender.beat().await.map_err(|fault| fault.to_string())?;
        *kept = Some(sender);
        Ok(())
    }

    /// Sends the server the news of runs at this pace. Never returns, and prints nothing.
    pub(super) async fn follow(&self, pace: Duration) -> Infallible {
        match self.sender().await {
            Ok(sender) => sender.follow(pace).await,
            Err(_it_is_said_at_the_end) => std::future::pending().await,
        }
    }

    /// Sends the rest within a short time; warns if something could not be sent.
    pub(super) async fn close(&self) {
        let sending = async {
            match self.sender().await {
                Ok(sender) => sender.send(WhichUnsent::Begun).await.faults.first().map(ToString::to_string),
                Err(failure) => Some(failure.message()),
            }
        };
        let said = match tokio::time::timeout(LAST_TIME, sending).await {
            Ok(said) => said,
            Err(_late) => Some(format!("{} is too slow", self.sync.url)),
        };
        if let Some(why) = said {
            let says =
                paint::one_line(&format!("not all records were sent: {why}; run `fledge sync` to send the rest"));
            paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &says)]);
        }
    }
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When there is no server, or its settings are unusable.
pub(super) fn run(arguments: &SyncArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let workspace = arguments.project.root(environment)?;
    let set = configured::load_without_models(environment, &workspace).map_err(CliError::input)?;
    let Some(sync) = arguments.server.server(&set) else {
        let hint = "set one: --sync URL, FLEDGE_SYNC, or `sync: { url, token_env }` in your own configuration";
        return Err(CliError::input(anyhow!("no sync server is configured")).hint(hint));
    };
    let state_dir = environment.state_dir().map_err(CliError::input)?;
    let project = project_of(&state_dir, &workspace);
    let plan = SyncTarget::new(sync, environment, &state_dir, &project)?;
    let (which, unasked) = match Store::existing(&state_dir, &project).map_err(CliError::own)? {
        None => (None, 0),
        Some(store) if arguments.all => {
            store.begin_sending().map_err(CliError::own)?;
            (Some(WhichUnsent::All), 0)
        }
        Some(store) => {
            let unsent = |which| store.unsent(which).map(|all| all.len() as u64).map_err(CliError::own);
            let begun = unsent(WhichUnsent::Begun)?;
            (Some(WhichUnsent::Begun), unsent(WhichUnsent::All)? - begun)
        }
    };
    let said = match which {
        None => Said::default(),
        Some(which) => block_on(async { Ok::<_, CliError>(plan.sender().await?.send(which).await) })??,
    };
    print_sent(&said, unasked, arguments.json)?;
    Ok(u8::from(said.left > 0 || !said.faults.is_empty()))
}

fn print_sent(said: &Said, unasked: u64, is_json: bool) -> Result<(), CliError> {
    let Said { runs, records, left, faults } = said;
    let whys: Vec<String> = faults.iter().map(|fault| paint::one_line(&fault.to_string())).collect();
    if is_json {
        let version = SYNC_SCHEMA_VERSION;
        let all = json!({ "schema_version": version, "runs": runs, "records": records, "left": left, "older": unasked, "faults": whys });
        return print_json(&all.to_string()).map_err(no_output);
    }
    let of_runs = |runs: u64| if runs == 1 { "1 run".to_owned() } else { format!("{} runs", count(runs)) };
    let records = if *records == 1 { "1 record".to_owned() } else { format!("{} records", count(*records)) };
    print_data(&format!("{} sent, {records}; {} left", of_runs(*runs), of_runs(*left))).map_err(no_output)?;
    for why in whys {
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &why)]);
    }
    if unasked > 0 {
        let says = format!("{} from before the first sync; pass --all to send them too", of_runs(unasked));
        paint::line(&[(Tone::Faint, &says)]);
    }
    Ok(())
}

/// Returns the name of this machine, in the characters that the server accepts.
fn own_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let kept: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(64).collect();
    if kept.is_empty() { "unnamed".into() } else { kept }
}
