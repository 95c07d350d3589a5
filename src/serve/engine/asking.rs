//! Questions of runs to whoever looks after the server: each waits until it is answered, its time is over, or its run is stopped. Those of
//! one run come one after the other, those of different runs side by side.

use super::ring::Ring;
use crate::driver::{Asker, Consent, Question};
use crate::duration::milliseconds;
use crate::id::RunId;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A question that is open.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Pending {
    /// What an answer names; no other question of the run ever has it.
    pub id: String,
    /// The sub-agent that wants it, by its path; null for the run itself.
    pub of: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments, as they will be used.
    pub args: Value,
    /// Since when it is asked, as RFC 3339.
    pub asked_at: String,
    /// When it counts as denied; null for never.
    pub until: Option<String>,
}

/// The questions of a run that are open.
#[derive(Debug)]
pub(super) struct Questions {
    run: RunId,
    life: u64,
    open: Mutex<Open>,
    ring: Ring,
}

#[derive(Debug, Default)]
struct Open {
    asked: u64,
    all: BTreeMap<u64, (Pending, oneshot::Sender<Consent>)>,
}

impl Questions {
    pub(super) fn new(run: RunId, life: u64, ring: Ring) -> Arc<Self> {
        Arc::new(Self { run, life, open: Mutex::default(), ring })
    }

    /// Who asks them.
    pub(super) fn asker(self: &Arc<Self>) -> Asker {
        let questions = Arc::clone(self);
        Asker::new(move |question| Arc::clone(&questions).ask(question))
    }

    /// Those that are open, the oldest first.
    pub(super) fn all(&self) -> Vec<Pending> {
        self.open().all.values().map(|(pending, _)| pending.clone()).collect()
    }

    /// How many are.
    pub(super) fn count(&self) -> usize {
        self.open().all.len()
    }

    /// Answers one; `false` when it is not open any more.
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
        self.tell();
        answered.await.unwrap_or_else(|_| Consent::No("the server stops".into()))
    }

    fn put(&self, question: Question, answer: oneshot::Sender<Consent>) -> u64 {
        let now = super::now_ms();
        let until =
            question.within.map(|within| now.saturating_add(i64::try_from(milliseconds(within)).unwrap_or(i64::MAX)));
        let mut open = self.open();
        open.asked += 1;
        let number = open.asked;
        let Question { run: _, of, tool, args, within: _ } = question;
        let pending = Pending {
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

    fn tell(&self) {
        self.ring.confirmation(json!({ "run": self.run, "pending": self.count() }));
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Withdraws a question when nobody waits for its answer any more.
struct Withdrawn<'q> {
    questions: &'q Questions,
    number: u64,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.questions.open().all.remove(&self.number);
        self.questions.tell();
    }
}
