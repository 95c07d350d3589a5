//! `fledge run` for many tasks: files, folders, globs or a batch file in; a table, reports and the gravest exit code out.

mod arguments;
mod clearing;
mod ending;
mod eval;
mod fitting;
mod page;
mod race;
mod row;
mod screen;
mod site;
mod sources;
mod voice;

pub(super) use arguments::BatchArguments;
#[cfg(feature = "serve")]
pub(super) use arguments::cores;
pub(super) use eval::{EvalArguments, run as evaluate};

use super::configured;
use super::drive::{VoiceArguments, follow};
use super::failure::Failure;
use super::options::RunOptions;
use super::paint;
use super::sync::Plan;
use super::{block_on, hear_out, no_output, print_data, print_json, signals};
use crate::batch::plan::{self, BatchFile, Job, Order, RepositoryEntry, TaskText};
use crate::batch::{
    Bounds, Course, End, JobSummary, Ledger, LedgerFault, Outcome, Refusal, Summary, Wanted, run as run_fleet,
};
use crate::config::Environment;
use crate::driver::{Stop, project_of};
use crate::duration::milliseconds;
use crate::limits::MAX_SOURCE;
use crate::process::Stopwatch;
use crate::store::{self, SqliteQueue};
use crate::task::{self, ParamValues};
use crate::verdict::{Reason, StopCause};
use anyhow::{Context, anyhow};
use ending::Ending;
use eval::EvalTerms;
use screen::Screen;
use site::{Sites, Works};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use voice::Voice;

/// The queue of all batches, in the state folder.
const QUEUE: &str = "queue.db";

/// Where it is kept which batch of the same tasks is the newest.
const NEWEST: &str = "batches";

/// What was asked for.
#[derive(Debug)]
pub(super) struct Request<'r> {
    /// Files, folders, globs, or one batch file.
    pub(super) tasks: &'r [String],
    /// Values for parameters.
    pub(super) params: ParamValues,
    /// Whether no gate is run.
    pub(super) no_verify: bool,
    pub(super) options: &'r RunOptions,
    pub(super) arguments: &'r BatchArguments,
    /// What is measured, where that is what it is for.
    pub(super) eval: Option<&'r EvalTerms>,
}

impl Request<'_> {
    /// Whether these are the candidates of the one task that is named.
    fn is_one_race(&self, jobs: &[Job]) -> bool {
        let is_one = matches!(self.tasks, [task] if !sources::is_many(task));
        is_one && self.eval.is_none() && jobs.iter().all(|job| job.race == Some(0))
    }

    /// The jobs, as often as they are measured.
    fn repeated(&self, jobs: Vec<Job>) -> Result<Vec<Job>, Failure> {
        let Some(EvalTerms { models, repeat, .. }) = self.eval else { return Ok(jobs) };
        let wanted = usize::try_from(*repeat).unwrap_or(usize::MAX).saturating_mul(jobs.len().max(1));
        plan::few_enough(wanted.saturating_mul(models.len().max(1))).map_err(Failure::input)?;
        Ok(plan::repeated(&jobs, models, *repeat))
    }
}

/// Whether these arguments mean many tasks.
pub(super) fn is_meant(tasks: &[String], arguments: &BatchArguments) -> bool {
    tasks.len() > 1 || arguments.is_any() || tasks.iter().any(|task| sources::is_many(task) || has_candidates(task))
}

/// Whether a task's file says that several runs of it race.
fn has_candidates(task: &str) -> bool {
    store::read_text(Path::new(task), MAX_SOURCE).ok().flatten().is_some_and(|text| task::races(&text))
}

/// What is going to be done.
struct Planned {
    file: BatchFile,
    order: Order,
    folders: Vec<(PathBuf, Option<String>)>,
}

/// Runs the batch; gives the exit code.
///
/// # Errors
/// Whatever was wrong before the first run began: then none has.
pub(super) fn run(request: &Request<'_>, environment: &Environment) -> Result<u8, Failure> {
    let workspace = request.options.workspace()?;
    let has_begun = Cell::new(false);
    let done = begin(request, &workspace, environment, &has_begun);
    if let (Err(failure), false, false) = (&done, has_begun.get(), request.options.dry_run)
        && let Err(unwritten) = request.options.results.sound_places(&workspace, environment).write_unbegun(failure)
    {
        unwritten.show(); // the exit code is the first one's
    }
    done
}

fn begin(
    request: &Request<'_>,
    workspace: &Path,
    environment: &Environment,
    has_begun: &Cell<bool>,
) -> Result<u8, Failure> {
    let Planned { file, order, folders } = read(request, workspace)?;
    let mut bounds = request.arguments.bounds(&file, request.options.max_usd);
    let sites = Sites::open(request, &file, folders, environment)?;
    let jobs = plan::plan(&order, |text, params, site| sites.task(text, params, site)).map_err(Failure::input)?;
    let jobs = request.repeated(jobs)?;
    let is_race = request.is_one_race(&jobs);
    request.options.must_be_for_many(is_race)?;
    if is_race && !request.arguments.has_jobs() {
        bounds.jobs = bounds.jobs.max(jobs.len()); // they mostly wait for their models
    }
    if let Some((one, other)) = plan::crowded(&jobs, bounds.jobs) {
        let error = anyhow!("{} and {} would work in one checkout at the same time", one.name, other.name);
        return Err(Failure::input(error).hint("leave `isolation: in-place` out, or run them one by one: --jobs 1"));
    }
    let texts = &order.tasks;
    if request.options.dry_run {
        return dry_run(request, &jobs, &sites, texts, &bounds);
    }
    let ending = Arc::new(Ending::find(request, &jobs, workspace, &sites.state_dir, environment)?);
    if request.options.patch().is_some() {
        race::make_patches(&sites.state_dir)?;
    }
    let models = sites.connect(&jobs, texts)?;
    let plan = plan_of_server(request, workspace, &sites.state_dir, environment)?;
    let queue = SqliteQueue::open(&sites.state_dir.join(QUEUE)).map_err(Failure::own)?;
    let identity = match &request.options.run_key {
        Some(key) => format!("key\n{}\n{key}", workspace.display()),
        None => identity(workspace, &jobs, &sites),
    };
    block_on(async {
        let clock = Stopwatch::start();
        let ledger = opened(request, queue, &identity, &jobs, texts, &sites).await?;
        let before = ledger.before().await.map_err(Failure::own)?;
        let commits = before.iter().filter_map(|(job, outcome)| site::committed(*job, outcome)).collect();
        let (at_once, commits) = (bounds.jobs.min(jobs.len()), Mutex::new(commits));
        let left = before.iter().filter_map(|(job, outcome)| Some((*job, site::leftover(outcome)?))).collect();
        let (left, stop) = (Mutex::new(left), &Stop::default());
        let works = Works { sites: &sites, texts, jobs: &jobs, models, ledger: &ledger, at_once, commits, left, stop };
        let max_usd = bounds.usd_micros;
        let mut course = Course::new(bounds, plan::seats(&jobs), |job| before.get(&job).cloned());
        let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(Failure::own)?;
        let screen = Screen::new(request.options.voice, environment, ledger.batch(), &jobs, Arc::clone(&ending));
        has_begun.set(true);
        let voice = Voice::open(screen, before.len());
        let ran = tokio::select! {
            biased;
            ran = drive(&mut course, &jobs, &works, stop, &voice) => ran,
            never = follow(plan.as_ref()) => match never {},
        };
        let summary = summary(&course, &works, max_usd, milliseconds(clock.read()));
        let code = ending.code(&summary);
        let was_heard = voice.close(summary, stop).await;
        if let Some(plan) = &plan {
            let _the_runs_are_what_they_are = hear_out(stop, plan.close()).await;
        }
        drop(listening);
        ran.map_err(|refusal| Failure::because(refusal.reason, refusal))?;
        Ok(if was_heard? || code != 0 { code } else { Reason::Cancelled.exit_code(Some(stop.cause())) })
    })?
}

/// The server that is told of the runs of this project; those of other repositories are other projects.
fn plan_of_server(
    request: &Request<'_>,
    workspace: &Path,
    state_dir: &Path,
    environment: &Environment,
) -> Result<Option<Plan>, Failure> {
    let set = configured::load(environment, workspace).map_err(Failure::input)?;
    let Some(server) = request.options.server.server(&set) else { return Ok(None) };
    let plan = Plan::new(server, environment, state_dir, &project_of(state_dir, workspace))?;
    plan.begin()?;
    Ok(Some(plan))
}

async fn drive(
    course: &mut Course,
    jobs: &[Job],
    works: &Works<'_>,
    stop: &Stop,
    voice: &Voice,
) -> Result<(), Refusal> {
    let names: Vec<(String, String)> = jobs.iter().map(|job| (job.name.clone(), job.title.clone())).collect();
    let tell = voice.tell();
    let running = run_fleet(course, &names, works, stop, &tell);
    let hint = async {
        stop.token().cancelled().await;
        if stop.cause() == StopCause::Interrupt {
            voice.stopping();
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        ran = running => ran,
        () = hint => Ok(()), // it never ends
    }
}

fn summary(course: &Course, works: &Works<'_>, max_usd: Option<u64>, duration_ms: u64) -> Summary {
    let sites = works.sites;
    let stores: Vec<_> = (0..sites.all.len()).map(|site| sites.store(site).ok()).collect();
    let one = |(job, outcome): (usize, &Outcome)| {
        let planned = &works.jobs[job];
        let site = &sites.all[planned.repository];
        let report = match &outcome.end {
            End::Ran(ran) => {
                let store = stores[planned.repository].as_ref();
                store.map(|store| store.folder(&ran.run).report().display().to_string())
            }
            End::NotRun(_) => None,
        };
        let mut outcome = outcome.clone();
        if let End::Ran(ran) = &mut outcome.end {
            ran.worktree = ran.worktree.take().map(clearing::as_it_is);
        }
        let (task, folder) = (works.texts[planned.task].source.clone(), site.folder.display().to_string());
        let candidate_of = planned.race.map(|_| planned.of.clone());
        JobSummary::new(outcome, task, folder, report).among(candidate_of, planned.models.clone())
    };
    let all = (0..works.jobs.len()).filter_map(|job| Some((job, course.outcome(job)?)));
    Summary::new(works.ledger.batch().to_owned(), all.map(one).collect(), max_usd, duration_ms)
}

/// What the arguments mean: a batch file, or the files that they name.
fn read(request: &Request<'_>, workspace: &Path) -> Result<Planned, Failure> {
    let wrong = |lines: Vec<String>| Failure::input(anyhow!(lines.join("\n")));
    let params = request.params.clone();
    if let Some(source) = request.tasks.iter().find(|task| sources::is_batch_file(task)) {
        if request.tasks.len() > 1 {
            let error = anyhow!("{source} is a batch file, and there is more beside it");
            return Err(Failure::input(error).hint("name all tasks in the file, or run it alone"));
        }
        let text = store::read_text(Path::new(source), MAX_SOURCE).map_err(Failure::input)?;
        let text = text.ok_or_else(|| Failure::input(anyhow!("there is no batch file {source}")))?;
        let file = plan::parse(&text, source).map_err(Failure::input)?;
        let below = Path::new(source).parent().unwrap_or(Path::new("")).to_owned();
        let (mut found, mut faults) = (Vec::new(), Vec::new());
        for (place, pattern) in &file.tasks {
            match sources::files(pattern, &below) {
                Ok(files) => found.extend(files),
                Err(why) => faults.push(format!("{source}:{place}: {why}")),
            }
        }
        let mut folders = Vec::new();
        for RepositoryEntry { place, path, base } in &file.repositories {
            match site::folder(&below.join(path)) {
                Ok(folder) => folders.push((folder, base.clone())),
                Err(why) => faults.push(format!("{source}:{place}: {why}")),
            }
        }
        if !faults.is_empty() {
            return Err(wrong(faults));
        }
        let paths: Vec<&Path> = folders.iter().map(|(folder, _)| folder.as_path()).collect();
        let repositories = plan::names_of_folders(&paths);
        let order = Order {
            tasks: sources::texts(found)?,
            matrix: file.matrix.clone(),
            file: source.clone(),
            repositories,
            params,
        };
        let folders = if folders.is_empty() { vec![(workspace.to_owned(), None)] } else { folders };
        return Ok(Planned { file, order, folders });
    }
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for task in request.tasks {
        match sources::files(task, Path::new("")) {
            Ok(files) => found.extend(files),
            Err(_) if task == "-" => {
                faults.push("-: standard input is one task for one run, and more are asked for".to_owned())
            }
            Err(why) => faults.push(why),
        }
    }
    if !faults.is_empty() {
        return Err(wrong(faults));
    }
    let order = Order { tasks: sources::texts(found)?, params, ..Order::default() };
    Ok(Planned { file: BatchFile::default(), order, folders: vec![(workspace.to_owned(), None)] })
}

/// What makes a batch the same one again: where it is, and its jobs by their names.
fn identity(workspace: &Path, jobs: &[Job], sites: &Sites<'_>) -> String {
    let job = |job: &Job| format!("{}\t{}", job.name, sites.all[job.repository].folder.display());
    let mut jobs: Vec<String> = jobs.iter().map(job).collect();
    jobs.sort();
    format!("jobs\n{}\n{}", workspace.display(), jobs.join("\n"))
}

/// Opens the ledger of the batch that is meant.
async fn opened(
    request: &Request<'_>,
    queue: SqliteQueue,
    identity: &str,
    jobs: &[Job],
    texts: &[TaskText],
    sites: &Sites<'_>,
) -> Result<Ledger<SqliteQueue>, Failure> {
    let same = |job: &Job| {
        let params: Vec<String> = job.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = store::sha256(texts[job.task].text.as_bytes());
        let models = job.models.join("\t");
        format!("{text}\n{}\n{}\n{models}", sites.all[job.repository].folder.display(), params.join("\n"))
    };
    let named: Vec<(String, String)> = jobs.iter().map(|job| (job.name.clone(), same(job))).collect();
    let worker = uuid::Uuid::now_v7().to_string();
    let folder = sites.state_dir.join(NEWEST);
    let open = |wanted| Ledger::open(queue.clone(), &folder, identity, &named, wanted, &worker);
    let failed = |fault: LedgerFault| match fault {
        LedgerFault::None => Failure::input(fault).hint("leave --resume out, or use --resume-or-start"),
        LedgerFault::Queue(_) | LedgerFault::Name(_) | LedgerFault::Newest(_) | LedgerFault::Held { .. } => {
            Failure::own(fault)
        }
    };
    if request.arguments.resume {
        return open(Wanted::Newest).await.map_err(failed);
    }
    if request.options.resume_or_start {
        match open(Wanted::Newest).await {
            Ok(ledger) => {
                // A batch of which nothing is left to do is gone on with only by its own name.
                let before = ledger.before().await.map_err(failed)?;
                let course = Course::new(Bounds::default(), plan::seats(jobs), |job| before.get(&job).cloned());
                if request.options.run_key.is_some() || course.has_work() {
                    return Ok(ledger);
                }
            }
            Err(LedgerFault::None) => {}
            Err(fault) => return Err(failed(fault)),
        }
    }
    open(Wanted::New).await.map_err(failed)
}

/// Prints the plan, and runs nothing.
fn dry_run(
    request: &Request<'_>,
    jobs: &[Job],
    sites: &Sites<'_>,
    texts: &[TaskText],
    bounds: &Bounds,
) -> Result<u8, Failure> {
    let VoiceArguments { json, .. } = request.options.voice;
    if json {
        let plan = page::plan_data(jobs, texts, bounds, |job| sites.all[job.repository].folder.display().to_string());
        print_json(&plan.to_string()).map_err(no_output)?;
    } else {
        let text = page::plan(jobs, texts, bounds);
        print_data(paint::harmless(&text).trim_end()).map_err(no_output)?;
    }
    Ok(0)
}
