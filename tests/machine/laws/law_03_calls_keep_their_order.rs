//! 3. Within a turn, calls are started, shown and answered in the model's order. Only adjacent
//!    reads (if the run spec allows it) and adjacent sub-agents overlap; a mutating call never
//!    overlaps another call.

use super::{Action, AgentEvent, CallId, Checked, Event, Law, Step, law};
use fledge::chat::{Block, StopReason, ToolCall};
use fledge::run::{ToolRole, ToolRule};
use serde_json::Value;

#[derive(Default)]
pub(crate) struct Watch {
    parallel_reads: bool,
    rules: Vec<ToolRule>,
    /// The tool calls of the turn.
    asked: Vec<ToolCall>,
    /// The number of calls shown so far.
    shown: usize,
    /// The index after the newest start.
    next: usize,
    /// The index of a read that will be retried.
    again: Option<usize>,
    running: Vec<(CallId, usize, ToolRole)>,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        match step.event {
            Event::TaskSubmitted { spec } if step.label == "Idle" => {
                *self = Self { parallel_reads: spec.parallel_reads, ..Self::default() };
            }
            Event::PlanReady { plan, .. } if step.label == "Planning" => self.rules.clone_from(&plan.rules),
            Event::ModelCompleted { .. } if step.label == "CallingModel" && step.is_answer() => self.begin(step),
            Event::ToolFinished { call, .. } | Event::ChildFinished { call, .. } => self.ended(*call, step),
            _ => {}
        }
        for action in step.actions {
            match action {
                Action::RunTool { call, tool, input } => self.started(*call, Some(tool), input)?,
                Action::RunChild { call, input, .. } => self.started(*call, None, input)?,
                Action::Emit { event: AgentEvent::ToolDetail { id, .. } } => {
                    let due = self.asked.get(self.shown).map(|tool| &tool.id);
                    law(3, due == Some(id), || format!("the result of {id} was shown when {due:?} was due"))?;
                    self.shown += 1;
                }
                Action::CallModel { .. }
                | Action::RunHooks { .. }
                | Action::Compact { .. }
                | Action::RunGate { .. } => {
                    let (left, running) = (self.asked.len() - self.shown, self.running.len());
                    law(3, left + running == 0, || format!("went on with {left} results missing, {running} running"))?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Watch {
    /// Takes the turn's calls from the conversation, with the ids that the machine assigned. An
    /// answer that was cut off has no calls.
    fn begin(&mut self, step: &Step<'_>) {
        let Event::ModelCompleted { reply, .. } = step.event else { return };
        (self.asked, self.shown, self.next, self.again) = (Vec::new(), 0, 0, None);
        if matches!(reply.stop, StopReason::EndTurn | StopReason::ToolUse) && reply.tool_calls().next().is_some() {
            let newest = step.run.conversation().iter().rev().map(|message| uses(&message.content));
            self.asked = newest.take(2).find(|calls| !calls.is_empty()).unwrap_or_default();
        }
    }

    fn ended(&mut self, call: CallId, step: &Step<'_>) {
        if let Some(at) = self.running.iter().position(|(running, ..)| *running == call) {
            let fits = matches!(step.event, Event::ChildFinished { .. }) == (self.running[at].2 == ToolRole::Child);
            if fits || step.label == "Reporting" {
                let (_, place, _) = self.running.remove(at);
                self.again = (step.run.label() == "BackingOff").then_some(place);
            }
        }
    }

    /// Checks the start of a tool, or of a sub-agent if no name exists.
    fn started(&mut self, call: CallId, name: Option<&String>, input: &Value) -> Checked {
        let role_of = |name: &String| self.rules.iter().find(|rule| rule.name == *name).map(|rule| rule.role);
        let fits = |tool: &ToolCall| {
            let named = name.map_or(role_of(&tool.name) == Some(ToolRole::Child), |name| tool.name == *name);
            named && tool.input.to_value() == *input
        };
        let from = self.again.unwrap_or(self.next);
        let found = self.asked.iter().skip(from).position(fits).map(|at| from + at);
        let place = found.ok_or_else(|| format!("law 3: call {call} was started out of order"))?;
        let is_right = self.again.is_none_or(|again| again == place);
        law(3, is_right, || "another call than the failed one was tried again".into())?;
        let role = role_of(&self.asked[place].name).ok_or("law 3: a tool without a rule was run")?;
        let may_overlap = match role {
            ToolRole::Writer => false,
            ToolRole::Reader => self.parallel_reads,
            ToolRole::Child => true,
        };
        let beside = self.running.iter().all(|(.., other)| may_overlap && *other == role);
        law(3, beside, || format!("a {role:?} was started beside {:?}", self.running))?;
        (self.again, self.next) = (None, self.next.max(place + 1));
        self.running.push((call, place, role));
        Ok(())
    }
}

fn uses(content: &[Block]) -> Vec<ToolCall> {
    let calls = content.iter().filter_map(|block| if let Block::ToolUse(call) = block { Some(call) } else { None });
    calls.cloned().collect()
}
