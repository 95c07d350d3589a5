//! Resume: folds the journal of an interrupted run and continues the run from there.
//!
//! Unanswered actions are performed again. If one may have changed something, the answer is that
//! its outcome is unknown. An interrupted resume is resumed like any other run.

use super::bus::next_life;
use super::drive::{DriveStart, RunDrive};
use super::effects::EffectRunner;
use super::effects::NotReadyReason;
use super::journal::{FoldedJournal, RESUMED, RestartedEffects, ResumedRecord, fold_record, folded, terms};
use super::raise::{check_limits, is_limited, must_have_worktree};
use super::{Agent, EventRecord, ResumeError, RunError, WATCHERS_WAIT};
use crate::id::RunId;
use crate::run::{StateName, TaskResult};
use crate::store::{Journal, RunOutcome, RunRow, Store, StoreError, StoredRunState};
use crate::task::Task;
use crate::verdict::{Reason, StopCause};
use crate::workspace::AtomicOutput;
use crate::workspace::worktree::Worktree;
use std::sync::Arc;

/// Returns true if a run ended only for now. Either a model asked for too long a pause, or the
/// process was asked to terminate, not interrupted by a person.
pub fn is_for_now(state: &StoredRunState) -> bool {
    let StoredRunState::Ended(outcome) = state else { return false };
    let is = |reason: Reason, by| outcome.reason == reason.to_string() && outcome.exit_code == reason.exit_code(by);
    is(Reason::Blocked, None) || is(Reason::Cancelled, Some(StopCause::Terminate))
}

/// Checks that no other machine drives a run.
///
/// # Errors
/// [`StoreError::Elsewhere`] if another machine does.
pub fn must_be_ours(row: &RunRow) -> Result<(), StoreError> {
    let (run, machine) = (row.head.id.clone(), row.machine.clone());
    machine.map_or(Ok(()), |machine| Err(StoreError::Elsewhere { run, machine }))
}

/// The treatment of a run whose frozen gate is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostGate {
    Refused,
    Ended,
}

impl Agent {
    /// Continues a run to its end, if it was interrupted or its report could not be written.
    ///
    /// A resume also repeats:
    /// - the gate, if it had passed and no report says so;
    /// - a failed delivery of verified work;
    /// - the request to a model that blocked the run by asking for too long a pause;
    /// - the work that SIGTERM ended, as after a kill.
    ///
    /// Any other verified run returns its result again and starts nothing.
    ///
    /// # Errors
    /// As for [`Agent::run_task`]. [`RunError::NotResumed`] if the run cannot continue.
    pub async fn resume(&mut self, run: &RunId) -> Result<TaskResult, RunError> {
        self.take_up(run, LostGate::Refused).await
    }

    /// Continues a run like [`Agent::resume`], for a caller that would otherwise start another run.
    /// A run whose frozen gate is lost can never continue, so it ends as `gate_errored`.
    ///
    /// # Errors
    /// As for [`Agent::resume`]. [`RunError::GateLost`] if the frozen gate was lost.
    pub async fn resume_or_end(&mut self, run: &RunId) -> Result<TaskResult, RunError> {
        self.take_up(run, LostGate::Ended).await
    }

    async fn take_up(&mut self, run: &RunId, lost_gate: LostGate) -> Result<TaskResult, RunError> {
        self.must_be_apart()?;
        let store = Store::open(&self.settings.state_dir, self.settings.project()).map_err(ResumeError::from)?;
        let (row, terms) = terms(&store, run)?;
        must_be_ours(&row).map_err(ResumeError::from)?;
        let worktree = terms.worktree.clone();
        self.must_fit(&row, worktree.as_ref())?;
        self.find_output_files(&[terms.reports.as_slice(), terms.patch.as_slice()].concat())?;
        let settings = &self.settings_in(worktree.as_ref());
        let mut task = Task { source: row.head.source.clone(), ..terms.task };
        task.budget.usd_micros = self.limits.usd_micros.or(task.budget.usd_micros);
        settings.report_copies().iter().for_each(AtomicOutput::tidy);
        let goes_on = is_for_now(&row.state) || self.is_raised(&row.state);
        if self.is_raised {
            check_limits(&store, &row, self.limits)?;
        }
        if let StoredRunState::Ended(outcome) = &row.state
            && outcome.reason != Reason::NotDelivered.to_string()
            && !goes_on
        {
            let effects = EffectRunner::new(settings.clone(), Arc::new(task), store.folder(run), self.stop.clone());
            return self.return_result_again(&store, run, outcome, effects).await;
        }
        if goes_on {
            must_have_worktree(&row, worktree.as_ref())?; // once the journal is open, the run no longer counts as ended
        }
        let mut folded = FoldedJournal::default();
        let mut journal = Journal::reopen(&store, run, |record| fold_record(&mut folded, run, &record))?;
        worktree.iter().for_each(Worktree::tidy);
        let again = folded.go_back(RestartedEffects { limit: self.is_raised, ..RestartedEffects::all(self.limits) });
        let (title, state) = (task.title.clone(), folded.run.state());
        let mut beginning = match folded.asked {
            None => DriveStart::Task(Box::new(self.spec(&task, run.clone()))),
            Some(_) if again.request => DriveStart::Refused(folded.open()),
            Some(_) => DriveStart::Open(folded.open()),
        };
        let effects =
            EffectRunner::new(settings.clone(), Arc::new(task), journal.folder(), self.stop.clone()).within(worktree);
        let mut lost = None;
        let needs_gate = matches!(state, StateName::Executing | StateName::Verifying);
        if needs_gate || state == StateName::Reporting {
            let gate_file = folded.gate_file.as_deref().unwrap_or_default();
            lost = match effects.make_ready(gate_file, folded.sandbox, &folded.changes, self.stop.token()).await {
                Ok(()) => None,
                Err(_) if !needs_gate => None, // the report is written without their findings
                Err(NotReadyReason::GateLost(why)) if lost_gate == LostGate::Ended => Some(why),
                Err(NotReadyReason::GateLost(why)) => return Err(ResumeError::Gate { run: run.clone(), why }.into()),
                Err(NotReadyReason::NotNow(_)) if self.stop.token().is_cancelled() => {
                    return Err(ResumeError::Stopped { run: run.clone(), by: self.stop.cause() }.into());
                }
                Err(NotReadyReason::NotNow(why)) => return Err(ResumeError::NotReady { run: run.clone(), why }.into()),
            };
        }
        if lost.is_some() {
            beginning = DriveStart::End(Reason::GateErrored, folded.open());
        }
        if state == StateName::Idle && !again.stop && !again.limit {
            effects.correct_report(&folded.run).map_err(|why| ResumeError::Report { run: run.clone(), why })?;
        } else {
            let appended = journal.append(folded.at.0, RESUMED, &ResumedRecord::now(again).to_json());
            appended.and_then(|()| journal.sync()).map_err(ResumeError::from)?;
        }
        let drive = RunDrive::new(&self.bus, &self.stop, effects, journal, run.clone()).go_on_from(folded);
        match (self.drive_to_end(drive, title, beginning).await, lost) {
            (Err(RunError::Gate(result)), Some(why)) => Err(RunError::GateLost { result, why }),
            (ended, _) => ended,
        }
    }

    /// Corrects the report and the patch of an ended run, and returns its result if it was
    /// verified.
    async fn return_result_again(
        &self,
        store: &Store,
        run: &RunId,
        outcome: &RunOutcome,
        effects: EffectRunner,
    ) -> Result<TaskResult, RunError> {
        let folded = folded(run, store.events(run, 0).map_err(ResumeError::from)?)?;
        effects.correct_report(&folded.run).map_err(|why| ResumeError::Report { run: run.clone(), why })?;
        if !outcome.verified {
            return Err(
                ResumeError::Over { run: run.clone(), reason: Reason::label_of(&outcome.reason).to_owned() }.into()
            );
        }
        // If only the state was kept, on a fresh machine, the earlier patch is missing.
        if let Some(path) = &effects.settings.patch {
            let written = effects.write_patch(path, &folded.run, self.stop.token()).await;
            written.map_err(|why| ResumeError::Patch { run: run.clone(), why })?;
        }
        self.publish_again(run, folded).await
    }

    /// Sends the events of the start and the end of an ended run, and returns its result.
    async fn publish_again(&self, run: &RunId, folded: FoldedJournal) -> Result<TaskResult, RunError> {
        for (event, seq) in folded.emitted.into_iter().zip(next_life(folded.seq) + 1..) {
            self.bus.publish(EventRecord::now(run, seq, event));
        }
        self.bus.wait_for_watchers(WATCHERS_WAIT).await;
        RunError::judge(folded.run.result().ok_or(RunError::NeverEnded)?)
    }

    /// Returns true if a limit ended the run, and limits are to be raised.
    fn is_raised(&self, state: &StoredRunState) -> bool {
        is_limited(state) && self.is_raised
    }

    /// Checks that the run belongs to this workspace and, if it is to continue, to these models.
    fn must_fit(&self, row: &RunRow, worktree: Option<&Worktree>) -> Result<(), ResumeError> {
        let RunRow { head, state, .. } = row;
        let ours = self.settings.workspace.display().to_string();
        // A run with a worktree can be resumed wherever the runs of its project are found.
        if head.workspace != ours && worktree.is_none() {
            return Err(ResumeError::Elsewhere { run: head.id.clone(), theirs: head.workspace.clone(), ours });
        }
        let models: Vec<String> = self.settings.models.iter().map(|model| model.provider.name()).collect();
        let goes_on = is_for_now(state) || self.is_raised(state) || !matches!(state, StoredRunState::Ended(_));
        if goes_on && models != head.models {
            let (theirs, ours) = (head.models.join(", "), models.join(", "));
            return Err(ResumeError::OtherModels { run: head.id.clone(), theirs, ours });
        }
        Ok(())
    }
}
