//! One run under way: journals each event, lets the machine decide on it, performs the actions.

use super::bus::{EventBus, EventCount, EventRecord, next_life};
use super::effects::EffectRunner;
use super::inbox::{AcceptedRequests, Inbox, InboxItem};
use super::journal::{
    self, FoldedJournal, JournalWriter, RequestedActions, ShownPieces, asks_model, resumed_event, whole_events,
};
use super::model_call::{SendPermit, SentCalls};
use super::redactor::SecretRedactor;
use super::stop::StopToken;
use super::{now, now_ms};
use crate::elapsed::Elapsed;
use crate::error_chain::chain;
use crate::id::{CallId, RunId};
use crate::run::{Action, AgentEvent, Event, Run, RunBill, RunSpec, StateName, TaskResult};
use crate::store::StoreError;
use crate::verdict::Reason;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// The start of a run in this process.
#[derive(Debug)]
pub(super) enum DriveStart {
    /// A new run.
    Task(Box<RunSpec>),
    /// A resumed run, with its unanswered actions in order.
    Open(Vec<Action>),
    /// A resumed run whose request was refused. The request cost nothing and is sent again.
    Refused(Vec<Action>),
    /// A resumed run that can only end, with this reason and its unanswered actions.
    End(Reason, Vec<Action>),
}

/// Returns true if an interruption leaves the outcome unknown. That of a model call does so only
/// once its request went out.
fn is_grave(action: &Action) -> bool {
    let again = matches!(action, Action::Plan { .. } | Action::RunGate { .. } | Action::AskConfirmation { .. });
    !again
        && !asks_model(action)
        && !matches!(action, Action::AnswerQuery { .. } | Action::AbortInFlight | Action::Emit { .. })
}

/// A run with its machine, its effect runner and its journal.
#[derive(Debug)]
pub(super) struct RunDrive<'a> {
    pub(super) run: Run,
    pub(super) bus: &'a EventBus,
    pub(super) stop: &'a StopToken,
    pub(super) effects: EffectRunner,
    pub(super) inbox: Inbox,
    pub(super) redactor: SecretRedactor,
    pub(super) journal: JournalWriter,
    /// The error because of which the journal can no longer be written.
    broken: Option<StoreError>,
    id: RunId,
    started: Instant,
    /// The moment at which this process took over. Time stops while no process drives a run.
    since: Elapsed,
    /// A digest of the actions after the newest event in the journal.
    asked: Option<RequestedActions>,
    /// The counter of events sent to watchers.
    pub(super) event_count: EventCount,
    /// The bills of sub-agents that an earlier process had under way.
    pub(super) lost: BTreeMap<CallId, RunBill>,
    /// The text of the answer under way, kept in case the run is cancelled before its end.
    partial_text: String,
    /// The pieces that watchers got since the last record that repeats them.
    shown: ShownPieces,
    is_stop_handled: bool,
    /// Calls that should end before a rest, because they may have changed something.
    grave: BTreeSet<CallId>,
    /// Model calls whose requests went out, in this process or an earlier one.
    pub(super) sent: SentCalls,
    /// True if the run was left at rest.
    pub(super) rests: bool,
    /// True if the journal says how the run ended, or that only its report is missing.
    is_ended: bool,
}

impl<'a> RunDrive<'a> {
    pub(super) fn new(
        bus: &'a EventBus,
        stop: &'a StopToken,
        effects: EffectRunner,
        journal: impl Into<JournalWriter>,
        id: RunId,
    ) -> Self {
        Self {
            run: Run::new(),
            bus,
            stop,
            redactor: SecretRedactor::new(effects.settings.secrets.clone()),
            inbox: Inbox::new(effects.lineage.depth()),
            effects,
            journal: journal.into(),
            broken: None,
            id,
            started: now(),
            since: Elapsed::default(),
            asked: None,
            event_count: EventCount::default(),
            lost: BTreeMap::new(),
            partial_text: String::new(),
            shown: ShownPieces::default(),
            is_stop_handled: false,
            grave: BTreeSet::new(),
            sent: SentCalls::default(),
            rests: false,
            is_ended: false,
        }
    }

    pub(super) fn id(&self) -> &RunId {
        &self.id
    }

    /// Continues from the point where an earlier process left the run.
    pub(super) fn go_on_from(self, folded: FoldedJournal) -> Self {
        let (lost, event_count) = (folded.lost(), EventCount::from(next_life(folded.seq)));
        self.effects.lineage.recall(folded.roster);
        let (run, since, asked, sent) = (folded.run, folded.at, folded.asked, folded.sent.into());
        let drive = Self { run, since, asked, sent, event_count, lost, ..self };
        let is_kept = drive.run.state() != StateName::Idle; // else the journal has no record of the resume
        folded.emitted.into_iter().for_each(|event| drive.emit(event, is_kept));
        if is_kept {
            drive.emit(resumed_event(&drive.run), true);
        }
        drive
    }

    /// Makes this the drive of a sub-agent, which has the time and the event counter of its run.
    pub(super) fn beside(self, since: Elapsed, event_count: EventCount) -> Self {
        Self { since, event_count, ..self }
    }

    pub(super) async fn run(&mut self, beginning: DriveStart) {
        self.effects.judge_base(&self.run, &mut self.inbox); // before a repeated gate run, which waits for it
        match beginning {
            DriveStart::Task(_) if self.stop.token().is_cancelled() => {
                return self
                    .handle_event(Event::CancelRequested { cause: self.stop.cause(), partial_text: String::new() })
                    .await;
            }
            DriveStart::Task(spec) => self.handle_event(Event::TaskSubmitted { spec }).await,
            DriveStart::End(reason, actions) => {
                let lost = actions.iter().filter(|action| asks_model(action)).filter_map(Action::call);
                for call in lost.filter(|call| self.sent.has(*call)) {
                    self.inbox.outbox().send(Event::Interrupted { call }); // charged while the run ends
                }
                self.handle_event(Event::LimitReached { reason }).await;
            }
            DriveStart::Refused(actions) => self.perform(actions, false).await,
            DriveStart::Open(actions) => {
                for action in actions {
                    match (action.call().filter(|_| asks_model(&action)), action) {
                        (Some(call), action) if !self.sent.has(call) => self.perform(vec![action], false).await,
                        (Some(call), _) => self.handle_event(Event::Interrupted { call }).await,
                        (None, Action::RunChild { call, input, limits }) => self.run_child_again(call, &input, limits),
                        (None, action) => self.effects.perform_again(action, &self.run, &mut self.inbox),
                    }
                }
            }
        }
        while self.run.state() != StateName::Idle {
            self.effects.judge_base(&self.run, &mut self.inbox);
            let Some(event) = self.next().await else {
                self.rests = true;
                return self.hold_back();
            };
            self.handle_event(event).await;
        }
    }

    /// Records the requests that do not go out because the run rests.
    fn hold_back(&self) {
        let at = self.moment().0;
        let held = self.run.awaited().into_iter().filter(|call| self.sent.is_held(*call));
        for call in held.collect::<Vec<_>>() {
            if let Err(error) = self.journal.not_sent(at, call) {
                tracing::warn!(%error, "cannot record that a request was not sent: it is charged");
            }
        }
    }

    /// Returns true if nothing under way must end before a rest. A model call that waits for its
    /// turn need not: its request did not go out, and a resume sends it.
    fn may_rest(&self) -> bool {
        self.grave.is_empty() && !self.run.awaited().into_iter().any(|call| self.sent.has(call))
    }

    /// Waits for the next event. Returns `None` if the run is to rest.
    async fn next(&mut self) -> Option<Event> {
        let due = self.run.deadline().and_then(|moment| self.started.checked_add(moment.since(self.since)));
        loop {
            let accepted = AcceptedRequests { stop: !self.is_stop_handled, rest: self.may_rest() };
            return Some(match self.inbox.next(due, self.stop, accepted).await {
                InboxItem::Event(event) => event,
                InboxItem::Deadline => Event::DeadlinePassed,
                InboxItem::Stop => {
                    self.is_stop_handled = true;
                    Event::CancelRequested {
                        cause: self.stop.cause(),
                        partial_text: std::mem::take(&mut self.partial_text),
                    }
                }
                InboxItem::Rest if !self.may_rest() => continue, // a request went out meanwhile
                InboxItem::Rest => return None,
            });
        }
    }

    /// Takes an event. Its secrets are hidden here, before fledge writes or shows it.
    async fn handle_event(&mut self, event: Event) {
        self.receive(&event);
        for event in self.redactor.redact_event(event) {
            self.handle(event).await;
        }
    }

    fn receive(&mut self, event: &Event) {
        if let Event::ModelDelta { delta: crate::chat::Delta::Text(text), .. } = event {
            self.partial_text.push_str(text);
        } else if matches!(event, Event::ModelCompleted { .. } | Event::ModelFailed { .. }) {
            self.partial_text.clear();
        }
    }

    /// Writes an event down, lets the machine decide, and performs the actions.
    async fn handle(&mut self, event: Event) {
        let passes = event.is_transient();
        let actions = self.decide(event);
        let has_hooks = !self.effects.settings.hooks.is_empty(); // without hooks, the rest can be repeated
        let is_done = |action: &Action| match action {
            Action::RunHooks { .. } => has_hooks,
            action => action.is_irrevocable() && !asks_model(action), // a request is synced when it goes out
        };
        if actions.iter().any(is_done) && self.broken.is_none() {
            self.broken = self.journal.sync().err();
        }
        let is_over = matches!(self.run.state(), StateName::Reporting | StateName::Idle);
        if let (Some(error), false) = (&self.broken, is_over) {
            tracing::error!(%error, "cannot write the journal: the run ends");
            let ending = self.decide_unwritten(self.moment(), Event::LimitReached { reason: Reason::IoError });
            let event_count = actions.into_iter().filter(|action| matches!(action, Action::Emit { .. }));
            self.perform(event_count.chain(ending).collect(), false).await;
        } else {
            self.perform(actions, !passes && self.broken.is_none()).await;
        }
    }

    /// Journals an event and lets the machine decide on it. An event that cannot be written has not
    /// happened: watchers do not see it, and the run ends.
    fn decide(&mut self, mut event: Event) -> Vec<Action> {
        let at = self.moment(); // the same for journal and machine, so that a replay decides alike
        self.broken = self.broken.take().or_else(|| self.sent.take_error());
        if !event.is_transient() && self.broken.is_none() {
            self.broken = self.write(at, &event).err();
        }
        if let Event::ReportSaved { call, .. } | Event::ReportFailed { call, .. } = event {
            self.broken = self.broken.take().or_else(|| self.end(at, &event).err());
            let why = self.broken.as_ref().map(|error| chain(error));
            // A run does not end well if its journal is not complete and synced.
            if let (Event::ReportSaved { .. }, Some(why)) = (&event, why) {
                event = Event::ReportFailed { call, message: why };
            }
            if let Event::ReportFailed { .. } = event {
                self.effects.replace_report(&event, &self.run, self.broken.is_none());
            }
        } else if self.broken.is_some() && !event.is_transient() {
            match self.run.state() {
                StateName::Idle => {} // it must begin before it can end
                StateName::Planning | StateName::Executing | StateName::Verifying => {
                    event = Event::LimitReached { reason: Reason::IoError };
                }
                // The report, which comes next, says that the delivery cannot be recorded.
                StateName::Reporting if matches!(event, Event::Delivered { .. }) => {}
                StateName::Reporting => return Vec::new(),
            }
        }
        self.decide_unwritten(at, event)
    }

    fn write(&mut self, at: Elapsed, event: &Event) -> Result<(), StoreError> {
        self.shown.flush(self.run.state(), event, (at, &self.event_count), &self.journal)?;
        let event_count = self.event_count.record(whole_events(self.run.state(), event).len());
        self.journal.append(at.0, event.name(), &journal::to_json(event, self.asked.as_ref(), event_count)?)
    }

    /// Records the end of the run and syncs the journal. A run without its report has not ended: a
    /// resume tries to write the report again.
    fn end(&mut self, at: Elapsed, event: &Event) -> Result<(), StoreError> {
        if let Event::ReportFailed { .. } = event {
            self.is_ended = true;
            return self.journal.sync();
        }
        let mut ending = self.run.clone();
        ending.handle(at, event.clone());
        match ending.result().filter(|_| ending.state() == StateName::Idle) {
            None => self.journal.sync(),
            Some(result) => {
                self.finish(&result)?;
                self.is_ended = true;
                Ok(())
            }
        }
    }

    /// Records the end of a run without a report: cancelled before its start, or after a panic.
    pub(super) fn end_unreported(&mut self, result: Option<&TaskResult>) {
        let (false, None, Some(result)) = (self.is_ended, &self.broken, result) else { return };
        if let Err(error) = self.finish(result) {
            tracing::error!(%error, "cannot record the end of the run");
        }
    }

    /// Records the outcome. Updates memory only after the sync: it could not be taken back.
    fn finish(&mut self, result: &TaskResult) -> Result<(), StoreError> {
        if self.effects.lineage.is_child() {
            return Ok(()); // only the run itself has an end in the store
        }
        self.journal.finish(&journal::outcome(result, now_ms()))?;
        self.effects.remember(result);
        Ok(())
    }

    fn decide_unwritten(&mut self, at: Elapsed, event: Event) -> Vec<Action> {
        event.call().filter(|_| !event.is_transient()).map(|call| self.grave.remove(&call));
        let (name, before) = (event.name(), self.run.label());
        let passes = event.is_transient();
        let actions = self.run.handle(at, event);
        for action in actions.iter().filter(|_| passes) {
            if let Action::Emit { event } = action {
                self.shown.add(event);
            }
        }
        if !passes {
            self.asked = Some(RequestedActions::from_actions(&actions));
        }
        let after = self.run.label();
        if before != after {
            tracing::info!(run = %self.id, from = before, to = after, by = name, "transition");
        }
        actions
    }

    /// Performs the actions in order. Events go first: only the journal accounts for their numbers.
    pub(super) async fn perform(&mut self, actions: Vec<Action>, is_kept: bool) {
        let (event_count, actions): (Vec<Action>, Vec<Action>) =
            actions.into_iter().partition(|action| matches!(action, Action::Emit { .. }));
        self.emit_all(event_count, is_kept);
        for action in actions {
            let wants_rest = self.stop.rest().is_cancelled() && self.may_rest();
            if !(wants_rest && asks_model(&action)) {
                self.act(action).await; // else the loop ends before a request goes out
            }
        }
    }

    async fn act(&mut self, action: Action) {
        if is_grave(&action) {
            self.grave.extend(action.call());
        }
        match action {
            Action::AbortInFlight => {
                let mut late: Vec<Event> = self.inbox.abort().await;
                late.retain(|event| !matches!(event, Event::BaseJudged { .. })); // nothing depends on the base now
                for event in late.into_iter().flat_map(|event| self.redactor.redact_event(event)).collect::<Vec<_>>() {
                    let passes = event.is_transient();
                    let event_count = self.decide(event); // in Reporting, a late answer is only charged and shown
                    self.emit_all(event_count, !passes && self.broken.is_none());
                }
            }
            Action::SaveReport { call } if self.broken.is_some() => {
                let message = self.broken.as_ref().map(|error| chain(error)).unwrap_or_default();
                self.inbox.outbox().send(Event::ReportFailed { call, message });
            }
            Action::Deliver { call, .. } if self.broken.is_some() => {
                let why = "cannot write the journal".to_owned();
                self.inbox.outbox().send(Event::Delivered { call, result: Err(why), ways: None });
            }
            Action::RunChild { call, input, limits } => self.run_child(call, &input, limits),
            action @ (Action::CallModel { call, .. } | Action::Compact { call, .. }) => {
                let (began, stops) = ((self.since, self.started), (&self.effects.stop, self.stop));
                let permit = SendPermit::new(call, &self.sent, &self.journal, began, stops);
                self.effects.ask_model(action, permit, &self.run, &mut self.inbox);
            }
            action => self.effects.perform(action, &self.run, &mut self.inbox),
        }
    }

    fn emit_all(&self, actions: Vec<Action>, is_kept: bool) {
        for action in actions {
            if let Action::Emit { event } = action {
                self.emit(event, is_kept);
            }
        }
    }

    fn emit(&self, event: AgentEvent, is_kept: bool) {
        // Count without watchers, too: a resume continues these numbers.
        self.event_count.next(is_kept, |seq| {
            if self.bus.is_watched() {
                let of = self.effects.lineage.path();
                self.bus.publish(EventRecord { of, is_kept, ..EventRecord::now(&self.id, seq, event) });
            }
        });
    }

    /// Stops the agent's tools, so that no process of it is alive, and keeps its final files.
    pub(super) async fn leave(&mut self) {
        self.effects.close().await;
        self.effects.forget_installations().await;
        // Needed only without a report, or if a process was alive that should not have been.
        for note in self.effects.put_back_configuration().await {
            self.emit(AgentEvent::Warning(note), false);
        }
        if self.effects.has_left() {
            return;
        }
        if self.run.result().is_some_and(|result| !result.verified) {
            let _kept = self.effects.keep_state().await;
        }
        self.effects.close_git().await;
    }

    pub(super) fn moment(&self) -> Elapsed {
        self.since.plus(self.started.elapsed())
    }

    /// Kills all processes and ends the run with a report.
    pub(super) async fn after_panic(&mut self) {
        crate::process::kill_everything();
        self.end_after_panic().await;
    }

    /// Ends the run. If it was already reporting, answers that had arrived count.
    pub(super) async fn end_after_panic(&mut self) {
        let late = self.inbox.abort().await;
        if self.run.state() == StateName::Reporting {
            for event in late.into_iter().flat_map(|event| self.redactor.redact_event(event)).collect::<Vec<_>>() {
                self.decide_and_tell(event).await;
            }
            self.answer_lost().await;
        } else {
            self.decide_and_tell(Event::LimitReached { reason: Reason::Internal }).await;
        }
        while self.run.state() == StateName::Reporting {
            let InboxItem::Event(event) = self.inbox.next(None, self.stop, AcceptedRequests::default()).await else {
                return;
            };
            self.decide_and_tell(event).await;
        }
    }

    /// Answers for a delivery or a report that was shut down.
    async fn answer_lost(&mut self) {
        let (lost, is_delivery) = (self.inbox.is_empty(), self.run.label() == "Delivering");
        let message = || Reason::Internal.row().meaning.to_owned();
        for call in self.run.awaited().into_iter().filter(|_| lost) {
            self.decide_and_tell(match is_delivery {
                true => Event::Delivered { call, result: Err(message()), ways: None },
                false => Event::ReportFailed { call, message: message() },
            })
            .await;
        }
    }

    /// Decides and acts without the journal.
    async fn decide_and_tell(&mut self, event: Event) {
        if let Event::ReportFailed { .. } = event {
            self.effects.replace_report(&event, &self.run, true);
        }
        let actions = self.run.handle(self.moment(), event);
        self.perform(actions, false).await;
    }
}
