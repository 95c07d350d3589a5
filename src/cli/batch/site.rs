//! The repositories of a batch, and the preparation of its jobs when their turn comes.

use super::super::configured;
use super::super::connect::{RequestedModels, SharedModels};
use super::super::failure::CliError;
use super::super::tasks::{task_folder, unwritten};
use super::cleanup::{Cleanup, Leftover, LeftoverOwner};
use super::past::RunChoice;
use super::{BatchRequest, race};
use crate::batch::plan::{BatchFile, BatchJob, TaskText};
use crate::batch::{
    BatchStore, BatchStoreError, FinishedJob, JobEnding, JobRefusal, JobSource, PreparedJob, RunIdentity,
};
use crate::config::{self, EnvironmentLayer};
use crate::driver::{DriverSettings, StopToken, project_of};
use crate::process::cores;
use crate::setup::{ProjectContext, mask_task};
use crate::store::{self, SqliteQueue, Store};
use crate::task::{self, GateChoice, Isolation, ParamValues, Task, TaskDefaults, TaskError, Tier};
use crate::verdict::Reason;
use crate::yaml::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// A folder with its configuration.
#[derive(Debug)]
pub(super) struct ProjectSettings {
    pub(super) folder: PathBuf,
    /// The commit from which work begins.
    pub(super) base: Option<String>,
    pub(super) set: config::ProjectConfig,
    /// Values for keys that a task does not set.
    defaults: TaskDefaults,
}

/// All repositories of a batch, with its request.
#[derive(Debug)]
pub(super) struct BatchProjects<'s> {
    pub(super) all: Vec<ProjectSettings>,
    pub(super) state_dir: PathBuf,
    pub(super) request: &'s BatchRequest<'s>,
    pub(super) environment: &'s EnvironmentLayer,
    /// Models for tasks that name none.
    models: Vec<String>,
}

/// The key of a set of connected models: the index of the repository, the model names, the tools,
/// and the folder of cassettes.
pub(super) type ModelSelection = (usize, Vec<String>, Tier, PathBuf);

impl<'s> BatchProjects<'s> {
    /// Opens the given folders, each with the commit from which work begins.
    ///
    /// # Errors
    /// When a folder's configuration is invalid.
    pub(super) fn open(
        request: &'s BatchRequest<'s>,
        file: &BatchFile,
        folders: Vec<(PathBuf, Option<String>)>,
        environment: &'s EnvironmentLayer,
    ) -> Result<Self, CliError> {
        let site = |(folder, base): (PathBuf, Option<String>)| {
            let set = configured::load(environment, &folder).map_err(CliError::input)?;
            let defaults = file.defaults.clone().over(set.defaults.clone());
            Ok(ProjectSettings { folder, base, set, defaults })
        };
        let all = folders.into_iter().map(site).collect::<Result<_, CliError>>()?;
        let state_dir = environment.state_dir().map_err(CliError::input)?;
        Ok(Self { all, state_dir, request, environment, models: file.models.clone() })
    }

    /// Parses a task with the values that apply in a repository.
    ///
    /// # Errors
    /// All faults of the task.
    pub(super) fn task(&self, text: &TaskText, params: &ParamValues, site: usize) -> Result<Task, TaskError> {
        let ProjectSettings { set, defaults, base, .. } = &self.all[site];
        let defaults =
            &defaults.clone().over(TaskDefaults { isolation: Some(Isolation::Worktree), ..TaskDefaults::default() });
        let mut task = task::parse_with(&text.text, &text.source, params, defaults)?;
        if let Some(fault) = unwritten(&text.text, &text.source) {
            return Err(fault);
        }
        if self.request.no_verify {
            task.gate = GateChoice::Skip;
        }
        if task.models.is_empty() {
            task.models.clone_from(&self.models);
        }
        let unfit = |why: String| TaskError { file: text.source.clone(), problems: Problem::of_file(why).into() };
        let task = self.request.options.say(task).map_err(|failure| unfit(failure.message()))?;
        let mut task = mask_task(race::fitted(task, self.request).map_err(unfit)?, set, self.environment);
        if task.isolation == Isolation::Worktree && task.base.is_none() {
            task.base.clone_from(base);
        }
        Ok(task)
    }

    /// Parses the task of a job, with the job's own models.
    ///
    /// # Errors
    /// All faults of the task.
    pub(super) fn task_of(&self, text: &TaskText, job: &BatchJob) -> Result<Task, TaskError> {
        let mut task = self.task(text, &job.params, job.repository)?;
        if !job.models.is_empty() {
            task.models.clone_from(&job.models);
        }
        task.candidates = None; // the job is one of them
        Ok(task)
    }

    /// Opens the store of a repository's project.
    pub(super) fn store(&self, site: usize) -> Result<Store, store::StoreError> {
        Store::open(&self.state_dir, &project_of(&self.state_dir, &self.all[site].folder))
    }
}

/// Returns the key of the models of a job.
pub(super) fn wanted(job: &BatchJob, task: &Task) -> ModelSelection {
    (job.repository, task.models.clone(), task.tier, task_folder(&task.source))
}

/// The jobs of a batch. Each is prepared when its turn comes.
#[derive(Debug)]
pub(super) struct JobFactory<'s> {
    pub(super) sites: &'s BatchProjects<'s>,
    pub(super) texts: &'s [TaskText],
    pub(super) jobs: &'s [BatchJob],
    pub(super) models: BTreeMap<ModelSelection, SharedModels>,
    /// The number of requests that wait because of the models' rate limits.
    pub(super) waiting: watch::Receiver<usize>,
    pub(super) ledger: &'s BatchStore<SqliteQueue>,
    /// The maximum number of runs in parallel.
    pub(super) at_once: usize,
    /// The commits of verified jobs.
    pub(super) commits: Mutex<BTreeMap<usize, String>>,
    /// The remains of candidates whose race has not ended.
    pub(super) left: Mutex<BTreeMap<usize, Leftover>>,
    pub(super) stop: &'s StopToken,
}

impl JobFactory<'_> {
    /// Returns the key by which the runs of a job are found again.
    pub(super) fn key(&self, job: usize) -> String {
        format!("{}/{}", self.ledger.batch(), self.jobs[job].name)
    }

    /// Returns the path of the list of trees that failed in the race of this first candidate.
    pub(super) fn failed_trees(&self, race: usize) -> PathBuf {
        race::failed_trees_of(&self.sites.state_dir, self.ledger.batch(), &self.jobs[race].name)
    }

    /// Removes the lists of trees that failed in races.
    pub(super) fn forget_failed_trees(&self) {
        for race in self.jobs.iter().filter_map(|job| job.race) {
            let _there_may_be_none = std::fs::remove_file(self.failed_trees(race));
        }
    }

    fn made(&self, job: usize, tries: u32, usd_micros: Option<u64>) -> Result<PreparedJob, JobRefusal> {
        let planned = &self.jobs[job];
        let site = &self.sites.all[planned.repository];
        let bad = |message: String| JobRefusal { reason: Reason::BadInput, message };
        let task = self.sites.task_of(&self.texts[planned.task], planned);
        let mut task = task.map_err(|fault| bad(fault.to_string()))?;
        task.budget.usd_micros = usd_micros;
        if task.isolation == Isolation::Worktree
            && let Some(commit) = self.commit_of_needs(job)
        {
            task.base = Some(commit);
        }
        let shared = self.models.get(&wanted(planned, &task));
        let shared = shared.ok_or_else(|| bad("cannot connect to its models".into()))?;
        let folder = task_folder(&task.source);
        let asked = RequestedModels { names: &task.models, tier: task.tier, folder: &folder };
        let (environment, options) = (self.sites.environment, self.sites.request.options);
        let models = shared.models(&asked, &site.set, environment).map_err(|failure| bad(failure.message()))?;
        let place = ProjectContext { workspace: &site.folder, state_dir: &self.sites.state_dir, set: &site.set };
        let usual = options.settings(environment, &place, shared.keys());
        let patch = options.patch().map(|_| race::patch_of(&self.sites.state_dir, self.ledger.batch(), &planned.name));
        let failed_trees = planned.race.map(|race| self.failed_trees(race));
        let settings = DriverSettings {
            models,
            reports: Vec::new(),
            patch,
            failed_trees,
            // An evaluation must not let one run profit from the memory of another.
            memory: usual.memory.clone().filter(|_| self.sites.request.eval.is_none()),
            jobs: (cores() / self.at_once.max(1)).max(1),
            ..usual
        };
        let RunChoice { run, paid } = self.taken(job, tries, &task, &settings.models)?;
        if let RunIdentity::Resumed(_) = run {
            // The budget of a resumed run counts its earlier cost too, so the limit is raised by
            // this cost. It stays within the job's own limit.
            let own = planned.usd_micros.filter(|_| planned.race.is_none()).unwrap_or(u64::MAX);
            task.budget.usd_micros = usd_micros.map(|share| share.saturating_add(paid).min(own));
        }
        Ok(PreparedJob { task, settings, run, paid })
    }

    /// Returns the commit from which a job begins: that of the needed job on which no other needed
    /// job builds. Returns `None` if there are several, unless they are candidates of one race.
    fn commit_of_needs(&self, job: usize) -> Option<String> {
        let needs = &self.jobs[job].needs;
        let is_built_upon = |need: &usize| needs.iter().any(|other| self.builds_on(*other, *need));
        let last: Vec<usize> = needs.iter().copied().filter(|need| !is_built_upon(need)).collect();
        let race = |need: usize| self.jobs[need].race.unwrap_or(need);
        let first = race(*last.first()?);
        let commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        let is_one = last.iter().all(|need| race(*need) == first);
        if is_one { last.iter().find_map(|need| commits.get(need).cloned()) } else { None }
    }

    /// Returns true if `job` needs `other`, directly or indirectly.
    fn builds_on(&self, job: usize, other: usize) -> bool {
        let (mut ahead, mut seen) = (self.jobs[job].needs.clone(), BTreeSet::new());
        while let Some(need) = ahead.pop() {
            if need == other {
                return true;
            }
            if seen.insert(need) {
                ahead.extend(&self.jobs[need].needs);
            }
        }
        false
    }

    /// Removes the remains that are no longer needed after the end of a job.
    async fn clear(&self, job: usize, outcome: &FinishedJob) {
        let own = leftover(outcome);
        let is_eval = self.sites.request.eval.is_some();
        let mut all: Vec<Leftover> = Vec::new();
        if let Some(race) = self.jobs[job].race {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            if outcome.beaten {
                all.extend(own);
            } else if outcome.is_verified() {
                let rivals = (0..self.jobs.len()).filter(|other| *other != job && self.jobs[*other].race == Some(race));
                all.extend(rivals.filter_map(|rival| left.remove(&rival)));
            } else {
                left.extend(own.map(|own| (job, own)));
            }
        } else if is_eval {
            all.extend(own);
        }
        let clearing = Cleanup {
            state_dir: &self.sites.state_dir,
            workspace: &self.sites.all[self.jobs[job].repository].folder,
            environment: self.sites.environment,
            stop: self.stop,
        };
        for left in all {
            clearing.clear(&left, if is_eval { LeftoverOwner::Measured } else { LeftoverOwner::Beaten }).await;
        }
    }
}

impl JobSource for JobFactory<'_> {
    async fn prepare(&self, job: usize, tries: u32, usd_micros: Option<u64>) -> Result<PreparedJob, JobRefusal> {
        self.ledger.claim(job).await.map_err(refusal)?;
        self.made(job, tries, usd_micros)
    }

    async fn keep_outcome(&self, job: usize, outcome: &FinishedJob) -> Result<(), JobRefusal> {
        if !outcome.beaten {
            self.commits.lock().unwrap_or_else(PoisonError::into_inner).extend(committed(job, outcome));
        }
        self.ledger.keep(job, outcome).await.map_err(refusal)?;
        self.clear(job, outcome).await;
        Ok(())
    }

    async fn beside(&self) -> JobRefusal {
        refusal(self.ledger.renew().await)
    }
}

/// Returns the remains of a job's run.
pub(super) fn leftover(outcome: &FinishedJob) -> Option<Leftover> {
    match &outcome.end {
        JobEnding::Ran(ran) => {
            let folder = ran.left().map(|worktree| PathBuf::from(&worktree.path));
            Some(Leftover { run: ran.run.clone(), folder, commit: ran.commit.clone() })
        }
        JobEnding::NotRun(_) => None,
    }
}

/// Returns the commit of a verified job.
pub(super) fn committed(job: usize, outcome: &FinishedJob) -> Option<(usize, String)> {
    match &outcome.end {
        JobEnding::Ran(ran) if ran.verified => Some((job, ran.commit.clone()?)),
        JobEnding::Ran(_) | JobEnding::NotRun(_) => None,
    }
}

/// Converts an error of the ledger.
fn refusal(fault: BatchStoreError) -> JobRefusal {
    let reason = match &fault {
        BatchStoreError::Held { .. } => Reason::Blocked,
        BatchStoreError::None => Reason::BadInput,
        BatchStoreError::Queue(_) | BatchStoreError::Name(_) | BatchStoreError::Newest(_) => Reason::IoError,
    };
    JobRefusal { reason, message: fault.to_string() }
}
