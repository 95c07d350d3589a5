//! The source of a server's runs. It makes tasks from requests, and settings from the current
//! configuration.

use super::super::connect::{RequestedModels as Models, SharedModels, again, choices};
use super::super::failure::CliError;
use super::super::resume::settings as resumed_settings;
use super::super::tasks::task_folder;
use crate::config::{self, EnvironmentLayer};
use crate::driver::{DriverModel, DriverSettings, must_be_committed, terms};
use crate::id::RunId;
use crate::limits::MAX_SOURCE;
use crate::process::cores;
use crate::provider::Pacer;
use crate::serve::engine::{
    Overrides, RunChoices, RunRefusal, RunRequest, RunRequestBody, TaskFlaw, TaskOrigin, TaskSource, UnfitTask,
};
use crate::setup::{ProjectContext, mask_task};
use crate::store::sha256;
use crate::task::{self, GateChoice, Isolation, Task, TaskDefaults, Tier};
use crate::tool::LateSecrets;
use crate::verdict::Reason;
use crate::workspace::jail::{FinalLink, Jail};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;

/// The number of connections from which unused ones are dropped. Each folder of tasks may have its
/// own.
const KEPT: usize = 32;
/// The source of a task that is not a file.
const NO_FILE: &str = "-";

/// Makes tasks from requests, for one project.
pub(super) struct ProjectTasks {
    pub(super) state_dir: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) project: PathBuf,
    pub(super) environment: EnvironmentLayer,
    /// The maximum number of runs in parallel.
    pub(super) most: usize,
    pub(super) models: ModelConnections,
}

/// The connected models of the newest configuration.
#[derive(Debug, Default)]
pub(super) struct ModelConnections {
    /// Shared by all runs, so that rate limits hold for all of them together.
    pub(super) pacer: Pacer,
    now: Mutex<ProjectModels>,
}

#[derive(Debug, Default)]
struct ProjectModels {
    set: config::ProjectConfig,
    all: BTreeMap<(Vec<String>, Tier, PathBuf), Arc<SharedModels>>,
}

impl fmt::Debug for ProjectTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tasks({})", self.workspace.display())
    }
}

impl TaskSource for ProjectTasks {
    fn check(&self, asked: &RunRequestBody, now_ms: i64) -> Result<RunRequest, UnfitTask> {
        let set = self.set().map_err(|failure| unfit(&failure))?;
        let (mut again, mut earlier) = (None, None);
        let (text, source, task) = match &asked.task {
            TaskOrigin::Text(text) => (text.clone(), NO_FILE.to_owned(), None),
            TaskOrigin::Path(path) => {
                let (text, source) = self.read(path)?;
                (text, source, None)
            }
            TaskOrigin::Again(run) => {
                let task = self.task_again(run, &asked.overrides)?;
                again = Some(Box::new(task.clone()));
                (task.prompt.clone(), task.source.clone(), Some(task))
            }
            TaskOrigin::After(run, text) => {
                earlier = Some(run.clone());
                (text.clone(), NO_FILE.to_owned(), Some(self.task_after(run, text)?))
            }
        };
        let mut task = match task {
            Some(task) => task,
            None => self.parsed(&text, &source, &asked.params, &set)?,
        };
        asked.overrides.set_in(&mut task);
        if let Some(why) = task.contradiction() {
            return Err(UnfitTask { message: why.to_owned(), flaws: Vec::new() });
        }
        self.must_have_lanes(&asked.overrides, &task)?;
        let folder = self.folder(&source);
        self.must_be_inside(&task.models, &folder)?;
        choices(&self.wanted(&task, &folder), &set, &self.environment).map_err(|failure| {
            match &asked.overrides.models[..] {
                [] => unfit(&failure),
                _ => UnfitTask::of_field("models", failure.message()),
            }
        })?;
        if earlier.is_none() {
            let settings = self.settings(&set, Vec::new(), &LateSecrets::default());
            let wrong = |message: String| UnfitTask { message, flaws: Vec::new() };
            let scratch = tempfile::tempdir().map_err(|error| wrong(format!("cannot create a folder: {error}")))?;
            let committed = must_be_committed(&task, &settings, scratch.path());
            Handle::current().block_on(committed).map_err(|fault| wrong(fault.message))?;
        }
        let task = mask_task(task, &set, &self.environment);
        Ok(RunRequest {
            text,
            source,
            params: asked.params.clone(),
            overrides: asked.overrides.clone(),
            again,
            earlier,
            resume: None,
            key: asked.key.clone(),
            task_digest: sha256(task.prompt.as_bytes()),
            title: task.title,
            at_ms: now_ms,
        })
    }

    fn choices(&self) -> RunChoices {
        self.offered()
    }

    fn begin(&self, request: &RunRequest) -> Result<(Task, DriverSettings), RunRefusal> {
        let set = self.set().map_err(|failure| refusal(&failure))?;
        if let Some(run) = &request.earlier {
            return self.begin_after(run, request, &set);
        }
        let mut task = match &request.again {
            Some(task) => Task::clone(task),
            None => {
                let task = self.parsed(&request.text, &request.source, &request.params, &set);
                task.map_err(|unfit| RunRefusal { reason: Reason::BadInput, message: one_line(&unfit) })?
            }
        };
        request.overrides.set_in(&mut task);
        let task = mask_task(task, &set, &self.environment);
        let folder = self.folder(&request.source);
        let asked = self.wanted(&task, &folder);
        let shared = self.models.shared(&asked, &set, &self.environment).map_err(|failure| refusal(&failure))?;
        let models = shared.models(&asked, &set, &self.environment).map_err(|failure| refusal(&failure))?;
        let settings = self.settings(&set, models, shared.keys());
        Ok((task, settings))
    }

    fn search_path(&self) -> String {
        self.environment.get("PATH").unwrap_or_default().to_owned()
    }

    fn resume(&self, run: &RunId) -> Result<(Isolation, DriverSettings), RunRefusal> {
        let set = self.set().map_err(|failure| refusal(&failure))?;
        let own = |message: String| RunRefusal { reason: Reason::IoError, message };
        let store = self.store().map_err(|failure| own(failure.message()))?;
        let (row, terms) = terms(&store, run)
            .map_err(|fault| RunRefusal { reason: fault.reason(), message: CliError::own(fault).message() })?;
        // A run that continues an earlier run works where its files are.
        let folder = PathBuf::from(&row.head.workspace);
        let workspace = if terms.worktree.is_none() && folder.is_dir() { &folder } else { &self.workspace };
        let place = ProjectContext { workspace, state_dir: &self.state_dir, set: &set };
        let connected = again(&row, &terms, &place, &self.environment, &self.models.pacer);
        let connected = connected.map_err(|failure| refusal(&failure))?;
        let isolation = terms.task.isolation;
        Ok((isolation, resumed_settings(&place, &self.environment, connected, terms)))
    }
}

impl ProjectTasks {
    /// Renews the keys of connected models that expire within `ahead`.
    ///
    /// # Errors
    /// The keys that cannot be renewed, and why.
    pub(super) async fn renew_keys(&self, ahead: Duration) -> Result<(), String> {
        let now: Vec<Arc<SharedModels>> = {
            let now = self.models.now.lock().unwrap_or_else(PoisonError::into_inner);
            now.all.values().map(Arc::clone).collect()
        };
        let mut wrong = Vec::new();
        for shared in now {
            wrong.extend(shared.renew(ahead).await.err());
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }

    pub(super) fn set(&self) -> Result<config::ProjectConfig, CliError> {
        config::load(&self.environment, &self.workspace).map_err(CliError::input)
    }

    /// Reads a file of the workspace; returns its text and its absolute path. Refuses a path that
    /// leads out of the workspace.
    fn read(&self, path: &str) -> Result<(String, String), UnfitTask> {
        let wrong = |message: String| UnfitTask::of_field("path", message);
        let read = Jail::open(&self.workspace).and_then(|jail| {
            let place = jail.locate(&jail.path(path)?, FinalLink::Follow)?;
            place.read(MAX_SOURCE as u64)
        });
        let bytes = read.map_err(|error| wrong(format!("the task file {path}: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong(format!("the task file {path} is not UTF-8")))?;
        let whole = self.workspace.join(path);
        let source = whole.to_str().ok_or_else(|| wrong(format!("the whole path of {path} is not UTF-8")))?;
        Ok((text, source.to_owned()))
    }

    /// Returns the settings of a run with these models. `keys` holds secrets from outside the
    /// environment.
    fn settings(&self, set: &config::ProjectConfig, models: Vec<DriverModel>, keys: &LateSecrets) -> DriverSettings {
        let place = ProjectContext { workspace: &self.workspace, state_dir: &self.state_dir, set };
        let jobs = (cores() / self.most.max(1)).max(1);
        DriverSettings { models, jobs, ..place.settings(&self.environment, keys) }
    }

    /// Checks that cassettes are files of the project. Otherwise a request could read any other
    /// file.
    fn must_be_inside(&self, names: &[String], folder: &std::path::Path) -> Result<(), UnfitTask> {
        for path in names.iter().filter_map(|name| name.strip_prefix("cassette/")) {
            let leads_out = folder.join(path).canonicalize().is_ok_and(|real| !real.starts_with(&self.workspace));
            if leads_out {
                return Err(UnfitTask::of_field("models", format!("there is no cassette `{path}` in the project")));
            }
        }
        Ok(())
    }

    /// Checks that the named lanes exist.
    fn must_have_lanes(&self, overrides: &Overrides, task: &Task) -> Result<(), UnfitTask> {
        // The lanes of another commit are not known yet.
        let GateChoice::Lanes(named) = &task.gate else { return Ok(()) };
        if task.base.is_some() && overrides.lanes.is_empty() {
            return Ok(());
        }
        let all = self.lanes();
        let Some(lane) = named.iter().find(|lane| !all.contains(lane)) else { return Ok(()) };
        let there = if all.is_empty() { "there are none".to_owned() } else { format!("there are {}", all.join(", ")) };
        let message = format!("there is no lane `{lane}`: {there}");
        Err(if overrides.lanes.is_empty() {
            UnfitTask { message, flaws: Vec::new() }
        } else {
            UnfitTask::of_field("lanes", message)
        })
    }

    pub(super) fn parsed(
        &self,
        text: &str,
        source: &str,
        params: &BTreeMap<String, String>,
        set: &config::ProjectConfig,
    ) -> Result<Task, UnfitTask> {
        let wrong = |message: &str| UnfitTask { message: message.to_owned(), flaws: Vec::new() };
        if text.len() > MAX_SOURCE {
            return Err(wrong(&format!("the task is too long: {} bytes, at most {MAX_SOURCE}", text.len())));
        }
        let worktree = TaskDefaults { isolation: Some(Isolation::Worktree), ..TaskDefaults::default() };
        let defaults = set.defaults.clone().over(worktree);
        let task = task::parse_with(text, source, params, &defaults).map_err(|fault| {
            let flaw = |problem: crate::yaml::Problem| TaskFlaw {
                line: problem.place.map_or(1, |place| place.line),
                column: problem.place.map_or(1, |place| place.column),
                message: problem.message,
                field: problem.about.map(|name| format!("params.{name}")),
                hint: problem.hint,
            };
            let flaws = fault.problems.sorted().into_iter().map(flaw).collect();
            UnfitTask { message: "the task has errors".into(), flaws }
        })?;
        if !task.needs.is_empty() {
            let needs = task.needs.join(", ");
            return Err(wrong(&format!(
                "the task needs other tasks ({needs}): a server runs each task alone; submit them in order, or run \
                them as a batch"
            )));
        }
        if task.candidates.is_some() {
            return Err(wrong("`candidates` need a batch: use `fledge run`, or remove the key"));
        }
        task.contradiction().map_or(Ok(task), |why| Err(wrong(why)))
    }

    /// Returns the folder of a task's cassettes and schemas.
    fn folder(&self, source: &str) -> PathBuf {
        self.workspace.join(task_folder(source))
    }

    fn wanted<'t>(&self, task: &'t Task, folder: &'t std::path::Path) -> Models<'t> {
        Models { names: &task.models, tier: task.tier, folder }
    }
}

impl ModelConnections {
    /// Returns the requested models. They are connected once, until the configuration changes.
    fn shared(
        &self,
        asked: &Models<'_>,
        set: &config::ProjectConfig,
        env: &EnvironmentLayer,
    ) -> Result<Arc<SharedModels>, CliError> {
        let wanted = (asked.names.to_vec(), asked.tier, asked.folder.to_owned());
        {
            let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            if now.set != *set {
                *now = ProjectModels { set: set.clone(), all: BTreeMap::new() };
            }
            if let Some(shared) = now.all.get(&wanted) {
                return Ok(Arc::clone(shared));
            }
        }
        // Connects without the lock, because a program may have to print a key, and other runs must
        // not wait.
        let shared = Arc::new(SharedModels::connect(asked, set, env, &self.pacer)?);
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.set == *set {
            if now.all.len() >= KEPT {
                now.all.retain(|_, shared| Arc::strong_count(shared) > 1);
            }
            now.all.insert(wanted, Arc::clone(&shared));
        }
        Ok(shared)
    }
}

fn unfit(failure: &CliError) -> UnfitTask {
    UnfitTask { message: failure.message(), flaws: Vec::new() }
}

pub(super) fn refusal(failure: &CliError) -> RunRefusal {
    RunRefusal { reason: Reason::BadInput, message: failure.message() }
}

pub(super) fn one_line(unfit: &UnfitTask) -> String {
    let flaws: Vec<String> =
        unfit.flaws.iter().map(|flaw| format!("{}:{}: {}", flaw.line, flaw.column, flaw.message)).collect();
    if flaws.is_empty() { unfit.message.clone() } else { flaws.join("; ") }
}
