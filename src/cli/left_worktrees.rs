//! The worktrees that runs left, with the work in them, and their removal.

use super::failure::CliError;
use super::file_time::unix_ms;
use crate::config::EnvironmentLayer;
use crate::driver::{is_for_now, project_of, worktrees};
use crate::duration::show_duration;
use crate::id::RunId;
use crate::store::{RunHold, RunRow, Store, StoreError, StoredRunState};
use crate::workspace::worktree::{self, WorktreeContents, WorktreeError, WorktreeRecord};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The worktrees of a project.
#[derive(Debug)]
pub(super) struct WorktreesContext {
    pub(super) all: PathBuf,
    pub(super) project: PathBuf,
    pub(super) store: Option<Store>,
    /// The user's environment.
    pub(super) env: Vec<(String, String)>,
    pub(super) scratch: TempDir,
    pub(super) now_ms: i64,
    pub(super) stop: CancellationToken,
}

/// A remaining worktree.
#[derive(Debug)]
pub(super) struct WorktreeRow {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) record: Option<WorktreeRecord>,
    pub(super) row: Option<RunRow>,
    pub(super) state: WorktreeState,
    /// The time of its creation, in milliseconds since 1970.
    pub(super) since_ms: i64,
}

/// The state of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorktreeState {
    /// Its run is under way. The value names the holder of the run.
    Running(String),
    /// Its run can be resumed.
    Interrupted,
    /// It holds work that is stored nowhere else.
    Kept(WorktreeContents),
    /// It holds no work that is stored nowhere else.
    Clean,
    /// It holds no work, and its run is unknown.
    Orphaned,
    /// Its folder is gone, but git still knows it.
    Gone,
    /// Its state cannot be determined. The value is the reason.
    Unclear(String),
}

impl WorktreeState {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Running(_) => "running",
            Self::Interrupted => "interrupted",
            Self::Kept(WorktreeContents::Unknown(_)) | Self::Unclear(_) => "unclear",
            Self::Kept(_) => "uncommitted",
            Self::Clean => "clean",
            Self::Orphaned => "orphaned",
            Self::Gone => "gone",
        }
    }

    /// Returns the reason why it stays, as a clause. Returns `None` if it may be removed.
    pub(super) fn keeps(&self, run: &str) -> Option<String> {
        match self {
            Self::Running(holder) => Some(format!("run {run} is in progress: driven by {holder}")),
            Self::Interrupted => Some(format!("run {run} was interrupted: `fledge runs resume {run}` continues it")),
            Self::Kept(work) => work.keeps(),
            Self::Unclear(why) => Some(why.clone()),
            Self::Clean | Self::Orphaned | Self::Gone => None,
        }
    }
}

impl WorktreesContext {
    pub(super) fn open(
        folder: &Path,
        environment: &EnvironmentLayer,
        stop: CancellationToken,
    ) -> Result<Self, CliError> {
        let state = environment.state_dir().map_err(CliError::input)?;
        let project = project_of(&state, folder);
        let store = Store::existing(&state, &project).map_err(CliError::own)?;
        let scratch = tempfile::tempdir().context("cannot create a folder").map_err(CliError::own)?;
        let env = environment.hand_env().into_iter().collect();
        let now_ms = jiff::Timestamp::now().as_millisecond();
        Ok(Self { all: worktrees(&state, &project), project, store, env, scratch, now_ms, stop })
    }

    /// Returns all worktrees, sorted by name.
    pub(super) async fn trees(&self) -> Result<Vec<WorktreeRow>, CliError> {
        let mut trees = Vec::new();
        for listed in worktree::all(&self.all, &self.stop).map_err(CliError::own)? {
            let since_ms = listed.since.map_or(self.now_ms, unix_ms);
            let (record, unclear) = match listed.record {
                Ok(Some(record)) => (Some(record), String::new()),
                Ok(None) => (None, "no record of this worktree: check its contents and remove it yourself".into()),
                Err(fault) => (None, fault.to_string()),
            };
            let row = record.as_ref().map(|record| self.row(&record.run)).transpose()?.flatten();
            let state = match &record {
                None => WorktreeState::Unclear(unclear),
                Some(record) => self.state(record, row.as_ref()).await?,
            };
            trees.push(WorktreeRow { name: listed.name, folder: listed.folder, record, row, state, since_ms });
        }
        Ok(trees)
    }

    async fn state(&self, record: &WorktreeRecord, row: Option<&RunRow>) -> Result<WorktreeState, CliError> {
        let state = row.map(|row| &row.state);
        if let Some(StoredRunState::Running { holder }) = state {
            return Ok(WorktreeState::Running(holder.clone()));
        }
        let work = if record.worktree.project.is_dir() {
            record.work(&self.env, self.scratch.path(), &self.stop).await.map_err(CliError::own)?
        } else {
            WorktreeContents::without_project(&record.worktree.project)
        };
        Ok(match (work, state) {
            (WorktreeContents::Gone, _) => WorktreeState::Gone,
            (_, Some(StoredRunState::Interrupted)) => WorktreeState::Interrupted,
            (WorktreeContents::Nothing, Some(state)) if is_for_now(state) => WorktreeState::Interrupted,
            (WorktreeContents::Nothing, Some(_)) => WorktreeState::Clean,
            (WorktreeContents::Nothing, None) => WorktreeState::Orphaned,
            (
                work @ (WorktreeContents::Uncommitted(_) | WorktreeContents::Loose(_) | WorktreeContents::Unknown(_)),
                _,
            ) => WorktreeState::Kept(work),
        })
    }

    /// Returns the age of a worktree.
    pub(super) fn age(&self, tree: &WorktreeRow) -> Duration {
        Duration::from_millis(u64::try_from(self.now_ms.saturating_sub(tree.since_ms)).unwrap_or(0))
    }

    /// Returns the row of a run. Returns `None` if the run was removed.
    fn row(&self, run: &RunId) -> Result<Option<RunRow>, CliError> {
        match self.store.as_ref().map(|store| store.run(run)) {
            None | Some(Err(StoreError::Unknown { .. })) => Ok(None),
            Some(row) => row.map(Some).map_err(CliError::own),
        }
    }
}

impl WorktreeRow {
    /// Returns the start of its run's id, or else its name.
    pub(super) fn called(&self, store: Option<&Store>) -> String {
        let short = |record: &WorktreeRecord| store.and_then(|store| store.short(&record.run).ok());
        self.record.as_ref().and_then(short).unwrap_or_else(|| self.name.clone())
    }
}

/// Formats an error for people.
fn error_text(fault: &WorktreeError) -> String {
    format!("{:#}", anyhow::anyhow!("{fault}"))
}

/// Counts the worktrees of a project without a run under way. Does not read their contents.
pub(super) fn left_over(state_dir: &Path, workspace: &Path) -> usize {
    let project = project_of(state_dir, workspace);
    let store = Store::existing(state_dir, &project).ok().flatten();
    let is_left = |record: &WorktreeRecord| {
        let row = store.as_ref().and_then(|store| store.run(&record.run).ok());
        !matches!(row.map(|row| row.state), Some(StoredRunState::Running { .. }))
    };
    let all = worktree::all(&worktrees(state_dir, &project), &CancellationToken::new()).unwrap_or_default();
    all.iter().filter(|listed| listed.record.as_ref().is_ok_and(|it| it.as_ref().is_none_or(is_left))).count()
}

/// The result for one worktree.
pub(super) enum Cleaned {
    /// Removed, or would be in a dry run. The value is true if its branch stays, where that is
    /// known.
    Removed(Option<bool>),
    Stays(String),
    Failed(String),
}

/// Removes a worktree, unless it holds work that is stored nowhere else, or is newer than
/// `older_than`. With `discard`, removes its work too. With `dry_run`, removes nothing.
pub(super) async fn clean_one(
    context: &WorktreesContext,
    older_than: Option<Duration>,
    dry_run: bool,
    tree: &WorktreeRow,
    discard: bool,
) -> Cleaned {
    let called = tree.called(context.store.as_ref());
    let is_running = matches!(tree.state, WorktreeState::Running(_));
    if let Some(why) = tree.state.keeps(&called).filter(|_| !discard || is_running) {
        return Cleaned::Stays(why);
    }
    let Some(record) = &tree.record else { return Cleaned::Stays("no record of this worktree".into()) };
    if let Some(older) = older_than.filter(|older| context.age(tree) < *older && !discard) {
        return Cleaned::Stays(format!("created less than {} ago", show_duration(older)));
    }
    if dry_run {
        return Cleaned::Removed(None);
    }
    // While this hold exists, no process resumes the run.
    let _hold: Option<RunHold> = match (&tree.row, &context.store) {
        (Some(row), Some(store)) => match store.hold(&row.head.id) {
            Ok(hold) => Some(hold),
            Err(StoreError::Held { holder, .. }) => return Cleaned::Stays(format!("its run is driven by {holder}")),
            Err(_) => None, // its folder is gone, so no process can resume it
        },
        (Some(_) | None, _) => None,
    };
    match record.remove(discard, &context.env, context.scratch.path(), &context.stop).await {
        Ok(left) => left.stays.map_or(Cleaned::Removed(Some(left.has_branch)), Cleaned::Stays),
        Err(fault) => Cleaned::Failed(error_text(&fault)),
    }
}
