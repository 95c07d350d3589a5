//! 5. The conversation, the plan and the accounts are empty when a task starts. The conversation
//!    then begins with exactly the plan's messages.

use super::{Action, CallId, Checked, Event, Law, StateName, Step, law};
use fledge::chat::Message;
use fledge::elapsed::Elapsed;

#[derive(Default)]
pub(crate) struct Watch {
    begins_with: Option<Vec<Message>>,
    newest_call: Option<CallId>,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        match step.event {
            Event::TaskSubmitted { spec } if step.state == StateName::Idle => {
                let run = step.run;
                let bare = run.conversation().is_empty() && run.tools().is_empty() && run.system().is_empty();
                law(5, bare && run.next_turn() == 1, || "something is left of the task before".into())?;
                if run.state() == StateName::Reporting {
                    return Ok(()); // the task must not begin
                }
                law(5, run.result().is_none(), || "a result is left of the task before".into())?;
                let fresh = run.deadline().is_some_and(|due| due >= Elapsed(spec.limits.time_ms));
                law(5, fresh, || "the task does not have its whole time".into())?;
            }
            Event::PlanReady { plan, .. } if step.label == "Planning" && step.is_answer() => {
                self.begins_with = Some(plan.messages.clone());
            }
            _ => {}
        }
        if let Some(messages) = self.begins_with.take() {
            law(5, step.run.conversation() == messages, || "the conversation does not begin with the plan's".into())?;
        }
        for call in step.actions.iter().filter_map(Action::call) {
            law(5, self.newest_call < Some(call), || format!("call {call} is not a new one"))?;
            self.newest_call = Some(call);
        }
        Ok(())
    }
}
