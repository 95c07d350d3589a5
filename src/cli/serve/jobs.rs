//! The built-in jobs of a server.

use super::super::configured;
use super::super::failure::CliError;
use super::super::left_worktrees::{Cleaned, WorktreesContext, clean_one};
use super::super::runtime::block_on;
use super::super::sync_target::SyncTarget;
use super::ServedProject;
use super::source::ProjectTasks;
use crate::config::EnvironmentLayer;
use crate::driver::{forget_beside, forget_removed, project_of};
use crate::http::HttpSettings;
use crate::schedule::ScheduleError;
use crate::scheduler::{
    BuiltinJob, JobContext, JobError, ScheduledJob, Scheduler, SchedulerSettings, SchedulerStore, SchedulerUpdate,
    SystemClock, TaskSubmitter, WallClock, deliveries, memory_expiry, missed_runs,
};
use crate::serve::AppState;
use crate::store::{Retention, Store, project_dir};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The interval between two checks for keys that expire, in minutes.
const KEYS: u32 = 5;

/// The parts of a server that its jobs use, beside its shared state.
pub(super) struct JobResources {
    /// Runs the scheduled tasks.
    pub(super) submit: Arc<dyn TaskSubmitter>,
    /// Holds the models of all runs.
    pub(super) tasks: Arc<ProjectTasks>,
    /// Another server that receives news of the runs, if there is one.
    pub(super) plan: Option<Arc<SyncTarget>>,
}

/// The age after which no process is about to use a worktree.
const SETTLED: Duration = Duration::from_secs(60 * 60);

/// Creates the scheduler of a server.
///
/// # Errors
/// When the ledger of the jobs cannot be opened, or a schedule is invalid.
pub(super) fn scheduler(
    app_state: &Arc<AppState>,
    site: &ServedProject,
    environment: &EnvironmentLayer,
    resources: JobResources,
) -> Result<Scheduler, CliError> {
    let JobResources { submit, tasks, plan } = resources;
    let ledger = SchedulerStore::open(&site.state_dir, &site.project).map_err(CliError::own)?;
    let clock: Arc<dyn WallClock> = Arc::new(SystemClock);
    let told: Weak<AppState> = Arc::downgrade(app_state);
    let tell: Arc<dyn Fn(SchedulerUpdate) + Send + Sync> = Arc::new(move |update| {
        if let Some(app_state) = told.upgrade() {
            app_state.publish(update);
        }
    });
    let (dir, env) = (site.workspace.clone(), environment.hand_env().into_iter().collect());
    let own = || -> Result<Vec<Arc<dyn ScheduledJob>>, ScheduleError> {
        Ok([
            memory_expiry(&ledger, &clock)?,
            missed_runs(&ledger, &clock, Arc::clone(&tell))?,
            deliveries(&ledger, &clock, dir, env, HttpSettings::default())?,
            worktrees_cleanup(site, environment)?,
            journal_pruning(site, environment)?,
            sweep(60, "session-cleanup", app_state, &clock, |app_state, now| app_state.entrance().sweep_sessions(now))?,
            sweep(15, "link-cleanup", app_state, &clock, |app_state, now| app_state.entrance().sweep_links(now))?,
            credentials_refresh(&tasks)?,
        ]
        .into_iter()
        .chain(plan.as_ref().map(pending_sync).transpose()?)
        .collect())
    };
    let builtin = own().map_err(CliError::own)?;
    let workspace = site.workspace.clone();
    Ok(Scheduler::new(SchedulerSettings { ledger, clock, builtin, workspace, submit: Some(submit), tell }))
}

fn worktrees_cleanup(
    site: &ServedProject,
    environment: &EnvironmentLayer,
) -> Result<Arc<dyn ScheduledJob>, ScheduleError> {
    let (workspace, environment) = (site.workspace.clone(), environment.clone());
    BuiltinJob::every(30, "worktrees-cleanup", move |context: JobContext| {
        let (workspace, environment) = (workspace.clone(), environment.clone());
        apart(move || block_on(tidy_worktrees(&workspace, &environment, context.stop)))
    })
}

fn journal_pruning(
    site: &ServedProject,
    environment: &EnvironmentLayer,
) -> Result<Arc<dyn ScheduledJob>, ScheduleError> {
    let (workspace, environment) = (site.workspace.clone(), environment.clone());
    BuiltinJob::every(24 * 60, "journal-pruning", move |_| {
        let (workspace, environment) = (workspace.clone(), environment.clone());
        apart(move || block_on(prune_runs(&workspace, &environment)))
    })
}

/// Removes worktrees without work that are at least an hour old. Returns their number.
///
/// # Errors
/// When the worktrees cannot be read.
async fn tidy_worktrees(
    workspace: &Path,
    environment: &EnvironmentLayer,
    stop: CancellationToken,
) -> Result<usize, CliError> {
    let worktrees = WorktreesContext::open(workspace, environment, stop)?;
    let mut gone = 0;
    for tree in worktrees.trees().await? {
        match clean_one(&worktrees, Some(SETTLED), false, &tree, false).await {
            Cleaned::Removed(_) => gone += 1,
            Cleaned::Stays(_) => {}
            Cleaned::Failed(why) => {
                tracing::warn!("the worktree {} could not be removed: {why}", tree.folder.display())
            }
        }
    }
    Ok(gone)
}

/// Removes runs by the default limits. Returns their number.
///
/// # Errors
/// When the store cannot be read or written.
async fn prune_runs(workspace: &Path, environment: &EnvironmentLayer) -> Result<usize, CliError> {
    let state = environment.state_dir().map_err(CliError::input)?;
    configured::restore_configuration(environment, workspace);
    let project = project_of(&state, workspace);
    let Some(store) = Store::existing(&state, &project).map_err(CliError::own)? else { return Ok(0) };
    let keep = Retention::default();
    let pruned = store.prune(&keep, jiff::Timestamp::now().as_millisecond()).map_err(CliError::own)?;
    forget_beside(&project_dir(&state, &project), &keep);
    let env: Vec<(String, String)> = environment.hand_env().into_iter().collect();
    forget_removed((&state, &project), &store, &env).await.map_err(CliError::own)?;
    Ok(pruned.runs.len())
}

/// Renews keys from programs if they expire before the next check, so that no run waits for them.
fn credentials_refresh(tasks: &Arc<ProjectTasks>) -> Result<Arc<dyn ScheduledJob>, ScheduleError> {
    let tasks = Arc::clone(tasks);
    BuiltinJob::every(KEYS, "credentials-refresh", move |_| {
        let tasks = Arc::clone(&tasks);
        async move { tasks.renew_keys(Duration::from_secs(u64::from(KEYS) * 60)).await.map_err(JobError::Retryable) }
    })
}

fn pending_sync(plan: &Arc<SyncTarget>) -> Result<Arc<dyn ScheduledJob>, ScheduleError> {
    let sending = Arc::new((Arc::clone(plan), Mutex::new(None)));
    BuiltinJob::every(1, "sync", move |context: JobContext| {
        let sending = Arc::clone(&sending);
        async move {
            let (plan, kept) = &*sending;
            let mut kept = kept.lock().await;
            tokio::select! {
                biased;
                () = context.stop.cancelled() => Err(JobError::Resting), // the rest is sent once all runs have stopped
                told = plan.send(&mut kept) => told.map_err(JobError::Retryable),
            }
        }
    })
}

fn sweep(
    minutes: u32,
    name: &'static str,
    app_state: &Arc<AppState>,
    clock: &Arc<dyn WallClock>,
    work: fn(&AppState, jiff::Timestamp) -> usize,
) -> Result<Arc<dyn ScheduledJob>, ScheduleError> {
    let (app_state, clock) = (Arc::downgrade(app_state), Arc::clone(clock));
    BuiltinJob::every(minutes, name, move |_| {
        let (app_state, now) = (app_state.clone(), clock.now());
        apart(move || Ok(Ok(app_state.upgrade().map_or(0, |app_state| work(&app_state, now)))))
    })
}

/// Runs work on a thread that may block, so that it delays no request.
async fn apart(
    work: impl FnOnce() -> Result<Result<usize, CliError>, CliError> + Send + 'static,
) -> Result<(), JobError> {
    let done = tokio::task::spawn_blocking(move || match work() {
        Ok(Ok(count)) => Ok(count),
        Ok(Err(failure)) | Err(failure) => Err(failure.message()),
    });
    match done.await {
        Ok(Ok(_count)) => Ok(()),
        Ok(Err(why)) => Err(JobError::Retryable(why)),
        Err(_panicked) => Err(JobError::Final("it panicked".into())),
    }
}
