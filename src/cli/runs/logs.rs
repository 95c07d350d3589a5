//! `fledge runs logs`: lists or prints the logs of a run's gate steps, even of a gate without a
//! verdict.

use super::super::failure::CliError;
use super::super::numbers::whole_number;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::step_log::each_line;
use super::super::steps::StyledLine;
use super::{RunsContext, data, show::width, story};
use crate::report::lane::how;
use crate::report::story::{RunStory, Scene, SceneKind};
use crate::store::RunDir;
use crate::verdict::StepReport;
use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge runs logs\n  fledge runs logs last test --attempt 1")]
pub(in crate::cli) struct LogsArguments {
    /// Run: the start of its id, its run key, `last`, or `last-failed`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Step whose log to print: its name, `lane/step`, or the name of the log file
    step: Option<String>,
    /// Use the logs of attempt N, from 1 [default: the last with a log]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(1..=i64::from(u32::MAX)))]
    attempt: Option<u32>,
    /// Print the list as JSON to standard output
    #[arg(long, conflicts_with = "step")]
    json: bool,
}

/// An existing log.
#[derive(Debug)]
struct Log {
    attempt: u32,
    lane: String,
    /// The report of its step, if a verdict has one.
    report: Option<StepReport>,
    path: PathBuf,
    bytes: u64,
}

impl Log {
    /// Returns the name of the file without its ending.
    fn stem(&self) -> String {
        self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Returns the name of the step, or else that of the file.
    fn name(&self) -> String {
        self.report.as_ref().map_or_else(|| self.stem(), |report| report.step.clone())
    }

    fn goes_by(&self, name: &str) -> bool {
        let own = self.name();
        name == own
            || name == self.stem()
            || name.strip_prefix(&self.lane).and_then(|rest| rest.strip_prefix('/')) == Some(&own)
    }

    fn data(&self) -> Value {
        let report = self.report.as_ref();
        json!({
            "attempt": self.attempt,
            "lane": self.lane,
            "step": report.map(|report| &report.step),
            "status": report.map(|report| report.status),
            "exit_code": report.and_then(|report| report.exit_code),
            "duration_ms": report.map(|report| report.duration_ms),
            "bytes": self.bytes,
            "path": self.path,
        })
    }

    fn line(&self) -> StyledLine {
        let how = self.report.as_ref().map_or_else(|| "no verdict".into(), how);
        let name = paint::one_line(&format!("{}/{}", self.lane, self.name()));
        let about = format!("  {}, {} bytes  ", paint::one_line(&how), crate::report::count(self.bytes));
        let path = paint::one_line(&self.path.display().to_string());
        vec![
            (Tone::Plain, format!("attempt {}  ", self.attempt)),
            (Tone::Strong, name),
            (Tone::Plain, about),
            (Tone::Faint, path),
        ]
    }
}

/// Lists logs or prints one; returns the exit code.
pub(super) fn logs(shelf: &RunsContext, arguments: &LogsArguments) -> Result<u8, CliError> {
    let (store, row) = shelf.find(&arguments.run)?;
    let (story, failure) = story(&store, &row);
    if let Some(failure) = failure {
        failure.show(); // the log files exist anyway
    }
    let mut logs = all(&store.folder(&row.head.id), &story).map_err(CliError::own)?;
    logs.retain(|log| arguments.attempt.is_none_or(|attempt| log.attempt == attempt));
    if let Some(step) = &arguments.step {
        return print(choose(&logs, step)?);
    }
    if arguments.json {
        let logs: Vec<_> = logs.iter().map(Log::data).collect();
        let all = json!({ "schema_version": data::RUNS_SCHEMA_VERSION, "run": row.head.id, "logs": logs });
        print_json(&all.to_string()).map_err(no_output)?;
    } else if logs.is_empty() {
        paint::line(&[(
            Tone::Plain,
            "no logs: no step of the gate started, or no step of the gate printed any output",
        )]);
    } else {
        print_data(&paint::page(&logs.iter().map(Log::line).collect::<Vec<_>>())).map_err(no_output)?;
    }
    Ok(0)
}

/// Returns the log of a step in the last attempt that has one.
fn choose<'l>(logs: &'l [Log], step: &str) -> Result<&'l Log, CliError> {
    let matching: Vec<&Log> = logs.iter().filter(|log| log.goes_by(step)).collect();
    let last = matching.iter().map(|log| log.attempt).max();
    let of_last: Vec<&Log> = matching.into_iter().filter(|log| Some(log.attempt) == last).collect();
    let names = |logs: &mut dyn Iterator<Item = &Log>| {
        let mut names: Vec<String> = logs.map(|log| format!("{}/{}", log.lane, log.name())).collect();
        names.sort();
        names.dedup();
        names.join(", ")
    };
    match of_last[..] {
        [log] => Ok(log),
        [] if logs.is_empty() => {
            Err(CliError::input(anyhow!("there is no log of step `{step}`: this run has no logs at all")))
        }
        [] => {
            let all = logs.iter().flat_map(|log| [log.name().to_owned(), format!("{}/{}", log.lane, log.name())]);
            let all: Vec<String> = all.collect();
            let none = anyhow!("no log of step `{step}`; logs: {}", names(&mut logs.iter()));
            Err(CliError::input(none).near(step, all.iter().map(String::as_str)))
        }
        _ => {
            let which = names(&mut of_last.iter().copied());
            Err(CliError::input(anyhow!("more than one step is named `{step}`: {which}")))
        }
    }
}

/// Prints a log unchanged. On a terminal or for a runner of GitHub Actions, removes control
/// sequences and commands.
fn print(log: &Log) -> Result<u8, CliError> {
    if width().is_some() || paint::speaks_to_runner() {
        let mut done = Ok(());
        let mut say = |line: &str| {
            let text = paint::page(&[vec![(Tone::Plain, line)]]);
            if done.is_ok() {
                done = print_data(&text);
            }
        };
        each_line(&log.path, &mut say).map(drop).map_err(|error| unreadable(&log.path, error))?;
        return done.map(|()| 0).map_err(no_output);
    }
    let mut file = File::open(&log.path).map_err(|error| unreadable(&log.path, error))?;
    match io::copy(&mut file, &mut io::stdout().lock()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(no_output(error)),
        Ok(_) | Err(_) => Ok(0),
    }
}

fn unreadable(path: &Path, error: io::Error) -> CliError {
    CliError::own(anyhow::Error::new(error).context(format!("cannot read {}", path.display())))
}

/// Returns every log in the run's folder with its report in the story. The logs are sorted by
/// attempt, lane and file: `attempt-<n>/<lane>/<file>`.
fn all(folder: &RunDir, story: &RunStory) -> anyhow::Result<Vec<Log>> {
    let verdict =
        |scene: &'_ Scene| if let SceneKind::Gate { verdict, .. } = &scene.what { Some(verdict.clone()) } else { None };
    let reports: Vec<StepReport> = story.scenes.iter().filter_map(verdict).flat_map(|verdict| verdict.steps).collect();
    let mut logs = Vec::new();
    for attempt in below(&folder.logs())? {
        let name = attempt.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(number) = name.strip_prefix("attempt-").and_then(|number| number.parse().ok()) else { continue };
        for lane in below(&attempt)? {
            for path in below(&lane)? {
                let bytes = fs::metadata(&path).with_context(|| format!("cannot look at {}", path.display()))?.len();
                let is_it = |report: &&StepReport| report.log.as_deref().is_some_and(|log| Path::new(log) == path);
                let report = reports.iter().find(is_it).cloned();
                let lane = lane.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let lane = report.as_ref().map_or(lane, |report| report.lane.clone());
                logs.push(Log { attempt: number, lane, report, path, bytes });
            }
        }
    }
    logs.sort_by(|a, b| (a.attempt, &a.path).cmp(&(b.attempt, &b.path)));
    Ok(logs)
}

/// Returns the entries of a folder; none if it does not exist.
fn below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    let entries: io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    entries.with_context(|| format!("cannot read {}", folder.display()))
}
