//! 10. No model call in Planning, Verifying or Reporting. All other effects also belong to one
//!     state each.

use super::{Action, Checked, Law, Step, law};

#[derive(Default)]
pub(crate) struct Watch;

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        let label = step.run.label();
        for action in step.asked() {
            let home: &[&str] = match action {
                Action::Plan { .. } => &["Planning"],
                Action::CallModel { .. } => &["CallingModel"],
                Action::AskConfirmation { .. } => &["Confirming"],
                Action::RunTool { .. } => &["RunningTools"],
                Action::RunChild { .. } => &["Dispatching"],
                Action::RunHooks { .. } => &["RunningHooks"],
                Action::AnswerQuery { .. } => &["AnsweringQuery"],
                Action::Compact { .. } => &["Compacting"],
                Action::RunGate { .. } => &["Verifying"],
                Action::Deliver { .. } => &["Delivering"],
                Action::SaveReport { .. } | Action::AbortInFlight => &["Reporting"],
                Action::Emit { .. } => continue,
            };
            law(10, home.contains(&label), || format!("{} while {label}", action.name()))?;
            let awaited = action.call().is_none_or(|call| step.run.awaited().contains(&call));
            law(10, awaited, || format!("no state waits for {action:?}"))?;
        }
        Ok(())
    }
}
