//! One run under way: an event is written down, then decided on, then what the machine asks for is done.

use super::bus::{Bus, Count, EventRecord, next_life};
use super::fold::Folded;
use super::inbox::{Happened, Heed, Inbox};
use super::pen::Pen;
use super::perform::Hands;
use super::record::{self, Asked};
use super::stop::Stop;
use super::veil::Veil;
use super::whole::whole;
use super::{now, now_ms};
use crate::causes::chain;
use crate::id::{CallId, RunId};
use crate::moment::Moment;
use crate::run::{Action, AgentEvent, Bill, Charter, Event, Run, StateName, TaskResult};
use crate::store::StoreError;
use crate::verdict::Reason;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// How a run begins here.
#[derive(Debug)]
pub(super) enum Beginning {
    /// With its task.
    Task(Box<Charter>),
    /// In the middle, with what was asked for and never answered, in its order.
    Open(Vec<Action>),
    /// In the middle, with what was asked for and refused, which cost nothing and is asked for once more.
    Refused(Vec<Action>),
    /// In the middle, where it can only end: with this reason, and with what was asked for and never answered.
    End(Reason, Vec<Action>),
}

/// Whether it should not be cut off where that can be helped: else nobody knows what it did, or it is paid for twice.
fn is_grave(action: &Action) -> bool {
    let again = matches!(action, Action::Plan { .. } | Action::RunGate { .. } | Action::AskConfirmation { .. });
    !again && !matches!(action, Action::AnswerQuery { .. } | Action::AbortInFlight | Action::Emit { .. })
}

/// The run, its hands and its journal.
#[derive(Debug)]
pub(super) struct Drive<'a> {
    pub(super) run: Run,
    pub(super) bus: &'a Bus,
    pub(super) stop: &'a Stop,
    pub(super) hands: Hands,
    pub(super) inbox: Inbox,
    pub(super) veil: Veil,
    pub(super) journal: Pen,
    /// Why the journal can no longer be written.
    broken: Option<StoreError>,
    id: RunId,
    started: Instant,
    /// The moment at which this process took over: no time passes for a run that nobody drives.
    since: Moment,
    /// What the machine asked for after the newest event that is in the journal.
    asked: Option<Asked>,
    /// How many events were told.
    pub(super) told: Count,
    /// What sub-agents came to that an earlier process had under way.
    pub(super) lost: BTreeMap<CallId, Bill>,
    /// What the model has said of the answer under way, for a run that is cancelled in the middle of it.
    said: String,
    stop_told: bool,
    /// What is under way and should come to its end before a rest: it may have changed something, or is paid for.
    grave: BTreeSet<CallId>,
    /// Calls that the machine asked for and that were not sent, because this process or an earlier one was to rest.
    unsent: BTreeSet<CallId>,
    /// Whether it was left at rest.
    pub(super) rests: bool,
    /// Whether the journal says how the run ended, or that only its report is missing.
    is_ended: bool,
}

/// What is told of a run that was taken up.
pub(super) fn taken_up(run: &Run) -> AgentEvent {
    AgentEvent::Resumed { state: run.state(), attempt: run.attempt(), turn: run.turn() }
}

/// Whether a model is asked for something: nobody knows how far that came when it was cut off, and it is paid for.
pub(super) fn costs(action: &Action) -> bool {
    matches!(action, Action::CallModel { .. } | Action::Compact { .. })
}

impl<'a> Drive<'a> {
    pub(super) fn new(bus: &'a Bus, stop: &'a Stop, hands: Hands, journal: impl Into<Pen>, id: RunId) -> Self {
        Self {
            run: Run::new(),
            bus,
            stop,
            veil: Veil::new(hands.settings.secrets.clone()),
            inbox: Inbox::new(hands.lineage.depth()),
            hands,
            journal: journal.into(),
            broken: None,
            id,
            started: now(),
            since: Moment::default(),
            asked: None,
            told: Count::default(),
            lost: BTreeMap::new(),
            said: String::new(),
            stop_told: false,
            grave: BTreeSet::new(),
            unsent: BTreeSet::new(),
            rests: false,
            is_ended: false,
        }
    }

    /// The run's name.
    pub(super) fn id(&self) -> &RunId {
        &self.id
    }

    /// The same in the place where an earlier process left it.
    pub(super) fn go_on_from(self, folded: Folded) -> Self {
        let (lost, told) = (folded.lost(), Count::from(next_life(folded.seq)));
        self.hands.lineage.recall(folded.roster);
        let (run, since, asked, unsent) = (folded.run, folded.at, folded.asked, folded.unsent);
        let drive = Self { run, since, asked, unsent, told, lost, ..self };
        let is_kept = drive.run.state() != StateName::Idle; // else the journal does not say that it was taken up
        folded.told.into_iter().for_each(|event| drive.emit(event, is_kept));
        if is_kept {
            drive.emit(taken_up(&drive.run), true);
        }
        drive
    }

    /// The same for a sub-agent, whose time and whose events are those of the run that it belongs to.
    pub(super) fn beside(self, since: Moment, told: Count) -> Self {
        Self { since, told, ..self }
    }

    pub(super) async fn go(&mut self, beginning: Beginning) {
        self.hands.judge_base(&self.run, &mut self.inbox); // before a gate that is run again, which waits for the base
        match beginning {
            Beginning::Task(_) if self.stop.token().is_cancelled() => {
                return self.take(Event::CancelRequested { cause: self.stop.cause(), said: String::new() }).await;
            }
            Beginning::Task(charter) => self.take(Event::TaskSubmitted { charter }).await,
            Beginning::End(reason, actions) => {
                let lost = actions.iter().filter(|action| costs(action)).filter_map(Action::call);
                for call in lost.filter(|call| !self.unsent.contains(call)) {
                    self.inbox.outbox().send(Event::Interrupted { call }); // it is booked on the way out
                }
                self.take(Event::LimitReached { reason }).await;
            }
            Beginning::Refused(actions) => {
                for action in actions {
                    self.hands.perform_again(action, &self.run, &mut self.inbox);
                }
            }
            Beginning::Open(actions) => {
                for action in actions {
                    match (action.call().filter(|_| costs(&action)), action) {
                        (Some(call), action) if self.unsent.remove(&call) => self.tell(vec![action], false).await,
                        (Some(call), _) => self.take(Event::Interrupted { call }).await,
                        (None, Action::RunChild { call, input, limits }) => self.run_child_again(call, &input, limits),
                        (None, action) => self.hands.perform_again(action, &self.run, &mut self.inbox),
                    }
                }
            }
        }
        while self.run.state() != StateName::Idle {
            self.hands.judge_base(&self.run, &mut self.inbox);
            let Some(event) = self.next().await else { return self.rest() };
            self.take(event).await;
        }
    }

    /// Leaves the run at rest. The journal names the calls that were not sent, so that a resume does not charge them.
    fn rest(&mut self) {
        self.rests = true;
        if let Err(error) = self.journal.rest(self.moment().0, &self.unsent) {
            tracing::warn!(%error, "the journal does not say what was not sent: it is charged");
        }
    }

    /// Waits for the next thing to happen, and names it; nothing where the run is to rest.
    async fn next(&mut self) -> Option<Event> {
        let due = self.run.deadline().and_then(|moment| self.started.checked_add(moment.since(self.since)));
        let heed = Heed { stop: !self.stop_told, rest: self.grave.is_empty() };
        Some(match self.inbox.next(due, self.stop, heed).await {
            Happened::Event(event) => event,
            Happened::Deadline => Event::DeadlinePassed,
            Happened::Stop => {
                self.stop_told = true;
                Event::CancelRequested { cause: self.stop.cause(), said: std::mem::take(&mut self.said) }
            }
            Happened::Rest => return None,
        })
    }

    /// Nothing that is secret gets further than here.
    async fn take(&mut self, event: Event) {
        self.hear(&event);
        for event in self.veil.over(event) {
            self.heed(event).await;
        }
    }

    fn hear(&mut self, event: &Event) {
        if let Event::ModelDelta { delta: crate::chat::Delta::Text(text), .. } = event {
            self.said.push_str(text);
        } else if matches!(event, Event::ModelCompleted { .. } | Event::ModelFailed { .. }) {
            self.said.clear();
        }
    }

    /// First written, then decided, then done.
    async fn heed(&mut self, event: Event) {
        let passes = event.is_transient();
        let actions = self.decide(event);
        let has_hooks = !self.hands.settings.hooks.is_empty(); // what is done beside them can be done again
        let is_done =
            |action: &Action| action.is_irrevocable() && (has_hooks || !matches!(action, Action::RunHooks { .. }));
        if actions.iter().any(is_done) && self.broken.is_none() {
            self.broken = self.journal.sync().err();
        }
        let is_over = matches!(self.run.state(), StateName::Reporting | StateName::Idle);
        if let (Some(error), false) = (&self.broken, is_over) {
            tracing::error!(%error, "the journal cannot be written: the run ends");
            let ending = self.decide_unwritten(self.moment(), Event::LimitReached { reason: Reason::IoError });
            let told = actions.into_iter().filter(|action| matches!(action, Action::Emit { .. }));
            self.tell(told.chain(ending).collect(), false).await;
        } else {
            self.tell(actions, !passes && self.broken.is_none()).await;
        }
    }

    /// Writes an event down and lets the machine decide on it. What cannot be written has not happened: nobody is told of it, and the run
    /// ends there.
    fn decide(&mut self, mut event: Event) -> Vec<Action> {
        let at = self.moment(); // one and the same for the journal and the machine, so that a replay decides alike
        if !event.is_transient() && self.broken.is_none() {
            self.broken = self.write(at, &event).err();
        }
        if let Event::ReportSaved { call, .. } | Event::ReportFailed { call, .. } = event {
            self.broken = self.broken.take().or_else(|| self.end(at, &event).err());
            let why = self.broken.as_ref().map(|error| chain(error));
            // Nothing is said to have ended well whose journal is not whole and safe.
            if let (Event::ReportSaved { .. }, Some(why)) = (&event, why) {
                event = Event::ReportFailed { call, message: why };
            }
            if let Event::ReportFailed { .. } = event {
                self.hands.replace_report(&event, &self.run, self.broken.is_none());
            }
        } else if self.broken.is_some() && !event.is_transient() {
            match self.run.state() {
                StateName::Idle => {} // it begins, so that it can end
                StateName::Planning | StateName::Executing | StateName::Verifying => {
                    event = Event::LimitReached { reason: Reason::IoError };
                }
                // The report, which comes next, says that it cannot be kept.
                StateName::Reporting if matches!(event, Event::Delivered { .. }) => {}
                StateName::Reporting => return Vec::new(),
            }
        }
        self.decide_unwritten(at, event)
    }

    fn write(&mut self, at: Moment, event: &Event) -> Result<(), StoreError> {
        let told = self.told.record(whole(self.run.state(), event).len());
        self.journal.append(at.0, event.name(), &record::to_json(event, self.asked.as_ref(), told)?)
    }

    /// Writes down how the run ends with this event, and makes the journal safe. A run without its report has not ended: who takes it up
    /// tries again to write it.
    fn end(&mut self, at: Moment, event: &Event) -> Result<(), StoreError> {
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

    /// The same for a run that ended without a report: cancelled before its start, or after a panic.
    pub(super) fn end_unreported(&mut self, result: Option<&TaskResult>) {
        let (false, None, Some(result)) = (self.is_ended, &self.broken, result) else { return };
        if let Err(error) = self.finish(result) {
            tracing::error!(%error, "the end of the run cannot be written down");
        }
    }

    /// Remembered is only what is safe: nothing is written after a failed sync, so it could not be taken back.
    fn finish(&mut self, result: &TaskResult) -> Result<(), StoreError> {
        if self.hands.lineage.is_child() {
            return Ok(()); // only the run itself has an end in the store
        }
        self.journal.finish(&record::outcome(result, now_ms()))?;
        self.hands.remember(result);
        Ok(())
    }

    fn decide_unwritten(&mut self, at: Moment, event: Event) -> Vec<Action> {
        event.call().filter(|_| !event.is_transient()).map(|call| self.grave.remove(&call));
        let (name, before) = (event.name(), self.run.label());
        let passes = event.is_transient();
        let actions = self.run.handle(at, event);
        if !passes {
            self.asked = Some(Asked::of(&actions));
        }
        let after = self.run.label();
        if before != after {
            tracing::info!(run = %self.id, from = before, to = after, by = name, "transition");
        }
        actions
    }

    /// Does what the machine asked for, in its order. What it tells comes first: the journal alone says which numbers that has.
    pub(super) async fn tell(&mut self, actions: Vec<Action>, is_kept: bool) {
        let (told, actions): (Vec<Action>, Vec<Action>) =
            actions.into_iter().partition(|action| matches!(action, Action::Emit { .. }));
        self.emit_all(told, is_kept);
        for action in actions {
            let wants_rest = self.stop.rest().is_cancelled() && self.grave.is_empty();
            match action {
                action if wants_rest && costs(&action) => self.unsent.extend(action.call()), // the loop ends first
                action => self.act(action).await,
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
                for event in late.into_iter().flat_map(|event| self.veil.over(event)).collect::<Vec<_>>() {
                    let passes = event.is_transient();
                    let told = self.decide(event); // in Reporting a late answer is booked and shown, and begins nothing
                    self.emit_all(told, !passes && self.broken.is_none());
                }
            }
            Action::SaveReport { call } if self.broken.is_some() => {
                let message = self.broken.as_ref().map(|error| chain(error)).unwrap_or_default();
                self.inbox.outbox().send(Event::ReportFailed { call, message });
            }
            Action::Deliver { call, .. } if self.broken.is_some() => {
                let why = "the journal cannot be written".to_owned();
                self.inbox.outbox().send(Event::Delivered { call, result: Err(why), ways: None });
            }
            Action::RunChild { call, input, limits } => self.run_child(call, &input, limits),
            action => self.hands.perform(action, &self.run, &mut self.inbox),
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
        // Counted also when nobody watches: whoever takes the run up counts on.
        self.told.next(is_kept, |seq| {
            if self.bus.is_watched() {
                let of = self.hands.lineage.path();
                self.bus.tell(EventRecord { of, is_kept, ..EventRecord::now(&self.id, seq, event) });
            }
        });
    }

    /// Ends what tools run in: when this returns, nothing of the agent is alive, and what it has left is kept.
    pub(super) async fn leave(&mut self) {
        self.hands.close().await;
        self.hands.forget_installations().await;
        // Nothing is left to be put back but where no report could be written, or where somebody was alive who should not have been.
        for note in self.hands.put_back_configuration().await {
            self.emit(AgentEvent::Warning(note), false);
        }
        if self.hands.has_left() {
            return;
        }
        if self.run.result().is_some_and(|result| !result.verified) {
            let _kept = self.hands.keep_state().await;
        }
        self.hands.close_git().await;
    }

    pub(super) fn moment(&self) -> Moment {
        self.since.plus(self.started.elapsed())
    }
}
