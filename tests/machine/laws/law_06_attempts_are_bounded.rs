//! 6. At most `max_retries + 1` attempts, numbered from 1 without a gap, each in the report with
//!    its verdict.

use super::{Action, AgentEvent, Checked, Event, Law, Step, law};

#[derive(Default)]
pub(crate) struct Watch {
    max_retries: u32,
    begun: u32,
    judged: u32,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        match step.event {
            Event::TaskSubmitted { spec } if step.label == "Idle" => {
                *self = Self { max_retries: spec.max_retries, ..Self::default() };
            }
            Event::GateFinished { .. } if step.label == "Verifying" && step.is_answer() => self.judged += 1,
            // The existing work was judged during planning, and its pass ends the run.
            Event::PlanReady { .. } if step.told().any(|told| matches!(told, AgentEvent::VerifyResult { .. })) => {
                self.begun += 1;
                self.judged += 1;
            }
            // An answer of the wrong form is never judged by the gate.
            Event::ModelCompleted { .. } => {
                let is_rejected = step.told().any(|told| matches!(told, AgentEvent::VerifyResult { .. }));
                self.begun += u32::from(is_rejected);
                self.judged += u32::from(is_rejected);
            }
            _ => {}
        }
        for action in step.asked() {
            if let Action::RunGate { attempt, .. } = action {
                self.begun += 1;
                law(6, *attempt == self.begun, || format!("attempt {attempt} is the {}. one", self.begun))?;
                law(6, attempt - 1 <= self.max_retries, || {
                    format!("attempt {attempt} of {} retries", self.max_retries)
                })?;
            }
        }
        if step.label != "Idle" && step.told().any(|told| matches!(told, AgentEvent::Finished { .. })) {
            let result = step.run.result().ok_or("law 6: no result")?;
            let numbers = result.attempts.iter().map(|attempt| attempt.number);
            law(6, numbers.eq(1..=self.judged), || {
                format!("{} verdicts, reported {:?}", self.judged, result.attempts)
            })?;
        }
        Ok(())
    }
}
