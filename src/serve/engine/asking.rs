//! Questions of runs to the operator of the server. Each question waits until it is answered, it
//! expires, or its run is stopped. A run asks one question at a time; different runs ask
//! concurrently.

use super::EngineBroadcast;
use crate::driver::{Asker, Consent, Question};
use crate::duration::milliseconds;
use crate::id::RunId;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// An open question.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PendingQuestion {
    /// The id that an answer refers to. It is unique within the run.
    pub id: String,
    /// The path of the sub-agent that asks; null for the run itself.
    pub of: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments that the call will use.
    pub args: Value,
    /// The time of the question, as RFC 3339.
    pub asked_at: String,
    /// The time at which the call counts as denied; null for never.
    pub until: Option<String>,
}

/// The open questions of a run.
#[derive(Debug)]
pub(super) struct OpenQuestions {
    run: RunId,
    life: u64,
    open: Mutex<Open>,
    ring: EngineBroadcast,
}

#[derive(Debug, Default)]
struct Open {
    asked: u64,
    all: BTreeMap<u64, (PendingQuestion, oneshot::Sender<Consent>)>,
}

impl OpenQuestions {
    pub(super) fn new(run: RunId, life: u64, ring: EngineBroadcast) -> Arc<Self> {
        Arc::new(Self { run, life, open: Mutex::default(), ring })
    }

    /// Returns the callback by which the run asks questions.
    pub(super) fn asker(self: &Arc<Self>) -> Asker {
        let questions = Arc::clone(self);
        Asker::new(move |question| Arc::clone(&questions).ask(question))
    }

    /// Returns the open questions, the oldest first.
    pub(super) fn all(&self) -> Vec<PendingQuestion> {
        self.open().all.values().map(|(pending, _)| pending.clone()).collect()
    }

    /// Returns the number of open questions.
    pub(super) fn count(&self) -> usize {
        self.open().all.len()
    }

    /// Answers a question. Returns `false` if it is no longer open.
    pub(super) fn answer(&self, id: &str, consent: Consent) -> bool {
        let answer = {
            let mut open = self.open();
            let number = open.all.iter().find(|(_, (pending, _))| pending.id == id).map(|(number, _)| *number);
            number.and_then(|number| open.all.remove(&number))
        };
        answer.is_some_and(|(_, answer)| answer.send(consent).is_ok())
    }

    async fn ask(self: Arc<Self>, question: Question) -> Consent {
        let (answer, answered) = oneshot::channel();
        let number = self.put(question, answer);
        let _open = Withdrawn { questions: &self, number };
        self.publish();
        answered.await.unwrap_or_else(|_| Consent::No("the server is stopping".into()))
    }

    fn put(&self, question: Question, answer: oneshot::Sender<Consent>) -> u64 {
        let now = super::now_ms();
        let until =
            question.within.map(|within| now.saturating_add(i64::try_from(milliseconds(within)).unwrap_or(i64::MAX)));
        let mut open = self.open();
        open.asked += 1;
        let number = open.asked;
        let Question { run: _, of, tool, args, within: _ } = question;
        let pending = PendingQuestion {
            id: format!("{}-{number}", self.life),
            of,
            tool,
            args,
            asked_at: crate::report::runs::rfc3339(now),
            until: until.map(crate::report::runs::rfc3339),
        };
        open.all.insert(number, (pending, answer));
        number
    }

    fn publish(&self) {
        self.ring.confirmation(json!({ "run": self.run, "pending": self.count() }));
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that withdraws a question when its answer is no longer awaited.
struct Withdrawn<'q> {
    questions: &'q OpenQuestions,
    number: u64,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.questions.open().all.remove(&self.number);
        self.questions.publish();
    }
}
