//! A run that is driven here, as others see it: what it does, what it asks, what was told of it, and how it is stopped.

use super::asking::Questions;
use super::log::Log;
use super::ring::Ring;
use crate::driver::{EventRecord, Stop};
use crate::id::RunId;
use crate::run::{AgentEvent, Phase, StateName};
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// One of them.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) run: RunId,
    pub(super) log: Log,
    pub(super) questions: Arc<Questions>,
    pub(super) stop: Stop,
    ring: Ring,
    course: Mutex<Course>,
    unwanted: CancellationToken,
}

#[derive(Debug, Default)]
struct Course {
    /// Whether anything was told of it.
    has_begun: bool,
    turns: u64,
    doing: String,
}

impl Live {
    pub(super) fn new(run: RunId, life: u64, is_new: bool, ring: Ring) -> Arc<Self> {
        let questions = Questions::new(run.clone(), life, ring.clone());
        let (log, stop, course) = (Log::new(is_new), Stop::default(), Mutex::default());
        Arc::new(Self { run, log, questions, stop, ring, course, unwanted: CancellationToken::new() })
    }

    /// Has it end as cancelled. One that another process has left can only be ended once it was taken up.
    pub(super) fn cancel(&self) {
        self.unwanted.cancel();
        if self.course().has_begun {
            self.stop.token().cancel();
        }
    }

    /// Whether somebody wants it to end.
    pub(super) fn is_unwanted(&self) -> bool {
        self.unwanted.is_cancelled()
    }

    /// Waits until somebody does.
    pub(super) async fn unwanted(&self) {
        self.unwanted.cancelled().await;
    }

    /// What it does, in a few words.
    pub(super) fn doing(&self) -> Option<String> {
        Some(self.course().doing.clone()).filter(|doing| !doing.is_empty())
    }

    /// Something was told of it.
    pub(super) fn hear(&self, record: &EventRecord) {
        self.log.add(record);
        let news = {
            let mut course = self.course();
            let begins = !std::mem::replace(&mut course.has_begun, true);
            if self.is_unwanted() {
                self.stop.token().cancel();
            }
            let doing = if record.of.is_none() { doing(&record.event, &mut course.turns) } else { None };
            let changes = doing.is_some();
            course.doing = doing.unwrap_or_else(|| std::mem::take(&mut course.doing));
            (begins || changes).then(|| json!({ "id": self.run, "state": "running", "doing": course.doing }))
        };
        if let Some(news) = news {
            self.ring.run(news);
        }
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a run is busy with from this event on, in the words of `fledge runs show`.
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
