//! The main loop: takes an event, journals it, hands it to the machine, performs the actions.
//!
//! ```text
//! first written,  journal.append(&event)
//! then decided,   for action in run.handle(now, event)
//! then done.          perform(action)
//! ```

mod asking;
mod base_run;
mod briefing;
mod bus;
mod configuration;
mod delivery;
mod difference;
mod drive;
mod effects;
mod enclosure;
mod environment;
mod error;
mod hidden;
mod hook_input;
mod hooks;
mod inbox;
mod interrupted;
mod journal;
mod memory;
mod meter;
mod model_call;
mod planning;
mod preflight;
mod prepared_workspace;
mod raise;
mod redactor;
mod report;
mod resume;
mod servers;
mod spawn;
mod stop;
mod sub_agent;
mod summary;
mod tool_lists;
mod watcher;
mod worktree;

pub use asking::{Asker, Consent, Question};
pub use briefing::{Briefing, StartingPoint, prepare, unmatched};
pub use bus::{EVENT_SCHEMA_VERSION, EventRecord};
pub use configuration::restore_project_configuration;
pub use delivery::{commit_message, commit_trailers};
pub use error::{LimitError, PlanError, ResumeError, RunError};
pub use hooks::RunHook;
#[cfg(feature = "cli")]
pub use journal::export;
pub use journal::{
    EarlierRun, RESUMED, ReplayDifference, ReplayResult, RestartedEffects, RunEvents, RunTerms, cassette, earlier,
    events_after, forget_beside, replay, spent, story, terms, whose,
};
pub use memory::MemorySettings;
pub use planning::lanes_at;
pub use preflight::{UncommittedFiles, must_be_committed};
pub use prepared_workspace::{ForgetError, forget_removed, kept_as, trees};
pub use raise::{RunUse, check_limits, check_resume, is_limited, limits_to_set};
pub use resume::{is_for_now, must_be_ours};
pub use stop::StopToken;
#[cfg(feature = "cli")]
pub(crate) use watcher::EventWatcher;
pub use worktree::{base_at, commit_at, export_commit, project_of, worktrees};

use crate::id::RunId;
use crate::limits::NewLimits;
use crate::mcp;
use crate::process::cores;
use crate::process::sandbox::{SandboxChoice, SandboxLimits};
use crate::provider::Provider;
use crate::run::{AgentEvent, ModelTerms, TaskResult};
use crate::store;
use crate::task::{Baseline, Task};
use crate::tool::SecretMask;
use crate::workspace::AtomicOutput;
use bus::EventBus;
use drive::{DriveStart, RunDrive};
use effects::EffectRunner;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The version of the format of the journal's records.
pub const JOURNAL_SCHEMA_VERSION: u32 = 2;
/// The time that the end of a run waits for its watchers.
const WATCHERS_WAIT: Duration = Duration::from_millis(200);

/// The settings of an agent.
#[derive(Debug, Clone)]
pub struct DriverSettings {
    /// The folder that the agent may change.
    pub workspace: PathBuf,
    /// The project folder that keeps the runs, if it is not the workspace.
    pub project: Option<PathBuf>,
    /// The folder for journals and reports, which must be outside the workspace.
    pub state_dir: PathBuf,
    /// The models, in order of preference.
    pub models: Vec<DriverModel>,
    /// The reason for empty `models`, reported if one is needed: a passing gate needs none.
    pub no_models: Option<String>,
    /// The environment of the agent's commands, of hooks and of MCP servers.
    pub env: Vec<(String, String)>,
    /// The environment of the gate's steps.
    pub step_env: Vec<(String, String)>,
    /// Globs of protected paths beyond the built-in ones and the task's.
    pub protect: Vec<String>,
    /// Paths for further copies of the report.
    pub reports: Vec<PathBuf>,
    /// The path for a patch of the verified work.
    pub patch: Option<PathBuf>,
    /// The number of lane steps to run at once.
    pub jobs: usize,
    /// The MCP servers that tasks may name.
    pub mcp: Vec<mcp::ServerConfig>,
    /// The conversation that runs continue, if any.
    pub earlier: Option<EarlierRun>,
    /// A file with the trees that failed in other runs of the same task, such as candidates of a
    /// race. The run adds its own.
    pub failed_trees: Option<PathBuf>,
    /// The memory settings. `None`: runs recall nothing and keep nothing.
    pub memory: Option<MemorySettings>,
    /// The secrets to hide in events, reports and memories.
    pub secrets: SecretMask,
    /// The folder with the hold-out lanes, which only the gate knows.
    pub holdout: Option<PathBuf>,
    /// The commit whose lanes are the gate; `None`: those of the workspace.
    pub lanes_from: Option<String>,
    /// When the gate judges the base, if the task does not say.
    pub baseline: Baseline,
    /// The sandbox to put around the agent.
    pub sandbox: SandboxChoice,
    /// True if the agent can reach the network from inside the sandbox.
    pub network: bool,
    /// The resource limits of each tool call and each step of the gate.
    pub limits: SandboxLimits,
    /// The commands to run after every turn in which something may have changed.
    pub hooks: Vec<RunHook>,
    /// Asks a person to approve calls.
    pub asker: Asker,
    /// The fledge program, which a sandbox needs. `None`: only without a sandbox.
    pub helper: Option<PathBuf>,
}

impl DriverSettings {
    /// Creates settings without models, environments and a fledge program. All other values are the
    /// defaults of a run.
    ///
    /// ```
    /// use fledge::driver::DriverSettings;
    /// let settings = DriverSettings { network: true, ..DriverSettings::new("/project", "/state")
    /// };
    /// ```
    pub fn new(workspace: impl Into<PathBuf>, state_dir: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            project: None,
            state_dir: state_dir.into(),
            models: Vec::new(),
            no_models: None,
            env: Vec::new(),
            step_env: Vec::new(),
            protect: Vec::new(),
            reports: Vec::new(),
            patch: None,
            jobs: cores(),
            mcp: Vec::new(),
            earlier: None,
            failed_trees: None,
            memory: Some(MemorySettings::default()),
            secrets: SecretMask::default(),
            holdout: None,
            lanes_from: None,
            baseline: Baseline::default(),
            sandbox: SandboxChoice::default(),
            network: false,
            limits: SandboxLimits::default(),
            hooks: Vec::new(),
            asker: Asker::default(),
            helper: None,
        }
    }
}

/// A model with its provider and terms.
#[derive(Debug, Clone)]
pub struct DriverModel {
    /// The provider that answers.
    pub provider: Arc<dyn Provider>,
    /// The price and the bounds of the model.
    pub terms: ModelTerms,
    /// A digest of its address. Empty for the provider's own address or none.
    pub place: String,
}

impl DriverModel {
    /// Creates a model with default terms.
    pub fn new(provider: impl Provider + 'static) -> Self {
        Self { provider: Arc::new(provider), terms: ModelTerms::default(), place: String::new() }
    }
}

impl From<Arc<dyn Provider>> for DriverModel {
    fn from(provider: Arc<dyn Provider>) -> Self {
        Self { provider, terms: ModelTerms::default(), place: String::new() }
    }
}

/// Runs tasks, one at a time.
///
/// ```no_run
/// # async fn example(settings: fledge::driver::DriverSettings) {
/// use fledge::{AgentEvent, driver::Agent, task::Task};
/// let mut agent = Agent::new(settings);
/// agent.on_event(|event| if let AgentEvent::Text(text) = event { print!("{text}") });
/// let result = agent.run_task(Task::from_prompt("Repair the date parser")).await;
/// # }
/// ```
#[derive(Debug)]
pub struct Agent {
    settings: Arc<DriverSettings>,
    stop: StopToken,
    bus: EventBus,
    run_key: Option<String>,
    run_id: Option<RunId>,
    /// The new limits of a resumed run.
    limits: NewLimits,
    /// True if these limits let a run continue that a limit had ended.
    is_raised: bool,
}

impl Agent {
    /// Creates an agent that has no watchers and cannot be stopped yet.
    pub fn new(settings: DriverSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            stop: StopToken::default(),
            bus: EventBus::default(),
            run_key: None,
            run_id: None,
            limits: NewLimits::default(),
            is_raised: false,
        }
    }

    /// Calls `watcher` on a thread with every event of the run itself. A slow watcher loses only
    /// pieces of text.
    pub fn on_event(&mut self, mut watcher: impl FnMut(AgentEvent) + Send + 'static) -> &mut Self {
        self.on_record(move |record| {
            if record.of.is_none() {
                watcher(record.event.clone());
            }
        })
    }

    /// Calls `watcher` with every event of the run and its sub-agents, in its envelope.
    pub fn on_record(&mut self, watcher: impl FnMut(&EventRecord) + Send + 'static) -> &mut Self {
        self.bus.watch(watcher);
        self
    }

    /// Calls `listener` on the run's thread with every event. `listener` must not wait or fail.
    pub fn on_record_at_once(&mut self, listener: impl Fn(&EventRecord) + Send + Sync + 'static) -> &mut Self {
        self.bus.add_listener(listener);
        self
    }

    /// Lets `ask` approve calls that need it. Without it, such calls are denied. Questions come one
    /// at a time. fledge drops the future when the run no longer waits for the answer.
    pub fn on_confirmation<A>(&mut self, ask: impl Fn(Question) -> A + Send + Sync + 'static) -> &mut Self
    where
        A: Future<Output = Consent> + Send + 'static,
    {
        self.settings = Arc::new(DriverSettings { asker: Asker::new(ask), ..DriverSettings::clone(&self.settings) });
        self
    }

    /// Lets `token` cancel the run, which ends within two seconds and leaves no process. A run that
    /// is reporting or delivering has one of the two seconds to end normally.
    #[must_use]
    pub fn with_cancellation(self, token: CancellationToken) -> Self {
        self.with_stop(StopToken::from_token(token))
    }

    /// Sets the stop of the run, which knows who asked for it.
    #[must_use]
    pub fn with_stop(mut self, stop: StopToken) -> Self {
        self.stop = stop;
        self
    }

    /// Waits until every watcher has handled every event, at most for `patience`.
    pub async fn wait_for_watchers(&self, patience: Duration) {
        self.bus.wait_for_watchers(patience).await;
    }

    /// Sets a key by which the next run can be found. No other run of the project may have it.
    #[must_use]
    pub fn with_run_key(mut self, key: Option<String>) -> Self {
        self.run_key = key;
        self
    }

    /// Sets the id of the next run, for a caller that has announced it. The id must be unused.
    #[must_use]
    pub fn with_run_id(mut self, id: RunId) -> Self {
        self.run_id = Some(id);
        self
    }

    /// Sets the limit on the total cost of a resumed run, in millionths of a US dollar. `None`
    /// keeps the limit that the run was started with.
    #[must_use]
    pub fn with_bound(self, usd_micros: Option<u64>) -> Self {
        let limits = NewLimits { usd_micros, ..NewLimits::default() };
        Self { limits, ..self }
    }

    /// Sets new limits of a resumed run. What it has used so far counts towards them. A run that a
    /// limit ended goes on if that limit is now higher.
    #[must_use]
    pub fn with_limits(self, limits: NewLimits) -> Self {
        Self { limits, is_raised: true, ..self }
    }

    /// Runs a task to its end.
    ///
    /// # Errors
    /// [`RunError`] for every end but verified, skipped and cancelled. If the run began, the error
    /// carries the whole result.
    pub async fn run_task(&mut self, task: Task) -> Result<TaskResult, RunError> {
        self.must_be_apart()?;
        let id = self.run_id.take().unwrap_or_else(|| RunId::new(uuid::Uuid::now_v7().to_string()));
        let spec = self.spec(&task, id);
        let key = self.run_key.take();
        self.find_output_files(&[])?;
        let worktree = self.choose_worktree(&task, &spec).map_err(RunError::NotBegun)?;
        let settings = self.settings_in(worktree.as_ref());
        let journal = journal::begin_journal(&settings, &spec, &task, worktree.as_ref(), key, now_ms());
        let journal = journal.map_err(RunError::NotBegun)?;
        let effects = EffectRunner::new(settings, Arc::new(task), journal.folder(), self.stop.clone()).within(worktree);
        let drive = RunDrive::new(&self.bus, &self.stop, effects, journal, spec.run.clone());
        self.drive_to_end(drive, spec.title.clone(), DriveStart::Task(Box::new(spec))).await
    }

    /// Checks that the agent cannot change the state folder, by which it is judged.
    fn must_be_apart(&self) -> Result<(), RunError> {
        if store::is_inside(&self.settings.state_dir, &self.settings.workspace) {
            return Err(RunError::StateInside(self.settings.state_dir.clone()));
        }
        Ok(())
    }

    /// Finds the places of output files before the agent can redirect them. Those in `known` were
    /// found by an earlier process.
    fn find_output_files(&mut self, known: &[PathBuf]) -> Result<(), RunError> {
        let DriverSettings { workspace, reports, patch, .. } = &*self.settings;
        let find = |path: &PathBuf| match known.contains(path) {
            true => Ok(path.clone()),
            false => AtomicOutput::find(path, workspace)
                .map(|output| output.path().to_owned())
                .map_err(RunError::BadOutputFile),
        };
        let reports = reports.iter().map(find).collect::<Result<_, _>>()?;
        let patch = patch.as_ref().map(find).transpose()?;
        self.settings = Arc::new(DriverSettings { reports, patch, ..DriverSettings::clone(&self.settings) });
        Ok(())
    }

    /// Drives a run to its end from any state.
    async fn drive_to_end(
        &self,
        mut drive: RunDrive<'_>,
        title: String,
        beginning: DriveStart,
    ) -> Result<TaskResult, RunError> {
        if AssertUnwindSafe(drive.run(beginning)).catch_unwind().await.is_err() {
            drive.after_panic().await;
        }
        if drive.rests {
            drive.inbox.abort().await; // a resume starts its effects again
        }
        drive.leave().await;
        if drive.rests {
            self.bus.wait_for_watchers(WATCHERS_WAIT).await;
            return Err(RunError::Rests);
        }
        // A run that was cancelled before its start does not know its id and title.
        let result = drive.run.result().map(|result| TaskResult { run: drive.id().clone(), title, ..result });
        drive.end_unreported(result.as_ref());
        self.bus.wait_for_watchers(WATCHERS_WAIT).await;
        RunError::judge(result.ok_or(RunError::NeverEnded)?)
    }
}

#[expect(clippy::disallowed_methods, reason = "the driver is where time comes in")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the time of day, in milliseconds since 1970.
fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Returns the time of day, as RFC 3339 in UTC with milliseconds.
fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Returns the time of day in UTC, in the format of mails.
fn mail_date() -> String {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    jiff::fmt::rfc2822::to_string(&now).unwrap_or_default()
}

#[cfg(test)]
mod stopped_tests;
#[cfg(test)]
mod tests;
