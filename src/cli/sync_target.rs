//! The news that runs send to a server, during the work and briefly at its end. A server never
//! changes the end of a run. A failure is reported once, and its data stays to be sent.

use super::connect::key_in;
use super::failure::CliError;
use super::paint::{self, Tone};
use crate::config::{self, EnvironmentLayer, KeyPlace, SYNC_TOKEN_VARIABLE, SyncConfig};
use crate::http::HttpSettings;
use crate::process::Variables;
use crate::provider::{KeyCommand, Secret};
use crate::store::WhichUnsent;
use crate::sync::{SyncError, SyncOutbox, SyncSender};
use anyhow::{Context, anyhow};
use clap::Args;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

/// The longest time to send the end of a run.
const LAST_TIME: Duration = Duration::from_secs(5);

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

    pub(super) async fn sender(&self) -> Result<SyncSender, CliError> {
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

/// Returns the name of this machine, in the characters that the server accepts.
fn own_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let kept: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).take(64).collect();
    if kept.is_empty() { "unnamed".into() } else { kept }
}
