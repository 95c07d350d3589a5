//! 4. Each state change, text delta, tool call, tool result, verdict and usage is emitted as an
//!    event. (Law 1 covers state changes.) Watchers see the tool results of a turn exactly as the
//!    model receives them.

use super::{Action, AgentEvent, Checked, Event, Law, StateName, Step, law};
use fledge::chat::{Block, Delta, Message, ModelError, ToolResult};

#[derive(Default)]
pub(crate) struct Watch {
    /// Results shown but not yet found in the conversation: id, text, success.
    shown: Vec<(String, String, bool)>,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        self.results(step)?;
        if !step.is_answer() {
            return Ok(());
        }
        let said =
            |wanted: AgentEvent| law(4, step.told().any(|told| *told == wanted), || format!("not told: {wanted:?}"));
        match (step.event, step.state, step.label) {
            (Event::ModelDelta { delta, .. }, _, "CallingModel") => said(match delta.clone() {
                Delta::Text(text) => AgentEvent::Text(text),
                Delta::Thinking(text) => AgentEvent::Thinking(text),
                Delta::ToolCall(call) => AgentEvent::ToolCall { args: call.input.to_value(), name: call.name },
                Delta::Spent(_) => return Ok(()),
            }),
            (Event::ModelCompleted { .. }, _, "CallingModel" | "Reporting")
            | (Event::ChildFinished { .. }, _, "Dispatching" | "Reporting")
            | (Event::Interrupted { .. }, _, "CallingModel" | "Compacting" | "Reporting")
            | (Event::ModelFailed { error: ModelError { spent: Some(_), .. }, .. }, _, "CallingModel" | "Reporting")
            | (
                Event::CompactionFinished { error: None | Some(ModelError { spent: Some(_), .. }), .. },
                _,
                "Compacting" | "Reporting",
            ) => {
                let told = step.told().any(|told| matches!(told, AgentEvent::Usage(_)));
                law(4, told, || "usage was booked and not told".into())
            }
            (Event::GateFinished { verdict, .. }, StateName::Verifying, _) => {
                let fits = |told: &AgentEvent| {
                    matches!(told, AgentEvent::VerifyResult { success, feedback, .. }
                        if *success == verdict.passed() && *feedback == verdict.feedback)
                };
                law(4, step.told().any(fits), || "the verdict was not told".into())
            }
            _ => Ok(()),
        }
    }
}

impl Watch {
    fn results(&mut self, step: &Step<'_>) -> Checked {
        let mut named = None;
        for told in step.told() {
            match told {
                AgentEvent::ToolResult { name, success } => named = Some((name, *success)),
                AgentEvent::ToolDetail { id, name, output, .. } => {
                    let (result, success) = named.take().ok_or("law 4: details of a result that was not told")?;
                    law(4, result == name, || format!("details of {name} beside the result of {result}"))?;
                    self.shown.push((id.clone(), output.clone(), success));
                }
                _ => {}
            }
        }
        let goes_on = step.asked().any(|action| matches!(action, Action::CallModel { .. } | Action::RunHooks { .. }));
        if goes_on || (step.state == StateName::Reporting && step.run.state() == StateName::Idle) {
            let newest = step.run.conversation().iter().rev().map(results_of).find(|results| !results.is_empty());
            let given: Vec<_> = newest.unwrap_or_default();
            let shown = std::mem::take(&mut self.shown);
            let same =
                given.iter().map(|r| (&r.id, &r.content, !r.is_error)).eq(shown.iter().map(|s| (&s.0, &s.1, s.2)));
            law(4, shown.is_empty() || same, || format!("shown {shown:?}, but the model is given {given:?}"))?;
        }
        Ok(())
    }
}

fn results_of(message: &Message) -> Vec<&ToolResult> {
    fn result(block: &Block) -> Option<&ToolResult> {
        if let Block::ToolResult(result) = block { Some(result) } else { None }
    }
    message.content.iter().filter_map(result).collect()
}
