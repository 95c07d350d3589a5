//! Folds a journal into its run: its progress, its unanswered actions, and where today's machine
//! asks for other actions than the machine that wrote the journal.

use super::lineage::{AgentRoster, first, kind_of, whose};
use super::record::{
    self, NOT_SENT, NotSentRecord, RESUMED, RequestedActions, RestartedEffects, SENT, SHOWN, SentRecord, ShownRecord,
};
use crate::chat::{Block, FileChange, ModelError};
use crate::driver::bus::next_life;
use crate::elapsed::Elapsed;
use crate::id::CallId;
use crate::process::sandbox::SandboxKind;
use crate::run::{Action, AgentEvent, Event, Run, RunBill, StateName};
use crate::store::JournalRecord;
use crate::verdict::{Reason, StepProgress, StopCause};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A run as its journal describes it, up to the newest record.
#[derive(Debug, Default)]
pub(in crate::driver) struct FoldedJournal {
    pub(in crate::driver) run: Run,
    /// The smallest number that the first piece of the current answer or gate run can have.
    pieces_from: u64,
    /// The moment of the newest record.
    pub(in crate::driver) at: Elapsed,
    /// A digest of the actions after the newest event.
    pub(in crate::driver) asked: Option<RequestedActions>,
    /// The digest of the kept gate, once planning is over.
    pub(in crate::driver) gate_file: Option<String>,
    /// The kind of the agent's sandbox, if it was recorded.
    pub(in crate::driver) sandbox: Option<SandboxKind>,
    /// The changes by file tools, in order.
    pub(in crate::driver) changes: Vec<FileChange>,
    /// The events for a watcher that joins late: the start of the run, and its end.
    pub(in crate::driver) emitted: Vec<AgentEvent>,
    /// The number of events sent to watchers, up to those of the newest record.
    pub(in crate::driver) seq: u64,
    /// The first place where the machine asks for other actions.
    pub(in crate::driver) difference: Option<ReplayDifference>,
    /// Its sub-agents, in the order in which the machine asked for them.
    pub(in crate::driver) roster: AgentRoster,
    /// The sub-agents that began, by number.
    children: BTreeMap<u64, FoldedJournal>,
    /// The actions without an answer.
    open: BTreeMap<CallId, Action>,
    /// The model calls whose requests went out and may have to be paid for.
    pub(in crate::driver) sent: BTreeSet<CallId>,
    /// The run before its report failed, as long as that is the newest event.
    unreported: Option<Box<FoldState>>,
    /// The run before its gate passed, as long as no report says so.
    unproven: Option<Box<FoldState>>,
    /// The run before its delivery failed.
    undelivered: Option<Box<FoldState>>,
    /// The run before the newest failure of a model, as long as only the end of the run came after
    /// it.
    refused: Option<Box<FoldState>>,
    /// The run before it was ended from outside.
    stopped: Option<Box<FoldState>>,
    newest: (u64, String),
}

/// An event that was sent to watchers, as the journal has it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::driver) struct LastRecord {
    /// The number of the event.
    pub(in crate::driver) seq: u64,
    /// The smallest number that the first piece can have had, if the event replaces pieces.
    pub(in crate::driver) from: Option<u64>,
    /// The path of the sub-agent that the event belongs to.
    pub(in crate::driver) of: Option<String>,
    pub(in crate::driver) event: AgentEvent,
}

/// The place where today's machine acts differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayDifference {
    /// The number of the record after which it differs.
    pub seq: u64,
    /// The kind of that record.
    pub event: String,
    /// The actions in the journal. For the last record, the outcome of the run.
    pub then: String,
    /// The actions or the outcome now.
    pub now: String,
}

impl ReplayDifference {
    pub(in crate::driver) fn new(after: &(u64, String), then: RequestedActions, now: &RequestedActions) -> Self {
        let of = |asked: &RequestedActions| format!("{} ({})", asked.names.join(", "), asked.digest);
        Self { seq: after.0, event: after.1.clone(), then: of(&then), now: of(now) }
    }
}

/// A run before an event that a resume takes back, with its unanswered actions.
#[derive(Debug)]
struct FoldState {
    run: Run,
    asked: Option<RequestedActions>,
    open: BTreeMap<CallId, Action>,
}

impl FoldedJournal {
    /// Folds the next record. Returns the events that were sent for it.
    pub(in crate::driver) fn push(&mut self, record: &JournalRecord) -> Result<Vec<LastRecord>, serde_json::Error> {
        self.at = self.at.max(Elapsed(record.at_ms));
        if let (Some(path), kind) = whose(&record.kind) {
            return self.take_of(path, kind, record);
        }
        if record.kind == SENT {
            self.sent.insert(serde_json::from_str::<SentRecord>(&record.data)?.call);
            return Ok(Vec::new());
        }
        if record.kind == NOT_SENT {
            self.sent.remove(&serde_json::from_str::<NotSentRecord>(&record.data)?.call);
            return Ok(Vec::new());
        }
        if record.kind == SHOWN {
            let shown: ShownRecord = serde_json::from_str(&record.data)?;
            return Ok(self.say_whole(shown.events, shown.event_count));
        }
        if record.kind == RESUMED {
            let again = RestartedEffects::parse(&record.data);
            self.go_back(again);
            self.seq = next_life(self.seq);
            // The resuming process sends these events again, and the state of the run.
            let emitted: Vec<AgentEvent> = self.emitted.iter().cloned().chain([resumed_event(&self.run)]).collect();
            let records = emitted.into_iter().map(|event| self.say(event)).collect();
            self.begin_pieces(self.seq + 1);
            return Ok(records);
        }
        let (event, beside) = record::from_json(&record.data)?;
        let mut records = self.say_whole(whole_events(self.run.state(), &event), beside.event_count);
        if let (Some(then), Some(now), None) = (beside.before, &self.asked, &self.difference)
            && then != *now
        {
            self.difference = Some(ReplayDifference::new(&self.newest, then, now));
        }
        self.keep(&event);
        self.note(&event);
        let actions = self.run.handle(Elapsed(record.at_ms), event);
        self.asked = Some(RequestedActions::from_actions(&actions));
        self.newest = (record.seq, record.kind.clone());
        let begins = actions.iter().any(|action| matches!(action, Action::CallModel { .. } | Action::RunGate { .. }));
        for action in actions {
            match (action.call(), action) {
                // The tree that passed is kept and delivered, even if the workspace has changed
                // since.
                (Some(call), action @ Action::Deliver { .. }) => {
                    self.unproven = None;
                    self.open.insert(call, action);
                }
                // Stopped actions are not repeated. Model calls stay, because their cost is still
                // to be charged.
                (_, Action::AbortInFlight) => self.open.retain(|_, action| asks_model(action)),
                (Some(call), action @ Action::RunChild { .. }) => {
                    self.roster.number(call);
                    self.open.insert(call, action);
                }
                (_, Action::Emit { event }) => {
                    if matches!(event, AgentEvent::Started { .. } | AgentEvent::Finished { .. }) {
                        self.emitted.push(event.clone());
                    }
                    records.push(self.say(event));
                }
                (Some(call), action) => drop(self.open.insert(call, action)),
                (None, _) => {}
            }
        }
        if begins {
            self.pieces_from = self.seq + 1;
        }
        Ok(records)
    }

    /// Sets the smallest number for the next pieces of the run and its sub-agents.
    fn begin_pieces(&mut self, number: u64) {
        self.pieces_from = number;
        self.children.values_mut().for_each(|child| child.begin_pieces(number));
    }

    fn say(&mut self, event: AgentEvent) -> LastRecord {
        self.seq += 1;
        LastRecord { seq: self.seq, from: None, of: None, event }
    }

    /// Returns whole events for the pieces sent up to number `event_count`. They get the last
    /// numbers of the pieces.
    fn say_whole(&mut self, whole: Vec<AgentEvent>, event_count: u64) -> Vec<LastRecord> {
        let first = self.pieces_from.clamp(1, self.seq + 1);
        self.seq = event_count.max(self.seq + whole.len() as u64);
        let numbers = self.seq + 1 - whole.len() as u64..;
        whole
            .into_iter()
            .zip(numbers)
            .map(|(event, seq)| LastRecord { seq, from: Some(first), of: None, event })
            .collect()
    }

    /// Folds a record of a sub-agent into the fold of that sub-agent.
    fn take_of(
        &mut self,
        path: &str,
        kind: &str,
        record: &JournalRecord,
    ) -> Result<Vec<LastRecord>, serde_json::Error> {
        let (number, rest) = first(path);
        let kind = rest.map_or_else(|| kind.to_owned(), |rest| kind_of(rest, kind));
        let child = self.children.entry(number).or_default();
        let changes = child.changes.len();
        child.seq = self.seq;
        let mut records = child.push(&JournalRecord { kind, ..record.clone() })?;
        for records in &mut records {
            records.of = Some(records.of.take().map_or_else(|| number.to_string(), |of| format!("{number}.{of}")));
        }
        self.seq = child.seq;
        self.changes.extend(child.changes[changes..].iter().cloned());
        self.difference = self.difference.take().or_else(|| child.difference.take());
        Ok(records)
    }

    /// Returns the bills of the sub-agents under way that had begun and so cannot continue.
    pub(in crate::driver) fn lost(&self) -> BTreeMap<CallId, RunBill> {
        let mut bills = self.bills();
        bills.retain(|call, _| self.child(*call).is_some());
        bills
    }

    /// Returns the bills of all sub-agents under way and of unsent calls. Those that had not begun
    /// cost nothing.
    fn bills(&self) -> BTreeMap<CallId, RunBill> {
        let calls = self.open.iter().filter(|(_, action)| matches!(action, Action::RunChild { .. }));
        let bill = |child: &Self| child.run.last_bill(&child.bills());
        let bills = calls.map(|(call, _)| (*call, self.child(*call).map(bill).unwrap_or_default()));
        let unsent = self.open.iter().filter(|(call, action)| asks_model(action) && !self.sent.contains(call));
        bills.chain(unsent.map(|(call, _)| (*call, RunBill::default()))).collect()
    }

    /// Returns the cost of the run in millionths of a US dollar, including calls whose outcome is
    /// unknown.
    pub(in crate::driver) fn cost(&self) -> u64 {
        self.run.last_bill(&self.bills()).usage.cost_micros.unwrap_or(0)
    }

    fn child(&self, call: CallId) -> Option<&Self> {
        self.children.get(&self.roster.clone().number(call))
    }

    fn note(&mut self, event: &Event) {
        if let Some(call) = event.call() {
            self.open.remove(&call);
        }
        if let Event::PlanReady { plan, .. } = event {
            self.gate_file = Some(plan.gate_file.clone());
            self.sandbox = plan.sandbox;
        }
        if let Event::ToolFinished { outcome, .. } = event {
            self.changes.extend(outcome.change.clone());
        }
    }

    /// Keeps a copy of the run before an event that a resume may take back.
    fn keep(&mut self, event: &Event) {
        self.unreported = None;
        if self.run.state() == StateName::Executing {
            self.refused = None;
        }
        if let Event::ReportFailed { call, .. } = event {
            self.unreported = self.before(*call);
        } else if let Event::GateFinished { call, verdict } = event {
            self.unproven = self.before(*call).filter(|_| verdict.passed());
        } else if let Event::ReportSaved { .. } = event {
            self.unproven = None;
        } else if let Event::Delivered { call, result, .. } = event {
            self.undelivered = self.before(*call).filter(|_| result.is_err());
        } else if let Event::ModelFailed { call, error } = event {
            self.refused = self.before(*call);
            self.note_unsent(*call, error);
        } else if let Event::CompactionFinished { call, error: Some(error), .. } = event {
            self.note_unsent(*call, error);
        } else if let Event::CancelRequested { cause: StopCause::Terminate, .. } = event
            && self.run.state() != StateName::Reporting
        {
            self.stopped = Some(self.with(self.open.clone()));
        }
    }

    /// Notes a call that costs nothing although its request went out, so that a resume does not
    /// charge it. Only the end of the run answers a call that a resume takes up again.
    fn note_unsent(&mut self, call: CallId, error: &ModelError) {
        if self.run.state() == StateName::Reporting && error.spent.is_none() {
            self.sent.remove(&call);
        }
    }

    fn before(&self, call: CallId) -> Option<Box<FoldState>> {
        let action = self.open.get(&call)?.clone();
        Some(self.with(BTreeMap::from([(call, action)])))
    }

    fn with(&self, open: BTreeMap<CallId, Action>) -> Box<FoldState> {
        Box::new(FoldState { run: self.run.clone(), asked: self.asked.clone(), open })
    }

    /// Takes back a failed report, so that a resume writes it again. If `wanted`, also takes back:
    /// - a passed gate that no report mentions, because the tree may have changed since;
    /// - a failed delivery;
    /// - the end as blocked, because a model asked for too long a pause;
    /// - the end from outside, so that the run continues like a killed one;
    /// - the end by a limit that is now higher.
    ///
    /// Sets the new limits.
    ///
    /// Returns what it took back.
    pub(in crate::driver) fn go_back(&mut self, wanted: RestartedEffects) -> RestartedEffects {
        let ended_as = |reason| self.run.result().is_some_and(|result| result.reason == reason);
        let (is_blocked, is_cancelled) = (ended_as(Reason::Blocked), ended_as(Reason::Cancelled));
        if let Some(unreported) = self.unreported.take() {
            self.return_to(*unreported);
        }
        let unproven = self.unproven.take_if(|_| wanted.gate);
        let undelivered = self.undelivered.take_if(|_| wanted.delivery);
        let refused = self.refused.take_if(|_| wanted.request && is_blocked);
        let stopped = self.stopped.take_if(|_| wanted.stop && is_cancelled);
        // A refused request cost nothing and is sent again.
        if let Some(before) = &refused {
            self.sent.retain(|call| !before.open.contains_key(call));
        }
        let mut taken_back = RestartedEffects {
            gate: unproven.is_some(),
            delivery: undelivered.is_some(),
            request: refused.is_some(),
            stop: stopped.is_some(),
            limit: false,
            limits: wanted.limits,
        };
        let all = unproven.into_iter().chain(undelivered).chain(refused).chain(stopped);
        all.for_each(|before| self.return_to(*before));
        self.run.set_limits(wanted.limits);
        // Watchers see the limits that hold from now on.
        for event in &mut self.emitted {
            if let AgentEvent::Started { max_retries, limits, .. } = event {
                wanted.limits.apply(max_retries, limits);
            }
        }
        taken_back.limit = wanted.limit && self.go_on();
        taken_back
    }

    /// Lets a run go on that a limit ended. Returns true if it does.
    fn go_on(&mut self) -> bool {
        let actions = self.run.go_on();
        if actions.is_empty() {
            return false;
        }
        self.emitted.pop(); // the event of its end
        self.asked = Some(RequestedActions::from_actions(&actions));
        self.open = actions.into_iter().filter_map(|action| Some((action.call()?, action))).collect();
        self.stopped = None;
        true
    }

    fn return_to(&mut self, before: FoldState) {
        let FoldState { run, asked, open } = before;
        if self.run.state() == StateName::Idle {
            self.emitted.pop(); // the event of its end
        }
        (self.run, self.asked) = (run, asked);
        self.open.extend(open);
    }

    /// Returns the actions that the run waits for, in the order in which the machine asked for
    /// them.
    pub(in crate::driver) fn open(&self) -> Vec<Action> {
        let awaited = self.run.awaited();
        self.open.iter().filter(|(call, _)| awaited.contains(call)).map(|(_, action)| action.clone()).collect()
    }
}

/// Returns the event that tells watchers of a resume.
pub(in crate::driver) fn resumed_event(run: &Run) -> AgentEvent {
    AgentEvent::Resumed { state: run.state(), attempt: run.attempt(), turn: run.turn() }
}

/// Returns true if the action asks a model. If interrupted, its outcome is unknown and paid for.
pub(in crate::driver) fn asks_model(action: &Action) -> bool {
    matches!(action, Action::CallModel { .. } | Action::Compact { .. })
}

/// Returns the events that replace the pieces before this event of a run in this state, in order.
pub(in crate::driver) fn whole_events(state: StateName, event: &Event) -> Vec<AgentEvent> {
    match (state, event) {
        (StateName::Executing, Event::ModelCompleted { reply, .. }) => {
            reply.content.iter().filter_map(block_event).collect()
        }
        // A verdict that repeats an earlier one ran no step.
        (StateName::Verifying, Event::GateFinished { verdict, .. }) if verdict.unchanged_since.is_none() => {
            let steps = verdict.steps.iter().cloned();
            steps.map(|step| AgentEvent::LaneStep(StepProgress::Ended(step))).collect()
        }
        _ => Vec::new(),
    }
}

fn block_event(block: &Block) -> Option<AgentEvent> {
    match block {
        Block::Text { text } if !text.is_empty() => Some(AgentEvent::Text(text.clone())),
        Block::Thinking { text, .. } if !text.is_empty() => Some(AgentEvent::Thinking(text.clone())),
        Block::ToolUse(call) => Some(AgentEvent::ToolCall { name: call.name.clone(), args: call.input.to_value() }),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {
            None
        }
    }
}
