//! `fledge jobs`: lists scheduled jobs and their history. Only `fledge jobs run` needs a server,
//! because one process at a time runs the jobs of a project.

mod ask;

use super::failure::CliError;
use super::numbers::whole_number;
use super::output::{no_output, print_data, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use super::steps::StyledLine;
use crate::config::EnvironmentLayer;
use crate::driver::project_of;
use crate::report::ago;
use crate::schedule::Schedule;
use crate::scheduler::{JobData, JobKind, JobRunData, JobState, ShownJob, TaskFinding, scan};
use crate::serve::{ServeLease, folder};
use crate::store::{Store, StoredJob, StoredJobRun};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use std::path::PathBuf;

/// The version of the `--json` output.
const JOBS_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Args)]
#[command(
    after_help = "To schedule a task, add `schedule: \"0 3 * * *\"` to its front matter and keep `fledge serve` \
    running for its project.\n\n\
    Examples:\n  fledge jobs list\n  fledge jobs history nightly\n  fledge jobs run nightly"
)]
pub(super) struct JobsArguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Print JSON to standard output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: JobsVerb,
}

#[derive(Debug, Subcommand)]
enum JobsVerb {
    /// List jobs: scheduled tasks, and fledge's built-in jobs
    #[command(after_help = "Examples:\n  fledge jobs list\n  fledge jobs list --json")]
    List,
    /// Show the history of a job, newest first
    #[command(after_help = "Examples:\n  fledge jobs history nightly --limit 10")]
    History {
        /// Name of the job
        name: String,
        /// Show at most N entries
        #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = whole_number(1..=999_999))]
        limit: u32,
    },
    /// Ask the project's server to run a job now
    #[command(after_help = "Examples:\n  fledge jobs run nightly")]
    Run {
        /// Name of the job
        name: String,
    },
}

/// The project whose jobs are shown, and the time.
#[derive(Debug)]
struct JobsContext {
    workspace: PathBuf,
    /// The server's folder within the project's state folder.
    folder: PathBuf,
    store: Option<Store>,
    now: Timestamp,
    json: bool,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the job does not exist, or the store cannot be read.
pub(super) fn run(arguments: &JobsArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let workspace = arguments.project.root(environment)?;
    let state = environment.state_dir().map_err(CliError::input)?;
    let project = project_of(&state, &workspace);
    let store = Store::existing(&state, &project).map_err(CliError::own)?;
    let folder = folder(&state, &project);
    let place = JobsContext { workspace, folder, store, now: Timestamp::now(), json: arguments.json };
    match &arguments.verb {
        JobsVerb::List => list(&place),
        JobsVerb::History { name, limit } => history(&place, name, *limit),
        JobsVerb::Run { name } => ask::ask(&place, name, environment),
    }
}

impl JobsContext {
    /// Returns all jobs, sorted by name, each with its last run. Built-in jobs come last.
    fn jobs(&self) -> Result<Vec<(ShownJob, Option<StoredJobRun>)>, CliError> {
        let rows = self.store.as_ref().map(Store::jobs).transpose().map_err(CliError::own)?.unwrap_or_default();
        let own = rows.into_iter().filter(|row| row.kind == JobKind::Builtin.word()).map(|row| self.own(row));
        let mut all: Vec<ShownJob> = own.collect();
        let found = scan(&self.workspace).into_iter().filter(|(name, _)| !all.iter().any(|job| job.name == *name));
        let tasks: Vec<ShownJob> = found.map(|(name, finding)| self.task(name, finding)).collect();
        all.extend(tasks);
        all.sort_by(|a, b| (a.kind == JobKind::Builtin, &a.name).cmp(&(b.kind == JobKind::Builtin, &b.name)));
        let is_served = ServeLease::address(&self.folder).is_some();
        let with_last = |mut shown: ShownJob| {
            let last = match &self.store {
                Some(store) => store.job_history(&shown.name, 1).map_err(CliError::own)?.pop(),
                None => None,
            };
            if is_served && last.as_ref().is_some_and(|last| last.ended_ms.is_none()) {
                shown.state = JobState::Running;
            }
            Ok((shown, last))
        };
        all.into_iter().map(with_last).collect()
    }

    fn own(&self, row: StoredJob) -> ShownJob {
        let next = Schedule::parse(&row.schedule, Some(&row.zone)).ok().and_then(|schedule| schedule.next(self.now));
        let schedule = Some((row.schedule, row.zone));
        ShownJob {
            name: row.name,
            kind: JobKind::Builtin,
            schedule,
            next,
            state: JobState::Idle,
            monitor: None,
            fault: None,
        }
    }

    fn task(&self, name: String, finding: TaskFinding) -> ShownJob {
        let kind = JobKind::Task;
        match finding {
            TaskFinding::Scheduled(task) => {
                let schedule = &task.timetable.schedule;
                let written = Some((schedule.text().to_owned(), schedule.zone().to_owned()));
                let monitor = task.timetable.monitor.map(|_| name.clone());
                ShownJob {
                    name,
                    kind,
                    schedule: written,
                    next: schedule.next(self.now),
                    state: JobState::Idle,
                    monitor,
                    fault: None,
                }
            }
            TaskFinding::Broken(fault) => ShownJob {
                name,
                kind,
                schedule: None,
                next: None,
                state: JobState::Disabled,
                monitor: None,
                fault: Some(fault),
            },
        }
    }
}

fn list(place: &JobsContext) -> Result<u8, CliError> {
    let (jobs, server) = (place.jobs()?, ServeLease::address(&place.folder));
    if place.json {
        let jobs: Vec<JobData> = jobs.into_iter().map(|(shown, last)| JobData::new(shown, last.as_ref())).collect();
        let all = json!({ "schema_version": JOBS_SCHEMA_VERSION, "server": server, "jobs": jobs });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    if jobs.is_empty() {
        let none = format!("no scheduled jobs in {}: no task in tasks/ has a `schedule`", place.workspace.display());
        paint::line(&[(Tone::Plain, paint::one_line(&none))]);
        return Ok(0);
    }
    let lines: Vec<StyledLine> = jobs.iter().flat_map(|(shown, last)| lines(place, shown, last.as_ref())).collect();
    print_data(&paint::page(&lines)).map_err(no_output)?;
    if server.is_none() && jobs.iter().any(|(job, _)| job.next.is_some()) {
        let none = "no server is running for this project, so no job starts: run `fledge serve`";
        paint::line(&[(Tone::Warn, none.to_owned())]);
    }
    Ok(0)
}

fn lines(place: &JobsContext, shown: &ShownJob, last: Option<&StoredJobRun>) -> Vec<StyledLine> {
    let tone = match shown.state {
        JobState::Idle => Tone::Faint,
        JobState::Running => Tone::Strong,
        JobState::Disabled => Tone::Bad,
    };
    let when = shown.schedule.as_ref().map_or(String::new(), |(text, zone)| {
        if zone == "UTC" { format!("  {text}") } else { format!("  {text} {zone}") }
    });
    let mut first = vec![
        (Tone::Strong, paint::one_line(&shown.name)),
        (tone, format!("  {}", shown.state.word())),
        (Tone::Plain, paint::one_line(&when)),
    ];
    first.extend(shown.next.map(|next| (Tone::Faint, format!("  next {next:.0}"))));
    let mut lines = vec![first];
    if let Some(last) = last {
        let ago = ago(place.now.as_millisecond(), last.began_ms);
        let why = last.message.as_ref().map(|why| (Tone::Plain, format!(": {}", paint::one_line(why))));
        let mut line = vec![(Tone::Faint, format!("  last {ago}: ")), (tone_of(&last.state), last.state.clone())];
        line.extend(why);
        lines.push(line);
    }
    lines.extend(shown.fault.as_ref().map(|fault| vec![(Tone::Bad, format!("  {}", paint::one_line(fault)))]));
    lines
}

fn history(place: &JobsContext, name: &str, limit: u32) -> Result<u8, CliError> {
    let read = if place.json { limit } else { u32::MAX }; // one line may combine several
    let runs = place.store.as_ref().map(|store| store.job_history(name, read)).transpose().map_err(CliError::own)?;
    let runs = runs.unwrap_or_default();
    if runs.is_empty() {
        let jobs = place.jobs()?;
        if !jobs.iter().any(|(job, _)| job.name == name) {
            return Err(unknown(name, jobs.iter().map(|(job, _)| job.name.as_str())));
        }
    }
    if place.json {
        let runs: Vec<JobRunData> = runs.iter().map(JobRunData::from_run).collect();
        let all = json!({ "schema_version": JOBS_SCHEMA_VERSION, "name": name, "runs": runs });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    let line = |run: &StoredJobRun| -> StyledLine {
        let JobRunData { due_at, began_at, tries, count, error, run: started, .. } = JobRunData::from_run(run);
        let many = if count > 1 { format!(" and {} before it", count - 1) } else { String::new() };
        let tried = if tries > 1 { format!(", {tries} tries") } else { String::new() };
        let mut line = vec![
            (Tone::Plain, due_at.unwrap_or(began_at)),
            (tone_of(&run.state), format!("  {:<11}", run.state)),
            (Tone::Faint, format!("{many}{tried}")),
        ];
        line.extend(started.map(|run| (Tone::Faint, format!("  run {}", paint::one_line(&run)))));
        line.extend(error.map(|error| (Tone::Bad, format!("  {}", paint::one_line(&error)))));
        line
    };
    if runs.is_empty() {
        paint::line(&[(Tone::Plain, format!("job `{name}` has not been due yet"))]);
        return Ok(0);
    }
    let lines = together(runs).iter().take(limit as usize).map(line).collect::<Vec<_>>();
    print_data(&paint::page(&lines)).map_err(no_output)?;
    Ok(0)
}

/// Combines consecutive missed runs into the newest of them.
fn together(runs: Vec<StoredJobRun>) -> Vec<StoredJobRun> {
    let mut all: Vec<StoredJobRun> = Vec::new();
    for run in runs {
        match all.last_mut() {
            Some(last) if last.state == "missed" && run.state == "missed" => last.count += run.count,
            Some(_) | None => all.push(run),
        }
    }
    all
}

fn tone_of(state: &str) -> Tone {
    match state {
        "ok" => Tone::Good,
        "failed" => Tone::Bad,
        "missed" | "skipped" | "interrupted" => Tone::Warn,
        _ => Tone::Plain,
    }
}

/// Returns the error for an unknown job.
fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> CliError {
    let failure = CliError::input(anyhow!("there is no job `{name}`")).hint("run `fledge jobs list` to see them");
    failure.near(name, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_were_missed_one_after_the_other_are_one_line() {
        let run = |state: &str, due_ms, count| StoredJobRun {
            due_ms: Some(due_ms),
            state: state.into(),
            count,
            ..StoredJobRun::default()
        };
        let runs =
            vec![run("ok", 9, 1), run("missed", 8, 1), run("missed", 7, 1), run("missed", 6, 5), run("ok", 5, 1)];
        let lines = together([runs, vec![run("missed", 4, 1)]].concat());
        assert_eq!(lines, [run("ok", 9, 1), run("missed", 8, 7), run("ok", 5, 1), run("missed", 4, 1)]);
    }
}
