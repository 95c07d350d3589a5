//! A journal folded into the run that it tells of: how far it came, what was asked for and never answered, and where the machine of today
//! asks for something else than that of then.

use super::record::{self, Asked, RESUMED};
use super::replay::Difference;
use crate::chat::FileChange;
use crate::id::CallId;
use crate::moment::Moment;
use crate::process::wall::WallKind;
use crate::run::{Action, AgentEvent, Event, Run};
use crate::store::Record;
use std::collections::BTreeMap;

/// A run as its journal tells it, up to the newest record.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) run: Run,
    /// The moment of the newest record.
    pub(super) at: Moment,
    /// What the machine asked for after the newest event.
    pub(super) asked: Option<Asked>,
    /// The digest of what was kept of the gate, once planning was over.
    pub(super) gate_file: Option<String>,
    /// The wall that stood around the agent, where that was written down.
    pub(super) sandbox: Option<WallKind>,
    /// What file tools did, in order.
    pub(super) changes: Vec<FileChange>,
    /// What a watcher should hear who comes late: how it began, and how it ended.
    pub(super) told: Vec<AgentEvent>,
    /// The first place where the machine asks for something else.
    pub(super) difference: Option<Difference>,
    /// Asked for and not answered.
    open: BTreeMap<CallId, Action>,
    /// The run before its report could not be written, as long as that is the newest there is.
    unreported: Option<Box<Unreported>>,
    newest: (u64, String),
}

/// A run that waits for its report.
#[derive(Debug)]
struct Unreported {
    run: Run,
    asked: Option<Asked>,
    report: (CallId, Action),
}

impl Folded {
    /// Takes the next record.
    pub(super) fn take(&mut self, record: &Record) -> Result<(), serde_json::Error> {
        self.at = Moment(record.at_ms);
        if record.kind == RESUMED {
            self.go_back();
            return Ok(());
        }
        let (event, before) = record::from_json(&record.data)?;
        if let (Some(then), Some(now), None) = (before, &self.asked, &self.difference)
            && then != *now
        {
            self.difference = Some(Difference::new(&self.newest, then, now));
        }
        self.unreported = self.unreported(&event).map(Box::new);
        self.note(&event);
        let actions = self.run.handle(self.at, event);
        self.asked = Some(Asked::of(&actions));
        self.newest = (record.seq, record.kind.clone());
        for action in actions {
            match (action.call(), action) {
                (_, Action::AbortInFlight) => self.open.clear(), // nothing is begun again that was to be stopped
                (_, Action::Emit { event: event @ (AgentEvent::Started { .. } | AgentEvent::Finished { .. }) }) => {
                    self.told.push(event);
                }
                (Some(call), action) => drop(self.open.insert(call, action)),
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &Event) {
        if let Some(call) = event.call() {
            self.open.remove(&call);
        }
        if let Event::PlanReady { plan, .. } = event {
            self.gate_file = Some(plan.gate_file.clone());
            self.sandbox = plan.sandbox;
        }
        if let Event::ToolFinished { outcome, .. } = event {
            self.changes.extend(outcome.change.clone());
        }
    }

    /// Takes back that its report could not be written: a run that is resumed tries again.
    pub(super) fn go_back(&mut self) {
        if let Some(unreported) = self.unreported.take() {
            let Unreported { run, asked, report: (call, action) } = *unreported;
            (self.run, self.asked) = (run, asked);
            self.open.insert(call, action);
            self.told.pop(); // that it had ended
        }
    }

    fn unreported(&self, event: &Event) -> Option<Unreported> {
        let Event::ReportFailed { call, .. } = event else { return None };
        let action = self.open.get(call)?.clone();
        Some(Unreported { run: self.run.clone(), asked: self.asked.clone(), report: (*call, action) })
    }

    /// What the run waits for, in the order in which it was asked for.
    pub(super) fn open(&self) -> Vec<Action> {
        let awaited = self.run.awaited();
        self.open.iter().filter(|(call, _)| awaited.contains(call)).map(|(_, action)| action.clone()).collect()
    }
}
