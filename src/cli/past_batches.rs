//! `fledge batch`: results of earlier batches of a project.

use super::batch::{kept_files, kept_folder, next_steps, read_kept, table};
use super::failure::CliError;
use super::file_time::unix_ms;
use super::output::{no_output, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use crate::batch::BatchSummary;
use crate::config::EnvironmentLayer;
use crate::report::ago;
use crate::report::runs::rfc3339;
use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The version of the `--json` output of the list.
const BATCHES_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Args)]
#[command(
    after_help = "To run many tasks: `fledge run tasks/`.\n\nExamples:\n  fledge batch list\n  fledge batch show last\n  fledge batch show last --json"
)]
pub(super) struct PastArguments {
    #[command(flatten)]
    project: ProjectArguments,
    #[command(subcommand)]
    verb: PastVerb,
}

#[derive(Debug, Subcommand)]
enum PastVerb {
    /// List ended batches, newest first
    #[command(after_help = "Examples:\n  fledge batch list\n  fledge batch list --json")]
    List {
        /// Print JSON to standard output
        #[arg(long)]
        json: bool,
    },
    /// Show the result of each job of a batch
    #[command(after_help = "Examples:\n  fledge batch show\n  fledge batch show last --json")]
    Show {
        /// Batch: the start of its name, or `last`
        #[arg(default_value = "last")]
        batch: String,
        /// Print JSON to standard output
        #[arg(long)]
        json: bool,
    },
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the batch does not exist, or its file cannot be read.
pub(super) fn past(arguments: &PastArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let workspace = arguments.project.root(environment)?;
    let state_dir = environment.state_dir().map_err(CliError::input)?;
    let all = kept_files(&kept_folder(&state_dir, &workspace));
    match &arguments.verb {
        PastVerb::List { json } => list(&all, *json),
        PastVerb::Show { batch, json } => show(&all, batch, *json),
    }
}

fn list(all: &[(SystemTime, PathBuf)], json: bool) -> Result<u8, CliError> {
    if json {
        let batches = all.iter().map(|(at, path)| Ok(data(*at, &read_kept(path)?.1)));
        let batches = batches.collect::<Result<Vec<Value>, CliError>>()?;
        let all = json!({ "schema_version": BATCHES_SCHEMA_VERSION, "batches": batches });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    if all.is_empty() {
        paint::line(&[(Tone::Plain, "no batch of this project has ended yet; see `fledge docs how-to/batches`")]);
    }
    let now_ms = jiff::Timestamp::now().as_millisecond();
    for (at, path) in all {
        let summary = read_kept(path)?.1;
        let (mark, tone) = if summary.verified { ("✓ ", Tone::Good) } else { ("✗ ", Tone::Bad) };
        let about = format!("  {:>8}  {}", ago(now_ms, unix_ms(*at)), summary.counts.words());
        paint::line(&[(tone, mark), (Tone::Plain, &summary.batch), (Tone::Faint, &about)]);
    }
    Ok(0)
}

/// Returns the entry of a batch in the list.
fn data(at: SystemTime, summary: &BatchSummary) -> Value {
    json!({
        "batch": summary.batch,
        "ended_at": rfc3339(unix_ms(at)),
        "verified": summary.verified,
        "exit_code": summary.exit_code,
        "counts": summary.counts,
        "usd_micros": summary.usd_micros,
        "duration_ms": summary.duration_ms,
    })
}

fn show(all: &[(SystemTime, PathBuf)], name: &str, json: bool) -> Result<u8, CliError> {
    let found: Vec<&(SystemTime, PathBuf)> = match name {
        "last" => all.first().into_iter().collect(),
        name => all.iter().filter(|(_, path)| stem(path).starts_with(name)).collect(),
    };
    let (at, path) = match found.as_slice() {
        [one] => one,
        [] if all.is_empty() => {
            let error = anyhow!("no batch of this project has ended yet");
            return Err(
                CliError::input(error).hint("to continue an interrupted batch, repeat its command with --resume")
            );
        }
        [] => {
            let error = anyhow!("there is no batch `{name}`");
            return Err(CliError::input(error).hint("run `fledge batch list` to see them"));
        }
        several => {
            let names: Vec<String> = several.iter().map(|(_, path)| stem(path)).collect();
            return Err(CliError::input(anyhow!("`{name}` matches several batches: {}", names.join(", "))));
        }
    };
    let (text, summary) = read_kept(path)?;
    if json {
        print_json(text.trim_end()).map_err(no_output)?;
        return Ok(0);
    }
    let when = format!("batch {}, {}", summary.batch, ago(jiff::Timestamp::now().as_millisecond(), unix_ms(*at)));
    paint::line(&[(Tone::Faint, &when)]);
    table(&summary).iter().chain(&next_steps(&summary)).for_each(|line| paint::line(line));
    Ok(0)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
