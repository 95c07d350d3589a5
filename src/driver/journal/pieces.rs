//! Events that watchers got in pieces and that no other record repeats: the text of an answer that
//! was discarded or cut off, and the steps of a gate run without a verdict in the journal.

use super::record::{SHOWN, ShownRecord};
use super::writer::JournalWriter;
use crate::driver::bus::EventCount;
use crate::elapsed::Elapsed;
use crate::run::{AgentEvent, Event, StateName};
use crate::store::StoreError;
use crate::verdict::StepProgress;

/// The pieces since the last record that accounts for them, as whole events.
#[derive(Debug, Default)]
pub(in crate::driver) struct ShownPieces(Vec<AgentEvent>);

impl ShownPieces {
    /// Adds a piece that watchers got. Leaves out what only shows progress.
    pub(in crate::driver) fn add(&mut self, event: &AgentEvent) {
        match (self.0.last_mut(), event) {
            (Some(AgentEvent::Text(text)), AgentEvent::Text(more))
            | (Some(AgentEvent::Thinking(text)), AgentEvent::Thinking(more)) => text.push_str(more),
            (_, AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::ToolCall { .. })
            | (_, AgentEvent::LaneStep(StepProgress::Ended(_))) => self.0.push(event.clone()),
            _ => {}
        }
    }

    /// Journals the pieces before an event that ends them without repeating them.
    ///
    /// # Errors
    /// As for [`JournalWriter::append`].
    pub(in crate::driver) fn flush(
        &mut self,
        state: StateName,
        event: &Event,
        (at, count): (Elapsed, &EventCount),
        journal: &JournalWriter,
    ) -> Result<(), StoreError> {
        if !ends_pieces(state, event) {
            return Ok(());
        }
        let events = std::mem::take(&mut self.0);
        if events.is_empty() || is_repeated(state, event) {
            return Ok(());
        }
        let event_count = count.record(events.len());
        journal.append(at.0, SHOWN, &serde_json::to_string(&ShownRecord::new(event_count, events)).unwrap_or_default())
    }
}

/// Returns true if no piece of the current answer or gate run follows this event.
fn ends_pieces(state: StateName, event: &Event) -> bool {
    state != StateName::Reporting
        && match event {
            Event::ModelCompleted { .. } | Event::ModelFailed { .. } | Event::GateFinished { .. } => true,
            Event::PlanReady { .. } | Event::PlanFailed { .. } => true,
            Event::CancelRequested { .. } | Event::LimitReached { .. } | Event::DeadlinePassed => true,
            Event::BaseJudged { result } => result.is_err(), // it ends the run
            _ => false,
        }
}

/// Returns true if the event itself repeats the pieces; see [`super::fold::whole_events`].
fn is_repeated(state: StateName, event: &Event) -> bool {
    match event {
        Event::ModelCompleted { .. } => state == StateName::Executing,
        Event::GateFinished { .. } => state == StateName::Verifying,
        _ => false,
    }
}
