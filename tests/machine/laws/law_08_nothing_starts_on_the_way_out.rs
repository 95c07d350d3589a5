//! 8. From any state, a cancel leads to the report and then to Idle. Nothing else starts on the
//!    way: no model call, no tool, no lane. The same holds for all other ends.

use super::{Action, CallId, Checked, Event, Law, StateName, Step, law};

#[derive(Default)]
pub(crate) struct Watch {
    report: Option<CallId>,
    /// The delivery before the report. Only work that passed is delivered.
    delivery: Option<CallId>,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        let asked: Vec<&Action> = step.asked().collect();
        if let (Some(call), "Delivering") = (self.delivery, step.label) {
            let is_delivery = matches!(step.event, Event::Delivered { .. });
            let answered = is_delivery && step.is_answer() && step.event.call() == Some(call);
            return match asked[..] {
                [] if !answered => Ok(()),
                [Action::SaveReport { call }] if answered => {
                    (self.delivery, self.report) = (None, Some(*call));
                    Ok(())
                }
                _ => law(8, false, || format!("a delivery led to {asked:?}")),
            };
        }
        if matches!(step.state, StateName::Reporting) {
            law(8, asked.is_empty(), || format!("started on the way out: {asked:?}"))?;
            let answered = step.is_answer() && step.event.call() == self.report;
            let is_final = matches!(step.event, Event::ReportSaved { .. } | Event::ReportFailed { .. });
            let rests = step.run.state() == StateName::Idle;
            return law(8, rests == (answered && is_final), || "the report's end and the run's differ".into());
        }
        let cancels = matches!(step.event, Event::CancelRequested { .. });
        if cancels && step.state == StateName::Idle {
            return law(8, asked.is_empty(), || format!("started before the start: {asked:?}"));
        }
        if step.run.state() != StateName::Reporting {
            return law(8, !cancels, || "a cancel did not lead to the report".into());
        }
        let in_flight = cancels && !step.awaited.is_empty();
        let verdict = match step.event {
            Event::GateFinished { verdict, .. } => Some(verdict),
            Event::PlanReady { plan, .. } => plan.base_verdict.as_ref(),
            _ => None,
        };
        if let ([Action::Deliver { call, .. }], Some(verdict)) = (&asked[..], verdict) {
            self.delivery = Some(*call);
            return law(8, verdict.passed() && verdict.proof.is_some(), || "delivered what did not pass".into());
        }
        self.report = match asked[..] {
            [Action::AbortInFlight, Action::SaveReport { call }] => Some(*call),
            [Action::SaveReport { call }] if !in_flight => Some(*call),
            _ => return law(8, false, || format!("not the way out: {asked:?}")),
        };
        Ok(())
    }
}
