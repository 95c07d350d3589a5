//! The tasks, parameters and repositories that a command line or a batch file asks for. All missing
//! files are reported together.

use super::super::failure::CliError;
use super::super::runtime::block_on;
use super::{BatchRequest, sources};
use crate::batch::plan::{self, BatchFile, PlanRequest, RepositoryEntry};
use crate::config::EnvironmentLayer;
use crate::driver::commit_at;
use crate::limits::MAX_SOURCE;
use crate::store;
use crate::task::TaskError;
use crate::yaml::{Problem, Problems};
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};

/// The work to do.
#[derive(Debug)]
pub(super) struct PlannedBatch {
    pub(super) file: BatchFile,
    pub(super) order: PlanRequest,
    pub(super) folders: Vec<(PathBuf, Option<String>)>,
}

/// Reads the arguments: a batch file, or the task files that they name.
///
/// # Errors
/// All missing files, folders and bases.
pub(super) fn read(
    request: &BatchRequest<'_>,
    workspace: &Path,
    environment: &EnvironmentLayer,
) -> Result<PlannedBatch, CliError> {
    let params = request.params.clone();
    if let Some(source) = request.tasks.iter().find(|task| sources::is_batch_file(task)) {
        if request.tasks.len() > 1 {
            let error = anyhow!("{source} is a batch file, which cannot be combined with other tasks");
            return Err(CliError::input(error).hint("name all tasks in the file, or run the file alone"));
        }
        let text = store::read_text(Path::new(source), MAX_SOURCE).map_err(CliError::input)?;
        let text = text.ok_or_else(|| CliError::no_file("batch file", Path::new(source)))?;
        must_be_batch(source, &text)?;
        let file = plan::parse(&text, source).map_err(CliError::input)?;
        let below = Path::new(source).parent().unwrap_or(Path::new("")).to_owned();
        let (mut found, mut faults) = (Vec::new(), Problems::default());
        for (place, pattern) in &file.tasks {
            match sources::files(pattern, &below) {
                Ok(files) => found.extend(files),
                Err(why) => faults.push(Problem::at(*place, why)),
            }
        }
        let mut folders = Vec::new();
        for entry in &file.repositories {
            match repository(entry, &below, environment)? {
                Ok(folder) => folders.push(folder),
                Err(why) => faults.push(Problem::at(entry.place, why)),
            }
        }
        if !faults.is_empty() {
            return Err(CliError::input(TaskError { file: source.clone(), problems: faults.seen_in(&text) }));
        }
        let paths: Vec<&Path> = folders.iter().map(|(folder, _)| folder.as_path()).collect();
        let repositories = plan::name_folders(&paths);
        let order = PlanRequest {
            tasks: sources::texts(found)?,
            matrix: file.matrix.clone(),
            file: source.clone(),
            text: text.into(),
            repositories,
            params,
        };
        let folders = if folders.is_empty() { vec![(workspace.to_owned(), None)] } else { folders };
        return Ok(PlannedBatch { file, order, folders });
    }
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for task in request.tasks {
        match sources::files(task, Path::new("")) {
            Ok(files) => found.extend(files),
            Err(_) if task == "-" => {
                faults.push("-: standard input holds one task for one run, but the command names more".to_owned())
            }
            Err(why) => faults.push(why),
        }
    }
    if !faults.is_empty() {
        let failure = CliError::input(anyhow!(faults.join("\n")));
        return Err(match request.tasks {
            [task] if Path::new(task).is_dir() => {
                failure.hint("write the task in a file there, or give its text: `fledge run -p 'TEXT'`")
            }
            [task] if !task.contains(['*', '?', '[', '{']) && faults.len() == 1 && task != "-" => {
                let missing = CliError::no_file("task file", Path::new(task));
                if missing.message() == failure.message() { missing } else { failure }
            }
            _ => failure,
        });
    }
    let order = PlanRequest { tasks: sources::texts(found)?, params, ..PlanRequest::default() };
    Ok(PlannedBatch { file: BatchFile::default(), order, folders: vec![(workspace.to_owned(), None)] })
}

/// Refuses a lane that is named as a task.
fn must_be_batch(source: &str, text: &str) -> Result<(), CliError> {
    let path = Path::new(source);
    let has_key = |key: &str| text.lines().any(|line| line.starts_with(key));
    let is_lane = path.parent().is_some_and(|parent| parent.ends_with("lanes")) || has_key("steps:");
    match path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_lane && !has_key("tasks:")) {
        None => Ok(()),
        Some(lane) => {
            let error = anyhow!("{source} is a lane, not a task or a batch");
            Err(CliError::input(error).hint(format!("to run this lane: `fledge lanes run {lane}`")))
        }
    }
}

/// Returns the folder and the base of a repository in a batch file, or the reason why it cannot be
/// used.
fn repository(
    entry: &RepositoryEntry,
    below: &Path,
    environment: &EnvironmentLayer,
) -> Result<Result<(PathBuf, Option<String>), String>, CliError> {
    let RepositoryEntry { path, base, .. } = entry;
    let folder = match folder(&below.join(path)) {
        Ok(folder) => folder,
        Err(why) => return Ok(Err(why)),
    };
    if let Some(base) = base {
        let env: Vec<(String, String)> = environment.hand_env().into_iter().collect();
        let scratch = tempfile::tempdir().context("cannot create a folder").map_err(CliError::own)?;
        if let Err(fault) = block_on(commit_at(&folder, base, &env, scratch.path()))? {
            return Ok(Err(format!("{path}: {}", fault.message)));
        }
    }
    Ok(Ok((folder, base.clone())))
}

/// Returns the absolute path of an existing folder.
fn folder(path: &Path) -> Result<PathBuf, String> {
    let found = path.canonicalize().map_err(|error| format!("there is no folder {}: {error}", path.display()))?;
    if found.is_dir() { Ok(found) } else { Err(format!("{} is not a folder", path.display())) }
}
