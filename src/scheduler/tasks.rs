//! Tasks with a schedule: the scan of the project's task folder, and the job that runs a scheduled
//! task.

use super::WallClock;
use super::job::{JobContext, JobError, JobKind, ScheduledJob};
use super::monitors::{CheckIn, MonitorError, check_in, row_of};
use super::scheduler_store::SchedulerStore;
use super::shared::{SchedulerListener, SchedulerUpdate};
#[cfg(feature = "cli")]
use crate::file_watch::ProjectWatch;
use crate::id::RunId;
use crate::limits::MAX_SOURCE;
use crate::monitor::{LONGEST_RUN, MARGINS, Monitor, Slug, Source, Status, USUAL_MARGIN};
use crate::schedule::Schedule;
use crate::store::{MonitorRow, Store, StoreError, read_text};
use crate::task::{ParamValues, Timetable, parse, timetable};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use walkdir::WalkDir;

/// The task folder, relative to the workspace.
pub const FOLDER: &str = "tasks";
/// The depth of the scan, and the maximum number of files that it reads.
const DEEP: usize = 8;
const MOST: usize = 10_000;

/// A request to run a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOrder {
    /// The task's file, relative to the workspace.
    pub path: String,
    /// The key of the request. All requests with the same key become one run.
    pub key: String,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// True if the run succeeded.
    pub is_well: bool,
    /// The outcome in a word; for a failure also the reason, in one line.
    pub outcome: String,
}

/// A runner of tasks.
pub trait TaskSubmitter: fmt::Debug + Send + Sync {
    /// Submits a request and returns its run. A request with a known key returns the earlier run.
    fn submit(&self, order: RunOrder) -> BoxFuture<'_, Result<RunId, JobError>>;

    /// Waits until a run ends.
    fn ended(&self, run: RunId) -> BoxFuture<'_, Result<TaskEnd, JobError>>;
}

/// A task with a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduledTask {
    /// The name of its job and its monitor.
    pub slug: Slug,
    /// The task's file, relative to the workspace.
    pub path: String,
    /// The title of the task.
    pub title: String,
    /// The schedule with its settings.
    pub timetable: Timetable,
}

/// The result of scanning a file.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskFinding {
    /// A task with a schedule.
    Scheduled(Box<ScheduledTask>),
    /// A task with a schedule that cannot be run as written, and the reason.
    Broken(String),
}

/// The result of scanning a workspace.
#[derive(Debug, Default)]
pub(super) struct FoundTasks {
    /// Tasks by the names of their jobs.
    pub(super) all: BTreeMap<String, TaskFinding>,
    /// The jobs of files that could not be read.
    pub(super) unread: Vec<String>,
    /// True if every folder could be read.
    pub(super) is_whole: bool,
}

/// Scans for tasks with a schedule, and returns them by the names of their jobs. May block.
pub fn scan(workspace: &Path) -> BTreeMap<String, TaskFinding> {
    look_for(workspace).all
}

/// Scans for tasks with a schedule. Also returns what could not be read, since an unreadable task
/// is not a deleted one.
pub(super) fn look_for(workspace: &Path) -> FoundTasks {
    let folder = workspace.join(FOLDER);
    let mut found = BTreeMap::new();
    let (mut unread, mut is_whole) = (Vec::new(), true);
    let files = WalkDir::new(&folder).max_depth(DEEP).sort_by_file_name().into_iter().filter_map(|entry| {
        let is_gone = |error: &walkdir::Error| error.io_error().is_some_and(|error| error.kind() == NotFound);
        entry.inspect_err(|error| is_whole &= is_gone(error)).ok()
    });
    let files =
        files.filter(|entry| entry.file_type().is_file() && entry.path().extension().is_some_and(|end| end == "md"));
    for entry in files.take(MOST) {
        let Some(inside) = entry.path().strip_prefix(&folder).ok().and_then(Path::to_str) else { continue };
        let path = format!("{FOLDER}/{inside}");
        let text = match read_text(entry.path(), MAX_SOURCE) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(_unreadable) => {
                unread.push(Slug::of_path(inside).map_or(path, String::from));
                continue;
            }
        };
        let Some(finding) = finding(&text, &path, inside) else { continue };
        let name = Slug::of_path(inside).map_or_else(|_| path.clone(), String::from);
        let finding = match found.remove(&name) {
            Some(_) => TaskFinding::Broken(format!("{path} and another file have the same job name: `{name}`")),
            None => finding,
        };
        found.insert(name, finding);
    }
    FoundTasks { all: found, unread, is_whole }
}

/// Returns the task in a file; `None` if it has no schedule.
fn finding(text: &str, path: &str, inside: &str) -> Option<TaskFinding> {
    let timetable = match timetable(text, path) {
        Ok(timetable) => timetable?,
        // The front matter cannot be parsed. A line that looks like a schedule is enough to report
        // the fault.
        Err(fault) => {
            return text
                .lines()
                .any(|line| line.starts_with("schedule:"))
                .then(|| TaskFinding::Broken(fault.to_string()));
        }
    };
    let task = match parse(text, path, &ParamValues::new()) {
        Ok(task) => task,
        Err(fault) => return Some(TaskFinding::Broken(fault.to_string())),
    };
    if task.candidates.is_some() || !task.needs.is_empty() {
        let why = "a scheduled task cannot have `candidates` or `needs`: they are for batches";
        return Some(TaskFinding::Broken(format!("{path}: {why}")));
    }
    Some(match Slug::of_path(inside) {
        Ok(slug) => TaskFinding::Scheduled(Box::new(ScheduledTask {
            slug,
            path: path.to_owned(),
            title: task.title,
            timetable,
        })),
        Err(_) => TaskFinding::Broken(format!(
            "{path}: the file name becomes the job's name: use at most 64 letters and digits"
        )),
    })
}

impl ScheduledTask {
    /// Returns the row of the task's monitor, if it has one.
    pub(super) fn monitor_row(&self, now: Timestamp) -> Option<MonitorRow> {
        let terms = self.timetable.monitor?;
        let margin = terms.margin.unwrap_or(USUAL_MARGIN).clamp(*MARGINS.start(), *MARGINS.end());
        let max_runtime = terms.max_runtime.map(|most| most.min(LONGEST_RUN));
        let monitor = Monitor {
            slug: self.slug.clone(),
            schedule: self.timetable.schedule.clone(),
            margin: margin + self.timetable.jitter,
            max_runtime,
        };
        Some(row_of(&monitor, &self.title, Some(self.slug.as_str()), now))
    }
}

/// Stores the monitor of a task if it changed, or removes it if the task has none. Leaves alone a
/// monitor of the same name that does not belong to the task.
pub(super) fn settle_monitor(store: &Store, row: Option<&MonitorRow>, name: &str) -> Result<(), StoreError> {
    let was = store.monitor(name)?;
    match (row, was) {
        (Some(row), Some(was)) if was.owner == row.owner => {
            let same = MonitorRow {
                on_change: was.on_change.clone(),
                base: was.base.clone(),
                health: was.health.clone(),
                since_ms: was.since_ms,
                weighed_ms: was.weighed_ms,
                is_orphan: was.is_orphan,
                ..row.clone()
            };
            if same == was { Ok(()) } else { store.put_monitor(row).map(drop) }
        }
        (Some(row), None) => store.put_monitor(row).map(drop),
        (None, Some(was)) if was.owner.is_some() => store.remove_monitor(name, was.owner.as_deref()).map(drop),
        (Some(_) | None, Some(_)) | (None, None) => Ok(()),
    }
}

/// The job of a scheduled task.
#[derive(Clone)]
pub(super) struct TaskJob {
    task: ScheduledTask,
    ledger: SchedulerStore,
    submit: Arc<dyn TaskSubmitter>,
    clock: Arc<dyn WallClock>,
    tell: SchedulerListener,
}

impl fmt::Debug for TaskJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskJob").field("task", &self.task).finish_non_exhaustive()
    }
}

impl TaskJob {
    pub(super) fn new(
        task: ScheduledTask,
        ledger: SchedulerStore,
        submit: Arc<dyn TaskSubmitter>,
        clock: Arc<dyn WallClock>,
        tell: SchedulerListener,
    ) -> Self {
        Self { task, ledger, submit, clock, tell }
    }

    async fn once(&self, context: JobContext) -> Result<(), JobError> {
        let name = self.task.slug.as_str();
        let key = match context.due {
            Some(due) => format!("schedule:{name}:{due}"),
            None => format!("schedule:{name}:asked:{}", context.no),
        };
        let id = context.due.map_or_else(|| format!("asked-{}", context.no), |due| due.as_second().to_string());
        self.check_in(Status::InProgress, &id, context.due).await?;
        let done = self.run(&key, &context).await;
        match &done {
            Ok(()) => self.check_in(Status::Ok, &id, context.due).await?,
            Err(JobError::Retryable(_)) if !context.is_last => {} // a further try may succeed
            Err(JobError::Final(_) | JobError::Retryable(_)) => self.check_in(Status::Error, &id, context.due).await?,
            Err(JobError::Resting) => {}
        }
        done
    }

    async fn run(&self, key: &str, context: &JobContext) -> Result<(), JobError> {
        let order = RunOrder { path: self.task.path.clone(), key: key.to_owned() };
        let run = self.submit.submit(order).await?;
        let (no, outcome) = (context.no, run.to_string());
        self.ledger.with(move |store| store.note_job(no, 0, None, Some(&outcome))).await?;
        let end = tokio::select! {
            biased;
            end = self.submit.ended(run) => end?,
            () = context.stop.cancelled() => return Err(JobError::Resting),
        };
        if end.is_well { Ok(()) } else { Err(JobError::Final(end.outcome)) }
    }

    async fn check_in(&self, status: Status, id: &str, due: Option<Timestamp>) -> Result<(), JobError> {
        if self.task.timetable.monitor.is_none() {
            return Ok(());
        }
        let outcome = CheckIn { status, id: Some(id.to_owned()), duration: None, source: Source::Task, due };
        let (slug, now) = (self.task.slug.to_string(), self.clock.now());
        let received = self.ledger.with(move |store| {
            // A monitor of the same name that does not belong to the task gets no check-in.
            if store.monitor(&slug)?.is_none_or(|row| row.owner.as_deref() != Some(&slug)) {
                return Ok(None);
            }
            match check_in(store, &slug, &outcome, now) {
                Ok(received) => Ok(Some(received)),
                Err(MonitorError::Store(error)) => Err(error),
                Err(_gone_or_unreadable) => Ok(None),
            }
        });
        if let Some(change) = received.await?.and_then(|received| received.change) {
            (self.tell)(SchedulerUpdate::Monitor(change));
        }
        Ok(())
    }
}

impl ScheduledJob for TaskJob {
    fn name(&self) -> &str {
        self.task.slug.as_str()
    }

    fn schedule(&self) -> &Schedule {
        &self.task.timetable.schedule
    }

    fn kind(&self) -> JobKind {
        JobKind::Task
    }

    fn tolerance(&self) -> Option<Duration> {
        let margin = self.task.timetable.monitor.and_then(|terms| terms.margin);
        Some(margin.unwrap_or(USUAL_MARGIN))
    }

    fn jitter(&self) -> Duration {
        self.task.timetable.jitter
    }

    fn monitor(&self) -> Option<&str> {
        self.task.timetable.monitor.map(|_| self.task.slug.as_str())
    }

    fn resumes(&self) -> bool {
        true
    }

    fn run(&self, context: JobContext) -> BoxFuture<'_, Result<(), JobError>> {
        self.once(context).boxed()
    }
}

/// The time between two checks for a folder that does not exist yet.
const POLL: Duration = Duration::from_secs(2);

/// Stands in for the watcher in builds without the `cli` feature. These scan for tasks once a
/// minute.
#[cfg(not(feature = "cli"))]
#[derive(Debug)]
enum ProjectWatch {}

#[cfg(not(feature = "cli"))]
impl ProjectWatch {
    async fn start(_: &Path, _: Vec<PathBuf>) -> Result<Self, ()> {
        Err(())
    }

    async fn changed(&mut self) -> Result<(), ()> {
        pending().await
    }
}

/// The task folder of a workspace, which may not exist.
#[derive(Debug)]
pub(super) struct TasksFolder {
    path: PathBuf,
    watch: Option<ProjectWatch>,
}

impl TasksFolder {
    pub(super) fn new(workspace: &Path) -> Self {
        Self { path: workspace.join(FOLDER), watch: None }
    }

    /// Starts watching, unless it already does or the folder does not exist.
    pub(super) async fn listen(&mut self) {
        if self.watch.is_none()
            && let Ok(path) = self.path.canonicalize()
        {
            self.watch = ProjectWatch::start(&path, Vec::new()).await.ok();
        }
    }
}

/// Waits until the folder changes, appears or disappears.
pub(super) async fn folder_changed(folder: Option<&mut TasksFolder>) {
    let Some(TasksFolder { path, watch }) = folder else { return pending().await };
    match watch {
        Some(it) => {
            if it.changed().await.is_err() {
                *watch = None; // the folder is gone
            }
        }
        None if path.is_dir() => pending().await, // cannot be watched
        None => {
            while !path.is_dir() {
                sleep(POLL).await;
            }
        }
    }
}
