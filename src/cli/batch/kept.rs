//! `fledge batch`: results of earlier batches of a project. Each ended batch has a file.

use super::super::failure::CliError;
use super::super::output::{no_output, print_json};
use super::super::paint::{self, Tone};
use super::super::project::ProjectArguments;
use super::page;
use crate::batch::{BatchSummary, JobSummary};
use crate::config::EnvironmentLayer;
use crate::driver::project_of;
use crate::report::ago;
use crate::store::{StoreError, make_private, project_dir, read_text, write_whole};
use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder of these files, within the project's state folder.
const FOLDER: &str = "batches";
/// The number of batches to keep for a project, newest first.
const KEPT: usize = 100;
/// The largest file to read, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;

#[derive(Debug, Args)]
#[command(
    after_help = "To run many tasks: `fledge run tasks/`.\n\nExamples:\n  fledge batch list\n  fledge batch show last\n  fledge batch show last --json"
)]
pub(in crate::cli) struct PastArguments {
    #[command(flatten)]
    project: ProjectArguments,
    #[command(subcommand)]
    verb: PastVerb,
}

#[derive(Debug, Subcommand)]
enum PastVerb {
    /// List ended batches, newest first
    #[command(after_help = "Examples:\n  fledge batch list")]
    List,
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

/// The parts of a file that are read. Everything else follows from them.
#[derive(Debug, Deserialize)]
struct KeptBatch {
    batch: String,
    max_usd_micros: Option<u64>,
    duration_ms: u64,
    jobs: Vec<JobSummary>,
}

/// Stores the summary of a batch, and removes the oldest files.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn keep(summary: &BatchSummary, state_dir: &Path, workspace: &Path) -> Result<(), StoreError> {
    let folder = folder(state_dir, workspace);
    make_private(&folder)?;
    write_whole(&folder.join(format!("{}.json", summary.batch)), summary.to_json().as_bytes())?;
    for (_, path) in files(&folder).into_iter().skip(KEPT) {
        fs::remove_file(&path).map_err(|source| StoreError::new("remove", &path, source))?;
    }
    Ok(())
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the batch does not exist, or its file cannot be read.
pub(in crate::cli) fn past(arguments: &PastArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let workspace = arguments.project.root(environment)?;
    let state_dir = environment.state_dir().map_err(CliError::input)?;
    let all = files(&folder(&state_dir, &workspace));
    match &arguments.verb {
        PastVerb::List => list(&all),
        PastVerb::Show { batch, json } => show(&all, batch, *json),
    }
}

fn list(all: &[(SystemTime, PathBuf)]) -> Result<u8, CliError> {
    if all.is_empty() {
        paint::line(&[(Tone::Plain, "no batch of this project has ended yet; start one with `fledge run tasks/`")]);
    }
    let now_ms = jiff::Timestamp::now().as_millisecond();
    for (at, path) in all {
        let summary = read(path)?.1;
        let (mark, tone) = if summary.verified { ("✓ ", Tone::Good) } else { ("✗ ", Tone::Bad) };
        let about = format!("  {:>8}  {}", ago(now_ms, in_ms(*at)), summary.counts.words());
        paint::line(&[(tone, mark), (Tone::Plain, &summary.batch), (Tone::Faint, &about)]);
    }
    Ok(0)
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
    let (text, summary) = read(path)?;
    if json {
        print_json(text.trim_end()).map_err(no_output)?;
        return Ok(0);
    }
    let when = format!("batch {}, {}", summary.batch, ago(jiff::Timestamp::now().as_millisecond(), in_ms(*at)));
    paint::line(&[(Tone::Faint, &when)]);
    page::table(&summary).iter().chain(&page::next_steps(&summary)).for_each(|line| paint::line(line));
    Ok(0)
}

/// Reads a file. Returns its text and the summary in it.
fn read(path: &Path) -> Result<(String, BatchSummary), CliError> {
    let text = read_text(path, LARGEST).map_err(CliError::own)?.unwrap_or_default();
    let kept: Result<KeptBatch, _> = serde_json::from_str(&text);
    let KeptBatch { batch, max_usd_micros, duration_ms, jobs } =
        kept.with_context(|| format!("{} is not a batch summary of fledge", path.display())).map_err(CliError::own)?;
    Ok((text, BatchSummary::new(batch, jobs, max_usd_micros, duration_ms)))
}

/// Returns the files of batches with their times, newest first.
fn files(folder: &Path) -> Vec<(SystemTime, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let paths = entries.map(|entry| entry.path()).filter(is_one);
    let mut all: Vec<(SystemTime, PathBuf)> =
        paths.filter_map(|path| Some((path.metadata().and_then(|meta| meta.modified()).ok()?, path))).collect();
    all.sort_by(|one, other| other.cmp(one));
    all
}

fn folder(state_dir: &Path, workspace: &Path) -> PathBuf {
    project_dir(state_dir, &project_of(state_dir, workspace)).join(FOLDER)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn in_ms(time: SystemTime) -> i64 {
    i64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}
