//! Tasks that have a schedule: found in the project's folder of tasks, and run by whoever runs tasks.

use super::Clock;
use super::crew::{Teller, Tidings};
use super::job::{Context, Job, JobError, Kind};
use super::ledger::Ledger;
use super::monitors::{CheckIn, MonitorFault, check_in, row_of};
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
use std::io::ErrorKind::NotFound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use walkdir::WalkDir;

/// The folder, from the workspace.
pub const FOLDER: &str = "tasks";
/// How deep it is looked into, and how many files are.
const DEEP: usize = 8;
const MOST: usize = 10_000;

/// A run that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The task's file, from the workspace.
    pub path: String,
    /// The same for the same order, however often it is given: it becomes one run.
    pub key: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// Whether it did what it should.
    pub is_well: bool,
    /// How: in a word, and where it did not, with why in one line.
    pub said: String,
}

/// Who runs tasks.
pub trait Submit: fmt::Debug + Send + Sync {
    /// Takes an order in, and gives the run that it becomes. An order with a key that is known gives the run that it became then.
    fn submit(&self, order: Order) -> BoxFuture<'_, Result<RunId, JobError>>;

    /// Waits until a run is over.
    fn ended(&self, run: RunId) -> BoxFuture<'_, Result<TaskEnd, JobError>>;
}

/// A task that has a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduledTask {
    /// The name of its job and of its monitor.
    pub slug: Slug,
    /// Its file, from the workspace.
    pub path: String,
    /// Its title.
    pub title: String,
    /// When it comes again.
    pub timetable: Timetable,
}

/// What was found in a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// A task that has a schedule.
    Scheduled(Box<ScheduledTask>),
    /// It has one, and cannot be run as it is written.
    Broken(String),
}

/// What was found in a workspace.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// By the names of their jobs.
    pub(super) all: BTreeMap<String, Finding>,
    /// The jobs of files that could not be read.
    pub(super) unread: Vec<String>,
    /// Whether all folders could be looked into.
    pub(super) is_whole: bool,
}

/// Looks for tasks that have a schedule, by the names of their jobs. May block.
pub fn scan(workspace: &Path) -> BTreeMap<String, Finding> {
    look_for(workspace).all
}

/// The same, and what could not be looked at: that is no sign of anything being gone.
pub(super) fn look_for(workspace: &Path) -> Found {
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
            Some(_) => Finding::Broken(format!("{path} and another file have the same name as a job: `{name}`")),
            None => finding,
        };
        found.insert(name, finding);
    }
    Found { all: found, unread, is_whole }
}

/// What there is in a file; nothing where it has no schedule.
fn finding(text: &str, path: &str, inside: &str) -> Option<Finding> {
    let timetable = match timetable(text, path) {
        Ok(timetable) => timetable?,
        // It cannot be told whether it has one that means something; a line that looks like it is enough to say so.
        Err(fault) => {
            return text.lines().any(|line| line.starts_with("schedule:")).then(|| Finding::Broken(fault.to_string()));
        }
    };
    let task = match parse(text, path, &ParamValues::new()) {
        Ok(task) => task,
        Err(fault) => return Some(Finding::Broken(fault.to_string())),
    };
    if task.candidates.is_some() || !task.needs.is_empty() {
        let why = "`candidates` and `needs` are for batches, and a scheduled task runs by itself";
        return Some(Finding::Broken(format!("{path}: {why}")));
    }
    Some(match Slug::of_path(inside) {
        Ok(slug) => {
            Finding::Scheduled(Box::new(ScheduledTask { slug, path: path.to_owned(), title: task.title, timetable }))
        }
        Err(_) => Finding::Broken(format!(
            "{path}: the name of its job is that of the file, in 64 letters and digits at most"
        )),
    })
}

impl ScheduledTask {
    /// Its monitor, where it has one.
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

/// Writes the monitor of a task down, where it is another one than before, or takes it away where the task has none. One of the same name that
/// belongs to nobody is left alone.
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

/// The job of a task.
#[derive(Clone)]
pub(super) struct TaskJob {
    task: ScheduledTask,
    ledger: Ledger,
    submit: Arc<dyn Submit>,
    clock: Arc<dyn Clock>,
    tell: Teller,
}

impl fmt::Debug for TaskJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskJob").field("task", &self.task).finish_non_exhaustive()
    }
}

impl TaskJob {
    pub(super) fn new(
        task: ScheduledTask,
        ledger: Ledger,
        submit: Arc<dyn Submit>,
        clock: Arc<dyn Clock>,
        tell: Teller,
    ) -> Self {
        Self { task, ledger, submit, clock, tell }
    }

    async fn once(&self, context: Context) -> Result<(), JobError> {
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
            Err(JobError::Retryable(_)) if !context.is_last => {} // it may go well yet
            Err(JobError::Final(_) | JobError::Retryable(_)) => self.check_in(Status::Error, &id, context.due).await?,
            Err(JobError::Resting) => {}
        }
        done
    }

    async fn run(&self, key: &str, context: &Context) -> Result<(), JobError> {
        let order = Order { path: self.task.path.clone(), key: key.to_owned() };
        let run = self.submit.submit(order).await?;
        let (no, said) = (context.no, run.to_string());
        self.ledger.with(move |store| store.note_job(no, 0, None, Some(&said))).await?;
        let end = tokio::select! {
            biased;
            end = self.submit.ended(run) => end?,
            () = context.stop.cancelled() => return Err(JobError::Resting),
        };
        if end.is_well { Ok(()) } else { Err(JobError::Final(end.said)) }
    }

    async fn check_in(&self, status: Status, id: &str, due: Option<Timestamp>) -> Result<(), JobError> {
        if self.task.timetable.monitor.is_none() {
            return Ok(());
        }
        let said = CheckIn { status, id: Some(id.to_owned()), duration: None, source: Source::Task, due };
        let (slug, now) = (self.task.slug.to_string(), self.clock.now());
        let heard = self.ledger.with(move |store| {
            // One of the same name that is not its own hears nothing of it.
            if store.monitor(&slug)?.is_none_or(|row| row.owner.as_deref() != Some(&slug)) {
                return Ok(None);
            }
            match check_in(store, &slug, &said, now) {
                Ok(heard) => Ok(Some(heard)),
                Err(MonitorFault::Store(error)) => Err(error),
                Err(_gone_or_unreadable) => Ok(None),
            }
        });
        if let Some(change) = heard.await?.and_then(|heard| heard.change) {
            (self.tell)(Tidings::Monitor(change));
        }
        Ok(())
    }
}

impl Job for TaskJob {
    fn name(&self) -> &str {
        self.task.slug.as_str()
    }

    fn schedule(&self) -> &Schedule {
        &self.task.timetable.schedule
    }

    fn kind(&self) -> Kind {
        Kind::Task
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

    fn run(&self, context: Context) -> BoxFuture<'_, Result<(), JobError>> {
        self.once(context).boxed()
    }
}
