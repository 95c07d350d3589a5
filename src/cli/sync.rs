//! `fledge sync`: sends a server the runs that it does not have yet.

use super::configured;
use super::failure::CliError;
use super::output::{no_output, print_data, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use super::runtime::block_on;
use super::sync_target::{ServerArguments, SyncTarget};
use crate::config::EnvironmentLayer;
use crate::driver::project_of;
use crate::report::count;
use crate::store::{Store, WhichUnsent};
use crate::sync::{SendResult, SyncError};
use anyhow::anyhow;
use clap::Args;
use serde_json::json;

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

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When no server exists, or its settings are unusable.
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
    let result = block_on(async {
        let sender = plan.sender().await?;
        let mut result = match which {
            None => SendResult::default(),
            Some(which) => sender.send(which).await,
        };
        if result.runs == 0 && result.faults.is_empty() {
            result.faults.extend(sender.must_answer().await.err());
        }
        Ok::<_, CliError>(result)
    })??;
    print_sent(&result, unasked, arguments.json)?;
    Ok(u8::from(result.left > 0 || !result.faults.is_empty()))
}

fn print_sent(result: &SendResult, unasked: u64, is_json: bool) -> Result<(), CliError> {
    let SendResult { runs, records, left, faults } = result;
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
    if faults.iter().any(|fault| matches!(fault, SyncError::Courier(_))) {
        let hint = "check the address of the server: --sync, FLEDGE_SYNC or `sync: { url }`";
        paint::line(&[(Tone::Faint, "  hint: "), (Tone::Plain, hint)]);
    }
    if unasked > 0 {
        let says = format!("{} from before the first sync; pass --all to send them too", of_runs(unasked));
        paint::line(&[(Tone::Faint, &says)]);
    }
    Ok(())
}
