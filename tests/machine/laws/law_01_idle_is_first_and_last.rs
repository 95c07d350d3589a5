//! 1. The first and the last state of each run is Idle. States follow each other only along the
//!    five arrows and their short cuts to the report. The end is emitted exactly when it is
//!    reached.

use super::{AgentEvent, Checked, Event, Law, StateName, Step, law};
use StateName::{Executing, Idle, Planning, Reporting, Verifying};

#[derive(Default)]
pub(crate) struct Watch;

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        let mut at = step.state;
        let mut finished = 0;
        for told in step.told() {
            if let AgentEvent::StateChanged(next) = told {
                law(1, follows(at, *next), || format!("{next:?} followed {at:?}"))?;
                at = *next;
            }
            finished += u32::from(matches!(told, AgentEvent::Finished { .. }));
        }
        law(1, at == step.run.state(), || format!("told to be {at:?}, but is {:?}", step.run.state()))?;
        let rests = step.state == Reporting && at == Idle;
        let stopped_before_it_began = step.state == Idle && matches!(step.event, Event::CancelRequested { .. });
        law(1, finished == u32::from(rests || stopped_before_it_began), || format!("told the end {finished} times"))?;
        law(1, !rests || step.run.result().is_some(), || "ended without a result".into())
    }
}

fn follows(from: StateName, to: StateName) -> bool {
    match from {
        Idle => to == Planning,
        Planning | Verifying => matches!(to, Executing | Reporting),
        Executing => matches!(to, Verifying | Reporting),
        Reporting => to == Idle,
    }
}

/// Checks the state of a run that is over.
pub(crate) fn is_over(state: StateName) -> Checked {
    law(1, state == Idle, || format!("the run rests in {state:?}"))
}
