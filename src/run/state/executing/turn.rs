//! Tool calls of one turn. They run one after the other in the model's order, and each gets exactly
//! one result. Adjacent read-only calls may run in parallel if the run spec allows it, and so may
//! adjacent sub-agents. Watchers and the model still see the results in order.

use super::super::NextState;
use crate::chat::{FileChange, OutcomeDetail, ToolCall, ToolInput, ToolOutcome, ToolResult};
use crate::elapsed::Elapsed;
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::compaction::shortened;
use crate::run::context::RunContext;
use crate::run::event::DoneTool;
use crate::run::loops::LoopOpinion;
use crate::run::prompt;
use crate::run::run_spec::{ToolAccess, ToolRole, ToolRule};
use crate::run::watch::AgentEvent;
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// The maximum number of read-only calls in parallel.
const PARALLEL_READS: usize = 8;
/// The maximum number of sub-agents of a run in parallel. Each of them runs at most one sub-agent
/// at a time and waits for it, so no more than this many are at work.
const PARALLEL_CHILDREN: usize = 4;
/// Tools whose changes are in the run's list of changed files.
const FILE_TOOLS: [&str; 3] = ["files-write", "files-edit", "files-delete"];
/// The run ends after this many turns in a row with only malformed calls.
const MALFORMED_TURNS: u32 = 3;

/// The calls of one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct ToolTurn {
    slots: Vec<Slot>,
    /// The number of slots whose results were shown: always the first ones.
    reported: usize,
    /// True if a call that may change something ran. A sub-agent counts as well.
    wrote: bool,
    repetitive: bool,
    looping: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Slot {
    tool: ToolCall,
    role: ToolRole,
    /// True if the call still needs a person's approval.
    ask: bool,
    /// The number of times it was started.
    tries: u32,
    /// The paths that the file tools of a sub-agent changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
    stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    Queued,
    Running {
        call: CallId,
        since: Elapsed,
    },
    Done {
        result: ToolResult,
        denied: bool,
        malformed: bool,
        duration_ms: u64,
        change: Option<FileChange>,
        detail: OutcomeDetail,
    },
}

/// The thing that a turn waits for.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::run::state) enum TurnWait {
    Tools,
    Children,
    /// An answer about the call at this index.
    Confirmation(usize),
    /// Nothing: the turn is complete.
    Nothing,
}

impl ToolTurn {
    /// Queues a call, or refuses it with a result that gives the reason.
    pub(super) fn queue(&mut self, tool: ToolCall, repeated: bool, cx: &mut RunContext) {
        if self.slots.is_empty() {
            cx.loops.begin_turn();
        }
        cx.ledger.tally(&tool.name).called += 1;
        let asks = |rule: &ToolRule| rule.access == ToolAccess::Ask || cx.plan.asks_about(&tool);
        let rule = cx.rule(&tool.name).map(|rule| (rule.role, asks(rule)));
        let refusal = if let ToolInput::Malformed { error, .. } = &tool.input {
            Some(format!("the arguments are not a JSON object: {error}"))
        } else if repeated {
            Some("another call of this turn has the same id: give each call a different id".into())
        } else if self.slots.len() >= cx.spec.limits.calls_per_turn {
            Some(format!("too many calls in one turn: at most {} are run", cx.spec.limits.calls_per_turn))
        } else if rule.is_none() {
            Some(format!("there is no tool `{}` in this task", tool.name))
        } else {
            None
        };
        let (role, ask) = rule.unwrap_or((ToolRole::Reader, false));
        let malformed = matches!(tool.input, ToolInput::Malformed { .. });
        self.slots.push(Slot { tool, role, ask, tries: 0, changed: Vec::new(), stage: Stage::Queued });
        if let Some(why) = refusal {
            let place = self.slots.len() - 1;
            if rule.is_none() {
                self.note_refusal(place, &why, cx);
            }
            self.refuse(place, why, malformed, cx);
        }
    }

    /// Shows finished results, starts the calls that may start, and returns what the turn waits
    /// for.
    pub(in crate::run::state) fn advance(&mut self, cx: &mut RunContext) -> TurnWait {
        self.report(cx);
        loop {
            let running = self.running_roles();
            let queued = self.slots.iter().position(|slot| slot.stage == Stage::Queued);
            let waiting = if running.contains(&ToolRole::Child) { TurnWait::Children } else { TurnWait::Tools };
            let Some(place) = queued else {
                return if running.is_empty() { TurnWait::Nothing } else { waiting };
            };
            let slot = &self.slots[place];
            let alone = running.is_empty();
            if slot.ask {
                return if alone { TurnWait::Confirmation(place) } else { waiting };
            }
            let beside = |role: ToolRole, most: usize| running.len() < most && running.iter().all(|r| *r == role);
            let may_start = alone
                || match slot.role {
                    ToolRole::Child => cx.spec.depth == 0 && beside(ToolRole::Child, PARALLEL_CHILDREN),
                    ToolRole::Reader => cx.spec.parallel_reads && beside(ToolRole::Reader, PARALLEL_READS),
                    ToolRole::Writer => false,
                };
            if !may_start {
                return waiting;
            }
            self.start(place, cx);
        }
    }

    /// Adds the results to the conversation and returns the next transition.
    pub(in crate::run::state) fn finish(self, cx: &mut RunContext) -> NextState {
        let malformed = |slot: &Slot| matches!(slot.stage, Stage::Done { malformed: true, .. });
        let nothing_understood = self.slots.iter().all(malformed);
        let Self { wrote, repetitive, looping, .. } = self;
        let done = self.slots.iter().filter_map(Slot::done).collect();
        self.seal(cx);
        cx.streaks.malformed = if nothing_understood { cx.streaks.malformed + 1 } else { 0 };
        if cx.streaks.malformed >= MALFORMED_TURNS {
            let message = format!("{MALFORMED_TURNS} turns in a row had only malformed calls");
            return NextState::end(Reason::ModelProtocol, message);
        }
        if looping {
            return NextState::end(Reason::LoopDetected, "the model kept making the same calls");
        }
        if repetitive {
            cx.transcript.say(prompt::REPETITIVE.into());
        }
        if wrote { NextState::RunHooks(done) } else { NextState::CallModel }
    }

    /// Completes the turn in the conversation. Every call gets a result and is shown; the result of
    /// an unfinished call says so.
    pub(in crate::run::state) fn seal(mut self, cx: &mut RunContext) {
        for slot in &mut self.slots {
            match slot.stage {
                Stage::Done { .. } => {}
                Stage::Queued => slot.refuse(prompt::NOT_RUN.into(), false),
                Stage::Running { .. } => slot.refuse(prompt::OUTCOME_UNKNOWN.into(), false),
            }
        }
        self.report(cx);
        let result = |slot: Slot| match slot.stage {
            Stage::Done { result, .. } => Some(result),
            Stage::Queued | Stage::Running { .. } => None,
        };
        cx.transcript.answer(self.slots.into_iter().filter_map(result).collect());
    }

    /// Returns the calls in flight.
    pub(in crate::run::state) fn running(&self) -> Vec<CallId> {
        let call = |slot: &Slot| match slot.stage {
            Stage::Running { call, .. } => Some(call),
            Stage::Queued | Stage::Done { .. } => None,
        };
        self.slots.iter().filter_map(call).collect()
    }

    /// Returns the call at an index, as the model made it.
    pub(super) fn tool(&self, place: usize) -> Option<&ToolCall> {
        self.slots.get(place).map(|slot| &slot.tool)
    }

    /// Records a person's approval.
    pub(super) fn approve(&mut self, place: usize) {
        if let Some(slot) = self.slots.get_mut(place) {
            slot.ask = false;
        }
    }

    /// Refuses a call that a person denied or did not answer in time.
    pub(super) fn deny(&mut self, place: usize, why: String, cx: &mut RunContext) {
        self.note_refusal(place, &why, cx);
        self.refuse(place, why, false, cx);
    }

    /// Counts a refused call for loop detection: repeated requests for a refused call are a loop
    /// too.
    fn note_refusal(&mut self, place: usize, why: &str, cx: &mut RunContext) {
        if let Some(slot) = self.slots.get(place) {
            let opinion = note(&slot.tool, why, false, cx);
            self.apply_opinion(opinion);
        }
    }

    /// Returns the number of tries so far if a failed call should be tried again.
    pub(super) fn may_retry(&self, call: CallId, outcome: &ToolOutcome, limit: u32) -> Option<u32> {
        let slot = self.slots.iter().find(|slot| slot.is_running(call))?;
        let alone = self.running_roles().len() == 1;
        (outcome.transient && outcome.is_error && slot.role == ToolRole::Reader && alone && slot.tries < limit)
            .then_some(slot.tries)
    }

    /// Puts a running call back into the queue and returns the name of its tool.
    pub(super) fn requeue(&mut self, call: CallId) -> String {
        let slot = self.slots.iter_mut().find(|slot| slot.is_running(call));
        slot.map_or_else(String::new, |slot| {
            slot.stage = Stage::Queued;
            slot.tool.name.clone()
        })
    }

    /// Notes the paths that a running sub-agent changed, for the hooks of the turn.
    pub(super) fn note_changed(&mut self, call: CallId, changes: &[FileChange]) {
        let slot = self.slots.iter_mut().find(|slot| slot.is_running(call));
        slot.into_iter().for_each(|slot| slot.changed.extend(changes.iter().map(|change| change.path.clone())));
    }

    /// Records the outcome of a running call. An outcome for any other call is ignored.
    pub(in crate::run::state) fn end(&mut self, call: CallId, outcome: ToolOutcome, cx: &mut RunContext) {
        let used = self.result_bytes();
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_running(call)) else { return };
        let ToolOutcome { content, is_error, transient: _, change, detail, images } = outcome;
        let duration_ms = match slot.stage {
            Stage::Running { since, .. } => cx.now.since(since).as_millis() as u64,
            Stage::Queued | Stage::Done { .. } => 0,
        };
        if is_error {
            cx.ledger.tally(&slot.tool.name).failed += 1;
        }
        if let (false, Some(change), true) = (is_error, &change, FILE_TOOLS.contains(&slot.tool.name.as_str())) {
            cx.ledger.changed(change);
        }
        if let OutcomeDetail::Protected { path, rule } = &detail {
            cx.ledger.refused(path, rule);
        }
        let content = match cx.room_for_results() {
            Some(room) => shortened(content, room.saturating_sub(used)),
            None => content,
        };
        let opinion = note(&slot.tool, &content, change.is_some(), cx);
        let result = ToolResult { id: slot.tool.id.clone(), content, is_error, images };
        slot.stage = Stage::Done { result, denied: false, malformed: false, duration_ms, change, detail };
        self.apply_opinion(opinion);
    }

    /// Returns the size of the results so far, in bytes.
    fn result_bytes(&self) -> usize {
        let bytes = |slot: &Slot| match &slot.stage {
            Stage::Done { result, .. } => result.content.len(),
            Stage::Queued | Stage::Running { .. } => 0,
        };
        self.slots.iter().map(bytes).sum()
    }

    fn apply_opinion(&mut self, opinion: LoopOpinion) {
        match opinion {
            LoopOpinion::Fine => {}
            LoopOpinion::Repetitive => self.repetitive = true,
            LoopOpinion::Loop => self.looping = true,
        }
    }

    /// Shows the results that are next in order.
    pub(in crate::run::state) fn report(&mut self, cx: &mut RunContext) {
        while let Some(slot) = self.slots.get(self.reported) {
            let Stage::Done { result, denied, duration_ms, change, detail, .. } = &slot.stage else { return };
            let name = slot.tool.name.clone();
            cx.emit(AgentEvent::ToolResult { name: name.clone(), success: !result.is_error });
            cx.emit(AgentEvent::ToolDetail {
                id: result.id.clone(),
                name,
                args: slot.tool.input.to_value(),
                denied: *denied,
                duration_ms: *duration_ms,
                output: result.content.clone(),
                change: change.clone(),
                detail: detail.clone(),
            });
            self.reported += 1;
        }
    }

    fn start(&mut self, place: usize, cx: &mut RunContext) {
        if self.slots[place].role == ToolRole::Child {
            return self.start_child(place, cx);
        }
        let call = cx.call();
        let slot = self.run(place, call, cx);
        let (tool, input) = (slot.tool.name.clone(), slot.tool.input.to_value());
        cx.ask(Action::RunTool { call, tool, input });
    }

    /// Starts a sub-agent with a share of the remaining budget. The share stays reserved until the
    /// real usage is known.
    fn start_child(&mut self, place: usize, cx: &mut RunContext) {
        let is_to_come = |slot: &&Slot| slot.role == ToolRole::Child && slot.stage == Stage::Queued;
        let to_come = self.slots.iter().filter(is_to_come).count() as u64;
        let Some((limits, aside)) = cx.share(to_come) else {
            self.refuse(place, prompt::NO_SHARE.into(), false, cx);
            return self.report(cx);
        };
        let call = cx.call();
        let input = self.run(place, call, cx).tool.input.to_value();
        let shown = |key: &str| input[key].as_str().map(str::trim).filter(|text| !text.is_empty());
        let note = shown("title").or_else(|| shown("task")).unwrap_or_default().to_owned();
        cx.emit(AgentEvent::Subagent { finished: false, note });
        cx.reserve(call, aside);
        cx.ask(Action::RunChild { call, input, limits });
    }

    fn run(&mut self, place: usize, call: CallId, cx: &RunContext) -> &Slot {
        let slot = &mut self.slots[place];
        slot.stage = Stage::Running { call, since: cx.now };
        slot.tries += 1;
        self.wrote |= slot.role != ToolRole::Reader;
        slot
    }

    fn refuse(&mut self, place: usize, why: String, malformed: bool, cx: &mut RunContext) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        cx.ledger.tally(&slot.tool.name).denied += 1;
        slot.refuse(why, malformed);
    }

    fn running_roles(&self) -> Vec<ToolRole> {
        self.slots.iter().filter(|slot| matches!(slot.stage, Stage::Running { .. })).map(|slot| slot.role).collect()
    }
}

/// Records a call with its result, and returns whether the model repeats itself.
fn note(tool: &ToolCall, result: &str, changed: bool, cx: &mut RunContext) -> LoopOpinion {
    let ToolInput::Object(input) = &tool.input else { return LoopOpinion::Fine };
    let threshold = cx.spec.limits.loop_threshold;
    match cx.loops.note(&tool.name, input, result, changed, threshold) {
        // All repetitions are in this turn, so the model had no warning yet.
        LoopOpinion::Loop if !cx.loops.went_on(threshold) => LoopOpinion::Repetitive,
        opinion => opinion,
    }
}

impl Slot {
    fn is_running(&self, call: CallId) -> bool {
        matches!(self.stage, Stage::Running { call: mine, .. } if mine == call)
    }

    /// Returns the call for the hooks of the turn; `None` if it did not run.
    fn done(&self) -> Option<DoneTool> {
        let Stage::Done { result, denied: false, change, .. } = &self.stage else { return None };
        let changed = change.iter().map(|change| change.path.clone()).chain(self.changed.iter().cloned()).collect();
        Some(DoneTool { name: self.tool.name.clone(), success: !result.is_error, changed })
    }

    /// Ends the call with a refusal or an unknown outcome.
    fn refuse(&mut self, why: String, malformed: bool) {
        let result = ToolResult::text(&self.tool.id, why, true);
        let denied = self.stage == Stage::Queued;
        self.stage =
            Stage::Done { result, denied, malformed, duration_ms: 0, change: None, detail: OutcomeDetail::None };
    }
}
