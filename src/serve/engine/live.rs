//! A run that this server drives, as other parts see it: its current action, its questions, its
//! log, and its stop.

use super::EngineBroadcast;
use super::asking::OpenQuestions;
use super::log::EventLog;
use crate::driver::{EventRecord, StopToken};
use crate::id::RunId;
use crate::run::{AgentEvent, Phase, StateName};
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// A live run.
#[derive(Debug)]
pub(super) struct LiveRun {
    pub(super) run: RunId,
    pub(super) log: EventLog,
    pub(super) questions: Arc<OpenQuestions>,
    pub(super) stop: StopToken,
    ring: EngineBroadcast,
    progress: Mutex<RunProgress>,
    unwanted: CancellationToken,
}

#[derive(Debug, Default)]
struct RunProgress {
    /// True once the run has an event.
    has_begun: bool,
    turns: u64,
    doing: String,
}

impl LiveRun {
    pub(super) fn new(run: RunId, life: u64, is_new: bool, ring: EngineBroadcast) -> Arc<Self> {
        let questions = OpenQuestions::new(run.clone(), life, ring.clone());
        let (log, stop, progress) = (EventLog::new(is_new), StopToken::default(), Mutex::default());
        Arc::new(Self { run, log, questions, stop, ring, progress, unwanted: CancellationToken::new() })
    }

    /// Cancels the run. A run that another process left can end only after it was resumed.
    pub(super) fn cancel(&self) {
        self.unwanted.cancel();
        if self.progress().has_begun {
            self.stop.token().cancel();
        }
    }

    /// Returns true if the run was cancelled.
    pub(super) fn is_unwanted(&self) -> bool {
        self.unwanted.is_cancelled()
    }

    /// Waits until the run is cancelled.
    pub(super) async fn unwanted(&self) {
        self.unwanted.cancelled().await;
    }

    /// Returns true if this server has begun or resumed the run.
    pub(super) fn has_begun(&self) -> bool {
        self.progress().has_begun
    }

    /// Returns a short description of the run's current action.
    pub(super) fn doing(&self) -> Option<String> {
        Some(self.progress().doing.clone()).filter(|doing| !doing.is_empty())
    }

    /// Processes an event of the run.
    pub(super) fn add_record(&self, record: &EventRecord) {
        self.log.add(record);
        let news = {
            let mut progress = self.progress();
            let begins = !std::mem::replace(&mut progress.has_begun, true);
            if self.is_unwanted() {
                self.stop.token().cancel();
            }
            let doing = if record.of.is_none() { doing(&record.event, &mut progress.turns) } else { None };
            let changes = doing.is_some();
            progress.doing = doing.unwrap_or_else(|| std::mem::take(&mut progress.doing));
            (begins || changes).then(|| json!({ "id": self.run, "state": "running", "doing": progress.doing }))
        };
        if let Some(news) = news {
            self.ring.run(news);
        }
    }

    fn progress(&self) -> MutexGuard<'_, RunProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the run's action after this event, in the wording of `fledge runs show`; `None` if the
/// action does not change.
fn doing(event: &AgentEvent, turns: &mut u64) -> Option<String> {
    let phase = match event {
        AgentEvent::Resumed { turn, .. } => {
            *turns = turn.saturating_sub(1);
            return None;
        }
        AgentEvent::StateChanged(StateName::Planning) => return Some("planning".into()),
        AgentEvent::StateChanged(StateName::Verifying) => return Some("running the gate".into()),
        AgentEvent::StateChanged(StateName::Reporting) => return Some("writing the report".into()),
        AgentEvent::PhaseChanged(phase) => phase,
        _ => return None,
    };
    Some(match phase {
        Phase::CallingModel => {
            *turns += 1;
            format!("waiting for the model, turn {turns}")
        }
        Phase::BackingOff => {
            *turns = turns.saturating_sub(1);
            "waiting before another try".into()
        }
        Phase::Confirming => "waiting for a person's answer".into(),
        Phase::RunningTools => format!("running tools of turn {turns}"),
        Phase::Dispatching => "a sub-agent works".into(),
        Phase::RunningHooks => "finishing the turn".into(),
        Phase::AnsweringQuery => "looking something up".into(),
        Phase::Compacting => "shortening the conversation".into(),
        Phase::JudgingBase => "waiting for the checks of the base".into(),
    })
}
