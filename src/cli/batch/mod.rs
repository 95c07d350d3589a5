//! `fledge run` for several tasks, given as files, folders, globs or a batch file. Reports a table,
//! files and the most severe exit code.

mod arguments;
mod cleanup;
mod ending;
mod kept;
mod order;
mod output;
mod page;
mod past;
mod preflight;
mod race;
mod row;
mod screen;
mod site;
mod sources;

pub(super) use arguments::BatchArguments;
pub(super) use kept::{files as kept_files, folder as kept_folder, read as read_kept};
pub(super) use page::{next_steps, table};

use super::configured;
use super::drive::{OutputArguments, follow};
use super::failure::CliError;
use super::internal;
use super::options::RunOptions;
use super::output::{hear_out, no_output, print_data, print_json};
use super::paint;
use super::runtime::block_on;
use super::signals;
use super::sync_target::SyncTarget;
use crate::batch::plan::{self, BatchJob, TaskText};
use crate::batch::{
    BatchLimits, BatchScheduler, BatchSelector, BatchStore, BatchStoreError, BatchSummary, FinishedJob, JobEnding,
    JobRefusal, JobSummary, KnownJob, run as run_fleet,
};
use crate::config::EnvironmentLayer;
use crate::driver::{StopToken, project_of};
use crate::duration::milliseconds;
use crate::limits::MAX_SOURCE;
use crate::process::Stopwatch;
use crate::store::{self, SqliteQueue};
use crate::task::{self, ParamValues};
use crate::verdict::{Reason, StopCause, shell_word};
use anyhow::{Context, anyhow};
use ending::BatchEnding;
use order::PlannedBatch;
use output::ScreenSender;
use preflight::Preflight;
use screen::BatchScreen;
use site::{BatchProjects, JobFactory};
use std::cell::Cell;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The queue of all batches, in the state folder.
const QUEUE: &str = "queue.db";

/// The longest command line to print again, in bytes.
const LONGEST_COMMAND: usize = 400;

/// The folder with the records of the newest batch of each set of tasks, in the state folder.
const NEWEST: &str = "batches";

/// The request of the command line.
#[derive(Debug)]
pub(super) struct BatchRequest<'r> {
    /// Files, folders, globs, or one batch file.
    pub(super) tasks: &'r [String],
    /// Values for parameters.
    pub(super) params: ParamValues,
    /// True if no gate runs.
    pub(super) no_verify: bool,
    pub(super) options: &'r RunOptions,
    pub(super) arguments: &'r BatchArguments,
    /// The terms of an evaluation, if the request is for one.
    pub(super) eval: Option<&'r EvalTerms>,
}

/// The parameters of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EvalTerms {
    /// The models to compare. If empty, each task's own models.
    pub(super) models: Vec<String>,
    /// The runs of each task with each model.
    pub(super) repeat: u32,
    /// The lowest acceptable success rate.
    pub(super) min_rate: Option<f64>,
}

impl BatchRequest<'_> {
    /// Returns true if the jobs are the candidates of the only task named.
    fn is_one_race(&self, jobs: &[BatchJob]) -> bool {
        let is_one = matches!(self.tasks, [task] if !sources::is_many(task));
        is_one && self.eval.is_none() && jobs.iter().all(|job| job.race == Some(0))
    }

    /// Writes that nothing has begun, over the files of an earlier batch.
    fn write_unbegun(&self, root: &Path, failure: &CliError, environment: &EnvironmentLayer) -> Result<(), CliError> {
        let options = self.options;
        let results = options.results.sound_places(root, environment).with(options.beside(root));
        match self.tasks {
            [task] if self.eval.is_none() && !sources::is_many(task) => results.write_unbegun(failure),
            tasks => results.write_unbegun_batch(&tasks.join(" "), failure),
        }
    }

    /// Returns the jobs with their repetitions in an evaluation.
    fn repeated(&self, jobs: Vec<BatchJob>) -> Result<Vec<BatchJob>, CliError> {
        let Some(EvalTerms { models, repeat, .. }) = self.eval else { return Ok(jobs) };
        let wanted = usize::try_from(*repeat).unwrap_or(usize::MAX).saturating_mul(jobs.len().max(1));
        plan::few_enough(wanted.saturating_mul(models.len().max(1))).map_err(CliError::input)?;
        Ok(plan::repeat_jobs(&jobs, models, *repeat))
    }
}

/// Returns true if the arguments ask for several tasks or for candidates.
pub(super) fn is_meant(tasks: &[String], arguments: &BatchArguments) -> bool {
    tasks.len() > 1 || arguments.is_any() || tasks.iter().any(|task| sources::is_many(task) || has_candidates(task))
}

/// Returns true if a task's file asks for candidates.
fn has_candidates(task: &str) -> bool {
    store::read_text(Path::new(task), MAX_SOURCE).ok().flatten().is_some_and(|text| task::races(&text))
}

/// Runs the batch; returns the exit code.
///
/// # Errors
/// All faults before the first run began. No run has started then.
pub(super) fn run(request: &BatchRequest<'_>, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let workspace = request.options.workspace(environment);
    let root = request.options.root(environment);
    let has_begun = Cell::new(false);
    let done = workspace.and_then(|workspace| run_batch(request, &workspace, environment, &has_begun));
    if let (Err(failure), false, false) = (&done, has_begun.get(), request.options.dry_run)
        && let Err(unwritten) = request.write_unbegun(&root, failure, environment)
    {
        unwritten.show(); // the first failure determines the exit code
    }
    done
}

fn run_batch(
    request: &BatchRequest<'_>,
    workspace: &Path,
    environment: &EnvironmentLayer,
    has_begun: &Cell<bool>,
) -> Result<u8, CliError> {
    let PlannedBatch { file, order, folders } = order::read(request, workspace, environment)?;
    let mut bounds = request.arguments.bounds(&file, request.options.max_usd);
    let sites = BatchProjects::open(request, &file, folders, environment)?;
    let jobs = plan::plan(&order, |text, params, site| sites.task(text, params, site)).map_err(CliError::input)?;
    let jobs = request.repeated(jobs)?;
    let is_race = request.is_one_race(&jobs);
    request.options.must_be_for_many(is_race)?;
    if is_race && !request.arguments.has_jobs() {
        bounds.jobs = bounds.jobs.max(jobs.len()); // candidates mostly wait for their models
    }
    if let Some((one, other)) = plan::crowded(&jobs, bounds.jobs) {
        let error = anyhow!("{} and {} would work in one checkout at the same time", one.name, other.name);
        return Err(CliError::input(error).hint("remove `isolation: in-place`, or run them one by one: --jobs 1"));
    }
    let texts = &order.tasks;
    let ending = Arc::new(BatchEnding::find(request, &jobs, workspace, &sites.state_dir, environment)?);
    let Preflight { models, waiting, notes } = sites.beforehand(&jobs, texts)?;
    let identity = match &request.options.run_key {
        Some(key) => format!("key\n{}\n{key}", workspace.display()),
        None => identity(workspace, &jobs, &sites),
    };
    if request.options.dry_run {
        if request.arguments.resume {
            must_be_there(request, &identity, &jobs, texts, &sites)?;
        }
        return dry_run(request, &jobs, &sites, texts, &bounds, &notes);
    }
    if request.options.patch().is_some() {
        race::make_patches(&sites.state_dir)?;
    }
    let plan = plan_of_server(request, workspace, &sites.state_dir, environment)?;
    let queue = SqliteQueue::open(&sites.state_dir.join(QUEUE)).map_err(CliError::own)?;
    block_on(async {
        let clock = Stopwatch::start();
        let ledger = &opened(request, queue, &identity, &jobs, texts, &sites).await?;
        let before = ledger.before().await.map_err(CliError::own)?;
        let commits = before.iter().filter_map(|(job, outcome)| site::committed(*job, outcome)).collect();
        let (at_once, commits) = (bounds.jobs.min(jobs.len()), Mutex::new(commits));
        let left = before.iter().filter_map(|(job, outcome)| Some((*job, site::leftover(outcome)?))).collect();
        let (left, stop) = (Mutex::new(left), &StopToken::default());
        let works =
            JobFactory { sites: &sites, texts, jobs: &jobs, models, waiting, ledger, at_once, commits, left, stop };
        let max_usd = bounds.usd_micros;
        let paid = works.paid().map_err(CliError::own)?;
        let mut scheduler = BatchScheduler::new(bounds, plan::slots(&jobs), |job| match before.get(&job) {
            Some(outcome) => KnownJob::Over(Box::new(outcome.clone())),
            None => KnownJob::Paid(paid.get(&job).copied().unwrap_or(0)),
        });
        let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(CliError::own)?;
        let screen = BatchScreen::new(request.options.voice, environment, ledger.batch(), &jobs, Arc::clone(&ending));
        has_begun.set(true);
        let over = before.iter().map(|(job, outcome)| (*job, outcome.is_verified())).collect();
        let voice = ScreenSender::open(screen, over);
        let ran = drive(&mut scheduler, &jobs, &works, stop, &voice, plan.as_ref()).await;
        let summary = summary(&scheduler, &works, max_usd, milliseconds(clock.read()));
        let code = ending.code(&summary);
        if ran.is_ok() && !stop.token().is_cancelled() {
            works.forget_failed_trees();
        }
        if !matches!(*ending, BatchEnding::Eval(..))
            && let Err(fault) = kept::keep(&summary, &sites.state_dir, workspace)
        {
            tracing::warn!(why = %crate::error_chain::chain(&fault), "`fledge batch show` will not know this batch");
        }
        let was_heard = voice.close(summary, stop).await;
        tell_rest(plan.as_ref(), stop).await;
        drop(listening);
        ran.map_err(|refusal| CliError::because(refusal.reason, refusal))?;
        Ok(if was_heard? || code != 0 { code } else { Reason::Cancelled.exit_code(Some(stop.cause())) })
    })?
}

/// Prepares the messages to the server about the runs of this project. Other repositories of the
/// batch are other projects.
fn plan_of_server(
    request: &BatchRequest<'_>,
    workspace: &Path,
    state_dir: &Path,
    environment: &EnvironmentLayer,
) -> Result<Option<SyncTarget>, CliError> {
    let set = configured::load(environment, workspace).map_err(CliError::input)?;
    let Some(server) = request.options.server.server(&set) else { return Ok(None) };
    let plan = SyncTarget::new(server, environment, state_dir, &project_of(state_dir, workspace))?;
    plan.mark_runs_for_sync()?;
    Ok(Some(plan))
}

async fn drive(
    scheduler: &mut BatchScheduler,
    jobs: &[BatchJob],
    works: &JobFactory<'_>,
    stop: &StopToken,
    voice: &ScreenSender,
    plan: Option<&SyncTarget>,
) -> Result<(), JobRefusal> {
    let names: Vec<(String, String)> = jobs.iter().map(|job| (job.name.clone(), job.title.clone())).collect();
    let tell = voice.listener();
    let running = run_fleet(scheduler, &names, works, stop, &tell);
    let hint = async {
        stop.token().cancelled().await;
        if stop.cause() == StopCause::Interrupt {
            voice.stopping();
        }
        std::future::pending::<()>().await;
    };
    let mut waiting = works.waiting.clone();
    let paced = async {
        while waiting.changed().await.is_ok() {
            voice.paced(*waiting.borrow_and_update());
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        ran = running => ran,
        () = hint => Ok(()), // never ends
        () = paced => Ok(()), // never ends
        never = follow(plan) => match never {},
    }
}

/// Sends the remaining messages to the server, if there is one. Errors do not change the outcome of
/// the runs.
async fn tell_rest(plan: Option<&SyncTarget>, stop: &StopToken) {
    if let Some(plan) = plan {
        let _in_haste = hear_out(stop, plan.close()).await;
    }
}

fn summary(scheduler: &BatchScheduler, works: &JobFactory<'_>, max_usd: Option<u64>, duration_ms: u64) -> BatchSummary {
    let sites = works.sites;
    let stores: Vec<_> = (0..sites.all.len()).map(|site| sites.store(site).ok()).collect();
    let one = |(job, outcome): (usize, &FinishedJob)| {
        let planned = &works.jobs[job];
        let site = &sites.all[planned.repository];
        let report = match &outcome.end {
            JobEnding::Ran(ran) => {
                let store = stores[planned.repository].as_ref();
                store.map(|store| store.folder(&ran.run).report().display().to_string())
            }
            JobEnding::NotRun(_) => None,
        };
        let mut outcome = outcome.clone();
        if let JobEnding::Ran(ran) = &mut outcome.end {
            ran.worktree = ran.worktree.take().map(cleanup::as_it_is);
            ran.branch = ran.branch.take().filter(|_| !outcome.beaten); // the branch is removed with its candidate
        }
        let (task, folder) = (works.texts[planned.task].source.clone(), site.folder.display().to_string());
        let candidate_of = planned.race.map(|_| planned.of.clone());
        JobSummary::new(outcome, task, folder, report).among(candidate_of, planned.models.clone())
    };
    let all = (0..works.jobs.len()).filter_map(|job| Some((job, scheduler.outcome(job)?)));
    let summary = BatchSummary::new(works.ledger.batch().to_owned(), all.map(one).collect(), max_usd, duration_ms);
    summary.resumed_by(resuming(internal::command_line()))
}

/// Returns the command line with `--resume`. `None` if it is too long to print, or reads standard
/// input.
fn resuming(line: impl Iterator<Item = OsString>) -> Option<String> {
    let mut words: Vec<String> = line.skip(1).map(|word| word.into_string().ok()).collect::<Option<_>>()?;
    if words.iter().any(|word| word == "-") {
        return None;
    }
    if !words.iter().any(|word| word.starts_with("--resume")) {
        words.push("--resume".to_owned());
    }
    let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    Some(format!("fledge {}", words.join(" "))).filter(|line| line.len() <= LONGEST_COMMAND)
}

/// Returns the identity of a batch, by which it is resumed: its workspace, and the names and
/// folders of its jobs.
fn identity(workspace: &Path, jobs: &[BatchJob], sites: &BatchProjects<'_>) -> String {
    let job = |job: &BatchJob| format!("{}\t{}", job.name, sites.all[job.repository].folder.display());
    let mut jobs: Vec<String> = jobs.iter().map(job).collect();
    jobs.sort();
    format!("jobs\n{}\n{}", workspace.display(), jobs.join("\n"))
}

/// Opens the ledger of the requested batch.
async fn opened(
    request: &BatchRequest<'_>,
    queue: SqliteQueue,
    identity: &str,
    jobs: &[BatchJob],
    texts: &[TaskText],
    sites: &BatchProjects<'_>,
) -> Result<BatchStore<SqliteQueue>, CliError> {
    let same = |job: &BatchJob| {
        let params: Vec<String> = job.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = store::sha256(texts[job.task].text.as_bytes());
        let models = job.models.join("\t");
        format!("{text}\n{}\n{}\n{models}", sites.all[job.repository].folder.display(), params.join("\n"))
    };
    let named: Vec<(String, String)> = jobs.iter().map(|job| (job.name.clone(), same(job))).collect();
    let worker = uuid::Uuid::now_v7().to_string();
    let folder = sites.state_dir.join(NEWEST);
    let open = |wanted| BatchStore::open(queue.clone(), &folder, identity, &named, wanted, &worker);
    if request.arguments.resume {
        return open(BatchSelector::Newest).await.map_err(unopened);
    }
    if request.options.resume_or_start {
        match open(BatchSelector::Newest).await {
            Ok(ledger) => {
                // A batch with no work left is resumed only by its key.
                let before = ledger.before().await.map_err(unopened)?;
                let scheduler = BatchScheduler::new(BatchLimits::default(), plan::slots(jobs), |job| {
                    before.get(&job).cloned().map_or(KnownJob::Nothing, |outcome| KnownJob::Over(Box::new(outcome)))
                });
                if request.options.run_key.is_some() || scheduler.has_work() {
                    return Ok(ledger);
                }
            }
            Err(BatchStoreError::None) => {}
            Err(fault) => return Err(unopened(fault)),
        }
    }
    open(BatchSelector::New).await.map_err(unopened)
}

/// Explains why the ledger cannot be opened.
fn unopened(fault: BatchStoreError) -> CliError {
    match fault {
        BatchStoreError::None => CliError::input(fault).hint("omit --resume, or use --resume-or-start"),
        BatchStoreError::Queue(_)
        | BatchStoreError::Name(_)
        | BatchStoreError::Newest(_)
        | BatchStoreError::Held { .. } => CliError::own(fault),
    }
}

/// Checks that a batch to resume exists.
fn must_be_there(
    request: &BatchRequest<'_>,
    identity: &str,
    jobs: &[BatchJob],
    texts: &[TaskText],
    sites: &BatchProjects<'_>,
) -> Result<(), CliError> {
    let path = sites.state_dir.join(QUEUE);
    if !path.exists() {
        return Err(unopened(BatchStoreError::None));
    }
    let queue = SqliteQueue::open(&path).map_err(CliError::own)?;
    block_on(opened(request, queue, identity, jobs, texts, sites))?.map(drop)
}

/// Prints the plan, and runs nothing.
fn dry_run(
    request: &BatchRequest<'_>,
    jobs: &[BatchJob],
    sites: &BatchProjects<'_>,
    texts: &[TaskText],
    bounds: &BatchLimits,
    notes: &[String],
) -> Result<u8, CliError> {
    let OutputArguments { json, .. } = request.options.voice;
    if json {
        let folder = |job: &BatchJob| sites.all[job.repository].folder.display().to_string();
        let mut plan = page::plan_data(jobs, texts, bounds, folder);
        plan["warnings"] = notes.into();
        print_json(&plan.to_string()).map_err(no_output)?;
    } else {
        let notes: String = notes.iter().map(|note| format!("warning: {note}\n")).collect();
        let text = page::plan(jobs, texts, bounds) + &notes;
        print_data(paint::harmless(&text).trim_end()).map_err(no_output)?;
    }
    Ok(0)
}
