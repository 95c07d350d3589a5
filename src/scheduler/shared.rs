//! Scheduler of a project: all jobs with their current state, the loops that run them, and requests
//! to run one.

use super::WallClock;
use super::data::{JobState, ShownJob};
use super::job::{JobError, JobKind, ScheduledJob};
use super::job_loop::JobLoop;
use super::monitors::HealthChange;
use super::scheduler_store::SchedulerStore;
use super::tasks::{self, FoundTasks, TaskFinding, TaskSubmitter, TasksFolder, folder_changed};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The time between two scans for scheduled tasks when no change was noticed.
const SCAN: Duration = Duration::from_secs(60);

/// A change that the scheduler reports.
#[derive(Debug, Clone, PartialEq)]
pub enum SchedulerUpdate {
    /// A job began or ended.
    Job {
        /// The name of the job.
        name: String,
        /// `running`, or how it ended.
        state: String,
    },
    /// The health of a monitor changed.
    Monitor(HealthChange),
}

/// Receives the reports of the scheduler.
pub(super) type SchedulerListener = Arc<dyn Fn(SchedulerUpdate) + Send + Sync>;

/// The parts that a scheduler needs.
pub struct SchedulerSettings {
    /// The store of the project.
    pub ledger: SchedulerStore,
    /// The clock.
    pub clock: Arc<dyn WallClock>,
    /// The built-in jobs.
    pub builtin: Vec<Arc<dyn ScheduledJob>>,
    /// The folder whose tasks may have schedules.
    pub workspace: PathBuf,
    /// Starts runs of tasks. Without it, the scheduler does not look for scheduled tasks.
    pub submit: Option<Arc<dyn TaskSubmitter>>,
    /// Receives reports of what happens.
    pub tell: SchedulerListener,
}

impl fmt::Debug for SchedulerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// The scheduler of a project. Clones share its state.
#[derive(Debug, Clone)]
pub struct Scheduler {
    shared: Arc<SchedulerShared>,
    submit: Option<Arc<dyn TaskSubmitter>>,
    workspace: PathBuf,
}

/// State shared by the loops of all jobs.
pub(super) struct SchedulerShared {
    pub(super) ledger: SchedulerStore,
    pub(super) clock: Arc<dyn WallClock>,
    pub(super) stop: CancellationToken,
    tell: SchedulerListener,
    entries: Mutex<BTreeMap<String, Entry>>,
    /// The time of the newest pass of the main loop.
    beat: Mutex<Option<Timestamp>>,
}

/// A job and its state.
struct Entry {
    /// `None` if the task cannot be run as written.
    job: Option<Arc<dyn ScheduledJob>>,
    kind: JobKind,
    state: JobState,
    next: Option<Timestamp>,
    fault: Option<String>,
    is_asked: bool,
    is_tended: bool,
    /// True if its file is gone. The entry is removed when its loop ends.
    is_dismissed: bool,
    poke: Arc<Notify>,
}

impl fmt::Debug for SchedulerShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Scheduler {
    /// Creates a scheduler that does nothing until [`Scheduler::run`].
    pub fn new(terms: SchedulerSettings) -> Self {
        let SchedulerSettings { ledger, clock, builtin, workspace, submit, tell } = terms;
        let entries = builtin.into_iter().map(|job| (job.name().to_owned(), Entry::new(job))).collect();
        let (stop, beat) = (CancellationToken::new(), Mutex::default());
        let shared = SchedulerShared { ledger, clock, stop, tell, entries: Mutex::new(entries), beat };
        Self { shared: Arc::new(shared), submit, workspace }
    }

    /// Runs all jobs until `stop`. Jobs running at that time get `grace` to end; unfinished runs
    /// are left to the next server.
    pub async fn run(&self, stop: &CancellationToken, grace: Duration) {
        let mut tenders = JoinSet::new();
        let mut folder = self.submit.as_ref().map(|_| TasksFolder::new(&self.workspace));
        loop {
            self.beat();
            if let Some(folder) = &mut folder {
                folder.listen().await; // before the scan, so that no change after it is missed
            }
            self.look().await;
            for name in self.shared.untended() {
                tenders.spawn(JobLoop::new(Arc::clone(&self.shared), name).tend());
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_over) = tenders.join_next() => {}
                () = folder_changed(folder.as_mut()) => {}
                () = sleep(SCAN) => {}
            }
        }
        self.shared.stop.cancel();
        let all = async { while tenders.join_next().await.is_some() {} };
        if timeout(grace, all).await.is_err() {
            tracing::warn!("some jobs did not end within the grace period");
        }
        tenders.shutdown().await;
    }

    /// Looks for tasks that have a schedule now. A server does this before its first answer. Only
    /// logs a failure.
    pub async fn look(&self) {
        if let Err(error) = self.scan().await {
            tracing::warn!("cannot look for scheduled tasks: {error}");
        }
    }

    async fn scan(&self) -> Result<(), JobError> {
        let Some(submit) = self.submit.clone() else { return Ok(()) };
        let (workspace, ledger) = (self.workspace.clone(), self.shared.ledger.clone());
        let found = tokio::task::spawn_blocking(move || tasks::look_for(&workspace)).await;
        let FoundTasks { all, unread, is_whole } = found.map_err(|error| JobError::retryable(&error))?;
        let mut kept = unread; // the state of these files is unknown
        for (name, finding) in all {
            kept.push(name.clone());
            let own = self.shared.entries().get(&name).is_some_and(|entry| entry.kind == JobKind::Builtin);
            match finding {
                _ if own => self.broken(&name, &format!("`{name}` is a built-in job: rename the file"), false).await?,
                TaskFinding::Broken(fault) => self.broken(&name, &fault, true).await?,
                TaskFinding::Scheduled(task) => {
                    let now = self.shared.clock.now();
                    let monitor = task.monitor_row(now);
                    let settled = ledger.with(move |store| tasks::settle_monitor(store, monitor.as_ref(), &name)).await;
                    if let Err(error) = settled {
                        tracing::warn!("cannot store the monitor of {}: {error}", task.path);
                    }
                    let job = Arc::new(tasks::TaskJob::new(
                        *task,
                        ledger.clone(),
                        Arc::clone(&submit),
                        Arc::clone(&self.shared.clock),
                        self.shared.tell.clone(),
                    ));
                    self.shared.adopt(job);
                }
            }
        }
        if !is_whole {
            tracing::warn!("cannot read all of {}/: the scheduled jobs stay unchanged", tasks::FOLDER);
            return Ok(());
        }
        self.shared.dismiss(&kept);
        // Uses the stored jobs, so that tasks whose files vanished while no server ran are dropped
        // too.
        let now_ms = self.shared.clock.now().as_millisecond();
        ledger.with(move |store| store.drop_jobs_but(JobKind::Task.word(), &kept, now_ms)).await
    }

    /// Reports once that a task cannot be run as written.
    async fn broken(&self, name: &str, fault: &str, shows: bool) -> Result<(), JobError> {
        if shows && !self.shared.disable(name, fault) {
            return Ok(());
        }
        tracing::warn!("cannot run the scheduled task `{name}`: {fault}");
        if shows {
            let (name, fault, now) = (name.to_owned(), fault.to_owned(), self.shared.clock.now().as_millisecond());
            let message = name.clone();
            let write = move |store: &crate::store::Store| {
                let Some(no) = store.begin_job(&name, None, now)? else { return Ok(()) };
                let end =
                    crate::store::StoredJobEnd { ended_ms: now, state: "failed", tries: 0, message: Some(&fault) };
                store.end_job(no, &end)
            };
            self.shared.ledger.with(write).await?;
            self.shared.publish(SchedulerUpdate::Job { name: message, state: "failed".into() });
        }
        Ok(())
    }

    /// Returns all jobs, sorted by name.
    pub fn jobs(&self) -> Vec<ShownJob> {
        let entries = self.shared.entries();
        entries.iter().filter(|(_, entry)| !entry.is_dismissed).map(|(name, entry)| entry.shown(name)).collect()
    }

    /// Asks for a run of a job as soon as possible. `None` if no such job exists; `Some(false)`
    /// if it is running, already requested, or cannot be run.
    pub fn ask(&self, name: &str) -> Option<bool> {
        let mut entries = self.shared.entries();
        let entry = entries.get_mut(name)?;
        let can = entry.state == JobState::Idle && entry.job.is_some() && !entry.is_asked;
        if can {
            entry.is_asked = true;
            entry.poke.notify_one();
        }
        Some(can)
    }

    /// Returns the time of the newest pass of the main loop.
    pub fn beat_at(&self) -> Option<Timestamp> {
        *self.shared.beat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beat(&self) {
        *self.shared.beat.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.shared.clock.now());
    }
}

impl Entry {
    fn new(job: Arc<dyn ScheduledJob>) -> Self {
        let kind = job.kind();
        let poke = Arc::new(Notify::new());
        Self {
            job: Some(job),
            kind,
            state: JobState::Idle,
            next: None,
            fault: None,
            is_asked: false,
            is_tended: false,
            is_dismissed: false,
            poke,
        }
    }

    fn shown(&self, name: &str) -> ShownJob {
        let schedule = self.job.as_ref().map(|job| job.schedule());
        ShownJob {
            name: name.to_owned(),
            kind: self.kind,
            schedule: schedule.map(|schedule| (schedule.text().to_owned(), schedule.zone().to_owned())),
            next: self.next,
            state: self.state,
            monitor: self.job.as_ref().and_then(|job| job.monitor()).map(str::to_owned),
            fault: self.fault.clone(),
        }
    }
}

impl SchedulerShared {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn publish(&self, tidings: SchedulerUpdate) {
        (self.tell)(tidings);
    }

    pub(super) fn job(&self, name: &str) -> Option<Arc<dyn ScheduledJob>> {
        self.entries().get(name).and_then(|entry| entry.job.clone())
    }

    pub(super) fn poked(&self, name: &str) -> Arc<Notify> {
        self.entries().get(name).map(|entry| Arc::clone(&entry.poke)).unwrap_or_default()
    }

    pub(super) fn take_asked(&self, name: &str) -> bool {
        self.entries().get_mut(name).is_some_and(|entry| std::mem::take(&mut entry.is_asked))
    }

    pub(super) fn is_in(&self, name: &str, state: JobState) {
        if let Some(entry) = self.entries().get_mut(name) {
            entry.state = if entry.job.is_none() { JobState::Disabled } else { state };
        }
    }

    pub(super) fn expects(&self, name: &str, next: Option<Timestamp>) {
        if let Some(entry) = self.entries().get_mut(name) {
            entry.next = next;
        }
    }

    /// Records that the loop of a job ended.
    pub(super) fn gone(&self, name: &str) {
        let mut entries = self.entries();
        if let Some(entry) = entries.get_mut(name) {
            entry.is_tended = false;
            if entry.is_dismissed {
                entries.remove(name);
            }
        }
    }

    /// Returns the jobs without a loop, and marks them as having one: the caller starts it.
    fn untended(&self) -> Vec<String> {
        let mut entries = self.entries();
        let untended = entries.iter_mut().filter(|(_, entry)| entry.job.is_some() && !entry.is_tended);
        untended
            .map(|(name, entry)| {
                entry.is_tended = true;
                name.clone()
            })
            .collect()
    }

    /// Adds a scheduled task, or replaces its earlier version.
    fn adopt(&self, job: Arc<dyn ScheduledJob>) {
        let mut entries = self.entries();
        let name = job.name().to_owned();
        match entries.get_mut(&name) {
            None => {
                entries.insert(name, Entry::new(job));
            }
            Some(entry) => {
                entry.is_dismissed = false;
                let is_same = entry.job.as_ref().is_some_and(|was| was.schedule() == job.schedule());
                entry.fault = None;
                if entry.state == JobState::Disabled {
                    entry.state = JobState::Idle;
                }
                entry.job = Some(job);
                if !is_same {
                    entry.poke.notify_one();
                }
            }
        }
    }

    /// Disables a task that cannot be run. Returns true if the fault is new.
    fn disable(&self, name: &str, fault: &str) -> bool {
        let mut entries = self.entries();
        let new = Entry {
            job: None,
            kind: JobKind::Task,
            state: JobState::Disabled,
            next: None,
            fault: None,
            is_asked: false,
            is_tended: false,
            is_dismissed: false,
            poke: Arc::default(),
        };
        let entry = entries.entry(name.to_owned()).or_insert(new);
        let is_news = entry.fault.as_deref() != Some(fault);
        (entry.job, entry.next, entry.fault) = (None, None, Some(fault.to_owned()));
        entry.is_dismissed = false;
        if entry.state == JobState::Idle {
            entry.state = JobState::Disabled;
        }
        entry.poke.notify_one();
        is_news
    }

    /// Removes the tasks that are not in `kept`. A task with a loop stays until that loop ends. Its
    /// file may be back by then, and a second loop must not start meanwhile.
    fn dismiss(&self, kept: &[String]) {
        self.entries().retain(|name, entry| {
            if entry.kind != JobKind::Task || entry.is_dismissed || kept.contains(name) {
                return true;
            }
            (entry.job, entry.next, entry.is_dismissed) = (None, None, true);
            entry.poke.notify_one();
            entry.is_tended
        });
    }
}
