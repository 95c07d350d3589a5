//! The one loop: takes an event, writes it to the journal, hands it to the machine, does what the machine asks for.
//!
//! ```text
//! first written,  journal.append(&event)
//! then decided,   for action in run.handle(now, event)
//! then done.          perform(action)
//! ```

mod alike;
mod asking;
mod base_run;
mod briefing;
mod bus;
mod charter;
mod child;
mod configuration;
mod delivery;
mod difference;
mod drive;
mod earlier;
mod enclosure;
mod environment;
#[cfg(feature = "cli")]
mod export;
mod failure;
mod fold;
mod ground;
mod hook_input;
mod hooks;
mod in_line;
mod inbox;
mod interrupted;
mod lanes_from;
mod lineage;
mod memory;
mod meter;
mod outside;
mod panicked;
mod pen;
mod perform;
mod planning;
mod record;
mod replay;
mod report;
mod resume;
mod servers;
mod slips;
mod spawn;
mod standing;
mod stop;
mod story;
mod summary;
mod tape;
mod told;
mod uncommitted;
mod unkept;
mod veil;
mod watcher;
mod whole;
mod worktree;

pub use asking::{Asker, Consent, Question};
pub use briefing::{Briefing, PlanFault, StartingPoint, prepare};
pub use bus::{EVENT_SCHEMA_VERSION, EventRecord};
pub use configuration::settle_configuration;
pub use delivery::{commit_message, commit_trailers};
pub use earlier::{Earlier, earlier};
#[cfg(feature = "cli")]
pub use export::export;
pub use failure::RunError;
pub use ground::{ForgetFault, TREES, forget_trees, is_known, kept_as, trees};
pub use hooks::Hook;
pub use lanes_from::lanes_at;
pub use lineage::whose;
pub use memory::MemoryTerms;
pub use record::{Again, RESUMED, Terms, forget_beside};
pub use replay::{Difference, Replayed, replay};
pub use resume::{ResumeFault, is_for_now, must_be_ours, spent, terms};
pub use stop::Stop;
pub use story::story;
pub use tape::cassette;
pub use told::{Told, told};
pub use uncommitted::{Uncommitted, must_be_committed};
#[cfg(feature = "cli")]
pub(crate) use watcher::Watcher;
pub use worktree::{base_at, commit_at, ground_at, project_of, worktrees};

use crate::id::RunId;
use crate::mcp;
use crate::process::wall::{WallChoice, WallLimits};
use crate::provider::Provider;
use crate::run::{AgentEvent, ModelTerms, TaskResult};
use crate::store;
use crate::task::{Baseline, Task};
use crate::tool::Mask;
use crate::workspace::Outlet;
use bus::Bus;
use drive::{Beginning, Drive};
use futures_util::FutureExt;
use perform::Hands;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The version of the form of the journal's records.
pub const JOURNAL_SCHEMA_VERSION: u32 = 2;
/// How long the end of a run waits for its watchers.
const SETTLE: Duration = Duration::from_millis(200);

/// What an agent works with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that the agent may change.
    pub workspace: PathBuf,
    /// Whose runs these are, where that is another folder: a checkout of the same project, which keeps them.
    pub project: Option<PathBuf>,
    /// Where journals and reports are kept; must be outside the workspace.
    pub state_dir: PathBuf,
    /// The models, in order of preference.
    pub models: Vec<Model>,
    /// Why there are none, to be said where one is needed: a gate that passes already needs none.
    pub no_models: Option<String>,
    /// The environment of the agent's commands, of hooks and of MCP servers.
    pub env: Vec<(String, String)>,
    /// The environment of the gate's steps.
    pub step_env: Vec<(String, String)>,
    /// Protected paths beyond the built-in ones and the task's, as globs.
    pub protect: Vec<String>,
    /// Where else the report is written.
    pub reports: Vec<PathBuf>,
    /// Where a patch of the verified work is written.
    pub patch: Option<PathBuf>,
    /// Lane steps at once.
    pub jobs: usize,
    /// The MCP servers that tasks may name.
    pub mcp: Vec<mcp::Server>,
    /// What runs go on from, if from anything.
    pub earlier: Option<Earlier>,
    /// How runs remember; `None`: they recall nothing and leave nothing.
    pub memory: Option<MemoryTerms>,
    /// What no event, report or memory has in it.
    pub secrets: Mask,
    /// The folder with the lanes that only the gate knows.
    pub holdout: Option<PathBuf>,
    /// The commit whose lanes are the gate; `None`: those of the workspace.
    pub lanes_from: Option<String>,
    /// When the base is judged, where the task does not say.
    pub baseline: Baseline,
    /// Which wall stands around the agent.
    pub wall: WallChoice,
    /// Whether the agent reaches the network from behind it.
    pub network: bool,
    /// What tools, and steps of the gate, may use up: each call and each step by itself.
    pub limits: WallLimits,
    /// The commands that follow every turn in which something may have changed.
    pub hooks: Vec<Hook>,
    /// Who agrees to calls that need it.
    pub asker: Asker,
    /// The fledge program, which a wall needs; `None`: only without a wall.
    pub helper: Option<PathBuf>,
}

/// A model and what is known of it.
#[derive(Debug, Clone)]
pub struct Model {
    /// Who answers.
    pub provider: Arc<dyn Provider>,
    /// Its price and its bounds.
    pub terms: ModelTerms,
    /// A digest of where it is asked; empty: at its provider's own address, or at none.
    pub place: String,
}

impl Model {
    /// A model of which nothing more is known.
    pub fn new(provider: impl Provider + 'static) -> Self {
        Self { provider: Arc::new(provider), terms: ModelTerms::default(), place: String::new() }
    }
}

impl From<Arc<dyn Provider>> for Model {
    fn from(provider: Arc<dyn Provider>) -> Self {
        Self { provider, terms: ModelTerms::default(), place: String::new() }
    }
}

/// Runs tasks, one at a time.
///
/// ```no_run
/// # async fn example(settings: fledge::driver::Settings) {
/// use fledge::{AgentEvent, driver::Agent, task::Task};
/// let mut agent = Agent::new(settings);
/// agent.on_event(|event| if let AgentEvent::Text(text) = event { print!("{text}") });
/// let result = agent.run_task(Task::from_prompt("Repair the date parser")).await;
/// # }
/// ```
#[derive(Debug)]
pub struct Agent {
    settings: Arc<Settings>,
    stop: Stop,
    bus: Bus,
    run_key: Option<String>,
    run_id: Option<RunId>,
    /// Why the last run could not be planned.
    unplanned: Arc<OnceLock<PlanFault>>,
    /// What a run that is taken up may cost from there on.
    usd_micros: Option<u64>,
}

impl Agent {
    /// An agent that nobody watches yet and that nobody can stop.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings: Arc::new(settings),
            stop: Stop::default(),
            bus: Bus::default(),
            run_key: None,
            run_id: None,
            unplanned: Arc::default(),
            usd_micros: None,
        }
    }

    /// Has `watcher` told of every event of the run itself, on a thread of its own. A slow one loses pieces of text and nothing else.
    pub fn on_event(&mut self, mut watcher: impl FnMut(AgentEvent) + Send + 'static) -> &mut Self {
        self.on_record(move |record| {
            if record.of.is_none() {
                watcher(record.event.clone());
            }
        })
    }

    /// The same, with the envelope (run, number, time), and with the events of sub-agents, of which it says whose they are.
    pub fn on_record(&mut self, watcher: impl FnMut(&EventRecord) + Send + 'static) -> &mut Self {
        self.bus.watch(watcher);
        self
    }

    /// The same for an `ear` that waits for nothing and cannot fail: it is told in the run's own thread, as soon as something is, and loses
    /// nothing.
    pub fn on_record_at_once(&mut self, ear: impl Fn(&EventRecord) + Send + Sync + 'static) -> &mut Self {
        self.bus.whisper(ear);
        self
    }

    /// Has `ask` say whether a call may run that needs somebody's approval. Without one nobody is there, and such calls are denied.
    /// Questions come one at a time, and the future of one that nobody waits for any more is dropped.
    pub fn on_confirmation<A>(&mut self, ask: impl Fn(Question) -> A + Send + Sync + 'static) -> &mut Self
    where
        A: Future<Output = Consent> + Send + 'static,
    {
        self.settings = Arc::new(Settings { asker: Asker::new(ask), ..Settings::clone(&self.settings) });
        self
    }

    /// Lets `token` cancel the run: it is over within two seconds, and no process that it started is left. One that is on its way to its
    /// report by then, or is being delivered, has one of them to end as it would have.
    #[must_use]
    pub fn with_cancellation(self, token: CancellationToken) -> Self {
        self.with_stop(Stop::of(token))
    }

    /// The same, with who asked for it.
    #[must_use]
    pub fn with_stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Waits until every watcher has seen everything, at most for `patience`.
    pub async fn settle(&self, patience: Duration) {
        self.bus.settle(patience).await;
    }

    /// Names the next run, so that it is found again by that name; no other run of the project may have it.
    #[must_use]
    pub fn with_run_key(mut self, key: Option<String>) -> Self {
        self.run_key = key;
        self
    }

    /// The id of the next run, for who has promised it to somebody; it must be one that no other run has.
    #[must_use]
    pub fn with_run_id(mut self, id: RunId) -> Self {
        self.run_id = Some(id);
        self
    }

    /// Gives a run that is taken up this bound of money, in millionths of a US dollar, all that it has cost included; `None`: the one that it
    /// was begun with.
    #[must_use]
    pub fn with_bound(mut self, usd_micros: Option<u64>) -> Self {
        self.usd_micros = usd_micros;
        self
    }

    /// Runs a task to its end.
    ///
    /// # Errors
    /// Every end but verified, skipped and cancelled; the error carries the whole result.
    pub async fn run_task(&mut self, task: Task) -> Result<TaskResult, RunError> {
        self.must_be_apart()?;
        let id = self.run_id.take().unwrap_or_else(|| RunId::new(uuid::Uuid::now_v7().to_string()));
        let charter = self.charter(&task, id);
        let key = self.run_key.take();
        self.find_outlets(&[])?;
        let worktree = self.choose_worktree(&task, &charter).map_err(RunError::NotBegun)?;
        let settings = self.settings_in(worktree.as_ref());
        let journal = record::begin(&settings, &charter, &task, worktree.as_ref(), key, now_ms());
        let journal = journal.map_err(RunError::NotBegun)?;
        let hands = Hands::new(settings, Arc::new(task), journal.folder(), self.stop.clone()).within(worktree);
        self.unplanned = hands.unplanned.clone();
        let drive = Drive::new(&self.bus, &self.stop, hands, journal, charter.run.clone());
        self.see_through(drive, charter.title.clone(), Beginning::Task(Box::new(charter))).await
    }

    /// Why the run that it has driven last could not be planned, with the places in files: its result says it in words alone.
    pub fn unplanned(&self) -> Option<&PlanFault> {
        self.unplanned.get()
    }

    /// What the agent may change must not hold what it is judged by.
    fn must_be_apart(&self) -> Result<(), RunError> {
        if store::is_inside(&self.settings.state_dir, &self.settings.workspace) {
            return Err(RunError::StateInside(self.settings.state_dir.clone()));
        }
        Ok(())
    }

    /// Finds where files come to be that are written at the end, before the agent can change where that is. Those `known` from an earlier
    /// process were found then.
    fn find_outlets(&mut self, known: &[PathBuf]) -> Result<(), RunError> {
        let Settings { workspace, reports, patch, .. } = &*self.settings;
        let find = |path: &PathBuf| match known.contains(path) {
            true => Ok(path.clone()),
            false => Outlet::find(path, workspace).map(|outlet| outlet.path().to_owned()).map_err(RunError::NoOutlet),
        };
        let reports = reports.iter().map(find).collect::<Result<_, _>>()?;
        let patch = patch.as_ref().map(find).transpose()?;
        self.settings = Arc::new(Settings { reports, patch, ..Settings::clone(&self.settings) });
        Ok(())
    }

    /// Drives a run to its end, from wherever it is.
    async fn see_through(
        &self,
        mut drive: Drive<'_>,
        title: String,
        beginning: Beginning,
    ) -> Result<TaskResult, RunError> {
        if AssertUnwindSafe(drive.go(beginning)).catch_unwind().await.is_err() {
            drive.after_panic().await;
        }
        if drive.rests {
            drive.inbox.abort().await; // what it had under way is begun anew by a resume
        }
        drive.leave().await;
        if drive.rests {
            self.bus.settle(SETTLE).await;
            return Err(RunError::Rests);
        }
        // A run that was cancelled before its start never heard its name.
        let result = drive.run.result().map(|result| TaskResult { run: drive.id().clone(), title, ..result });
        drive.end_unreported(result.as_ref());
        self.bus.settle(SETTLE).await;
        RunError::judge(result.ok_or(RunError::NeverEnded)?)
    }
}

#[expect(clippy::disallowed_methods, reason = "the driver is where time comes in")]
fn now() -> Instant {
    Instant::now()
}

/// The time of day, in milliseconds since 1970.
fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// The time of day, as RFC 3339 in UTC with milliseconds.
fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The time of day as mails have it, in UTC.
fn mail_date() -> String {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    jiff::fmt::rfc2822::to_string(&now).unwrap_or_default()
}

#[cfg(test)]
mod stopped_tests;
#[cfg(test)]
mod tests;
