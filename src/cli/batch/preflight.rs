//! Checks before the first job of a batch begins: models that cannot be connected, missing bases,
//! and lanes or files that a task names but its commit does not contain. All faults are reported
//! together.

use super::super::connect::{RequestedModels, SharedModels};
use super::super::error_text::ErrorList;
use super::super::failure::CliError;
use super::super::runtime::block_on;
use super::site::{BatchProjects, ModelSelection, wanted};
use super::sources::is_batch_file;
use crate::batch::plan::{BatchJob, TaskText, place_of_model};
use crate::config::ConfigError;
use crate::driver::{DriverSettings, PlanError, StartingPoint, UncommittedFiles, export_commit, lanes_at, prepare};
use crate::provider::Pacer;
use crate::setup::ProjectContext;
use crate::task::{Isolation, Task};
use crate::tool::LateSecrets;
use crate::verdict::Reason;
use anyhow::{Context, Error, anyhow};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::sync::watch;

/// The result of these checks.
#[derive(Debug)]
pub(super) struct Preflight {
    pub(super) models: BTreeMap<ModelSelection, SharedModels>,
    /// The number of requests that wait because of the models' rate limits.
    pub(super) waiting: watch::Receiver<usize>,
    /// Notes for the user, one line each.
    pub(super) notes: Vec<String>,
}

/// The start of jobs: the index of their repository and, for jobs with a worktree, their base if
/// they name one.
type JobStart = (usize, Option<Option<String>>);

/// The files and settings at a start.
#[derive(Debug)]
struct StartFiles {
    settings: DriverSettings,
    /// The settings of the checkout, and its uncommitted files.
    checkout: (DriverSettings, UncommittedFiles),
    lanes: Option<PathBuf>,
    _scratch: TempDir,
}

impl BatchProjects<'_> {
    /// Checks the start of all jobs.
    ///
    /// # Errors
    /// All faults, once for each task.
    pub(super) fn beforehand(&self, jobs: &[BatchJob], texts: &[TaskText]) -> Result<Preflight, CliError> {
        let (mut faults, mut notes) = (Vec::new(), Vec::new());
        let mut tasks = Vec::new();
        for job in jobs {
            let task = self.task_of(&texts[job.task], job);
            tasks.push((job, task.map_err(CliError::input)?));
        }
        let pacer = Pacer::default();
        let models = self.connected(&tasks, &pacer, &mut faults);
        self.check_plans(&tasks, &mut faults, &mut notes)?;
        let waiting = pacer.waiting();
        if faults.is_empty() {
            Ok(Preflight { models, waiting, notes })
        } else {
            Err(CliError::input(ErrorList::from_errors(faults)))
        }
    }

    /// Connects the models of all jobs.
    fn connected(
        &self,
        tasks: &[(&BatchJob, Task)],
        pacer: &Pacer,
        faults: &mut Vec<Error>,
    ) -> BTreeMap<ModelSelection, SharedModels> {
        let (mut all, mut failed) = (BTreeMap::new(), BTreeSet::new());
        for (job, task) in tasks {
            let wanted = wanted(job, task);
            if all.contains_key(&wanted) || failed.contains(&wanted) {
                continue;
            }
            let asked = RequestedModels { names: &wanted.1, tier: wanted.2, folder: &wanted.3 };
            match SharedModels::connect(&asked, &self.all[job.repository].set, self.environment, pacer) {
                Ok(shared) => drop(all.insert(wanted, shared)),
                Err(failure) => {
                    let is_flag = self.request.options.has_models();
                    let is_unknown = matches!(failure.cause(), Some(ConfigError::UnknownModel { .. }));
                    let what = if is_flag && is_unknown { "--model" } else { task.source.as_str() };
                    faults.push(self.at_model(failure, &task.source).named(what));
                    failed.insert(wanted);
                }
            }
        }
        all
    }

    /// Adds the place of an unknown model: in the task's file, the batch file or the configuration.
    fn at_model(&self, failure: CliError, source: &str) -> CliError {
        let Some(ConfigError::UnknownModel { name, .. }) = failure.cause() else { return failure };
        let name = name.clone();
        let placed = |failure: &CliError| !failure.is_cause::<ConfigError>();
        let mut failure = failure;
        for key in ["model", "candidates"] {
            failure = failure.at_value(source, key, &name);
            if placed(&failure) {
                return failure;
            }
        }
        match self.request.tasks {
            [file] if is_batch_file(file) => failure.at_place(file, |text| place_of_model(text, &name)),
            _ => failure,
        }
    }

    /// Plans each task as its run would, unless the plan depends on the work of another job.
    fn check_plans(
        &self,
        tasks: &[(&BatchJob, Task)],
        faults: &mut Vec<Error>,
        notes: &mut Vec<String>,
    ) -> Result<(), CliError> {
        let mut starts: BTreeMap<JobStart, Vec<(&BatchJob, &Task)>> = BTreeMap::new();
        for (job, task) in tasks {
            let from = (task.isolation == Isolation::Worktree).then(|| task.base.clone());
            starts.entry((job.repository, from)).or_default().push((job, task));
        }
        for (start, all) in starts {
            let named = self.all[start.0].folder.display().to_string();
            match self.files_at(&start)? {
                Ok((files, said)) => {
                    notes.extend(said.into_iter().map(|note| format!("{named}: {note}")));
                    let place = if self.all.len() == 1 { String::new() } else { format!(" in {named}") };
                    let seen = files.settings.workspace.display().to_string();
                    let uncommitted = files.uncommitted(&all);
                    if !uncommitted.is_empty() {
                        faults.extend(uncommitted.into_iter().map(|message| anyhow!("{message}{place}")));
                        continue;
                    }
                    for (source, fault) in files.planned(&all) {
                        // The fault of a lane already names the lane's file.
                        faults.push(match &fault.lane {
                            Some(_) if place.is_empty() => Error::new(fault),
                            Some(_) => Error::new(fault.renamed(|path| self.inside(start.0, path))),
                            None => {
                                let (key, value) = fault.value.clone().unwrap_or_default();
                                let message = fault.message.replace(&seen, &named);
                                let failure = CliError::input(anyhow!("{source}{place}: {message}"));
                                if place.is_empty() { failure.at_value(&source, key, &value) } else { failure }
                                    .named(&source)
                            }
                        });
                    }
                }
                Err(fault) if self.all.len() == 1 && start.1.iter().flatten().next().is_some() => {
                    let base = start.1.clone().flatten().unwrap_or_default();
                    for (_, task) in all {
                        let failure = CliError::input(anyhow!("{}: {}", task.source, fault.message));
                        faults.push(failure.at_value(&task.source, "base", &base).named(&task.source));
                    }
                }
                Err(fault) => {
                    let message =
                        fault.message.strip_prefix(&format!("{named} ")).map(|rest| format!("{named} {rest}"));
                    faults.push(anyhow!("{}", message.unwrap_or_else(|| format!("{named}: {}", fault.message))));
                }
            }
        }
        Ok(())
    }

    /// Names a file by its repository. A file of another commit is in no folder, so its name
    /// follows the folder's.
    fn inside(&self, repository: usize, path: &str) -> String {
        let folder = &self.all[repository].folder;
        let rev = self.request.options.lanes_from().filter(|rev| path.starts_with(&format!("{rev}:")));
        if rev.is_some() { format!("{}: {path}", folder.display()) } else { folder.join(path).display().to_string() }
    }

    /// Returns the files and settings that jobs with this start would see, and notes for the user.
    ///
    /// # Errors
    /// The inner error is a fault of the tasks, the outer one a failure of fledge.
    fn files_at(&self, start: &JobStart) -> Result<Result<(StartFiles, Vec<String>), PlanError>, CliError> {
        let (site, from) = (&self.all[start.0], &start.1);
        let place = ProjectContext { workspace: &site.folder, state_dir: &self.state_dir, set: &site.set };
        let settings = self.request.options.settings(self.environment, &place, &LateSecrets::default());
        let settings = DriverSettings { memory: None, ..settings };
        let scratch = tempfile::tempdir().context("cannot create a folder").map_err(CliError::own)?;
        let found = block_on(async {
            let lanes = lanes_at(&settings, scratch.path()).await?;
            match from {
                None => Ok((settings.clone(), Vec::new(), lanes, UncommittedFiles::default())),
                Some(base) => {
                    let (seen, notes) = export_commit(base.as_deref(), &settings, scratch.path()).await?;
                    Ok((seen, notes, lanes, UncommittedFiles::find(&settings, scratch.path()).await?))
                }
            }
        })?;
        Ok(found.map(|(seen, notes, lanes, uncommitted)| {
            (StartFiles { settings: seen, checkout: (settings, uncommitted), lanes, _scratch: scratch }, notes)
        }))
    }
}

impl StartFiles {
    /// Returns messages about uncommitted files of the checkout that would affect these tasks.
    fn uncommitted(&self, all: &[(&BatchJob, &Task)]) -> BTreeSet<String> {
        let (settings, files) = &self.checkout;
        let tasks = alike(all.iter().filter(|(job, _)| job.needs.is_empty())).into_values();
        tasks.filter_map(|(task, _)| files.must_not_decide(&task, settings).err()).map(|fault| fault.message).collect()
    }

    /// Plans the jobs that begin here. Returns the faults with the sources of their tasks. Tasks
    /// that differ only in their texts are planned once.
    ///
    /// A job that may depend on another job's work is left to its own run. So are faults that only
    /// the run can find.
    fn planned(&self, all: &[(&BatchJob, &Task)]) -> Vec<(String, PlanError)> {
        let begins = |nth: usize, (job, task): &(&BatchJob, &Task)| {
            job.needs.is_empty() && (nth == 0 || task.isolation != Isolation::InPlace)
        };
        let alike = alike(all.iter().enumerate().filter(|(nth, one)| begins(*nth, one)).map(|(_, one)| one));
        let mut faults = Vec::new();
        for (task, sources) in alike.into_values() {
            let planned =
                prepare(&task, &self.settings, &StartingPoint::unread(&self.settings.workspace), self.lanes.as_deref());
            let Err(fault) = planned else { continue };
            if matches!(fault.reason, Reason::BadInput | Reason::PlanFailed) {
                // The message begins with the source where it names it, and the source is empty
                // here.
                let message = fault.message.strip_prefix(": ").unwrap_or(&fault.message).to_owned();
                let fault = PlanError { message, ..fault };
                faults.extend(sources.into_iter().map(|source| (source.to_owned(), fault.clone())));
            }
        }
        faults.sort_by(|(one, _), (other, _)| one.cmp(other));
        faults
    }
}

/// Groups tasks that differ only in their texts and models. Returns each group's task without
/// these, and the sources of its members.
fn alike<'t>(tasks: impl Iterator<Item = &'t (&'t BatchJob, &'t Task)>) -> BTreeMap<String, (Task, Vec<&'t str>)> {
    let mut alike: BTreeMap<String, (Task, Vec<&str>)> = BTreeMap::new();
    for (_, task) in tasks {
        let [title, prompt, source] = [(); 3].map(|()| String::new());
        let bare = Task { title, prompt, source, models: Vec::new(), ..(*task).clone() };
        let key = serde_json::to_string(&bare).unwrap_or_default();
        alike.entry(key).or_insert_with(|| (bare, Vec::new())).1.push(&task.source);
    }
    alike
}
