//! The one loop: takes an event, writes it to the journal, hands it to the machine, does what the machine asks for.
//!
//! ```text
//! first written,  journal.append(&event)
//! then decided,   for action in run.handle(now, event)
//! then done.          perform(action)
//! ```

mod briefing;
mod bus;
mod failure;
mod inbox;
mod perform;
mod record;
mod report;
mod stop;
mod watcher;

pub use briefing::{Briefing, PlanFault, prepare};
pub use bus::{EVENT_SCHEMA_VERSION, EventRecord};
pub use failure::RunError;
pub use stop::Stop;
#[cfg(feature = "cli")]
pub(crate) use watcher::Watcher;

use crate::id::RunId;
use crate::limits::Limits;
use crate::moment::Moment;
use crate::provider::Provider;
use crate::run::{Action, AgentEvent, Charter, Event, Run, StateName, TaskResult};
use crate::store::{self, Journal, StoreError};
use crate::task::{GateChoice, Task};
use crate::verdict::Reason;
use bus::Bus;
use futures_util::FutureExt;
use inbox::{Happened, Inbox};
use perform::Hands;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The version of the form of the journal's records.
pub const JOURNAL_SCHEMA_VERSION: u32 = 1;
/// How long the end of a run waits for its watchers.
const SETTLE: Duration = Duration::from_millis(200);

/// What an agent works with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that the agent may change.
    pub workspace: PathBuf,
    /// Where journals and reports are kept; must be outside the workspace.
    pub state_dir: PathBuf,
    /// The models, in order of preference.
    pub models: Vec<Arc<dyn Provider>>,
    /// The whole environment of tools and lane steps.
    pub env: Vec<(String, String)>,
    /// Protected paths beyond the built-in ones and the task's, as globs.
    pub protect: Vec<String>,
    /// Where else the report is written.
    pub reports: Vec<PathBuf>,
    /// Lane steps at once.
    pub jobs: usize,
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
}

impl Agent {
    /// An agent that nobody watches yet and that nobody can stop.
    pub fn new(settings: Settings) -> Self {
        Self { settings: Arc::new(settings), stop: Stop::default(), bus: Bus::default() }
    }

    /// Has `watcher` told of every event, on a thread of its own. A slow one loses pieces of text and nothing else.
    pub fn on_event(&mut self, mut watcher: impl FnMut(AgentEvent) + Send + 'static) -> &mut Self {
        self.on_record(move |record| watcher(record.event.clone()))
    }

    /// The same, with the envelope: run, number, time.
    pub fn on_record(&mut self, watcher: impl FnMut(&EventRecord) + Send + 'static) -> &mut Self {
        self.bus.watch(watcher);
        self
    }

    /// Lets `token` cancel the run: it is over within two seconds, and no process that it started is left.
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

    /// Runs a task to its end.
    ///
    /// # Errors
    /// Every end but verified, skipped and cancelled; the error carries the whole result.
    pub async fn run_task(&mut self, task: Task) -> Result<TaskResult, RunError> {
        let workspace = self.settings.workspace.clone();
        let id = RunId::new(uuid::Uuid::now_v7().to_string());
        if store::is_inside(&self.settings.state_dir, &workspace) {
            return Err(RunError::StateInside(self.settings.state_dir.clone()));
        }
        let charter = self.charter(&task, id);
        let journal = record::begin(&self.settings, &charter, &task, now_ms()).map_err(RunError::NotBegun)?;
        let (name, title) = (charter.run.clone(), charter.title.clone());
        let hands = Hands::new(self.settings.clone(), Arc::new(task), journal.folder());
        let mut drive = Drive::new(&self.bus, &self.stop, hands, journal, charter.run.clone());
        if AssertUnwindSafe(drive.go(charter)).catch_unwind().await.is_err() {
            drive.after_panic().await;
        }
        // A run that was cancelled before its start never heard its name.
        let result = drive.run.result().map(|result| TaskResult { run: name, title, ..result });
        drive.end_unreported(result.as_ref());
        self.bus.settle(SETTLE).await;
        RunError::judge(result.ok_or(RunError::NeverEnded)?)
    }

    fn charter(&self, task: &Task, run: RunId) -> Charter {
        let defaults = Limits::default();
        let limits = Limits {
            turns: task.budget.turns.unwrap_or(defaults.turns),
            tokens: task.budget.tokens.or(defaults.tokens),
            time_ms: task.budget.time_ms.unwrap_or(defaults.time_ms),
            ..defaults
        };
        let seed = run.as_str().bytes().fold(0_u64, |seed, byte| seed.rotate_left(7) ^ u64::from(byte));
        Charter {
            verify: task.gate != GateChoice::Skip,
            max_retries: task.max_retries,
            on_tamper: task.on_tamper,
            models: self.settings.models.iter().map(|model| model.name()).collect(),
            limits,
            seed,
            ..Charter::new(run, task.title.clone(), task.prompt.clone())
        }
    }
}

/// One run under way.
struct Drive<'a> {
    run: Run,
    bus: &'a Bus,
    stop: &'a Stop,
    hands: Hands,
    inbox: Inbox,
    journal: Journal,
    /// Why the journal can no longer be written.
    broken: Option<StoreError>,
    id: RunId,
    started: Instant,
    seq: u64,
    /// What the model has said of the answer under way, for a run that is cancelled in the middle of it.
    said: String,
    stop_told: bool,
    /// Whether the journal says how the run ended.
    is_ended: bool,
}

impl<'a> Drive<'a> {
    fn new(bus: &'a Bus, stop: &'a Stop, hands: Hands, journal: Journal, id: RunId) -> Self {
        Self {
            run: Run::new(),
            bus,
            stop,
            hands,
            inbox: Inbox::new(),
            journal,
            broken: None,
            id,
            started: now(),
            seq: 0,
            said: String::new(),
            stop_told: false,
            is_ended: false,
        }
    }

    async fn go(&mut self, charter: Charter) {
        if self.stop.token().is_cancelled() {
            return self.take(Event::CancelRequested { cause: self.stop.cause(), said: String::new() }).await;
        }
        self.take(Event::TaskSubmitted { charter: Box::new(charter) }).await;
        while self.run.state() != StateName::Idle {
            let event = self.next().await;
            self.take(event).await;
        }
    }

    /// Waits for the next thing to happen, and names it.
    async fn next(&mut self) -> Event {
        let due = self.run.deadline().and_then(|moment| self.started.checked_add(moment.since_start()));
        match self.inbox.next(due, self.stop, !self.stop_told).await {
            Happened::Event(event) => event,
            Happened::Deadline => Event::DeadlinePassed,
            Happened::Stop => {
                self.stop_told = true;
                Event::CancelRequested { cause: self.stop.cause(), said: std::mem::take(&mut self.said) }
            }
        }
    }

    /// First written, then decided, then done.
    async fn take(&mut self, event: Event) {
        let actions = self.decide(event);
        if actions.iter().any(Action::is_irrevocable) && self.broken.is_none() {
            self.broken = self.journal.sync().err();
        }
        let is_over = matches!(self.run.state(), StateName::Reporting | StateName::Idle);
        if let (Some(error), false) = (&self.broken, is_over) {
            tracing::error!(%error, "the journal cannot be written: the run ends");
            let ending = self.decide_unwritten(self.moment(), Event::LimitReached { reason: Reason::IoError });
            let told = actions.into_iter().filter(|action| matches!(action, Action::Emit { .. }));
            self.tell(told.chain(ending).collect()).await;
        } else {
            self.tell(actions).await;
        }
    }

    /// Writes an event down and lets the machine decide on it.
    fn decide(&mut self, mut event: Event) -> Vec<Action> {
        let at = self.moment(); // one and the same for the journal and the machine, so that a replay decides alike
        if !event.is_transient() && self.broken.is_none() {
            self.broken = self.write(at, &event).err();
        }
        if let Event::ReportSaved { call } | Event::ReportFailed { call, .. } = event {
            self.broken = self.broken.take().or_else(|| self.end(at, &event).err());
            let why = self.broken.as_ref().map(|error| briefing::chain(error));
            // Nothing is said to have ended well whose journal is not whole and safe.
            if let (Event::ReportSaved { .. }, Some(why)) = (&event, why) {
                event = self.hands.report_failure(call, why, &self.run, true);
            }
        }
        self.decide_unwritten(at, event)
    }

    fn write(&mut self, at: Moment, event: &Event) -> Result<(), StoreError> {
        self.journal.append(at.0, event.name(), &record::to_json(event)?)
    }

    /// Writes down how the run ends with this event, and makes the journal safe.
    fn end(&mut self, at: Moment, event: &Event) -> Result<(), StoreError> {
        let mut ending = self.run.clone();
        ending.handle(at, event.clone());
        match ending.result().filter(|_| ending.state() == StateName::Idle) {
            None => self.journal.sync(),
            Some(result) => {
                self.journal.finish(&record::outcome(&result, now_ms()))?;
                self.is_ended = true;
                Ok(())
            }
        }
    }

    /// The same for a run that ended without a report: cancelled before its start, or after a panic.
    fn end_unreported(&mut self, result: Option<&TaskResult>) {
        let (false, None, Some(result)) = (self.is_ended, &self.broken, result) else { return };
        if let Err(error) = self.journal.finish(&record::outcome(result, now_ms())) {
            tracing::error!(%error, "the end of the run cannot be written down");
        }
    }

    fn decide_unwritten(&mut self, at: Moment, event: Event) -> Vec<Action> {
        let (name, before) = (event.name(), self.run.label());
        if let Event::ModelDelta { delta: crate::chat::Delta::Text(text), .. } = &event {
            self.said.push_str(text);
        } else if matches!(event, Event::ModelCompleted { .. } | Event::ModelFailed { .. }) {
            self.said.clear();
        }
        let actions = self.run.handle(at, event);
        let after = self.run.label();
        if before != after {
            tracing::info!(run = %self.id, from = before, to = after, by = name, "transition");
        }
        actions
    }

    /// Does what the machine asked for, in its order.
    async fn tell(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Emit { event } => self.emit(event),
                Action::AbortInFlight => {
                    for event in self.inbox.abort().await {
                        for late in self.decide(event) {
                            if let Action::Emit { event } = late {
                                self.emit(event); // in Reporting a late answer is booked and shown, and begins nothing
                            }
                        }
                    }
                }
                Action::SaveReport { call } if self.broken.is_some() => {
                    let why = self.broken.as_ref().map(|error| briefing::chain(error)).unwrap_or_default();
                    let failed = self.hands.report_failure(call, why, &self.run, true);
                    self.inbox.outbox().send(failed);
                }
                action => self.hands.perform(action, &self.run, &mut self.inbox),
            }
        }
    }

    fn emit(&mut self, event: AgentEvent) {
        if self.bus.is_watched() {
            self.seq += 1;
            let (run, seq, at) = (self.id.clone(), self.seq, timestamp());
            self.bus.tell(EventRecord { schema_version: EVENT_SCHEMA_VERSION, run, seq, at, event });
        }
    }

    /// The driver itself panicked: what runs is killed, and the report is written all the same.
    async fn after_panic(&mut self) {
        crate::process::kill_everything();
        self.inbox.abort().await;
        let ending = self.run.handle(self.moment(), Event::LimitReached { reason: Reason::Internal });
        self.tell(ending).await;
        while self.run.state() == StateName::Reporting {
            let Happened::Event(event) = self.inbox.next(None, self.stop, false).await else { return };
            let actions = self.run.handle(self.moment(), event);
            self.tell(actions).await;
        }
    }

    fn moment(&self) -> Moment {
        Moment(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
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

#[cfg(test)]
mod tests;
