//! 2. A run is `verified` only if the last verdict passed, delivered or not, or if verification was
//!    skipped on purpose. A cancelled run is never verified.

use super::{AgentEvent, Checked, Event, Law, Step, law};
use fledge::run::RunSpec;
use fledge::verdict::{Reason, Ruling};

#[derive(Default)]
pub(crate) struct Watch {
    verify: bool,
    commits: bool,
    is_fix: bool,
    last: Option<Ruling>,
    cancelled: bool,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        match step.event {
            Event::TaskSubmitted { spec } if step.label == "Idle" => {
                let RunSpec { verify, commits, is_fix, .. } = **spec;
                *self = Self { verify, commits, is_fix, ..Self::default() };
            }
            // The existing work was judged during planning.
            Event::PlanReady { plan, .. } if step.label == "Planning" && step.is_answer() => {
                self.last = plan.base_verdict.as_ref().filter(|_| self.is_fix).map(|verdict| verdict.ruling);
            }
            Event::GateFinished { verdict, .. } if step.label == "Verifying" && step.is_answer() => {
                self.last = Some(verdict.ruling);
            }
            Event::CancelRequested { .. } => {
                self.cancelled |= !matches!(step.label, "Idle" | "Delivering" | "Reporting")
            }
            _ => {}
        }
        for told in step.told() {
            let AgentEvent::Finished { reason, verified, cancelled, exit_code, .. } = told else { continue };
            let earned = match reason {
                Reason::Verified => self.verify && self.last == Some(Ruling::Passed),
                Reason::NotDelivered => self.commits && self.last == Some(Ruling::Passed),
                Reason::Skipped => !self.verify,
                _ => false,
            };
            let is_child = step.run.spec().depth > 0;
            law(2, *verified == (!is_child).then_some(earned), || {
                format!("{reason}: verified is {verified:?}, earned is {earned}")
            })?;
            law(2, *cancelled == (*reason == Reason::Cancelled), || format!("{reason}: cancelled is {cancelled}"))?;
            if step.label == "Idle" {
                continue;
            }
            let stays = !self.cancelled || matches!(reason, Reason::Cancelled | Reason::IoError);
            law(2, stays && (self.cancelled || !cancelled), || format!("cancelled, but ended as {reason}"))?;
            let shown =
                step.run.result().map(|r| (r.reason, (!is_child).then_some(r.verified), r.cancelled, r.exit_code));
            let told = Some((*reason, *verified, *cancelled, *exit_code));
            law(2, shown == told, || format!("the result says {shown:?}, watchers heard {told:?}"))?;
        }
        Ok(())
    }
}
