//! Resuming: the journal of an interrupted run is folded, what was never answered is done again or, where it may have changed something,
//! answered with that; then the run goes on. An interrupted resume is resumed like any other run.

use super::bus::next_life;
use super::drive::{Beginning, Drive};
use super::fold::Folded;
use super::perform::Hands;
use super::perform::Unready;
use super::record::{Again, RESUMED, Resumed, Terms};
use super::{Agent, EventRecord, JOURNAL_SCHEMA_VERSION, RunError, SETTLE};
use crate::id::RunId;
use crate::run::{StateName, TaskResult};
use crate::store::{Events, Journal, Outcome, Record, RunHead, RunRow, RunState, Store, StoreError};
use crate::task::Task;
use crate::verdict::{Reason, StopCause};
use crate::workspace::Outlet;
use crate::workspace::worktree::Worktree;
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
    #[error("the frozen gate of run {run} is gone: {why}")]
    Gate { run: RunId, why: String },
    /// Its report says something else than its journal, and cannot be written anew.
    #[error("the report of run {run} cannot be corrected: {why}")]
    Report { run: RunId, why: String },
    /// It is verified, and its patch cannot be written once more.
    #[error("run {run} is verified, and its patch cannot be written again: {why}")]
    Patch { run: RunId, why: String },
    /// Somebody asked for a stop before it went on.
    #[error("run {run} was not gone on with: it was asked to stop")]
    Stopped { run: RunId, by: StopCause },
    /// Its gate or its tools cannot be made ready for now.
    #[error("run {run} cannot go on: {why}")]
    NotReady { run: RunId, why: String },
}

impl ResumeFault {
    /// The reason whose exit code says it.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Store(StoreError::Held { .. }) => Reason::Blocked,
            Self::Store(StoreError::Unknown { .. } | StoreError::Ambiguous { .. } | StoreError::Elsewhere { .. }) => {
                Reason::BadInput
            }
            Self::Over { .. } | Self::NotOver { .. } | Self::Elsewhere { .. } | Self::OtherModels { .. } => {
                Reason::BadInput
            }
            Self::Stopped { .. } => Reason::Cancelled,
            Self::Gate { .. } | Self::NotReady { .. } => Reason::GateErrored,
            Self::Store(_) | Self::Newer { .. } | Self::Unclear { .. } => Reason::IoError,
            Self::Report { .. } | Self::Patch { .. } => Reason::IoError,
        }
    }
}

/// Whether a run ended only for now: a model wanted to be left alone for too long, or the process was asked to end by whoever runs it, not by
/// a person who has seen enough.
pub fn is_for_now(state: &RunState) -> bool {
    let RunState::Ended(outcome) = state else { return false };
    let is = |reason: Reason, by| outcome.reason == reason.to_string() && outcome.exit_code == reason.exit_code(by);
    is(Reason::Blocked, None) || is(Reason::Cancelled, Some(StopCause::Terminate))
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

/// That a run is this machine's to go on with.
///
/// # Errors
/// [`StoreError::Elsewhere`] where another one drives it.
pub fn must_be_ours(row: &RunRow) -> Result<(), StoreError> {
    let (run, machine) = (row.head.id.clone(), row.machine.clone());
    machine.map_or(Ok(()), |machine| Err(StoreError::Elsewhere { run, machine }))
}

/// What a run has cost, in millionths of a US dollar, as far as that is known; of one that did not end also what it had asked for.
///
/// # Errors
/// When its journal cannot be read.
pub fn spent(store: &Store, row: &RunRow) -> Result<u64, ResumeFault> {
    if let RunState::Ended(outcome) = &row.state {
        return Ok(outcome.cost_micros.unwrap_or(0));
    }
    readable(&row.head)?;
    let run = &row.head.id;
    Ok(folded(run, store.events(run, 0)?)?.cost())
}

/// Whether this program understands the records of a run.
pub(super) fn readable(head: &RunHead) -> Result<(), ResumeFault> {
    if head.journal_version > JOURNAL_SCHEMA_VERSION {
        return Err(ResumeFault::Newer { run: head.id.clone(), found: head.journal_version });
    }
    Ok(())
}

/// What is done with a run whose frozen gate is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostGate {
    Refused,
    Ended,
}

impl Agent {
    /// Goes on with a run that was interrupted, or whose report could not be written, to its end. Where its gate had passed and no report
    /// tells of that, the gate judges once more. Verified work that could not be delivered is delivered now, if that goes, a model that
    /// blocked the run, since it wanted to be left alone for too long, is asked once more, and one that was ended by SIGTERM goes on like one that
    /// was killed. Any other run that was verified gives its result again, and nothing is begun.
    ///
    /// # Errors
    /// As those of [`Agent::run_task`]; [`RunError::NotResumed`] when it cannot be gone on with.
    pub async fn resume(&mut self, run: &RunId) -> Result<TaskResult, RunError> {
        self.take_up(run, LostGate::Refused).await
    }

    /// The same, for who would else start another run: one whose frozen gate is lost, so that nobody can ever go on with it, ends as
    /// `gate_errored`.
    ///
    /// # Errors
    /// As those of [`Agent::resume`]; [`RunError::GateLost`] when that has happened.
    pub async fn resume_or_end(&mut self, run: &RunId) -> Result<TaskResult, RunError> {
        self.take_up(run, LostGate::Ended).await
    }

    async fn take_up(&mut self, run: &RunId, lost_gate: LostGate) -> Result<TaskResult, RunError> {
        self.must_be_apart()?;
        let store = Store::open(&self.settings.state_dir, self.settings.project()).map_err(ResumeFault::from)?;
        let (row, terms) = terms(&store, run)?;
        must_be_ours(&row).map_err(ResumeFault::from)?;
        let worktree = terms.worktree.clone();
        self.must_fit(&row, worktree.as_ref())?;
        self.find_outlets(&[terms.reports.as_slice(), terms.patch.as_slice()].concat())?;
        let settings = &self.settings_in(worktree.as_ref());
        let mut task = Task { source: row.head.source.clone(), ..terms.task };
        task.budget.usd_micros = self.usd_micros.or(task.budget.usd_micros);
        settings.outlets().iter().for_each(Outlet::tidy);
        if let RunState::Ended(outcome) = &row.state
            && outcome.reason != Reason::NotDelivered.to_string()
            && !is_for_now(&row.state)
        {
            let hands = Hands::new(settings.clone(), Arc::new(task), store.folder(run), self.stop.clone());
            return self.give_again(&store, run, outcome, hands).await;
        }
        let mut folded = Folded::default();
        let mut journal = Journal::reopen(&store, run, |record| take(&mut folded, run, &record))?;
        worktree.iter().for_each(Worktree::tidy);
        let again = folded.go_back(Again::all(self.usd_micros));
        self.usd_micros.into_iter().for_each(|limit| folded.run.may_cost(limit));
        let (title, state) = (task.title.clone(), folded.run.state());
        let mut beginning = match folded.asked {
            None => Beginning::Task(Box::new(self.charter(&task, run.clone()))),
            Some(_) if again.request => Beginning::Refused(folded.open()),
            Some(_) => Beginning::Open(folded.open()),
        };
        let hands = Hands::new(settings.clone(), Arc::new(task), journal.folder(), self.stop.clone()).within(worktree);
        let mut lost = None;
        let needs_gate = matches!(state, StateName::Executing | StateName::Verifying);
        if needs_gate || state == StateName::Reporting {
            let gate_file = folded.gate_file.as_deref().unwrap_or_default();
            lost = match hands.make_ready(gate_file, folded.sandbox, &folded.changes, self.stop.token()).await {
                Ok(()) => None,
                Err(_) if !needs_gate => None, // the report is written without what is found out with them
                Err(Unready::GateLost(why)) if lost_gate == LostGate::Ended => Some(why),
                Err(Unready::GateLost(why)) => return Err(ResumeFault::Gate { run: run.clone(), why }.into()),
                Err(Unready::NotNow(_)) if self.stop.token().is_cancelled() => {
                    return Err(ResumeFault::Stopped { run: run.clone(), by: self.stop.cause() }.into());
                }
                Err(Unready::NotNow(why)) => return Err(ResumeFault::NotReady { run: run.clone(), why }.into()),
            };
        }
        if lost.is_some() {
            beginning = Beginning::End(Reason::GateErrored, folded.open());
        }
        if state == StateName::Idle && !again.stop {
            hands.correct_report(&folded.run).map_err(|why| ResumeFault::Report { run: run.clone(), why })?;
        } else {
            let told = journal.append(folded.at.0, RESUMED, &Resumed::now(again).to_json());
            told.and_then(|()| journal.sync()).map_err(ResumeFault::from)?;
        }
        let drive = Drive::new(&self.bus, &self.stop, hands, journal, run.clone()).go_on_from(folded);
        match (self.see_through(drive, title, beginning).await, lost) {
            (Err(RunError::Gate(result)), Some(why)) => Err(RunError::GateLost { result, why }),
            (ended, _) => ended,
        }
    }

    /// Sets right what is left of a run that is over, and gives its result where it was verified.
    async fn give_again(
        &self,
        store: &Store,
        run: &RunId,
        outcome: &Outcome,
        hands: Hands,
    ) -> Result<TaskResult, RunError> {
        let folded = folded(run, store.events(run, 0).map_err(ResumeFault::from)?)?;
        hands.correct_report(&folded.run).map_err(|why| ResumeFault::Report { run: run.clone(), why })?;
        if !outcome.verified {
            return Err(
                ResumeFault::Over { run: run.clone(), reason: Reason::label_of(&outcome.reason).to_owned() }.into()
            );
        }
        // Where only the state was kept, on a fresh machine, the patch of then is gone.
        if let Some(path) = &hands.settings.patch {
            let written = hands.write_patch(path, &folded.run, self.stop.token()).await;
            written.map_err(|why| ResumeFault::Patch { run: run.clone(), why })?;
        }
        self.tell_again(run, folded).await
    }

    /// Tells how a run began and ended that is over, and gives its result.
    async fn tell_again(&self, run: &RunId, folded: Folded) -> Result<TaskResult, RunError> {
        for (event, seq) in folded.told.into_iter().zip(next_life(folded.seq) + 1..) {
            self.bus.tell(EventRecord::now(run, seq, event));
        }
        self.bus.settle(SETTLE).await;
        RunError::judge(folded.run.result().ok_or(RunError::NeverEnded)?)
    }

    /// Whether it is the run of this workspace and, where it is to go on, of these models.
    fn must_fit(&self, row: &RunRow, worktree: Option<&Worktree>) -> Result<(), ResumeFault> {
        let RunRow { head, state, .. } = row;
        let ours = self.settings.workspace.display().to_string();
        // One with a worktree of its own finds it from wherever its project's runs are found.
        if head.workspace != ours && worktree.is_none() {
            return Err(ResumeFault::Elsewhere { run: head.id.clone(), theirs: head.workspace.clone(), ours });
        }
        let models: Vec<String> = self.settings.models.iter().map(|model| model.provider.name()).collect();
        if (is_for_now(state) || !matches!(state, RunState::Ended(_))) && models != head.models {
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
    folded.take(record).map(drop).map_err(wrong)
}
