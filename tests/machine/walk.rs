//! A run driven by single events to the state in which a test starts.

use crate::machine::world::nature;
use fledge::chat::{
    Block, Message, ModelError, ModelErrorKind, Reply, Role, Spent, StopReason, ToolCall, ToolInput, ToolOutcome, Usage,
};
use fledge::elapsed::Elapsed;
use fledge::id::{CallId, RunId};
use fledge::run::{Action, AgentEvent, Event, Run, RunPlan, RunSpec};
use fledge::verdict::{Proof, Ruling, StepStatus, StopCause, TamperFinding, Verdict};
use serde_json::json;

/// A run, its clock, and its newest actions.
#[derive(Clone)]
pub(crate) struct Walk {
    pub(crate) run: Run,
    pub(crate) now: Elapsed,
    pub(crate) actions: Vec<Action>,
}

impl Walk {
    pub(crate) fn new() -> Self {
        Self { run: Run::new(), now: Elapsed(0), actions: Vec::new() }
    }

    pub(crate) fn planning(spec: RunSpec) -> Self {
        Self::new().then(Event::TaskSubmitted { spec: Box::new(spec) })
    }

    /// Returns a run at the first model call.
    pub(crate) fn calling(spec: RunSpec) -> Self {
        Self::planning(spec).answer(planned(nature::plan()))
    }

    /// Returns a run at the first model call, with a conversation that can be shortened.
    pub(crate) fn calling_after_much(spec: RunSpec) -> Self {
        let turn =
            |_| [Message::user("more of it, and then some more"), Message::assistant(text("done, and more than that"))];
        let messages = (0..4).flat_map(turn).chain([Message::user("do it")]).collect();
        Self::planning(spec).answer(planned(RunPlan { messages, ..nature::plan() }))
    }

    pub(crate) fn verifying(spec: RunSpec) -> Self {
        Self::calling(spec).answer(says(StopReason::EndTurn, "All done."))
    }

    pub(crate) fn then(mut self, event: Event) -> Self {
        self.actions = self.run.handle(self.now, event);
        self
    }

    /// Answers the first awaited call.
    pub(crate) fn answer(self, event: impl FnOnce(CallId) -> Event) -> Self {
        let call = self.run.awaited().first().copied().unwrap_or(CallId(0));
        self.then(event(call))
    }

    /// Advances the time to the deadline and sends `DeadlinePassed`.
    pub(crate) fn wait(mut self) -> Self {
        self.now = self.run.deadline().unwrap_or(self.now);
        self.then(Event::DeadlinePassed)
    }

    pub(crate) fn asked(&self) -> Vec<Action> {
        self.actions.iter().filter(|action| !matches!(action, Action::Emit { .. })).cloned().collect()
    }

    pub(crate) fn told(&self) -> Vec<AgentEvent> {
        let told = |action: &Action| if let Action::Emit { event } = action { Some(event.clone()) } else { None };
        self.actions.iter().filter_map(told).collect()
    }

    /// Asserts the state after the newest event and its actions, without events for watchers.
    #[track_caller]
    pub(crate) fn gives(self, label: &str, asked: &[Action]) -> Self {
        assert_eq!((self.run.label(), self.asked().as_slice()), (label, asked));
        self
    }

    /// Asserts the state and all actions, with events for watchers.
    #[track_caller]
    pub(crate) fn gives_all(self, label: &str, actions: &[Action]) -> Self {
        assert_eq!((self.run.label(), self.actions.as_slice()), (label, actions));
        self
    }

    /// Asserts the reason with which the run ends, once it is decided.
    #[track_caller]
    pub(crate) fn ends_as(&self, reason: fledge::verdict::Reason) {
        assert_eq!(self.run.result().map(|result| result.reason), Some(reason));
    }
}

pub(crate) fn spec() -> RunSpec {
    RunSpec::new(RunId::new("run"), "title", "prompt")
}

/// Returns a run spec of a run that commits.
pub(crate) fn committing() -> RunSpec {
    RunSpec { commits: true, ..spec() }
}

/// Returns a run in each of the thirteen states, in the order of the table.
pub(crate) fn everywhere() -> [Walk; 13] {
    let calling = || Walk::calling(spec());
    [
        Walk::new(),
        Walk::planning(spec()),
        calling(),
        calling().answer(fails(ModelErrorKind::Busy)),
        calling().answer(calls(&[("c1", "files-delete")])),
        calling().answer(calls(&[("c1", "files-read")])),
        calling().answer(calls(&[("c1", "subagent-spawn")])),
        calling().answer(calls(&[("c1", "files-edit")])).answer(ran(ToolOutcome::ok("edited"))),
        calling().answer(says(StopReason::EndTurn, "I need to read src/main.rs")),
        Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong)),
        Walk::verifying(spec()),
        Walk::verifying(committing()).answer(proven(nature::proof())),
        Walk::verifying(spec()).answer(judged(Ruling::Passed)),
    ]
}

pub(crate) fn planned(plan: RunPlan) -> impl FnOnce(CallId) -> Event {
    move |call| Event::PlanReady { call, plan: Box::new(plan) }
}

pub(crate) fn replies(stop: StopReason, content: Vec<Block>) -> impl FnOnce(CallId) -> Event {
    let usage = Some(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() });
    let reply = Reply { content, stop, usage, model: "model-v1".into(), lacks_end: false };
    move |call| Event::ModelCompleted { call, reply: Box::new(reply) }
}

pub(crate) fn says(stop: StopReason, content: &str) -> impl FnOnce(CallId) -> Event + use<> {
    replies(stop, text(content))
}

/// Returns an answer with calls, given by id and tool. The argument of each call is its id.
pub(crate) fn calls(tools: &[(&str, &str)]) -> impl FnOnce(CallId) -> Event + use<> {
    replies(StopReason::ToolUse, tools.iter().map(|(id, name)| Block::ToolUse(tool(id, name))).collect())
}

pub(crate) fn tool(id: &str, name: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), input: ToolInput::Object(json!({ "path": id })) }
}

pub(crate) fn fails(fault: ModelErrorKind) -> impl FnOnce(CallId) -> Event {
    move |call| Event::ModelFailed { call, error: ModelError::new(fault, "no answer") }
}

/// Returns a failure during a call, with the usage and the bytes of the answer so far.
pub(crate) fn breaks(fault: ModelErrorKind, usage: Option<Usage>, bytes: u64) -> impl FnOnce(CallId) -> Event {
    let spent = Spent { model: "model-v1".into(), usage, bytes, ..Spent::default() };
    move |call| Event::ModelFailed { call, error: ModelError::new(fault, "it broke off").after(spent) }
}

/// Returns a failed summary.
pub(crate) fn unsummarised(error: ModelError) -> impl FnOnce(CallId) -> Event {
    let result = Err(format!("no summary: {error}"));
    move |call| Event::CompactionFinished {
        call,
        result,
        usage: Usage::default(),
        model: String::new(),
        error: Some(error),
    }
}

pub(crate) fn interrupted(call: CallId) -> Event {
    Event::Interrupted { call }
}

pub(crate) fn ran(outcome: ToolOutcome) -> impl FnOnce(CallId) -> Event {
    move |call| Event::ToolFinished { call, outcome }
}

pub(crate) fn reported(content: &str) -> impl FnOnce(CallId) -> Event + use<> {
    let outcome = ToolOutcome::ok(content);
    let usage = Usage { input_tokens: 7, ..Usage::default() };
    move |call| Event::ChildFinished {
        call,
        outcome,
        usage,
        turns: 1,
        requests: 1,
        by_model: Default::default(),
        changes: Vec::new(),
    }
}

pub(crate) fn summarised(result: Result<&str, &str>, usage: Usage) -> impl FnOnce(CallId) -> Event + use<> {
    let result = result.map(str::to_owned).map_err(str::to_owned);
    move |call| Event::CompactionFinished { call, result, usage, model: "model-v1".into(), error: None }
}

pub(crate) fn judged(ruling: Ruling) -> impl FnOnce(CallId) -> Event {
    let passed = ruling == Ruling::Passed;
    let status = if passed { StepStatus::Passed } else { StepStatus::Failed };
    let finding = || TamperFinding { path: "lanes/verify.yaml".into(), change: "changed".into(), rule: "lanes".into() };
    let verdict = Verdict {
        ruling,
        steps: vec![nature::step("test", status)],
        findings: if ruling == Ruling::Tampered { vec![finding()] } else { Vec::new() },
        duration_ms: 5,
        feedback: if passed { String::new() } else { "1 test failed".into() },
        signature: if passed { String::new() } else { "test".into() },
        notes: Vec::new(),
        installed: None,
        failed_before: Vec::new(),
        unchanged_since: None,
        proof: None,
    };
    move |call| Event::GateFinished { call, verdict: Box::new(verdict) }
}

/// Returns a pass that names its trees.
pub(crate) fn proven(proof: Proof) -> impl FnOnce(CallId) -> Event {
    move |call| match judged(Ruling::Passed)(call) {
        Event::GateFinished { call, verdict } => {
            Event::GateFinished { call, verdict: Box::new(Verdict { proof: Some(Box::new(proof)), ..*verdict }) }
        }
        other => other,
    }
}

pub(crate) fn delivered(result: Result<(), &str>) -> impl FnOnce(CallId) -> Event {
    let result = result.map(|()| nature::delivery()).map_err(str::to_owned);
    move |call| Event::Delivered { call, result, ways: None }
}

pub(crate) fn cancel() -> Event {
    Event::CancelRequested { cause: StopCause::Interrupt, partial_text: String::new() }
}

pub(crate) fn text(content: &str) -> Vec<Block> {
    vec![Block::Text { text: content.into() }]
}

/// Returns the results and texts in the newest message to the model.
pub(crate) fn heard(run: &Run) -> Vec<String> {
    let newest = run.conversation().iter().rev().find(|message| message.role == Role::User);
    let text_of = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::ToolResult(result) => Some(result.content.clone()),
        Block::Thinking { .. } | Block::Image(_) | Block::ToolUse(_) | Block::Opaque { .. } => None,
    };
    newest.into_iter().flat_map(|message| &message.content).filter_map(text_of).collect()
}
