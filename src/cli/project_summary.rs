//! `fledge` without a verb: the project, its last run, and the next command.

use super::configured;
use super::failure::CliError;
use super::output::{no_output, print_data};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use super::tasks::unwritten;
use crate::config::EnvironmentLayer;
use crate::driver::{self, project_of};
use crate::lane_files;
use crate::report::runs::outcome;
use crate::report::{NamedRun, NextStep, next_steps};
use crate::store::{RunListFilter, RunRow, Store, StoredRunState, read_text};
use crate::verdict::shell_word;
use std::path::{Path, PathBuf};

/// The maximum number of bytes of a task to read.
const MOST: usize = 1 << 16;

/// Prints three lines about the project; returns the exit code.
///
/// # Errors
/// When the folder does not exist, or nothing can be printed.
pub(super) fn print_summary(project: &ProjectArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let root = project.root(environment)?;
    configured::restore_configuration(environment, &root);
    let lines = match lanes(&root, environment) {
        Some((lanes, is_broken)) => vec![
            format!("Lanes:    {lanes}"),
            format!(
                "Last run: {}",
                newest(&root, environment).map_or_else(|| "none yet".to_owned(), |(_, row)| ended(&row, &root))
            ),
            match is_broken {
                true => format!("Next:     `fledge lanes validate{}` shows what to correct", elsewhere(&root)),
                false => format!("Next:     {}", next_command(&root, environment, None)),
            },
        ],
        None => vec![
            "fledge lets an agent work on a task until the project's own checks pass".to_owned(),
            format!("No lanes in {}", root.display()),
            "Next:     `fledge init` writes a lane and a first task; `fledge --help` lists all commands".to_owned(),
        ],
    };
    let lines: Vec<_> = lines.iter().map(|line| vec![(Tone::Plain, paint::one_line(line))]).collect();
    print_data(&paint::prose(&lines)).map_err(no_output)?;
    Ok(0)
}

/// Returns the names of the lanes, and true if a file of a lane is broken; `None` if the project
/// has none, not even a detected one.
fn lanes(root: &Path, environment: &EnvironmentLayer) -> Option<(String, bool)> {
    let env = environment.hand_env();
    let listed = lane_files::list(root, env.get("PATH").map_or("", String::as_str)).ok()?;
    let names: Vec<&str> = listed.lanes.iter().map(|lane| lane.name.as_str()).collect();
    let broken: Vec<&str> = listed.fault.files.keys().map(String::as_str).collect();
    let is_broken = !broken.is_empty();
    let broken = if is_broken { format!("; broken: {}", broken.join(", ")) } else { String::new() };
    let detected = if listed.is_detected { " (detected; `fledge init` saves it to a file)" } else { "" };
    (!names.is_empty() || is_broken).then(|| (format!("{}{detected}{broken}", names.join(", ")), is_broken))
}

fn newest(root: &Path, environment: &EnvironmentLayer) -> Option<(Store, RunRow)> {
    let state = environment.state_dir().ok()?;
    let store = Store::existing(&state, &project_of(&state, root)).ok().flatten()?;
    let row = store.runs(&RunListFilter { limit: 1, ..RunListFilter::default() }).ok()?.into_iter().next()?;
    Some((store, row))
}

fn ended(row: &RunRow, root: &Path) -> String {
    let word = outcome(row);
    format!("{word}, {} (`fledge runs show last{}`)", row.head.title, elsewhere(root))
}

/// Returns the `-C` flag that a command needs, if the current folder is not in the project.
fn elsewhere(root: &Path) -> String {
    let is_here = Path::new(".").canonicalize().is_ok_and(|here| here.starts_with(root));
    if is_here { String::new() } else { format!(" -C {}", shell_word(&root.display().to_string())) }
}

/// Returns the path of a project's file for a command in the current folder.
fn from_here(root: &Path, path: &Path) -> PathBuf {
    let here = Path::new(".").canonicalize().unwrap_or_default();
    match here.strip_prefix(root) {
        Ok(below) => below.components().map(|_| Path::new("..")).chain([path]).collect(),
        Err(_) => root.join(path),
    }
}

/// Returns the next command, with its reason. `commit` is the command that commits what a run would
/// refuse.
pub(super) fn next_command(root: &Path, environment: &EnvironmentLayer, commit: Option<&str>) -> String {
    let task = first_task(root);
    if let Some((store, row)) = newest(root, environment) {
        match &row.state {
            StoredRunState::Running { .. } => return format!("`fledge runs list --running{}`", elsewhere(root)),
            StoredRunState::Interrupted => {
                return format!("`fledge runs resume {}{}` continues it", row.head.id, elsewhere(root));
            }
            StoredRunState::Ended(_) => {
                let is_of = |task: &PathBuf| Path::new(&row.head.source).ends_with(task);
                if let Some(step) = task.as_ref().filter(|task| is_of(task)).and_then(|_| after(&store, &row)) {
                    return format!("`{}{}` ({})", step.command, elsewhere(root), step.does);
                }
            }
        }
    }
    let Some(task) = task else {
        return format!("`fledge run -p 'Describe the task'{}`", elsewhere(root));
    };
    let shown = from_here(root, &task).display().to_string();
    let place = elsewhere(root);
    let text = read_text(&root.join(&task), MOST).ok().flatten().unwrap_or_default();
    match unwritten(&text, &shown) {
        Some(_) => {
            let commit = commit.map(|commit| format!("commit with `{commit}`, ")).unwrap_or_default();
            format!("describe the task in {shown}, {commit}then `fledge run {shown}{place}`")
        }
        None => format!("`fledge run {shown}{place}`"),
    }
}

/// Returns the most useful command after an ended run.
fn after(store: &Store, row: &RunRow) -> Option<NextStep> {
    let result = driver::story(store, row).0.run.result()?;
    let run = NamedRun { name: "last", git: Some("git"), commit_first: "", models: &[] };
    next_steps(&result, run).into_iter().find(|step| step.command.starts_with("fledge "))
}

/// Returns the first task below `tasks`, by name.
fn first_task(root: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(root.join("tasks")).ok()?.flatten().map(|entry| entry.path());
    let is_task =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("README.md");
    let first = entries.filter(is_task).min()?;
    first.strip_prefix(root).ok().map(Path::to_owned)
}
