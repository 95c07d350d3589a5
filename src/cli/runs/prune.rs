//! `fledge runs prune`: removes runs that are old or too many, or lists the runs to remove.

use super::super::failure::CliError;
use super::super::numbers::whole_number;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::runtime::block_on;
use super::leftovers::{broken, not_delivered};
use super::{RunsContext, data, failed};
use crate::config::{EnvironmentLayer, parse_size};
use crate::driver::{ForgetError, forget_beside, forget_removed};
use crate::duration::parse_duration;
use crate::gate::bytes_of_bases;
use crate::report::count;
use crate::store::{Pruned, Retention, project_dir};
use clap::Args;
use serde_json::json;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Defaults: --keep 1000, --older-than 30d, --max-size 1GiB. Each run also prunes with these limits at \
    its start.\n\
    Running runs are never removed. Interrupted runs are removed only by age.\n\n\
    Examples:\n  fledge runs prune --dry-run\n  fledge runs prune --keep 100 --older-than 7d"
)]
pub(in crate::cli) struct PruneArguments {
    /// Keep the newest N runs
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(0..=i64::from(u32::MAX)))]
    keep: Option<u32>,
    /// Remove runs that ended longer ago than DURATION, e.g. 12h or 30d
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = parse_duration)]
    older_than: Option<Duration>,
    /// Keep the newest runs that fit into SIZE together, e.g. 200MB or 1GiB
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = parse_size)]
    max_size: Option<u64>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
}

impl PruneArguments {
    fn retention(&self) -> Retention {
        let Self { keep, older_than, max_size: bytes, .. } = self;
        let runs = keep.map(u64::from);
        let age_ms = older_than.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        if runs.is_none() && age_ms.is_none() && bytes.is_none() {
            return Retention::default();
        }
        Retention { age_ms, runs, bytes: *bytes }
    }
}

/// Removes runs; returns the exit code.
pub(super) fn prune(
    shelf: &RunsContext,
    arguments: &PruneArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let (keep, now) = (arguments.retention(), shelf.now_ms);
    let pruned = match shelf.store()? {
        None => Pruned::default(),
        Some(store) if arguments.dry_run => store.would_prune(&keep, now).map_err(failed)?,
        Some(store) => {
            let mut pruned = store.prune(&keep, now).map_err(failed)?;
            let project = project_dir(&shelf.state, &shelf.project);
            let before = bytes_of_bases(&project);
            pruned.bytes += forget_beside(&project, &keep);
            pruned.bytes += before.saturating_sub(bytes_of_bases(&project));
            let env: Vec<(String, String)> = environment.hand_env().into_iter().collect();
            block_on(forget_removed((&shelf.state, &shelf.project), &store, &env))?.map_err(unforgotten)?;
            pruned
        }
    };
    let Pruned { runs, bytes } = &pruned;
    if arguments.json {
        let (version, dry_run) = (data::RUNS_SCHEMA_VERSION, arguments.dry_run);
        let all = json!({ "schema_version": version, "dry_run": dry_run, "runs": runs, "bytes": bytes });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    for run in runs {
        print_data(run.as_str()).map_err(no_output)?;
    }
    let verb = if arguments.dry_run { "would be removed" } else { "removed" };
    let runs = if runs.len() == 1 { "1 run".into() } else { format!("{} runs", count(runs.len() as u64)) };
    paint::line(&[(Tone::Plain, format!("{runs} {verb}, {} bytes", count(*bytes)))]);
    Ok(0)
}

fn unforgotten(fault: ForgetError) -> CliError {
    match fault {
        ForgetError::Trees(fault) => broken(fault),
        ForgetError::Store(error) => failed(error),
        ForgetError::Delivery(fault) => not_delivered(fault),
    }
}
