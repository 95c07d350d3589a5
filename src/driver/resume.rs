//! Resuming: the journal of an interrupted run is folded, what was never answered is done again or, where it may have changed something,
//! answered with that; then the run goes on. An interrupted resume is resumed like any other run.

use super::drive::{Beginning, Drive};
use super::fold::Folded;
use super::perform::Hands;
use super::record::{RESUMED, Terms};
use super::{Agent, JOURNAL_SCHEMA_VERSION, RunError, timestamp};
use crate::id::RunId;
use crate::run::{StateName, TaskResult};
use crate::store::{Events, Journal, Record, RunHead, RunRow, RunState, Store, StoreError, tidy_beside};
use crate::verdict::Reason;
use std::sync::Arc;

/// A run cannot be taken up again, or not be replayed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum ResumeFault {
    /// It is not there, damaged, or driven by somebody else.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It ended, and was not verified.
    #[error(
        "run {run} is over ({reason}): there is nothing to resume; `fledge runs continue` starts another run with its conversation"
    )]
    Over { run: RunId, reason: String },
    /// It has not ended yet.
    #[error("run {run} is not over: `fledge runs resume` goes on with it")]
    NotOver { run: RunId },
    /// It worked in another folder.
    #[error("run {run} works in {theirs}, and this is {ours}")]
    Elsewhere { run: RunId, theirs: String, ours: String },
    /// It worked with other models.
    #[error("run {run} works with {theirs}, and by the configuration of today that would be {ours}")]
    OtherModels { run: RunId, theirs: String, ours: String },
    /// Its records have a newer form.
    #[error(
        "the journal of run {run} has version {found}, and this fledge knows versions up to {JOURNAL_SCHEMA_VERSION}"
    )]
    Newer { run: RunId, found: u32 },
    /// A record, or with number 0 what the run was begun with, is not what this fledge understands.
    #[error("record {seq} of the journal of run {run} cannot be understood")]
    Unclear { run: RunId, seq: u64, source: serde_json::Error },
    /// The gate from before the agent started is not there as it was. It is never frozen again from what an agent may have changed.
    #[error("the frozen gate of run {run} is gone: {why}; start another run")]
    Gate { run: RunId, why: String },
}

impl ResumeFault {
    /// The reason whose exit code says it.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Store(StoreError::Held { .. }) => Reason::Blocked,
            Self::Store(StoreError::Unknown { .. } | StoreError::Ambiguous { .. }) => Reason::BadInput,
            Self::Over { .. } | Self::NotOver { .. } | Self::Elsewhere { .. } | Self::OtherModels { .. } => {
                Reason::BadInput
            }
            Self::Gate { .. } => Reason::GateErrored,
            Self::Store(_) | Self::Newer { .. } | Self::Unclear { .. } => Reason::IoError,
        }
    }
}

/// What a run was begun with.
///
/// # Errors
/// When there is no such run, or it was begun by a newer fledge.
pub fn terms(store: &Store, run: &RunId) -> Result<(RunRow, Terms), ResumeFault> {
    let row = store.run(run)?;
    readable(&row.head)?;
    let terms = serde_json::from_str(&store.task(run)?.settings);
    Ok((row, terms.map_err(|source| ResumeFault::Unclear { run: run.clone(), seq: 0, source })?))
}

/// Whether this program understands the records of a run.
pub(super) fn readable(head: &RunHead) -> Result<(), ResumeFault> {
    if head.journal_version > JOURNAL_SCHEMA_VERSION {
        return Err(ResumeFault::Newer { run: head.id.clone(), found: head.journal_version });
    }
    Ok(())
}

impl Agent {
    /// Goes on with a run that was interrupted, or whose report could not be written, to its end. A run that was verified gives its result
    /// again, and nothing is begun.
    ///
    /// # Errors
    /// As those of [`Agent::run_task`]; [`RunError::NotResumed`] when it cannot be gone on with.
    pub async fn resume(&mut self, run: &RunId) -> Result<TaskResult, RunError> {
        self.must_be_apart()?;
        let settings = &self.settings;
        let store = Store::open(&settings.state_dir, &settings.workspace).map_err(ResumeFault::from)?;
        let (row, terms) = terms(&store, run)?;
        self.must_fit(&row)?;
        if let RunState::Ended(outcome) = row.state {
            let records = store.events(run, 0).map_err(ResumeFault::from)?;
            let folded = folded(run, records)?;
            let hands = Hands::new(self.settings.clone(), Arc::new(terms.task), store.folder(run));
            hands.correct_report(&folded.run).map_err(ResumeFault::from)?;
            if !outcome.verified {
                return Err(ResumeFault::Over { run: run.clone(), reason: outcome.reason }.into());
            }
            return RunError::judge(folded.run.result().ok_or(RunError::NeverEnded)?);
        }
        let mut folded = Folded::default();
        let mut journal = Journal::reopen(&store, run, |record| take(&mut folded, run, &record))?;
        settings.reports.iter().for_each(|path| tidy_beside(path));
        folded.go_back();
        let (open, title) = (folded.open(), terms.task.title.clone());
        let (is_new, state) = (folded.asked.is_none(), folded.run.state());
        let beginning = if is_new {
            Beginning::Task(Box::new(self.charter(&terms.task, run.clone())))
        } else {
            Beginning::Open(open)
        };
        let hands = Hands::new(self.settings.clone(), Arc::new(terms.task), journal.folder());
        if matches!(state, StateName::Executing | StateName::Verifying) {
            let gate_file = folded.gate_file.as_deref().unwrap_or_default();
            let ready = hands.make_ready(gate_file, folded.sandbox, &folded.changes).await;
            ready.map_err(|why| ResumeFault::Gate { run: run.clone(), why })?;
        }
        if state == StateName::Idle {
            hands.correct_report(&folded.run).map_err(ResumeFault::from)?;
        } else {
            let who = serde_json::json!({ "type": "resumed", "at": timestamp(), "process": std::process::id() });
            let told = journal.append(folded.at.0, RESUMED, &who.to_string());
            told.and_then(|()| journal.sync()).map_err(ResumeFault::from)?;
        }
        let drive = Drive::new(&self.bus, &self.stop, hands, journal, run.clone()).go_on_from(folded);
        self.see_through(drive, title, beginning).await
    }

    /// Whether it is the run of this workspace and, where it is to go on, of these models.
    fn must_fit(&self, row: &RunRow) -> Result<(), ResumeFault> {
        let RunRow { head, state } = row;
        let ours = self.settings.workspace.display().to_string();
        if head.workspace != ours {
            return Err(ResumeFault::Elsewhere { run: head.id.clone(), theirs: head.workspace.clone(), ours });
        }
        let models: Vec<String> = self.settings.models.iter().map(|model| model.name()).collect();
        if !matches!(state, RunState::Ended(_)) && models != head.models {
            let (theirs, ours) = (head.models.join(", "), models.join(", "));
            return Err(ResumeFault::OtherModels { run: head.id.clone(), theirs, ours });
        }
        Ok(())
    }
}

/// The fold of the records of a run.
pub(super) fn folded(run: &RunId, records: Events<'_>) -> Result<Folded, ResumeFault> {
    let mut folded = Folded::default();
    for record in records {
        take(&mut folded, run, &record?)?;
    }
    Ok(folded)
}

pub(super) fn take(folded: &mut Folded, run: &RunId, record: &Record) -> Result<(), ResumeFault> {
    let wrong = |source| ResumeFault::Unclear { run: run.clone(), seq: record.seq, source };
    folded.take(record).map_err(wrong)
}
