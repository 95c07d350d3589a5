//! 7. `files_changed` lists exactly the paths mutated by successful `files-write`, `files-edit` and
//!    `files-delete` calls of the run and its sub-agents.

use super::{Action, AgentEvent, CallId, Checked, Event, Law, Step, law};
use fledge::chat::FileChange;
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Watch {
    editing: Vec<CallId>,
    changed: BTreeMap<String, FileChange>,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        match step.event {
            Event::TaskSubmitted { .. } if step.label == "Idle" => *self = Self::default(),
            Event::ToolFinished { call, outcome } if step.is_answer() => {
                let edited = self.editing.contains(call) && !outcome.is_error;
                if let (true, Some(change)) = (edited, &outcome.change) {
                    self.changed.insert(change.path.clone(), change.clone());
                }
            }
            Event::ChildFinished { changes, .. }
                if step.is_answer() && matches!(step.label, "Dispatching" | "Reporting") =>
            {
                self.changed.extend(changes.iter().map(|change| (change.path.clone(), change.clone())));
            }
            _ => {}
        }
        for action in step.asked() {
            if let Action::RunTool { call, tool, .. } = action
                && matches!(tool.as_str(), "files-write" | "files-edit" | "files-delete")
            {
                self.editing.push(*call);
            }
        }
        if step.label != "Idle" && step.told().any(|told| matches!(told, AgentEvent::Finished { .. })) {
            let result = step.run.result().ok_or("law 7: no result")?;
            let earned: Vec<_> = self.changed.values().cloned().collect();
            law(7, result.files_changed == earned, || format!("listed {:?}, earned {earned:?}", result.files_changed))?;
        }
        Ok(())
    }
}
