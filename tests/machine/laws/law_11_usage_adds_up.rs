//! 11. Usage never falls, and what sub-agents and summaries cost is part of it, even when it comes in after the end was decided.

use super::{AgentEvent, Checked, Event, Law, Step, law};
use fledge::chat::Usage;

#[derive(Default)]
pub(crate) struct Watch {
    /// What the answers said so far.
    known: Usage,
    /// Whether some answer did not say.
    estimated: bool,
    told: Usage,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        if matches!(step.event, Event::TaskSubmitted { .. }) && step.label == "Idle" {
            *self = Self::default();
        }
        if step.is_answer() {
            match (step.event, step.label) {
                (Event::ModelCompleted { reply, .. }, "CallingModel" | "Reporting") => match &reply.usage {
                    Some(usage) => self.known.add(usage),
                    None => self.estimated = true,
                },
                (Event::ChildFinished { usage, .. }, "Dispatching" | "Reporting")
                | (Event::CompactionFinished { usage, .. }, "Compacting" | "Reporting") => self.known.add(usage),
                _ => {}
            }
        }
        for told in step.told() {
            match told {
                AgentEvent::Usage(usage) => {
                    law(11, covers(usage, &self.told), || format!("fell from {:?} to {usage:?}", self.told))?;
                    self.told = usage.clone();
                    let adds_up = covers(usage, &self.known) && (self.estimated || *usage == self.known);
                    law(11, adds_up, || format!("answers said {:?}, told {usage:?}", self.known))?;
                }
                AgentEvent::Finished { usage, .. } => {
                    law(11, *usage == self.told, || format!("ended with {usage:?}, told {:?}", self.told))?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn covers(more: &Usage, less: &Usage) -> bool {
    more.input_tokens >= less.input_tokens
        && more.output_tokens >= less.output_tokens
        && more.cost_micros >= less.cost_micros
}
